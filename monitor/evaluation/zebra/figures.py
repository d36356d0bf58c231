"""The figures of ZEBRA: D_ECE, log10 l and the tag.

The first public code puts the mated scores of a tie last, so that scores that are all equal get tag
C; here they get 0, or next to nothing where dummies are counted.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from monitor.errors import UsageError
from monitor.evaluation.figure import Figure
from monitor.evaluation.scores.counts import ScoreCounts
from monitor.maths.pav import Blocks, pool
from monitor.maths.roc import Counts, count_scores
from monitor.protocols import ScoredComparisons
from monitor.types import FloatArray

__all__ = [
    "CEILING_BITS",
    "d_ece",
    "figures",
    "log10_l",
    "log10_l_limits",
    "tag",
]

CEILING_BITS = float(0.5 / np.log(2.0))
"""D_ECE of perfect separation, 0.72 bits: the mean over all priors of a prior's entropy."""

_Doubles: TypeAlias = NDArray[np.float64]
_TAGS = ((1.0, "A"), (2.0, "B"), (4.0, "C"), (5.0, "D"), (6.0, "E"), (np.inf, "F"))
_SERIES = 1e-2


def d_ece(mated: ArrayLike, non_mated: ArrayLike) -> float:
    """Expected disclosure of ZEBRA: mean over all priors of what the scores add to it.

    Equations 5 and 6, without dummies.

    Args:
        mated: any shape, scores of the same speaker; higher is more alike.
        non_mated: any shape, scores of different speakers.

    Returns:
        bits, 0 to `CEILING_BITS`.

    Raises:
        UsageError: one of the two is empty, or a score is not finite.

    Example:
        >>> d_ece([0.5], [0.5, 0.5]), round(d_ece([0.9], [0.1, 0.2]), 4)
        (0.0, 0.7213)
    """
    counts = count_scores(mated, non_mated)
    return float(_d_ece(pool(counts.mated, counts.non_mated))[0])


def log10_l(mated: ArrayLike, non_mated: ArrayLike) -> float:
    """Worst-case disclosure of ZEBRA, equation 8: the strongest log-likelihood ratio of a score.

    With one mated and one non-mated dummy at both ends, so that it stays finite. It is an estimate
    and no bound, and few scores cannot reach a high one: see `log10_l_limits`.

    Args:
        mated: any shape, scores of the same speaker; higher is more alike.
        non_mated: any shape, scores of different speakers.

    Returns:
        decimal logarithm, 0 or more.

    Raises:
        UsageError: one of the two is empty, or a score is not finite.

    Example:
        >>> round(log10_l(np.ones(100), np.zeros(100)), 4)
        2.0043
    """
    return float(_log10_l(count_scores(mated, non_mated))[0])


def log10_l_limits(mated: int, non_mated: int) -> tuple[float, float]:
    """What log10 l reads where scores say nothing, and where they separate perfectly.

    Args:
        mated: T, how many mated scores there are.
        non_mated: N, how many non-mated ones.

    Returns:
        floor and ceiling.

    Raises:
        UsageError: a number below 1.

    Example:
        >>> floor, ceiling = log10_l_limits(10, 90)
        >>> round(floor, 3), round(ceiling, 3), tag(ceiling)
        (0.037, 1.996, 'B')
    """
    if mated < 1 or non_mated < 1:
        raise UsageError("give at least one mated and one non-mated score")
    own, others = np.log10([(mated + 1) / mated, (non_mated + 1) / non_mated])
    ceiling = max(np.log10(non_mated) + own, np.log10(mated) + others)
    return float(abs(own - others)), float(ceiling)


def tag(worst: float) -> str:
    """ZEBRA's category: ``"0"`` for no disclosure, then A to F (the paper's table 1).

    Args:
        worst: `log10_l`.

    Raises:
        UsageError: a negative number, or none.

    Example:
        >>> [tag(x) for x in (0.0, 0.5, 1.0, 2.0, 4.0, 5.0, 6.0)]
        ['0', 'A', 'B', 'C', 'D', 'E', 'F']
    """
    if not worst >= 0:
        raise UsageError("log10 l is 0 or more: there is no tag for anything else")
    return "0" if worst == 0 else next(name for end, name in _TAGS if worst < end or end == np.inf)


