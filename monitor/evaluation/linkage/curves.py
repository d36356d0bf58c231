"""The picture of linkability: pi_link against the number of people to choose from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from monitor.plots.axes import legend_above, numbers, percents
from monitor.plots.evaluation import Drawing, Systems
from monitor.plots.inline import MUTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["DRAWINGS"]


def _paint_linkage(axes: Axes, systems: Systems) -> None:
    """Chance to link against the number of people to choose from."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    for colour, each in systems:
        assert each.linkage is not None
        axes.plot(each.linkage.x, each.linkage.y, color=colour)
    sizes = np.geomspace(2, max(each.speakers for _, each in systems), 50)
    axes.plot(sizes, 1 / sizes, color=MUTED, linestyle=":", label="by chance")
    legend_above(axes)
    numbers(axes.xaxis)
    percents(axes.yaxis)
    axes.set_xlabel("people to choose from")
    axes.set_ylabel("chance to pick the right one")


DRAWINGS = (
    Drawing(
        "linkage",
        "The smaller the circle, the easier",
        "Chance that the speaker is the best match among N′ people.",
        _paint_linkage,
    ),
)
