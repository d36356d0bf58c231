"""One run as a picture: bits of identity against seconds of speech."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from monitor.crowds import axis_top, bits_or_more, left_of
from monitor.plots.canvas import (
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
from monitor.plots.run_events import (
    CHARACTER_WIDTH,
    across,
    draw_scale,
    mark_alerts,
    mark_changes,
    mark_doubt,
    mark_gaps,
    mark_peak,
)
from monitor.plots.series import RunColumns, curve_points, run_of, short_name
from monitor.plots.words import caption, heading, in_bits, one_in_words, summary
from monitor.protected_words import attacker_of, fewer_in_words
from monitor.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_run"]

LINE_HEIGHT = 0.034  # of a line of small text, in heights of the axes
GUIDES = (
    ("linear", "linear guide:\nevery second counts in full", ORANGE, (0, (6, 3))),
    ("sqrt", "square-root guide:\nseconds count less and less", PURPLE, (0, (2, 2))),
)

LABEL_COLUMNS = 29
TITLE_COLUMNS = 100
POWERS = {"linear": 1.0, "sqrt": 0.5}


def plot_run(records: Sequence[Mapping[str, Any]], path: Path, *, title: str | None = None) -> None:
    """Draw a run: its headline with limits, ceilings, guides, alerts, changes and gaps.

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
    run = run_of(records)
    title_text = short_name(heading(run) if title is None else title, 2 * TITLE_COLUMNS)
    lines = textwrap.wrap(title_text, TITLE_COLUMNS) or [""]

    def paint(figure: Figure) -> None:
        wide = 0.60 if run.evidence else 0.655  # the scale of crowds stands beside it
        below = 0.022 * max(0, caption(run).count("\n") - 1)  # for lines beyond two
        axes = figure.add_axes((0.085, 0.135 + below, wide, 0.715 - below))
        heard = run.columns["speech"] > 0
        shown = {name: column[heard] for name, column in run.columns.items()}
        alone = {name: column[heard] for name, column in run.alone.items()}
        parts = _stretches(heard, run.fresh)
        _frame(axes, run, shown, list(alone.values()))
        labels = _levels(axes, run)
        if run.protected:
            labels += _protected(axes, run, shown, parts)
        elif not run.evidence:
            labels += _guides(axes, run, shown, parts)
            labels += _each_feature(axes, shown["speech"], alone, parts)
        if run.evidence:
            draw_scale(axes)
        labels += _curves(axes, run, shown, parts)
        mark_doubt(axes, shown["speech"], run.doubtful[heard])
        mark_changes(axes, run)
        mark_alerts(axes, run)
        mark_gaps(axes, run)
        _label_ends(axes, labels, 1.105 if run.evidence else 1.003)
        largest = 12.5 if lines[1:] else 16.0
        size = min(largest, 16 * 74 / max(1, *map(len, lines)))
        said = "\n".join(lines)
        figure.text(0.085, 0.94, said, fontsize=size, weight="bold", color=BLACK, va="bottom")
        figure.text(0.085, 0.912, summary(run), color=GREY)
        figure.text(0.085, 0.018, caption(run), fontsize=10, color=GREY)

    draw(path, paint, (12, 7.5))


def _stretches(heard: BoolArray, fresh: Sequence[int]) -> list[slice]:
    """The readings that are shown, cut where the evidence began afresh."""
    places = np.cumsum(heard) - 1
    cuts = sorted({int(places[at]) + int(not heard[at]) for at in fresh} - {0})
    edges = [0, *(at for at in cuts if at < int(heard.sum())), int(heard.sum())]
    return [slice(low, high) for low, high in pairwise(edges) if high > low]


def _frame(
    axes: Axes, run: RunColumns, shown: Mapping[str, FloatArray], more: Sequence[FloatArray]
) -> None:
    """Limits, ticks and grid."""
    speech = shown["speech"]
    ends = ("", "_low", "_high")
    names = [
        "closed_set_bits",
        *(f"{side}bits{end}" for side in ("", "protected_") for end in ends),
    ]
    beside = [shown["support_bits"]] if run.evidence else [shown["linear"], *more]
    beside = [] if run.protected and not run.evidence else beside
    figures = np.concatenate([*(shown[name] for name in names), *beside])
    figures = np.append(figures[np.isfinite(figures)], [0.0, run.ceiling or 1.0])
    low, high = float(figures.min()), float(figures.max())
    high = axis_top(high) if run.evidence else high
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
    bits = list(range(int(np.ceil(low / step)) * step, int(high) + 1, step))
    closed = not run.evidence  # it means the same in any crowd
    means = [f"\n{one_in_words(run, b)}" if closed and b <= run.ceiling else "" for b in bits]
    axes.set_yticks(bits, [f"{in_bits(b)}{mean}" for b, mean in zip(bits, means, strict=True)])
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


