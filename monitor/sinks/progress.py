"""Progress of a replay: a bar, and one line per person if there are several."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from monitor.events import phrases
from monitor.events.phrases import clean, number
from monitor.events.reading import Reading
from monitor.events.run import Alert
from monitor.phrases import clock_time, plural
from monitor.sinks.terminal import TerminalSink

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


class ReplayProgress(TerminalSink):
    r"""Progress bar of a replay, with processed audio, speed, remaining time and bits.

    If stderr is not a terminal, a line is printed every 10 s of wall time if the bits have changed,
    otherwise every 60 s. A last line follows at the end.
    """

    _first: tuple[float, float] | None = None
    _latest = 0.0, 0.0

    def _show(self, reading: Reading) -> None:
        # Speed counts from the first reading, without the audio that a resumed run skipped.
        self._latest = (self._clock(), reading.seconds or 0.0)
        self._first = self._first or self._latest

    @property
    def times_real_time(self) -> float | None:
        """Speed in audio seconds per wall second; None before two readings."""
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
"""Maximum number of people shown during the recording. Those with most bits are shown."""
_BAR = 24


class PeopleProgress(ReplayProgress):
    r"""Progress bar of a replay, with one line per person in the recording.

    If stderr is not a terminal, a line is printed every 10 s of wall time, and one per person at
    the end.
    """

    def __init__(
        self,
        total_seconds: float | None,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._people: dict[str, dict[str | None, Reading]] = {}  # by label and watched speaker
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
