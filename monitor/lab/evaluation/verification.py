"""Speaker verification: discrimination of equal and different speakers by pooled scores.

Measures: the equal error rate by two rules, Cllr of the scores as log-likelihood ratios, and Cllr
after ideal calibration (min Cllr).

Source: Brummer and du Preez, 2006, for Cllr and the ROC's convex hull; the nearest threshold is
VoicePrivacy's rule (docs/method.md section 8).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from monitor.errors import UsageError
from monitor.lab.evaluation.counts import ScoreCounts, cost_bits
from monitor.lab.evaluation.curves import POINTS, Drawing, Line, Systems
from monitor.lab.evaluation.family import (
    EvaluationContext,
    Family,
    FamilyResult,
    FigureEntry,
    LimitRule,
)  # fmt: skip
from monitor.lab.report.model import Figure
from monitor.maths.roc import Blocks, Counts, count_scores, pool, scores_of
from monitor.plots.canvas import MUTED, percents
from monitor.protocols import ScoredComparisons
from monitor.types import DoubleArray, FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# False rejects are mated scores below a threshold, false accepts non-mated ones at or above it.
EER_RULES = ("nearest", "rocch")  # definitions of the point of equal error rates
NEAREST, HULL = "verification.eer_nearest", "verification.eer_rocch"
EER = {NEAREST: "EER", HULL: "EER (convex hull)"}
"""Short label of the equal error rate by each rule: plain EER is at the nearest threshold."""


def eer(mated: ArrayLike, non_mated: ArrayLike, rule: str = "nearest") -> float:
    """Compute the equal error rate.

    Args:
        mated: scores of the same speaker, any shape. Higher scores mean more alike.
        non_mated: scores of different speakers, any shape.
        rule: ``"nearest"`` is the mean of both rates at the threshold where they differ least, the
            lower of two, as in VoicePrivacy. ``"rocch"`` is the equal rate on the convex hull of
            the ROC, at most one half (Brummer and du Preez, 2013). With four scores each, one rule
            can read 50 % and the other 37.5 %.

    Example:
        >>> own, others = [0.3, 0.5, 0.7, 0.9], [0.2, 0.4, 0.6, 0.8]
        >>> eer(own, others), eer(own, others, "rocch")
        (0.5, 0.375)
    """
    if rule not in EER_RULES:
        raise UsageError(f"unknown EER rule {rule!r}: use one of {', '.join(EER_RULES)}")
    counts = count_scores(mated, non_mated)
    if rule == "rocch":
        return float(rocch_of_blocks(pool(counts.mated, counts.non_mated))[0])
    return nearest_of_counts(counts, scores_of(mated, non_mated)[1])


def det_curve(mated: ArrayLike, non_mated: ArrayLike) -> tuple[DoubleArray, DoubleArray]:
    """Compute the corners of the detection error trade-off, from (1, 0) to (0, 1).

    Example:
        >>> accepts, rejects = det_curve([0.5, 0.9], [0.1, 0.6])
        >>> accepts.tolist(), rejects.tolist()
        ([1.0, 0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5, 1.0])
    """
    return det_points(count_scores(mated, non_mated))


def det_points(counts: Counts, maximum: int = 2000) -> tuple[DoubleArray, DoubleArray]:
    """Compute `det_curve` of counts, with about `maximum` points evenly over the rates."""
    full = (counts.mated > 0) | (counts.non_mated > 0)
    false_rejects = np.cumsum(counts.mated[full]) / counts.mated_total
    false_accepts = 1 - np.cumsum(counts.non_mated[full]) / counts.non_mated_total
    rejects = np.concatenate([[0.0], false_rejects])
    accepts = np.concatenate([[1.0], np.clip(false_accepts, 0.0, 1.0)])
    if len(rejects) > maximum:
        steps = np.linspace(0.0, 2.0, maximum)
        keep = np.unique(np.searchsorted(rejects + 1 - accepts, steps))
        keep = np.concatenate([keep[keep < len(rejects) - 1], [len(rejects) - 1]])
        rejects, accepts = rejects[keep], accepts[keep]
    return accepts, rejects


def rocch_of_blocks(blocks: Blocks) -> DoubleArray:
    """Compute the equal error rate of each draw on the hull, of which blocks are the edges."""
    mated, non_mated = blocks.sums(blocks.mated), blocks.sums(blocks.non_mated)
    first = np.searchsorted(blocks.replicate, np.arange(blocks.replicates))
    below, under = (_before(x, first, blocks) for x in (blocks.mated, blocks.non_mated))
    total, others = mated[blocks.replicate], non_mated[blocks.replicate]
    # false rejects minus false accepts at the end of each block, times both totals (integers)
    end = (below + blocks.mated) * others + (under + blocks.non_mated) * total - total * others
    at = first + blocks.sums((end < 0).astype(np.float64)).astype(np.intp)
    step = blocks.mated * others + blocks.non_mated * total
    rate = below[at] + blocks.mated[at] * (1 - end[at] / step[at])
    return np.asarray(rate / mated)


def _before(values: FloatArray, first: NDArray[np.intp], blocks: Blocks) -> DoubleArray:
    """Sum the earlier blocks of the same draw."""
    sums = np.cumsum(values) - values
    return np.asarray(sums - sums[first][blocks.replicate])


def _crossing(counts: Counts) -> tuple[NDArray[np.intp], DoubleArray, DoubleArray]:
    """Find the first cell (...) where rejects reach accepts, and both counts at its ends (..., 2).

    Counts compare without rounding.
    """
    total, others = counts.mated_total[..., None], counts.non_mated_total[..., None]
    rejected = np.cumsum(counts.mated, axis=-1)
    accepted = others - np.cumsum(counts.non_mated, axis=-1)
    at = np.argmax(rejected * others >= accepted * total, axis=-1)[..., None]
    ends = np.concatenate([at, at + 1], axis=-1)
    rejected = np.concatenate([np.zeros_like(total), rejected], axis=-1)
    accepted = np.concatenate([others, accepted], axis=-1)
    return at[..., 0], *(np.take_along_axis(x, ends, -1) for x in (rejected, accepted))


def nearest_of_replicates(counts: Counts) -> DoubleArray:
    """Compute EER of each replicate, (B,); scores in a gap count as all different."""
    at, rejected, accepted = _crossing(counts)
    rejects = rejected / counts.mated_total[..., None]
    accepts = accepted / counts.non_mated_total[..., None]
    gaps = np.abs(rejects - accepts)
    best = np.where(gaps[..., 0] <= gaps[..., 1], 0, 1)[..., None]
    middle = (np.take_along_axis(rejects, best, -1) + np.take_along_axis(accepts, best, -1)) / 2
    in_gap = np.take_along_axis(counts.mated, at[..., None], -1) == 0
    return np.asarray(np.where(in_gap, rejects[..., :1], middle)[..., 0])


def nearest_of_counts(counts: Counts, non_mated: FloatArray | ScoredComparisons) -> float:
    """Compute EER at the nearest threshold; in a gap, every non-mated score is a threshold."""
    at, rejected, accepted = _crossing(counts)
    total, others = float(counts.mated_total), float(counts.non_mated_total)
    cell = int(at)
    if counts.mated[cell] == 0 and rejected[1] * others != accepted[1] * total:
        low = counts.cuts[cell - 1] if cell else -np.inf
        high = counts.cuts[cell] if cell < len(counts.cuts) else np.inf
        below = np.unique(_between(non_mated, low, high), return_counts=True)[1]
        accepted = accepted[0] - np.concatenate([[0.0], np.cumsum(below)])
        rejected = np.full(len(accepted), rejected[0])
    # the lower of two equally near thresholds, as in SpeechBrain and VoicePrivacy
    best = int(np.argmin(np.abs(rejected * others - accepted * total)))
    return float(rejected[best] / total + accepted[best] / others) / 2


def _between(scores: FloatArray | ScoredComparisons, low: float, high: float) -> DoubleArray:
    if isinstance(scores, np.ndarray):
        return np.asarray(scores[(scores >= low) & (scores < high)])
    blocks = (block for _, block in scores.non_mated_blocks())
    return np.concatenate([block[(block >= low) & (block < high)] for block in blocks])


def cllr(mated: ArrayLike, non_mated: ArrayLike) -> float:
    """Compute the cost of log-likelihood ratios (Brummer and du Preez, 2006).

    Scores must be LLRs in nats, any shape. Cllr has no meaning for other scores, such as cosines.
    The result is in bits, 1 for uninformative LLRs and more for misleading ones.

    Example:
        >>> cllr([0.0, 0.0], [0.0])
        1.0
    """
    mated_scores, others = scores_of(mated, non_mated)
    return float(cost_bits(-mated_scores) / mated_scores.size + cost_bits(others) / others.size) / 2


def min_cllr(mated: ArrayLike, non_mated: ArrayLike) -> float:
    """Compute Cllr after the best monotone calibration on the same scores: bits, 0 to 1.

    Example:
        >>> min_cllr([0.5, 0.5], [0.5, 0.5]), min_cllr([0.9], [0.1])
        (1.0, 0.0)
    """
    counts = count_scores(mated, non_mated)
    return float(min_cllr_of_blocks(pool(counts.mated, counts.non_mated))[0])


def min_cllr_of_blocks(blocks: Blocks) -> DoubleArray:
    """Compute `min_cllr` of each replicate, shape (replicates,), in bits."""
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
    """Compute EER by both rules, Cllr of the raw scores and min Cllr."""
    counts = counts or ScoreCounts.from_scores(scores, weights)
    replicates, blocks, costs = counts.replicates, counts.replicate_blocks, counts.replicate_costs
    hull = float(rocch_of_blocks(counts.blocks)[0])
    nearest = nearest_of_counts(counts.exact, scores)
    calibrated = float(min_cllr_of_blocks(counts.blocks)[0])
    coarse = "the interval is computed on a coarser grid than the value" if counts.coarse else ""
    figure = FAMILY.figure
    return (
        figure("eer_nearest", nearest, nearest_of_replicates(replicates) if replicates else None,
               coarse),
        figure("eer_rocch", hull, rocch_of_blocks(blocks) if blocks else None, coarse),
        figure("cllr_bits", float(counts.costs.mean()),
             None if costs is None else costs.mean(axis=1),
             "only meaningful if scores are log-likelihood ratios in nats"),
        figure("min_cllr_bits", calibrated, min_cllr_of_blocks(blocks) if blocks else None, coarse),
    )  # fmt: skip


def curves(counts: ScoreCounts) -> dict[str, Line]:
    """Compute the curves to draw; points of the ROC are even in log false positives."""
    mated, others = counts.exact.mated, counts.exact.non_mated
    hits = np.concatenate([[0.0], np.cumsum(mated[::-1])]) / counts.exact.mated_total
    alarms = np.concatenate([[0.0], np.cumsum(others[::-1])])
    wanted = np.geomspace(1.0, float(alarms[-1]), POINTS)
    at = np.unique(np.searchsorted(alarms, np.concatenate([[0.0], wanted]), side="right") - 1)
    accepts, rejects = det_points(counts.exact, maximum=POINTS)
    return {"roc": Line(alarms[at] / alarms[-1], hits[at]), "det": Line(accepts, rejects)}


def _paint_roc(axes: Axes, systems: Systems) -> None:
    resolved = min(1 / curves_of.non_mated for _, curves_of in systems)
    start = max(min(0.3 * resolved, 3e-4), 1e-6)
    axes.set_xscale("log")
    for colour, curves_of in systems:
        assert curves_of.roc is not None
        axes.step(np.maximum(curves_of.roc.x, start), curves_of.roc.y, where="post", color=colour)
    x = np.geomspace(start, 1, 100)
    axes.plot(x, x, color=MUTED, linestyle=":", linewidth=1)
    axes.axvspan(start, max(start, resolved), color=MUTED, alpha=0.15, linewidth=0)
    axes.set(xlim=(start, 1), ylim=(0, 1.02))
    percents(axes.xaxis)
    percents(axes.yaxis)
    shaded = " (shaded: fewer than one score)" if resolved > start else ""
    axes.set(xlabel=f"false positive rate{shaded}", ylabel="true positive rate")


def _paint_det(axes: Axes, systems: Systems) -> None:
    paint_det(axes, [(colour, curves.det) for colour, curves in systems if curves.det is not None])


def paint_det(axes: Axes, lines: Iterable[tuple[str, Line]]) -> None:
    """Draw miss rate against false alarm rate, on normal deviates; each line with its colour."""
    from scipy.special import ndtri

    ticks = np.array([0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99])
    edge = 5e-4
    for colour, line in lines:
        x, y = (np.clip(v, edge / 10, 1 - edge / 10) for v in (line.x, line.y))
        axes.plot(ndtri(x), ndtri(y), color=colour)
    axes.plot(ndtri([edge, 1 - edge]), ndtri([1 - edge, edge]), color=MUTED, linestyle=":")
    axes.plot(ndtri([edge, 1 - edge]), ndtri([edge, 1 - edge]), color=MUTED, linewidth=0.6)
    for axis, limits in ((axes.xaxis, axes.set_xlim), (axes.yaxis, axes.set_ylim)):
        axis.set_ticks(ndtri(ticks).tolist(), [f"{100 * tick:g} %" for tick in ticks])
        limits(ndtri(edge), ndtri(1 - edge))
    axes.set(xlabel="false alarms", ylabel="misses")


def _compute(context: EvaluationContext) -> FamilyResult:
    entries = figures(context.pool, context.pool_weights, context.counts)
    return FamilyResult(entries, curves=curves(context.counts))


FAMILY = Family(
    key="verification",
    position=50,
    title="Verification",
    caveat="The equal error rate is the error at one threshold, which no attacker needs to use. "
    "Systems with the same EER can differ a hundredfold in hits at low false positive rates. Its "
    "two rules differ on few or tied scores.",
    needs=("pool",),
    figures=(
        FigureEntry("eer", NEAREST,
                    "equal error rate at the nearest threshold (VoicePrivacy); 50 % is no evidence",
                    LimitRule("share", maximum=1.0), label="EER (nearest threshold)", unit="share",
                    floor=0.5, ties="pooled"),
        FigureEntry("eer_rocch", HULL,
                    "the same on the convex hull of the ROC (ROCCH-EER)",
                    LimitRule("fitted", maximum=0.5), label=EER[HULL], unit="share",
                    floor=0.5, ties="pooled"),
        FigureEntry("cllr", "verification.cllr_bits",
                    "cost of the scores as log-likelihood ratios, bits",
                    LimitRule("t", neutral=np.nan), label="Cllr", unit="bits", floor=1.0),
        FigureEntry("min_cllr", "verification.min_cllr_bits",
                    "that cost after ideal calibration; 1 is no evidence",
                    LimitRule("fitted", maximum=1.0), label="min Cllr", unit="bits", floor=1.0,
                    ties="pooled"),
    ),
    compute=_compute,
    main=(NEAREST, HULL, "verification.min_cllr_bits"),
    drawings=(
        Drawing("roc", "True positives at few false positives",
                "Dotted curve: guessing. An attacker who must not be wrong works on the far left.",
                _paint_roc),
        Drawing("det", "Misses against false alarms",
                "Detection error trade-off; the equal error rate is where a curve meets the "
                "diagonal. The dotted line is guessing.", _paint_det),
    ),
)  # fmt: skip
