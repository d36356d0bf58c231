"""What the monitor says at one moment (docs/method.md section 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

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
        usable_seconds: what the feature could use of the audio (voiced seconds for f0).
        rank: the watched speaker's rank, 1 the most similar; the mean of tied ranks. None where
            nobody is watched, nothing was heard, or it is withheld.
        expected: what a voice of this length discloses on average.
        rank_bits: ``log2(N gamma_rank)``, or None.
        local: ``log2(N p)`` of the watched speaker, or None.
        confidence: the attacker's confidence, assuming that the speaker is enrolled.
    """

    usable_seconds: float
    rank: float | None
    expected: Bits
    rank_bits: Bits | None
    local: Bits | None
    confidence: Bits


@dataclass(frozen=True, slots=True)
class Reading:
    """Everything known at one moment of a stream.

    Attributes:
        seconds: audio seconds heard.
        speech: of these, seconds of speech: T.
        bits: the headline. Local bits of the joint posterior where somebody is watched, gain bits
            (the attacker's confidence) where nobody is. None where withheld.
        bits_low, bits_high: its limits.
        confidence, local, expected: the joint figures with limits.
        sum_bits: sum over features, as if they were independent.
        peak_bits: the largest headline so far; None where it is withheld.
        ceiling: log2 N.
        plateau: the largest expected bits over T at these templates.
        guides: basic (``linear``) and advanced (``sqrt``) composition scaling, capped at the
            ceiling.
        session: ``"same"`` or ``"cross"``, the kind of law used.
        assumes_enrolled: True where the headline assumes that the speaker is one of the N.
        beyond_grid: True where T is longer than anything calibrated and the last law holds.
        features: by name.
        names: the N candidates.
        posterior: the joint score posterior, shape (N,).
        top: the most probable speakers, five unless asked otherwise, best first; of equals, the
            first enrolled.
        evidence: of the watched speaker, in any crowd: log2 of how many times as likely this voice
            is if it is theirs as if it is somebody else's, at most ``support_bits``. None where
            nobody is watched, or nothing was learnt to tell it by.
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
        stream: which voice this is of, from 1; another one begins where the monitor is told to
            split the stream when the speaker changes.
        recording: which recording of the stream it ends in.
        protected: what the same voice discloses through a protector; None where there is none.
    """

    seconds: float
    speech: float
    bits: float | None
    bits_low: float | None
    bits_high: float | None
    confidence: Bits
    local: Bits | None
    expected: Bits
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
    evidence: Bits | None = None
    support_bits: float | None = None
    at_least: bool | None = None
    among: Sequence[Among] | None = None
    ratios: FloatArray | None = None
    bystanders: Sequence[Bystander] | None = None
    enrolled: float | None = None
    enrolled_withheld: str = ""
    withheld: str = ""
    stream: int = 1
    change: Open | None = None
    recording: int = 0
    protected: ProtectedReading | None = None

    def record(self) -> dict[str, Any]:
        """The reading as a JSON-able record, key by key as `monitor.records.reading` declares."""
        return READING.of(self)
