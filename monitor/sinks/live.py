"""The live view of `monitor listen`: everything that counts, on 80 by 24 characters."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from monitor import phrases
from monitor.protocols import ThresholdForecast
from monitor.sinks.summary import (
    among_enrolled,
    bits_now,
    clean,
    limits_in_words,
    number,
    protected_now,
)
from monitor.sinks.terminal import (
    LINEAR,
    PLATEAU,
    PROTECTED,
    ROOT,
    SHOWN_GAPS,
    THRESHOLD,
    TerminalSink,
    TextCurve,
    top_rows,
)

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

LATE_SECONDS = 1.0
_FEATURE_COLUMNS = 46


class LiveView(TerminalSink):
    """The live view of `monitor listen`.

    The first figure, limits and odds; the curve so far with the ceiling, the plateau, the guides
    and the threshold, and a legend; a row a feature; peak; the five most probable speakers; alert
    and forecast; lag. Without colour every part still has its own shape. Where stderr is no
    terminal, a line every 10 s of wall time, where the bits have changed.

    Args:
        console: where to draw; stderr by default.
        forecasts: of the thresholds that alerts stand on; the nearest is shown.
        clock: wall seconds.
    """

    leaves_view = True

    def __init__(
        self,
        console: Console | None = None,
        *,
        forecasts: Sequence[ThresholdForecast] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._forecasts = tuple(forecasts)
        self._linear, self._root = TextCurve(), TextCurve()
        self._other = TextCurve()  # the protected side
        self._label = ""
        self._rules: list[str] = []
        self._beyond: list[float] = []  # thresholds that nothing can reach
        super().__init__(None, console, clock)

    def write(self, record: Mapping[str, Any]) -> None:
        """Take one record of the run."""
        if record.get("type") == "start":
            self._rules = [clean(alert["rule"], 60) for alert in record.get("alerts") or ()]
            self._label = ", ".join(clean(name, 20) for name in record.get("recordings") or ())
        for forecast in self._forecasts:
            forecast.update(record)
        if record.get("type") == "start":  # a forecast of one's own may not know
            self._beyond = [
                forecast.threshold_bits
                for forecast in self._forecasts
                if getattr(forecast, "beyond_reach", False)
            ]
        super().write(record)

    def say(self, line: str) -> None:
        """Tell a person something that is no record."""
        self._say(clean(line, 200))

    def _show(self, record: Mapping[str, Any]) -> None:
        if (followed := self._follow(record)) is None:
            return
        seconds, fresh = followed
        if (figure := phrases.protected_figure(record)) is not None:
            self._other.add(seconds, figure[0], fresh=fresh)
            self._lowest = min(self._lowest, figure[0])
        of = "evidence_guides" if phrases.is_evidence(record) else "guides"
        guides = {} if self.protected else record.get(of) or {}  # two sides are enough to draw
        for curve, name in ((self._linear, "linear"), (self._root, "sqrt")):
            if guides.get(name):
                curve.add(seconds, guides[name], fresh=fresh)

    def _gap(self, record: Mapping[str, Any]) -> None:
        if record.get("reason") not in ("thinned", "words ended"):
            super()._gap(record)
            return
        self._gaps += 1
        if self._gaps <= SHOWN_GAPS:
            at = phrases.clock_time(record.get("seconds") or 0.0)
            self._say(f"at {at} {clean(record.get('detail'), 100)}")

    def _line(self) -> str:
        reading = self.reading
        parts = [
            f"{self._place()} audio, {phrases.clock_time(reading.get('speech') or 0.0)} speech"
        ]
        parts.append(bits_now(reading))
        if self.protected:
            parts.append(protected_now(reading))
        parts += [text for text in (phrases.promise_now(reading),) if text]
        if (peak := reading.get("peak_bits")) is not None:
            parts.append(f"peak {number(peak)}")
        if self.evidence:
            who = self.enrolled or "few"
            parts.append(f"closed-set, among the {who} enrolled: {among_enrolled(reading)}")
        parts += [text for text in (self._others, self._forecast(), self._lag()) if text]
        if self.raised:
            parts.append(f"ALERT {next(iter(self.raised))}")
        return ", ".join(parts)

    def _forecast(self) -> str:
        """The nearest threshold ahead, in words."""
        ahead = [
            (left, forecast.threshold_bits)
            for forecast in self._forecasts
            if (left := forecast.seconds_left)
        ]
        if not ahead:
            return ""
        left, bits = min(ahead)
        return f"{number(bits)} bits in about {_about(left)}"

    def _lag(self) -> str:
        lag = self.reading.get("lag")
        return "" if lag is None else f"lag {lag:.1f} s"

    def _view(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        width, height = self.console.size
        width = max(24, width - 1)
        below = _side_by_side(
            _feature_rows(self.reading, self.watch is not None), self._top(width), width
        )
        if enrolled := phrases.enrolment(self.reading):
            if phrases.is_impostor(self.reading):
                below += [Text(f" {line}", "yellow") for line in wrap(clean(enrolled, 300), width)]
            else:
                below.append(Text(f" enrolled at all? {clean(enrolled, 60)}", "dim"))
        below += self._caveat_lines()
        if self._others:
            below.append(Text(f" {self._others}", "yellow"))
        above = [
            *(self._banner(), self._shown_first(width), *self._crowd_lines(width)),
            *(*self._protected_lines(width), *self._promise_lines(), self._state()),
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

        reading = self.reading
        text = Text(f" {self._place()}", style="bold")
        text.append(
            f"  {phrases.clock_time(reading.get('speech') or 0.0)} of it speech", style="not bold"
        )
        if self._label:
            text.append(f"  from {self._label}", style="not bold dim")
        if lag := self._lag():
            late = reading["lag"] >= LATE_SECONDS
            text.append(f"  {lag}", style="not bold yellow" if late else "not bold dim")
        if self._gaps:
            text.append(f"  {phrases.plural(self._gaps, 'gap')}", style="not bold yellow")
        return text

    def _shown_first(self, width: int) -> Text:
        """Format the headline, and as many notes as there is room for."""
        from rich.text import Text

        reading = self.reading
        text = Text(" ")
        text.append(bits_now(reading), style="bold reverse" if self.raised else "bold")
        low, high = reading.get("bits_low"), reading.get("bits_high")
        cut = phrases.is_evidence(reading) and bool(reading.get("at_least"))
        notes: list[tuple[str, str]] = []
        if low is not None and high is not None and not (cut and low == reading.get("bits")):
            notes.append((limits_in_words(low, high, cut=cut), ""))
        if (peak := reading.get("peak_bits")) is not None and not (cut and peak == reading["bits"]):
            notes.append((f"peak {number(peak)}", ""))
        for words, style in (*notes, (self._whose(), "dim")):
            if len(text) + len(words) + 2 <= width:  # half a word would say something else
                text.append(f"  {words}", style=style)
        return text

    def _state(self) -> Text:
        """Format alert and forecast."""
        from rich.text import Text

        text = Text(" ")
        if self.doubt:
            text.append(f" {self.doubt} ", style="bold reverse yellow")
            text.append("   alerts rest" if self._rules or self._forecasts else "", style="yellow")
        elif self.raised:
            rule, since = next(iter(self.raised.items()))
            text.append(
                f" ALERT {rule}, since {phrases.clock_time(since)} ", style="bold reverse red"
            )
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
        levels = []
        if (plateau := self.reading.get("plateau")) and not self.evidence:
            levels.append((plateau, PLATEAU))
        for forecast in self._forecasts:
            if phrases.is_headline(forecast.field, self.reading):
                levels.append((forecast.threshold_bits, THRESHOLD))
        guides = ((self._other, PROTECTED), (self._linear, LINEAR), (self._root, ROOT))
        return self._chart(width, rows, levels, guides)

    def _top(self, width: int) -> list[Text]:
        """Format the most probable speakers."""
        from rich.text import Text

        room = max(1, width - _FEATURE_COLUMNS - 23)
        rows = top_rows(self.reading, self.watch, room, 12)
        return [Text("most probable", style="dim"), *rows]


def _feature_rows(reading: Mapping[str, Any], watched: bool) -> list[Text]:
    """Format a row a feature: length used, rank, bits of the rank, bits (or confidence)."""
    from rich.text import Text

    features: Mapping[str, Mapping[str, Any]] = reading.get("features") or {}
    heads = f"{'rank':>6}{'rank alone':>12}{'bits':>7}" if watched else f"{'confidence':>25}"
    rows = [Text(f" {'feature':<10}{'usable':>7}{heads}", "dim")]
    for name, feature in features.items():
        rank = feature.get("rank")
        bits = feature.get("local_bits") if watched else feature.get("gain_bits")
        cells = (
            phrases.clock_time(feature.get("usable") or 0.0),
            f"{rank:g}" if rank is not None else "?" if watched else "",
            number(feature.get("rank_bits")) if watched else "",
            number(bits),
        )
        rows.append(
            Text(f" {clean(name, 9):<10}{cells[0]:>7}{cells[1]:>6}{cells[2]:>12}{cells[3]:>7}")
        )
    expected = reading.get("expected_bits")
    if expected is not None:
        rows.append(Text(f" {'average voice, this length':<35}{number(expected):>7}", "dim"))
    if any(name in phrases.VOICED for name in features):
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


def _about(seconds: float) -> str:
    """Format seconds as precisely as a forecast deserves."""
    if seconds < 60:
        return f"{max(5, 5 * round(seconds / 5)):d} s"
    return f"{round(seconds / 60):d} min"
