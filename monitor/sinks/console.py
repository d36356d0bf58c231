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

    The first 600 readings are kept; after that one in every 0.3 % of added length, about 2 000 for
    ten hours at one a second. Of losses and alerts the first 1000 are kept.
    """

    FIRST = 600
    GROWTH = 1.003
    MOST_OTHERS = 1000

    def __init__(self) -> None:
        self._records: list[dict[str, Any]] = []
        self._readings = self._others = 0
        self._length = 0.0
        self._last: dict[str, Any] | None = None

    @property
    def records(self) -> list[dict[str, Any]]:
        """What was kept, in order; the last reading is always among them."""
        return self._records + ([self._last] if self._last is not None else [])

    def write(self, record: Mapping[str, Any]) -> None:
        """Take one record."""
        kept = dict(record)
        if record["type"] != "reading":
            if record["type"] in ("gap", "alert", "notice"):
                self._others += 1
                if self._others > self.MOST_OTHERS:
                    return
            if self._last is not None:
                self._records.append(self._last)
                self._last = None
            self._records.append(kept)
            return
        self._readings += 1
        if self._readings <= self.FIRST or record["seconds"] >= self._length * self.GROWTH:
            self._records.append(kept)
            self._length = record["seconds"]
            self._last = None
        else:
            self._last = kept

    def close(self) -> None:
        """Nothing is left to do."""
