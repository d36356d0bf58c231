"""Marks on the curve of a run: alerts, gaps, changes of speaker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from monitor.crowds import SCALE
from monitor.phrases import voice_since
from monitor.plots.canvas import BLACK, BLUE, GREY, ORANGE, PURPLE, RED
from monitor.plots.series import RunColumns, short_name
from monitor.plots.words import in_bits
from monitor.types import BoolArray, FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "CHARACTER_WIDTH",
    "across",
    "draw_scale",
    "mark_alerts",
    "mark_changes",
    "mark_doubt",
    "mark_gaps",
    "mark_peak",
]

CHARACTER_WIDTH = 0.0093
"""Of a small character, in widths of the axes."""
APART = 0.03  # of upright texts, in widths of the axes


def across(axes: Axes, x: float) -> float:
    """Where x lies along the axis, 0 to 1."""
    left, right = np.log(axes.get_xlim())
    return float(np.clip((np.log(x) - left) / (right - left), 0, 1))


def draw_scale(axes: Axes) -> None:
    """The right axis: faint lines where bits of evidence leave one person of a crowd, named."""
    low, high = axes.get_ylim()
    for crowd in SCALE:
        if not low < crowd.bits < high:
            continue
        axes.axhline(crowd.bits, color=GREY, linewidth=0.7, linestyle=(0, (1, 4)), zorder=0)
        axes.annotate(
            crowd.name, (1.0, crowd.bits), xycoords=("axes fraction", "data"), xytext=(6, 0),
            textcoords="offset points", va="center", color=GREY, fontsize=10,
        )  # fmt: skip
    axes.text(1.008, 1.012, "one left of a", transform=axes.transAxes, color=GREY, fontsize=10)


def mark_peak(axes: Axes, x: float, y: float) -> None:
    """Mark the peak: a dot on the highest point."""
    bottom, top = axes.get_ylim()
    below = (y - bottom) / (top - bottom) > 0.82  # the guides' labels live up there
    axes.plot([x], [y], "o", color=BLUE, markersize=8, markeredgecolor="white", zorder=5)
    axes.annotate(
        f"peak {in_bits(y)}", (x, y), xytext=(0, -22 if below else 10), textcoords="offset points",
        ha="right" if across(axes, x) > 0.5 else "left", color=BLUE, weight="bold", zorder=6,
        bbox={"facecolor": "white", "alpha": 0.9, "edgecolor": "none", "pad": 1},
    )  # fmt: skip


def mark_doubt(axes: Axes, x: FloatArray, doubtful: BoolArray) -> None:
    """Shade the readings that may be of more voices than one.

    Args:
        axes: where.
        x: speech seconds of the readings, shape (n,).
        doubtful: shape (n,).
    """
    edges = np.flatnonzero(np.diff(doubtful.astype(int), prepend=0, append=0))
    for first, end in zip(edges[::2], edges[1::2], strict=True):
        low, high = float(x[max(first - 1, 0)]), float(x[end - 1])
        axes.axvspan(low, high, color=ORANGE, alpha=0.12, linewidth=0, zorder=0)


def mark_changes(axes: Axes, run: RunColumns) -> None:
    """Upright lines where another voice or channel began, with the time of the recording."""
    free = 0.0
    for change in run.changes:
        x = _place(axes, run, change["since_seconds"])
        axes.axvline(x, color=PURPLE, linewidth=1.2, linestyle=(0, (1, 2)))
        at = across(axes, x)
        if at < free:
            continue
        left = at > APART
        axes.text(
            at + (-0.004 if left else 0.004), 0.06, voice_since(change), transform=axes.transAxes,
            rotation=90, ha="right" if left else "left", va="bottom", color=PURPLE, fontsize=10,
            zorder=1,
        )  # fmt: skip
        free = at + APART


def mark_alerts(axes: Axes, run: RunColumns) -> None:
    """Upright lines where alerts were raised and where they were over."""
    free = 0.0
    for alert in run.alerts:
        x = _place(axes, run, alert["seconds"])
        raised = alert["state"] == "raised"
        axes.axvline(
            x, color=RED, linewidth=1.3 if raised else 1, alpha=0.9 if raised else 0.5,
            linestyle="-" if raised else (0, (4, 3)),
        )  # fmt: skip
        text = f"alert: {short_name(alert['rule'], 40)}" if raised else "alert over"
        half = len(text) * CHARACTER_WIDTH / 2
        centre = min(max(across(axes, x), half), 1 - half)
        if centre - half >= free:
            axes.text(
                centre, 1.012, text, transform=axes.transAxes, ha="center", color=RED, fontsize=10
            )
            free = centre + half + 0.01


def mark_gaps(axes: Axes, run: RunColumns) -> None:
    """Ticks on the axis where audio was lost."""
    if not run.gaps:
        return
    places = sorted({_place(axes, run, seconds) for seconds, _ in run.gaps})
    upwards = axes.get_xaxis_transform()
    axes.vlines(places, 0.0, 0.035, transform=upwards, color=BLACK, linewidth=2.5)
    first, last = across(axes, places[0]), across(axes, places[-1])
    after = last < 0.88 or first < 0.12
    axes.annotate(
        "audio lost", (min(last, 0.88) if after else first, 0.018), xycoords="axes fraction",
        xytext=(6 if after else -6, 0), textcoords="offset points", va="center", fontsize=10,
        ha="left" if after else "right", color=BLACK,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
    )  # fmt: skip


def _place(axes: Axes, run: RunColumns, seconds: float) -> float:
    """Where a stream time lies among the speech seconds that are shown."""
    left, right = axes.get_xlim()
    return min(max(run.speech_at(seconds), left), right)
