"""Picture of a recording before and after it was held to a budget of bits, on its clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from monitor.phrases import clock_time
from monitor.plots.canvas import BLACK, BLUE, GREY, ORANGE, RED, draw, legend_above, nice_seconds
from monitor.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_INCHES = (9.0, 4.4)
_SHADE = "#E8E8E8"


@dataclass(frozen=True, slots=True)
class ScrubCurves:
    """Curves to draw; seconds are those of the recording.

    Attributes:
        title: what was done, in a line.
        before, after: seconds and bits of the strongest attacker of each second, shape (k,) each.
        changed: from when to when something was cut, silenced or protected.
        change: what that was.
    """

    title: str
    budget: float
    before: tuple[FloatArray, FloatArray]
    after: tuple[FloatArray, FloatArray]
    changed: Sequence[tuple[float, float]]
    change: str
    seconds: float


def plot_scrubbed(path: Path, curves: ScrubCurves) -> None:
    """Write the picture as .png, .svg or .pdf."""

    def paint(figure: Figure) -> None:
        figure.set_layout_engine("constrained")
        axes = figure.add_subplot()
        for n, (start, end) in enumerate(curves.changed):
            axes.axvspan(
                start, end, color=_SHADE, linewidth=0, label=curves.change if not n else None
            )
        axes.plot(*curves.before, color=ORANGE, linewidth=1.6, label="before")
        axes.plot(*curves.after, color=BLUE, linewidth=1.8, marker="o", markersize=2.5,
                  label="after")  # fmt: skip
        axes.axhline(curves.budget, color=RED, linewidth=1, linestyle="--", label="budget")
        axes.set_xlim(0, curves.seconds)
        axes.set_ylim(bottom=min(0.0, *curves.before[1].tolist(), *curves.after[1].tolist()))
        ticks = [t for t in nice_seconds(curves.seconds / 8, curves.seconds) if t > 0]
        step = ticks[0] if ticks else curves.seconds
        axes.set_xticks([k * step for k in range(int(curves.seconds / step) + 1)])
        axes.xaxis.set_major_formatter(lambda value, _: clock_time(value))
        axes.set_xlabel("time in the recording")
        axes.set_ylabel("bits, strongest attacker tried")
        legend_above(axes)
        figure.suptitle(curves.title, fontsize=11, color=BLACK, x=0.01, ha="left")
        figure.supxlabel(
            "At each second the most that any attacker tried has by then; stronger ones learn "
            "more.", fontsize=8.5, color=GREY, x=0.01, ha="left",
        )  # fmt: skip

    draw(path, paint, _INCHES)
