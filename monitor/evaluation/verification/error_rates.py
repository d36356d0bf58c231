"""Equal error rates by two rules, and the curve of misses against false alarms.

False rejects are mated scores below a threshold, false accepts non-mated ones at or above it.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from monitor.errors import UsageError
from monitor.maths.pav import Blocks, pool
from monitor.maths.roc import Counts, count_scores, scores_of
from monitor.protocols import ScoredComparisons
from monitor.types import FloatArray

__all__ = [
    "EER_RULES",
    "det_curve",
    "det_points",
    "eer",
    "nearest_of_counts",
    "nearest_of_replicates",
    "rocch_of_blocks",
]

EER_RULES = ("rocch", "nearest")
"""Where the two error rates are called equal."""

_Doubles: TypeAlias = NDArray[np.float64]


def eer(mated: ArrayLike, non_mated: ArrayLike, rule: str = "rocch") -> float:
    """Equal error rate.

    Args:
        mated: any shape, scores of the same speaker; higher is more alike.
        non_mated: any shape, scores of different speakers.
        rule: ``"rocch"``: where the convex hull of the ROC has equal rates (Brummer and du Preez,
            2013); never above one half. ``"nearest"``: the mean of both rates at the threshold, of
            all that the scores offer, at which they differ least.

    Returns:
        a share, 0 to 1. Four scores against twelve can read 37.5 % by one rule and 50 % by the
        other: always say which.

    Raises:
        UsageError: another rule, one of the two is empty, or a score is not finite.

    Example:
        >>> eer([0.3, 0.5, 0.7, 0.9], [0.2, 0.4, 0.6, 0.8]), eer([1.0], [1.0], "nearest")
        (0.375, 0.5)
    """
    if rule not in EER_RULES:
        raise UsageError(f"no EER rule {rule!r}: take one of {', '.join(EER_RULES)}")
    counts = count_scores(mated, non_mated)
    if rule == "rocch":
        return float(rocch_of_blocks(pool(counts.mated, counts.non_mated))[0])
    return nearest_of_counts(counts, scores_of(mated, non_mated)[1])


def det_curve(mated: ArrayLike, non_mated: ArrayLike) -> tuple[_Doubles, _Doubles]:
    """Corners of the detection error trade-off.

    Returns:
        false accepts and false rejects, shares, shape (K,): from (1, 0) to (0, 1).

    Raises:
        UsageError: one of the two is empty, or a score is not finite.

    Example:
        >>> accepts, rejects = det_curve([0.5, 0.9], [0.1, 0.6])
        >>> accepts.tolist(), rejects.tolist()
        ([1.0, 0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5, 1.0])
    """
    return det_points(count_scores(mated, non_mated))


def det_points(counts: Counts, most: int = 2000) -> tuple[_Doubles, _Doubles]:
    """`det_curve` of counts, about `most` points spread evenly over the rates."""
    full = (counts.mated > 0) | (counts.non_mated > 0)
    false_rejects = np.cumsum(counts.mated[full]) / counts.mated_total
    false_accepts = 1 - np.cumsum(counts.non_mated[full]) / counts.non_mated_total
    rejects = np.concatenate([[0.0], false_rejects])
    accepts = np.concatenate([[1.0], np.clip(false_accepts, 0.0, 1.0)])
    if len(rejects) > most:
        steps = np.linspace(0.0, 2.0, most)
        keep = np.unique(np.searchsorted(rejects + 1 - accepts, steps))
        keep = np.concatenate([keep[keep < len(rejects) - 1], [len(rejects) - 1]])
        rejects, accepts = rejects[keep], accepts[keep]
    return accepts, rejects


def rocch_of_blocks(blocks: Blocks) -> _Doubles:
    """Equal rates on the hull of each draw: blocks are its edges."""
    mated, non_mated = blocks.sums(blocks.mated), blocks.sums(blocks.non_mated)
    first = np.searchsorted(blocks.replicate, np.arange(blocks.replicates))
    below, under = (_before(x, first, blocks) for x in (blocks.mated, blocks.non_mated))
    total, others = mated[blocks.replicate], non_mated[blocks.replicate]
    # whole numbers: false rejects less false accepts, where a block ends, times both totals
    end = (below + blocks.mated) * others + (under + blocks.non_mated) * total - total * others
    at = first + blocks.sums((end < 0).astype(np.float64)).astype(np.intp)
    step = blocks.mated * others + blocks.non_mated * total
    rate = below[at] + blocks.mated[at] * (1 - end[at] / step[at])
    return np.asarray(rate / mated)


def _before(values: FloatArray, first: NDArray[np.intp], blocks: Blocks) -> _Doubles:
    """Sum of the blocks of the same draw that come before."""
    sums = np.cumsum(values) - values
    return np.asarray(sums - sums[first][blocks.replicate])


def _crossing(counts: Counts) -> tuple[NDArray[np.intp], _Doubles, _Doubles]:
    """The first cell at whose end the share of false rejects reaches that of false accepts.

    Returns:
        the cell, shape (...), and how many are rejected and accepted falsely at its two ends,
        shape (..., 2): counts, so that rates can be compared without rounding.
    """
    total, others = counts.mated_total[..., None], counts.non_mated_total[..., None]
    rejected = np.cumsum(counts.mated, axis=-1)
    accepted = others - np.cumsum(counts.non_mated, axis=-1)
    at = np.argmax(rejected * others >= accepted * total, axis=-1)[..., None]
    ends = np.concatenate([at, at + 1], axis=-1)
    rejected = np.concatenate([np.zeros_like(total), rejected], axis=-1)
    accepted = np.concatenate([others, accepted], axis=-1)
    return at[..., 0], *(np.take_along_axis(x, ends, -1) for x in (rejected, accepted))


def nearest_of_replicates(counts: Counts) -> _Doubles:
    """Shape (B,). In a gap the rates are taken to meet: its scores count as all different."""
    at, rejected, accepted = _crossing(counts)
    rejects = rejected / counts.mated_total[..., None]
    accepts = accepted / counts.non_mated_total[..., None]
    gaps = np.abs(rejects - accepts)
    best = np.where(gaps[..., 0] < gaps[..., 1], 0, 1)[..., None]
    middle = (np.take_along_axis(rejects, best, -1) + np.take_along_axis(accepts, best, -1)) / 2
    in_gap = np.take_along_axis(counts.mated, at[..., None], -1) == 0
    return np.asarray(np.where(in_gap, rejects[..., :1], middle)[..., 0])


def nearest_of_counts(counts: Counts, non_mated: FloatArray | ScoredComparisons) -> float:
    """The nearest of all thresholds; in a gap every non-mated score is one."""
    at, rejected, accepted = _crossing(counts)
    total, others = float(counts.mated_total), float(counts.non_mated_total)
    cell = int(at)
    if counts.mated[cell] == 0 and rejected[1] * others != accepted[1] * total:
        low = counts.cuts[cell - 1] if cell else -np.inf
        high = counts.cuts[cell] if cell < len(counts.cuts) else np.inf
        below = np.unique(_between(non_mated, low, high), return_counts=True)[1]
        accepted = accepted[0] - np.concatenate([[0.0], np.cumsum(below)])
        rejected = np.full(len(accepted), rejected[0])
    gaps = np.abs(rejected * others - accepted * total)[::-1]  # of two as near, the higher
    best = len(gaps) - 1 - int(np.argmin(gaps))
    return float(rejected[best] / total + accepted[best] / others) / 2


def _between(scores: FloatArray | ScoredComparisons, low: float, high: float) -> _Doubles:
    """Scores from low to below high."""
    blocks = (
        [scores]
        if isinstance(scores, np.ndarray)
        else (block for _, block in scores.non_mated_blocks())
    )
    return np.concatenate([block[(block >= low) & (block < high)] for block in blocks])
