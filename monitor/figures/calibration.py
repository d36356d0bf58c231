"""What calibration learnt, as a picture: expected bits against speech seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from monitor.figures.canvas import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    draw,
    format_seconds,
    nice_seconds,
    spread_apart,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_laws"]


def plot_laws(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw the model's MeanD with its limits against T, a line for each (feature, session, D).

    Args:
        rows: dicts with ``feature``, ``session``, ``T`` and ``D`` (speech seconds), and
            ``mean_bits_model``, ``mean_bits_low``, ``mean_bits_high``; null figures are left out.
        path: where to write; .png, .svg or .pdf.

    Raises:
        UsageError: another suffix, or the place cannot be written.
    """
    lines: dict[tuple[str, str, float], list[tuple[float, float, float, float]]] = {}
    for row in rows:
        bits, length = row["mean_bits_model"], row["T"]
        if bits is None or length <= 0:
            continue
        low, high = row.get("mean_bits_low"), row.get("mean_bits_high")
        point = (length, bits, bits if low is None else low, bits if high is None else high)
        key = (str(row.get("feature", "")), str(row["session"]), row["D"])
        lines.setdefault(key, []).append(point)

    def paint(figure: Figure) -> None:
        axes = figure.add_axes((0.085, 0.12, 0.655, 0.75))
        lengths = [point[0] for line in lines.values() for point in line] or [1.0, 60.0]
        left, right = min(lengths), max(lengths)
        left = left if right > left else right / 4
        axes.set_xscale("log")
        axes.set_xlim(left, right)
        ticks = nice_seconds(left, right)
        axes.set_xticks(ticks, [format_seconds(tick) for tick in ticks])
        axes.set_xticks([], minor=True)
        ends = []
        colours = cycle((BLUE, RED, GREEN, PURPLE, ORANGE, BLACK))
        for (feature, session, template), points in sorted(lines.items()):
            colour = next(colours)
            x, y, low, high = np.array(sorted(points), float).T
            axes.fill_between(x, low, high, color=colour, alpha=0.12, linewidth=0)
            dashes = (0, (5, 2)) if session == "same" else "-"
            axes.plot(x, y, color=colour, linewidth=1.8, marker="o", markersize=4, ls=dashes)
            name = f"{feature}, {session} session, templates {format_seconds(template)}"
            ends.append((float(y[-1]), name.removeprefix(", "), colour, float(x[-1])))
        bottom, top = axes.get_ylim()
        bottom, top = min(bottom, 0.0), max(top, 0.5)
        axes.set_ylim(bottom, top)
        ends.sort()
        wanted = [(y - bottom) / (top - bottom) for y, _, _, _ in ends]
        centres = spread_apart(wanted, [0.04] * len(ends), -0.1, 1.1)
        for y, centre, (_, text, colour, x_end) in zip(wanted, centres, ends, strict=True):
            start = np.log(x_end / left) / np.log(right / left)
            axes.plot(
                [start, 1.022, 1.03], [y, centre, centre], transform=axes.transAxes,
                color=colour, linewidth=0.7, linestyle=":", clip_on=False,
            )  # fmt: skip
            axes.text(
                1.036, centre, text, transform=axes.transAxes, va="center", color=colour,
                fontsize=9.5,
            )  # fmt: skip
        axes.grid(axis="y", color="#E6E6E6", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.set_xlabel("speech heard, T (log scale)")
        axes.set_ylabel("expected bits")
        figure.text(
            0.085, 0.925, "What a voice discloses on average, by the length heard", fontsize=16,
            weight="bold", color=BLACK,
        )  # fmt: skip
        figure.text(
            0.085, 0.022, "MeanD of the rank law's model; bands: 95 % limits over resampled "
            "calibration speakers.", fontsize=10, color=GREY,
        )  # fmt: skip

    draw(path, paint, (12, 7.5))
