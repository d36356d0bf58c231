"""Views of a run on stderr while it goes on: a progress bar, or a live curve."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Container, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from monitor import phrases
from monitor.crowds import SCALE, axis_top, bits_or_more
from monitor.safe_text import printable
from monitor.sinks.summary import (
    alert_in_words,
    also_narrowed_down,
    among_enrolled,
    bits_now,
    clean,
    describe_event,
    in_a_crowd,
    limits_in_words,
    number,
    protected_now,
    speed_text,
)

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live
    from rich.text import Text

# --- A curve drawn with braille dots, two by four to a character.

CROWD_COLUMNS = 1 + max(len(crowd.name) for crowd in SCALE)

BINS_PER_DECADE = 64
EMPTY, CEILING, CHANCE, THRESHOLD = " ", "━", "·", "┄"
PLATEAU, LINEAR, ROOT = "╌", "/", "\\"
PROTECTED = "o"
_MEANING = {
    "⣀": "bits",
    PROTECTED: "protected",
    CEILING: "ceiling",
    PLATEAU: "plateau",
    THRESHOLD: "threshold",
    LINEAR: "linear",
    ROOT: "root",
    CHANCE: "chance",
}
LEFT = 7  # characters of the bits axis
_STYLES = {
    **dict.fromkeys((CEILING, CHANCE, " "), "default"),
    **dict.fromkeys((PLATEAU, LINEAR, ROOT), "dim"),
    THRESHOLD: "red",
    PROTECTED: "yellow",
}
# Bit of the dot in column 0 or 1, row 0 (top) to 3, after U+2800.
DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))


class TextCurve:
    """Points on a log axis, the latest of each bin: memory grows with the decades only.

    Examples:
        >>> curve = TextCurve()
        >>> for second in range(1, 10_000):
        ...     curve.add(second, 2.0)
        >>> len(curve.points) < 260
        True
    """

    def __init__(self) -> None:
        self._bins: dict[int, tuple[float, float]] = {}
        self._fresh: set[int] = set()

    def add(self, seconds: float, bits: float, *, fresh: bool = False) -> None:
        """Add a point; one without length or figure is left out."""
        if seconds > 0 and math.isfinite(seconds) and math.isfinite(bits):
            place = math.floor(math.log10(seconds) * BINS_PER_DECADE)
            self._bins[place] = (seconds, bits)
            if fresh:
                self._fresh.add(place)

    @property
    def points(self) -> list[tuple[float, float]]:
        """(seconds, bits) in order of seconds."""
        return [self._bins[key] for key in sorted(self._bins)]

    @property
    def breaks(self) -> frozenset[float]:
        """Seconds of the points at which the line begins anew."""
        return frozenset(self._bins[key][0] for key in self._fresh)


def legend(lines: Sequence[str]) -> str:
    """Format the marks of a drawing, each with its meaning.

    Examples:
        >>> legend(["━━━━", " ⣀⣠⠤", "⠤⠊  "])
        '⣀ bits  ━ ceiling'
    """
    marks = set("".join(lines))
    if any("\u2800" < mark <= "\u28ff" for mark in marks):
        marks.add("⣀")
    return "  ".join(f"{mark} {words}" for mark, words in _MEANING.items() if mark in marks)


def row_of(bits: float, height: int, y_range: tuple[float, float]) -> int:
    """Return the line, of ``height``, on which these bits are drawn; 0 is the top one.

    Examples:
        >>> row_of(0.0, 10, (0.0, 5.0)), row_of(5.0, 10, (0.0, 5.0))
        (9, 0)
    """
    bottom, top = y_range
    return _dot(bits, height, y_range) // 4 if top > bottom else 0


def crowd_rows(height: int, y_range: tuple[float, float]) -> dict[int, str]:
    """Return beside which lines a crowd is named: so many bits leave one person of it.

    Examples:
        >>> crowd_rows(10, (0.0, 14.0))
        {8: 'household', 5: 'office', 2: 'village', 0: 'town'}
    """
    rows: dict[int, str] = {}
    for crowd in SCALE:
        if y_range[0] <= crowd.bits <= y_range[1]:
            rows.setdefault(row_of(crowd.bits, height, y_range), crowd.name)
    return rows


def crowd_legend(rows: Mapping[int, str]) -> str:
    """Explain the names beside the lines.

    Examples:
        >>> crowd_legend({5: "office", 0: "town"}), crowd_legend({})
        ('  right: one match per town', '')
    """
    return f"  right: one match per {rows[min(rows)]}" if rows else ""


def _dot(bits: float, height: int, y_range: tuple[float, float]) -> int:
    bottom, top = y_range
    down = round((top - bits) * (4 * height - 1) / max(top - bottom, 1e-9))
    return min(max(down, 0), 4 * height - 1)


def draw_curve(
    points: Sequence[tuple[float, float]],
    *,
    width: int,
    height: int,
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    levels: Sequence[tuple[float, str]] = (),
    breaks: Container[float] = (),
) -> list[str]:
    """Draw the curve as ``height`` lines of ``width`` characters, the top one first.

    Examples:
        >>> draw_curve([(1, 0.0), (10, 2.0)], width=4, height=2, x_range=(1, 10), y_range=(0, 2))
        ['  ⡠⠊', '⡠⠊  ']
    """
    columns = 2 * width
    (left, right), (bottom, top) = x_range, y_range
    per_log = (columns - 1) / max(math.log(right / left), 1e-9)

    def place(seconds: float, bits: float) -> tuple[int, int]:
        x = round(math.log(seconds / left) * per_log)
        return min(max(x, 0), columns - 1), _dot(bits, height, y_range)

    cells = [[0] * width for _ in range(height)]
    before: tuple[int, int] | None = None
    for seconds, bits in points:
        x1, y1 = place(seconds, bits)
        x0, y0 = (x1, y1) if before is None or seconds in breaks else before
        steps = max(abs(x1 - x0), abs(y1 - y0), 1)
        for i in range(steps + 1):
            x, y = x0 + round((x1 - x0) * i / steps), y0 + round((y1 - y0) * i / steps)
            cells[y // 4][x // 2] |= DOTS[x % 2][y % 4]
        before = (x1, y1)
    level_marks = {row_of(b, height, y_range): mark for b, mark in levels if bottom <= b <= top}
    return [
        "".join(chr(0x2800 + dots) if dots else level_marks.get(row, EMPTY) for dots in line)
        for row, line in enumerate(cells)
    ]


def draw_behind(
    drawn: list[str],
    curve: TextCurve,
    mark: str,
    x_range: tuple[float, float],
    y_range: tuple[float, float],
) -> list[str]:
    """Add a guide to a drawing where nothing else is."""
    lines = [list(line) for line in drawn]
    (left, right), columns = x_range, len(lines[0])
    for (x0, y0), (x1, y1) in pairwise(curve.points):
        if x1 in curve.breaks:
            continue
        first, last = (
            round(math.log(x / left) / math.log(right / left) * (columns - 1)) for x in (x0, x1)
        )
        for column in range(max(first, 0), min(last, columns - 1) + 1):
            bits = y0 + (y1 - y0) * (column - first) / max(last - first, 1)
            row = row_of(bits, len(drawn), y_range)
            if y_range[0] <= bits < y_range[1] and lines[row][column] == " ":
                lines[row][column] = mark
    return ["".join(line) for line in lines]


# --- The base of the sinks that draw for people on a terminal: when to draw, and what to keep.

REFRESH_SECONDS = 0.1
LINE_SECONDS = 10.0
SAME_SECONDS = 60.0
"""How often a line is said that says nothing new, so that people see that it goes on."""
SHOWN_GAPS = 5


class TerminalSink:
    """The base of the sinks for people: the latest reading, notes for people, and when to draw."""

    leaves_view = False

    def __init__(
        self,
        total_seconds: float | None,
        console: Console | None,
        clock: Callable[[], float],
    ) -> None:
        self._console = console
        self.total_seconds = total_seconds
        self.reading: Mapping[str, Any] = {}
        self.watch: str | None = None
        self.enrolled = 0
        self.support_bits: float | None = None
        self.raised: dict[str, float] = {}
        self.warned: dict[str, float] = {}
        self._clock = clock
        self.protected = ""  # the method of the other side
        self.crossings: dict[float, dict[str, float]] = {}
        self.evidence = False  # whether the headline is evidence
        self._gaps = self._changes = 0
        self._begun = ""  # with which voice the evidence began afresh
        self._drawn = -math.inf
        self._told = ""
        self._live: Live | None = None
        self._closed = False
        self._curve, self._lowest = TextCurve(), 0.0
        self._before = self._speech = 0.0  # of evidence that has ended, and of the present one
        if (console is not None or sys.stderr.isatty()) and self._steerable():
            from rich.live import Live

            # stdout carries the data: rich must not capture it.
            self._live = Live(
                console=self.console, auto_refresh=False, redirect_stdout=False,
                redirect_stderr=False, transient=not self.leaves_view,
            )  # fmt: skip
            self._live.start()

    @cached_property
    def console(self) -> Console:
        """Console to draw on."""
        from monitor.sinks.console import PlainConsole

        return self._console or PlainConsole(stderr=True)

    def _steerable(self) -> bool:
        """True where a view can be drawn anew in its place."""
        unicode = self.console.encoding.lower().replace("-", "").startswith("utf")
        return unicode and self.console.is_terminal and not self.console.is_dumb_terminal

    def write(self, record: Mapping[str, Any]) -> None:
        """Take one record of the run."""
        kind = record.get("type")
        if kind == "start":
            self.watch = None if record.get("watch") is None else str(record["watch"])
            self.enrolled = int(record.get("speakers") or 0)
            self.support_bits = record.get("support_bits")
            self.evidence = phrases.is_evidence(record)
            self.protected = clean((record.get("protected") or {}).get("method", ""), 24)
        elif kind == "reading":
            self.reading = record
            self.evidence |= phrases.is_evidence(record)
            self._show(record)
        elif kind == "alert":
            self._alert(record)
        elif kind == "gap":
            self._gap(record)
        elif kind == "notice":
            self._notice(record)
        elif kind == "change":
            self._change(record)
        elif kind == "crossing":
            self._crossing(record)
        self._refresh(record)

    def close(self) -> None:
        """Leave one line that sums up, or the view as it stands."""
        if self._closed:
            return
        self._closed = True
        if self._live is not None:
            self._draw(self._live)
            self._live.stop()
        if self._live is None or not self.leaves_view:
            self._say(self._last_words())

    def _show(self, record: Mapping[str, Any]) -> None:
        """Keep what this view needs of a reading."""

    def _view(self) -> RenderableType:
        raise NotImplementedError

    def _line(self) -> str:
        raise NotImplementedError

    def _last_words(self) -> str:
        return self._line()

    def _refresh(self, record: Mapping[str, Any]) -> None:
        if self._live is not None:
            if self._clock() - self._drawn >= REFRESH_SECONDS:
                self._draw(self._live)
        elif record.get("type") == "reading":
            self._plain()

    def _plain(self) -> None:
        """Print a line now and then, if it says anything new: there is no view."""
        now, bits = self._clock(), bits_now(self.reading)
        if self._drawn == -math.inf:
            self._drawn = now
        elif now - self._drawn >= (SAME_SECONDS if bits == self._told else LINE_SECONDS):
            self._say(self._line())
            self._drawn, self._told = now, bits

    def _draw(self, live: Live) -> None:
        self._drawn = self._clock()
        live.update(self._view(), refresh=True)

    def _say(self, line: str) -> None:
        if self._console is None and self._live is None:  # without rich, which is slow to import
            sys.stderr.write("\n".join(map(printable, [*line.split("\n"), ""])))
            return
        self.console.print(line, markup=False, highlight=False, emoji=False, soft_wrap=True)

    def _alert(self, record: Mapping[str, Any]) -> None:
        standing = self.warned if record.get("level") == "warning" else self.raised
        rule = clean(record.get("rule"), 60)
        if record.get("state") == "raised":
            standing[rule] = record.get("seconds") or 0.0
        else:
            standing.pop(rule, None)
        self._say(alert_in_words(record))

    def _gap(self, record: Mapping[str, Any]) -> None:
        self._gaps += 1
        if self._gaps <= SHOWN_GAPS:
            more = " (further gaps are only counted)" if self._gaps == SHOWN_GAPS else ""
            title, words = describe_event(record)
            self._say(
                f"{title} at {phrases.clock_time(record.get('seconds') or 0.0)}: {words}{more}"
            )

    def _notice(self, record: Mapping[str, Any]) -> None:
        title, words = describe_event(record)
        self._say(f"{title} at {phrases.clock_time(record.get('seconds') or 0.0)}: {words}")

    def _change(self, record: Mapping[str, Any]) -> None:
        self._changes += 1
        if record.get("action") != "note":
            self._begun = f"voice since {phrases.clock_time(record.get('since_seconds') or 0.0)}"
        if self._changes <= SHOWN_GAPS:
            more = " (further ones are only counted)" if self._changes == SHOWN_GAPS else ""
            self._say(f"{': '.join(describe_event(record))}{more}")

    def _crossing(self, record: Mapping[str, Any]) -> None:
        level = float(record.get("bits") or 0.0)
        since = float(record.get("since_seconds") or 0.0)
        self.crossings.setdefault(level, {})[str(record.get("side"))] = since
        is_informed = record.get("delay_seconds") is None or not phrases.uninformed(self.reading)
        whom = "" if is_informed else f", from {phrases.attacker_of(self.reading)}"
        self._say(f"{phrases.crossing_in_words(record)}{whom}")

    @property
    def doubt(self) -> str:
        """Warning while a change is open: the bits may be another voice's."""
        return phrases.another_voice(
            self.reading, None if self.watch is None else clean(self.watch, 16)
        )

    def _own(self, reading: Mapping[str, Any]) -> float | None:
        """The headline, where it is of the run's kind: a curve is of one figure."""
        return reading.get("bits") if phrases.is_evidence(reading) == self.evidence else None

    def _follow(self, record: Mapping[str, Any]) -> tuple[float, bool] | None:
        """Add a reading to the curve: where it lies, and whether the evidence began afresh."""
        bits, speech = self._own(record), record.get("speech")
        if bits is None or speech is None or not math.isfinite(bits):
            return None
        if fresh := speech < self._speech:  # the axis does not go back
            self._before += self._speech
        self._speech = speech
        self._curve.add(self._before + speech, bits, fresh=fresh)
        self._lowest = min(self._lowest, bits)
        return self._before + speech, fresh

    def _chart(
        self,
        width: int,
        rows: int,
        levels: Sequence[tuple[float, str]],
        guides: Sequence[tuple[TextCurve, str]] = (),
        end: float | None = None,
    ) -> list[Text]:
        """Draw the curve, its axes and a legend; without an ``end`` the axis doubles."""
        from rich.text import Text

        points = self._curve.points
        ceiling = self.reading.get("ceiling") or 1.0
        y_range = low, high = min(0.0, self._lowest), self._top_bits(self._curve)
        crowds = crowd_rows(rows, y_range) if self.evidence else {}
        columns = width - LEFT - (CROWD_COLUMNS if crowds else 0)
        left = points[0][0] if points else 1.0
        last = max(points[-1][0], 4 * left) if points else 4.0
        x_range = (left, max(last, end or 2.0 ** math.ceil(math.log2(last))))
        tops = () if self.evidence else (ceiling,)
        chance = [(0.0, CHANCE)] if low < 0 else []
        drawn = draw_curve(
            points, width=columns, height=rows, x_range=x_range, y_range=y_range,
            levels=[*chance, *levels, *((bits, CEILING) for bits in tops)],
            breaks=self._curve.breaks,
        )  # fmt: skip
        for curve, mark in guides:
            drawn = draw_behind(drawn, curve, mark, x_range, y_range)
        marks: dict[int, float] = {}
        shown = [bits for bits, mark in levels if mark == THRESHOLD]
        for bits in (high, *tops, low, 0.0, *shown):
            if low <= bits <= high:
                marks.setdefault(row_of(bits, rows, y_range), bits)
        lines = []
        for row, line in enumerate(drawn):
            text = Text(f"{number(marks[row]) if row in marks else '':>6} ")
            for mark in line:
                text.append(mark, style=_STYLES.get(mark, "cyan"))
            text.append(f" {crowds.get(row, '')}", style="dim")
            lines.append(text)
        lines.append(Text(" " * LEFT + axis(*x_range, columns), style="dim"))
        lines.append(Text(f" {legend(drawn)}{crowd_legend(crowds)}", style="dim"))
        return lines

    def _top_bits(self, curve: TextCurve) -> float:
        """Compute the top of the bits axis: evidence knows no ceiling."""
        ceiling: float = self.reading.get("ceiling") or 1.0
        if not self.evidence:
            return ceiling
        highest = max(ceiling, self.support_bits or 0.0, *(bits for _, bits in curve.points))
        return axis_top(highest)

    def _crowd_lines(self, width: int) -> list[Text]:
        """Explain the evidence in a crowd, and, second to it, among the enrolled."""
        from rich.text import Text

        watch = None if self.watch is None else clean(self.watch, 16)
        sentences = [
            clean(in_a_crowd(self.reading, watch, self.enrolled, fit=fit), 200)
            for fit in (True, False)
        ]
        shortest = next(
            (sentence for sentence in sentences if len(sentence) < width), sentences[-1]
        )
        lines = [Text(f" {part}") for part in wrap(shortest, max(20, width - 2))]
        if self.evidence:
            among = Text(f" closed-set, among the {self.enrolled or 'few'} enrolled: ", "dim")
            among.append(among_enrolled(self.reading))
            lines.append(among)
        return lines

    def _protected_lines(self, width: int) -> list[Text]:
        """Format the other side: its figure, how much less that is, and to whom."""
        from rich.text import Text

        if not self.protected:
            return []
        figure = phrases.protected_figure(self.reading)
        if figure is None:
            return [Text(" protected: no figure yet", style="bold")]
        bits = bits_or_more(self.reading["protected"], f"{number(figure[0])} bits")
        fewer = phrases.fewer_in_words(self.reading)
        # of an attacker who does not know the anonymiser the words are the headline, not the bits
        is_informed = not phrases.uninformed(self.reading)
        text = Text(" ")
        text.append(f"protected {bits}", style="bold" if is_informed else "")
        text.append(f", {fewer}" if fewer else "", style="bold")
        cut = self.reading["protected"].get("at_least")
        text.append(f"  {limits_in_words(figure[1], figure[2], cut=cut)}")
        text.append(f"  through {self.protected}", style="dim")
        lines = [
            text,
            Text(
                f" to {phrases.attacker_of(self.reading)}",
                "yellow" if is_informed else "bold yellow",
            ),
        ]
        if disclosure_delay := self._disclosure_delay(width):
            lines.append(Text(f" {disclosure_delay}"))
        return lines

    def _caveat_lines(self) -> list[Text]:
        """Warn, in few words, that style is the author's."""
        from rich.text import Text

        has_style = "style" in (self.reading.get("features") or {})
        return (
            [Text(" of read text style tells the author, not the reader", "dim")]
            if has_style
            else []
        )

    def _promise_lines(self) -> list[Text]:
        """Format the promise over the stream so far, against every attacker."""
        from rich.text import Text

        sentence = phrases.promise_now(self.reading)
        if not sentence:
            return []
        return [Text(f" {sentence}", "yellow" if self.reading["declared"]["empty"] else "")]

    def _disclosure_delay(self, width: int) -> str:
        """Format the disclosure delay so far: as many levels as there is room."""
        text = ""
        for bits, since in sorted(self.crossings.items()):
            if "clear" not in since:
                continue
            later = since.get("protected", math.nan) - since["clear"]
            disclosure_delay = "not yet out" if math.isnan(later) else f"{later:.0f} s"
            level = f"{bits:g} bit{'' if bits == 1 else 's'}"
            more = (
                f"{text}, {level} {disclosure_delay}"
                if text
                else f"delay: {level} {disclosure_delay}"
            )
            if len(more) >= width:
                break
            text = more
        return text

    @property
    def _others(self) -> str:
        """Bystanders narrowed down, while the evidence is of one voice."""
        return "" if self.doubt else also_narrowed_down(self.reading.get("bystanders"))

    def _whose(self) -> str:
        """Name the person whose bits these are, as far as known."""
        if self.doubt:
            return ""
        who = "" if self.watch is None else clean(self.watch, 16)
        if self._begun:
            return f"{self._begun}: {who}?" if who else f"the {self._begun}"
        return f"watching {who}" if who else "an attacker's, if enrolled"

    def _place(self) -> str:
        done = phrases.clock_time(self.reading.get("seconds") or 0.0)
        return (
            done
            if self.total_seconds is None
            else f"{done} of {phrases.clock_time(self.total_seconds)}"
        )


