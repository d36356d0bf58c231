"""Views of a running stream: the whole run on one screen, or the progress of a replay."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from monitor.events import phrases
from monitor.events.declaration import Event
from monitor.events.phrases import clean, enrolment, number
from monitor.events.reading import Reading
from monitor.events.run import Alert, GapEvent, RunStart
from monitor.phrases import VOICED, budget_in_words, clock_time, plural
from monitor.protocols import MUTED, RelayControl, ThresholdForecast
from monitor.sinks.terminal import SHOWN_GAPS, TerminalSink, TextCurve

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

LATE_SECONDS = 1.0
_FEATURE_COLUMNS = 46


class LiveView(TerminalSink):
    """The live view of `monitor listen`.

    It shows the headline with limits and odds, and the curve with its maximum, threshold, people
    who match and a legend. Below are one row per feature, the peak, the five most probable
    speakers, alert and forecast, and the lag. Without colour every part still has its own shape. If
    stderr is not a terminal, a line is printed every 10 s of wall time if the bits have changed.
    """

    leaves_view = True

    def __init__(
        self,
        total_seconds: float | None = None,
        console: Console | None = None,
        *,
        forecasts: Sequence[ThresholdForecast] = (),
        relay: RelayControl | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._forecasts, self._relay = tuple(forecasts), relay
        self._other = TextCurve()  # the protected side
        self._label, self._advised = "", False
        self._rules: list[str] = []
        self._beyond: list[float] = []  # thresholds that nothing can reach
        super().__init__(total_seconds, console, clock)

    def write(self, event: Event) -> None:
        """Take one event of the run."""
        for forecast in self._forecasts:
            forecast.update(event)
        if isinstance(event, RunStart):
            self._rules = [clean(alert.rule, 60) for alert in event.alerts or ()]
            self._label = ", ".join(clean(name, 20) for name in event.recordings or ())
            self._beyond = [
                forecast.threshold_bits
                for forecast in self._forecasts
                if getattr(forecast, "beyond_reach", False)  # one of one's own may not know
            ]
        super().write(event)

    def _show(self, reading: Reading) -> None:
        if (followed := self._follow(reading)) is None:
            return
        seconds, fresh = followed
        if (figure := phrases.protected_figure(reading)) is not None:
            self._other.add(seconds, figure[0], fresh=fresh)
            self._lowest = min(self._lowest, figure[0])

    def _alert(self, alert: Alert) -> None:
        super()._alert(alert)
        if alert.code == "alert.raised" and alert.way is None and not self._advised:
            self._advised = True
            self._say(phrases.STOP)

    def _gap(self, gap: GapEvent) -> None:
        if gap.reason not in ("thinned", "words ended"):
            super()._gap(gap)
            return
        self._gaps += 1
        if self._gaps <= SHOWN_GAPS:
            self._say(f"at {clock_time(gap.seconds or 0.0)} {clean(gap.detail, 100)}")

    def _line(self) -> str:
        reading, peak = self.reading, self.reading.peak_bits
        enrolled = f"closed-set, among the {self.enrolled or 'few'} enrolled"
        parts = (
            f"{self._place()} audio, {clock_time(reading.speech or 0.0)} speech",
            phrases.bits_now(reading),
            phrases.protected_now(reading) if self.protected else "",
            phrases.promise_now(reading),
            "" if peak is None else f"peak {number(peak)}",
            f"{enrolled}: {phrases.among_enrolled(reading)}" if self.evidence else "",
            *(self._others, self._forecast(), self._lag()),
            f"ALERT {next(iter(self.raised))}" if self.raised else "",
            self._budget(),
        )
        return ", ".join(filter(None, parts))

    def _forecast(self) -> str:
        """Format the nearest threshold ahead, as precisely as a forecast deserves."""
        ahead = [
            (remaining, forecast.threshold_bits)
            for forecast in self._forecasts
            if (remaining := forecast.seconds_left)
        ]
        if not ahead:
            return ""
        remaining, bits = min(ahead)
        about = (
            f"{max(5, 5 * round(remaining / 5))} s"
            if remaining < 60
            else f"{round(remaining / 60)} min"
        )
        return f"{number(bits)} bits in about {about}"

    def _budget(self) -> str:
        relay = self._relay
        if relay is None or relay.budget_bits is None:
            return ""
        bits = relay.budget_bits, relay.sent_bits, relay.kept_bits, relay.held_bits
        return budget_in_words(*bits, is_muted=relay.way == MUTED and not relay.muted)

    def _lag(self) -> str:
        lag = self.reading.lag
        return "" if lag is None else f"lag {lag:.1f} s"

    def _view(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        width, height = self.console.size
        width = max(24, width - 1)
        below = _side_by_side(
            _feature_rows(self.reading, self.watch is not None), self._top(width), width
        )
        if enrolled := enrolment(self.reading):
            if self.reading.is_impostor:
                below += [Text(f" {line}", "yellow") for line in wrap(clean(enrolled, 300), width)]
            else:
                below.append(Text(f" enrolled at all? {clean(enrolled, 60)}", "dim"))
        below += self._caveat_lines()
        if self._others:
            below.append(Text(f" {self._others}", "yellow"))
        above = [
            *(self._banner(), self._shown_first(width), *self._crowd_lines(width)),
            *(*self._protected_lines(width), *self._promise_lines(), self._state()),
            *([Text(f" {budget}")] if (budget := self._budget()) else []),
        ]
        room = height - 3 - len(above) - len(below)  # the cursor's line, the axis and the legend
        blank = [Text("")] if room > 8 else []
        rows = max(3, room - 2 * len(blank))
        lines = [*above, *blank, *self._plot(width, rows), *blank, *below]
        for line in lines:
            line.no_wrap, line.overflow = True, "crop"
        return Group(*lines[: max(1, height - 1)])

    def _banner(self) -> Text:
        from rich.text import Text

        speech, lag = self.reading.speech or 0.0, self.reading.lag or 0.0
        text = Text(f" {self._place()}", style="bold")
        text.append(f"  {clock_time(speech)} of it speech", style="not bold")
        if self._label:
            text.append(f"  from {self._label}", style="not bold dim")
        if words := self._lag():
            colour = "yellow" if lag >= LATE_SECONDS else "dim"
            text.append(f"  {words}", style=f"not bold {colour}")
        if self._gaps:
            text.append(f"  {plural(self._gaps, 'gap')}", style="not bold yellow")
        return text

    def _shown_first(self, width: int) -> Text:
        """Format the headline, and as many notes as there is room for."""
        from rich.text import Text

        reading = self.reading
        text = Text(" ")
        text.append(phrases.bits_now(reading), style="bold reverse" if self.raised else "bold")
        low, high, peak = reading.bits_low, reading.bits_high, reading.peak_bits
        cut = reading.is_evidence and bool(reading.at_least)
        notes: list[tuple[str, str]] = []
        if phrases.nobody_speaks(reading):
            return text  # limits and peak are of a figure that assumes an enrolled speaker
        if low is not None and high is not None and not (cut and low == reading.bits):
            notes.append((phrases.limits_in_words(low, high, cut=cut), ""))
        if peak is not None and not (cut and peak == reading.bits):
            notes.append((f"peak {number(peak)}", ""))
        for words, style in (*notes, (self._whose(), "dim")):
            if len(text) + len(words) + 2 <= width:  # a truncated word could mislead
                text.append(f"  {words}", style=style)
        return text

    def _state(self) -> Text:
        from rich.text import Text

        text = Text(" ")
        if mixed := phrases.mixed_voices(self.reading, self.watch):
            text.append(f" {mixed} ", style="bold reverse yellow")
            text.append(" ")
        if self.doubt:
            text.append(f" {self.doubt} ", style="bold reverse yellow")
            text.append("   alerts rest" if self._rules or self._forecasts else "", style="yellow")
        elif self.closed is not None:
            words = phrases.event_in_words(self.closed)
            text.append(f" {words[:1].upper()}{words[1:]} ", style="bold reverse red")
        elif self.raised:
            rule, since = next(iter(self.raised.items()))
            text.append(f" ALERT {rule}, since {clock_time(since)} ", style="bold reverse red")
        elif self._forecasts:
            bits = ", ".join(number(f.threshold_bits) for f in self._forecasts)
            text.append(f"no alert (threshold {bits} bits)", style="" if self._beyond else "green")
            if self._beyond:  # no alert is no good news where none can come
                never = ", ".join(map(number, self._beyond))
                text.append(f"   {never} can never be reached", style="yellow")
        elif self._rules:
            text.append(f"no alert ({', '.join(self._rules)})", style="green")
        else:
            text.append("no alert is set", style="dim")
        if forecast := self._forecast():
            text.append(f"   {forecast}", style="yellow")
        return text

    def _plot(self, width: int, rows: int) -> list[Text]:
        thresholds = [
            forecast.threshold_bits
            for forecast in self._forecasts
            if phrases.is_headline(forecast.field, self.reading)
        ]
        return self._chart(width, rows, thresholds, self._other, self.total_seconds)

    def _top(self, width: int) -> list[Text]:
        from rich.text import Text

        rows, room = [Text("most probable", style="dim")], max(1, width - _FEATURE_COLUMNS - 23)
        for name, probability in (self.reading.top or ())[:5]:
            fraction = 0.0
            if probability is not None and math.isfinite(probability):
                fraction = min(max(probability, 0.0), 1.0)
            watched = str(name) == self.watch
            cell = f"{clean(name, 12)}{' *' if watched else ''}"
            bar, style = "█" * round(fraction * room) or "▏", "red" if watched else "blue"
            rows.append(Text.assemble(f"{cell:<15}", (f"{fraction:4.0%} ", "bold"), (bar, style)))
        return rows


def _feature_rows(reading: Reading, watched: bool) -> list[Text]:
    """Format one row per feature: length used, rank, bits of the rank, bits (or confidence)."""
    from rich.text import Text

    features = reading.features or {}
    heads = f"{'rank':>6}{'rank alone':>12}{'bits':>7}" if watched else f"{'confidence':>25}"
    rows = [Text(f" {'feature':<10}{'usable':>7}{heads}", "dim")]
    for name, feature in features.items():
        rank = f"{feature.rank:g}" if feature.rank is not None else "?" if watched else ""
        alone = number(feature.rank_bits) if watched else ""
        bits = number(feature.local_bits if watched else feature.gain_bits)
        usable = clock_time(feature.usable or 0.0)
        rows.append(Text(f" {clean(name, 9):<10}{usable:>7}{rank:>6}{alone:>12}{bits:>7}"))
    if reading.expected_bits is not None:
        expected = number(reading.expected_bits)
        rows.append(Text(f" {'average voice, this length':<35}{expected:>7}", "dim"))
    if any(name in VOICED for name in features):
        rows.append(Text(" usable: of f0 the voiced speech alone", "dim"))
    return rows


def _side_by_side(left: list[Text], right: list[Text], width: int) -> list[Text]:
    """Join two blocks side by side, or, where there is no room, return the first alone."""
    from rich.text import Text

    if width < _FEATURE_COLUMNS + 24:
        return left
    lines = []
    for i in range(max(len(left), len(right))):
        line = Text.assemble(left[i] if i < len(left) else "")  # its style, not the neighbour's
        line.append(" " * (_FEATURE_COLUMNS - line.cell_len))
        lines.append(line + right[i] if i < len(right) else line)
    return lines


class ReplayProgress(TerminalSink):
    r"""A bar for a replay: audio done, times real time, time left, bits now.

    Where stderr is no terminal, a line every 10 s of wall time, where the bits have changed. Either
    way one line at the end.
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

    def _show(self, reading: Reading) -> None:
        # Speed counts from the first reading on: what a resumed run skipped is not in it.
        self._latest = (self._clock(), reading.seconds or 0.0)
        self._first = self._first or self._latest

    @property
    def times_real_time(self) -> float | None:
        """Audio seconds per wall second; None before two readings."""
        if self._first is None or self._latest[0] <= self._first[0]:
            return None
        return (self._latest[1] - self._first[1]) / (self._latest[0] - self._first[0])

    @property
    def seconds_left(self) -> float | None:
        """Wall seconds until the end; None if unknown."""
        speed = self.times_real_time
        if not speed or self.total_seconds is None:
            return None
        return max(0.0, self.total_seconds - self._latest[1]) / speed

    def _parts(self) -> list[str]:
        speed, remaining = self.times_real_time, self.seconds_left
        speed_text = "" if speed is None else f"{speed:.1f}" if speed < 10 else f"{speed:,.0f}"
        return [
            self._place(),
            speed_text,
            f"{clock_time(remaining)} left" if remaining is not None and not self._closed else "",
            phrases.bits_now(self.reading),
        ]

    def _line(self) -> str:
        position, speed, remaining, bits = self._parts()
        side = phrases.protected_now(self.reading) if self.protected else ""
        parts = (f"{position} audio", speed and f"{speed} x real time", remaining, bits, side)
        return ", ".join(filter(None, (*parts, phrases.promise_now(self.reading))))

    def _last_words(self) -> str:
        gaps = f", {plural(self._gaps, 'gap')}" if self._gaps else ""
        return ", ".join(filter(None, (self._line() + gaps, self._others)))

    def _view(self) -> RenderableType:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        position, speed, remaining, bits = self._parts()
        grid = Table.grid(padding=(0, 1), expand=True)
        for _ in range(4):
            grid.add_column(no_wrap=True)
        grid.add_column(ratio=1)
        done = self.reading.seconds or 0.0
        bar = ProgressBar(
            total=self.total_seconds, completed=done, pulse=self.total_seconds is None
        )
        urgent = "bold yellow" if self.doubt or self.warned else "bold"
        style = "bold red" if self.raised and not self.doubt else urgent
        grid.add_row(
            position, speed and f"{speed}x", remaining, Text(bits, style=style), bar,
        )  # fmt: skip
        return grid


