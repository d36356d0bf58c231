"""How often somebody is recognised among ever more people: measured, and by what forms say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from monitor.plots.axes import legend_above, percents
from monitor.plots.inline import MUTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from monitor.plots.evaluation import Curves, Line

__all__ = ["CrowdRates", "paint_crowd"]

_DASHES = ("-", "--", "-.", ":")


@dataclass(frozen=True)
class CrowdRates:
    """IdR against the number of people.

    Attributes:
        measured: among random parts of the enrolled, with limits over speakers where there are any.
        forms: by their labels, at any number of people.
        bracket: from the lowest to the highest of the forms with their limits, from N on; its y is
            no figure but the middle.
        speakers: N.
        supported: up to how many people N supports the bracket.
    """

    measured: Line
    forms: Mapping[str, Line]
    bracket: Line
    speakers: float
    supported: float


def paint_crowd(axes: Axes, systems: Sequence[tuple[str, Curves]]) -> None:
    """Draw one system with all forms by name, or several with their brackets.

    Args:
        axes: to draw on.
        systems: colour and curves, each with a `CrowdRates`.
    """
    axes.set_xscale("log")
    alone = len(systems) == 1
    for colour, each in systems:
        crowd = each.crowd
        assert crowd is not None
        _bracket(axes, crowd, colour)
        for dashes, (label, line) in zip(_DASHES, crowd.forms.items(), strict=False):
            axes.plot(
                line.x, line.y, color=colour, linestyle=dashes, linewidth=1.1,
                label=label if alone else None, alpha=1.0 if alone else 0.6,
            )  # fmt: skip
        dots = crowd.measured
        if dots.low is not None and dots.high is not None:
            axes.fill_between(dots.x, dots.low, dots.high, color=colour, alpha=0.25, linewidth=0)
        axes.plot(dots.x, dots.y, "o", color=colour, markersize=3.2, markeredgewidth=0)
        if crowd.supported < crowd.bracket.x[-1]:
            axes.axvline(crowd.supported, color=colour, linewidth=0.9, linestyle=(0, (1, 2)))
            if alone:
                _mark(axes, crowd)
    axes.set_ylim(0, 1.02)
    if alone:
        legend_above(axes, columns=2)
    _decades(axes)
    percents(axes.yaxis)
    axes.set_xlabel("people to choose from")
    axes.set_ylabel("share of trials: the right one first")


def _mark(axes: Axes, crowd: CrowdRates) -> None:
    """On the side of the line that has more room."""
    left, right = np.log(
        [crowd.supported / crowd.measured.x[0], crowd.bracket.x[-1] / crowd.supported]
    )
    side, gap = ("left", 3) if right > left / 2 else ("right", -3)
    axes.annotate(
        f"supported\nup to {crowd.supported:,.0f}", (crowd.supported, 0.985),
        xycoords=("data", "axes fraction"), xytext=(gap, 0), textcoords="offset points",
        ha=side, va="top", color=MUTED, fontsize=8,
    )  # fmt: skip


def _bracket(axes: Axes, crowd: CrowdRates, colour: str) -> None:
    """Full where N people support it, pale beyond."""
    line = crowd.bracket
    assert line.low is not None
    assert line.high is not None
    near = np.append(line.x[line.x < crowd.supported], min(crowd.supported, line.x[-1]))
    far = np.append(near[-1], line.x[line.x > near[-1]])
    for x, alpha in ((near, 0.25), (far, 0.1)):
        low, high = (np.interp(np.log(x), np.log(line.x), end) for end in (line.low, line.high))
        axes.fill_between(x, low, high, color=colour, alpha=alpha, linewidth=0)


def _decades(axes: Axes) -> None:
    """Thousands and millions in letters: all zeros would not fit."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    def written(value: float, _: object) -> str:
        for unit, letter in ((1e9, "bn"), (1e6, "M"), (1e3, "k")):
            if value >= unit:
                return f"{value / unit:g}{letter}"
        return f"{value:g}"

    axes.xaxis.set_major_formatter(FuncFormatter(written))
    axes.xaxis.set_minor_formatter(NullFormatter())
