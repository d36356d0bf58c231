"""Counts of all scores in one pass, from which EER, Cllr, ZEBRA and the ROC are computed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from monitor.maths.roc import Blocks, Counts, cell_counts, cuts_around, pool
from monitor.protocols import ScoredComparisons
from monitor.types import DoubleArray, FloatArray

_CELLS = 1 << 22  # maximum speakers x cells for resampling
_FACTORS = 512  # numbers up to 2 with a finite product
_MOST_NATS = 1e300  # maximum cost of a score, so that sums stay finite


@dataclass(frozen=True)
class ScoreCounts:
    """Counts of a pool of scores, and of its resamples."""

    exact: Counts  # at and between the distinct mated scores
    replicates: Counts | None  # the same for each resample, shape (B, G); None without weights
    # whether the resamples use wider cells than `exact`, to save memory. Scores in a cell are then
    # tied.
    coarse: bool
    # shape (2,): mean of ``log2(1 + exp(-s))`` over mated scores and of ``log2(1 + exp(s))`` over
    # non-mated ones, in bits
    costs: FloatArray
    replicate_costs: FloatArray | None  # the same for each resample, shape (B, 2)
    # low, high: the lowest and the highest score
    low: float
    high: float

    @classmethod
    def from_scores(
        cls, scores: ScoredComparisons, weights: FloatArray | None = None
    ) -> ScoreCounts:
        """Count all scores in one pass over blocks, or in two with weights (B, S)."""
        mated_scores = np.sort(scores.mated)
        levels = mated_scores[np.concatenate([[True], mated_scores[1:] > mated_scores[:-1]])]
        cuts = cuts_around(levels)
        cells = np.zeros(len(cuts) + 1, dtype=np.intp)
        people = len(scores.non_mated_counts)
        sums = np.zeros((people, 2))
        low, high = float(mated_scores[0]), float(mated_scores[-1])
        sums[:, 0] = np.bincount(scores.owner, cost_bits(-scores.mated[:, None]), people)
        for owner, block in scores.non_mated_blocks():
            sums[:, 1] += np.bincount(owner, cost_bits(block), people)
            ordered = np.sort(block, axis=None)
            cells += cell_counts(ordered, cuts)
            low, high = min(low, float(ordered[0])), max(high, float(ordered[-1]))
        mated = cell_counts(mated_scores, cuts)
        counts = Counts(cuts, mated.astype(np.float64), cells.astype(np.float64))
        sizes = np.stack([np.bincount(scores.owner, minlength=people), scores.non_mated_counts], 1)
        mean = sums.sum(axis=0) / sizes.sum(axis=0)
        if weights is None:
            return cls(counts, None, False, mean, None, low, high)
        maximum = max(_CELLS // people, 3)
        coarse = len(cuts) > maximum
        if coarse:
            cuts = levels[np.linspace(0, len(levels) - 1, maximum).astype(np.intp)]
        by_speaker = speaker_cells(scores, cuts)
        replicates = Counts(cuts, weights @ by_speaker[0], weights @ by_speaker[1])
        return cls(counts, replicates, coarse, mean, weights @ sums / (weights @ sizes), low, high)

    @cached_property
    def blocks(self) -> Blocks:
        """Cells of `exact` after pool-adjacent-violators."""
        return pool(self.exact.mated, self.exact.non_mated)

    @cached_property
    def replicate_blocks(self) -> Blocks | None:
        """The same for each resample."""
        return pool(self.replicates.mated, self.replicates.non_mated) if self.replicates else None


def cost_bits(scores: FloatArray) -> DoubleArray:
    """Sum ``log2(1 + exp(s))`` of nats over the last axis: cost of scores that should be low.

    One logarithm serves hundreds of scores: each ``1 + exp(-|s|)`` is between 1 and 2, so that
    their product is finite. Terms below 1e-16 bits are lost.
    """
    factors: DoubleArray = np.abs(scores)
    np.negative(factors, out=factors)
    np.exp(factors, out=factors)
    factors += 1.0
    positive: DoubleArray = np.clip(scores, 0.0, _MOST_NATS)
    starts = np.arange(0, scores.shape[-1], _FACTORS)
    products = np.multiply.reduceat(factors, starts, axis=-1)
    return np.asarray(np.log2(products).sum(axis=-1) + positive.sum(axis=-1) / np.log(2.0))


def speaker_cells(scores: ScoredComparisons, cuts: FloatArray) -> tuple[DoubleArray, DoubleArray]:
    """Count each person's mated and non-mated scores in each cell of cuts, (S, G) each."""
    shape = (len(scores.non_mated_counts), len(cuts) + 1)
    cell = np.searchsorted(cuts, scores.mated, side="right")
    mated = np.bincount(scores.owner * shape[1] + cell, minlength=shape[0] * shape[1])
    others = np.zeros(shape)
    for owner, block in scores.non_mated_blocks():
        order = np.argsort(owner, kind="stable")
        firsts = np.flatnonzero(np.diff(owner[order], prepend=-1))
        for rows in np.split(order, firsts[1:]):
            others[owner[rows[0]]] += cell_counts(np.sort(block[rows], axis=None), cuts)
    return mated.reshape(shape).astype(np.float64), others
