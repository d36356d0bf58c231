"""ZEBRA: what pooled scores disclose on average and at worst, to any prior belief.

Measures: D_ECE is the reduction of the prior's entropy by ideally calibrated scores, averaged over
all priors. ``log10 l`` is the strongest likelihood ratio of any score. The tag is its category from
0 to F.

Source: Nautsch et al., "The Privacy ZEBRA", Interspeech 2020, equations (5), (6) and (8), Table 1.
Pool-adjacent-violators with pooled ties calibrates the scores (docs/method.md section 8).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from monitor.arrays import real_numbers
from monitor.errors import UsageError
from monitor.lab.evaluation.counts import ScoreCounts
from monitor.lab.evaluation.curves import Drawing, Line, Systems
from monitor.lab.evaluation.family import (
    EvaluationContext,
    Family,
    FamilyResult,
    FigureEntry,
    LimitRule,
)  # fmt: skip
from monitor.lab.report.model import Figure
from monitor.maths.roc import Blocks, Counts, count_scores, pool
from monitor.plots.canvas import MUTED, legend_above
from monitor.protocols import ScoredComparisons
from monitor.types import DoubleArray, FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class EceProfile:
    """Empirical cross-entropy over prior beliefs: ZEBRA's figure 3."""

    prior_log_odds: FloatArray  # shape (P,), nats
    # shape (P,), bits: entropy of the prior, which remains with perfect privacy
    default: FloatArray
    # shape (P,), bits: cross-entropy after ideal calibration of the scores. D_ECE is the mean
    # difference between the two over all priors.
    calibrated: FloatArray


def ece_profile(
    mated: ArrayLike, non_mated: ArrayLike, prior_log_odds: ArrayLike | None = None
) -> EceProfile:
    """Compute the cross-entropy that remains after the scores, at each prior.

    Args:
        mated: scores of the same speaker, any shape. Higher scores mean more alike.
        non_mated: scores of different speakers, any shape.
        prior_log_odds: prior log odds in nats, shape (P,); from -7 to 7 by default.

    Example:
        >>> profile = ece_profile([0.9], [0.1], [0.0])
        >>> profile.default.tolist(), profile.calibrated.tolist()
        ([1.0], [0.0])
    """
    counts = count_scores(mated, non_mated)
    return profile_of_blocks(pool(counts.mated, counts.non_mated), prior_log_odds)


def profile_of_blocks(blocks: Blocks, prior_log_odds: ArrayLike | None = None) -> EceProfile:
    """Compute `ece_profile` from the blocks of one draw, such as `ScoreCounts.blocks`."""
    grid = np.linspace(-7.0, 7.0, 141) if prior_log_odds is None else prior_log_odds
    odds = np.atleast_1d(real_numbers(grid, "log odds", np.float64))
    mated, others = (counts / counts.sum() for counts in (blocks.mated, blocks.non_mated))
    with np.errstate(divide="ignore"):
        llr = np.log(mated) - np.log(others)
    prior = expit(odds), expit(-odds)
    posterior = llr[:, None] + odds
    calibrated = prior[0] * _weighed(mated, -posterior) + prior[1] * _weighed(others, posterior)
    default = prior[0] * np.logaddexp(0.0, -odds) + prior[1] * np.logaddexp(0.0, odds)
    return EceProfile(odds, default / np.log(2.0), calibrated / np.log(2.0))


def _weighed(shares: DoubleArray, nats: DoubleArray) -> DoubleArray:
    """Compute the mean of ``ln(1 + exp(nats))`` over blocks; empty ones add 0, even if infinite."""
    full = shares > 0
    return np.asarray(shares[full] @ np.logaddexp(0.0, nats[full]))


# The first public code sorts mated scores of a tie last, so that constant scores have tag C. Here
# they have 0, or almost 0 with dummies.
CEILING_BITS = float(0.5 / np.log(2.0))
"""D_ECE of perfect separation, 0.72 bits: the mean over all priors of a prior's entropy."""

_TAGS = ((1.0, "A"), (2.0, "B"), (4.0, "C"), (5.0, "D"), (6.0, "E"), (np.inf, "F"))
_SERIES = 1e-2


