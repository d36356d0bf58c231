"""A reading: every key of it, and how it is taken from a `monitor.Reading`."""

from __future__ import annotations

from typing import Any

from monitor import phrases
from monitor.records.keys import (
    CONDITIONS,
    COUNT,
    DIFFERS,
    FIGURE,
    FLAG,
    HEADLINES,
    MAYBE_SECONDS,
    MAYBE_TEXT,
    MOST,
    NUMBER,
    PROBABILITY,
    SECONDS,
    SESSION,
    TEXT,
    TEXTS,
    TOP,
    VALUE,
    Key,
    Record,
    limits,
    list_of,
    object_of,
)

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
DECLARED_READING = object_of(
    ["advanced_nats"],
    windows=COUNT,
    basic_nats=NUMBER,
    advanced_nats=VALUE,
    optimal_nats=NUMBER,
    most_bits=NUMBER,
    empty=FLAG,
)


def declared_record(promise: Any) -> dict[str, Any]:
    """A `monitor.anonymisers.laplace.Promise` of all that was heard so far."""
    spent = promise.spent
    better = spent.advanced_nats < spent.basic_nats
    return {
        "windows": spent.trials,
        "basic_nats": spent.basic_nats,
        "advanced_nats": spent.advanced_nats if better else None,
        "optimal_nats": spent.optimal_nats,
        "most_bits": promise.most_bits,
        "empty": promise.empty,
    }


# --- What the records of a run say of its protected side (``--protect``).

_MAYBE_FLAG = {"type": ["boolean", "null"]}
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
_HEADLINE = limits("bits")
_OF_ATTACKER = limits("evidence_bits", "closed_set_bits", "gain_bits")
_LIMITED = [name for name in (*_HEADLINE, *_OF_ATTACKER) if name.endswith(("_low", "_high"))]
_ATTACKER = object_of(
    [*_LIMITED, "at_least", "support_bits"],
    **_HEADLINE,
    **_OF_ATTACKER,
    at_least=_MAYBE_FLAG,
    support_bits=FIGURE,
)
PROTECTED_READING = object_of(
    ["speech", "bits_low", "bits_high", "at_least"],
    speech=SECONDS,
    **_HEADLINE,
    by=MAYBE_TEXT,
    at_least=FLAG,
    attackers={"type": "object", "additionalProperties": _ATTACKER},
)
_CROSSED = object_of(seconds=SECONDS, crossed=FLAG)
DISCLOSURE_DELAY = list_of(
    object_of(bits=NUMBER, clear=_CROSSED, protected=_CROSSED, delay_seconds=VALUE, at_least=FLAG)
)


def protected_record(reading: Any) -> dict[str, Any]:
    """The protected side of a `monitor.stream.reading.Reading`."""
    both = reading.protected
    return {
        "speech": both.speech,
        **{name: getattr(both, name) for name in _HEADLINE},
        "by": both.by,
        "at_least": both.at_least,
        "attackers": {
            name: _attacker(each, HEADLINES[both.headline]) for name, each in both.attackers.items()
        },
    }


def _attacker(reading: Any, headline: str) -> dict[str, Any]:
    return {
        **{name: getattr(reading, name.replace("bits", headline)) for name in _HEADLINE},
        **{name: getattr(reading, name) for name in _OF_ATTACKER},
        "at_least": reading.at_least,
        "support_bits": reading.support_bits,
    }


# --- The first record of a run: everything that a reader needs to know before its first reading.

SCHEMA_VERSION = 2
"""Of all records; another one is refused: `bits` was another figure in the first."""

