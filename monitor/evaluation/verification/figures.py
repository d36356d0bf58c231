"""The figures of speaker verification: EER by two rules, Cllr and min Cllr."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from monitor.evaluation.figure import Figure
from monitor.evaluation.scores.counts import ScoreCounts, cost_bits
from monitor.evaluation.verification.error_rates import (
    nearest_of_counts,
    nearest_of_replicates,
    rocch_of_blocks,
)
from monitor.maths.pav import Blocks, pool
from monitor.maths.roc import count_scores, scores_of
from monitor.protocols import ScoredComparisons
from monitor.types import FloatArray

__all__ = [
    "cllr",
    "figures",
    "min_cllr",
    "min_cllr_of_blocks",
]

_Doubles: TypeAlias = NDArray[np.float64]


def cllr(mated: ArrayLike, non_mated: ArrayLike) -> float:
    """Cost of log-likelihood ratios (Brummer and du Preez, 2006).

    Args:
        mated: any shape, LLRs in nats: natural logarithms. Scores that are no LLRs, such as
            cosines, give a number without meaning.
        non_mated: any shape, as `mated`.

    Returns:
        bits; 1 for LLRs that say nothing, more for misleading ones.

    Raises:
        UsageError: one of the two is empty, or a score is not finite.

    Example:
        >>> cllr([0.0, 0.0], [0.0])
        1.0
    """
    own, others = scores_of(mated, non_mated)
    return float(cost_bits(-own) / own.size + cost_bits(others) / others.size) / 2


def min_cllr(mated: ArrayLike, non_mated: ArrayLike) -> float:
    """Cllr after the best monotone calibration on these very scores, ties pooled.

    Returns:
        bits, 0 to 1.

    Raises:
        UsageError: one of the two is empty, or a score is not finite.

    Example:
        >>> min_cllr([0.5, 0.5], [0.5, 0.5]), min_cllr([0.9], [0.1])
        (1.0, 0.0)
    """
    counts = count_scores(mated, non_mated)
    return float(min_cllr_of_blocks(pool(counts.mated, counts.non_mated))[0])


def min_cllr_of_blocks(blocks: Blocks) -> _Doubles:
    """`min_cllr` of each replicate: shape (replicates,), in bits."""
    mated, non_mated = blocks.sums(blocks.mated), blocks.sums(blocks.non_mated)
    ratio = blocks.odds * (non_mated / mated)[blocks.replicate]
    with np.errstate(divide="ignore", invalid="ignore"):
        misses = np.where(blocks.mated > 0, blocks.mated * np.log1p(1 / ratio), 0.0)
        alarms = np.where(blocks.non_mated > 0, blocks.non_mated * np.log1p(ratio), 0.0)
        mean = (blocks.sums(misses) / mated + blocks.sums(alarms) / non_mated) / 2
    return np.asarray(mean / np.log(2.0))


def figures(
    scores: ScoredComparisons, weights: FloatArray | None = None, counts: ScoreCounts | None = None
) -> tuple[Figure, ...]:
    """EER by both rules, Cllr of the raw scores and min Cllr.

    Args:
        scores: a matrix, or comparisons of any kind.
        weights: shape (B, S), from `pooled_resamples`: gives the figures their replicates.
        counts: of these scores and these weights, where it was counted already.

    Returns:
        keys ``verification.eer_rocch``, ``.eer_nearest``, ``.cllr_bits`` and ``.min_cllr_bits``.
    """
    counts = counts or ScoreCounts.of(scores, weights)
    drawn, blocks = counts.replicates, counts.replicate_blocks
    costs = counts.replicate_costs
    hull = float(rocch_of_blocks(counts.blocks)[0])
    calibrated = float(min_cllr_of_blocks(counts.blocks)[0])
    coarse = "limits are counted in coarser cells than the value" if counts.coarse else ""
    return (
        Figure(
            "verification.eer_rocch",
            "EER (convex hull)",
            hull,
            "share",
            replicates=rocch_of_blocks(blocks) if blocks else None,
            floor=0.5,
            ties="pooled",
            note=coarse,
        ),
        Figure(
            "verification.eer_nearest",
            "EER (nearest threshold)",
            nearest_of_counts(counts.exact, scores),
            "share",
            replicates=nearest_of_replicates(drawn) if drawn else None,
            floor=0.5,
            ties="pooled",
            note=coarse,
        ),
        Figure(
            "verification.cllr_bits",
            "Cllr",
            float(counts.costs.mean()),
            "bits",
            replicates=None if costs is None else costs.mean(axis=1),
            floor=1.0,
            note="has a meaning only where scores are log-likelihood ratios in nats",
        ),
        Figure(
            "verification.min_cllr_bits",
            "min Cllr",
            calibrated,
            "bits",
            replicates=min_cllr_of_blocks(blocks) if blocks else None,
            floor=1.0,
            ties="pooled",
            note=coarse,
        ),
    )