# --- Both take every record of a run, draw at most ten times a second, leave stdout alone, and turn
# into plain lines where stderr is no terminal.

TICKS = (0.1, 0.3, 1, 3, 10, 30, 60, 180, 600, 1800, 3600, 10800, 36000, 86400)


class ReplayProgress(TerminalSink):
    r"""A bar for a replay: audio done, times real time, time left, bits now.

    Where stderr is no terminal, a line every 10 s of wall time, where the bits have changed. Either
    way one line at the end.

    Args:
        total_seconds: audio seconds to come, None where unknown.
        console: where to draw; stderr by default.
        clock: wall seconds.

    Examples:
        >>> import io
        >>> from rich.console import Console
        >>> console = Console(file=io.StringIO(), force_terminal=False)
        >>> progress = ReplayProgress(60.0, console)
        >>> progress.write({"type": "reading", "seconds": 30.0, "bits": 2.06, "ceiling": 5.64})
        >>> progress.close()
        >>> console.file.getvalue()
        '0:30 of 1:00 audio, 2.1 of 5.6 bits, 1 in 12\n'
    """

    def __init__(
        self,
        total_seconds: float | None,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._first: tuple[float, float] | None = None
        self._latest = (0.0, 0.0)
        super().__init__(total_seconds, console, clock)

    def _show(self, record: Mapping[str, Any]) -> None:
        # Speed counts from the first reading on: what a resumed run skipped is not in it.
        self._latest = (self._clock(), record.get("seconds") or 0.0)
        self._first = self._first or self._latest

    @property
    def times_real_time(self) -> float | None:
        """Audio seconds per wall second; None before two readings."""
        if self._first is None or self._latest[0] <= self._first[0]:
            return None
        return (self._latest[1] - self._first[1]) / (self._latest[0] - self._first[0])

    @property
    def seconds_left(self) -> float | None:
        """Wall seconds until the end; None where nobody can know."""
        speed = self.times_real_time
        if not speed or self.total_seconds is None:
            return None
        return max(0.0, self.total_seconds - self._latest[1]) / speed

    def _parts(self) -> list[str]:
        speed, left = self.times_real_time, self.seconds_left
        return [
            self._place(),
            "" if speed is None else speed_text(speed),
            f"{phrases.clock_time(left)} left" if left is not None and not self._closed else "",
            bits_now(self.reading),
        ]

    def _line(self) -> str:
        place, speed, left, bits = self._parts()
        parts = [f"{place} audio", speed and f"{speed} x real time", left, bits]
        parts = [part for part in parts if part]
        if self.protected:
            parts.append(protected_now(self.reading))
        if promise := phrases.promise_now(self.reading):
            parts.append(promise)
        return ", ".join(parts)

    def _last_words(self) -> str:
        gaps = f", {phrases.plural(self._gaps, 'gap')}" if self._gaps else ""
        return ", ".join(part for part in (self._line() + gaps, self._others) if part)

    def _view(self) -> RenderableType:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        place, speed, left, bits = self._parts()
        grid = Table.grid(padding=(0, 1), expand=True)
        for _ in range(4):
            grid.add_column(no_wrap=True)
        grid.add_column(ratio=1)
        done = self.reading.get("seconds") or 0.0
        bar = ProgressBar(
            total=self.total_seconds, completed=done, pulse=self.total_seconds is None
        )
        urgent = "bold yellow" if self.doubt or self.warned else "bold"
        style = "bold red" if self.raised and not self.doubt else urgent
        grid.add_row(
            place, speed and f"{speed}x", left, Text(bits, style=style), bar,
        )  # fmt: skip
        return grid


class LiveCurve(TerminalSink):
    """A live view: the first figure, its curve, the likeliest speakers and the state of alerts.

    Fits 80 x 24 and shrinks below; without colour every part still has its own shape. Where
    stderr is no terminal, a line every 10 s of wall time, where the bits have changed.

    Args:
        total_seconds: audio seconds to come, None where unknown.
        console: where to draw; stderr by default.
        threshold_bits: a line to draw; alerts on ``bits`` bring their own.
        clock: wall seconds.
    """

    leaves_view = True

    def __init__(
        self,
        total_seconds: float | None,
        console: Console | None = None,
        *,
        threshold_bits: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.threshold_bits = threshold_bits
        super().__init__(total_seconds, console, clock)

    def _show(self, record: Mapping[str, Any]) -> None:
        self._follow(record)

    def _alert(self, record: Mapping[str, Any]) -> None:
        if phrases.is_headline(str(record.get("field")), self.reading):
            self.threshold_bits = record.get("threshold")
        super()._alert(record)

    def _line(self) -> str:
        peak = self.reading.get("peak_bits")
        parts = [f"{self._place()} audio", bits_now(self.reading)]
        parts.append("" if peak is None else f"peak {number(peak)}")
        return ", ".join(part for part in parts if part)

    def _view(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        width, height = self.console.size
        top = (
            top_rows(self.reading, self.watch, max(1, max(20, width - 2) - 25), 15, " ")
            + self._caveat_lines()
        )
        crowd = self._crowd_lines(width)
        # The cursor rests on a line of its own; banner, first figure, axis, legend and two blank
        # lines are 7.
        rows = max(3, height - 1 - 7 - len(top) - len(crowd))
        lines: list[Text] = [self._banner(), self._shown_first(), *crowd, Text("")]
        lines += self._plot(max(20, width - 2), rows)
        lines += [Text(""), *top]
        for line in lines:
            line.no_wrap, line.overflow = True, "crop"
        return Group(*lines[: max(1, height - 1)])

    def _banner(self) -> Text:
        from rich.text import Text

        text = Text(f" {self._place()}")
        if self.doubt:
            text.append("   ")
            text.append(f" {self.doubt} ", style="bold reverse yellow")
        elif self.raised:
            rule, since = next(iter(self.raised.items()))
            text.append("   ")
            text.append(
                f" ALERT {rule}, since {phrases.clock_time(since)} ", style="bold reverse red"
            )
        elif self.warned:
            rule, since = next(iter(self.warned.items()))
            text.append("   ")
            text.append(
                f" WARNING {rule}, since {phrases.clock_time(since)} ", style="bold reverse yellow"
            )
        elif self.threshold_bits is not None:
            text.append(
                f"   no alert (threshold {number(self.threshold_bits)} bits)", style="green"
            )
        if self._gaps:
            text.append(f"   {phrases.plural(self._gaps, 'gap')}", style="yellow")
        return text

    def _shown_first(self) -> Text:
        from rich.text import Text

        text = Text(" ")
        text.append(bits_now(self.reading), style="bold")
        peak = self.reading.get("peak_bits")
        if peak is not None:
            text.append(f"   peak {number(peak)}")
        text.append(f"   {self._whose()}", style="dim")
        return text

    def _plot(self, width: int, rows: int) -> list[Text]:
        levels = [] if self.threshold_bits is None else [(self.threshold_bits, THRESHOLD)]
        return self._chart(width + 1, rows, levels, end=self.total_seconds)


def top_rows(
    reading: Mapping[str, Any], watch: str | None, room: int, wide: int, left: str = ""
) -> list[Text]:
    """The most probable speakers, a bar each of at most ``room`` characters."""
    from rich.text import Text

    rows = []
    for name, share in list(reading.get("top") or [])[:5]:
        share = 0.0 if share is None or not math.isfinite(share) else min(max(share, 0.0), 1.0)
        watched = str(name) == watch
        label = f"{left}{clean(name, wide)}{' *' if watched else ''}"
        bar = "█" * round(share * room) or "▏"
        style = "red" if watched else "blue"
        cell = f"{label:<{wide + 3 + len(left)}}"
        rows.append(Text.assemble(cell, (f"{share:4.0%} ", "bold"), (bar, style)))
    return rows


def axis(left: float, right: float, width: int) -> str:
    """Round lengths under their places on the log axis."""
    text = ""
    for tick in TICKS:
        name = f"{tick:g} s" if tick < 60 else f"{tick // 60:g} min"
        name = name if tick < 3600 else f"{tick // 3600:g} h"
        if left <= tick <= right:
            across = math.log(tick / left) / math.log(right / left)
            at = round(across * (width - 1)) - len(name) // 2
            if at >= len(text) + (2 if text else 0) and at + len(name) <= width - 10:
                text = f"{text:<{at}}{name}"
    return f"{text:<{width - 9}}of speech"
