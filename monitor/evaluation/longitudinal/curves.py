"""The picture of several trials of a speaker: bits against their number, beside its guides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from monitor.plots.axes import legend_above
from monitor.plots.evaluation import Drawing, Systems
from monitor.plots.inline import MUTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["DRAWINGS"]


def _paint_heard(axes: Axes, systems: Systems) -> None:
    """Bits against the number of trials of a speaker, beside the guides."""
    alone = len(systems) == 1
    for colour, each in systems:
        line = each.heard
        assert line is not None
        if line.low is not None and line.high is not None:
            axes.fill_between(line.x, line.low, line.high, color=colour, alpha=0.16, linewidth=0)
        axes.plot(
            line.x, line.y, "o-", color=colour, markersize=3.5, label="measured" if alone else None
        )
        for (name, guide), dashes in zip(each.guides.items(), ("--", ":"), strict=False):
            axes.plot(
                guide.x, guide.y, color=colour, linestyle=dashes, linewidth=1, alpha=0.8,
                label=name if alone else None,
            )  # fmt: skip
        axes.axhline(each.ceiling_bits, color=MUTED, linewidth=0.8, linestyle=(0, (1, 2)))
    most = max(each.ceiling_bits for _, each in systems)
    lowest = min(float(np.nanmin(each.heard.y)) for _, each in systems if each.heard is not None)
    axes.set_ylim(min(0.0, 1.1 * lowest), 1.09 * most)
    axes.annotate(
        "ceiling", (0.99, most), xycoords=("axes fraction", "data"), ha="right", va="bottom",
        color=MUTED, fontsize=8,
    )  # fmt: skip
    axes.locator_params(axis="x", integer=True)
    if alone:
        legend_above(axes)
    axes.set_xlabel("trials of one speaker heard")
    axes.set_ylabel("bits disclosed, mean over speakers")


DRAWINGS = (
    Drawing(
        "heard",
        "What hearing more discloses",
        "Bits after several trials of one speaker, beside linear and square-root growth from the "
        "first. The guides are no guarantee.",
        _paint_heard,
    ),
)
