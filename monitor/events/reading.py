"""`Reading` and its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, ClassVar, Literal, NamedTuple

from monitor.events.declaration import Event, declared, key, text_key
from monitor.events.keys import CONDITIONS, DIFFERS, HEADLINE, HEADLINES, SESSION, TEXT, VALUE
from monitor.maths.condition import Condition
from monitor.types import FloatArray

_LARGEST = 1e15
NOBODY = 0.2  # views warn below this probability of being enrolled (odds of four to one against)


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
    """Return the three fields of a figure, value and limits; all None if the figure is None."""
    value, low, high = figure or (None,) * 3
    return {name: value, name + "_low": low, name + "_high": high}


def _whole(rank: float | None) -> float | int | None:
    """Convert a rank to an integer, unless ties make it fractional."""
    return int(rank) if rank is not None and rank == int(rank) else rank


def conditions_key(meaning: str, **options: Any) -> Any:
    """Declare a key for sound conditions."""
    return key(
        CONDITIONS, meaning, decode=Condition.parse,
        encode=lambda condition: None if condition is None else condition.record(), **options,
    )  # fmt: skip


def differs_key(meaning: str = "", **options: Any) -> Any:
    """Declare a key for the names of differing conditions."""
    return key(DIFFERS, meaning, **options)


@declared()
class FeatureReading:
    """Figures of one feature at one moment. Each figure in bits has limits ``_low`` and ``_high``.

    Attributes:
        usable: seconds of speech that the feature could use (voiced seconds for f0).
        rank: rank of the watched speaker, 1 being the most similar; None without a watched speaker.
            Ties get the mean of their ranks.
        expected_bits: average disclosure of voices at this length.
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
    def from_figures(
        cls, usable: float, rank: float | None, **figures: Bits | None
    ) -> FeatureReading:
        """Create one from figures with limits."""
        flat = [with_limits(name, figure) for name, figure in figures.items()]
        return cls(usable, rank, **{name: bits for record in flat for name, bits in record.items()})


@declared()
class CrowdReading:
    """Figures of a voice among M people, all equally probable a priori. N of them are enrolled."""

    people: int = key("people", type="number")
    # ``log2(M p)``, with p the watched speaker's probability among them. Without a watched speaker,
    # the relative entropy of all probabilities to even ones.
    bits: float = key("bits")
    # bits_low, bits_high: limits, from the limits of the watched speaker's evidence, or None
    bits_low: float | None = key("bits", required=False, default=None)
    bits_high: float | None = key("bits", required=False, default=None)
    # one_in, fitting: ``2^bits``, and the number of the M people who match
    one_in: float = key("magnitude", required=False, default=None, kw_only=True, type=VALUE["type"])
    fitting: float = key(
        "magnitude", required=False, default=None, kw_only=True, type=VALUE["type"]
    )
    probability: float | None = key("probability", required=False, default=None)  # p, or None
    # without a watched speaker, the most probable enrolled person, with the probability
    favourite: tuple[str, float] | None = key("probability", required=False, default=None)
    # the reciprocal of that probability, which keeps its digits if the probability is small
    favourite_one_in: float | None = key("magnitude", required=False, default=None, kw_only=True)

    def __post_init__(self) -> None:
        # parsed from a record
        if self.one_in is not None or self.bits is None or self.people is None:
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
    """A change that did not restart the evidence. The evidence may now combine two people."""

    since_seconds: float = key("seconds")
    features: tuple[str, ...] = key()


@declared()
class AttackerReading:
    """A protected voice's disclosure to one attacker, with field names as in `Reading`."""

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
    def from_reading(cls, reading: Reading, headline: str) -> AttackerReading:
        """Return an attacker's figures; ``bits`` has the clear side's kind of headline."""
        figures = {attribute.name: getattr(reading, attribute.name) for attribute in fields(cls)}
        figures |= {"bits" + end: getattr(reading, HEADLINES[headline] + end) for end in _ENDS}
        return cls(**figures)


_ENDS = ("", "_low", "_high")


@declared()
class ProtectedReading:
    """Disclosure of the same seconds through an anonymiser, to each attacker tried.

    Its ``bits`` are those of the strongest attacker tried, since an anonymiser protects no better
    than that. They are the same kind of figure as the clear headline. The strongest attacker may
    change from reading to reading.
    """

    # seconds of speech that voice activity detects in the protected audio
    speech: float = key("seconds", required=False)
    # bits, bits_low, bits_high: the highest figure of the attackers
    bits: float | None = key("bits")
    bits_low: float | None = key("bits", required=False)
    bits_high: float | None = key("bits", required=False)
    by: str | None = key()  # strongest attacker; None if any has no figure
    # true if the headline is evidence and an attacker's figure was capped by calibration
    at_least: bool = key(required=False)
    # figures by the attacker's knowledge of the anonymiser
    attackers: Mapping[str, AttackerReading] = key()

    @classmethod
    def from_readings(cls, readings: Mapping[str, Reading], headline: str) -> ProtectedReading:
        """Select the strongest of the readings of several attackers, by name."""
        attackers = {
            name: AttackerReading.from_reading(r, headline) for name, r in readings.items()
        }
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
    bits = {name: attacker.bits for name, attacker in attackers.items()}
    if not bits or None in bits.values():
        return None
    return max(bits, key=lambda name: float(bits[name] or 0.0))


