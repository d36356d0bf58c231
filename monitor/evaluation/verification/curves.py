"""The pictures of verification: the ROC and the DET curve."""

from __future__ import annotations

from typing import Any

import numpy as np

from monitor.evaluation.scores.counts import ScoreCounts
from monitor.evaluation.verification.error_rates import det_points
from monitor.plots.evaluation import POINTS, Drawing, Line, paint_det, paint_roc

__all__ = ["DRAWINGS", "curves", "roc_line"]

DRAWINGS = (
    Drawing(
        "roc",
        "Sure hits: the true positives at few false ones",
        "Dotted curve: guessing. An attacker who must not be wrong works on the far left.",
        paint_roc,
    ),
    Drawing(
        "det",
        "Misses against false alarms",
        "Detection error trade-off; the equal error rate is where a curve meets the diagonal. On "
        "the dotted line nothing is known.",
        paint_det,
    ),
)


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
