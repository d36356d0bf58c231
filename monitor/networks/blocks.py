"""Whatever comes, computed in blocks of one size, so that how it is cut changes no bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from monitor.types import FloatArray

__all__ = ["WholeBlocks"]


class WholeBlocks:
    """Rows that come are kept until a block of them is whole; then it is computed.

    Args:
        work: what a block gives: rows of it.
        silence: a block in which nothing is.
        size: numbers in a row that is given.
        unborn: rows given first that are of before the beginning, and are dropped.

    Attributes:
        taken: rows that came so far.

    Example:
        >>> blocks = WholeBlocks(lambda block: 10 * block, np.zeros((2, 1)), size=1, unborn=1)
        >>> blocks.push(np.array([[1.0], [2.0], [3.0]])).ravel().tolist()
        [20.0]
        >>> blocks.flush(due=2).ravel().tolist()
        [30.0]
    """

    def __init__(
        self,
        work: Callable[[FloatArray], FloatArray],
        silence: FloatArray,
        size: int,
        unborn: int,
    ) -> None:
        self._work, self._silence, self._unborn = work, silence, unborn
        self._waiting, self._none = silence[:0], np.empty((0, size), np.float32)
        self.taken = self._given = 0

    def push(self, rows: FloatArray) -> FloatArray:
        """What is known after further rows, and was not before."""
        self.taken += len(rows)
        waiting = np.concatenate([self._waiting, rows], dtype=np.float32)
        whole = len(waiting) // len(self._silence) * len(self._silence)
        self._waiting = waiting[whole:].copy()
        blocks = waiting[:whole].reshape(-1, *self._silence.shape)
        found = np.concatenate([self._none, *map(self._work, blocks)])
        first = min(self._unborn, len(found))
        self._unborn -= first
        self._given += len(found) - first
        return found[first:]

    def flush(self, due: int) -> FloatArray:
        """The rest of so many rows in all, as if silence followed."""
        rest, missing = self._none, due - self._given
        while len(rest) < missing:
            rest = np.concatenate([rest, self.push(self._silence)])
        return rest[:missing]
