"""Plots against recording time: several people, and a recording before and after scrubbing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from monitor.crowds import LEVELS
from monitor.events import phrases
from monitor.events.declaration import Event, find_first
from monitor.events.reading import Reading
from monitor.events.run import Alert, PersonEnd, RunEnd, RunStart
from monitor.phrases import clock_time, plural
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
    legend_above,
    nice_seconds,
    spread_apart,
)
from monitor.plots.sheet import BOX, HATCH, LINE
from monitor.plots.wording import in_bits
from monitor.safe_text import short_name
from monitor.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INCHES = (11.0, 6.2)
MOST_DRAWN = 8  # maximum number of curves, for the people with most bits; a line counts the others
_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, BLACK, LIGHT_BLUE, "#8A7A00", GREY)
_TICKS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800)
_MOST_TICKS = 8
_STEP_SECONDS = 1.5
_SAME_BITS = 0.05  # equal with one decimal
_LEFT, _WIDE = 0.15, 0.59  # of the axes, as fractions of the width


@dataclass(frozen=True, slots=True)
class PersonCurve:
    """Readings of one person, seconds of the recording against bits, shape (k,) each."""

    label: str
    legend: str
    seconds: FloatArray
    bits: FloatArray
    alerts: Sequence[tuple[float, float]]
    readings: Sequence[Reading]

    @property
    def evidence(self) -> bool:
        """True if any reading has evidence."""
        return any(reading.is_evidence for reading in self.readings)

    @property
    def last(self) -> float:
        """The last finite bits; minus infinity if there are no finite bits."""
        finite_bits = self.bits[np.isfinite(self.bits)]
        return float(finite_bits[-1]) if finite_bits.size else -math.inf


def make_curves(events: Sequence[Event]) -> list[PersonCurve]:
    """Return the curve of each person of a run, in the order of its labels.

    If several people are watched, each label's curve is for the person that the label is matched
    to. Without an end of the run, it is for the person with most bits in the label's last readings.
    """
    start, end = find_first(events, RunStart), find_first(events, RunEnd)
    rows = {row.label: row for row in (end and end.people) or ()}
    begun = [person.label for person in (start and start.people) or ()]
    by_label: dict[str, list[Reading | Alert]] = {label: [] for label in [*begun, *rows]}
    for event in events:
        if isinstance(event, Reading | Alert) and event.label is not None:
            by_label.setdefault(event.label, []).append(event)
    return [_make_curve(label, events, rows) for label, events in by_label.items()]


def _make_curve(
    label: str, events: Sequence[Reading | Alert], rows: Mapping[str, PersonEnd]
) -> PersonCurve:
    row = rows.get(label)
    last_bits = {event.watch: event.bits for event in events if isinstance(event, Reading)}
    bits = {name: -math.inf if last is None else last for name, last in last_bits.items()}
    watch = max(bits, key=bits.__getitem__, default=None)
    if rows:
        watch = None if row is None else row.watch
    shown = [event for event in events if event.watch in (None, watch)]
    readings = [event for event in shown if isinstance(event, Reading)]
    alerts = [
        (event.seconds, event.value)
        for event in shown
        if isinstance(event, Alert)
        and (event.state, event.field, event.level) == ("raised", "bits", "alert")
        and event.value is not None
    ]
    return PersonCurve(
        label,
        _format_label(label, row, readings),
        np.array([reading.seconds for reading in readings], float),
        np.array([math.nan if r.bits is None else r.bits for r in readings], float),
        alerts,
        readings,
    )


def _format_label(label: str, row: PersonEnd | None, readings: Sequence[Reading]) -> str:
    parts = [short_name(label, 18)]
    if row is not None and row.person is not None and row.probability is not None:
        parts.append(f"{short_name(row.person, 14)} {100 * row.probability:.0f} %")
    measured = [reading for reading in readings if reading.bits is not None]
    if measured:
        last, bits = measured[-1], f"{phrases.number(measured[-1].bits)} bits"
        parts.append(phrases.bits_or_more(last, bits) if last.is_evidence else bits)
    return ", ".join(parts)


def make_people_painter(
    events: Sequence[Event], title: str | None = None
) -> Callable[[Figure], None]:
    """Return the function that paints the people of a run."""
    curves = make_curves(events)
    nonempty = [curve for curve in curves if curve.seconds.size]
    curves_drawn = sorted(sorted(nonempty, key=lambda c: -c.last)[:MOST_DRAWN], key=curves.index)
    start = find_first(events, RunStart) or RunStart.from_record({})
    end = find_first(events, RunEnd) or RunEnd.from_record({})
    length = max([end.seconds or 0.0, *(float(c.seconds[-1]) for c in curves_drawn)])
    evidence = any(curve.evidence for curve in curves_drawn)
    care = "Evidence is not proof" if evidence else "It may be wrong"
    caption = f"{phrases.people_in_words(start, evidence=evidence)}. Circles: alerts.\n{care}."
    title_text = short_name(_heading(curves) if title is None else title, 90)

    def paint(figure: Figure) -> None:
        below = 0.022 + 0.028 * len(curves_drawn)
        axes = figure.add_axes((_LEFT, 0.165 + below + 0.03, _WIDE, 0.68 - below))
        strip = figure.add_axes((_LEFT, 0.165, _WIDE, below), sharex=axes)
        for curve, colour in zip(curves_drawn, _COLOURS, strict=False):
            _draw_curve(axes, curve, colour, length)
        _draw_strip(strip, curves_drawn)
        axes.set_xlim(0.0, max(length, 1.0))
        _draw_levels(axes, start, evidence=evidence)
        _draw_cap(axes, curves_drawn, start.speakers)
        _draw_thresholds(axes, start)
        axes.tick_params(labelbottom=False)
        step = next((t for t in _TICKS if length / t <= _MOST_TICKS), length / _MOST_TICKS)
        ticks = np.arange(0.0, length + 1e-9, step)
        strip.set_xticks(ticks, [clock_time(tick) for tick in ticks])
        strip.set_xlabel("time in the recording (bars and thick lines: the person speaks)")
        _label_ends(axes, curves_drawn)
        figure.text(0.02, 0.945, title_text, fontsize=15, weight="bold", color=BLACK, va="bottom")
        figure.text(0.02, 0.91, _summary(start, end, len(curves) - len(curves_drawn)), color=GREY)
        figure.text(0.02, 0.025, caption, color=GREY, fontsize=9.5)

    return paint


def _heading(curves: Sequence[PersonCurve]) -> str:
    """State the largest last figure, and its person unless all people have it."""
    measured = [curve for curve in curves if math.isfinite(curve.last)]
    if not measured:
        return f"No figures yet for {plural(len(curves), 'person', 'people')}"
    highest = max(measured, key=lambda curve: curve.last)
    words = phrases.bits_now([r for r in highest.readings if r.bits is not None][-1])
    if len(curves) > 1 and all(highest.last - curve.last < _SAME_BITS for curve in curves):
        return f"Each of {len(curves)} people: {words}"
    among = f", the most exposed of {len(curves)} people" if len(curves) > 1 else ""
    return f"{short_name(highest.label, 18)}{among}: {words}"


def _draw_levels(axes: Axes, start: RunStart, *, evidence: bool) -> None:
    """Draw levels of bits, each with its meaning, and leave room above the curves."""
    low, high = axes.get_ylim()
    low, high = min(low, -0.3), max(high, 1.0)
    ceiling = None if evidence else start.ceiling
    levels = {
        float(sign * bits) for bits in LEVELS for sign in (1, -1) if low < sign * bits <= high
    }
    if ceiling is not None:
        levels = {bits for bits in levels if bits < ceiling - 0.5} | {ceiling}
    axes.set_ylim(low, max(high, ceiling or 0.0) + 0.07 * (high - low))
    for bits in levels:
        axes.axhline(bits, color=LINE if bits else GREY, linewidth=0.8, zorder=0)
    assumed = not (start.watch or start.watched)
    meanings = {bits: phrases.level_as_people(bits, ceiling, assumed=assumed) for bits in levels}
    names = [f"{in_bits(round(bits, 1))}: {meanings[bits]}" if bits or ceiling else meanings[bits]
             for bits in levels]  # fmt: skip
    axes.set_yticks([*levels], names)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def _draw_cap(axes: Axes, curves: Sequence[PersonCurve], speakers: int | None) -> None:
    """Hatch the bits above calibration's support for every person, or above log2 N."""
    evidence = any(curve.evidence for curve in curves)
    readings = [reading for curve in curves for reading in curve.readings]
    caps = [reading.support_bits if evidence else reading.ceiling for reading in readings]
    finite_caps = [cap for cap in caps if cap is not None and math.isfinite(cap)]
    if not finite_caps:
        return
    cap, top = max(finite_caps), axes.get_ylim()[1]
    axes.axhspan(cap, max(top, cap), facecolor="none", edgecolor=HATCH, hatch="////",
                 linewidth=0, zorder=1)  # fmt: skip
    who = "calibration supports" if evidence else f"{speakers} people allow"
    axes.text(0.01, (cap + top) / 2, f"{who} no more than {in_bits(round(cap, 1))}", color=GREY,
              transform=axes.get_yaxis_transform(), va="center", bbox=BOX)  # fmt: skip


