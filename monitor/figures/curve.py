"""One run as a picture: bits of identity against seconds of speech."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from monitor.figures.canvas import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    LIGHT_BLUE,
    ORANGE,
    PURPLE,
    RED,
    draw,
    format_seconds,
    nice_seconds,
    spread_apart,
)
from monitor.figures.series import Run, in_words, read_run, thin
from monitor.figures.words import caption, heading, in_bits, one_in, summary
from monitor.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_run"]

LINE_HEIGHT = 0.034  # of a line of small text, in heights of the axes
CHARACTER_WIDTH = 0.0093  # of a small character, in widths of the axes
GUIDES = (
    ("linear", "linear guide\n(basic composition)", ORANGE, (0, (6, 3))),
    ("sqrt", "square-root guide\n(advanced composition)", PURPLE, (0, (2, 2))),
)

POWERS = {"linear": 1.0, "sqrt": 0.5}


def plot_run(records: Sequence[Mapping[str, Any]], path: Path, *, title: str | None = None) -> None:
    """Draw the headline of a run with its limits, ceilings, guides, alerts and gaps.

    Bits stand against speech seconds on a log axis (readings before the first speech cannot be
    shown on it); every line is labelled where it ends, and every bit is translated to
    "1 in k", k = N / 2^bits.

    Args:
        records: the records of one run, in order; any of them may be missing.
        path: where to write; .png, .svg or .pdf.
        title: replaces the sentence that says what is seen.

    Raises:
        UsageError: another suffix, or the place cannot be written.

    Examples:
        >>> import tempfile
        >>> records = [{"type": "reading", "seconds": t, "speech": t, "bits": t / 10,
        ...             "ceiling": 5.64} for t in range(1, 31)]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     plot_run(records, Path(folder) / "run.png")
        ...     (Path(folder) / "run.png").stat().st_size > 10_000
        True
    """
    run = read_run(records)
    title_text = in_words(heading(run) if title is None else title, 110)

    def paint(figure: Figure) -> None:
        axes = figure.add_axes((0.085, 0.135, 0.655, 0.715))
        heard = run.columns["speech"] > 0
        shown = {name: column[heard] for name, column in run.columns.items()}
        alone = {name: column[heard] for name, column in run.alone.items()}
        _frame(axes, run, shown, list(alone.values()))
        labels = _levels(axes, run) + _guides(axes, run, shown)
        labels += _each_feature(axes, shown["speech"], alone)
        labels += _curves(axes, run, shown)
        _events(axes, run)
        _label_ends(axes, labels)
        size = 16 * min(1.0, 74 / max(1, len(title_text)))
        figure.text(0.085, 0.945, title_text, fontsize=size, weight="bold", color=BLACK)
        figure.text(0.085, 0.912, summary(run), color=GREY)
        figure.text(0.085, 0.018, caption(run), fontsize=10, color=GREY)

    draw(path, paint, (12, 7.5))


def _frame(
    axes: Axes, run: Run, shown: Mapping[str, FloatArray], more: Sequence[FloatArray]
) -> None:
    """Limits, ticks and grid."""
    speech = shown["speech"]
    figures = np.concatenate(
        [*(shown[n] for n in ("bits", "bits_low", "bits_high", "linear")), *more]
    )
    figures = np.append(figures[np.isfinite(figures)], [0.0, run.ceiling or 1.0])
    low, high = float(figures.min()), float(figures.max())
    axes.set_ylim(low - (high - low) * 0.07, high + (high - low) * 0.10)
    left, right = (float(speech[0]), float(speech[-1])) if speech.size else (1.0, 60.0)
    left = max(left, right / 3000)
    if right < left * 1.5:
        left = right / 4
    axes.set_xscale("log")
    axes.set_xlim(left, right)
    ticks = nice_seconds(left, right)
    axes.set_xticks(ticks, [format_seconds(tick) for tick in ticks])
    axes.set_xticks([], minor=True)
    step = max(1, round((high - low) / 7))
    bits = [b for b in range(int(np.ceil(low)), int(high) + 1) if b % step == 0]
    names = [f"{in_bits(b)}\n{one_in(run, b)}" if b <= run.ceiling else in_bits(b) for b in bits]
    axes.set_yticks(bits, names)
    axes.grid(axis="y", color="#E6E6E6", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=3, color=GREY)
    axes.text(-0.117, 1.012, "bits of identity", transform=axes.transAxes, color=GREY, fontsize=10)
    axes.set_xlabel("speech heard (log scale)", color=BLACK)
    if not np.isfinite(shown["bits"]).any():
        axes.text(
            0.5, 0.45, "no figures yet", transform=axes.transAxes, ha="center", color=GREY,
            fontsize=16,
        )  # fmt: skip


def _levels(axes: Axes, run: Run) -> list[tuple[float, str, str]]:
    """Horizontal lines: ceiling, average plateau, alert thresholds."""
    labels = []
    if run.ceiling > 0:
        axes.axhline(run.ceiling, color=BLACK, linewidth=1.4)
        text = f"ceiling: log₂ {run.speakers} = {run.ceiling:.2f} bits\n— one person named"
        labels.append((run.ceiling, text, BLACK))
    if run.plateau is not None:
        axes.axhline(run.plateau, color=GREEN, linewidth=1.2, linestyle=(0, (8, 3, 1, 3)))
        text = f"average plateau: {run.plateau:.2f} bits\naverages never exceed it"
        labels.append((run.plateau, text, GREEN))
    for field, threshold in sorted({(a["field"], a["threshold"]) for a in run.alerts})[:3]:
        if field == "bits":
            axes.axhline(threshold, color=RED, linewidth=0.9, linestyle=(0, (1, 3)))
            labels.append((threshold, f"alert threshold: {in_bits(threshold)}", RED))
    return labels


def _guides(axes: Axes, run: Run, shown: Mapping[str, FloatArray]) -> list[tuple[float, str, str]]:
    """Dashed lines up to the ceiling; a guide that gets there is labelled above it."""
    labels, above = [], []
    for name, text, colour, dashes in GUIDES:
        x, y = shown["speech"], shown[name]
        known = np.flatnonzero(np.isfinite(y) & (y > 0) & (x > 0))
        if not known.size:
            continue
        # readings a second apart would draw a power of T with corners on a log axis
        power = POWERS[name]
        scale = y[known[0]] / x[known[0]] ** power
        reaches = (run.ceiling / scale) ** (1 / power) if run.ceiling > 0 else np.inf
        end = min(float(x[-1]), float(reaches))
        dense = np.geomspace(min(float(x[0]), end), end, 200)
        axes.plot(dense, scale * dense**power, color=colour, lw=1, linestyle=dashes)
        if reaches > x[-1]:
            labels.append((float(scale * end**power), text, colour))
        else:
            above.append((_across(axes, end), text.replace("\n", " "), colour))
    widths = [len(text) * CHARACTER_WIDTH for _, text, _ in above]
    centres = spread_apart([at for at, _, _ in above], widths, 0.0, 1.0)
    for centre, (_, text, colour) in zip(centres, above, strict=True):
        axes.annotate(
            text, (centre, run.ceiling), xycoords=("axes fraction", "data"), xytext=(0, 5),
            textcoords="offset points", ha="center", color=colour, fontsize=10, zorder=6,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
        )  # fmt: skip
    return labels


def _each_feature(
    axes: Axes, x: FloatArray, alone: Mapping[str, FloatArray]
) -> list[tuple[float, str, str]]:
    """Thin lines: what each feature would disclose alone."""
    labels = []
    for (name, y), dashes in zip(alone.items(), ("-", (0, (5, 2)), (0, (1, 1.5))), strict=False):
        known = np.flatnonzero(np.isfinite(y))
        if known.size:
            keep = thin(x, y)
            axes.plot(x[keep], y[keep], color=LIGHT_BLUE, linewidth=1.3, linestyle=dashes)
            last = float(y[known[-1]])
            labels.append((last, f"{in_words(name)} alone: {in_bits(last)}", LIGHT_BLUE))
    return labels


def _curves(axes: Axes, run: Run, shown: Mapping[str, FloatArray]) -> list[tuple[float, str, str]]:
    """Expected bits, and over them the headline with its peak."""
    labels = []
    x = shown["speech"]
    for name, colour, width, shade in (
        ("expected_bits", GREY, 1.2, 0.13),
        ("bits", BLUE, 2.6, 0.22),
    ):
        y = shown[name]
        known = np.flatnonzero(np.isfinite(y))
        if not known.size:
            continue
        keep = thin(x, y)
        low, high = shown[f"{name}_low"][keep], shown[f"{name}_high"][keep]
        axes.fill_between(x[keep], low, high, color=colour, alpha=shade, linewidth=0)
        marker = "o" if known.size == 1 else None
        width = width if keep.size < 600 else width / 2
        axes.plot(x[keep], y[keep], color=colour, linewidth=width, marker=marker)
        last = float(y[known[-1]])
        if name == "bits":
            peak = int(known[np.argmax(y[known])])
            now = f"{'this voice' if run.watch else 'the attacker'} now: {in_bits(last)}"
            peaked = ""
            if x[peak] < x[-1]:
                _mark_peak(axes, float(x[peak]), float(y[peak]))
            else:
                peaked = ", its peak"
            labels.append((last, f"{now}\n= {one_in(run, last)}{peaked}", colour))
        else:
            labels.append((last, "expected bits: an average\nvoice of this length", colour))
    return labels


def _mark_peak(axes: Axes, x: float, y: float) -> None:
    bottom, top = axes.get_ylim()
    below = (y - bottom) / (top - bottom) > 0.82  # the guides' labels live up there
    axes.plot([x], [y], "o", color=BLUE, markersize=8, markeredgecolor="white", zorder=5)
    axes.annotate(
        f"peak {in_bits(y)}", (x, y), xytext=(0, -22 if below else 10), textcoords="offset points",
        ha="right" if _across(axes, x) > 0.5 else "left", color=BLUE, weight="bold", zorder=6,
        bbox={"facecolor": "white", "alpha": 0.9, "edgecolor": "none", "pad": 1},
    )  # fmt: skip


def _events(axes: Axes, run: Run) -> None:
    """Alerts as vertical lines, gaps as ticks on the axis."""
    left, right = axes.get_xlim()
    free = 0.0
    for alert in run.alerts:
        speech = alert.get("speech")
        x = run.speech_at(alert["seconds"]) if speech is None else speech
        x = min(max(x, left), right)
        raised = alert["state"] == "raised"
        axes.axvline(
            x,  color=RED, linewidth=1.3 if raised else 1, alpha=0.9 if raised else 0.5,
            linestyle="-" if raised else (0, (4, 3)),
        )  # fmt: skip
        text = f"alert: {in_words(alert['rule'], 40)}" if raised else "alert over"
        half = len(text) * CHARACTER_WIDTH / 2
        centre = min(max(_across(axes, x), half), 1 - half)
        if centre - half >= free:
            axes.text(
                centre, 1.012, text, transform=axes.transAxes, ha="center", color=RED, fontsize=10
            )
            free = centre + half + 0.01
    if run.gaps:
        places = sorted({min(max(run.speech_at(t), left), right) for t, _ in run.gaps})
        across = axes.get_xaxis_transform()
        axes.vlines(places, 0.0, 0.035, transform=across, color=BLACK, linewidth=2.5)
        first, last = _across(axes, places[0]), _across(axes, places[-1])
        after = last < 0.88 or first < 0.12
        axes.annotate(
            "audio lost", (min(last, 0.88) if after else first, 0.018), xycoords="axes fraction",
            xytext=(6 if after else -6, 0), textcoords="offset points", va="center", fontsize=10,
            ha="left" if after else "right", color=BLACK,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
        )  # fmt: skip


def _label_ends(axes: Axes, labels: list[tuple[float, str, str]]) -> None:
    """Write each label beside the end of its line, moved just enough not to touch another."""
    bottom, top = axes.get_ylim()
    labels = sorted(labels, key=lambda label: label[0])
    wanted = [(y - bottom) / (top - bottom) for y, _, _ in labels]
    sizes = [LINE_HEIGHT * (text.count("\n") + 1) + 0.016 for _, text, _ in labels]
    for y, centre, (_, text, colour) in zip(
        wanted, spread_apart(wanted, sizes, -0.1, 1.05), labels, strict=True
    ):
        axes.plot(
            [1.003, 1.022, 1.03], [y, centre, centre], transform=axes.transAxes, color=colour,
            linewidth=0.8, clip_on=False,
        )  # fmt: skip
        axes.text(
            1.036, centre, text, transform=axes.transAxes, va="center", color=colour,
            fontsize=10.5, linespacing=1.15, weight="bold" if colour == BLUE else "normal",
        )  # fmt: skip


def _across(axes: Axes, x: float) -> float:
    """Where x lies along the axis, 0 to 1."""
    left, right = np.log(axes.get_xlim())
    return float(np.clip((np.log(x) - left) / (right - left), 0, 1))