def d_ece(mated: ArrayLike, non_mated: ArrayLike) -> float:
    """Compute expected disclosure (ZEBRA): the scores' information, averaged over all priors.

    Equations 5 and 6, without dummy scores. Scores have any shape. The result is in bits, 0 to
    `CEILING_BITS`.

    Example:
        >>> d_ece([0.5], [0.5, 0.5]), round(d_ece([0.9], [0.1, 0.2]), 4)
        (0.0, 0.7213)
    """
    counts = count_scores(mated, non_mated)
    return float(_d_ece(pool(counts.mated, counts.non_mated))[0])


def log10_l(mated: ArrayLike, non_mated: ArrayLike) -> float:
    """Compute worst-case disclosure (ZEBRA, equation 8): the strongest log10 likelihood ratio.

    A mated and a non-mated dummy score at both ends keep it finite. It is an estimate, not a bound.
    Few scores cannot reach high values (`log10_l_limits`).

    Example:
        >>> round(log10_l(np.ones(100), np.zeros(100)), 4)
        2.0043
    """
    return float(_log10_l(count_scores(mated, non_mated))[0])


def log10_l_limits(mated: int, non_mated: int) -> tuple[float, float]:
    """Compute log10 l of uninformative and of perfectly separated scores, of these numbers."""
    mated_gain, others = np.log10([(mated + 1) / mated, (non_mated + 1) / non_mated])
    ceiling = max(np.log10(non_mated) + mated_gain, np.log10(mated) + others)
    return float(abs(mated_gain - others)), float(ceiling)


def tag(worst: float) -> str:
    """Return ZEBRA's category of `log10_l`: ``"0"`` for no disclosure, or A to F (table 1).

    Example:
        >>> [tag(x) for x in (0.0, 0.5, 1.0, 2.0, 4.0, 5.0, 6.0)]
        ['0', 'A', 'B', 'C', 'D', 'E', 'F']
    """
    if not worst >= 0:
        raise UsageError("invalid log10 l: use 0 or more")
    return "0" if worst == 0 else next(name for end, name in _TAGS if worst < end or end == np.inf)


def figures(
    scores: ScoredComparisons, weights: FloatArray | None = None, counts: ScoreCounts | None = None
) -> tuple[Figure, ...]:
    """Compute D_ECE, log10 l and the tag, with weights (B, S) from `pooled_resamples`."""
    counts = counts or ScoreCounts.from_scores(scores, weights)
    mean, worst = float(_d_ece(counts.blocks)[0]), float(_log10_l(counts.exact)[0])
    floor, ceiling = log10_l_limits(scores.mated.size, int(scores.non_mated_counts.sum()))
    blocks = counts.replicate_blocks
    coarse = "the interval is computed on a coarser grid than the value" if counts.coarse else ""
    figure = FAMILY.figure
    return (
        figure("d_ece_bits", mean, _d_ece(blocks) if blocks else None, coarse),
        figure("log10_l", worst, ceiling=ceiling, floor=floor,
             note="one extreme score decides it: an estimate of the worst case, not a bound"),
        figure("tag", None, text=tag(worst),
               note=f"the maximum for this number of scores is {tag(ceiling)}"),
    )  # fmt: skip


def _z(llr: DoubleArray) -> DoubleArray:
    """Compute Z of equation 6 at ``exp(llr)``: 0 at 0, 1/4 at infinity, -infinity at -infinity."""
    a = np.asarray(llr, dtype=np.float64)
    near = np.abs(a) < _SERIES
    safe = np.where(near, 1.0, a)
    with np.errstate(over="ignore", invalid="ignore"):
        less = np.expm1(safe)  # x - 1
        closed = 0.25 - np.where(np.isinf(less), 0.0, (1.0 - safe / less) / (2.0 * less))
    return np.where(near, a * (1 / 6 - a * (1 / 24 - a * (1 / 360 + a / 1440))), closed)