MOST_SHOWN = 8
"""Maximum number of people with their own line during the recording, those with most bits."""
_BAR = 24


class PeopleProgress(ReplayProgress):
    r"""A bar for a replay, with a line for each person in the recording.

    Where stderr is no terminal, a line every 10 s of wall time, and one for each person at the end.
    """

    def __init__(
        self,
        total_seconds: float | None,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._people: dict[str, dict[str | None, Reading]] = {}  # last readings by whom watched
        self._alerted: set[str] = set()
        super().__init__(total_seconds, console, clock)

    def _show(self, reading: Reading) -> None:
        super()._show(reading)
        self._people.setdefault(str(reading.label), {})[reading.watch] = reading

    @property
    def _others(self) -> str:
        """Return nothing, because bystanders have their own lines."""
        return ""

    @property
    def _most(self) -> list[tuple[str, Reading]]:
        readings = [
            (label, max(views.values(), key=_bits)) for label, views in self._people.items()
        ]
        return sorted(readings, key=lambda labelled: -_bits(labelled[1]))

    def _parts(self) -> list[str]:
        *parts, _ = super()._parts()
        return [*parts, plural(len(self._people), "person", "people")]

    def _line(self) -> str:
        position, speed, remaining, people = self._parts()
        top = self._most
        parts = [f"{position} audio", speed and f"{speed} x real time", remaining, people]
        if top:
            label, reading = top[0]
            parts.append(f"most: {clean(label, 20)}, {phrases.bits_now(reading)}")
        return ", ".join(text for text in parts if text)

    def _view(self) -> RenderableType:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 2))
        for _ in range(4):
            grid.add_column(no_wrap=True)
        shown = self._most[:MOST_SHOWN]
        top = max([1.0, *(_bits(reading) for _, reading in shown)])
        for label, reading in sorted(
            shown, key=lambda labelled: list(self._people).index(labelled[0])
        ):
            bits = _bits(reading)
            bar = "█" * round(_BAR * max(bits, 0.0) / top) or "▏"
            style = "bold red" if label in self._alerted else "bold"
            grid.add_row(
                clean(label, 18),
                clock_time(reading.speech or 0.0),
                Text(number(reading.bits), style=style),
                Text(bar, style="red" if label in self._alerted else "blue"),
            )
        more = len(self._people) - len(shown)
        more_rows = [Text(f"and {more} more with less", style="dim")] if more else []
        return Group(super()._view(), grid, *more_rows)

    def _alert(self, alert: Alert) -> None:
        if alert.level != "warning":
            raised = alert.state == "raised"
            (self._alerted.add if raised else self._alerted.discard)(str(alert.label))
        super()._alert(alert)


def _bits(reading: Reading) -> float:
    return float("-inf") if reading.bits is None else reading.bits
