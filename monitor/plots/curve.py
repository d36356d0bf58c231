"""Pictures of runs: bits of identity against seconds of speech."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from monitor.crowds import SCALE, axis_top, crowd_of, people, rounded
from monitor.errors import UsageError
from monitor.events import phrases
from monitor.events.declaration import Event, find_first
from monitor.events.phrases import enrolment
from monitor.events.reading import Reading
from monitor.events.run import Alert, Change, GapEvent, NoticeEvent, RunEnd, RunStart
from monitor.phrases import AT_ALL, STYLE_CAVEAT, clock_time, odds, plural, verdict
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
    make_figure,
    scale_seconds,
    spread_apart,
)
from monitor.plots.recording import INCHES as PEOPLE_INCHES
from monitor.plots.recording import make_people_painter
from monitor.safe_text import short_name
from monitor.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Columns: TypeAlias = Mapping[str, FloatArray]
Pieces: TypeAlias = Sequence[slice]
"""Readings between two restarts of the evidence."""
Label: TypeAlias = tuple[float, str, str]
"""Bits at the end of a line, its text and colour."""

# --- The events of a run as columns of numbers.

POWERS = {"linear": 1.0, "sqrt": 0.5}
"""The guides, and the power of the speech that each grows with."""
COMPOSITION = {"basic": (0, (1, 1)), "advanced": (0, (4, 1, 1, 1)), "optimal": (0, (8, 2))}
"""Compositions of a declared epsilon, and the dash pattern of each."""
LIMITED = ("bits", "bits_low", "bits_high")


@dataclass(frozen=True)
class RunColumns:
    """Events of a run as columns, with everything that a plot needs."""

    columns: Columns
    speakers: int
    ceiling: float
    plateau: float | None
    watch: str | None
    last: Reading
    evidence: bool
    protected: str
    alerts: Sequence[Alert]
    gaps: Sequence[GapEvent]
    changes: Sequence[Change]
    notices: Sequence[str]
    fresh: Sequence[int]
    doubtful: BoolArray
    alone: Columns

    @property
    def doubt(self) -> str:
        """Warning if a change is unresolved at the end, otherwise empty."""
        return phrases.another_voice(self.last, self.watch)

    def speech_at(self, seconds: float) -> float:
        """Return speech seconds at a stream time."""
        times, speech = self.columns["seconds"], self.columns["speech"]
        is_finite = np.isfinite(times) & np.isfinite(speech)
        if not is_finite.any():
            return 0.0
        return float(np.interp(seconds, times[is_finite], speech[is_finite]))


def read_columns(events: Sequence[Event]) -> RunColumns:
    """Sort the events of a run by type; the start or end may be missing."""
    readings = [event for event in events if isinstance(event, Reading)]
    start = find_first(events, RunStart) or RunStart.from_record({})
    end = find_first(events, RunEnd)
    last = readings[-1] if readings else Reading.from_record({})
    evidence = any(reading.is_evidence for reading in readings)
    changes = [event for event in events if isinstance(event, Change)]
    columns = _make_columns(readings, evidence=evidence)
    fresh = _find_restarts(columns, changes)
    columns["speech"] = _chain_speech(columns["speech"], fresh)
    ceiling = float(last.ceiling or start.ceiling or 0.0)
    watch = end.watch if start.watch is None and end is not None else start.watch
    if watch is None and last.assumes_enrolled is False:
        watch = "the watched speaker"
    names = tuple(last.features or {})
    figures = [reading.features or {} for reading in readings]
    field = "gain_bits" if watch is None else "local_bits"
    alone = {n: _column([getattr(f.get(n), field, None) for f in figures]) for n in names}
    return RunColumns(
        columns=columns,
        speakers=int(start.speakers or round(2.0 ** min(ceiling, 64.0))),
        ceiling=ceiling,
        plateau=start.plateau if last.plateau is None else last.plateau,
        watch=None if watch is None else short_name(watch),
        last=last,
        evidence=evidence,
        protected="" if start.protected is None else short_name(start.protected.method),
        alerts=[e for e in events if isinstance(e, Alert) and e.level != "warning"],
        gaps=[  # when words end no audio is lost
            e for e in events if isinstance(e, GapEvent) and e.reason != "words ended"
        ],
        changes=changes,
        notices=[short_name(e.text or "", 160) for e in events if isinstance(e, NoticeEvent)],
        fresh=fresh,
        doubtful=np.array([reading.change is not None for reading in readings], bool),
        alone=alone if len(names) > 1 else {},
    )


def _make_columns(readings: Sequence[Reading], *, evidence: bool) -> dict[str, FloatArray]:
    """Return one column per curve; each curve has only one kind of figure."""

    def column(get: Callable[[Reading], object], names: Sequence[str], under: str = "") -> None:
        """Add attributes of the value that ``get`` returns for each reading."""
        values = [get(reading) for reading in readings]
        for name in names:
            columns[under + name] = _column([getattr(value, name, None) for value in values])

    columns: dict[str, FloatArray] = {}
    column(lambda reading: reading, ("seconds", "speech", "support_bits"))
    column(lambda reading: reading, [f"expected_{name}" for name in LIMITED])
    column(lambda reading: reading if reading.is_evidence == evidence else None, LIMITED)
    column(lambda reading: reading if reading.is_evidence else None, ("spread_low", "spread_high"))
    for end in ("", "_low", "_high"):
        columns[f"closed_set_bits{end}"] = _column([r.closed_set(end) for r in readings])
    column(lambda r: r.evidence_guides if evidence else r.guides, tuple(POWERS))
    column(lambda reading: reading.protected, LIMITED, "protected_")
    column(lambda reading: reading.declared, [f"{name}_nats" for name in COMPOSITION])
    for name in COMPOSITION:
        columns[name] = columns.pop(f"{name}_nats") / math.log(2.0)
    return columns


def curve_points(x: FloatArray, y: FloatArray, limit: int = 1200) -> IntArray:
    """Return indices of at most about ``4 * limit`` points that draw the same curve on a log axis.

    Each of ``limit`` slots along log x keeps its first, last, lowest and highest points, so that no
    peak is lost.
    """
    if x.size <= limit:
        return np.arange(x.size)
    logs = np.log(x)
    span = logs[-1] - logs[0]
    slot = np.zeros(x.size, int) if span <= 0 else ((logs - logs[0]) / span * limit).astype(int)
    order = np.lexsort((y, slot))  # NaN sorts last within its slot
    heads = np.flatnonzero(np.diff(slot[order], prepend=-1))
    tails = np.append(heads[1:], x.size) - 1
    finite = np.add.reduceat(np.isfinite(y[order]).astype(int), heads)
    highest = order[heads + np.maximum(finite - 1, 0)]
    return np.unique(np.concatenate([heads, tails, order[heads], highest]))


def _find_restarts(columns: Columns, changes: Sequence[Change]) -> list[int]:
    """Find readings where the evidence restarted: after a reset or split, or where T fell."""
    seconds, speech = columns["seconds"], columns["speech"]
    indices = np.flatnonzero(np.isfinite(speech))
    starts = set(indices[1:][np.diff(speech[indices]) < 0].tolist())
    for change in changes:
        if change.action in ("reset", "split"):
            # the reading at the time of the change is the last one of the old evidence
            after = np.flatnonzero(seconds > change.seconds)
            starts |= set(after[:1].tolist())
    return sorted(starts - {0})


def _chain_speech(speech: FloatArray, fresh: Sequence[int]) -> FloatArray:
    """Add the speech before each restart to the readings after it, so the axis never goes back."""
    result = speech.copy()
    for start in fresh:
        before = speech[:start][np.isfinite(speech[:start])]
        if before.size:
            result[start:] += before[-1]
    return result


def _column(values: Sequence[float | None]) -> FloatArray:
    return np.array([np.nan if v is None else v for v in values], float)


# --- Texts around the curve of a run.

MOST_NOTICES = 2
CAPTION_COLUMNS = 145
"""Maximum characters of small text that fit across a picture."""


def heading(run: RunColumns) -> str:
    """Format the last value of the main figure as one sentence."""
    if run.doubt:
        return _sentence(run.doubt)
    speech, closed = run.columns["speech"], run.columns["closed_set_bits"]
    indices = np.flatnonzero(np.isfinite(closed) & np.isfinite(speech))
    if not indices.size:
        return "No figures for this voice yet"
    text = verdict(float(closed[indices[-1]]), _ceiling(run), run.watch)
    caution = phrases.caveat_of(run.last)
    if nobody := phrases.nobody_speaks(run.last):
        parts = (nobody, phrases.ENROL, caution)
        return ". ".join(_sentence(part) for part in parts if part)
    if narrowing := phrases.narrowed_sentence(run.last, run.watch or "", fit=False):
        text = short_name(narrowing, 110)
    care = f": {caution}" if caution else ""
    begun = [change for change in run.changes if change.action in ("reset", "split")]
    before = float(speech[run.fresh[-1] - 1]) if run.fresh else 0.0
    length = format_seconds(float(speech[indices[-1]]) - before)
    if begun and run.fresh:
        since = clock_time(begun[-1].since_seconds)
        return f"The voice since {since}: after {length} of it, {text}{care}"
    return f"After {length} of speech, {text}{care}"


def summary(run: RunColumns) -> str:
    """Format bits now and at the peak, the closed-set figure beside evidence, and lost audio."""
    speech, bits = run.columns["speech"], run.columns["bits"]
    finite_bits = bits[np.isfinite(bits) & (speech > 0)]
    match, among = phrases.best_match(run.last, run.speakers), ""
    parts = [short_name(match, 100)] if match else []
    closed_set = run.last.closed_set()
    closed = []
    if run.evidence and closed_set is not None:
        among = f" among the {run.speakers} enrolled"
        closed = [
            f"closed-set: {in_bits(round(closed_set, 1))} of at most {run.ceiling:.2f}{among}"
        ]
    if finite_bits.size:
        now, highest = float(finite_bits[-1]), float(finite_bits.max())
        peak = int(np.nanargmax(np.where(speech > 0, bits, np.nan)))
        owner = " of an earlier voice" if run.fresh and peak < run.fresh[-1] else ""
        if not run.evidence:
            now_words = f"{in_bits(now)} of at most {run.ceiling:.2f}"
            parts += [now_words, f"peak {in_bits(highest)}{owner}"]
        elif run.last.is_evidence:
            evidence = phrases.bits_or_more(run.last, f"{in_bits(round(now, 1))} of evidence")
            parts += [evidence, f"peak {in_bits(round(highest, 1))}{owner}", *closed]
        else:  # the evidence has ended
            parts += [*closed, f"peak {in_bits(round(highest, 1))} of evidence{owner}"]
    if run.watch is not None and not run.evidence:
        parts.append(f"by chance it would be {one_in_words(run, 0.0)}")
    if run.gaps:
        lost = sum(gap.lost_seconds or 0.0 for gap in run.gaps)
        parts.append(f"{plural(len(run.gaps), 'gap')}, {lost:.2g} s of audio lost")
    if withheld := run.last.withheld:
        parts.append(f"withheld: {short_name(withheld, 60)}")
    return "  ·  ".join(parts)


def caption(run: RunColumns) -> str:
    """Explain the curve's figure and band, in lines that fit the picture."""
    lines = []
    if run.evidence:
        bands = "Bands: 95 % interval"
        if run.last.spread_low is not None and not run.protected:
            bands += " (lighter: 9 of 10 voices watched by their own name)"
        lines += [
            f"Evidence that this is {run.watch}; negative is evidence against. {bands}.",
            "Evidence is not proof. It assumes recordings like the calibration's.",
        ]
    elif run.watch is None:
        lines += [
            "Attacker's confidence, assuming the speaker is enrolled; it can be wrong. Bands: 95 % "
            "interval.",
            "1 in k: as certain as with k equally likely speakers remaining.",
        ]
    else:
        shade = " (shaded: of several voices)" if run.doubtful.any() else ""
        lines.append(
            f"Bits of {run.watch}{shade}; below 0 the attacker is misled. Bands: 95 % interval."
        )
    if run.last.session == "same" and not run.evidence:
        lines[-1] += " Templates from the same session."
    if sentence := _sentence(enrolment(run.last)):
        question = "" if run.last.is_impostor else f"{AT_ALL} "
        if run.watch is None:
            lines[-1] += f" {question}{sentence}."
        else:
            lines.append(f"{question}{sentence}.")
    if "style" in (run.last.features or ()):
        lines.append(f"{_sentence(STYLE_CAVEAT)}.")
    lines += [f"Note: {notice}" for notice in run.notices[:MOST_NOTICES]]
    if run.notices[MOST_NOTICES:]:
        lines[-1] += f" (and {len(run.notices) - MOST_NOTICES} more)"
    return "\n".join(textwrap.fill(line, CAPTION_COLUMNS) for line in lines)


