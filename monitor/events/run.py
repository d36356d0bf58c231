"""The first and the last record of a run, of everything that a reader needs to know of it."""

from __future__ import annotations

from monitor.events.declaration import Key, Record, schema_of
from monitor.events.keys import (
    CEILING,
    CONDITIONS,
    COUNT,
    DIFFERS,
    FALSE_ALARMS,
    FIGURE,
    FLAG,
    HEADLINE,
    HEADLINES,
    MAYBE_SECONDS,
    MAYBE_TEXT,
    NUMBER,
    PEOPLE,
    PROBABILITY,
    SECONDS,
    SESSION,
    TEXT,
    TEXTS,
    TOP,
    VALUE,
    limits,
    list_of,
    object_of,
)
from monitor.events.reading import Bystander

# --- What records say of transcripts: whose words they are, and how well they fit the speech.

TRANSCRIPTS_START = list_of(
    object_of(
        recording=TEXT,
        transcript=TEXT,
        words={**COUNT, "type": ["integer", "null"]},
        spread={**FLAG, "type": ["boolean", "null"]},
        speaker=MAYBE_TEXT,
    )
)
"""Of the ``start`` record."""
TRANSCRIPTS_END = list_of(
    object_of(
        ["as_well_elsewhere"],
        recording=TEXT,
        words=COUNT,
        **dict.fromkeys(("words_in_speech", "speech_with_words", "as_well_elsewhere"), PROBABILITY),
    )
)
"""Of the ``end`` record."""


# --- What the records of a run say of a declared epsilon (``--protect usc:15``, frames with noise).

DECLARED_START = object_of(
    mechanism=TEXT,
    epsilon_nats=NUMBER,
    window_seconds=SECONDS,
    delta=PROBABILITY,
    empty_after=COUNT,
)


# --- What the records of a run say of its protected side (``--protect``).

PROTECTED_START = object_of(
    method=TEXT,
    latency_seconds=MAYBE_SECONDS,
    attackers={
        "type": "object",
        "additionalProperties": object_of(
            support_bits=FIGURE, fingerprint={"type": "object", "additionalProperties": TEXT}
        ),
    },
)
_CROSSED = object_of(seconds=SECONDS, crossed=FLAG)
DISCLOSURE_DELAY = list_of(
    object_of(bits=NUMBER, clear=_CROSSED, protected=_CROSSED, delay_seconds=VALUE, at_least=FLAG)
)


# --- The first record of a run: everything that a reader needs to know before its first reading.

SCHEMA_VERSION = 2
"""Of all records; another one is refused: `bits` was another figure in the first."""

_SHARE = {"type": "number", "minimum": 0, "maximum": 1}
_HISTORY = limits("bits", "evidence_bits", "closed_set_bits")
_CARRIED = object_of(
    sessions=COUNT,
    speech=SECONDS,
    history=list_of(
        object_of(
            [name for name in _HISTORY if name != "bits"],
            session=COUNT,
            time=TEXT,
            seconds=SECONDS,
            speech=SECONDS,
            **_HISTORY,
        )
    ),
)
_ALARMS = list_of(object_of(rule=TEXT, field=TEXT, threshold=NUMBER, false_alarms=FALSE_ALARMS))
_ALERTS = list_of(
    object_of(
        rule=TEXT,
        field=TEXT,
        threshold=NUMBER,
        level={"enum": ["alert", "warning"]},
        hold_seconds=SECONDS,
        least_speech_seconds=SECONDS,
    )
)
_BYSTANDERS = object_of(above=_SHARE, people=COUNT)
_PEOPLE = list_of(object_of(label=TEXT, seconds=MAYBE_SECONDS))