def _levels(axes: Axes, run: RunColumns) -> list[tuple[float, str, str]]:
    """Horizontal lines: ceiling, average plateau, alert thresholds."""
    labels = []
    if run.ceiling > 0:
        axes.axhline(run.ceiling, color=BLACK, linewidth=1.4)
        text = f"ceiling: log₂ {run.speakers} = {run.ceiling:.2f} bits\n— one person named"
        if run.evidence:
            text = f"closed-set ceiling:\nlog₂ {run.speakers} = {run.ceiling:.2f} bits"
        labels.append((run.ceiling, text, BLACK))
    if run.plateau is not None:
        axes.axhline(run.plateau, color=GREEN, linewidth=1.2, linestyle=(0, (8, 3, 1, 3)))
        which = "closed-set" if run.evidence else "average"
        text = f"{which} plateau: {run.plateau:.2f} bits\naverages never exceed it"
        labels.append((run.plateau, text, GREEN))
    own = "evidence_bits" if run.evidence else "closed_set_bits"
    for field, threshold in sorted({(a["field"], a["threshold"]) for a in run.alerts})[:3]:
        if field in ("bits", own, "closed_set_bits"):
            of = "" if field in ("bits", own) else "closed-set "
            axes.axhline(threshold, color=RED, linewidth=0.9, linestyle=(0, (1, 3)))
            labels.append((threshold, f"{of}alert threshold: {in_bits(threshold)}", RED))
    return labels


def _guides(
    axes: Axes, run: RunColumns, shown: Mapping[str, FloatArray], parts: Sequence[slice]
) -> list[tuple[float, str, str]]:
    """Dashed lines up to the ceiling; a guide that gets there is labelled above it."""
    labels: list[tuple[float, str, str]] = []
    above: list[tuple[float, str, str]] = []
    for name, text, colour, dashes in GUIDES:
        label: list[tuple[float, str, str]] = []
        for part in parts:
            x, y = shown["speech"][part], shown[name][part]
            known = np.flatnonzero(np.isfinite(y) & (y > 0) & (x > 0))
            if not known.size:
                continue
            # readings a second apart would draw a power of T with corners on a log axis
            power = POWERS[name]
            before = float(shown["speech"][part.start - 1]) if part.start else 0.0
            scale = y[known[0]] / (x[known[0]] - before) ** power
            reaches = (run.ceiling / scale) ** (1 / power) if run.ceiling > 0 else np.inf
            end = min(float(x[-1]) - before, float(reaches))
            dense = np.geomspace(min(float(x[0]) - before, end), end, 200)
            axes.plot(before + dense, scale * dense**power, color=colour, lw=1, linestyle=dashes)
            if reaches > x[-1] - before:
                label = [(float(scale * end**power), text, colour)]
            elif (one_line := text.replace("\n", " ")) not in (each for _, each, _ in above):
                above.append((across(axes, before + end), one_line, colour))
        labels += label  # of the last stretch
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
    axes: Axes, x: FloatArray, alone: Mapping[str, FloatArray], parts: Sequence[slice]
) -> list[tuple[float, str, str]]:
    """Thin lines: what each feature would disclose alone."""
    labels = []
    for (name, y), dashes in zip(alone.items(), ("-", (0, (5, 2)), (0, (1, 1.5))), strict=False):
        known = np.flatnonzero(np.isfinite(y))
        if known.size:
            for part in parts:
                keep = part.start + curve_points(x[part], y[part])
                axes.plot(x[keep], y[keep], color=LIGHT_BLUE, linewidth=1.3, linestyle=dashes)
            last = float(y[known[-1]])
            alone_words = f"{short_name(name)} alone{_until(x, known)}: {in_bits(last)}"
            labels.append((last, alone_words, LIGHT_BLUE))
    return labels


def _protected(
    axes: Axes, run: RunColumns, shown: Mapping[str, FloatArray], parts: Sequence[slice]
) -> list[tuple[float, str, str]]:
    """The other side of the same speech, with its limits, and what the protector takes off."""
    x, name = shown["speech"], "protected_bits"
    y = shown[name]
    known = np.flatnonzero(np.isfinite(y))
    if not known.size:
        return []
    for part in parts:
        keep = part.start + curve_points(x[part], y[part])
        low, high = shown[f"{name}_low"][keep], shown[f"{name}_high"][keep]
        axes.fill_between(x[keep], low, high, color=ORANGE, alpha=0.16, linewidth=0)
        axes.plot(x[keep], y[keep], color=ORANGE, linewidth=2.2, linestyle=(0, (4, 1.2)))
    last = float(y[known[-1]])
    at_least = (run.last.get("protected") or {}).get("at_least")
    bits = f"{'at least ' if at_least else ''}{in_bits(round(last, 1))}"
    apart, who = fewer_in_words(run.last), attacker_of(run.last)
    until = _until(x, known)
    apart = "" if until else apart  # of the last reading
    said = [f"through {run.protected}{until}: {bits}", apart, f"to {who}" if who else ""]
    label = textwrap.fill(", ".join(filter(None, said)), LABEL_COLUMNS)
    return [(last, label, ORANGE)]


