"""A reading: every key of it, and how it is taken from a `monitor.Reading`.

A key is added here and nowhere else: the schema, ``Reading.record`` and docs/records.md follow.
"""

from __future__ import annotations

from typing import Any

from monitor.records.declared import DECLARED_READING
from monitor.records.keys import (
    CONDITIONS,
    COUNT,
    DIFFERS,
    FIGURE,
    FLAG,
    MOST,
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
)
from monitor.records.protected import PROTECTED_READING, protected_record
from monitor.records.start import CEILING, HEADLINE, PEOPLE

__all__ = ["BYSTANDERS", "OPEN_CHANGE", "READING"]

_CERTAIN = {**PROBABILITY, "type": "number"}
_ONE_IN = {"type": ["number", "null"], "minimum": 0, "maximum": MOST}
BYSTANDERS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"name": TEXT, "probability": _CERTAIN, "people": COUNT},
        "required": ["name", "probability", "people"],
    },
}
OPEN_CHANGE = {
    "type": "object",
    "properties": {"since_seconds": SECONDS, "features": TEXTS},
    "required": ["since_seconds", "features"],
}
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
_GUIDES = {
    "type": "object",
    "properties": {"linear": FIGURE, "sqrt": FIGURE},
    "required": ["linear", "sqrt"],
}
_FIGURES = limits("expected_bits", "rank_bits", "local_bits", "gain_bits")
_FEATURE = {
    "type": "object",
    "properties": {
        "usable": SECONDS,
        "rank": {**VALUE, "minimum": 1},
        **_FIGURES,
    },
    "required": ["usable", "rank", "expected_bits", "rank_bits", "local_bits", "gain_bits"],
}


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
            "MeanD(T, D) of the law at N: what a voice of this length discloses on average",
            limits=True,
        ),
        Key("ceiling", CEILING, "log2 N"),
        Key("plateau", FIGURE, "the largest expected bits"),
        Key(
            "guides",
            _GUIDES,
            "`linear` and `sqrt`: basic and advanced composition scaling from the law's first "
            "length",
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
            "learnt from. Left out where the headline is no evidence, or the law does not know: "
            "nothing as short was calibrated",
            required=False,
            sparse=True,
        ),
        Key("spread_high", FIGURE, "see `spread_low`", required=False, sparse=True),
        Key(
            "spread_others",
            FIGURE,
            "below this 19 of 20 voices of other people read, as long",
            required=False,
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
            "features cannot tell strangers. The figures among the N assume it",
        ),
        Key(
            "beyond_grid",
            FLAG,
            "true where T is longer than anything calibrated and the last law holds",
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
            required=False,
            sparse=True,
        ),
        Key(
            "excluded_seconds",
            SECONDS,
            "only once another voice was noticed while somebody is watched: of `speech`, what the "
            "figures leave out: other voices' stretches, or what says less of the watched speaker. "
            "They are judged at the rest",
            required=False,
            sparse=True,
        ),
        Key(
            "change",
            OPEN_CHANGE,
            "only while a noted change is open (see below): `since_seconds` and `features` of it. "
            "Where nobody is watched the figures are then of all that was heard",
            lambda reading: None if reading.change is None else reading.change.record(),
            required=False,
            sparse=True,
        ),
        Key(
            "protected",
            PROTECTED_READING,
            "only with `--protect`: what the same seconds disclose through the protector: `bits` "
            "with limits, the headline of the strongest attacker who was tried (`by`), `at_least` "
            "where any evidence was cut, and `speech`, the seconds of it in the protected audio. "
            "Under `attackers`, by what each knows of the protector, `bits`, `evidence_bits`, "
            "`closed_set_bits` and `gain_bits` with limits, `at_least` and `support_bits` as above",
            lambda reading: None if reading.protected is None else protected_record(reading),
            required=False,
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
            lambda _: None,  # the run knows it, not the reading
            required=False,
            sparse=True,
        ),
        Key(
            "enrolled_withheld",
            TEXT,
            "only where `enrolled` cannot be told: why. The law says how well it could in "
            "calibration, on speakers left out: under an area of 0.8 below the ROC curve no number "
            "is given",
            required=False,
            sparse=True,
        ),
        Key(
            "withheld",
            TEXT,
            "only where figures are withheld: why",
            required=False,
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
            required=False,
            sparse=True,
        ),
        Key(
            "differs",
            DIFFERS,
            "only where it is so: which of these are unlike the templates', or bad in themselves: "
            "low bits are no safety then",
            lambda reading: list(reading.differs) or None,
            required=False,
            sparse=True,
        ),
        Key(
            "lag",
            SECONDS,
            "only live: wall seconds from when this second was heard to this reading",
            lambda _: None,  # the run knows it, not the reading
            required=False,
            sparse=True,
        ),
    ),
)
