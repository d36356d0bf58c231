"""Which speech is test and which is template: SRD eq. (6) with its offset corrected."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from monitor.errors import UsageError
from monitor.types import AnyArray, IntArray

__all__ = ["SessionFrames", "window_starts"]


def window_starts(start: int, test: int, template: int, available: int) -> tuple[int, int]:
    """Where the test and the template begin, in units of speech, circular in ``available``.

    The test is ``start + [0, test)`` and the template ``start + test + gap + [0, template)`` modulo
    ``available`` with ``gap = floor((available - test - template) / 2)``: the two never overlap and
    lie as far apart as they can (docs/method.md section 4; the printed offset overlaps).

    Example:
        >>> window_starts(3, test=2, template=4, available=10)
        (3, 7)

    Raises:
        UsageError: the two do not fit into what is available.
    """
    if test + template > available or min(test, template) < 1:
        raise UsageError(f"test {test} and template {template} do not fit into {available} units")
    gap = (available - test - template) // 2
    return start % available, (start + test + gap) % available


@dataclass(frozen=True, slots=True)
class SessionFrames:
    """The usable frames of one feature in one session, placed on the speech clock.

    Attributes:
        values: shape (k,) bins or (k, d) embeddings, in order.
        units: shape (k,), the unit of speech in which each frame was complete, non-decreasing.
        length: units of speech in the session.
        size: bins M, or dimensions d.
        begins: shape (k,), the unit of speech in which each frame's audio begins; None where a
            frame is heard at once.
        span: units of speech one frame takes, where that is longer than a unit: whoever hears so
            many units has at most one frame.
    """

    values: AnyArray
    units: IntArray
    length: int
    size: int
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
        return self._sum(self.values[chosen[:most]])

    def _frames(self, start: int, end: int) -> IntArray:
        low, high = np.searchsorted(self.units, (start, end))
        chosen = np.arange(low, high)
        return chosen if self.begins is None else chosen[self.begins[low:high] >= start]

    def _sum(self, part: AnyArray) -> AnyArray:
        if part.ndim == 1:
            return np.bincount(part, minlength=self.size)
        part = part.astype(np.float64)
        length = np.hypot.reduce(part, axis=1, keepdims=True)
        usable = (length > 0) & np.isfinite(length)
        unit = np.divide(part, length, out=np.zeros_like(part), where=usable)
        return np.asarray(unit.sum(axis=0))
