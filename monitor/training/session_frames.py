"""The frames of one feature in one calibration session, and what any window of it adds up to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from monitor.errors import UsageError
from monitor.kinds import FeatureSpec
from monitor.types import AnyArray, IntArray

__all__ = ["SessionFrames"]


@dataclass(frozen=True, slots=True)
class SessionFrames:
    """The usable frames of one feature in one session, placed on the speech clock.

    Attributes:
        values: shape (k,) bins or (k, d) embeddings, in order.
        units: shape (k,), the unit of speech in which each frame was complete, non-decreasing.
        length: units of speech in the session.
        spec: of the feature.
        begins: shape (k,), the unit of speech in which each frame's audio begins; None where a
            frame is heard at once.
        span: units of speech one frame takes, where that is longer than a unit: whoever hears so
            many units has at most one frame.
    """

    values: AnyArray
    units: IntArray
    length: int
    spec: FeatureSpec
    begins: IntArray | None = None
    span: int = 0

    def total(self, start: int, length: int) -> AnyArray:
        """Counts (or sum of unit embeddings) over ``length`` units from ``start``, circular.

        What somebody has who begins to listen at ``start``: frames that were complete in time and
        had not begun before. Long frames (``span``) lie where the session has them, not where the
        listener would, so that as many are taken as the listener would have.

        Returns:
            shape (M,), int64 counts or float64 sums.

        Raises:
            UsageError: longer than the session.
        """
        if length > self.length:
            raise UsageError(f"a session of {self.length} units has no window of {length}")
        start %= max(self.length, 1)
        end = start + length
        most = length // self.span if self.span else self.units.size
        chosen = self._frames(start, min(end, self.length))
        if end > self.length:
            chosen = np.concatenate([chosen, self._frames(0, end - self.length)])
        return self.spec.kind.total(self.values[chosen[:most]], self.spec.size)

    def _frames(self, start: int, end: int) -> IntArray:
        low, high = np.searchsorted(self.units, (start, end))
        chosen = np.arange(low, high)
        return chosen if self.begins is None else chosen[self.begins[low:high] >= start]
