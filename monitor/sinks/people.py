"""What the sinks for people share: when to draw, what to say, and in which words."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from monitor.crowds import axis_top, best_match, bits_or_more, left_of, narrowed_sentence
from monitor.phrases import (
    STRANGER,
    another_voice,
    clock_time,
    is_stranger,
    length_in_words,
    odds,
    one_in,
    printable,
    voice_since,
)

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live
    from rich.text import Text

    from monitor.sinks.textcurve import TextCurve

__all__ = [
    "TerminalSink",
    "alert_in_words",
    "also_narrowed_down",
    "among_enrolled",
    "bits_now",
    "clean",
    "evidence_of",
    "in_a_crowd",
    "number",
    "speed_text",
]

REFRESH_SECONDS = 0.1
LINE_SECONDS = 10.0
SAME_SECONDS = 60.0
"""How often a line is said that says nothing new, so that people see that it goes on."""
SHOWN_GAPS = 5
SHOWN_BYSTANDERS = 3
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
        elif kind == "reading":
            self.reading = record
            self._take(record)
        elif kind == "alert":
            self._alert(record)
        elif kind == "gap":
            self._gap(record)
        elif kind == "change":
            self._change(record)
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

    @property
    def doubt(self) -> str:
        """Whose bits these may not be, while a change is open."""
        return another_voice(self.reading, None if self.watch is None else clean(self.watch, 16))

    @property
    def field(self) -> str:
        """Which figure the curve is of: the evidence, where there is any."""
        told = self.watch is not None and self.support_bits is not None
        return "evidence_bits" if told or evidence_of(self.reading) is not None else "bits"

    def _top_bits(self, curve: TextCurve) -> float:
        """What the bits axis reaches up to: beyond the ceiling with evidence, which knows none."""
        ceiling: float = self.reading.get("ceiling") or 1.0
        if self.field == "bits":
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
        if self.field != "bits":
            among = Text(f" among the {self.enrolled or 'few'} enrolled: ", "dim")
            among.append(among_enrolled(self.reading))
            if (peak := self.reading.get("peak_bits")) is not None:
                among.append(f"  peak {number(peak)}")
            lines.append(among)
        return lines

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


def alert_in_words(record: Mapping[str, Any]) -> str:
    """An alert or a warning, raised or over, in one line.

    Examples:
        >>> alert = {"type": "alert", "seconds": 41.0, "rule": "bits>3 for 5 s", "field": "bits",
        ...     "threshold": 3.0, "level": "alert", "state": "raised", "value": 3.42}
        >>> alert_in_words(alert)
        'alert at 0:41: bits>3 for 5 s (now 3.4)'
        >>> alert_in_words({**alert, "state": "cleared"})
        'alert over at 0:41: bits>3 for 5 s'
        >>> change = {"since_seconds": 33.0, "features": ["f0"]}
        >>> alert_in_words({**alert, "state": "cleared", "change": change})
        'alert over at 0:41: bits>3 for 5 s (another voice since 0:33)'
        >>> soon = {"level": "warning", "rule": "bits>3 within 30 s", "value": 2.1}
        >>> alert_in_words({**alert, **soon, "seconds_left": 28.2})
        'warning at 0:41: 3 bits in about 28 s (bits>3 within 30 s, now 2.1)'
        >>> late = {"false_alarms": {"horizon_seconds": 30.0, "beyond": True}}
        >>> alert_in_words({**alert, **late})
        'alert at 0:41: bits>3 for 5 s (now 3.4; later than the 30 seconds this is known for)'
    """
    at, rule = clock_time(record.get("seconds") or 0.0), clean(record.get("rule"), 60)
    level = clean(record.get("level", "alert"), 10)
    if record.get("state") != "raised":
        why = f" ({voice_since(record['change'])})" if record.get("change") else ""
        return f"{level} over at {at}: {rule}{why}"
    now, left = number(record.get("value")), record.get("seconds_left")
    if left is None:
        return f"{level} at {at}: {rule} (now {now}{beyond_in_words(record)})"
    soon = f"{record['threshold']:g} bits in about {max(1, round(left))} s"
    return f"{level} at {at}: {soon} ({rule}, now {now})"


def beyond_in_words(record: Mapping[str, Any]) -> str:
    """That an alert came later than its false alarms are known for; empty where it did not."""
    alarms = record.get("false_alarms") or {}
    if not alarms.get("beyond"):
        return ""
    return f"; later than the {length_in_words(alarms['horizon_seconds'])} this is known for"


def also_narrowed_down(bystanders: Sequence[Mapping[str, Any]] | None) -> str:
    """Who else became more probable; empty where nobody did.

    Examples:
        >>> also_narrowed_down([{"name": "bob", "probability": 1 / 30, "people": 10000}])
        'also narrowed down: bob, 1 in 30'
        >>> also_narrowed_down([])
        ''
    """
    found = list(bystanders or ())
    if not found:
        return ""
    shown = [f"{clean(each['name'], 20)}, {one_in(each['probability'])}" for each in found]
    more = f"; and {len(found) - SHOWN_BYSTANDERS} more" if len(found) > SHOWN_BYSTANDERS else ""
    return f"also narrowed down: {'; '.join(shown[:SHOWN_BYSTANDERS])}{more}"


def bits_now(reading: Mapping[str, Any]) -> str:
    """The figure of a reading that is shown first, evidence if it has any, or why there is none.

    Examples:
        >>> among = [{"people": 50, "bits": 5.6}, {"people": 1e6, "bits": 11.3}]
        >>> bits_now({"bits": 5.58, "ceiling": 5.64, "evidence_bits": 11.3, "among": among})
        '11.3 bits, about 400 in a million'
        >>> bits_now({"bits": 2.06, "ceiling": 5.64}), bits_now({"bits": None})
        ('2.1 of 5.6 bits, 1 in 12', 'no figure yet')
    """
    evidence = evidence_of(reading)
    if evidence is None:
        return among_enrolled(reading)
    words = bits_or_more(reading, f"{number(evidence)} bits")
    if change := reading.get("change"):
        return f"{words}, {voice_since(change)}"
    return ", ".join(each for each in (words, left_of(reading)) if each)


def evidence_of(reading: Mapping[str, Any]) -> float | None:
    """Bits of evidence, where a reading has them."""
    evidence = reading.get("evidence_bits")
    return evidence if evidence is not None and math.isfinite(evidence) else None


def in_a_crowd(reading: Mapping[str, Any], watch: str | None, enrolled: int) -> str:
    """What the evidence means in the largest crowd; empty where there is none to speak of.

    While a change is open it may be of somebody else, and claims nothing.
    """
    if reading.get("change"):
        return ""
    return best_match(reading, enrolled) if watch is None else narrowed_sentence(reading, watch)


def among_enrolled(reading: Mapping[str, Any]) -> str:
    """What a reading says among the N enrolled, or why it says nothing.

    Examples:
        >>> among_enrolled({"bits": 2.06, "ceiling": 5.64}), among_enrolled({"bits": None})
        ('2.1 of 5.6 bits, 1 in 12', 'no figure yet')
        >>> among_enrolled({"bits": 5.58, "ceiling": 5.64})
        '5.6 of 5.6 bits, 96 % sure'
        >>> change = {"since_seconds": 107.0, "features": ["f0"]}
        >>> among_enrolled({"bits": 2.06, "ceiling": 5.64, "change": change})
        '2.1 of 5.6 bits, another voice since 1:47'
    """
    bits, ceiling = reading.get("bits"), reading.get("ceiling")
    if bits is None or ceiling is None or not math.isfinite(bits):
        withheld = reading.get("withheld")
        return "no figure yet" if withheld is None else f"withheld: {clean(withheld, 40)}"
    words = f"{number(bits)} of {number(ceiling)} bits"
    if change := reading.get("change"):  # it claims nothing about anybody
        return f"{words}, {voice_since(change)}"
    said = odds(bits, ceiling, assumed=bool(reading.get("assumes_enrolled")))
    words = f"{words}, {said}"
    return f"{words}, {STRANGER}" if is_stranger(reading) else words


def number(value: float | None) -> str:
    """One decimal, no negative zero; a question mark for nothing."""
    text = "?" if value is None else f"{value:.1f}"
    return "0.0" if text == "-0.0" else text


def speed_text(speed: float) -> str:
    """A multiple of real time."""
    return f"{speed:.1f}" if speed < 10 else f"{speed:,.0f}"


def clean(value: object, longest: int) -> str:
    """A name or reason that cannot steer the terminal, shortened."""
    text = printable(value)
    return text if len(text) <= longest else text[: longest - 1] + "~"
