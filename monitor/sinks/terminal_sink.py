"""The base of the sinks that draw for people on a terminal: when to draw, and what to keep."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from monitor.crowds import axis_top, bits_or_more
from monitor.declared_words import promise_now
from monitor.phrases import another_voice, clock_time, of_evidence, voice_since
from monitor.protected_words import (
    attacker_of,
    crossing_in_words,
    fewer_in_words,
    protected_figure,
    uninformed,
)
from monitor.sinks.in_words import (
    alert_in_words,
    also_narrowed_down,
    among_enrolled,
    bits_now,
    clean,
    in_a_crowd,
    limits_in_words,
    number,
)

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live
    from rich.text import Text

    from monitor.sinks.textcurve import TextCurve

__all__ = ["TerminalSink"]

REFRESH_SECONDS = 0.1
LINE_SECONDS = 10.0
SAME_SECONDS = 60.0
"""How often a line is said that says nothing new, so that people see that it goes on."""
SHOWN_GAPS = 5
LONGEST_NOTE = 500
ACTIONS = {
    "note": "alerts rest, the evidence is of both",
    "reset": "the evidence begins afresh",
    "split": "another stream begins",
}


class TerminalSink:
    """The base of the sinks for people: the latest reading, notes for people, and when to draw."""

    leaves_view = False

    def __init__(
        self,
        total_seconds: float | None,
        console: Console | None,
        clock: Callable[[], float],
    ) -> None:
        from monitor.sinks.console import PlainConsole

        self.console = console or PlainConsole(stderr=True)
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
        unicode = self.console.encoding.lower().replace("-", "").startswith("utf")
        if self.console.is_terminal and not self.console.is_dumb_terminal and unicode:
            from rich.live import Live

            # stdout carries the data: rich must not capture it.
            self._live = Live(
                console=self.console, auto_refresh=False, redirect_stdout=False,
                redirect_stderr=False, transient=not self.leaves_view,
            )  # fmt: skip
            self._live.start()

    def write(self, record: Mapping[str, Any]) -> None:
        """Take one record of the run."""
        kind = record.get("type")
        if kind == "start":
            self.watch = None if record.get("watch") is None else str(record["watch"])
            self.enrolled = int(record.get("speakers") or 0)
            self.support_bits = record.get("support_bits")
            self.evidence = of_evidence(record)
            self.protected = clean((record.get("protected") or {}).get("method", ""), 24)
        elif kind == "reading":
            self.reading = record
            self.evidence |= of_evidence(record)
            self._take(record)
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

    def _take(self, record: Mapping[str, Any]) -> None:
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
        """Where there is no view: a line now and then, if it says anything new."""
        now, told = self._clock(), bits_now(self.reading)
        if self._drawn == -math.inf:
            self._drawn = now
        elif now - self._drawn >= (SAME_SECONDS if told == self._told else LINE_SECONDS):
            self._say(self._line())
            self._drawn, self._told = now, told

    def _draw(self, live: Live) -> None:
        self._drawn = self._clock()
        live.update(self._view(), refresh=True)

    def _say(self, line: str) -> None:
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
            at = clock_time(record.get("seconds") or 0.0)
            self._say(f"audio lost at {at}: {clean(record.get('reason'), 60)}{more}")

    def _notice(self, record: Mapping[str, Any]) -> None:
        at = clock_time(record.get("seconds") or 0.0)
        self._say(f"note at {at}: {clean(record.get('text'), LONGEST_NOTE)}")

    def _change(self, record: Mapping[str, Any]) -> None:
        self._changes += 1
        if record.get("action") != "note":
            self._begun = f"voice since {clock_time(record.get('since_seconds') or 0.0)}"
        if self._changes <= SHOWN_GAPS:
            more = " (further ones are only counted)" if self._changes == SHOWN_GAPS else ""
            done = ACTIONS.get(str(record.get("action")), "")
            if record.get("back"):
                done = "alerts go on"
            self._say(f"{voice_since(record)}: {done}{more}")

    def _crossing(self, record: Mapping[str, Any]) -> None:
        level = float(record.get("bits") or 0.0)
        since = float(record.get("since_seconds") or 0.0)
        self.crossings.setdefault(level, {})[str(record.get("side"))] = since
        known = record.get("bought_seconds") is None or not uninformed(self.reading)
        whom = "" if known else f", from {attacker_of(self.reading)}"
        self._say(f"{crossing_in_words(record)}{whom}")

    @property
    def doubt(self) -> str:
        """Whose bits these may not be, while a change is open."""
        return another_voice(self.reading, None if self.watch is None else clean(self.watch, 16))

    def _own(self, reading: Mapping[str, Any]) -> float | None:
        """The headline, where it is of the run's kind: a curve is of one figure."""
        return reading.get("bits") if of_evidence(reading) == self.evidence else None

    def _top_bits(self, curve: TextCurve) -> float:
        """What the bits axis reaches up to: evidence knows no ceiling."""
        ceiling: float = self.reading.get("ceiling") or 1.0
        if not self.evidence:
            return ceiling
        highest = max(ceiling, self.support_bits or 0.0, *(bits for _, bits in curve.points))
        return axis_top(highest)

    def _crowd_lines(self, width: int) -> list[Text]:
        """What the evidence means in a crowd, and, second to it, among the enrolled."""
        from rich.text import Text

        watch = None if self.watch is None else clean(self.watch, 16)
        said = clean(in_a_crowd(self.reading, watch, self.enrolled), 200)
        shorter = said.partition(" who would")[0]
        fits = (each for each in (said, shorter) if len(each) < width)
        said = next(fits, shorter.removeprefix("this voice ").removeprefix("your voice "))
        lines = [Text(f" {said}")] if said else []
        if self.evidence:
            among = Text(f" closed-set, among the {self.enrolled or 'few'} enrolled: ", "dim")
            among.append(among_enrolled(self.reading))
            lines.append(among)
        return lines

    def _protected_lines(self, width: int) -> list[Text]:
        """The other side: its figure, how much less that is, and to whom; never without."""
        from rich.text import Text

        if not self.protected:
            return []
        figure = protected_figure(self.reading)
        if figure is None:
            return [Text(" protected: no figure yet", style="bold")]
        bits = bits_or_more(self.reading["protected"], f"{number(figure[0])} bits")
        fewer = fewer_in_words(self.reading)
        # of an attacker who does not know the anonymiser the words are the headline, not the bits
        known = not uninformed(self.reading)
        text = Text(" ")
        text.append(f"protected {bits}", style="bold" if known else "")
        text.append(f", {fewer}" if fewer else "", style="bold")
        cut = self.reading["protected"].get("at_least")
        text.append(f"  {limits_in_words(figure[1], figure[2], cut=cut)}")
        text.append(f"  through {self.protected}", style="dim")
        lines = [
            text,
            Text(f" to {attacker_of(self.reading)}", "yellow" if known else "bold yellow"),
        ]
        if bought := self._bought(width):
            lines.append(Text(f" {bought}"))
        return lines

    def _caveat_lines(self) -> list[Text]:
        """Whose style is heard, where any is, in as few words as fit."""
        from rich.text import Text

        heard = "style" in (self.reading.get("features") or {})
        return (
            [Text(" of read text style tells the author, not the reader", "dim")] if heard else []
        )

    def _promise_lines(self) -> list[Text]:
        """What is promised of all that was heard so far, whoever attacks."""
        from rich.text import Text

        said = promise_now(self.reading)
        if not said:
            return []
        return [Text(f" {said}", "yellow" if self.reading["declared"]["empty"] else "")]

    def _bought(self, width: int) -> str:
        """Seconds bought so far: as many levels as there is room."""
        told = ""
        for bits, since in sorted(self.crossings.items()):
            if "clear" not in since:
                continue
            later = since.get("protected", math.nan) - since["clear"]
            bought = "not yet out" if math.isnan(later) else f"{later:.0f} s"
            level = f"{bits:g} bit{'' if bits == 1 else 's'}"
            more = f"{told}, {level} {bought}" if told else f"bought: {level} {bought}"
            if len(more) >= width:
                break
            told = more
        return told

    @property
    def _others(self) -> str:
        """Who else was narrowed down, while the evidence is of one voice."""
        return "" if self.doubt else also_narrowed_down(self.reading.get("bystanders"))

    def _whose(self) -> str:
        """Whose bits these are, as far as anybody can know."""
        if self.doubt:
            return ""
        who = "" if self.watch is None else clean(self.watch, 16)
        if self._begun:
            return f"{self._begun}: {who}?" if who else f"the {self._begun}"
        return f"watching {who}" if who else "an attacker's, if enrolled"

    def _place(self) -> str:
        done = clock_time(self.reading.get("seconds") or 0.0)
        return done if self.total_seconds is None else f"{done} of {clock_time(self.total_seconds)}"
