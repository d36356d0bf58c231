"""Several people in one recording on a terminal: a line for each while it is measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from monitor import phrases
from monitor.sinks.summary import bits_now, clean, number
from monitor.sinks.terminal import ReplayProgress

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

MOST_SHOWN = 8
"""People with a line of their own while the recording is heard: those with most bits."""
_BAR = 24


class PeopleProgress(ReplayProgress):
    r"""A bar for a replay, with a line for each person in the recording.

    Where stderr is no terminal, a line every 10 s of wall time, and one for each person at the end.

    Examples:
        >>> import io
        >>> from rich.console import Console
        >>> console = Console(file=io.StringIO(), force_terminal=False)
        >>> progress = PeopleProgress(60.0, console, clock=lambda: 0.0)
        >>> reading = {"type": "reading", "seconds": 30.0, "speech": 9.0, "ceiling": 5.64}
        >>> progress.write({**reading, "label": "ann", "bits": 2.06})
        >>> progress.write({**reading, "label": "bob", "bits": 1.0})
        >>> progress.close()
        >>> print(progress.console.file.getvalue(), end="")
        0:30 of 1:00 audio, 2 people, most: ann, 2.1 of 5.6 bits, 1 in 12
    """

    def __init__(
        self,
        total_seconds: float | None,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._people: dict[str, dict[Any, Mapping[str, Any]]] = {}  # last readings by whom watched
        self._alerted: set[str] = set()
        super().__init__(total_seconds, console, clock)

    def say(self, line: str) -> None:
        """Tell a person something that is no record."""
        self._say(clean(line, 200))

    def _show(self, record: Mapping[str, Any]) -> None:
        super()._show(record)
        self._people.setdefault(str(record.get("label")), {})[record.get("watch")] = record

    @property
    def _others(self) -> str:
        """Nothing: people narrowed down stand in their own lines."""
        return ""

    @property
    def _most(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Most revealing last reading of each person, those with most bits first."""
        readings = [
            (label, max(views.values(), key=_bits)) for label, views in self._people.items()
        ]
        return sorted(readings, key=lambda labelled: -_bits(labelled[1]))

    def _parts(self) -> list[str]:
        *parts, _ = super()._parts()
        return [*parts, phrases.plural(len(self._people), "person", "people")]

    def _line(self) -> str:
        place, speed, left, people = self._parts()
        most = self._most
        parts = [f"{place} audio", speed and f"{speed} x real time", left, people]
        if most:
            label, reading = most[0]
            parts.append(f"most: {clean(label, 20)}, {bits_now(reading)}")
        return ", ".join(part for part in parts if part)

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
                phrases.clock_time(reading.get("speech") or 0.0),
                Text(number(reading.get("bits")), style=style),
                Text(bar, style="red" if label in self._alerted else "blue"),
            )
        more = len(self._people) - len(shown)
        rest = [Text(f"and {more} more with less", style="dim")] if more else []
        return Group(super()._view(), grid, *rest)

    def _alert(self, record: Mapping[str, Any]) -> None:
        label = str(record.get("label"))
        if record.get("level") != "warning":
            raised = record.get("state") == "raised"
            (self._alerted.add if raised else self._alerted.discard)(label)
        super()._alert(record)


def _bits(reading: Mapping[str, Any]) -> float:
    bits = reading.get("bits")
    return float("-inf") if bits is None else float(bits)