def _spread(axes: Axes, shown: Mapping[str, FloatArray], parts: Sequence[slice]) -> None:
    """Between which bits other voices of that length read, lighter than the limits."""
    low, high = shown["spread_low"], shown["spread_high"]
    for part in parts:
        keep = part.start + curve_points(shown["speech"][part], low[part])
        x = shown["speech"][keep]
        axes.fill_between(x, low[keep], high[keep], color=BLUE, alpha=0.07, linewidth=0, zorder=0)


def _curves(
    axes: Axes, run: RunColumns, shown: Mapping[str, FloatArray], parts: Sequence[slice]
) -> list[tuple[float, str, str]]:
    """Expected bits, the closed-set figure beside evidence, and over them the headline."""
    labels = []
    x = shown["speech"]
    main = [("bits", BLUE, 2.6, 0.22)]
    if run.evidence and not run.protected:
        main.insert(0, ("closed_set_bits", LIGHT_BLUE, 1.4, 0.0))
    if run.evidence and not run.protected:
        _spread(axes, shown, parts)
    for name, colour, width, shade in (("expected_bits", GREY, 1.2, 0.13), *main):
        y = shown[name]
        known = np.flatnonzero(np.isfinite(y))
        if not known.size:
            continue
        for part in parts:
            keep = part.start + curve_points(x[part], y[part])
            low, high = shown[f"{name}_low"][keep], shown[f"{name}_high"][keep]
            axes.fill_between(x[keep], low, high, color=colour, alpha=shade, linewidth=0)
            marker = "o" if np.isfinite(y[part]).sum() == 1 else None
            thick = width if keep.size < 600 else width / 2
            axes.plot(x[keep], y[keep], color=colour, linewidth=thick, marker=marker)
        last = float(y[known[-1]])
        if name == "closed_set_bits":
            among = f"closed-set, among the {run.speakers}{_until(x, known)}"
            labels.append((last, f"{among}:\n{in_bits(round(last, 2))}", colour))
        elif name == "bits" and (until := _until(x, known)):
            what = "evidence" if run.evidence else "bits"
            text = f"{what}{until}: {in_bits(round(last, 2))}; {_why_no_more(run)}"
            labels.append((last, textwrap.fill(text, LABEL_COLUMNS), colour))
        elif name == "bits":
            peak = int(known[np.argmax(y[known])])
            peak = int(known[-1]) if y[peak] == last else peak  # evidence is cut to one figure
            whose = "the attacker" if run.watch is None else "this voice"
            bits = in_bits(last)
            if run.evidence:
                bits = bits_or_more(run.last, in_bits(round(last, 1)))
            now = f"{'several voices' if run.doubt else whose} now: {bits}"
            peaked = ""
            if x[peak] < x[-1]:
                mark_peak(axes, float(x[peak]), float(y[peak]))
            else:
                peaked = "" if run.evidence else ", its peak"  # the line above has it
            means = left_of(run.last) if run.evidence else one_in_words(run, last)
            said = f"\n= {means}" if means and not run.doubt else ""
            labels.append((last, f"{now}{said}{peaked}", colour))
        else:
            what = "closed-set average:" if run.evidence else "expected bits: an average"
            labels.append((last, f"{what}\nvoice{'s' * run.evidence} of this length", colour))
    return labels


def _until(x: FloatArray, known: IntArray) -> str:
    """When a figure ended, where it did before the run; else empty."""
    return "" if known[-1] == x.size - 1 else f" until {format_seconds(float(x[known[-1]]))}"


def _why_no_more(run: RunColumns) -> str:
    """Why the figure shown first has ended."""
    if run.withheld:
        return f"withheld since: {short_name(run.withheld, 60)}"
    features: Mapping[str, Mapping[str, Any]] = run.last.get("features") or {}
    heard = [name for name, each in features.items() if each.get("usable")]
    of = f" of {short_name('+'.join(heard))}" if heard else ""
    return f"none since, as no law tells it{of}"


def _label_ends(axes: Axes, labels: list[tuple[float, str, str]], begin: float) -> None:
    """Write each label beside the end of its line, moved just enough not to touch another."""
    bottom, top = axes.get_ylim()
    labels = sorted(labels, key=lambda label: label[0])
    wanted = [(y - bottom) / (top - bottom) for y, _, _ in labels]
    sizes = [LINE_HEIGHT * (text.count("\n") + 1) + 0.016 for _, text, _ in labels]
    for y, centre, (_, text, colour) in zip(
        wanted, spread_apart(wanted, sizes, -0.1, 1.05), labels, strict=True
    ):
        axes.plot(
            [begin, begin + 0.019, begin + 0.027], [y, centre, centre], color=colour,
            transform=axes.transAxes, linewidth=0.8, clip_on=False,
        )  # fmt: skip
        axes.text(
            begin + 0.033, centre, text, transform=axes.transAxes, va="center", color=colour,
            fontsize=10.5, linespacing=1.15, weight="bold" if colour == BLUE else "normal",
        )  # fmt: skip
