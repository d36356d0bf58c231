"""A rich console whose output texts from files cannot steer, and records kept in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from monitor.safe_text import printable

# --- A rich console whose output texts from files cannot steer: control characters are replaced.


class PlainConsole(Console):
    r"""rich's console, which itself lets escape sequences in a text through.

    Example:
        >>> import io
        >>> console = PlainConsole(file=io.StringIO())
        >>> console.print("a\x1b[2Jb")
        >>> console.file.getvalue()
        'a?[2Jb\n'
    """

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """As the console renders it, with what cannot be printed replaced."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                lines = map(printable, segment.text.split("\n"))
                yield Segment("\n".join(lines), segment.style)


# --- Keeps the records of a run in memory, thinned so that hours of it can be drawn.


class RunBuffer:
    """A sink that thins the readings evenly on a log axis and keeps the other records.

    Of several people side by side each one's readings are thinned by themselves.

    The first 600 readings are kept; after that one in every 0.3 % of added length, about 2 000 for
    ten hours at one a second. Of losses and alerts the first 1000 are kept.
    """

    FIRST = 600
    GROWTH = 1.003
    MOST_OTHERS = 1000

    def __init__(self) -> None:
        self._records: list[dict[str, Any]] = []
        self._others = 0
        self._readings: dict[Any, int] = {}  # of each voice, as the two that follow
        self._length: dict[Any, float] = {}
        self._last: dict[Any, dict[str, Any]] = {}

    @property
    def records(self) -> list[dict[str, Any]]:
        """What was kept, in order; the last reading is always among them."""
        return [*self._records, *self._last.values()]

    def write(self, record: Mapping[str, Any]) -> None:
        """Take one record."""
        kept = dict(record)
        if record["type"] != "reading":
            if record["type"] in ("gap", "alert", "notice"):
                self._others += 1
                if self._others > self.MOST_OTHERS:
                    return
            self._records += [*self._last.values(), kept]
            self._last = {}
            return
        whose = record.get("label"), record.get("watch")
        self._readings[whose] = self._readings.get(whose, 0) + 1
        first = self._readings[whose] <= self.FIRST
        if first or record["seconds"] >= self._length[whose] * self.GROWTH:
            self._records.append(kept)
            self._length[whose] = record["seconds"]
            self._last.pop(whose, None)
        else:
            self._last[whose] = kept

    def close(self) -> None:
        """Nothing is left to do."""