def _d_ece(blocks: Blocks) -> DoubleArray:
    """Compute D_ECE of each replicate: shape (replicates,)."""
    mated, non_mated = blocks.sums(blocks.mated), blocks.sums(blocks.non_mated)
    has_mated, others = blocks.mated > 0, blocks.non_mated > 0
    both = has_mated & others
    llr = np.zeros(len(has_mated))
    ratio = (mated / non_mated)[blocks.replicate]
    llr[both] = np.log(blocks.mated[both] / blocks.non_mated[both] / ratio[both])
    # a block of one kind only is certain: Z at infinity
    gain = blocks.mated * np.where(others, _z(llr), 0.25)
    loss = blocks.non_mated * np.where(has_mated, _z(-llr), 0.25)
    mean = blocks.sums(gain) / mated + blocks.sums(loss) / non_mated
    return np.asarray(np.maximum(mean / np.log(2.0), 0.0))


def _log10_l(counts: Counts) -> DoubleArray:
    """Compute log10 l of each replicate; blocks made of dummies alone do not count."""
    mated, non_mated = np.atleast_2d(counts.mated), np.atleast_2d(counts.non_mated)
    ends = ((0, 0), (1, 1))
    blocks = pool(*(np.pad(side, ends, constant_values=1.0) for side in (mated, non_mated)))
    change = blocks.replicate[1:] != blocks.replicate[:-1]
    at_an_end = np.append(True, change) | np.append(change, True)
    real = ~((blocks.mated == 1.0) & (blocks.non_mated == 1.0) & at_an_end)
    ratio = (mated.sum(axis=-1) / non_mated.sum(axis=-1))[blocks.replicate]
    strength = np.abs(np.log10(blocks.mated / blocks.non_mated / ratio))
    first = np.searchsorted(blocks.replicate, np.arange(blocks.replicates))
    return np.asarray(np.maximum.reduceat(np.where(real, strength, 0.0), first))


def curves(counts: ScoreCounts) -> dict[str, Line]:
    """Compute the curves to draw."""
    profile = profile_of_blocks(counts.blocks, np.linspace(-3.0, 3.0, 61) * np.log(10.0))
    priors = profile.prior_log_odds / np.log(10.0)
    return {"ece": Line(priors, profile.calibrated), "ece_nothing": Line(priors, profile.default)}


def _paint_ece(axes: Axes, systems: Systems) -> None:
    alone, nothing = len(systems) == 1, systems[0][1].ece_nothing
    if nothing is not None:
        axes.plot(nothing.x, nothing.y, color=MUTED, linestyle=":", label="no evidence")
    for colour, curves_of in systems:
        line = curves_of.ece
        assert line is not None
        if alone and nothing is not None:
            axes.fill_between(line.x, line.y, nothing.y, color=colour, alpha=0.13, linewidth=0)
        axes.plot(line.x, line.y, color=colour, label="after these scores" if alone else None)
    axes.set_ylim(0, 1.3)
    legend_above(axes)
    axes.set_xlabel("attacker's prior belief: log10 of the odds")
    axes.set_ylabel("remaining uncertainty, bits")


def _compute(context: EvaluationContext) -> FamilyResult:
    entries = figures(context.pool, context.pool_weights, context.counts)
    return FamilyResult(entries, curves=curves(context.counts))


FAMILY = Family(
    key="zebra",
    position=40,
    title="Expected and worst case (ZEBRA)",
    caveat="The tag depends on the number of trials: perfect separation of a few scores still "
           "gives B or C. Compare it with the ceiling for these counts. It is an estimate of the "
           "worst case, not a bound.",
    needs=("pool",),
    figures=(
        FigureEntry("d_ece", "zebra.d_ece_bits",
                    "mean bits disclosed, over all prior beliefs", LimitRule("fitted"),
                    label="D_ECE", unit="bits", ceiling=CEILING_BITS, floor=0.0, ties="pooled"),
        FigureEntry("log10_l", "zebra.log10_l",
                    "the strongest evidence in any score, decimal logarithm",
                    LimitRule("none", reason="one trial decides it"), label="log10 l", unit="log10",
                    ties="pooled"),
        FigureEntry("tag", "zebra.tag", "its category, 0 and A to F", label="ZEBRA tag",
                    ties="pooled"),
    ),
    compute=_compute,
    main=("zebra.d_ece_bits", "zebra.tag"),
    drawings=(
        Drawing("ece", "Remaining uncertainty for any prior belief",
                "Empirical cross-entropy after ideal calibration of the scores. ZEBRA's expected "
                "disclosure is the area between this curve and no evidence, averaged over all "
                "beliefs.", _paint_ece),
    ),
)  # fmt: skip