def _sentence(words: str) -> str:
    return words[:1].upper() + short_name(words[1:], 180)


def one_in_words(run: RunColumns, bits: float) -> str:
    """Format bits as odds among the N of the run."""
    return odds(bits, _ceiling(run), assumed=run.watch is None)


def in_bits(bits: float) -> str:
    """Format bits with their unit."""
    text = f"{bits:.2f}".rstrip("0").rstrip(".")
    text = "0" if text == "-0" else text.replace("-", "\N{MINUS SIGN}")
    return f"{text} bit{'' if text == '1' else 's'}"


def _ceiling(run: RunColumns) -> float:
    return math.log2(max(run.speakers, 1))


# --- Marks on the curve of a run: alerts, gaps, changes of speaker.

CHARACTER_WIDTH = 0.0093
"""Width of a small character as a fraction of the axes."""
APART = 0.03  # minimum distance of upright texts as a fraction of the axes


def across(axes: Axes, x: float) -> float:
    """Return the position of x along the axis, 0 to 1."""
    low, high = np.log(axes.get_xlim())
    return float(np.clip((np.log(x) - low) / (high - low), 0, 1))


def draw_scale(axes: Axes) -> None:
    """Draw the right axis: faint labelled lines where bits single out one person in a crowd."""
    low, high = axes.get_ylim()
    for crowd in SCALE:
        if not low < crowd.bits < high:
            continue
        axes.axhline(crowd.bits, color=GREY, linewidth=0.7, linestyle=(0, (1, 4)), zorder=0)
        axes.annotate(
            crowd.name, (1.0, crowd.bits), xycoords=("axes fraction", "data"), xytext=(6, 0),
            textcoords="offset points", va="center", color=GREY, fontsize=10,
        )  # fmt: skip
    axes.text(1.008, 1.012, "one match per", transform=axes.transAxes, color=GREY, fontsize=10)


