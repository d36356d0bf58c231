"""A reading and its parts: each key is declared by the field that holds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, ClassVar, Literal, NamedTuple

from monitor.events.declaration import Event, declared, key, text_key
from monitor.events.keys import CONDITIONS, DIFFERS, HEADLINE, HEADLINES, SESSION, TEXT, VALUE
from monitor.maths.condition import Condition
from monitor.types import FloatArray

_LARGEST = 1e15
NOBODY = 0.2
"""Below this probability of being enrolled the views say so: four to one against."""


class Bits(NamedTuple):
    """A figure in bits with its limits: 2.5 and 97.5 percentiles of calibration uncertainty."""

    value: float
    low: float
    high: float


class Guides(NamedTuple):
    """Bits by basic (``linear``) and advanced (``sqrt``) composition scaling, capped."""

    linear: float
    sqrt: float


def with_limits(name: str, figure: Bits | None) -> dict[str, Any]:
    """Return the three fields of a figure; all None where there is none."""
    value, low, high = figure or (None,) * 3
    return {name: value, name + "_low": low, name + "_high": high}


def _whole(rank: float | None) -> float | int | None:
    """Return a rank as a whole number, which it is wherever nobody ties."""
    return int(rank) if rank is not None and rank == int(rank) else rank


def conditions_key(meaning: str, **options: Any) -> Any:
    """Declare the key of a sound's conditions."""
    return key(
        "", meaning, schema=CONDITIONS, decode=Condition.parse,
        encode=lambda condition: None if condition is None else condition.record(), **options,
    )  # fmt: skip


def differs_key(meaning: str = "", **options: Any) -> Any:
    """Declare the key of figures of a sound that differ."""
    return key("", meaning, schema=DIFFERS, **options)


@declared()
class FeatureReading:
    """One feature at one moment; each figure in bits has its limits beside it.

    Attributes:
        usable: seconds of the audio that the feature could use (voiced seconds for f0).
        rank: the watched speaker's, 1 the most similar, the mean of tied ranks; or None.
        expected_bits: what a voice of this length discloses on average.
        rank_bits: ``log2(N gamma_rank)``, or None.
        local_bits: ``log2(N p)`` of the watched speaker, or None.
        gain_bits: the attacker's confidence, assuming that the speaker is enrolled.
    """

    usable: float = key("seconds")
    rank: float | None = key("number", minimum=1, encode=_whole)
    expected_bits: float = key("bits")
    expected_bits_low: float = key("bits", required=False)
    expected_bits_high: float = key("bits", required=False)
    rank_bits: float | None = key("bits")
    rank_bits_low: float | None = key("bits", required=False)
    rank_bits_high: float | None = key("bits", required=False)
    local_bits: float | None = key("bits")
    local_bits_low: float | None = key("bits", required=False)
    local_bits_high: float | None = key("bits", required=False)
    gain_bits: float = key("bits")
    gain_bits_low: float = key("bits", required=False)
    gain_bits_high: float = key("bits", required=False)

    @classmethod
    def of(cls, usable: float, rank: float | None, **figures: Bits | None) -> FeatureReading:
        """Create one from figures with limits."""
        flat = [with_limits(name, figure) for name, figure in figures.items()]
        return cls(usable, rank, **{name: bits for part in flat for name, bits in part.items()})


