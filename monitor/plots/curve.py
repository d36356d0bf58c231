"""Pictures of runs: bits of identity against seconds of speech."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from monitor.crowds import LEVELS, crowd_of, people, rounded
from monitor.errors import UsageError
from monitor.events import phrases
from monitor.events.declaration import Event, find_first
from monitor.events.reading import Reading
from monitor.events.run import Alert, AlertTerms, RunStart
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
    make_figure,
)
from monitor.plots.columns import (
    COMPOSITION,
    POWERS,
    Columns,
    Pieces,
    RunColumns,
    curve_points,
    cut_pieces,
    read_columns,
)
from monitor.plots.recording import INCHES as PEOPLE_INCHES
from monitor.plots.recording import make_people_painter
from monitor.plots.sheet import BOX, HATCH, WIDTH, Frame, Sheet, Spot
from monitor.plots.wording import caption, heading, in_bits, lasted, meaning, summary
from monitor.safe_text import short_name
from monitor.types import BoolArray, FloatArray, IntArray, find_runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Painter: TypeAlias = tuple["Callable[[Figure], None]", tuple[float, float]]
"""A function that paints a figure, and the size in inches."""

GROWTH_NOTE = (
    "Linear: if every second disclosed as much as the first. Square-root: as in advanced "
    "composition. Both: an average voice."
)
LABEL_COLUMNS = 32
MOST_LABELS = 3  # maximum number of thresholds, alerts, changes or gaps with a label
_DASHES = {"linear": (0, (5, 3)), "sqrt": (0, (1, 2))}
_GROWTH = {"linear": "linear", "sqrt": "square-root"}
_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, RED, BLACK)


def plot_run(
    events: Sequence[Event],  # the events of one run, in order; any of them may be missing
    path: Path,  # output file: .png, .svg or .pdf
    *,
    title: str | None = None,  # Replaces the default title.
    # Draw also averages, the closed-set figure beside evidence, the range of other voices, each
    # feature alone, and the bounds of a declared epsilon.
    guides: bool = False,
    # width of the picture of one voice, in dots; below 600 its text suits a phone
    width: int = WIDTH,
) -> None:
    """Draw a run: its main figure with interval, thresholds and alerts, changes and gaps.

    A run of several people gets one curve per person, against recording time
    (`monitor.plots.recording`).

    The plot has bits against speech seconds on a log axis, so readings before the first speech are
    not shown. Two thin lines show linear and square-root growth. Every line has its label. Raises
    UsageError if the suffix is not supported, and StoreError if the file cannot be written.
    """
    draw(path, *_make_painter(events, title, guides=guides, width=width))


def draw_run(events: Sequence[Event], *, title: str | None = None, guides: bool = False) -> Figure:
    """Draw the picture that `plot_run` writes, as a figure of matplotlib."""
    return make_figure(*_make_painter(events, title, guides=guides, width=WIDTH))


def _make_painter(
    events: Sequence[Event], title: str | None, *, guides: bool, width: int
) -> Painter:
    start = find_first(events, RunStart)
    if start is not None and start.people is not None:
        return make_people_painter(events, title), PEOPLE_INCHES
    run = read_columns(events)
    has_speech = run.columns["speech"] > 0
    shown = {name: column[has_speech] for name, column in run.columns.items()}
    alone = {name: column[has_speech] for name, column in run.alone.items()}
    pieces = cut_pieces(has_speech, run.fresh)
    frame = _make_frame(run, shown, title, guides=guides, width=width)

    def paint(figure: Figure) -> None:
        sheet = _Curves(figure, frame, run, shown, pieces)
        sheet.draw_cap()
        sheet.draw_doubt(has_speech)
        if guides:
            sheet.draw_guides()
            sheet.draw_features(alone)
        if run.protected:  # two sides are enough to draw
            sheet.draw_protected()
        else:
            sheet.draw_growth()
        sheet.draw_main()
        sheet.draw_thresholds()
        sheet.draw_changes()
        sheet.draw_gaps()
        sheet.place_labels()

    return paint, frame.inches


def _make_frame(
    run: RunColumns, shown: Columns, title: str | None, *, guides: bool, width: int
) -> Frame:
    ends = ("", "_low", "_high")
    names = [f"{side}bits{end}" for side in ("", "protected_") for end in ends]
    names += ["closed_set_bits", "spread_low"] if guides and run.evidence else []
    figures = np.concatenate([*(shown[name] for name in names), run.cap, [0.0]])
    figures = figures[np.isfinite(figures)]
    cap = run.ceiling if guides or not run.evidence else 0.0
    low, high = float(figures.min()), max(float(figures.max()), cap, 1.0)
    low = min(-0.04 * (high - low), low - 0.04 * (high - low))
    speech = shown["speech"]
    begin, end = (float(speech[0]), float(speech[-1])) if speech.size else (1.0, 60.0)
    begin = max(begin, end / 3000)
    begin = begin if end >= begin * 1.5 else end / 4
    levels = [0, *(sign * bits for bits in LEVELS[1:] for sign in (1, -1))]
    marks = {float(b): meaning(run, b) for b in levels if low < b < high + 0.05}
    if not run.evidence:
        marks = {b: text for b, text in marks.items() if b < run.ceiling - 0.5}
        marks |= {run.ceiling: meaning(run, run.ceiling)} if run.ceiling else {}
    notes = [caption(run), summary(run) if guides else ""]
    if not run.protected and np.isfinite(shown["linear"]).any():
        notes.append(GROWTH_NOTE)
    if run.evidence:
        marked = "people who match"
    else:
        marked = "the attacker's odds" if run.watch is None else f"odds of {run.watch}"
    return Frame(
        short_name(heading(run) if title is None else title, 200),
        "\n".join(filter(None, notes)),
        marks, marked, "speech (log scale), with 95 % interval",
        (begin, end), (low, high), width=width,
    )  # fmt: skip


@dataclass(frozen=True)
class _Band:
    """Look of a curve."""

    colour: str
    width: float
    shade: float
    dashes: object = "-"


class _Curves(Sheet):
    """The curves of one run, drawn from the back to the front."""

    def __init__(
        self, figure: Figure, frame: Frame, run: RunColumns, shown: Columns, pieces: Pieces
    ) -> None:
        super().__init__(figure, frame)
        self.run, self.shown, self.pieces = run, shown, pieces
        self.x = shown["speech"]

    def draw_cap(self) -> None:
        """Hatch the bits above calibration's support, or above log2 of the number of people."""
        run, cap = self.run, self.run.cap[self.run.columns["speech"] > 0]
        if not np.isfinite(cap).any():
            return
        x, cap = (self.x, cap) if self.x.size > 1 else (np.array(self.frame.x_range), cap[[0, 0]])
        keep = curve_points(x, cap)
        self.axes.fill_between(
            x[keep], cap[keep], self.highest, facecolor="none", edgecolor=HATCH, hatch="////",
            linewidth=0, zorder=1,
        )  # fmt: skip
        self.axes.plot(x[keep], cap[keep], color=GREY, linewidth=0.8, zorder=2)
        who = "calibration supports" if run.evidence else f"{run.speakers} people allow"
        gap = "\n" if self.frame.is_narrow else " "
        text = f"{who}{gap}no more than {in_bits(round(float(np.nanmax(cap)), 1))}"
        self.label(text, [Spot(self.right, self.top, 1, 1)], GREY, bbox=BOX)

    def draw_doubt(self, has_speech: BoolArray) -> None:
        """Shade the readings that may contain several voices."""
        doubtful = self.run.doubtful[has_speech]
        for first, end in find_runs(doubtful):
            low, high = float(self.x[max(first - 1, 0)]), float(self.x[end - 1])
            self.axes.axvspan(low, high, color=ORANGE, alpha=0.12, linewidth=0, zorder=0)

    def draw_growth(self) -> None:
        """Draw linear and square-root growth of an average voice, up to the cap."""
        caps = np.append(self.run.cap, -np.inf)
        maximum = max(
            self.frame.y_range[1] if np.isnan(caps).all() else float(np.nanmax(caps)), 0.1
        )
        for name, power in POWERS.items():
            spots: list[Spot] = []
            for piece in self.pieces:
                x, y = self.x[piece], self.shown[name][piece]
                indices = np.flatnonzero(np.isfinite(y) & (y > 0) & (y < maximum))
                if not indices.size:
                    continue
                # a dense line, since points a second apart would show corners on a log axis
                before = float(self.x[piece.start - 1]) if piece.start else 0.0
                scale = y[indices[0]] / (x[indices[0]] - before) ** power
                first = min(float(x[0]), self.frame.x_range[1]) - before
                last = min(float(x[-1]) - before, float((maximum / scale) ** (1 / power)))
                if last < 1.1 * first:
                    continue
                dense = np.geomspace(first, last, 200)
                self.line(before + dense, scale * dense**power, BLACK, 0.9,
                          linestyle=_DASHES[name], zorder=5)  # fmt: skip
                if not spots:
                    along = self.at(before + dense, scale * dense**power)[::-4]
                    top = self.top - 3
                    spots = [
                        Spot(along[0, 0] + d, top, anchor, 1) for d, anchor in ((4, 0), (-4, 1))
                    ]
                    sides = ((-5, 3, 1, 0), (6, -3, 0, 1))
                    spots = spots[:: 1 if name == "sqrt" else -1]
                    spots += [
                        Spot(x + a, y + b, *parts) for x, y in along for a, b, *parts in sides
                    ]
            if spots:
                short = "" if self.frame.is_narrow else " growth"
                self.label(f"{_GROWTH[name]}{short}", spots, BLACK, bbox=BOX)

    def draw_guides(self) -> None:
        """Draw averages, ceilings and other figures for comparison with the main curve."""
        run, shown = self.run, self.shown
        if run.evidence:
            low, high = shown["spread_low"], shown["spread_high"]
            self.axes.fill_between(self.x, low, high, color=BLUE, alpha=0.07, linewidth=0, zorder=0)
            if np.isfinite(low).any():
                self.end_label("lightest: 9 of 10 voices", self.x, low, BLUE)
            self.level(run.ceiling, f"closed-set ceiling, log₂ {run.speakers}", BLACK)
            self.curve("closed_set_bits", _Band(LIGHT_BLUE, 1.3, 0.0))
            closed = run.last.closed_set()
            name = f"closed-set, among the {run.speakers}"
            name += "" if closed is None else f": {in_bits(round(closed, 2))}"
            self.end_label(name, self.x, shown["closed_set_bits"], LIGHT_BLUE)
        if run.plateau is not None:
            which = "closed-set" if run.evidence else "average"
            self.level(run.plateau, f"{which} plateau", GREEN)
        self.curve("expected_bits", _Band(GREY, 1.1, 0.13))
        average = "closed-set average" if run.evidence else "average voice"
        self.end_label(average, self.x, shown["expected_bits"], GREY)
        for name, dashes in COMPOSITION.items():
            fits = np.where(shown[name] < self.frame.y_range[1], shown[name], np.nan)
            for piece in self.pieces:
                self.line(self.x[piece], fits[piece], BLACK, 1.0, linestyle=dashes)
            self.end_label(f"{name} composition of the epsilon", self.x, fits, BLACK)

    def draw_features(self, alone: Columns) -> None:
        """Draw the closed-set figure of each feature alone."""
        if self.run.evidence or self.run.protected:
            return
        for (name, y), dashes in zip(alone.items(), cycle(("-", "--", ":")), strict=False):
            for piece in self.pieces:
                keep = piece.start + curve_points(self.x[piece], y[piece])
                self.line(self.x[keep], y[keep], LIGHT_BLUE, 1.2, linestyle=dashes)
            self.end_label(f"{short_name(name)} alone", self.x, y, LIGHT_BLUE)

    def draw_protected(self) -> None:
        run, last = self.run, self.run.last
        y = self.shown["protected_bits"]
        indices = np.flatnonzero(np.isfinite(y))
        if not indices.size:
            return
        self.curve("protected_bits", _Band(ORANGE, 2.2, 0.16, (0, (4, 1.2))))
        bits = in_bits(round(float(y[indices[-1]]), 1))
        if last.protected is not None:
            bits = phrases.bits_or_more(last.protected, bits)
        until, attacker = _until(self.x, indices), phrases.attacker_of(last)
        fewer = "" if until else phrases.fewer_in_words(last)  # for the last reading
        parts = [f"through {run.protected}{until}: {bits}", fewer, attacker and f"to {attacker}"]
        text = textwrap.fill(", ".join(filter(None, parts)), LABEL_COLUMNS)
        self.end_label(text, self.x, y, ORANGE, weight="bold")

    def draw_main(self) -> None:
        """Draw the main figure with its interval, and label its last value."""
        run, y = self.run, self.shown["bits"]
        indices = np.flatnonzero(np.isfinite(y))
        if not indices.size:
            middle = Spot((self.left + self.right) / 2, (self.bottom + self.top) / 2, 0.5, 0.5)
            self.label("no figures yet", [middle], GREY)
            return
        self.curve("bits", _Band(BLUE, 2.4, 0.22))
        last = float(y[indices[-1]])
        bits = in_bits(round(last, 1))
        if until := _until(self.x, indices):
            what = "evidence" if run.evidence else "bits"
            text = textwrap.fill(f"{what}{until}: {bits}; {_end_reason(run)}", LABEL_COLUMNS)
        else:
            owner = "the attacker" if run.watch is None else "this voice"
            owner = "several voices" if run.doubt else owner
            bits = phrases.bits_or_more(run.last, bits) if run.evidence else bits
            text = bits if self.frame.is_narrow and not run.doubt else f"{owner}: {bits}"
        end = self.x[indices[-1]]
        self.axes.plot(end, last, "o", color=BLUE, markersize=6, zorder=9, clip_on=False)
        self.end_label(text, self.x, y, BLUE, weight="bold")

    def draw_thresholds(self) -> None:
        done: set[tuple[str, float]] = set()
        for rule in self.run.rules:
            if (rule.field, rule.threshold) not in done and len(done) < MOST_LABELS:
                done.add((rule.field, rule.threshold))
                self.draw_threshold(rule)

    def draw_threshold(self, rule: AlertTerms | Alert) -> None:
        """Draw one threshold and the alerts that it raised; the first one has a label."""
        run, level = self.run, rule.threshold
        headline = "evidence_bits" if run.evidence else "closed_set_bits"
        curves = {"bits": "bits", headline: "bits", "protected.bits": "protected_bits"}
        column = self.shown[curves.get(rule.field, "bits")]
        on_curve = rule.field in curves
        is_drawn = on_curve and self.frame.y_range[0] < level < self.frame.y_range[1]
        if is_drawn:
            self.line(np.array(self.frame.x_range), np.full(2, level), RED, 1.1, zorder=4)
        raised = [a for a in run.alerts if a.rule == rule.rule and a.state == "raised"]
        name = f"{level:g} bits" if on_curve else f"{level:g} {short_name(rule.field)}"
        if not raised:
            decided = all(not line.startswith(rule.rule) for line in run.undecided)
            text = f"alert above {name}: not {'raised' if decided else 'decided yet'}"
            x, y = self.place_of(self.frame.x_range[1], level)
            if is_drawn and isinstance(rule, AlertTerms):
                self._label_alert(text, x - 4, y)
            return
        for alert in raised:
            x = self.locate(alert.seconds)
            finite = np.isfinite(column)
            if finite.any():
                bits = float(np.interp(x, self.x[finite], column[finite]))
                self.axes.plot(
                    [x, x], [level, bits] if is_drawn else [bits, bits], color=RED, lw=1.4
                )
                self.axes.plot(x, bits, "o", color="white", markeredgecolor=RED, markersize=7,
                               markeredgewidth=1.8, zorder=9)  # fmt: skip
        first = raised[0]
        hold_seconds = getattr(rule, "hold_seconds", 0.0)
        text = f"alert after {lasted(run.speech_at(first.seconds))}:\nover {name}"
        text += f" for {hold_seconds:g} s" if hold_seconds else ""
        text += f" ({len(raised)} alerts)" if len(raised) > 1 else ""
        text = text if first.way is None else phrases.describe_event(first)[0]
        self._label_alert(text, *self.place_of(self.locate(first.seconds), level))

    def _label_alert(self, text: str, x: float, y: float) -> None:
        sides = ((x + 1, 0.0), (self.right - 4, 1.0), (x, 0.5), (x, 1.0), (self.left + 6, 0.0))
        heights = ((sign * d, float(sign < 0)) for d in (6, 30, 60, 90) for sign in (-1, 1))
        spots = [Spot(q, y + d, anchor, above) for d, above in heights for q, anchor in sides]
        self.label(text, spots, RED, weight="bold")

    def draw_changes(self) -> None:
        for change in self.run.changes[:MOST_LABELS]:
            x = self.locate(change.since_seconds)
            self.line(np.full(2, x), np.array(self.frame.y_range), PURPLE, 1.2,
                      linestyle=(0, (1, 2)))  # fmt: skip
            px = self.place_of(x, 0.0)[0]
            heights = np.linspace(self.bottom, self.top - 2 * self.size, 12)
            spots = [Spot(px + d, y, p, 0) for y in heights for d, p in ((-5, 1), (5, 0))]
            self.label(phrases.voice_since(change), spots, PURPLE)

    def draw_gaps(self) -> None:
        if not self.run.gaps:
            return
        places = sorted({self.locate(gap.seconds) for gap in self.run.gaps})
        upwards = self.axes.get_xaxis_transform()
        self.axes.vlines(places, 0.0, 0.035, transform=upwards, color=BLACK, linewidth=2.5)
        lost = sum(gap.lost_seconds or 0.0 for gap in self.run.gaps)
        text = f"audio lost: {lost:.2g} s" if lost else "audio lost"
        spots = [
            Spot(self.place_of(x, 0.0)[0] + d, self.bottom + 2, anchor, 0)
            for x in (places[0], places[-1]) for d, anchor in ((6, 0), (-6, 1))
        ]  # fmt: skip
        self.label(text, spots, BLACK, bbox=BOX)

    def curve(self, name: str, band: _Band) -> None:
        """Draw a column with its interval; the line breaks where the evidence restarted."""
        y = self.shown[name]
        for piece in self.pieces:
            if not np.isfinite(y[piece]).any():
                continue
            keep = piece.start + curve_points(self.x[piece], y[piece])
            x = self.x[keep]
            if band.shade:
                low, high = self.shown[f"{name}_low"][keep], self.shown[f"{name}_high"][keep]
                self.axes.fill_between(
                    x, low, high, color=band.colour, alpha=band.shade, linewidth=0, zorder=3
                )
            marker = "o" if np.isfinite(y[piece]).sum() == 1 else None
            width = band.width if keep.size < 600 else band.width / 2
            self.line(x, y[keep], band.colour, width, linestyle=band.dashes, marker=marker,
                      zorder=6)  # fmt: skip

    def level(self, bits: float, text: str, colour: str) -> None:
        x = np.array(self.frame.x_range)
        self.line(x, np.full(2, bits), colour, 1.0, linestyle=(0, (8, 3, 1, 3)))
        self.end_label(f"{text}: {in_bits(round(bits, 2))}", x, np.full(2, bits), colour)

    def end_label(
        self, text: str, x: FloatArray, y: FloatArray, colour: str, **style: object
    ) -> None:
        finite = np.flatnonzero(np.isfinite(y))
        if not finite.size:
            return
        px, py = self.place_of(x[finite[-1]], y[finite[-1]])
        offsets = [(d, back) for d in range(-240, 240, 4) if abs(d) > 7 for back in (8, 60, 120)]
        offsets.sort(key=lambda offset: abs(offset[0]) + 0.6 * offset[1])
        spots = [Spot(px - back, py + d, 1, float(d < 0)) for d, back in offsets]
        self.label(text, spots, colour, **style)

    def locate(self, seconds: float) -> float:
        """Return the speech seconds at a stream time, within the limits of the axis."""
        low, high = self.frame.x_range
        return min(max(self.run.speech_at(seconds), low), high)