def figures(
    scores: ScoredComparisons, weights: FloatArray | None = None, counts: ScoreCounts | None = None
) -> tuple[Figure, ...]:
    """D_ECE, log10 l and the tag.

    Args:
        scores: a matrix, or comparisons of any kind.
        weights: shape (B, S), from `pooled_resamples`: gives the figures their replicates.
        counts: of these scores and these weights, where it was counted already.

    Returns:
        keys ``zebra.d_ece_bits``, ``zebra.log10_l`` and ``zebra.tag``.
    """
    counts = counts or ScoreCounts.of(scores, weights)
    mean, worst = float(_d_ece(counts.blocks)[0]), float(_log10_l(counts.exact)[0])
    floor, ceiling = log10_l_limits(scores.mated.size, int(scores.non_mated_counts.sum()))
    blocks = counts.replicate_blocks
    coarse = "; limits are counted in coarser cells than the value" if counts.coarse else ""
    return (
        Figure(
            "zebra.d_ece_bits",
            "D_ECE",
            mean,
            "bits",
            replicates=_d_ece(blocks) if blocks else None,
            ceiling=CEILING_BITS,
            floor=0.0,
            ties="pooled",
            note=coarse.removeprefix("; "),
        ),
        Figure(
            "zebra.log10_l",
            "log10 l",
            worst,
            "log10",
            ceiling=ceiling,
            floor=floor,
            ties="pooled",
            note="one extreme score decides it: an estimate of the worst case, not a bound",
        ),
        Figure(
            "zebra.tag",
            "ZEBRA tag",
            None,
            "",
            ties="pooled",
            text=tag(worst),
            note=f"so many scores can read {tag(ceiling)} at most",
        ),
    )


def _z(llr: _Doubles) -> _Doubles:
    """Z of equation 6 at ``exp(llr)``: 0 at 0, 1/4 at infinity, minus infinity at the other end."""
    a = np.asarray(llr, dtype=np.float64)
    near = np.abs(a) < _SERIES
    safe = np.where(near, 1.0, a)
    with np.errstate(over="ignore", invalid="ignore"):
        less = np.expm1(safe)  # x - 1
        closed = 0.25 - np.where(np.isinf(less), 0.0, (1.0 - safe / less) / (2.0 * less))
    return np.where(near, a * (1 / 6 - a * (1 / 24 - a * (1 / 360 + a / 1440))), closed)


def _d_ece(blocks: Blocks) -> _Doubles:
    """Shape (replicates,)."""
    mated, non_mated = blocks.sums(blocks.mated), blocks.sums(blocks.non_mated)
    own, others = blocks.mated > 0, blocks.non_mated > 0
    both = own & others
    llr = np.zeros(len(own))
    ratio = (mated / non_mated)[blocks.replicate]
    llr[both] = np.log(blocks.mated[both] / blocks.non_mated[both] / ratio[both])
    # a block of one kind only is certain: Z at infinity
    gain = blocks.mated * np.where(others, _z(llr), 0.25)
    loss = blocks.non_mated * np.where(own, _z(-llr), 0.25)
    mean = blocks.sums(gain) / mated + blocks.sums(loss) / non_mated
    return np.asarray(np.maximum(mean / np.log(2.0), 0.0))


def _log10_l(counts: Counts) -> _Doubles:
    """Shape (replicates,): blocks made of dummies alone do not count."""
    mated, non_mated = np.atleast_2d(counts.mated), np.atleast_2d(counts.non_mated)
    ends = ((0, 0), (1, 1))
    blocks = pool(
        np.pad(mated, ends, constant_values=1.0), np.pad(non_mated, ends, constant_values=1.0)
    )
    real = ~((blocks.mated == 1.0) & (blocks.non_mated == 1.0) & _at_an_end(blocks))
    ratio = (mated.sum(axis=-1) / non_mated.sum(axis=-1))[blocks.replicate]
    strength = np.abs(np.log10(blocks.mated / blocks.non_mated / ratio))
    first = np.searchsorted(blocks.replicate, np.arange(blocks.replicates))
    return np.asarray(np.maximum.reduceat(np.where(real, strength, 0.0), first))


def _at_an_end(blocks: Blocks) -> NDArray[np.bool_]:
    """First and last block of each draw."""
    change = blocks.replicate[1:] != blocks.replicate[:-1]
    return np.asarray(np.append(True, change) | np.append(change, True), dtype=bool)
