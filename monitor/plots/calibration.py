"""Pictures of a calibration: expected bits, and reliability of the posterior."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from monitor.errors import UsageError
from monitor.plots.canvas import BLACK, BLUE, GREY, draw, format_seconds, scale_seconds
from monitor.types import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_MOST_LINES = 5
_FEWEST = 8.0  # minimum candidates per point


def plot_reliability(rows: Sequence[Record], path: Path) -> None:
    """Draw the reliability diagram of the largest set of features, with one row per session.

    The fit that predicts probability p excludes the trial's speaker. If it is calibrated, a
    fraction p of these candidates is that speaker, which is the diagonal. Each panel is a length T.
    The template length is the largest that most lengths reach.
    """
    if not rows:
        raise UsageError("a reliability diagram needs at least one calibrated length")
    feature = max((row["feature"] for row in rows), key=lambda name: name.count("+"))
    shown = [row for row in rows if row["feature"] == feature]
    sessions = [s for s in ("cross", "same") if any(row["session"] == s for row in shown)]

    lines = [_pick_lengths([row for row in shown if row["session"] == s]) for s in sessions]
    columns = max(map(len, lines))

    def paint(figure: Figure) -> None:
        panels = figure.subplots(len(sessions), columns, squeeze=False, sharex=True, sharey=True)
        figure.subplots_adjust(0.11, 0.32 / len(sessions), 0.98, 0.80, wspace=0.12, hspace=0.45)
        figure.text(
            0.02, 0.93, f"Are the probabilities of {feature} calibrated?", fontsize=15,
            weight="bold", color=BLACK,
        )  # fmt: skip
        for axes, session, rows_of in zip(panels, sessions, lines, strict=True):
            for panel, row in zip(axes, rows_of, strict=False):
                _panel(panel, row)
            for panel in axes[len(rows_of) :]:
                panel.set_axis_off()
            template = format_seconds(rows_of[0]["D"])
            axes[0].text(-0.02, 1.24, f"{session} session, templates of {template}",
                         transform=axes[0].transAxes, fontsize=11, color=GREY)  # fmt: skip
            axes[0].set_ylabel("fraction that is\nthe speaker")
        figure.text(
            0.02, 0.02, "Across: predicted probability, from a fit without the speaker. Each "
            "circle is of 8 candidates or more.\nAbove the diagonal: underconfident. Below: "
            "overconfident. Titles: speech, and the error of the best guess.",
            fontsize=10, color=GREY,
        )  # fmt: skip

    draw(path, paint, (max(2.1 * columns, 6.5), 1.4 + 2.5 * len(sessions)))


def _pick_lengths(rows: Sequence[Record]) -> list[Record]:
    """Pick at most five lengths, at the largest template length that most lengths reach."""
    reach = {d: sum(row["D"] == d for row in rows) for d in sorted({row["D"] for row in rows})}
    template = max(reach, key=lambda d: (reach[d], d))
    lines = sorted((row for row in rows if row["D"] == template), key=lambda row: row["T"])
    lines = [row for row in lines if row["T"] >= 1.0] or lines
    picks = np.unique(np.linspace(0, len(lines) - 1, min(_MOST_LINES, len(lines))).round())
    return [lines[int(i)] for i in picks]


def _panel(axes: Axes, row: Record) -> None:
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle=":")
    claimed, actual, fraction = (
        np.array(row["reliability"][n]) for n in ("given", "true", "share")
    )
    enough = fraction * row["trials"] * row["candidates"] >= _FEWEST
    claimed, actual, fraction = claimed[enough], actual[enough], fraction[enough]
    axes.plot(claimed, actual, color=BLUE, linewidth=1.2)
    sizes = 12 + 40 * np.sqrt(fraction * row["candidates"])
    axes.scatter(claimed, actual, s=sizes, facecolor="none", edgecolor=BLUE, clip_on=False)
    axes.set(xlim=(-0.05, 1.05), ylim=(-0.05, 1.05), xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
    axes.set_title(
        f"{format_seconds(row['T'])}: off by {row['calibration_error']:.2f}", fontsize=11,
        color=BLACK, loc="left",
    )  # fmt: skip


_SHORT, _LONG = np.array([0.55, 0.76, 0.90]), np.array([0.03, 0.15, 0.38])
"""Colours of the shortest and the longest template."""
_MARKERS = "os^Dv"
_PANEL = 3.1
_HEAD, _FOOT = 1.05, 0.95
_DODGE = 0.012
"""Offset between lines as a fraction of the axis, so that their intervals do not overlap."""


def plot_rank_models(rows: Sequence[Record], path: Path) -> None:
    """Draw the model's MeanD with its interval against T, all at one number of candidates.

    There is one row of panels per feature, one panel per kind of session, and one line per template
    length D.
    """
    features = list(dict.fromkeys(str(row["feature"]) for row in rows))
    sessions = [s for s in ("cross", "same") if any(row["session"] == s for row in rows)]
    templates = sorted({row["D"] for row in rows})
    lengths = sorted({row["T"] for row in rows})
    candidates = max((row["common_candidates"] for row in rows), default=2)
    height = _HEAD + _FOOT + _PANEL * max(len(features), 1)

    def paint(figure: Figure) -> None:
        panels = figure.subplots(
            max(len(features), 1), max(len(sessions), 1), sharex=True, sharey=True, squeeze=False
        )
        figure.subplots_adjust(
            0.075, _FOOT / height, 0.975, 1 - _HEAD / height, wspace=0.06, hspace=0.22
        )
        for i, feature in enumerate(features):
            for j, session in enumerate(sessions):
                group = [r for r in rows if r["feature"] == feature and r["session"] == session]
                _calibration_panel(panels[i, j], group, templates, max(lengths) / min(lengths))
                panels[i, j].set_title(
                    f"{feature}, {session} session", loc="left", fontsize=11, weight="bold"
                )
            panels[i, 0].set_ylabel("expected bits")
        _frame(panels, lengths, float(np.log2(candidates)))
        handles: dict[str, Any] = {}
        for panel in panels.flat:
            for handle, name in zip(*panel.get_legend_handles_labels(), strict=True):
                handles.setdefault(name, handle)
        names = [n for n in (_name(d) for d in templates) if n in handles]
        if names:
            figure.legend(
                [handles[n] for n in names], names, loc="upper left", frameon=False, fontsize=10,
                bbox_to_anchor=(0.066, 1 - 0.42 / height), ncols=len(names), handletextpad=0.4,
            )  # fmt: skip
        figure.text(
            0.075, 1 - 0.38 / height, "Average disclosure of a voice by length of speech",
            fontsize=16, weight="bold", color=BLACK,
        )  # fmt: skip
        figure.text(
            0.075, 0.1 / height, "MeanD of the rank model among "
            f"N = {candidates} candidates (dotted: its ceiling,\nlog2 N). D and T are the speech "
            "lengths of template and test. Bars: 95 % interval over resampled speakers.",
            fontsize=10, color=GREY,
        )  # fmt: skip

    draw(path, paint, (12, height))


def _name(template: float) -> str:
    return f"D = {format_seconds(template)}"


def _calibration_panel(
    axes: Axes, rows: Sequence[Record], templates: Sequence[float], span: float
) -> None:
    for i, template in enumerate(templates):
        line = sorted(
            (r["T"], *(r[f"common_bits{end}"] for end in ("", "_low", "_high")))
            for r in rows
            if r["D"] == template
        )
        if not line:
            continue
        x, y, low, high = np.array(line, float).T
        fraction = i / max(len(templates) - 1, 1)
        x = x * np.exp(np.log(span) * _DODGE * (i - (len(templates) - 1) / 2))
        axes.errorbar(
            x, y, [np.maximum(y - low, 0.0), np.maximum(high - y, 0.0)], elinewidth=1.0,
            color=tuple((1 - fraction) * _SHORT + fraction * _LONG), linewidth=1.6, markersize=5,
            marker=_MARKERS[i % len(_MARKERS)], label=_name(template),
        )  # fmt: skip


def _frame(panels: Any, lengths: Sequence[float], ceiling: float) -> None:
    first = panels[0, 0]
    low, high = (min(lengths), max(lengths)) if lengths else (1.0, 60.0)
    low, high = (low, high) if high > low else (low / 2, high * 2)
    first.set_xlim(low / 1.3, high * 1.3)
    scale_seconds(first, low, high)
    first.set_ylim(0.0, 1.04 * ceiling)
    for panel in panels.flat:
        panel.axhline(ceiling, color=GREY, linestyle=":", linewidth=1.0)
        panel.grid(axis="y", color="#E6E6E6", linewidth=0.8)
        panel.set_axisbelow(True)
    for panel in panels[-1]:
        panel.set_xlabel("speech length T (log scale)")
