"""How much the evidence of different voices varies at a length: what its limits do not say.

Limits of a figure say how much it depends on the people that it was learnt from; readings of
different voices of the same length, each watched by its own name, lie much further apart. The
spread says how far, of calibration's speakers whom the fit had not seen (docs/method.md section
10).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from monitor.population.neighbours import neighbours
from monitor.types import FloatArray

__all__ = ["EvidenceSpread", "Spread"]

_LOW, _HIGH = "evidence_low_twentieth", "evidence_high_twentieth"
_OTHERS = "others_high_twentieth"
_TENTH, _MOST = "evidence_low_tenth", "support_bits"
"""What tables have that know no twentieths: as many voices lie between these."""


class Spread(NamedTuple):
    """At one length, bits.

    Attributes:
        low, high: between these 9 of 10 voices read that are watched by their own name.
        others: below this 19 of 20 of other people's voices do; None where it is not known.
    """

    low: float
    high: float
    others: float | None


@dataclass(frozen=True, slots=True)
class EvidenceSpread:
    """The spread at one template length, in the logarithm of T; the longest holds beyond it.

    Attributes:
        lengths: T, speech seconds, shape (n,), increasing.
        bits: low, high and others, shape (n, 3); NaN where it is not known.
    """

    lengths: FloatArray
    bits: FloatArray

    @classmethod
    def of(
        cls, rows: Sequence[Mapping[str, Any]], template_seconds: float
    ) -> EvidenceSpread | None:
        """What a law's calibration table says of it, for templates of D speech seconds.

        Args:
            rows: of the law of some features together, a cell each.
            template_seconds: D; the nearest that was calibrated holds.

        Returns:
            None where the table says nothing of it.
        """
        told = [(row["T"], row["D"], found) for row in rows if (found := _found(row)) is not None]
        if not told:
            return None
        columns = np.unique([d for _, d, _ in told])
        left, right, w = neighbours(columns, np.ones(columns.size, np.bool_), template_seconds)
        nearest = columns[right if w > 0.5 else left]
        cells = sorted((t, found) for t, d, found in told if d == nearest)
        return cls(np.array([t for t, _ in cells]), np.array([found for _, found in cells]))

    def at(self, seconds: float) -> Spread | None:
        """The spread at T speech seconds; None below the shortest that was calibrated.

        Voices of a second read nothing like those of three, and after none nobody reads anything.
        """
        if seconds < self.lengths[0]:
            return None
        at = np.log(seconds)
        low, high, others = (
            float(np.interp(at, np.log(self.lengths), column)) for column in self.bits.T
        )
        return Spread(low, high, None if np.isnan(others) else others)


def _found(row: Mapping[str, Any]) -> tuple[float, float, float] | None:
    """Low, high and others of a cell."""
    for low, high in ((row.get(_LOW), row.get(_HIGH)), (row.get(_TENTH), row.get(_MOST))):
        if low is not None and high is not None:
            others = row.get(_OTHERS)
            return float(low), float(high), float("nan") if others is None else float(others)
    return None
