"""What people see on stderr while a run goes on: a progress bar, or a live curve.

Both take every record of a run, draw at most ten times a second, leave stdout alone, and turn
into plain lines where stderr is no terminal.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from monitor.declared_words import promise_now
from monitor.phrases import clock_time, is_headline, plural
from monitor.sinks.in_words import bits_now, clean, number, protected_now, speed_text
from monitor.sinks.terminal_sink import TerminalSink
from monitor.sinks.textcurve import (
    CEILING,
    CHANCE,
    CROWD_COLUMNS,
    THRESHOLD,
    TextCurve,
    crowd_legend,
    crowd_rows,
    draw_curve,
    legend,
    row_of,
)

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

__all__ = ["LiveCurve", "ReplayProgress", "axis"]

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

    def _take(self, record: Mapping[str, Any]) -> None:
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
            f"{self._place()} audio",
            "" if speed is None else f"{speed_text(speed)} x real time",
            f"{clock_time(left)} left" if left is not None and not self._closed else "",
            bits_now(self.reading),
        ]

    def _line(self) -> str:
        parts = [part for part in self._parts() if part]
        if self.protected:
            parts.append(protected_now(self.reading))
        if said := promise_now(self.reading):
            parts.append(said)
        return ", ".join(parts)

    def _last_words(self) -> str:
        gaps = f", {plural(self._gaps, 'gap')}" if self._gaps else ""
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
            place.removesuffix(" audio"), speed.replace(" x real time", "x"), left,
            Text(bits, style=style), bar,
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
        self._curve = TextCurve()
        self._lowest = 0.0
        self._before = self._speech = 0.0
        super().__init__(total_seconds, console, clock)

    def _take(self, record: Mapping[str, Any]) -> None:
        bits, speech = self._own(record), record.get("speech")
        if bits is not None and speech is not None and math.isfinite(bits):
            if fresh := speech < self._speech:  # afresh: the axis does not go back
                self._before += self._speech
            self._speech = speech
            self._curve.add(self._before + speech, bits, fresh=fresh)
            self._lowest = min(self._lowest, bits)

    def _alert(self, record: Mapping[str, Any]) -> None:
        if is_headline(str(record.get("field")), self.reading):
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
        top = _top_rows(self.reading, self.watch, max(20, width - 2)) + self._caveat_lines()
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
            text.append(f" ALERT {rule}, since {clock_time(since)} ", style="bold reverse red")
        elif self.warned:
            rule, since = next(iter(self.warned.items()))
            text.append("   ")
            text.append(f" WARNING {rule}, since {clock_time(since)} ", style="bold reverse yellow")
        elif self.threshold_bits is not None:
            text.append(
                f"   no alert (threshold {number(self.threshold_bits)} bits)", style="green"
            )
        if self._gaps:
            text.append(f"   {plural(self._gaps, 'gap')}", style="yellow")
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
        from rich.text import Text

        points = self._curve.points
        ceiling = self.reading.get("ceiling") or 1.0
        low, high = min(0.0, self._lowest), self._top_bits(self._curve)
        crowds = crowd_rows(rows, (low, high)) if self.evidence else {}
        width -= CROWD_COLUMNS if crowds else 0
        left = points[0][0] if points else 1.0
        end = max(points[-1][0], 4 * left) if points else 4.0
        # Without a total the axis doubles now and then, so that the curve does not crawl.
        right = max(end, self.total_seconds or 2.0 ** math.ceil(math.log2(end)))
        levels = [(0.0, CHANCE)] if low < 0 else []
        levels += [] if self.evidence else [(ceiling, CEILING)]
        if self.threshold_bits is not None:
            levels.insert(0, (self.threshold_bits, THRESHOLD))
        drawn = draw_curve(
            points, width=width - 6, height=rows, x_range=(left, right), y_range=(low, high),
            levels=levels, breaks=self._curve.breaks,
        )  # fmt: skip
        marks: dict[int, float] = {}
        shown = () if self.evidence else (ceiling,)
        for bits in (high, *shown, low, 0.0, self.threshold_bits):
            if bits is not None and low <= bits <= high:
                marks.setdefault(row_of(bits, rows, (low, high)), bits)
        lines = []
        for row, line in enumerate(drawn):
            text = Text(f"{number(marks[row]) if row in marks else '':>6} ")
            text.append(line, style="cyan")
            text.highlight_regex(f"{CEILING}+", "default")
            text.highlight_regex(f"{THRESHOLD}+", "red")
            text.append(f" {crowds.get(row, '')}", style="dim")
            lines.append(text)
        lines.append(Text(" " * 7 + axis(left, right, width - 6), style="dim"))
        lines.append(Text(f" {legend(drawn)}{crowd_legend(crowds)}", style="dim"))
        return lines


def _top_rows(reading: Mapping[str, Any], watch: str | None, width: int) -> list[Text]:
    from rich.text import Text

    rows = []
    for name, share in list(reading.get("top") or [])[:5]:
        share = 0.0 if share is None or not math.isfinite(share) else min(max(share, 0.0), 1.0)
        watched = str(name) == watch
        label = f"{clean(name, 15)}{' *' if watched else ''}"
        room = max(1, width - 25)
        bar = "█" * round(share * room) or "▏"
        rows.append(
            Text.assemble(
                f" {label:<17} ", (f"{share:4.0%} ", "bold"), (bar, "red" if watched else "blue")
            )
        )
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