def mark_peak(axes: Axes, x: float, y: float) -> None:
    """Mark the peak: a dot on the highest point."""
    bottom, top = axes.get_ylim()
    below = (y - bottom) / (top - bottom) > 0.82  # avoid the guides' labels at the top
    axes.plot([x], [y], "o", color=BLUE, markersize=8, markeredgecolor="white", zorder=5)
    axes.annotate(
        f"peak {in_bits(y)}", (x, y), xytext=(0, -22 if below else 10), textcoords="offset points",
        ha="right" if across(axes, x) > 0.5 else "left", color=BLUE, weight="bold", zorder=6,
        bbox={"facecolor": "white", "alpha": 0.9, "edgecolor": "none", "pad": 1},
    )  # fmt: skip


def mark_doubt(axes: Axes, x: FloatArray, doubtful: BoolArray) -> None:
    """Shade the readings that may contain several voices."""
    edges = np.flatnonzero(np.diff(doubtful.astype(int), prepend=0, append=0))
    for first, end in zip(edges[::2], edges[1::2], strict=True):
        low, high = float(x[max(first - 1, 0)]), float(x[end - 1])
        axes.axvspan(low, high, color=ORANGE, alpha=0.12, linewidth=0, zorder=0)


def mark_changes(axes: Axes, run: RunColumns) -> None:
    """Draw vertical lines where another voice or channel began, with the recording time."""
    free = 0.0
    for change in run.changes:
        x = _locate(axes, run, change.since_seconds)
        axes.axvline(x, color=PURPLE, linewidth=1.2, linestyle=(0, (1, 2)))
        position = across(axes, x)
        if position < free:
            continue
        is_left = position > APART
        axes.text(
            position + (-0.004 if is_left else 0.004), 0.06, phrases.voice_since(change),
            transform=axes.transAxes, rotation=90, ha="right" if is_left else "left",
            va="bottom", color=PURPLE, fontsize=10, zorder=1,
        )  # fmt: skip
        free = position + APART


