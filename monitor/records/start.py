"""The first record of a run: everything that a reader needs to know before its first reading."""

from __future__ import annotations

from monitor.records.declared import DECLARED_START
from monitor.records.keys import (
    CONDITIONS,
    COUNT,
    FIGURE,
    FLAG,
    HEADLINES,
    MAYBE_SECONDS,
    MAYBE_TEXT,
    NUMBER,
    SECONDS,
    SESSION,
    TEXT,
    TEXTS,
    Key,
    Record,
    limits,
)
from monitor.records.protected import PROTECTED_START
from monitor.records.transcripts import TRANSCRIPTS_START

__all__ = ["CEILING", "FALSE_ALARMS", "HEADLINE", "PEOPLE", "SCHEMA_VERSION", "START"]

SCHEMA_VERSION = 2
"""Of all records; another one is refused: `bits` was another figure in the first."""

CEILING = {"type": "number", "minimum": 0, "maximum": 64}
HEADLINE = {"enum": list(HEADLINES)}
PEOPLE = {"type": "number", "minimum": 2, "maximum": 1e10}
_SHARE = {"type": "number", "minimum": 0, "maximum": 1}
_CARRIED = {
    "type": "object",
    "properties": {
        "sessions": COUNT,
        "speech": SECONDS,
        "history": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "session": COUNT,
                    "time": TEXT,
                    "seconds": SECONDS,
                    "speech": SECONDS,
                    **limits("bits", "evidence_bits", "closed_set_bits"),
                },
                "required": ["session", "time", "seconds", "speech", "bits"],
            },
        },
    },
    "required": ["sessions", "speech", "history"],
}
FALSE_ALARMS = {
    "type": "object",
    "properties": {
        "share": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        "horizon_seconds": SECONDS,
        "speakers": COUNT,
        "repeated": COUNT,
        "session": SESSION,
        "beyond": FLAG,
    },
    "required": ["share", "horizon_seconds", "speakers", "session"],
}
"""What a threshold that was worked out promises."""
_ALARMS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "rule": TEXT,
            "field": TEXT,
            "threshold": NUMBER,
            "false_alarms": FALSE_ALARMS,
        },
        "required": ["rule", "field", "threshold", "false_alarms"],
    },
}
_ALERTS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            **dict.fromkeys(("rule", "field"), TEXT),
            "threshold": NUMBER,
            "level": {"enum": ["alert", "warning"]},
            **dict.fromkeys(("hold_seconds", "least_speech_seconds"), SECONDS),
        },
        "required": [
            *("rule", "field", "threshold", "level"),
            *("hold_seconds", "least_speech_seconds"),
        ],
    },
}
_BYSTANDERS = {
    "type": "object",
    "properties": {"above": _SHARE, "people": COUNT},
    "required": ["above", "people"],
}