@declared()
class Among:
    """A voice among M people, N of them enrolled, of whom each was as likely before.

    Attributes:
        bits: ``log2(M p)``, p being the watched speaker's probability among them; where nobody is
            watched, the relative entropy of everybody's probabilities to even ones.
        bits_low, bits_high: limits, from those of the watched speaker's evidence, or None.
        one_in, fitting: ``2^bits``, and how many of the M would fit as well.
        probability: p, or None.
        favourite: where nobody is watched, the most probable of the enrolled, with the probability.
        favourite_one_in: the same as 1 in so many: a small probability outlives six decimals so.
    """

    people: int = key("people", type="number")
    bits: float = key("bits")
    bits_low: float | None = key("bits", required=False, default=None)
    bits_high: float | None = key("bits", required=False, default=None)
    one_in: float = key("magnitude", required=False, default=None, kw_only=True, type=VALUE["type"])
    fitting: float = key(
        "magnitude", required=False, default=None, kw_only=True, type=VALUE["type"]
    )
    probability: float | None = key("probability", required=False, default=None)
    favourite: tuple[str, float] | None = key("probability", required=False, default=None)
    favourite_one_in: float | None = key("magnitude", required=False, default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.one_in is not None or self.bits is None or self.people is None:  # read back
            return
        one_in = 2.0 ** min(max(self.bits, -1000.0), 1000.0)
        favourite = None
        if self.favourite is not None:
            favourite = min(1.0 / max(self.favourite[1], 1.0 / _LARGEST), _LARGEST)
        object.__setattr__(self, "one_in", min(one_in, _LARGEST))
        object.__setattr__(self, "fitting", min(self.people / one_in, _LARGEST))
        object.__setattr__(self, "favourite_one_in", favourite)


@declared()
class Bystander:
    """An enrolled person who is not watched, with the probability that the voice is theirs."""

    name: str = key()
    probability: float = key("probability")
    people: int = key("count")


@declared()
class OpenChange:
    """A change that began nothing afresh: the evidence may be of two people now."""

    since_seconds: float = key("seconds")
    features: tuple[str, ...] = key()


@declared()
class AttackerReading:
    """A protected voice's disclosure to one attacker, named as in a `Reading`."""

    bits: float | None = key("bits")
    bits_low: float | None = key("bits", required=False)
    bits_high: float | None = key("bits", required=False)
    evidence_bits: float | None = key("bits")
    evidence_bits_low: float | None = key("bits", required=False)
    evidence_bits_high: float | None = key("bits", required=False)
    closed_set_bits: float | None = key("bits")
    closed_set_bits_low: float | None = key("bits", required=False)
    closed_set_bits_high: float | None = key("bits", required=False)
    gain_bits: float = key("bits")
    gain_bits_low: float = key("bits", required=False)
    gain_bits_high: float = key("bits", required=False)
    at_least: bool | None = key(required=False, default=None)
    support_bits: float | None = key("bits", required=False, default=None)

    @classmethod
    def of(cls, reading: Reading, headline: str) -> AttackerReading:
        """Return the figures of this attacker's reading, its headline that of the clear side."""
        figures = {attribute.name: getattr(reading, attribute.name) for attribute in fields(cls)}
        figures |= {"bits" + end: getattr(reading, HEADLINES[headline] + end) for end in _ENDS}
        return cls(**figures)


_ENDS = ("", "_low", "_high")


@declared()
class ProtectedReading:
    """Disclosure of the same seconds through an anonymiser, to each attacker tried.

    Its figure is that of the strongest, in the unit of the clear headline; who that is may change
    from reading to reading. An anonymiser is worth no more than that.

    Attributes:
        speech: seconds of speech that voice activity hears in the protected audio.
        bits, bits_low, bits_high: the highest figure of the attackers.
        by: that attacker; None where one of those who were tried has no figure.
        at_least: true if it is evidence, and somebody's was cut to what calibration supports.
        attackers: figures by what the attacker knows of the anonymiser.
    """

    speech: float = key("seconds", required=False)
    bits: float | None = key("bits")
    bits_low: float | None = key("bits", required=False)
    bits_high: float | None = key("bits", required=False)
    by: str | None = key()
    at_least: bool = key(required=False)
    attackers: Mapping[str, AttackerReading] = key()

    @classmethod
    def of(cls, readings: Mapping[str, Reading], headline: str) -> ProtectedReading:
        """Compare the attackers' readings.

        Args:
            readings: by what the attacker knows of the anonymiser.
            headline: what the clear side's headline is, ``"evidence"`` or ``"closed-set"``.
        """
        attackers = {name: AttackerReading.of(r, headline) for name, r in readings.items()}
        by = _strongest(attackers)
        strongest = None if by is None else attackers[by]
        return cls(
            next(iter(readings.values())).speech,
            None if strongest is None else strongest.bits,
            None if strongest is None else strongest.bits_low,
            None if strongest is None else strongest.bits_high,
            by,
            headline == "evidence" and any(r.at_least for r in readings.values()),
            attackers,
        )


def _strongest(attackers: Mapping[str, AttackerReading]) -> str | None:
    """Return the attacker who reads the most; None where one has no figure: it might be more."""
    bits = {name: attacker.bits for name, attacker in attackers.items()}
    if not bits or None in bits.values():
        return None
    return max(bits, key=lambda name: float(bits[name] or 0.0))


@declared()
class DeclaredReading:
    """Promise of a mechanism for the stream so far (``--protect usc:15``)."""

    windows: int = key("count")
    basic_nats: float = key("number")
    advanced_nats: float | None = key("number", required=False)
    optimal_nats: float = key("number")
    most_bits: float = key("number")
    empty: bool = key()

    @classmethod
    def of(cls, promise: Any) -> DeclaredReading:
        """Return that of a `monitor.anonymisers.laplace.Promise`."""
        spent = promise.spent
        better = spent.advanced_nats < spent.basic_nats
        return cls(
            spent.trials,
            spent.basic_nats,
            spent.advanced_nats if better else None,
            spent.optimal_nats,
            promise.most_bits,
            promise.empty,
        )


@declared(kw_only=True)
class Reading(Event):
    """All figures at one moment of a stream.

    Attributes are named as the keys of its record, where docs/records.md says what each one means;
    each figure in bits has its limits beside it, as ``bits_low`` and ``bits_high``. These are no
    keys, or hold more:

    Attributes:
        evidence_guides: from the mean evidence at the first calibrated length, capped at what
            calibration supports; None where the headline is no evidence.
        names: the N candidates.
        posterior: the joint score posterior, shape (N,).
        ratios: bits of everybody's likelihood ratio, lowered alike to what can be supported, shape
            (N,), or None.
        recording: which recording of the stream it ends in.
    """

    type: ClassVar[Literal["reading"]] = "reading"
    seconds: float = key("seconds", "audio seconds heard")
    speech: float = key("seconds", "T: speech seconds among them (voice activity)")
    stream: int = key(
        "count",
        'which voice, from 1: another begins only where `on_change` is `"split"`',
        minimum=1,
        default=1,
    )
    bits: float | None = key(
        "bits",
        "the headline, which is shown first everywhere and on which an alert stands: "
        "`evidence_bits` where somebody is watched and there is evidence, else "
        "`closed_set_bits`",
    )
    bits_low: float | None = key("bits")
    bits_high: float | None = key("bits")
    headline: str = text_key(
        'which of the two `bits` is: `"evidence"` or `"closed-set"`', schema=HEADLINE
    )
    closed_set_bits: float | None = key(
        "bits",
        "among the N enrolled, from the joint posterior of all features, at most the ceiling: "
        "log2(N p), p the attacker's probability of the watched speaker; `gain_bits` where "
        "nobody is watched",
    )
    closed_set_bits_low: float | None = key("bits")
    closed_set_bits_high: float | None = key("bits")
    sum_bits: float | None = key(
        "bits",
        "the closed-set figure as a sum over the features, as if they were independent; may "
        "exceed the ceiling; no limits",
    )
    gain_bits: float = key(
        "bits", "the attacker's confidence, log2 N - H(p), assuming that the speaker is enrolled"
    )
    gain_bits_low: float = key("bits")
    gain_bits_high: float = key("bits")
    peak_bits: float | None = key(
        "bits", "the largest headline so far; no limits: nothing should stand on it"
    )
    expected_bits: float = key(
        "bits",
        "MeanD(T, D) of the rank model at N: what a voice of this length discloses on average",
    )
    expected_bits_low: float = key("bits")
    expected_bits_high: float = key("bits")
    ceiling: float = key("ceiling", "log2 N")
    plateau: float = key("bits", "the largest expected bits")
    guides: Guides = key(
        "bits",
        "`linear` and `sqrt`: basic and advanced composition scaling from the rank model's "
        "first length",
    )
    session: str = text_key('`"cross"` or `"same"`', schema=SESSION)
    assumes_enrolled: bool = text_key("as in `start`")
    evidence_bits: float | None = key(
        "bits",
        "log2 of a likelihood ratio: how many times as likely this voice would be if it were "
        "the watched speaker's as if it were somebody else's. It does not depend on N and may "
        "exceed the ceiling. Null without `--watch`: to be the best match of N is no evidence",
        required=False,
        default=None,
    )
    evidence_bits_low: float | None = key("bits", required=False, default=None)
    evidence_bits_high: float | None = key("bits", required=False, default=None)
    evidence_guides: Guides | None = key(
        "bits",
        "`linear` and `sqrt`: how mean evidence would grow from the first calibrated length on "
        "if every second disclosed as much as the first, or as advanced composition does, up "
        "to `support_bits`; null without evidence",
        required=False,
        default=None,
    )
    support_bits: float | None = key(
        "bits",
        "the most bits of evidence that calibration can support at this length",
        required=False,
        default=None,
    )
    at_least: bool | None = text_key(
        "true where the evidence was more than `support_bits` and has been cut to it",
        required=False,
        default=None,
    )
    spread_low: float | None = key(
        "bits",
        "with `spread_high`: between these bits of evidence 9 of 10 voices read that were as "
        "long and watched by their own name, of calibration's speakers left out of the fit. "
        "The limits of `bits` say something else: how much it depends on the people it was "
        "learnt from. Left out where the headline is no evidence, or the rank model does not "
        "know: nothing as short was calibrated",
        sparse=True,
        default=None,
    )
    spread_high: float | None = key("bits", "see `spread_low`", sparse=True, default=None)
    spread_others: float | None = key(
        "bits",
        "below this 19 of 20 voices of other people read, as long",
        sparse=True,
        default=None,
    )
    among: Sequence[Among] | None = text_key(
        "one object for each crowd of `start`, all of whom are taken as equally likely before: "
        "its size `people` (M, the N enrolled included), `bits` = log2(M p) with p the "
        "`probability` of the watched speaker, `one_in` = 2^bits, and `fitting` = M / 2^bits, "
        "how many people would fit as well, the watched one included. Limits: at those of the "
        "evidence. Without `--watch` `bits` is the relative entropy of everybody's probability "
        "to an even one, `probability` is null, and `favourite` names the most probable of the "
        "N with the probability among M, which `favourite_one_in` has as 1 in so many",
        required=False,
        default=None,
    )
    enrolled: float | None = key(
        "probability",
        "probability that the speaker is one of the N at all, at the odds before that `start` "
        "tells (`enrolled_prior`); null as long as there is nothing to go by, and where these "
        "features cannot tell impostors. The figures among the N assume it",
        default=None,
    )
    beyond_grid: bool = text_key(
        "true where T is longer than anything calibrated and the last rank model holds"
    )
    features: Mapping[str, FeatureReading] = text_key(
        "by name: `usable` seconds of speech in which the feature finds what it measures (of "
        "`f0` voiced ones with a pitch: 7 to 56 % of the audio, so that 8.8 s of 147 s are no "
        "fault; of `style` words), `rank` of the watched speaker (1 the most similar; the mean "
        "of tied ranks), `expected_bits`, `rank_bits`, `local_bits`, `gain_bits`"
    )
    top: Sequence[tuple[str, float]] = key(
        "bits",
        "the most probable speakers with their probability: five, more with `--top` or `--web`",
    )
    bystanders: Sequence[Bystander] | None = text_key(
        "only with `--bystanders`: everybody enrolled but the watched speaker whose "
        "`probability` among `people` (the largest crowd of `--among`, N of them enrolled) "
        "lies above the level: `name`, `probability`, `people`, the most probable first",
        sparse=True,
        default=None,
    )
    excluded_seconds: float | None = key(
        "seconds",
        "only once another voice was noticed while somebody is watched: of `speech`, what the "
        "figures leave out: other voices' stretches, or what says less of the watched speaker. "
        "They are judged at the rest",
        sparse=True,
        default=None,
    )
    change: OpenChange | None = text_key(
        "only while a noted change is open (see below): `since_seconds` and `features` of it. "
        "Where nobody is watched the figures are then of all that was heard",
        sparse=True,
        default=None,
    )
    protected: ProtectedReading | None = text_key(
        "only with `--protect`: what the same seconds disclose through the anonymiser: `bits` "
        "with limits, the headline of the strongest attacker who was tried (`by`), `at_least` "
        "where any evidence was cut, and `speech`, the seconds of it in the protected audio. "
        "Under `attackers`, by what each knows of the anonymiser, `bits`, `evidence_bits`, "
        "`closed_set_bits` and `gain_bits` with limits, `at_least` and `support_bits` as above",
        sparse=True,
        default=None,
    )
    enrolled_withheld: tuple[str, ...] = text_key(
        "only where `enrolled` cannot be told: why. The rank model says how well it could in "
        "calibration, on speakers left out: under an area of 0.8 below the ROC curve no number "
        "is given",
        sparse=True,
        default=(),
        schema=TEXT,
        encode="; ".join,
        decode=lambda text: tuple(text.split("; ")) if text else (),
    )
    withheld: str = text_key("only where figures are withheld: why", sparse=True, default="")
    conditions: Condition | None = conditions_key(
        "only of audio: what it sounds like so far ([conditions](conditions.md)): where its "
        "band ends (`bandwidth_hz`), how far speech is above noise (`snr_db`), the time in "
        "which an echo dies (`reverberation_seconds`, RT60), the share of samples that are cut "
        "off (`clipping`), the level of the speech (`level_db`); each null while too little "
        "was heard",
        sparse=True,
        default=None,
    )
    differs: Sequence[str] = differs_key(
        "only where it is so: which of these are unlike the templates', or bad in themselves: "
        "low bits do not mean safe",
        sparse=True,
        default=(),
        encode=lambda names: list(names) or None,
    )
    lag: float | None = key(
        "seconds",
        "only live: wall seconds from when this second was heard to this reading",
        sparse=True,
        default=None,
    )
    declared: DeclaredReading | None = text_key(
        "only where `start` has `declared`: what is promised of all that was heard so far, "
        "whoever attacks: `windows` so far, what their epsilons come to by `basic_nats`, "
        "`advanced_nats` (null where it is no better) and `optimal_nats` composition, "
        "`most_bits`, the evidence that no attacker exceeds (basic / ln 2), and whether that "
        "is `empty`: 33 bits or more, which tell one person from all others alive. The other "
        "figures are measured, with the attackers that were tried",
        sparse=True,
        default=None,
    )
    label: str | None = text_key(
        "only of several people side by side: whose", sparse=True, default=None
    )
    watch: str | None = text_key("only where several are watched: whom", sparse=True, default=None)
    names: tuple[str, ...]
    posterior: FloatArray
    ratios: FloatArray | None = None
    recording: int = 0

    @property
    def is_evidence(self) -> bool:
        """True where the headline is evidence."""
        return self.headline == "evidence"

    @property
    def is_impostor(self) -> bool:
        """True where the open-set figure is four to one against anybody enrolled."""
        return self.enrolled is not None and self.enrolled < NOBODY

    def closed_set(self, end: str = "") -> float | None:
        """Return the bits among the N enrolled; with ``"_low"`` or ``"_high"`` a limit."""
        bits: float | None = getattr(self, f"{'closed_set_' if self.is_evidence else ''}bits{end}")
        return bits