def mark_alerts(axes: Axes, run: RunColumns) -> None:
    """Draw vertical lines where alerts were raised and cleared."""
    free = 0.0
    for alert in run.alerts:
        x = _locate(axes, run, alert.seconds)
        raised = alert.state == "raised"
        axes.axvline(
            x, color=RED, linewidth=1.3 if raised else 1, alpha=0.9 if raised else 0.5,
            linestyle="-" if raised else (0, (4, 3)),
        )  # fmt: skip
        text = f"alert: {short_name(alert.rule, 40)}" if raised else "alert over"
        text = text if alert.way is None else phrases.describe_event(alert)[0]
        half = len(text) * CHARACTER_WIDTH / 2
        centre = min(max(across(axes, x), half), 1 - half)
        if centre - half >= free:
            axes.text(
                centre, 1.012, text, transform=axes.transAxes, ha="center", color=RED, fontsize=10
            )
            free = centre + half + 0.01


def mark_gaps(axes: Axes, run: RunColumns) -> None:
    """Draw ticks on the axis where audio was lost."""
    if not run.gaps:
        return
    places = sorted({_locate(axes, run, gap.seconds) for gap in run.gaps})
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


def _locate(axes: Axes, run: RunColumns, seconds: float) -> float:
    """Return the speech seconds at a stream time, within the limits of the axis."""
    low, high = axes.get_xlim()
    return min(max(run.speech_at(seconds), low), high)


# --- One run as a picture: bits of identity against seconds of speech.

_SUPPORT = "maximum that calibration supports"
LINE_HEIGHT = 0.034  # line height of small text as a fraction of the axes
GUIDES = (
    ("linear", "linear guide:\nevery second counts in full", ORANGE, (0, (6, 3))),
    ("sqrt", "square-root guide:\nseconds count less and less", PURPLE, (0, (2, 2))),
)
GUIDES_NOTE = (
    "Guides: an average voice if every second disclosed as much as the first (linear), or at the "
    "rate of advanced composition (square root)."
)

LABEL_COLUMNS = 29
TITLE_COLUMNS = 100

_INCHES = (12, 7.5)


def plot_run(
    events: Sequence[Event],
    path: Path,
    *,
    title: str | None = None,
    guides: bool = False,
) -> None:
    """Draw a run: its main figure with interval, ceilings, guides, alerts, changes and gaps.

    A run of several people gets one curve per person, against recording time
    (`monitor.plots.recording`).

    The plot has bits against speech seconds on a log axis, so readings before the first speech are
    not shown. Every line is labelled at its end. Bits are also given as "1 in k", k = N / 2^bits.

    Args:
        events: the events of one run, in order; any of them may be missing.
        path: output file: .png, .svg or .pdf.
        title: replaces the default title.
        guides: draw composition beside evidence: its guides, the maximum that calibration supports,
            and the bound of a declared epsilon. The closed-set figure always has guides.

    Raises:
        UsageError: if the suffix is not supported.
        StoreError: if the file cannot be written.
    """
    draw(path, *_make_painter(events, title, guides=guides))


def draw_run(events: Sequence[Event], *, title: str | None = None, guides: bool = False) -> Figure:
    """Draw the picture that `plot_run` writes, as a figure of matplotlib."""
    return make_figure(*_make_painter(events, title, guides=guides))