START = Record(
    "start",
    (
        Key("schema", {"const": SCHEMA_VERSION}, "version of these records"),
        Key("version", TEXT, "version of the program"),
        Key("time", TEXT, "time of day, UTC"),
        Key("features", {**TEXTS, "minItems": 1}, "what is listened for"),
        Key("speakers", {**COUNT, "minimum": 2}, "N, the candidates"),
        Key("ceiling", CEILING, "log2 N"),
        Key("plateau", FIGURE, "the largest expected bits over all lengths, at these templates"),
        Key("watch", MAYBE_TEXT, "the speaker followed, or null"),
        Key(
            "headline",
            HEADLINE,
            'what `bits` of the readings is: `"evidence"` (of the watched speaker, in any crowd) '
            'or `"closed-set"` (among the N enrolled). A reading that has no evidence yet says '
            "the latter",
        ),
        Key(
            "assumes_enrolled",
            FLAG,
            "true where the headline assumes that the speaker is one of the N",
        ),
        Key(
            "step_seconds",
            {**SECONDS, "exclusiveMinimum": 0},
            "audio seconds between readings",
        ),
        Key(
            "template_seconds",
            MAYBE_SECONDS,
            "D: speech seconds to which all templates are cut: their common length, or that of "
            "`watch` where it has less",
        ),
        Key(
            "similarity",
            {"type": "object", "additionalProperties": TEXT},
            "by feature, how stream and template are compared",
        ),
        Key(
            "ties",
            {"enum": ["spread", "optimistic", "pessimistic", "mid"]},
            "how tied ranks are counted",
        ),
        Key(
            "law",
            {"enum": ["own", "borrowed"]},
            '`"own"`, or `"borrowed"` where it was learnt without some of these speakers: they '
            "were added later, the law is from `--law`, or it is the shipped cross-session law "
            "because too few speakers had two sessions",
        ),
        Key(
            "law_prior",
            _SHARE,
            "what the shipped readers' law counts in this one as its prior: 0 (nothing) to 1 (it "
            "is theirs); m / (S + m), S the speakers it was learnt on, m from 20 to 100 as "
            "speakers left out decide",
            required=False,
        ),
        Key("law_session", SESSION, '`"cross"` or `"same"`: the kind of law in use'),
        Key("law_speakers", COUNT, "mated speakers behind it"),
        Key(
            "law_candidates",
            COUNT,
            "N of the calibration: candidates of each of its tests",
            required=False,
        ),
        Key(
            "among",
            {"type": "array", "items": PEOPLE},
            "sizes of crowds, people (`--among`): what the readings' `among` is said of",
            required=False,
        ),
        Key(
            "enrolled_prior",
            _SHARE,
            "how likely it was taken to be, before anything was heard, that one of the N speaks "
            "(`--enrolled-prior`): what `enrolled` starts from",
            required=False,
        ),
        Key(
            "support_bits",
            FIGURE,
            "the most bits of evidence that these templates' law can support, at any length; null "
            "where there is none: then `evidence_bits` and `among` of the readings are null, and "
            "a notice says what helps",
            required=False,
        ),
        Key(
            "bystanders",
            _BYSTANDERS,
            "only with `--bystanders`: whom readings name: those `above` this probability among "
            "so many `people`",
            required=False,
        ),
        Key(
            "on_change",
            {"enum": ["ignore", "note", "reset", "split"]},
            'what is done when another person, or channel, takes over: `"ignore"`, `"note"`, '
            '`"reset"` or `"split"`',
        ),
        Key(
            "conditions",
            CONDITIONS,
            "what the template of `watch` sounds like, or most of the templates do, as "
            "`conditions` of a reading; null where nobody knows",
            required=False,
        ),
        Key("recordings", TEXTS, "names of the recordings, without folders"),
        Key(
            "fingerprint",
            {"type": "object", "additionalProperties": TEXT},
            "of population and law: equal ones, equal figures",
        ),
        Key(
            "notices",
            TEXTS,
            "what a person should know, one sentence each: among them by how many bits a "
            "same-session law may flatter the attacker, from the difference between the shipped "
            "laws",
        ),
        Key(
            "carried",
            _CARRIED,
            "only with a ledger: the evidence that this session goes on from: how many "
            "`sessions`, their `speech` seconds, and the `history` of their readings (`session`, "
            "`time` of day, `seconds`, `speech`, `bits`, `evidence_bits`, `closed_set_bits`), "
            "thinned to a few hundred",
            required=False,
        ),
        Key(
            "alerts",
            _ALERTS,
            "only with rules that have a threshold (`--alert`, `--budget`): each `rule` as text, "
            "its `field`, `threshold` and `level`, for how long it must hold (`hold_seconds`) and "
            "T of the first reading that counts (`least_speech_seconds`)",
            required=False,
        ),
        Key(
            "alarms",
            _ALARMS,
            "only with `--false-alarms`: the thresholds that were worked out: `rule`, `field`, "
            "`threshold`, and the `false_alarms` that an alert quotes",
            required=False,
        ),
        Key(
            "protected",
            PROTECTED_START,
            "only with `--protect`: its `method`, the most by which protected audio lags "
            "(`latency_seconds`; null: until a recording is over), and by what each of the "
            "`attackers` knows, `support_bits` and the `fingerprint` of population and law: "
            '`"ignorant"` has not enrolled protected speech, `"lazy-informed"` has',
            required=False,
        ),
        Key(
            "declared",
            DECLARED_START,
            "only where a protector, or noise on frames, promises anything: the `mechanism`, its "
            "`epsilon_nats` for each window of `window_seconds`, the `delta` of the optimal and "
            "the advanced composition, and after how many windows nothing is promised any more "
            "(`empty_after`)",
            required=False,
        ),
        Key(
            "transcripts",
            TRANSCRIPTS_START,
            "only with words (`--transcript`): of each `recording` the `transcript` beside it, how "
            "many `words` it has, whether their times were `spread` over captions, and the "
            "`speaker` where it names one alone; null where words are still to come",
            required=False,
        ),
    ),
)
