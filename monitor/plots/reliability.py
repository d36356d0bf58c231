"""Is the posterior calibrated? Probability claimed against how often it came true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from monitor.errors import UsageError
from monitor.plots.canvas import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    draw,
    format_seconds,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_reliability"]

_MOST_LINES = 5
_FEWEST = 8.0  # candidates behind a point: fewer say nothing


def plot_reliability(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw the reliability diagram of the largest set of features, a panel for each session.

    Of the candidates given probability p by a fit that left their trial's speaker out, a fraction
    p should be that speaker: the diagonal. Lengths T are lines; the template length is the
    largest that most lengths reach.

    Args:
        rows: cells of a calibration, with ``reliability`` and ``calibration_error``.
        path: where to write; .png, .svg or .pdf.

    Raises:
        UsageError: no cell, another suffix, or the place cannot be written.
    """
    if not rows:
        raise UsageError("a reliability diagram needs at least one calibrated length")
    feature = max((row["feature"] for row in rows), key=lambda name: name.count("+"))
    mine = [row for row in rows if row["feature"] == feature]
    sessions = [s for s in ("cross", "same") if any(row["session"] == s for row in mine)]

    def paint(figure: Figure) -> None:
        figure.text(
            0.07, 0.94, f"Does {feature} claim as much as it knows?", fontsize=16, weight="bold",
            color=BLACK,
        )  # fmt: skip
        width = 0.86 / len(sessions)
        for i, session in enumerate(sessions):
            axes = figure.add_axes((0.07 + i * (width + 0.03), 0.13, width - 0.03, 0.72))
            _panel(axes, session, [row for row in mine if row["session"] == session])
        figure.text(
            0.07, 0.02, "Each point: candidates given about that probability by a fit without "
            "their speaker (of fewer than 8, none). Above the diagonal it is too modest, below it "
            "boasts.",
            fontsize=10, color=GREY,
        )  # fmt: skip

    draw(path, paint, (6.5 * len(sessions) + 0.5, 6.5))


def _panel(axes: Axes, session: str, rows: Sequence[Mapping[str, Any]]) -> None:
    reach = {d: sum(row["D"] == d for row in rows) for d in sorted({row["D"] for row in rows})}
    template = max(reach, key=lambda d: (reach[d], d))
    lines = sorted((row for row in rows if row["D"] == template), key=lambda row: row["T"])
    lines = [row for row in lines if row["T"] >= 1.0] or lines
    picks = np.unique(np.linspace(0, len(lines) - 1, min(_MOST_LINES, len(lines))).round())
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle=":")
    colours = (BLUE, GREEN, ORANGE, RED, PURPLE)
    for row, colour in zip([lines[int(i)] for i in picks], colours, strict=False):
        given, true, share = (np.array(row["reliability"][n]) for n in ("given", "true", "share"))
        many = share * row["trials"] * row["candidates"] >= _FEWEST
        given, true, share = given[many], true[many], share[many]
        text = f"{format_seconds(row['T'])}: off by {row['calibration_error']:.2f}"
        axes.plot(given, true, color=colour, linewidth=1.2, label=text)
        sizes = 12 + 60 * np.sqrt(share * row["candidates"])
        axes.scatter(given, true, s=sizes, color=colour, alpha=0.6)
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel("probability given")
    axes.set_ylabel("fraction who are the speaker")
    axes.set_title(
        f"{session} session, templates of {format_seconds(template)}", fontsize=11, color=BLACK,
        loc="left",
    )  # fmt: skip
    axes.legend(
        loc="upper left", frameon=False, fontsize=9.5, title="speech heard: error of the best guess"
    )