def _make_painter(
    events: Sequence[Event], title: str | None, *, guides: bool
) -> tuple[Callable[[Figure], None], tuple[float, float]]:
    """Return the function that paints a run of one or several people, and its size in inches."""
    start = find_first(events, RunStart)
    if start is not None and start.people is not None:
        return make_people_painter(events, title), PEOPLE_INCHES
    run = read_columns(events)
    title_text = short_name(heading(run) if title is None else title, 2 * TITLE_COLUMNS)
    lines = textwrap.wrap(title_text, TITLE_COLUMNS) or [""]
    guided = not run.protected and (guides or not run.evidence)
    small = caption(run) + (f"\n{GUIDES_NOTE}" if guided and run.evidence else "")

    def paint(figure: Figure) -> None:
        width = 0.60 if run.evidence else 0.655  # the scale of crowds needs room beside it
        below = 0.022 * max(0, small.count("\n") - 1)  # for lines beyond two
        axes = figure.add_axes((0.085, 0.135 + below, width, 0.715 - below))
        has_speech = run.columns["speech"] > 0
        shown = {name: column[has_speech] for name, column in run.columns.items()}
        alone = {name: column[has_speech] for name, column in run.alone.items()}
        pieces = _cut_pieces(has_speech, run.fresh)
        _set_axes(axes, run, shown, list(alone.values()))
        labels = _draw_levels(axes, run)
        if run.protected:
            labels += _draw_protected(axes, run, shown, pieces)
        if guided:
            labels += _draw_guides(axes, run, shown, pieces)
            labels += _draw_composition(axes, shown, pieces)
        if run.evidence:
            draw_scale(axes)
        elif not run.protected:
            labels += _draw_features(axes, shown["speech"], alone, pieces)
        labels += _draw_curves(axes, run, shown, pieces)
        mark_doubt(axes, shown["speech"], run.doubtful[has_speech])
        mark_changes(axes, run)
        mark_alerts(axes, run)
        mark_gaps(axes, run)
        _label_ends(axes, labels, 1.105 if run.evidence else 1.003)
        largest = 12.5 if lines[1:] else 16.0
        size = min(largest, 16 * 74 / max(1, *map(len, lines)))
        heading_text = "\n".join(lines)
        figure.text(
            0.085, 0.94, heading_text, fontsize=size, weight="bold", color=BLACK, va="bottom"
        )
        subheading = summary(run)
        size = min(12.0, 1600 / max(1, len(subheading)))  # longer ones would leave the picture
        figure.text(0.085, 0.912, subheading, fontsize=size, color=GREY)
        figure.text(0.085, 0.018, small, fontsize=10, color=GREY)

    return paint, _INCHES


def _cut_pieces(has_speech: BoolArray, fresh: Sequence[int]) -> list[slice]:
    """Cut the readings with speech where the evidence restarted."""
    indices = np.cumsum(has_speech) - 1
    cuts = sorted({int(indices[start]) + int(not has_speech[start]) for start in fresh} - {0})
    edges = [0, *(start for start in cuts if start < int(has_speech.sum())), int(has_speech.sum())]
    return [slice(low, high) for low, high in pairwise(edges) if high > low]


def _set_axes(axes: Axes, run: RunColumns, shown: Columns, more: Sequence[FloatArray]) -> None:
    """Set limits, ticks and grid."""
    speech = shown["speech"]
    ends = ("", "_low", "_high")
    names = [
        "closed_set_bits",
        *(f"{side}bits{end}" for side in ("", "protected_") for end in ends),
    ]
    others = [shown["support_bits"]] if run.evidence else [shown["linear"], *more]
    others = [] if run.protected and not run.evidence else others
    figures = np.concatenate([*(shown[name] for name in names), *others])
    figures = np.append(figures[np.isfinite(figures)], [0.0, run.ceiling or 1.0])
    low, high = float(figures.min()), float(figures.max())
    high = axis_top(high) if run.evidence else high
    axes.set_ylim(low - (high - low) * 0.07, high + (high - low) * 0.10)
    begin, end = (float(speech[0]), float(speech[-1])) if speech.size else (1.0, 60.0)
    begin = max(begin, end / 3000)
    if end < begin * 1.5:
        begin = end / 4
    axes.set_xlim(begin, end)
    scale_seconds(axes, begin, end)
    step = max(1, round((high - low) / 7))
    bits = list(range(int(np.ceil(low / step)) * step, int(high) + 1, step))
    closed = not run.evidence  # it means the same in any crowd
    means = [f"\n{one_in_words(run, b)}" if closed and b <= run.ceiling else "" for b in bits]
    axes.set_yticks(bits, [f"{in_bits(b)}{mean}" for b, mean in zip(bits, means, strict=True)])
    axes.grid(axis="y", color="#E6E6E6", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=3, color=GREY)
    axes.text(-0.117, 1.012, "bits of identity", transform=axes.transAxes, color=GREY, fontsize=10)
    axes.set_xlabel("seconds of speech (log scale)", color=BLACK)
    if not np.isfinite(shown["bits"]).any():
        axes.text(
            0.5, 0.45, "no figures yet", transform=axes.transAxes, ha="center", color=GREY,
            fontsize=16,
        )  # fmt: skip