def _draw_thresholds(axes: Axes, start: RunStart) -> None:
    rules = [rule for rule in start.alerts or () if (rule.field, rule.level) == ("bits", "alert")]
    low, high = axes.get_ylim()
    for threshold in sorted({rule.threshold for rule in rules if low < rule.threshold < high}):
        axes.axhline(threshold, color=RED, linewidth=1.1, zorder=2)
        axes.text(0.99, threshold, f"alert above {threshold:g} bits", color=RED, va="bottom",
                  ha="right", weight="bold", transform=axes.get_yaxis_transform())  # fmt: skip


def _draw_curve(axes: Axes, curve: PersonCurve, colour: str, length: float) -> None:
    """Draw a curve: thick while the person speaks, and thin while the bits stay constant."""
    x, y = np.append(curve.seconds, length), np.append(curve.bits, curve.last)
    axes.plot(x, y, drawstyle="steps-post", color=colour, linewidth=0.7, gid=curve.label)
    pauses = np.flatnonzero(np.diff(curve.seconds) > _STEP_SECONDS) + 1
    spoken = np.insert(curve.seconds, pauses, np.nan)
    bits = np.insert(curve.bits, pauses, np.nan)
    axes.plot(spoken, bits, drawstyle="steps-post", color=colour, linewidth=2.2)
    for when, at in curve.alerts:
        axes.plot(
            [when], [at], marker="o", markersize=7, color="white", markeredgecolor=colour,
            markeredgewidth=2.0,
        )  # fmt: skip


