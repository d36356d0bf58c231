"""Base class of the views on stderr."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from textwrap import wrap
from typing import TYPE_CHECKING

from monitor import log_lines
from monitor.crowds import LEVELS
from monitor.events import phrases
from monitor.events.declaration import Event
from monitor.events.phrases import clean, number, uninformed
from monitor.events.reading import Reading
from monitor.events.run import Alert, Change, GapEvent, LevelReached, NoticeEvent, RunStart
from monitor.phrases import clock_time, level_in_words
from monitor.sinks.text_curve import (
    CEILING,
    CHANCE,
    PROTECTED,
    THRESHOLD,
    TextCurve,
    axis,
    draw_behind,
    draw_curve,
    legend,
    row_of,
)

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live
    from rich.text import Text


RIGHT = 12  # characters beside the curve, for people who match
LEFT = 7  # characters of the bits axis
_STYLES = {
    **dict.fromkeys((CEILING, CHANCE, " "), "default"),
    THRESHOLD: "red",
    PROTECTED: "yellow",
}


REFRESH_SECONDS = 0.1
LINE_SECONDS = 10.0
SAME_SECONDS = 60.0  # interval of lines without news, which show that the run continues
SHOWN_GAPS = 5


class TerminalSink:
    """Base of views on stderr, with the latest reading, notes, and the times to draw."""

    leaves_view = False

    def __init__(
        self,
        total_seconds: float | None,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console = console
        self.total_seconds = total_seconds
        self.reading = Reading.from_record({})
        self.watch: str | None = None
        self.enrolled = 0
        self.support_bits: float | None = None
        self.raised: dict[str, float] = {}
        self.closed: Alert | None = None  # the last alert that changed a relay's way
        self.warned: dict[str, float] = {}
        self._clock = clock
        self.protected = ""  # method of the protected side
        self.crossings: dict[float, dict[str, float]] = {}
        self.evidence = False  # whether the headline is evidence
        self._gaps = self._changes = 0
        self._begun = ""  # voice for which the evidence restarted
        self._drawn = -math.inf
        self._told = ""
        self._live: Live | None = None
        self._closed = False
        self._curve, self._lowest = TextCurve(), 0.0
        self._before = self._speech = 0.0  # speech seconds of ended and of current evidence
        is_for_people = console is not None or (log_lines.form == "text" and sys.stderr.isatty())
        if (
            is_for_people
            and self.console.encoding.lower().replace("-", "").startswith("utf")
            and self.console.is_terminal
            and not self.console.is_dumb_terminal
        ):
            from rich.live import Live

            # stdout is for data, so rich must not capture it.
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

    def write(self, event: Event) -> None:
        """Take one event of the run."""
        match event:
            case RunStart():
                self.watch = None if event.watch is None else clean(event.watch, 16)
                self.enrolled = event.speakers or 0
                self.support_bits = event.support_bits
                self.evidence = event.headline == "evidence"
                self.protected = (
                    "" if event.protected is None else clean(event.protected.method, 24)
                )
            case Reading():
                self.reading = event
                self.evidence |= event.is_evidence
                self._show(event)
            case Alert():
                self._alert(event)
            case GapEvent():
                self._gap(event)
            case NoticeEvent():
                self._say(phrases.event_in_words(event), "warning")
            case Change():
                self._change(event)
            case LevelReached():
                self._crossing(event)
        if self._live is not None:
            if self._clock() - self._drawn >= REFRESH_SECONDS:
                self._draw(self._live)
        elif isinstance(event, Reading):
            self._plain()

    def close(self) -> None:
        """End with a summary line, or the view's last state."""
        if self._closed:
            return
        self._closed = True
        if self._live is not None:
            self._draw(self._live)
            self._live.stop()
        if self._live is None or not self.leaves_view:
            self._say(self._last_words())

    def say(self, line: str) -> None:
        """Print a line that is not an event."""
        self._say(clean(line, 200))

    def _show(self, reading: Reading) -> None:
        """Store what this view needs from a reading."""

    def _view(self) -> RenderableType:
        raise NotImplementedError

    def _line(self) -> str:
        raise NotImplementedError

    def _last_words(self) -> str:
        return self._line()

    def _plain(self) -> None:
        """Print a line from time to time, less often without news, if there is no view."""
        now, bits = self._clock(), phrases.bits_now(self.reading)
        if self._drawn == -math.inf:
            self._drawn = now
        elif now - self._drawn >= (SAME_SECONDS if bits == self._told else LINE_SECONDS):
            self._say(self._line())
            self._drawn, self._told = now, bits

    def _draw(self, live: Live) -> None:
        self._drawn = self._clock()
        live.update(self._view(), refresh=True)

    def _say(self, line: str, level: str = "info") -> None:
        if self._console is None and self._live is None:  # without rich, which is slow to import
            if (formatted := log_lines.format_line(line, level)) is not None:
                sys.stderr.write(f"{formatted}\n")
            return
        self.console.print(line, markup=False, highlight=False, emoji=False, soft_wrap=True)

    def _alert(self, alert: Alert) -> None:
        standing = self.warned if alert.level == "warning" else self.raised
        rule = clean(alert.rule, 60)
        if alert.way is not None:
            self.closed = alert
        elif alert.state == "raised":
            standing[rule] = alert.seconds or 0.0
        else:
            standing.pop(rule, None)
        self._say(phrases.event_in_words(alert), alert.level)

    def _gap(self, gap: GapEvent) -> None:
        self._gaps += 1
        if self._gaps <= SHOWN_GAPS:
            more = " (further gaps are only counted)" if self._gaps == SHOWN_GAPS else ""
            self._say(f"{phrases.event_in_words(gap)}{more}", "warning")

    def _change(self, change: Change) -> None:
        self._changes += 1
        if change.action != "note":
            self._begun = f"voice since {clock_time(change.since_seconds or 0.0)}"
        if self._changes <= SHOWN_GAPS:
            more = " (further ones are only counted)" if self._changes == SHOWN_GAPS else ""
            self._say(f"{': '.join(phrases.describe_event(change))}{more}")

    def _crossing(self, event: LevelReached) -> None:
        self.crossings.setdefault(event.bits, {})[event.side] = event.since_seconds
        is_informed = event.delay_seconds is None or not uninformed(self.reading)
        whom = "" if is_informed else f", from {phrases.attacker_of(self.reading)}"
        self._say(f"{level_in_words(event.bits)} {phrases.crossing_words(event)}{whom}")

    @property
    def doubt(self) -> str:
        """Warning, while a change is open, that the bits may come from another voice."""
        return phrases.another_voice(self.reading, self.watch)

    def _follow(self, reading: Reading) -> tuple[float, bool] | None:
        """Add a reading to the curve; return its point, and whether the evidence restarted.

        A curve shows one figure. Nothing is added if the headline is of another kind than the
        run's.
        """
        bits, speech = reading.bits, reading.speech
        if bits is None or speech is None or not math.isfinite(bits):
            return None
        if reading.is_evidence != self.evidence:
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
        thresholds: Sequence[float],
        protected: TextCurve,
        end: float | None = None,
    ) -> list[Text]:
        """Draw the curve, its axes and a legend; without an ``end`` the axis doubles."""
        from rich.text import Text

        points = self._curve.points
        y_range = low, high = min(0.0, self._lowest), self._top_bits()
        columns = width - LEFT - RIGHT
        first = points[0][0] if points else 1.0
        last = max(points[-1][0], 4 * first) if points else 4.0
        x_range = (first, max(last, end or 2.0 ** math.ceil(math.log2(last))))
        ceiling = self.support_bits if self.evidence else high
        levels = [(0.0, CHANCE)] if low < 0 else []
        levels += [(bits, THRESHOLD) for bits in thresholds]
        levels += [] if ceiling is None else [(ceiling, CEILING)]
        drawing = draw_curve(
            points, width=columns, height=rows, x_range=x_range, y_range=y_range,
            levels=levels, breaks=self._curve.breaks,
        )  # fmt: skip
        drawing = draw_behind(drawing, protected, x_range, y_range)
        marks: dict[int, float] = {}
        for bits in (high, low, 0.0, *thresholds, *LEVELS):
            if low <= bits <= high:
                marks.setdefault(row_of(bits, rows, y_range), bits)
        lines = []
        for row, line in enumerate(drawing):
            text = Text(f"{number(marks[row]) if row in marks else '':>6} ")
            for mark in line:
                text.append(mark, style=_STYLES.get(mark, "cyan"))
            people = self._as_people(marks[row]) if row in marks else ""
            text.append(f" {people}", style="dim")
            lines.append(text)
        lines.append(Text(" " * LEFT + axis(*x_range, columns), style="dim"))
        right = "people who match" if self.evidence else "the attacker's odds"
        lines.append(Text(f" {legend(drawing)}  right: {right}", style="dim"))
        return lines

    def _as_people(self, bits: float) -> str:
        ceiling = None if self.evidence else self.reading.ceiling or 1.0
        words = phrases.level_as_people(bits, ceiling, assumed=self.watch is None)
        return words if len(words) < RIGHT else ""

    def _top_bits(self) -> float:
        """Compute the top of the bits axis; evidence has no ceiling."""
        ceiling = self.reading.ceiling or 1.0
        if not self.evidence:
            return ceiling
        points = self._curve.points
        return max(ceiling, self.support_bits or 0.0, *(bits for _, bits in points))

    def _crowd_lines(self, width: int) -> list[Text]:
        """Explain the evidence in a crowd, and then among the enrolled."""
        from rich.text import Text

        for fit in (True, False):
            words = phrases.in_a_crowd(self.reading, self.watch, self.enrolled, fit=fit)
            if len(sentence := clean(words, 200)) < width:
                break
        lines = [Text(f" {row}") for row in wrap(sentence, max(20, width - 2))]
        if self.evidence or phrases.nobody_speaks(self.reading):
            among = Text(f" closed-set, among the {self.enrolled or 'few'} enrolled: ", "dim")
            among.append(phrases.among_enrolled(self.reading))
            lines.append(among)
        return lines

    def _protected_lines(self, width: int) -> list[Text]:
        """Format the protected side: its figure, the difference, and the attacker."""
        from rich.text import Text

        if not self.protected:
            return []
        reading, side = self.reading, self.reading.protected
        figure = phrases.protected_figure(reading)
        if side is None or figure is None:
            return [Text(" protected: no figure yet", style="bold")]
        bits = phrases.bits_or_more(side, f"{number(figure[0])} bits")
        fewer = phrases.fewer_in_words(reading)
        # for an attacker unaware of the anonymiser, the words are in bold, not the bits
        is_informed = not uninformed(reading)
        text = Text(" ")
        text.append(f"protected {bits}", style="bold" if is_informed else "")
        text.append(f", {fewer}" if fewer else "", style="bold")
        text.append(f"  {phrases.limits_in_words(figure[1], figure[2], cut=side.at_least)}")
        text.append(f"  through {self.protected}", style="dim")
        to = Text(f" to {phrases.attacker_of(reading)}", "yellow" if is_informed else "bold yellow")
        delay = self._disclosure_delay(width)
        return [text, to, *([Text(f" {delay}")] if delay else [])]

    def _promise_lines(self) -> list[Text]:
        from rich.text import Text

        promise = self.reading.declared
        if promise is None:
            return []
        return [Text(f" {phrases.promise_now(self.reading)}", "yellow" if promise.empty else "")]

    def _disclosure_delay(self, width: int) -> str:
        text = ""
        for bits, since in sorted(self.crossings.items()):
            if "clear" not in since:
                continue
            later = since.get("protected", math.nan) - since["clear"]
            delay = "not yet out" if math.isnan(later) else f"{later:.0f} s"
            more = f"{text}, " if text else "delay: "
            more += f"{level_in_words(bits)} {delay}"
            if len(more) >= width:
                break
            text = more
        return text

    @property
    def _others(self) -> str:
        """Bystanders that the evidence narrows down to; empty during a change of voice."""
        bystanders = None if self.doubt else self.reading.bystanders
        return f"{phrases.NARROWED}: {phrases.narrowed_names(bystanders)}" if bystanders else ""

    def _whose(self) -> str:
        """Name the person to whom the bits refer, if known."""
        if self.doubt:
            return ""
        if self._begun:
            return f"{self._begun}: {self.watch}?" if self.watch else f"the {self._begun}"
        return f"watching {self.watch}" if self.watch else "an attacker's, if enrolled"

    def _place(self) -> str:
        done = clock_time(self.reading.seconds or 0.0)
        total = self.total_seconds
        return done if total is None else f"{done} of {clock_time(total)}"