def _draw_levels(axes: Axes, run: RunColumns) -> list[Label]:
    """Draw horizontal lines: ceiling, average plateau, alert thresholds."""
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
    headline = "evidence_bits" if run.evidence else "closed_set_bits"
    for shown, threshold in sorted({(a.field, a.threshold) for a in run.alerts})[:3]:
        if shown in ("bits", headline, "closed_set_bits"):
            of = "" if shown in ("bits", headline) else "closed-set "
            axes.axhline(threshold, color=RED, linewidth=0.9, linestyle=(0, (1, 3)))
            labels.append((threshold, f"{of}alert threshold: {in_bits(threshold)}", RED))
    return labels


def _draw_guides(axes: Axes, run: RunColumns, shown: Columns, pieces: Pieces) -> list[Label]:
    """Draw dashed guides up to the ceiling, or up to the support of evidence, with labels."""
    labels: list[Label] = []
    above: list[Label] = []
    maximum = run.ceiling
    if run.evidence:
        maximum = float(np.nanmax(np.append(shown["support_bits"], 0.0)))
        axes.axhline(maximum, color=GREY, linewidth=1.0, linestyle=(0, (8, 3, 1, 3)))
        labels.append((maximum, f"{_SUPPORT}:\n{in_bits(round(maximum, 1))}", GREY))
    for name, text, colour, dashes in GUIDES:
        label: list[Label] = []
        for piece in pieces:
            x, y = shown["speech"][piece], shown[name][piece]
            indices = np.flatnonzero(np.isfinite(y) & (y > 0) & (y < (maximum or np.inf)) & (x > 0))
            if not indices.size:
                continue
            # on a log axis, points a second apart would give a power of T visible corners
            power = POWERS[name]
            before = float(shown["speech"][piece.start - 1]) if piece.start else 0.0
            scale = y[indices[0]] / (x[indices[0]] - before) ** power
            reaches = (maximum / scale) ** (1 / power) if maximum > 0 else np.inf
            end = min(float(x[-1]) - before, float(reaches))
            dense = np.geomspace(min(float(x[0]) - before, end), end, 200)
            axes.plot(before + dense, scale * dense**power, color=colour, lw=1, linestyle=dashes)
            # beside evidence a note explains a guide that ends early
            short = text.partition(":")[0] if run.evidence else text.replace("\n", " ")
            if reaches > x[-1] - before:
                label = [(float(scale * end**power), text, colour)]
            elif short not in (words for _, words, _ in above):
                above.append((across(axes, before + end), short, colour))
        labels += label  # of the last stretch
    widths = [(len(text) + 2) * CHARACTER_WIDTH for _, text, _ in above]
    centres = spread_apart([at for at, _, _ in above], widths, 0.0, 1.0)
    for centre, (_, text, colour) in zip(centres, above, strict=True):
        axes.annotate(
            text, (centre, maximum), xycoords=("axes fraction", "data"), xytext=(0, 5),
            textcoords="offset points", ha="center", color=colour, fontsize=10, zorder=6,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
        )  # fmt: skip
    return labels


def _draw_composition(axes: Axes, shown: Columns, pieces: Pieces) -> list[Label]:
    """Draw the bounds of a declared epsilon, as far as they fit into the picture."""
    labels, top = [], axes.get_ylim()[1]
    for name, dashes in COMPOSITION.items():
        fits = shown[name] < top  # not where nothing is declared
        for piece in pieces:
            x, y = shown["speech"][piece][fits[piece]], shown[name][piece][fits[piece]]
            axes.plot(x, y, color=BLACK, linewidth=1.0, linestyle=dashes)
        if fits.any():
            last = float(shown[name][fits][-1])
            labels.append((last, f"{name} composition\nof the declared epsilon", BLACK))
    return labels


def _draw_features(axes: Axes, x: FloatArray, alone: Columns, pieces: Pieces) -> list[Label]:
    """Draw a thin line for what each feature would disclose alone."""
    labels = []
    for (name, y), dashes in zip(alone.items(), ("-", (0, (5, 2)), (0, (1, 1.5))), strict=False):
        indices = np.flatnonzero(np.isfinite(y))
        if indices.size:
            for piece in pieces:
                keep = piece.start + curve_points(x[piece], y[piece])
                axes.plot(x[keep], y[keep], color=LIGHT_BLUE, linewidth=1.3, linestyle=dashes)
            last = float(y[indices[-1]])
            alone_words = f"{short_name(name)} alone{_until(x, indices)}: {in_bits(last)}"
            labels.append((last, alone_words, LIGHT_BLUE))
    return labels


def _draw_protected(axes: Axes, run: RunColumns, shown: Columns, pieces: Pieces) -> list[Label]:
    """Draw the protected side of the same speech, with its interval and the bits removed."""
    x, name = shown["speech"], "protected_bits"
    y = shown[name]
    indices = np.flatnonzero(np.isfinite(y))
    if not indices.size:
        return []
    for piece in pieces:
        keep = piece.start + curve_points(x[piece], y[piece])
        low, high = shown[f"{name}_low"][keep], shown[f"{name}_high"][keep]
        axes.fill_between(x[keep], low, high, color=ORANGE, alpha=0.16, linewidth=0)
        axes.plot(x[keep], y[keep], color=ORANGE, linewidth=2.2, linestyle=(0, (4, 1.2)))
    last = float(y[indices[-1]])
    bits = in_bits(round(last, 1))
    if run.last.protected is not None:
        bits = phrases.bits_or_more(run.last.protected, bits)
    difference, attacker = phrases.fewer_in_words(run.last), phrases.attacker_of(run.last)
    until = _until(x, indices)
    difference = "" if until else difference  # of the last reading
    parts = [
        f"through {run.protected}{until}: {bits}",
        difference,
        f"to {attacker}" if attacker else "",
    ]
    label = textwrap.fill(", ".join(filter(None, parts)), LABEL_COLUMNS)
    return [(last, label, ORANGE)]