def _draw_strip(axes: Axes, curves: Sequence[PersonCurve]) -> None:
    for row, (curve, colour) in enumerate(zip(curves, _COLOURS, strict=False)):
        begins = np.concatenate(([0.0], curve.seconds[:-1]))
        begins = np.maximum(begins, curve.seconds - _STEP_SECONDS)
        spans = list(zip(begins, curve.seconds - begins, strict=True))
        axes.broken_barh(spans, (len(curves) - row - 0.85, 0.7), color=colour, linewidth=0)
    axes.set_ylim(0.0, max(len(curves), 1))
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)


def _label_ends(axes: Axes, curves: Sequence[PersonCurve]) -> None:
    low, high = axes.get_ylim()
    order = sorted(range(len(curves)), key=lambda k: curves[k].last)
    indices = [k for k in order if math.isfinite(curves[k].last)]
    size = 0.068 * (high - low)
    heights = spread_apart([curves[k].last for k in indices], size, low, high)
    for k, height in zip(indices, heights, strict=True):
        axes.annotate(
            curves[k].legend, (1.0, curves[k].last), xycoords=("axes fraction", "data"),
            xytext=(1.03, height), textcoords=("axes fraction", "data"), va="center",
            color=_COLOURS[k], fontsize=10.5,
            arrowprops={
                "arrowstyle": "-", "color": _COLOURS[k], "linewidth": 0.8, "relpos": (0.0, 0.5),
                "shrinkB": 0.0,
            },
        )  # fmt: skip


def _summary(start: RunStart, end: RunEnd, hidden: int) -> str:
    parts = [short_name(", ".join(start.recordings or ()), 60)]
    parts.append(phrases.overlap_in_words(end.overlap_seconds))
    if hidden:
        parts.append(f"{hidden} with fewer bits are not shown")
    return "  ·  ".join(filter(None, parts))


_SCRUBBED_INCHES = (9.0, 4.4)
_SHADE = "#E8E8E8"


@dataclass(frozen=True, slots=True)
class ScrubCurves:
    """Curves to draw, in seconds of the recording."""

    title: str  # one line that summarises the change
    budget: float
    # before, after: seconds and bits of the strongest attacker at each second, shape (k,) each
    before: tuple[FloatArray, FloatArray]
    after: tuple[FloatArray, FloatArray]
    # start and end of each interval that was cut, silenced or protected
    changed: Sequence[tuple[float, float]]
    change: str  # past participle of the change
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
            "Each point: maximum bits so far of all attackers tried. Stronger attackers learn "
            "more.", fontsize=8.5, color=GREY, x=0.01, ha="left",
        )  # fmt: skip

    draw(path, paint, _SCRUBBED_INCHES)
