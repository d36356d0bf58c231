"""Pool adjacent violators: isotonic regression of the share of mated scores on the score.

Ayer et al., 1955. Equal scores are one cell, so ties are pooled: tools that put the mated ones of a
tie last read perfect separation where all scores are equal. The blocks are also the edges of the
ROC's convex hull, and what an ideal calibration would say (Brummer and du Preez, 2013).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from monitor.types import FloatArray, IntArray

__all__ = ["Blocks", "pool"]

_Doubles: TypeAlias = NDArray[np.float64]
_PASSES = 64
"""Passes over all cells at once before the stack: noise is gone after a few."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks of cells that share one calibrated value, of all replicates one after the other.

    Attributes:
        mated: shape (K,), how many mated scores are in each block.
        non_mated: shape (K,).
        replicate: shape (K,), which replicate a block belongs to, ascending; blocks of one are in
            ascending order of score.
        replicates: how many replicates there are.
    """

    mated: FloatArray
    non_mated: FloatArray
    replicate: IntArray
    replicates: int

    def sums(self, values: FloatArray) -> _Doubles:
        """Sum of one number for each block, by replicate: shape (replicates,)."""
        return np.asarray(np.bincount(self.replicate, values, self.replicates), dtype=np.float64)

    @property
    def odds(self) -> _Doubles:
        """Mated to non-mated of each block, ascending within a replicate: 0 to infinity."""
        with np.errstate(divide="ignore"):
            return np.asarray(self.mated / self.non_mated)


def pool(mated: FloatArray, non_mated: FloatArray) -> Blocks:
    """Pool neighbouring cells until the share of mated scores rises from block to block.

    Whole numbers are compared exactly.

    Args:
        mated: shape (..., G), counts in ascending order of score; leading axes are replicates.
        non_mated: shape (..., G). Cells in which both are zero are left out.

    Example:
        >>> blocks = pool(np.array([0.0, 2.0, 1.0, 5.0]), np.array([9.0, 1.0, 3.0, 0.0]))
        >>> blocks.mated.tolist(), blocks.non_mated.tolist()
        ([0.0, 3.0, 5.0], [9.0, 4.0, 0.0])
    """
    mated, non_mated = np.atleast_2d(mated), np.atleast_2d(non_mated)
    mated, non_mated = (x.reshape(-1, x.shape[-1]) for x in (mated, non_mated))
    replicates = len(mated)
    owner, column = np.nonzero((mated > 0) | (non_mated > 0))
    hits, misses = (np.asarray(x[owner, column], np.float64) for x in (mated, non_mated))
    for _ in range(_PASSES):
        # share i >= share i + 1, without the rounding of a division
        starts = np.ones(len(hits), dtype=bool)
        starts[1:] = (hits[:-1] * misses[1:] < hits[1:] * misses[:-1]) | (owner[:-1] != owner[1:])
        first = np.flatnonzero(starts)
        if len(first) == len(hits):
            return Blocks(hits, misses, owner, replicates)
        hits, misses = np.add.reduceat(hits, first), np.add.reduceat(misses, first)
        owner = owner[first]
    return _stacked(hits, misses, owner, replicates)


def _stacked(hits: _Doubles, misses: _Doubles, owner: IntArray, replicates: int) -> Blocks:
    """One cell after the other: where every pass pools only a few."""
    stack: list[tuple[float, float, int]] = []
    for hit, miss, number in zip(hits.tolist(), misses.tolist(), owner.tolist(), strict=True):
        while stack and stack[-1][2] == number and stack[-1][0] * miss >= hit * stack[-1][1]:
            last = stack.pop()
            hit, miss = hit + last[0], miss + last[1]
        stack.append((hit, miss, number))
    done = np.array(stack)
    return Blocks(done[:, 0], done[:, 1], done[:, 2].astype(np.intp), replicates)
