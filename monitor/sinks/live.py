"""`LiveView` shows the whole run of `monitor listen` on one screen."""

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
from monitor.sinks.terminal import SHOWN_GAPS, TerminalSink
from monitor.sinks.text_curve import TextCurve

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

LATE_SECONDS = 1.0
_FEATURE_COLUMNS = 46


class LiveView(TerminalSink):
    """The live view of `monitor listen`.

    The view shows the headline with limits and odds, and its curve with maximum, threshold,
    matching people and a legend. Below are one row per feature, the peak, the five most probable
    speakers, alert, forecast and lag. It is readable without colour. If stderr is not a terminal, a
    line is printed every 10 s of wall time if the bits have changed, otherwise every 60 s.
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
        self._other = TextCurve()  # of the protected side
        self._label, self._advised = "", False
        self._rules: list[str] = []
        self._beyond: list[float] = []  # thresholds that no figure can reach
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
                if getattr(forecast, "beyond_reach", False)  # custom forecasts may lack it
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
        """Format the time until the nearest threshold, roughly rounded."""
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
        if relay is None:
            return ""
        is_muted = relay.way == MUTED
        if relay.budget_bits is None:
            return "muted" if is_muted else ""
        held_bits = 0.0 if relay.muted else relay.held_bits
        bits = relay.budget_bits, relay.sent_bits, relay.kept_bits, held_bits
        return budget_in_words(*bits, is_muted=is_muted)

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
        if "style" in (self.reading.features or {}):
            below.append(Text(" style of read text identifies its author, not the reader", "dim"))
        if self._others:
            below.append(Text(f" {self._others}", "yellow"))
        above = [
            *(self._banner(), self._shown_first(width), *self._crowd_lines(width)),
            *(*self._protected_lines(width), *self._promise_lines(), self._state()),
            *([Text(f" {budget}")] if (budget := self._budget()) else []),
        ]
        room = height - 3 - len(above) - len(below)  # rows of the cursor, the axis and the legend
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
        """Format the headline, and as many notes as fit."""
        from rich.text import Text

        reading = self.reading
        text = Text(" ")
        text.append(phrases.bits_now(reading), style="bold reverse" if self.raised else "bold")
        low, high, peak = reading.bits_low, reading.bits_high, reading.peak_bits
        cut = reading.is_evidence and bool(reading.at_least)
        notes: list[tuple[str, str]] = []
        if phrases.nobody_speaks(reading):
            return text  # limits and peak would assume an enrolled speaker
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
            if self._beyond:  # an alert that cannot be raised is no good news
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


def _side_by_side(first: list[Text], second: list[Text], width: int) -> list[Text]:
    """Join two blocks side by side; return only the first if there is no room."""
    from rich.text import Text

    if width < _FEATURE_COLUMNS + 24:
        return first
    lines = []
    for i in range(max(len(first), len(second))):
        line = Text.assemble(first[i] if i < len(first) else "")  # keeps its own style
        line.append(" " * (_FEATURE_COLUMNS - line.cell_len))
        lines.append(line + second[i] if i < len(second) else line)
    return lines
