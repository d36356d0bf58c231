"""Events of a run in memory, thinned for plots of many hours."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import orjson

from monitor.events.declaration import Event, encode
from monitor.events.reading import Reading
from monitor.events.run import Alert, GapEvent, NoticeEvent
from monitor.events.schema import event_of

_Voice: TypeAlias = "tuple[str | None, str | None]"
"""Label and watched speaker; both None with only one voice."""


class _Packed(NamedTuple):
    """An event as JSON; for a reading also its label and position in the run."""

    data: bytes
    whose: _Voice | None
    seconds: float


def _packed(event: Event) -> _Packed:
    data = orjson.dumps(encode(event), option=orjson.OPT_SERIALIZE_NUMPY)
    data = bytes(memoryview(data))  # orjson's result occupies more memory than its length
    if isinstance(event, Reading):
        return _Packed(data, (event.label, event.watch), event.seconds)
    return _Packed(data, None, 0.0)


class RunBuffer:
    """A sink that thins the readings evenly on a log axis and keeps the other events.

    In a run of several people, each person's readings are thinned separately.

    The first 600 readings are kept. After that, one reading is kept per 0.3 % of added length. With
    one reading per second, ten hours give about 2,000. If the total exceeds `MOST_READINGS`, as
    with many people, the first part is halved and the step doubled. The first 1000 gaps, alerts and
    notices are kept.
    """

    FIRST = 600
    GROWTH = 1.003
    MOST_READINGS = 3000
    MOST_OTHERS = 1000

    def __init__(self) -> None:
        self._records: list[_Packed] = []
        self._others = self._kept = 0
        self._first, self._growth = self.FIRST, self.GROWTH
        self._readings: dict[_Voice, int] = {}  # count per voice
        self._length: dict[_Voice, float] = {}
        self._last: dict[_Voice, _Packed] = {}

    @property
    def events(self) -> list[Event]:
        """Stored events in order, always with the last reading."""
        packed = (*self._records, *self._last.values())
        events = (event_of(orjson.loads(row.data)) for row in packed)
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
        """Thin the readings again; if too many remain, also keep fewer from now on."""
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
        """Do nothing; the events stay available."""
