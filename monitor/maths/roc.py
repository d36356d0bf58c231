"""Counts of mated and non-mated scores, from which every figure of a ROC follows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from monitor.arrays import real_numbers
from monitor.errors import UsageError
from monitor.types import DoubleArray, FloatArray, IntArray

# Non-mated scores between two neighbouring mated ones only change the false accepts. A ROC
# therefore needs only counts at each distinct mated score, and between them.


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of mated and non-mated scores in G cells, in ascending order of score.

    Cell g holds ``cuts[g - 1] <= s < cuts[g]``. Counts are whole numbers as float64, shape (...,
    G); leading axes are resamples.
    """

    cuts: FloatArray
    mated: FloatArray
    non_mated: FloatArray

    @property
    def mated_total(self) -> DoubleArray:
        """Shape (...)."""
        return np.asarray(self.mated.sum(axis=-1))

    @property
    def non_mated_total(self) -> DoubleArray:
        """Shape (...)."""
        return np.asarray(self.non_mated.sum(axis=-1))


def cuts_around(levels: FloatArray) -> DoubleArray:
    """Compute cuts that give each of K ascending levels, and each gap between, its own cell.

    Shape (2 K,): cell 2 k + 1 holds exactly the scores equal to level k.
    """
    return np.stack([levels, np.nextafter(levels, np.inf)], axis=-1).ravel()


def cell_counts(ordered: FloatArray, cuts: FloatArray) -> IntArray:
    """Count the ordered scores in each cell between ascending cuts, shape (G,).

    Example:
        >>> cell_counts(np.array([0.1, 0.2, 0.2, 0.9]), cuts_around(np.array([0.2]))).tolist()
        [1, 2, 1]
    """
    return np.diff(np.searchsorted(ordered, cuts), prepend=0, append=len(ordered))


def count_scores(mated: ArrayLike, non_mated: ArrayLike) -> Counts:
    """Count non-mated scores at and between the mated ones, both of any shape.

    Example:
        >>> counts = count_scores([0.5, 0.9], [0.1, 0.5, 0.6, 0.7])
        >>> counts.mated.tolist(), counts.non_mated.tolist()
        ([0.0, 1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 2.0, 0.0, 0.0])
    """
    mated_scores, others = scores_of(mated, non_mated)
    mated_scores, others = np.sort(mated_scores), np.sort(others)
    cuts = cuts_around(mated_scores[np.concatenate([[True], mated_scores[1:] > mated_scores[:-1]])])
    return Counts(
        cuts, *(cell_counts(scores, cuts).astype(np.float64) for scores in (mated_scores, others))
    )


def scores_of(mated: ArrayLike, non_mated: ArrayLike) -> tuple[DoubleArray, DoubleArray]:
    """Return both kinds of scores, flat, as float64."""
    mated_scores = real_numbers(mated, "mated scores", np.float64).ravel()
    others = real_numbers(non_mated, "non-mated scores", np.float64).ravel()
    if not mated_scores.size or not others.size:
        raise UsageError("give at least one mated and one non-mated score")
    if not (np.isfinite(mated_scores).all() and np.isfinite(others).all()):
        raise UsageError("a score is not finite: drop such trials")
    return mated_scores, others


# Ayer et al., 1955. Equal scores are one cell, so ties are pooled. Tools that sort the mated scores
# of a tie last report perfect separation if all scores are equal. The blocks are also the edges of
# the ROC's convex hull, and give the ideal calibration (Brummer and du Preez, 2013).
_PASSES = 64  # passes over all cells at once before the stack: noise is gone after a few


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks of cells that share one calibrated value, of all replicates one after another.

    Arrays of shape (K,) have the number of mated and non-mated scores in each block and its
    replicate, ascending. Within a replicate, blocks are in ascending order of score.
    """

    mated: FloatArray
    non_mated: FloatArray
    replicate: IntArray
    replicates: int

    def sums(self, values: FloatArray) -> DoubleArray:
        """Sum one number for each block, by replicate: shape (replicates,)."""
        return np.asarray(np.bincount(self.replicate, values, self.replicates), dtype=np.float64)

    @property
    def odds(self) -> DoubleArray:
        """Mated to non-mated of each block, ascending within a replicate: 0 to infinity."""
        with np.errstate(divide="ignore"):
            return np.asarray(self.mated / self.non_mated)


def pool(mated: FloatArray, non_mated: FloatArray) -> Blocks:
    """Pool neighbouring cells until the share of mated scores rises from block to block.

    Counts, (..., G), are in ascending order of score, and leading axes are replicates. Whole
    numbers are compared exactly. Cells with two zeros are left out.

    Example:
        >>> blocks = pool(np.array([0.0, 2.0, 1.0, 5.0]), np.array([9.0, 1.0, 3.0, 0.0]))
        >>> blocks.mated.tolist(), blocks.non_mated.tolist()
        ([0.0, 3.0, 5.0], [9.0, 4.0, 0.0])
    """
    mated, non_mated = np.atleast_2d(mated), np.atleast_2d(non_mated)
    mated, non_mated = (x.reshape(-1, x.shape[-1]) for x in (mated, non_mated))
    replicates = len(mated)
    replicate, column = np.nonzero((mated > 0) | (non_mated > 0))
    hits, misses = (np.asarray(x[replicate, column], np.float64) for x in (mated, non_mated))
    for _ in range(_PASSES):
        # share i >= share i + 1, without the rounding of a division
        starts = np.ones(len(hits), dtype=bool)
        starts[1:] = (hits[:-1] * misses[1:] < hits[1:] * misses[:-1]) | (
            replicate[:-1] != replicate[1:]
        )
        first = np.flatnonzero(starts)
        if len(first) == len(hits):
            return Blocks(hits, misses, replicate, replicates)
        hits, misses = np.add.reduceat(hits, first), np.add.reduceat(misses, first)
        replicate = replicate[first]
    stack: list[tuple[float, float, int]] = []
    for hit, miss, number in zip(hits.tolist(), misses.tolist(), replicate.tolist(), strict=True):
        while stack and stack[-1][2] == number and stack[-1][0] * miss >= hit * stack[-1][1]:
            last = stack.pop()
            hit, miss = hit + last[0], miss + last[1]
        stack.append((hit, miss, number))
    blocks = np.array(stack)
    return Blocks(blocks[:, 0], blocks[:, 1], blocks[:, 2].astype(np.intp), replicates)
