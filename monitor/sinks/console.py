"""A rich console whose output texts from files cannot steer, and events kept in memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

import orjson
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from monitor.events.declaration import Event, encode
from monitor.events.reading import Reading
from monitor.events.run import Alert, GapEvent, NoticeEvent
from monitor.events.schema import event_of
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


# --- Keeps the events of a run in memory, thinned so that hours of it can be drawn.

_Voice: TypeAlias = "tuple[str | None, str | None]"
"""Label and watched speaker; None where there are no several."""


class _Packed(NamedTuple):
    """An event as JSON; of a reading also whose, and where in the run."""

    data: bytes
    whose: _Voice | None
    seconds: float


def _packed(event: Event) -> _Packed:
    data = orjson.dumps(encode(event), option=orjson.OPT_SERIALIZE_NUMPY)
    data = bytes(memoryview(data))  # what orjson has written keeps the memory it was given for more
    if isinstance(event, Reading):
        return _Packed(data, (event.label, event.watch), event.seconds)
    return _Packed(data, None, 0.0)


class RunBuffer:
    """A sink that thins the readings evenly on a log axis and keeps the other events.

    Of several people side by side each one's readings are thinned by themselves.

    The first 600 readings are kept; after that one in every 0.3 % of added length, about 2 000 for
    ten hours at one a second. Where that is more than `MOST_READINGS` in all, as of many people,
    half as many first ones are kept of each, and then at steps twice as long. Of losses and alerts
    the first 1000 are kept. They wait as JSON, which takes a third of the memory.
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
    def events(self) -> list[Event]:
        """Events kept, in order; the last reading is always among them."""
        packed = (*self._records, *self._last.values())
        events = (event_of(orjson.loads(one.data)) for one in packed)
        return [event for event in events if event is not None]

    def write(self, event: Event) -> None:
        """Take one event."""
        if isinstance(event, Reading):
            self._take(_packed(event))
        else:
            if isinstance(event, GapEvent | Alert | NoticeEvent):
                self._others += 1
                if self._others > self.MOST_OTHERS:
                    return
            self._kept += len(self._last)
            self._records += [*self._last.values(), _packed(event)]
            self._last = {}
        if self._kept > max(self.MOST_READINGS, 4 * len(self._readings)):
            self._thin()

    def _take(self, packed: _Packed) -> None:
        whose = packed.whose
        assert whose is not None
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
                    self._take(packed)
            if self._kept <= max(self.MOST_READINGS // 2, 2 * voices):
                return
            self._first, self._growth = max(1, self._first // 2), 2 * self._growth - 1

    def close(self) -> None:
        """Nothing is left to do."""