START = Record(
    "start",
    (
        Key("schema", {"const": SCHEMA_VERSION}, "version of these records"),
        Key("version", TEXT, "version of the program"),
        Key("time", TEXT, "time of day, UTC"),
        Key("features", {**TEXTS, "minItems": 1}, "what is listened for"),
        Key("speakers", {**COUNT, "minimum": 2}, "N, the candidates"),
        Key("ceiling", CEILING, "log2 N"),
        Key(
            "reachable_bits",
            FIGURE,
            "the most that `closed_set_bits` can be: less than the ceiling, since a share of the "
            "probability is held back for a mistake",
            required=False,
        ),
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
            "rank_model",
            {"enum": ["own", "mismatched"]},
            '`"own"`, or `"mismatched"` where it was learnt without some of these speakers: they '
            "were added later, the rank model is from `--rank-model`, or it is the shipped "
            "cross-session rank model because too few speakers had two sessions",
        ),
        Key(
            "rank_model_prior",
            _SHARE,
            "what the shipped readers' rank model counts in this one as its prior: 0 (nothing) to "
            "1 (it is theirs); m / (S + m), S the speakers it was learnt on, m from 20 to 100 as "
            "speakers left out decide",
            required=False,
        ),
        Key("rank_model_session", SESSION, '`"cross"` or `"same"`: the kind of rank model in use'),
        Key("rank_model_speakers", COUNT, "mated speakers behind it"),
        Key(
            "rank_model_candidates",
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
            "the most bits of evidence that these templates' rank model can support, at any "
            "length; null "
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
            "of population and rank model: equal ones, equal figures",
        ),
        Key(
            "notices",
            TEXTS,
            "what a person should know, one sentence each: among them by how many bits a "
            "same-session rank model may favour the attacker, from the difference between the "
            "shipped rank models",
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
            "`attackers` knows, `support_bits` and the `fingerprint` of population and rank model: "
            '`"ignorant"` has not enrolled protected speech, `"lazy-informed"` has',
            required=False,
        ),
        Key(
            "declared",
            DECLARED_START,
            "only where an anonymiser, or noise on frames, promises anything: the `mechanism`, its "
            "`epsilon_nats` for each window of `window_seconds`, the `delta` of the optimal and "
            "the advanced composition, and after how many windows nothing is promised any more "
            "(`empty_after`)",
            required=False,
        ),
        Key(
            "people",
            _PEOPLE,
            "only of several [people](people.md): the `label` of each, and its `seconds` alone "
            "by the turns, or null",
            required=False,
        ),
        Key("watched", TEXTS, "only where several are watched", required=False),
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


_PERSON = object_of(
    label=TEXT,
    person=MAYBE_TEXT,
    probability=PROBABILITY,
    enrolled=PROBABILITY,
    seconds=MAYBE_SECONDS,
    overlap_seconds=MAYBE_SECONDS,
    speech=SECONDS,
    watch=MAYBE_TEXT,
    **limits("bits"),
    headline={"enum": [*HEADLINES, None]},
    at_least={"type": ["boolean", "null"]},
    peak_bits=FIGURE,
    purity=PROBABILITY,
    changes=COUNT,
    alerts=COUNT,
    first_alert_seconds=MAYBE_SECONDS,
    differs=DIFFERS,
)

# --- The last record of a run: what it came to, and whether anything was lost.

END = Record(
    "end",
    (
        Key("time", TEXT, "time of day, UTC"),
        Key("seconds", SECONDS, "audio seconds heard, at the last reading"),
        Key("speech", SECONDS, "T, speech seconds, at the last reading"),
        Key("bits", FIGURE, "the headline of the last reading"),
        Key("peak_bits", FIGURE, "the largest headline of the run"),
        Key("top", TOP, "of the last reading"),
        Key("readings", COUNT, "how many readings"),
        Key("conditions", CONDITIONS, "of the last reading, or null", required=False),
        Key("differs", DIFFERS, "of the last reading, empty where nothing does", required=False),
        Key("gaps", COUNT, "how many gaps"),
        Key("changes", COUNT, "how many changes"),
        Key("lost_seconds", MAYBE_SECONDS, "audio lost, as far as known"),
        Key("alerts", COUNT, 'alerts raised, of `level` `"alert"`'),
        Key("warnings", COUNT, 'alerts raised, of `level` `"warning"`'),
        Key("failures", TEXTS, "what an action or the ledger could not do, a line each"),
        Key(
            "undecided",
            TEXTS,
            "alerts of which a stream so short says nothing, a line each: it had less speech than "
            "the rule needs (`after 10 s`), or ended while a rule's figure was held (`for 5 s`)",
        ),
        Key(
            "repeated_seconds",
            SECONDS,
            "only where there was any: speech that repeats what was heard before in this stream, "
            "and was left out of all figures",
            required=False,
        ),
        Key("stopped", MAYBE_TEXT, "the rule that ended the stream (`--stop-on-alert`), or null"),
        Key("complete", FLAG, "false where anything was lost"),
        Key(
            "incomplete",
            TEXTS,
            "what keeps the run from being complete, a line each: lost audio, a recording without "
            "speech, an undecided alert, a ledger that lacks part of it. With `alerts` the exit "
            "status is 3, else 4",
            required=False,
        ),
        Key("watch", MAYBE_TEXT, "as in `start`"),
        Key("recordings", TEXTS, "as in `start`", required=False),
        Key(
            "notices",
            TEXTS,
            "what a person should know of the recordings, one sentence each: all that was noticed "
            "in the middle of the stream (`notice`), nobody speaks in it, or it sounds like "
            "another person than what was heard before it "
            "(see [measurements](../benchmarks/results/recordings.md))",
            required=False,
        ),
        Key(
            "bystanders",
            list_of(schema_of(Bystander)),
            "only with `--bystanders`: each of them with the largest `probability` of the run",
            required=False,
        ),
        Key(
            "people",
            {"type": "array", "items": _PERSON},
            "only of several [people](people.md), a row each: who it most probably is (`person`, "
            "null: nobody enrolled) and how probable that is, `seconds` alone by the turns, and "
            "the figures of the last reading. The run's own `bits` are then the largest",
            required=False,
        ),
        Key(
            "overlap_seconds",
            MAYBE_SECONDS,
            "only of several people: seconds in which more than one speaks, which count for nobody",
            required=False,
        ),
        Key(
            "disclosure_delay",
            DISCLOSURE_DELAY,
            "only with `--protect`, a row for each level of the headline (`bits`): when the clear "
            "and the protected side reached it (`clear`, `protected`: `seconds`, or, where "
            "`crossed` is false, until when it is known that they had not), and `delay_seconds`, "
            "the difference, which is `at_least` so much where the protected side had not; null "
            "where the clear side had not. Empty where nobody is watched",
            required=False,
        ),
        Key(
            "transcripts",
            TRANSCRIPTS_END,
            "only with words: of each `recording` how many `words` came, the share of their time "
            "in which somebody speaks (`words_in_speech`), the share of the speech in which a word "
            "is said (`speech_with_words`), and the share of the other places along the recording "
            "where the words would lie in speech as well (`as_well_elsewhere`: near 0 for the "
            "recording's own, anything for another's; null where pauses are too few to tell)",
            required=False,
        ),
    ),
)