def _until(x: FloatArray, indices: IntArray) -> str:
    """Format when a figure ended, if that was before the end of the run; otherwise empty."""
    return "" if indices[-1] == x.size - 1 else f" until {lasted(float(x[indices[-1]]))}"


def _end_reason(run: RunColumns) -> str:
    if withheld := run.last.withheld:
        return f"withheld since: {short_name(withheld, 60)}"
    names = [name for name, figures in (run.last.features or {}).items() if figures.usable]
    of = f" for {short_name('+'.join(names))}" if names else ""
    return f"none since, for lack of a rank model{of}"


def plot_crowds(
    events: Sequence[Event], path: Path, among: Sequence[int], *, title: str | None = None
) -> None:
    """Draw the bits of the watched speaker among each crowd; each line stays below its ceiling.

    Raises UsageError if the run has no evidence, or a crowd is smaller than N.
    """
    run = read_columns(events)
    has_speech = run.columns["speech"] > 0
    lines = [(m, bits_in(events, m)[has_speech]) for m in among]
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
    x = run.columns["speech"][has_speech]
    figures = np.concatenate([bits[np.isfinite(bits)] for _, bits in lines])
    low, high = min(-0.5, float(figures.min()) - 0.5), max(float(figures.max()), 1.0)
    default = f"The same voice discloses more in a larger crowd: bits of {run.watch}"
    clipped = "at least " if run.last.at_least else ""
    frame = Frame(
        short_name(default if title is None else title, 200),
        "Each line ends at or below log2 of its crowd: no more bits are needed to name one person.",
        {float(bits): meaning(run, bits) for bits in LEVELS if low < bits < high},
        "people who match", "speech (log scale)",
        (max(float(x[0]), float(x[-1]) / 3000), float(x[-1])), (low, high),
    )  # fmt: skip

    def paint(figure: Figure) -> None:
        sheet = Sheet(figure, frame)
        coloured = list(enumerate(zip(lines, cycle(_COLOURS), strict=False)))
        for i, ((_, y), colour) in coloured:
            keep = curve_points(x, y)
            # curves of large crowds coincide far below their ceilings: draw the larger one wider
            front = 2 + len(lines) - i
            sheet.line(x[keep], y[keep], colour, 1.8 + 1.6 * i, zorder=front)
        for _, ((m, y), colour) in reversed(coloured):
            last = float(y[np.isfinite(y)][-1])
            matches = m * 2.0**-last
            means = f"about {rounded(matches)} people match"
            means = means if matches >= 1.5 else "few others match"
            figure_of = f"{clipped if m > run.speakers else ''}{last:.1f} of {np.log2(m):.1f} bits"
            text = f"{crowd_of(m, run.speakers)}: {figure_of}, {means}"
            px, py = sheet.place_of(float(x[-1]), last)
            offsets = sorted(range(-200, 200, 4), key=abs)
            spots = [Spot(px - 6, py + d, 1, float(d < 0)) for d in offsets if abs(d) > 6]
            sheet.label(text, spots, colour, weight="bold")
        sheet.place_labels()

    draw(path, paint, frame.inches)


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
