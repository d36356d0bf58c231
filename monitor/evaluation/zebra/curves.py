"""The picture of ZEBRA: empirical cross-entropy for every prior belief."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from monitor.evaluation.scores.counts import ScoreCounts
from monitor.evaluation.zebra.ece import profile_of_blocks
from monitor.plots.axes import legend_above
from monitor.plots.evaluation import Drawing, Line, Systems
from monitor.plots.inline import MUTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["DRAWINGS", "curves"]

_PRIORS = 61


def curves(counts: ScoreCounts) -> dict[str, Any]:
    """What is drawn of all scores."""
    profile = profile_of_blocks(counts.blocks, np.linspace(-3.0, 3.0, _PRIORS) * np.log(10.0))
    priors = profile.prior_log_odds / np.log(10.0)
    return {"ece": Line(priors, profile.calibrated), "ece_nothing": Line(priors, profile.default)}


def _paint_ece(axes: Axes, systems: Systems) -> None:
    """Empirical cross-entropy against the prior."""
    alone, nothing = len(systems) == 1, systems[0][1].ece_nothing
    if nothing is not None:
        axes.plot(nothing.x, nothing.y, color=MUTED, linestyle=":", label="no evidence")
    for colour, each in systems:
        line = each.ece
        assert line is not None
        if alone and nothing is not None:
            axes.fill_between(line.x, line.y, nothing.y, color=colour, alpha=0.13, linewidth=0)
        axes.plot(line.x, line.y, color=colour, label="after these scores" if alone else None)
    axes.set_ylim(0, 1.3)
    legend_above(axes)
    axes.set_xlabel("what the attacker believed before: log10 of the odds")
    axes.set_ylabel("remaining uncertainty, bits")


DRAWINGS = (
    Drawing(
        "ece",
        "What is left to learn, whatever the attacker believed before",
        "Empirical cross-entropy after ideal calibration of the scores. The space below no "
        "evidence, averaged over all beliefs, is ZEBRA's expected disclosure.",
        _paint_ece,
    ),
)
