"""Picture of several people in one recording: a curve each, and who speaks when."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from monitor.phrases import (
    clock_time,
    is_evidence,
    overlap_in_words,
    people_in_words,
    plural,
)
from monitor.plots.canvas import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    spread_apart,
)
from monitor.safe_text import short_name
from monitor.types import FloatArray, Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INCHES = (11.0, 6.2)
MOST_DRAWN = 8
"""People with a curve, those with most bits; the rest is told in a line."""
_COLOURS = (BLUE, RED, GREEN, PURPLE, ORANGE, BLACK, "#5BA4CF", "#8A7A00")
_TICKS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800)
_MOST_TICKS = 8
_STEP_SECONDS = 1.5


@dataclass(frozen=True, slots=True)
class PersonCurve:
    """Readings of one person, seconds of the recording against bits, shape (k,) each."""

    label: str
    legend: str
    seconds: FloatArray
    bits: FloatArray
    alerts: Sequence[tuple[float, float]]
    evidence: bool

    @property
    def last(self) -> float:
        """The bits in the end; minus infinity where there are none."""
        finite_bits = self.bits[np.isfinite(self.bits)]
        return float(finite_bits[-1]) if finite_bits.size else -math.inf


def make_curves(records: Sequence[Record]) -> list[PersonCurve]:
    """Return the curve of each person of a run, in the order of its labels.

    Where several are watched it is by the one that the label is matched to, or that it says most
    of; of a run without an end by the one that its last readings say most of.
    """
    start = next((r for r in records if r.get("type") == "start"), {})
    rows = {
        row["label"]: row
        for record in records
        if record.get("type") == "end"
        for row in record.get("people", ())
    }
    curves = []
    begun = [person["label"] for person in start.get("people", ())]
    for label in dict.fromkeys([*begun, *rows, *(r["label"] for r in records if "label" in r)]):
        person_records = [r for r in records if r.get("label") == label]
        readings = [r for r in person_records if r.get("type") == "reading"]
        row = rows.get(label, {})
        watch = row.get("watch") if rows else _choose_watch(readings)
        shown = [r for r in readings if r.get("watch") in (None, watch)]
        alerts = [
            (r["seconds"], r["value"])
            for r in person_records
            if r.get("type") == "alert"
            and r.get("state") == "raised"
            and r.get("level") != "warning"
            and r.get("value") is not None
            and r.get("field") == "bits"
            and r.get("watch") in (None, watch)
        ]
        bits = [r.get("bits") for r in shown]
        curves.append(
            PersonCurve(
                label,
                _format_label(label, row, bits),
                np.array([r["seconds"] for r in shown], float),
                np.array([math.nan if b is None else b for b in bits], float),
                alerts,
                any(map(is_evidence, shown)),
            )
        )
    return curves


def _choose_watch(readings: Sequence[Record]) -> str | None:
    last_bits = {r.get("watch"): r.get("bits") for r in readings}
    bits = {name: -math.inf if last is None else last for name, last in last_bits.items()}
    return max(bits, key=bits.__getitem__, default=None)


def _format_label(label: str, row: Record, bits: Sequence[float | None]) -> str:
    """Format a label with who it is and how many bits in the end."""
    parts = [short_name(label, 18)]
    if row.get("person") is not None and row.get("probability") is not None:
        parts.append(f"{short_name(row['person'], 14)} {100 * row['probability']:.0f} %")
    values = [value for value in bits if value is not None]
    if values:
        parts.append(f"{values[-1]:.1f} bits")
    return ", ".join(parts)


def make_painter(records: Sequence[Record], title: str | None = None) -> Callable[[Figure], None]:
    """Return the function that paints the people of a run."""
    curves = make_curves(records)
    nonempty = [curve for curve in curves if curve.seconds.size]
    curves_drawn = sorted(sorted(nonempty, key=lambda c: -c.last)[:MOST_DRAWN], key=curves.index)
    start = next((r for r in records if r.get("type") == "start"), {})
    end = next((r for r in records if r.get("type") == "end"), {})
    length = max(
        [end.get("seconds") or 0.0, *(float(c.seconds[-1]) for c in curves_drawn)], default=0.0
    )
    heading = f"What each of {plural(len(curves), 'person', 'people')} gave away"
    evidence = any(curve.evidence for curve in curves_drawn)

    def paint(figure: Figure) -> None:
        below = 0.022 + 0.028 * len(curves_drawn)
        axes = figure.add_axes((0.07, 0.165 + below + 0.03, 0.66, 0.68 - below))
        strip = figure.add_axes((0.07, 0.165, 0.66, below), sharex=axes)
        for curve, colour in zip(curves_drawn, _COLOURS, strict=False):
            _draw_curve(axes, curve, colour, length)
        _draw_strip(strip, curves_drawn)
        low, high = axes.get_ylim()
        axes.set_ylim(min(low, 0.0), max(high, 1.0))
        axes.set_xlim(0.0, max(length, 1.0))
        axes.set_ylabel("bits of evidence" if evidence else "bits")
        axes.axhline(0.0, color=GREY, linewidth=0.7, linestyle=(0, (1, 4)), zorder=0)
        axes.tick_params(labelbottom=False)
        step = next((t for t in _TICKS if length / t <= _MOST_TICKS), length / _MOST_TICKS)
        ticks = np.arange(0.0, length + 1e-9, step)
        strip.set_xticks(ticks, [clock_time(tick) for tick in ticks])
        strip.set_xlabel("time in the recording; below the curves: who speaks when")
        _label_ends(axes, curves_drawn)
        title_text = short_name(heading if title is None else title, 90)
        figure.text(0.07, 0.945, title_text, fontsize=15, weight="bold", color=BLACK, va="bottom")
        figure.text(0.07, 0.91, _summary(start, end, len(curves) - len(curves_drawn)), color=GREY)
        figure.text(0.07, 0.025, _caption(start, evidence=evidence), color=GREY, fontsize=9.5)

    return paint


def _draw_curve(axes: Axes, curve: PersonCurve, colour: str, length: float) -> None:
    """Draw a curve: bits stay what they are while somebody else speaks."""
    x, y = np.append(curve.seconds, length), np.append(curve.bits, curve.last)
    axes.plot(x, y, drawstyle="steps-post", color=colour, linewidth=1.7, gid=curve.label)
    for seconds, bits in curve.alerts:
        axes.plot(
            [seconds], [bits], marker="o", markersize=7, color="white", markeredgecolor=colour,
            markeredgewidth=2.0,
        )  # fmt: skip


def _draw_strip(axes: Axes, curves: Sequence[PersonCurve]) -> None:
    """Draw who speaks when, a row a person: readings come while a person speaks."""
    for row, (curve, colour) in enumerate(zip(curves, _COLOURS, strict=False)):
        begins = np.concatenate(([0.0], curve.seconds[:-1]))
        begins = np.maximum(begins, curve.seconds - _STEP_SECONDS)
        spans = list(zip(begins, curve.seconds - begins, strict=True))
        axes.broken_barh(spans, (len(curves) - row - 0.85, 0.7), color=colour, linewidth=0)
    axes.set_ylim(0.0, max(len(curves), 1))
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)


def _label_ends(axes: Axes, curves: Sequence[PersonCurve]) -> None:
    """Write each curve's name where it ends."""
    low, high = axes.get_ylim()
    order = sorted(range(len(curves)), key=lambda k: curves[k].last)
    indices = [k for k in order if math.isfinite(curves[k].last)]
    size = 0.068 * (high - low)
    heights = spread_apart([curves[k].last for k in indices], [size] * len(indices), low, high)
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


def _summary(start: Record, end: Record, hidden: int) -> str:
    parts = [short_name(", ".join(start.get("recordings", ())), 60)]
    if end.get("overlap_seconds"):
        parts.append(overlap_in_words(end["overlap_seconds"]))
    if hidden:
        parts.append(f"{hidden} with less, or nothing, are not drawn")
    return "  ·  ".join(filter(None, parts))


def _caption(start: Record, *, evidence: bool) -> str:
    sentence = people_in_words(start, evidence=evidence)
    care = "everybody whom a voice fits as well is counted" if evidence else "it can be wrong"
    return f"{sentence}. Circles: alerts.\nNo certainty: {care}."
