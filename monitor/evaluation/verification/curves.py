"""The pictures of verification: the ROC and the DET curve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from monitor.evaluation.scores.counts import ScoreCounts
from monitor.evaluation.verification.error_rates import det_points
from monitor.plots.axes import percents
from monitor.plots.evaluation import POINTS, Drawing, Line, Systems
from monitor.plots.inline import MUTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["DRAWINGS", "curves", "roc_line"]


def curves(counts: ScoreCounts) -> dict[str, Any]:
    """What is drawn of all scores."""
    accepts, rejects = det_points(counts.exact, most=POINTS)
    return {"roc": roc_line(counts), "det": Line(accepts, rejects)}


def roc_line(counts: ScoreCounts) -> Line:
    """True against false positive rate, spread evenly over the logarithm of the latter."""
    own, others = counts.exact.mated, counts.exact.non_mated
    hits = np.concatenate([[0.0], np.cumsum(own[::-1])]) / counts.exact.mated_total
    alarms = np.concatenate([[0.0], np.cumsum(others[::-1])])
    wanted = np.geomspace(1.0, float(alarms[-1]), POINTS)
    at = np.unique(np.searchsorted(alarms, np.concatenate([[0.0], wanted]), side="right") - 1)
    return Line(alarms[at] / alarms[-1], hits[at])


def _paint_roc(axes: Axes, systems: Systems) -> None:
    """True against false positive rate, the latter as its logarithm."""
    resolved = min(1 / each.non_mated for _, each in systems)
    left = max(min(0.3 * resolved, 3e-4), 1e-6)
    axes.set_xscale("log")
    for colour, each in systems:
        assert each.roc is not None
        axes.step(np.maximum(each.roc.x, left), each.roc.y, where="post", color=colour)
    x = np.geomspace(left, 1, 100)
    axes.plot(x, x, color=MUTED, linestyle=":", linewidth=1)
    axes.axvspan(left, max(left, resolved), color=MUTED, alpha=0.15, linewidth=0)
    axes.set_xlim(left, 1)
    axes.set_ylim(0, 1.02)
    percents(axes.xaxis)
    percents(axes.yaxis)
    shaded = " (shaded: fewer than one score)" if resolved > left else ""
    axes.set_xlabel(f"false positive rate{shaded}")
    axes.set_ylabel("true positive rate")


def _paint_det(axes: Axes, systems: Systems) -> None:
    """Miss rate against false alarm rate, on normal deviates."""
    from scipy.special import ndtri

    ticks = np.array([0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99])
    edge = 5e-4
    for colour, each in systems:
        assert each.det is not None
        x, y = (np.clip(v, edge / 10, 1 - edge / 10) for v in (each.det.x, each.det.y))
        axes.plot(ndtri(x), ndtri(y), color=colour)
    axes.plot(ndtri([edge, 1 - edge]), ndtri([1 - edge, edge]), color=MUTED, linestyle=":")
    axes.plot(ndtri([edge, 1 - edge]), ndtri([edge, 1 - edge]), color=MUTED, linewidth=0.6)
    for axis, limits in ((axes.xaxis, axes.set_xlim), (axes.yaxis, axes.set_ylim)):
        axis.set_ticks(ndtri(ticks).tolist(), [f"{100 * tick:g} %" for tick in ticks])
        limits(ndtri(edge), ndtri(1 - edge))
    axes.set_xlabel("false alarms")
    axes.set_ylabel("misses")


DRAWINGS = (
    Drawing(
        "roc",
        "Sure hits: the true positives at few false ones",
        "Dotted curve: guessing. An attacker who must not be wrong works on the far left.",
        _paint_roc,
    ),
    Drawing(
        "det",
        "Misses against false alarms",
        "Detection error trade-off; the equal error rate is where a curve meets the diagonal. On "
        "the dotted line nothing is known.",
        _paint_det,
    ),
)
