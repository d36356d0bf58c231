"""Several people in one recording as a picture: a curve each, and who speaks when."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
from monitor.plots.curve import short_name
from monitor.types import FloatArray

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
    """One person's readings, seconds of the recording against bits, shape (k,) each."""

    label: str
    said: str
    seconds: FloatArray
    bits: FloatArray
    alerts: Sequence[tuple[float, float]]
    evidence: bool

    @property
    def last(self) -> float:
        """The bits in the end; minus infinity where there are none."""
        known = self.bits[np.isfinite(self.bits)]
        return float(known[-1]) if known.size else -math.inf


def curves_of(records: Sequence[Mapping[str, Any]]) -> list[PersonCurve]:
    """The curve of each person of a run, in the order of its labels.

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
    made = []
    begun = [each["label"] for each in start.get("people", ())]
    for label in dict.fromkeys([*begun, *rows, *(r["label"] for r in records if "label" in r)]):
        own = [r for r in records if r.get("label") == label]
        readings = [r for r in own if r.get("type") == "reading"]
        row = rows.get(label, {})
        watch = row.get("watch") if rows else _most_said(readings)
        shown = [r for r in readings if r.get("watch") in (None, watch)]
        alerts = [
            (r["seconds"], r["value"])
            for r in own
            if r.get("type") == "alert"
            and r.get("state") == "raised"
            and r.get("level") != "warning"
            and r.get("value") is not None
            and r.get("field") == "bits"
            and r.get("watch") in (None, watch)
        ]
        bits = [r.get("bits") for r in shown]
        made.append(
            PersonCurve(
                label,
                _said(label, row, bits),
                np.array([r["seconds"] for r in shown], float),
                np.array([math.nan if b is None else b for b in bits], float),
                alerts,
                any(map(is_evidence, shown)),
            )
        )
    return made


def _most_said(readings: Sequence[Mapping[str, Any]]) -> str | None:
    lasts = {r.get("watch"): r.get("bits") for r in readings}
    bits = {name: -math.inf if each is None else each for name, each in lasts.items()}
    return max(bits, key=bits.__getitem__, default=None)


def _said(label: str, row: Mapping[str, Any], bits: Sequence[float | None]) -> str:
    """A label with who it is and how many bits in the end."""
    parts = [short_name(label, 18)]
    if row.get("person") is not None and row.get("probability") is not None:
        parts.append(f"{short_name(row['person'], 14)} {100 * row['probability']:.0f} %")
    known = [value for value in bits if value is not None]
    if known:
        parts.append(f"{known[-1]:.1f} bits")
    return ", ".join(parts)


def painter(
    records: Sequence[Mapping[str, Any]], title: str | None = None
) -> Callable[[Figure], None]:
    """What paints the people of a run."""
    curves = curves_of(records)
    heard = [curve for curve in curves if curve.seconds.size]
    drawn = sorted(sorted(heard, key=lambda c: -c.last)[:MOST_DRAWN], key=curves.index)
    start = next((r for r in records if r.get("type") == "start"), {})
    end = next((r for r in records if r.get("type") == "end"), {})
    length = max([end.get("seconds") or 0.0, *(float(c.seconds[-1]) for c in drawn)], default=0.0)
    heading = f"What each of {plural(len(curves), 'person', 'people')} gave away"
    evidence = any(curve.evidence for curve in drawn)

    def paint(figure: Figure) -> None:
        below = 0.022 + 0.028 * len(drawn)
        axes = figure.add_axes((0.07, 0.165 + below + 0.03, 0.66, 0.68 - below))
        strip = figure.add_axes((0.07, 0.165, 0.66, below), sharex=axes)
        for curve, colour in zip(drawn, _COLOURS, strict=False):
            _curve(axes, curve, colour, length)
        _strip(strip, drawn)
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
        _ends(axes, drawn)
        said = short_name(heading if title is None else title, 90)
        figure.text(0.07, 0.945, said, fontsize=15, weight="bold", color=BLACK, va="bottom")
        figure.text(0.07, 0.91, _summary(start, end, len(curves) - len(drawn)), color=GREY)
        figure.text(0.07, 0.025, _caption(start, evidence=evidence), color=GREY, fontsize=9.5)

    return paint


def _curve(axes: Axes, curve: PersonCurve, colour: str, length: float) -> None:
    """Bits stay what they are while somebody else speaks."""
    x, y = np.append(curve.seconds, length), np.append(curve.bits, curve.last)
    axes.plot(x, y, drawstyle="steps-post", color=colour, linewidth=1.7, gid=curve.label)
    for seconds, bits in curve.alerts:
        axes.plot(
            [seconds], [bits], marker="o", markersize=7, color="white", markeredgecolor=colour,
            markeredgewidth=2.0,
        )  # fmt: skip


def _strip(axes: Axes, drawn: Sequence[PersonCurve]) -> None:
    """Who speaks when, a row a person: readings come while a person speaks."""
    for row, (curve, colour) in enumerate(zip(drawn, _COLOURS, strict=False)):
        begins = np.concatenate(([0.0], curve.seconds[:-1]))
        begins = np.maximum(begins, curve.seconds - _STEP_SECONDS)
        spans = list(zip(begins, curve.seconds - begins, strict=True))
        axes.broken_barh(spans, (len(drawn) - row - 0.85, 0.7), color=colour, linewidth=0)
    axes.set_ylim(0.0, max(len(drawn), 1))
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)


def _ends(axes: Axes, drawn: Sequence[PersonCurve]) -> None:
    """Each curve's name where it ends."""
    low, high = axes.get_ylim()
    order = sorted(range(len(drawn)), key=lambda k: drawn[k].last)
    known = [k for k in order if math.isfinite(drawn[k].last)]
    size = 0.068 * (high - low)
    places = spread_apart([drawn[k].last for k in known], [size] * len(known), low, high)
    for k, place in zip(known, places, strict=True):
        axes.annotate(
            drawn[k].said, (1.0, drawn[k].last), xycoords=("axes fraction", "data"),
            xytext=(1.03, place), textcoords=("axes fraction", "data"), va="center",
            color=_COLOURS[k], fontsize=10.5,
            arrowprops={
                "arrowstyle": "-", "color": _COLOURS[k], "linewidth": 0.8, "relpos": (0.0, 0.5),
                "shrinkB": 0.0,
            },
        )  # fmt: skip


def _summary(start: Mapping[str, Any], end: Mapping[str, Any], left: int) -> str:
    parts = [short_name(", ".join(start.get("recordings", ())), 60)]
    if end.get("overlap_seconds"):
        parts.append(overlap_in_words(end["overlap_seconds"]))
    if left:
        parts.append(f"{left} with less, or nothing, are not drawn")
    return "  ·  ".join(filter(None, parts))


def _caption(start: Mapping[str, Any], *, evidence: bool) -> str:
    said = people_in_words(start, evidence=evidence)
    care = "everybody whom a voice fits as well is counted" if evidence else "it can be wrong"
    return f"{said}. Circles: alerts.\nNo certainty: {care}."