def _draw_spread(axes: Axes, shown: Columns, pieces: Pieces) -> None:
    """Shade the range of other voices at that length, lighter than the interval."""
    low, high = shown["spread_low"], shown["spread_high"]
    for piece in pieces:
        keep = piece.start + curve_points(shown["speech"][piece], low[piece])
        x = shown["speech"][keep]
        axes.fill_between(x, low[keep], high[keep], color=BLUE, alpha=0.07, linewidth=0, zorder=0)


def _draw_curves(axes: Axes, run: RunColumns, shown: Columns, pieces: Pieces) -> list[Label]:
    """Draw expected bits, the closed-set figure beside evidence, and the main curve on top."""
    labels = []
    x = shown["speech"]
    main = [("bits", BLUE, 2.6, 0.22)]
    if run.evidence and not run.protected:
        main.insert(0, ("closed_set_bits", LIGHT_BLUE, 1.4, 0.0))
        _draw_spread(axes, shown, pieces)
    for name, colour, width, shade in (("expected_bits", GREY, 1.2, 0.13), *main):
        y = shown[name]
        indices = np.flatnonzero(np.isfinite(y))
        if not indices.size:
            continue
        for piece in pieces:
            keep = piece.start + curve_points(x[piece], y[piece])
            low, high = shown[f"{name}_low"][keep], shown[f"{name}_high"][keep]
            axes.fill_between(x[keep], low, high, color=colour, alpha=shade, linewidth=0)
            marker = "o" if np.isfinite(y[piece]).sum() == 1 else None
            thick = width if keep.size < 600 else width / 2
            axes.plot(x[keep], y[keep], color=colour, linewidth=thick, marker=marker)
        last = float(y[indices[-1]])
        if name == "closed_set_bits":
            among = f"closed-set, among the {run.speakers}{_until(x, indices)}"
            labels.append((last, f"{among}:\n{in_bits(round(last, 2))}", colour))
        elif name == "bits" and (until := _until(x, indices)):
            what = "evidence" if run.evidence else "bits"
            text = f"{what}{until}: {in_bits(round(last, 2))}; {_end_reason(run)}"
            labels.append((last, textwrap.fill(text, LABEL_COLUMNS), colour))
        elif name == "bits":
            peak = int(indices[np.argmax(y[indices])])
            peak = int(indices[-1]) if y[peak] == last else peak  # evidence is cut to one figure
            owner = "the attacker" if run.watch is None else "this voice"
            bits = in_bits(last)
            if run.evidence:
                bits = phrases.bits_or_more(run.last, in_bits(round(last, 1)))
            now = f"{'several voices' if run.doubt else owner} now: {bits}"
            peaked = ""
            if x[peak] < x[-1]:
                mark_peak(axes, float(x[peak]), float(y[peak]))
            else:
                peaked = "" if run.evidence else ", its peak"  # the line above has it
            means = phrases.format_matches(run.last) if run.evidence else one_in_words(run, last)
            means += " if it is one of them" if phrases.nobody_speaks(run.last) else ""
            meaning = f"\n= {means}" if means and not run.doubt else ""
            labels.append((last, f"{now}{meaning}{peaked}", colour))
        else:
            what = "closed-set average:" if run.evidence else "expected bits: an average"
            labels.append((last, f"{what}\nvoice{'s' * run.evidence} of this length", colour))
    return labels


def _until(x: FloatArray, indices: IntArray) -> str:
    """Format when a figure ended, if that was before the end of the run; otherwise empty."""
    return "" if indices[-1] == x.size - 1 else f" until {format_seconds(float(x[indices[-1]]))}"


def _end_reason(run: RunColumns) -> str:
    """Explain why the main figure has ended."""
    if withheld := run.last.withheld:
        return f"withheld since: {short_name(withheld, 60)}"
    names = [name for name, figures in (run.last.features or {}).items() if figures.usable]
    of = f" for {short_name('+'.join(names))}" if names else ""
    return f"none since, for lack of a rank model{of}"


