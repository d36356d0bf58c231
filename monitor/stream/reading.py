"""What the monitor says at one moment (docs/method.md section 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from monitor.maths.condition import Condition
from monitor.records.reading import READING
from monitor.stream.bystanders import Bystander
from monitor.stream.change import Open
from monitor.types import FloatArray

if TYPE_CHECKING:
    from monitor.stream.among import Among
    from monitor.stream.protected_reading import ProtectedReading

__all__ = ["ZERO", "Bits", "FeatureReading", "Reading"]


class Bits(NamedTuple):
    """A figure in bits with its limits: 2.5 and 97.5 percentiles of calibration uncertainty."""

    value: float
    low: float
    high: float


ZERO = Bits(0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class FeatureReading:
    """One feature at one moment.

    Attributes:
        usable: seconds of the audio that the feature could use (voiced seconds for f0).
        rank: the watched speaker's rank, 1 the most similar; the mean of tied ranks. None where
            nobody is watched, nothing was heard, or it is withheld.
        expected_bits: what a voice of this length discloses on average.
        rank_bits: ``log2(N gamma_rank)``, or None.
        local_bits: ``log2(N p)`` of the watched speaker, or None.
        gain_bits: the attacker's confidence, assuming that the speaker is enrolled.

    Each figure in bits has its limits beside it: ``local_bits_low``, ``local_bits_high``.
    """

    usable: float
    rank: float | None
    expected_bits: float
    expected_bits_low: float
    expected_bits_high: float
    rank_bits: float | None
    rank_bits_low: float | None
    rank_bits_high: float | None
    local_bits: float | None
    local_bits_low: float | None
    local_bits_high: float | None
    gain_bits: float
    gain_bits_low: float
    gain_bits_high: float

    @classmethod
    def of(
        cls,
        usable: float,
        rank: float | None,
        expected: Bits,
        rank_bits: Bits | None,
        local: Bits | None,
        gain: Bits,
    ) -> FeatureReading:
        """Of figures that carry their limits."""
        none: Sequence[Any] = (None, None, None)
        figures = (*expected, *(rank_bits or none), *(local or none), *gain)
        return cls(usable, rank, *figures)


@dataclass(frozen=True, slots=True)
class Reading:
    """Everything known at one moment of a stream; attributes are named as keys of its record.

    Each figure in bits has its limits beside it, as ``bits_low`` and ``bits_high``.

    Attributes:
        seconds: audio seconds heard.
        speech: of these, seconds of speech: T.
        bits: the headline, which every view and every alert shows first. The evidence where
            somebody is watched and there is any, else the closed-set figure. None where withheld.
        headline: which of the two it is, ``"evidence"`` or ``"closed-set"``.
        evidence_bits: of the watched speaker, in any crowd: log2 of how many times as likely this
            voice is if it is theirs as if it is somebody else's, at most ``support_bits``. None
            where nobody is watched, or nothing was learnt to tell it by.
        closed_set_bits: among the N enrolled, at most the ceiling: local bits of the joint
            posterior where somebody is watched, ``gain_bits`` where nobody is.
        gain_bits: the attacker's confidence in somebody, right or wrong.
        expected_bits: what a voice of this length discloses on average.
        sum_bits: the closed-set figure as a sum over features, as if they were independent.
        peak_bits: the largest headline so far; None where it is withheld.
        ceiling: log2 N.
        plateau: the largest expected bits over T at these templates.
        guides: basic (``linear``) and advanced (``sqrt``) composition scaling, capped at the
            ceiling.
        session: ``"same"`` or ``"cross"``, the kind of law used.
        assumes_enrolled: True where nobody is watched: the headline assumes that the speaker is one
            of the N.
        beyond_grid: True where T is longer than anything calibrated and the last law holds.
        features: by name.
        names: the N candidates.
        posterior: the joint score posterior, shape (N,).
        top: the most probable speakers, five unless asked otherwise, best first; of equals, the
            first enrolled.
        support_bits: what calibration can support at this length, or None.
        at_least: True where the evidence was cut to that; None where there is none.
        among: what it means among so many people; None where nothing was learnt to tell it by.
        ratios: bits of everybody's likelihood ratio, lowered alike to what can be supported, shape
            (N,), or None.
        bystanders: others than the watched speaker whose probability lies above the level that was
            stated, the most probable first; None where none was, or nothing was learnt.
        enrolled: probability that the speaker is one of the N at all, at the odds before that the
            monitor was given; None as long as there is nothing to go by, or where it cannot be
            told. The closed-set figures assume it.
        enrolled_withheld: why it cannot be told, or empty.
        withheld: why figures are missing, or empty.
        change: where another voice or channel began that the evidence since then may be of; None
            where no change is open.
        spread_low, spread_high: between these read 9 of 10 voices that are watched by their own
            name and as long as this one, bits of evidence: what the limits do not say. None where
            the headline is no evidence, or the law does not know: nothing as short was calibrated.
        spread_others: below this read 19 of 20 voices of other people.
        excluded_seconds: of ``speech``, what the figures leave out, since it is another voice's or
            says less of the watched speaker; None as long as one voice was heard, and where nobody
            is watched. The figures are judged at the rest.
        stream: which voice this is of, from 1; another one begins where the monitor is told to
            split the stream when the speaker changes.
        recording: which recording of the stream it ends in.
        conditions: what the sound is like so far; None where there is no audio, or none yet.
        differs: in which of its figures it is unlike the templates', or bad in itself: then low
            bits are no safety, as another attacker may know more.
        protected: what the same voice discloses through a protector; None where there is none.
    """

    seconds: float
    speech: float
    bits: float | None
    bits_low: float | None
    bits_high: float | None
    headline: str
    closed_set_bits: float | None
    closed_set_bits_low: float | None
    closed_set_bits_high: float | None
    gain_bits: float
    gain_bits_low: float
    gain_bits_high: float
    expected_bits: float
    expected_bits_low: float
    expected_bits_high: float
    sum_bits: float | None
    peak_bits: float | None
    ceiling: float
    plateau: float
    guides: tuple[float, float]
    session: str
    assumes_enrolled: bool
    beyond_grid: bool
    features: Mapping[str, FeatureReading]
    names: tuple[str, ...]
    posterior: FloatArray
    top: Sequence[tuple[str, float]]
    evidence_bits: float | None = None
    evidence_bits_low: float | None = None
    evidence_bits_high: float | None = None
    support_bits: float | None = None
    at_least: bool | None = None
    among: Sequence[Among] | None = None
    ratios: FloatArray | None = None
    bystanders: Sequence[Bystander] | None = None
    enrolled: float | None = None
    enrolled_withheld: str = ""
    withheld: str = ""
    spread_low: float | None = None
    spread_high: float | None = None
    spread_others: float | None = None
    excluded_seconds: float | None = None
    stream: int = 1
    change: Open | None = None
    recording: int = 0
    protected: ProtectedReading | None = None
    conditions: Condition | None = None
    differs: Sequence[str] = ()

    def record(self) -> dict[str, Any]:
        """The reading as a JSON-able record, key by key as `monitor.records.reading` declares."""
        return READING.of(self)