CEILING = {"type": "number", "minimum": 0, "maximum": 64}
HEADLINE = {"enum": list(HEADLINES)}
PEOPLE = {"type": "number", "minimum": 2, "maximum": 1e10}
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
FALSE_ALARMS = object_of(
    ["repeated", "beyond"],
    share={"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    horizon_seconds=SECONDS,
    speakers=COUNT,
    repeated=COUNT,
    session=SESSION,
    beyond=FLAG,
)
"""What a threshold that was worked out promises."""
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


# --- A key is added here alone: the schema, ``Reading.record`` and docs/records.md follow.

_CERTAIN = {**PROBABILITY, "type": "number"}
_ONE_IN = {"type": ["number", "null"], "minimum": 0, "maximum": MOST}
LABEL = Key("label", TEXT, "only of several people side by side: whose", sparse=True)
WATCH = Key("watch", TEXT, "only where several are watched: whom", sparse=True)
BYSTANDERS = list_of(object_of(name=TEXT, probability=_CERTAIN, people=COUNT))
OPEN_CHANGE = object_of(since_seconds=SECONDS, features=TEXTS)
_AMONG = {
    "type": ["array", "null"],
    "items": {
        "type": "object",
        "properties": {
            "people": PEOPLE,
            **limits("bits"),
            "one_in": _ONE_IN,
            "fitting": _ONE_IN,
            "probability": PROBABILITY,
            "favourite": {
                "type": ["array", "null"],
                "prefixItems": [TEXT, _CERTAIN],
                "minItems": 2,
                "maxItems": 2,
            },
            "favourite_one_in": _ONE_IN,
        },
        "required": ["people", "bits"],
    },
}
_GUIDES = object_of(linear=FIGURE, sqrt=FIGURE)
_FIGURES = limits("expected_bits", "rank_bits", "local_bits", "gain_bits")
_FEATURE = object_of(
    [name for name in _FIGURES if name.endswith(("_low", "_high"))],
    usable=SECONDS,
    rank={**VALUE, "minimum": 1},
    **_FIGURES,
)


def _feature(feature: Any) -> dict[str, Any]:
    """What a reading says of one feature."""
    return {
        "usable": feature.usable,
        "rank": _whole(feature.rank),
        **{name: getattr(feature, name) for name in _FIGURES},
    }


def _whole(rank: float | None) -> float | int | None:
    """A rank is a whole number wherever nobody ties."""
    return int(rank) if rank is not None and rank == int(rank) else rank


def _records(things: Any) -> list[dict[str, Any]] | None:
    return None if things is None else [each.record() for each in things]


READING = Record(
    "reading",
    (
        Key("seconds", SECONDS, "audio seconds heard"),
        Key("speech", SECONDS, "T: speech seconds among them (voice activity)"),
        Key(
            "stream",
            {**COUNT, "minimum": 1},
            'which voice, from 1: another begins only where `on_change` is `"split"`',
        ),
        Key(
            "bits",
            FIGURE,
            "the headline, which is shown first everywhere and on which an alert stands: "
            "`evidence_bits` where somebody is watched and there is evidence, else "
            "`closed_set_bits`",
            limits=True,
        ),
        Key(
            "headline",
            HEADLINE,
            'which of the two `bits` is: `"evidence"` or `"closed-set"`',
        ),
        Key(
            "closed_set_bits",
            FIGURE,
            "among the N enrolled, from the joint posterior of all features, at most the ceiling: "
            "log2(N p), p the attacker's probability of the watched speaker; `gain_bits` where "
            "nobody is watched",
            limits=True,
        ),
        Key(
            "sum_bits",
            FIGURE,
            "the closed-set figure as a sum over the features, as if they were independent; may "
            "exceed the ceiling; no limits",
        ),
        Key(
            "gain_bits",
            FIGURE,
            "the attacker's confidence, log2 N - H(p), assuming that the speaker is enrolled",
            limits=True,
        ),
        Key(
            "peak_bits",
            FIGURE,
            "the largest headline so far; no limits: nothing should stand on it",
        ),
        Key(
            "expected_bits",
            FIGURE,
            "MeanD(T, D) of the rank model at N: what a voice of this length discloses on average",
            limits=True,
        ),
        Key("ceiling", CEILING, "log2 N"),
        Key("plateau", FIGURE, "the largest expected bits"),
        Key(
            "guides",
            _GUIDES,
            "`linear` and `sqrt`: basic and advanced composition scaling from the rank model's "
            "first length",
            lambda reading: {"linear": reading.guides[0], "sqrt": reading.guides[1]},
        ),
        Key("session", SESSION, '`"cross"` or `"same"`'),
        Key("assumes_enrolled", FLAG, "as in `start`"),
        Key(
            "evidence_bits",
            FIGURE,
            "log2 of a likelihood ratio: how many times as likely this voice would be if it were "
            "the watched speaker's as if it were somebody else's. It does not depend on N and may "
            "exceed the ceiling. Null without `--watch`: to be the best match of N is no evidence",
            limits=True,
            required=False,
        ),
        Key(
            "evidence_guides",
            {**_GUIDES, "type": ["object", "null"]},
            "`linear` and `sqrt`: how mean evidence would grow from the first calibrated length on "
            "if every second disclosed as much as the first, or as advanced composition does, up "
            "to `support_bits`; null without evidence",
            lambda reading: (
                None
                if reading.evidence_guides is None
                else {"linear": reading.evidence_guides[0], "sqrt": reading.evidence_guides[1]}
            ),
            required=False,
        ),
        Key(
            "support_bits",
            FIGURE,
            "the most bits of evidence that calibration can support at this length",
            required=False,
        ),
        Key(
            "at_least",
            {"type": ["boolean", "null"]},
            "true where the evidence was more than `support_bits` and has been cut to it",
            required=False,
        ),
        Key(
            "spread_low",
            FIGURE,
            "with `spread_high`: between these bits of evidence 9 of 10 voices read that were as "
            "long and watched by their own name, of calibration's speakers left out of the fit. "
            "The limits of `bits` say something else: how much it depends on the people it was "
            "learnt from. Left out where the headline is no evidence, or the rank model does not "
            "know: nothing as short was calibrated",
            sparse=True,
        ),
        Key("spread_high", FIGURE, "see `spread_low`", sparse=True),
        Key(
            "spread_others",
            FIGURE,
            "below this 19 of 20 voices of other people read, as long",
            sparse=True,
        ),
        Key(
            "among",
            _AMONG,
            "one object for each crowd of `start`, all of whom are taken as equally likely before: "
            "its size `people` (M, the N enrolled included), `bits` = log2(M p) with p the "
            "`probability` of the watched speaker, `one_in` = 2^bits, and `fitting` = M / 2^bits, "
            "how many people would fit as well, the watched one included. Limits: at those of the "
            "evidence. Without `--watch` `bits` is the relative entropy of everybody's "
            "probability to an even one, `probability` is null, and `favourite` names the most "
            "probable of the N with the probability among M, which `favourite_one_in` has as 1 in "
            "so many",
            lambda reading: _records(reading.among),
            required=False,
        ),
        Key(
            "enrolled",
            PROBABILITY,
            "probability that the speaker is one of the N at all, at the odds before that `start` "
            "tells (`enrolled_prior`); null as long as there is nothing to go by, and where these "
            "features cannot tell impostors. The figures among the N assume it",
        ),
        Key(
            "beyond_grid",
            FLAG,
            "true where T is longer than anything calibrated and the last rank model holds",
        ),
        Key(
            "features",
            {"type": "object", "additionalProperties": _FEATURE},
            "by name: `usable` seconds of speech in which the feature finds what it measures (of "
            "`f0` voiced ones with a pitch: 7 to 56 % of the audio, so that 8.8 s of 147 s are no "
            "fault; of `style` words), `rank` of the watched speaker (1 the most similar; the "
            "mean of tied ranks), `expected_bits`, `rank_bits`, `local_bits`, `gain_bits`",
            lambda reading: {name: _feature(each) for name, each in reading.features.items()},
        ),
        Key(
            "top",
            TOP,
            "the most probable speakers with their probability: five, more with `--top` or `--web`",
            lambda reading: [list(pair) for pair in reading.top],
        ),
        Key(
            "bystanders",
            BYSTANDERS,
            "only with `--bystanders`: everybody enrolled but the watched speaker whose "
            "`probability` among `people` (the largest crowd of `--among`, N of them enrolled) "
            "lies above the level: `name`, `probability`, `people`, the most probable first",
            lambda reading: _records(reading.bystanders),
            sparse=True,
        ),
        Key(
            "excluded_seconds",
            SECONDS,
            "only once another voice was noticed while somebody is watched: of `speech`, what the "
            "figures leave out: other voices' stretches, or what says less of the watched speaker. "
            "They are judged at the rest",
            sparse=True,
        ),
        Key(
            "change",
            OPEN_CHANGE,
            "only while a noted change is open (see below): `since_seconds` and `features` of it. "
            "Where nobody is watched the figures are then of all that was heard",
            lambda reading: None if reading.change is None else reading.change.record(),
            sparse=True,
        ),
        Key(
            "protected",
            PROTECTED_READING,
            "only with `--protect`: what the same seconds disclose through the anonymiser: `bits` "
            "with limits, the headline of the strongest attacker who was tried (`by`), `at_least` "
            "where any evidence was cut, and `speech`, the seconds of it in the protected audio. "
            "Under `attackers`, by what each knows of the anonymiser, `bits`, `evidence_bits`, "
            "`closed_set_bits` and `gain_bits` with limits, `at_least` and `support_bits` as above",
            lambda reading: None if reading.protected is None else protected_record(reading),
            sparse=True,
        ),
        Key(
            "enrolled_withheld",
            TEXT,
            "only where `enrolled` cannot be told: why. The rank model says how well it could in "
            "calibration, on speakers left out: under an area of 0.8 below the ROC curve no number "
            "is given",
            lambda reading: phrases.reasons_as_text(reading.enrolled_withheld),
            sparse=True,
        ),
        Key(
            "withheld",
            TEXT,
            "only where figures are withheld: why",
            sparse=True,
        ),
        Key(
            "conditions",
            CONDITIONS,
            "only of audio: what it sounds like so far ([conditions](conditions.md)): where its "
            "band ends (`bandwidth_hz`), how far speech is above noise (`snr_db`), the time in "
            "which an echo dies (`reverberation_seconds`, RT60), the share of samples that are cut "
            "off (`clipping`), the level of the speech (`level_db`); each null while too little "
            "was heard",
            lambda reading: None if reading.conditions is None else reading.conditions.record(),
            sparse=True,
        ),
        Key(
            "differs",
            DIFFERS,
            "only where it is so: which of these are unlike the templates', or bad in themselves: "
            "low bits are no safety then",
            lambda reading: list(reading.differs) or None,
            sparse=True,
        ),
        Key(
            "lag",
            SECONDS,
            "only live: wall seconds from when this second was heard to this reading",
            sparse=True,
        ),
        Key(
            "declared",
            DECLARED_READING,
            "only where `start` has `declared`: what is promised of all that was heard so far, "
            "whoever attacks: `windows` so far, what their epsilons come to by `basic_nats`, "
            "`advanced_nats` (null where it is no better) and `optimal_nats` composition, "
            "`most_bits`, the evidence that no attacker exceeds (basic / ln 2), and whether that "
            "is `empty`: 33 bits or more, which tell one person from all others alive. The other "
            "figures are measured, with the attackers that were tried",
            sparse=True,
        ),
        LABEL,
        WATCH,
    ),
)