def _label_ends(axes: Axes, labels: list[Label], begin: float) -> None:
    """Write each label beside the end of its line, moved only to avoid overlaps."""
    bottom, top = axes.get_ylim()
    labels = sorted(labels, key=lambda label: label[0])
    targets = [(y - bottom) / (top - bottom) for y, _, _ in labels]
    sizes = [LINE_HEIGHT * (text.count("\n") + 1) + 0.016 for _, text, _ in labels]
    for y, centre, (_, text, colour) in zip(
        targets, spread_apart(targets, sizes, -0.1, 1.05), labels, strict=True
    ):
        axes.plot(
            [begin, begin + 0.019, begin + 0.027], [y, centre, centre], color=colour,
            transform=axes.transAxes, linewidth=0.8, clip_on=False,
        )  # fmt: skip
        axes.text(
            begin + 0.033, centre, text, transform=axes.transAxes, va="center", color=colour,
            fontsize=10.5, linespacing=1.15, weight="bold" if colour == BLUE else "normal",
        )  # fmt: skip


# --- One voice among crowds of several sizes: bits against seconds of speech, one line per crowd.

_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, RED, BLACK)


def plot_crowds(
    events: Sequence[Event],
    path: Path,
    among: Sequence[int],
    *,
    title: str | None = None,
) -> None:
    """Draw the bits of the watched speaker among each crowd; each line stays below its ceiling.

    Args:
        events: the events of one run, with evidence.
        path: output file: .png, .svg or .pdf.
        among: sizes of crowds, at least N each.
        title: replaces the default title.

    Raises:
        UsageError: if the run has no evidence, or a crowd is smaller than N.
    """
    run = read_columns(events)
    lines = [(m, bits_in(events, m)) for m in among]
    if not any(np.isfinite(bits).any() for _, bits in lines):
        raise UsageError(
            "this run has no evidence to draw: use a watched speaker (--watch) and a population "
            "calibrated with a cohort"
        )
    if among[0] < run.speakers:
        raise UsageError(
            f"invalid crowd of {people(among[0])} people: use at least {run.speakers}, the number "
            "enrolled"
        )
    default = f"Bits of {run.watch} in crowds of increasing size"
    heading = short_name(default if title is None else title, 90)

    def paint(figure: Figure) -> None:
        axes = figure.add_axes((0.08, 0.12, 0.62, 0.76))
        _paint(axes, run, lines)
        figure.text(0.08, 0.935, heading, fontsize=14, weight="bold", color=BLACK)

    draw(path, paint, (9, 5))


def bits_in(events: Sequence[Event], crowd: float) -> FloatArray:
    """Compute ``log2(M p)`` of the watched speaker among M people at each reading, or NaN.

    A reading's own crowd and evidence give D, the evidence of all enrolled speakers against the
    watched one: ``M1 p1 = M1 LR / (D + M1)``. D then gives the bits for every other M.
    """
    return np.array([_bits(event, crowd) for event in events if isinstance(event, Reading)])


def _bits(reading: Reading, size: float) -> float:
    evidence = reading.evidence_bits
    crowds = [crowd for crowd in reading.among or () if crowd.bits is not None]
    if evidence is None or not crowds:
        return float("nan")
    # rounding of the recorded digits matters least for the smallest crowd
    smallest = min(crowds, key=lambda crowd: crowd.people)
    others = smallest.people * (2.0 ** (evidence - smallest.bits) - 1.0)
    return float(np.log2(size) + evidence - np.log2(max(others + size, 1e-300)))


def _paint(axes: Axes, run: RunColumns, lines: Sequence[tuple[int, FloatArray]]) -> None:
    has_speech = run.columns["speech"] > 0
    x = run.columns["speech"][has_speech]
    bottom = min(0.0, *(float(np.nanmin(bits[has_speech])) for _, bits in lines))
    top = max(float(np.nanmax(bits[has_speech])) for _, bits in lines)
    axes.set_xlim(max(float(x[0]), float(x[-1]) / 3000), float(x[-1]))
    axes.set_ylim(bottom - 0.3, top * 1.12)
    scale_seconds(axes, *axes.get_xlim())
    step = max(1, round((top - bottom) / 7))
    axes.set_yticks(range(int(np.ceil(bottom / step)) * step, int(top * 1.12) + 1, step))
    axes.grid(axis="y", color="#E6E6E6", linewidth=0.8)
    axes.set_xlabel("seconds of speech (log scale)", color=BLACK)
    axes.set_ylabel("bits", color=BLACK)
    labels = []
    for i, ((m, bits), colour) in enumerate(zip(lines, cycle(_COLOURS), strict=False)):
        y = bits[has_speech]
        keep = curve_points(x, y)
        # curves of large crowds coincide far below their ceilings: draw the larger one wider
        width = 1.8 + 1.6 * i
        axes.plot(x[keep], y[keep], color=colour, linewidth=width, zorder=2 + len(lines) - i)
        last = float(y[np.isfinite(y)][-1])
        name = crowd_of(m, run.speakers)
        matches = m * 2.0**-last
        means = f"about {rounded(matches)} people match" if matches >= 1.5 else "few others match"
        clipped = "at least " if run.last.at_least and m > run.speakers else ""
        label = f"{name}:\n{clipped}{last:.1f} of {np.log2(m):.1f} bits,\n{means}"
        labels.append((last, label, colour))
    _label_ends(axes, labels, 1.005)
    axes.text(
        0.01, 0.98, "the same voice discloses more in a larger crowd",
        transform=axes.transAxes, va="top", color=GREY, fontsize=9.5,
    )  # fmt: skip
