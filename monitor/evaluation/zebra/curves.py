"""The picture of ZEBRA: empirical cross-entropy for every prior belief."""

from __future__ import annotations

from typing import Any

import numpy as np

from monitor.evaluation.scores.counts import ScoreCounts
from monitor.evaluation.zebra.ece import profile_of_blocks
from monitor.plots.evaluation import Drawing, Line, paint_ece

__all__ = ["DRAWINGS", "curves"]

_PRIORS = 61

DRAWINGS = (
    Drawing(
        "ece",
        "What is left to learn, whatever the attacker believed before",
        "Empirical cross-entropy after ideal calibration of the scores. The space below no "
        "evidence, averaged over all beliefs, is ZEBRA's expected disclosure.",
        paint_ece,
    ),
)


def curves(counts: ScoreCounts) -> dict[str, Any]:
    """What is drawn of all scores."""
    profile = profile_of_blocks(counts.blocks, np.linspace(-3.0, 3.0, _PRIORS) * np.log(10.0))
    priors = profile.prior_log_odds / np.log(10.0)
    return {"ece": Line(priors, profile.calibrated), "ece_nothing": Line(priors, profile.default)}
