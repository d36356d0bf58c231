"""The picture of LID: how many trials disclose at least so many bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from monitor.plots.axes import percents
from monitor.plots.evaluation import POINTS, Drawing, Line, Systems
from monitor.plots.inline import MUTED
from monitor.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["DRAWINGS", "exceeding"]


def exceeding(values: FloatArray) -> Line:
    """Share of the values that are at least so large, at evenly spread places.

    Example:
        >>> line = exceeding(np.array([1.0, 2.0, 2.0, 3.0]))
        >>> line.x.tolist(), line.y.tolist()
        ([1.0, 2.0, 2.0, 3.0], [1.0, 0.75, 0.75, 0.25])
    """
    ordered = np.sort(values)
    at = np.unique(np.linspace(0, len(ordered) - 1, min(POINTS, len(ordered))).astype(np.intp))
    x = ordered[at]
    above = len(ordered) - np.searchsorted(ordered, x, side="left")
    return Line(x, above / len(ordered))


def _paint_local(axes: Axes, systems: Systems) -> None:
    """How many trials disclose at least so many bits."""
    lines = [each.local_bits for _, each in systems if each.local_bits is not None]
    left = min(float(line.x[0]) for line in lines) - 0.3
    for (colour, each), line in zip(systems, lines, strict=True):
        axes.step([left, *line.x], [1.0, *line.y], where="pre", color=colour)
        _wall(axes, each.ceiling_bits)
    axes.axvline(0.0, color=MUTED, linewidth=0.8)
    axes.set_xlim(left=left)
    axes.set_ylim(0, 1.02)
    percents(axes.yaxis)
    axes.set_xlabel("local disclosure of a trial, bits (left of 0: misled)")
    axes.set_ylabel("share of trials with at least that")


def _wall(axes: Axes, bits: float) -> None:
    axes.axvline(bits, color=MUTED, linewidth=0.8, linestyle=(0, (1, 2)))


DRAWINGS = (
    Drawing(
        "local_bits",
        "How much single trials disclose",
        "Read at a number of bits how many trials disclose at least as much. The tail on the right "
        "is the worst case, left of 0 the attacker is misled.",
        _paint_local,
    ),
)
