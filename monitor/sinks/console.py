"""A rich console whose output texts from files cannot steer, and records kept in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

import orjson
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
        """Render as a console does, with what cannot be printed replaced."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                lines = map(printable, segment.text.split("\n"))
                yield Segment("\n".join(lines), segment.style)


# --- Keeps the records of a run in memory, thinned so that hours of it can be drawn.

_Voice: TypeAlias = "tuple[str | None, str | None]"
"""Label and watched speaker; None where there are no several."""


class _Packed(NamedTuple):
    """A record as JSON; of a reading also whose, and where in the run."""

    data: bytes
    whose: _Voice | None
    seconds: float


def _packed(record: Mapping[str, Any], whose: _Voice | None) -> _Packed:
    data = orjson.dumps(record, option=orjson.OPT_SERIALIZE_NUMPY)
    # a copy: what orjson has written keeps the memory that it was given for more
    return _Packed(bytes(memoryview(data)), whose, 0.0 if whose is None else record["seconds"])


class RunBuffer:
    """A sink that thins the readings evenly on a log axis and keeps the other records.

    Of several people side by side each one's readings are thinned by themselves.

    The first 600 readings are kept; after that one in every 0.3 % of added length, about 2 000 for
    ten hours at one a second. Where that is more than `MOST_READINGS` in all, as of many people,
    half as many first ones are kept of each, and then at steps twice as long. Of losses and alerts
    the first 1000 are kept. Records wait as JSON, which takes a third of the memory.
    """

    FIRST = 600
    GROWTH = 1.003
    MOST_READINGS = 3000
    MOST_OTHERS = 1000

    def __init__(self) -> None:
        self._records: list[_Packed] = []
        self._others = self._kept = 0
        self._first, self._growth = self.FIRST, self.GROWTH
        self._readings: dict[_Voice, int] = {}  # of each voice, as the two that follow
        self._length: dict[_Voice, float] = {}
        self._last: dict[_Voice, _Packed] = {}

    @property
    def records(self) -> list[dict[str, Any]]:
        """Records kept, in order; the last reading is always among them."""
        return [orjson.loads(packed.data) for packed in (*self._records, *self._last.values())]

    def write(self, record: Mapping[str, Any]) -> None:
        """Take one record."""
        reading = record["type"] == "reading"
        whose = (record.get("label"), record.get("watch")) if reading else None
        if whose is None:
            if record["type"] in ("gap", "alert", "notice"):
                self._others += 1
                if self._others > self.MOST_OTHERS:
                    return
            self._kept += len(self._last)
            self._records += [*self._last.values(), _packed(record, None)]
            self._last = {}
        else:
            self._take(whose, _packed(record, whose))
        if self._kept > max(self.MOST_READINGS, 4 * len(self._readings)):
            self._thin()

    def _take(self, whose: _Voice, packed: _Packed) -> None:
        self._readings[whose] = self._readings.get(whose, 0) + 1
        first = self._readings[whose] <= self._first
        if first or packed.seconds >= self._length[whose] * self._growth:
            self._records.append(packed)
            self._kept += 1
            self._length[whose] = packed.seconds
            self._last.pop(whose, None)
        else:
            self._last[whose] = packed

    def _thin(self) -> None:
        """Drop the readings that events kept; if too many are left, keep fewer from here on too."""
        every, voices = [*self._records, *self._last.values()], len(self._readings)
        while True:
            self._records, self._kept = [], 0
            self._readings, self._length, self._last = {}, {}, {}
            for packed in every:
                if packed.whose is None:
                    self._records.append(packed)
                else:
                    self._take(packed.whose, packed)
            if self._kept <= max(self.MOST_READINGS // 2, 2 * voices):
                return
            self._first, self._growth = max(1, self._first // 2), 2 * self._growth - 1

    def close(self) -> None:
        """Nothing is left to do."""