@declared()
class DeclaredReading:
    """Guarantee of a mechanism for the stream so far (``--protect usc:15``)."""

    windows: int = key("count")
    basic_nats: float = key("number")
    advanced_nats: float | None = key("number", required=False)
    optimal_nats: float = key("number")
    most_bits: float = key("number")
    empty: bool = key()

    @classmethod
    def from_guarantee(cls, promise: Any) -> DeclaredReading:
        """Convert a `monitor.anonymisers.laplace.PrivacyGuarantee`."""
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

    Attributes are the keys of the ``reading`` record (docs/records.md). Most figures in bits have
    limits, such as ``bits_low`` and ``bits_high``. These attributes are not in records, or have
    further details here:

    Attributes:
        evidence_guides: growth of the mean evidence from the first calibrated length, capped at the
            calibration's support; None without evidence.
        names: names of the N candidates.
        posterior: probability of each candidate from all features together, shape (N,).
        ratios: log2 likelihood ratio of each candidate, shape (N,); None without evidence. All are
            lowered by one amount if the calibration does not support the largest.
        recording: index of the recording in which the reading ends.
    """

    type: ClassVar[Literal["reading"]] = "reading"
    seconds: float = key("seconds", "audio seconds processed")
    speech: float = key("seconds", "T, speech seconds in that audio (voice activity)")
    stream: int = key(
        "count",
        'number of the voice, from 1; a new one begins only with `on_change` `"split"`',
        minimum=1,
        default=1,
    )
    bits: float | None = key(
        "bits",
        "the headline, which alerts use. It is `evidence_bits` if a speaker is watched and there "
        "is evidence, and `closed_set_bits` otherwise",
    )
    bits_low: float | None = key("bits")
    bits_high: float | None = key("bits")
    headline: str = text_key(
        'which of the two `bits` is: `"evidence"` or `"closed-set"`', schema=HEADLINE
    )
    closed_set_bits: float | None = key(
        "bits",
        "log2(N p) among the N enrolled, with p the attacker's probability of the watched speaker; "
        "`gain_bits` without a watched speaker",
    )
    closed_set_bits_low: float | None = key("bits")
    closed_set_bits_high: float | None = key("bits")
    sum_bits: float | None = key(
        "bits",
        "the closed-set figure as a sum over the features, as if they were independent; without "
        "interval",
    )
    gain_bits: float = key(
        "bits", "the attacker's confidence, log2 N - H(p), assuming that the speaker is enrolled"
    )
    gain_bits_low: float = key("bits")
    gain_bits_high: float = key("bits")
    peak_bits: float | None = key("bits", "the largest headline so far; without interval")
    expected_bits: float = key(
        "bits", "MeanD(T, D) of the rank model at N, the average disclosure at this length"
    )
    expected_bits_low: float = key("bits")
    expected_bits_high: float = key("bits")
    ceiling: float = key("ceiling", "log2 N")
    plateau: float = key("bits", "the largest expected bits")
    guides: Guides = key(
        "bits",
        "`linear` and `sqrt`: how basic and advanced composition scale from the first length",
    )
    session: str = text_key('`"cross"` or `"same"`', schema=SESSION)
    assumes_enrolled: bool = text_key("as in `start`")
    evidence_bits: float | None = key(
        "bits",
        "log2 of P(voice given the watched speaker) ÷ P(voice given another speaker). It does not "
        "depend on N. Null without `--watch`",
        required=False,
        default=None,
    )
    evidence_bits_low: float | None = key("bits", required=False, default=None)
    evidence_bits_high: float | None = key("bits", required=False, default=None)
    evidence_guides: Guides | None = key(
        "bits",
        "mean evidence at the first calibrated length, scaled as basic (`linear`) and advanced "
        "(`sqrt`) composition, capped at `support_bits`; null without evidence",
        required=False,
        default=None,
    )
    support_bits: float | None = key(
        "bits",
        "the most evidence that calibration supports at this length",
        required=False,
        default=None,
    )
    at_least: bool | None = text_key(
        "true if the evidence was capped at `support_bits`", required=False, default=None
    )
    spread_low: float | None = key(
        "bits",
        "with `spread_high`, the range of 90 % of voices at this length, each watched by its own "
        "name; absent below the shortest calibrated length",
        sparse=True,
        default=None,
    )
    spread_high: float | None = key("bits", "see `spread_low`", sparse=True, default=None)
    spread_others: float | None = key(
        "bits",
        "19 of 20 other people's voices of this length read below this",
        sparse=True,
        default=None,
    )
    among: Sequence[CrowdReading] | None = text_key(
        "one entry per crowd of `start`. `people` is its size M, and `bits` is log2(M p) with p "
        "the `probability` of the watched speaker. `one_in` is 2^bits, and `fitting` is M / "
        "2^bits, the number of people who match. Without `--watch`, `bits` is the relative "
        "entropy of all probabilities to equal ones, and `favourite` names the most probable of "
        "the N",
        required=False,
        default=None,
    )
    enrolled: float | None = key(
        "probability",
        "probability that the speaker is one of the N at all; null if these features cannot "
        "determine it. The figures among the N assume that the speaker is one of them",
        default=None,
    )
    beyond_grid: bool = text_key("true if T is beyond the longest calibrated length")
    features: Mapping[str, FeatureReading] = text_key(
        "figures per feature, by its name. `usable` is in seconds of speech (for `f0` voiced "
        "speech, 7 to 56 % of the audio). `rank` is that of the watched speaker, 1 being the most "
        "similar. The others are `expected_bits`, `rank_bits`, `local_bits` and `gain_bits`"
    )
    top: Sequence[tuple[str, float]] = key(
        "bits", "the most probable speakers with their probability"
    )
    bystanders: Sequence[Bystander] | None = text_key(
        "only with `bystanders`. Other enrolled people above the level, each with `name` and "
        "`probability` in a crowd of `people`",
        sparse=True,
        default=None,
    )
    excluded_seconds: float | None = key(
        "seconds",
        "only if another voice was noticed or is likely while a speaker is watched. The part of "
        "`speech` excluded from the figures",
        sparse=True,
        default=None,
    )
    stretches_bits: float | None = key(
        "bits",
        "only once another voice is mixed in: the evidence of the watched voice's stretches alone. "
        "`bits` is the larger of this and the whole stream's",
        sparse=True,
        default=None,
    )
    stretches_seconds: float | None = key(
        "seconds", "with `stretches_bits`: speech in these stretches", sparse=True, default=None
    )
    change: OpenChange | None = text_key(
        "only while a noted change is open: its `since_seconds` and `features`",
        sparse=True,
        default=None,
    )
    protected: ProtectedReading | None = text_key(
        "only with `--protect`. Disclosure of the same seconds through the anonymiser, with the "
        "`bits` of the strongest attacker (`by`), `at_least` and `speech` in the protected audio. "
        "`attackers` has the figures of each",
        sparse=True,
        default=None,
    )
    enrolled_withheld: tuple[str, ...] = text_key(
        "reasons, only if `enrolled` cannot be determined",
        sparse=True,
        default=(),
        schema=TEXT,
        encode="; ".join,
        decode=lambda text: tuple(text.split("; ")) if text else (),
    )
    withheld: str = text_key(
        "reason for withheld figures, only if there are any", sparse=True, default=""
    )
    conditions: Condition | None = conditions_key(
        "only for audio. Its [conditions](conditions.md) so far, with `bandwidth_hz`, `snr_db`, "
        "`reverberation_seconds`, `clipping`, `level_db` and `lost`; each null until there is "
        "enough audio",
        sparse=True,
        default=None,
    )
    differs: Sequence[str] = differs_key(
        "conditions that are bad or unlike the templates', only if there are any. Low bits do not "
        "mean safe",
        sparse=True,
        default=(),
        encode=lambda names: list(names) or None,
    )
    lag: float | None = key(
        "seconds",
        "only live. Wall seconds from the capture of this second to this reading",
        sparse=True,
        default=None,
    )
    declared: DeclaredReading | None = text_key(
        "only if `start` has `declared`. The guarantee so far against every attacker, with the "
        "number of `windows` and their `basic_nats`, `advanced_nats` and `optimal_nats`. "
        "`most_bits` is basic / ln 2, and `empty` is true from 33 bits on",
        sparse=True,
        default=None,
    )
    label: str | None = text_key(
        "only for several people. Label of this person", sparse=True, default=None
    )
    watch: str | None = text_key(
        "the watched speaker, only if several are watched", sparse=True, default=None
    )
    names: tuple[str, ...]
    posterior: FloatArray
    ratios: FloatArray | None = None
    recording: int = 0

    @property
    def is_evidence(self) -> bool:
        """True if the headline is evidence."""
        return self.headline == "evidence"

    @property
    def is_impostor(self) -> bool:
        """True if ``enrolled`` is below 0.2: an enrolled speaker is improbable."""
        return self.enrolled is not None and self.enrolled < NOBODY

    def closed_set(self, end: str = "") -> float | None:
        """Return the bits among the N enrolled, or a limit for ``"_low"`` or ``"_high"``."""
        bits: float | None = getattr(self, f"{'closed_set_' if self.is_evidence else ''}bits{end}")
        return bits
