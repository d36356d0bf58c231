"""What goes into the attacker at each moment, and what comes out: totals, and an assessment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from monitor.stream.among import CrowdEvidence
from monitor.stream.reading import Bits, FeatureReading
from monitor.types import AnyArray, FloatArray, IntArray

__all__ = ["Assessment", "RunningTotals"]


@dataclass(frozen=True, slots=True)
class RunningTotals:
    """What was heard of one feature by each of R moments of a stream.

    Attributes:
        totals: shape (R, M), of its sketch.
        frames: shape (R,), behind them.
        usable_seconds: shape (R,).
    """

    totals: AnyArray
    frames: IntArray
    usable_seconds: FloatArray


@dataclass(frozen=True, slots=True)
class Assessment:
    """What the attacker makes of a stream so far.

    Attributes:
        features: by name.
        local, gain, expected: of the joint posterior.
        posterior: shape (N,).
        top: the most probable speakers, best first; of equals, the first enrolled.
        told: what the evidence says in any crowd.
        enrolled: probability that the speaker is one of the N at all; None as long as no feature
            has a frame, and where those that have cannot tell.
        enrolled_withheld: why they cannot, or empty.
        beyond_grid: T is longer than anything calibrated.
    """

    features: Mapping[str, FeatureReading]
    local: Bits | None
    gain: Bits
    expected: Bits
    posterior: FloatArray
    top: Sequence[tuple[str, float]]
    told: CrowdEvidence
    enrolled: float | None
    enrolled_withheld: str
    beyond_grid: bool
