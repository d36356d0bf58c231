"""Gaps and notices of a stream, in time order."""

from __future__ import annotations

from collections.abc import Iterator

from monitor.events.run import GapEvent, NoticeEvent
from monitor.types import TICKS_PER_SECOND, Gap, Notice

MOST_NOTICES = 100
"""Most notices of a stream. Later ones are dropped, so that the end of a run repeats them all."""


class EventOrder:
    """Queue that emits every loss and notice once, in order, for any cutting of the stream."""

    def __init__(self) -> None:
        self.emitted_count = 0  # events emitted before the stop that the stream is resumed from
        self._passed = self._notices = 0
        self._waiting: list[tuple[int, Gap | Notice, bool]] = []

    @property
    def count(self) -> int:
        """Number of repeatable events so far, those before a stop included."""
        return max(self._passed, self.emitted_count)

    def add(self, tick: int, event: Gap | Notice, *, again: bool = True) -> None:
        """Add an event, to be emitted once this many ticks have been processed.

        ``again``: True if a replay of the stream brings it again.
        """
        if isinstance(event, Notice):
            self._notices += 1
            if self._notices > MOST_NOTICES:
                return
        self._waiting.append((tick, event, again))
        self._waiting.sort(key=lambda waiting: waiting[0])

    def pop_due(self, tick: int, *, last: bool = False) -> Iterator[GapEvent | NoticeEvent]:
        """Yield what is due by this tick; at the last one, everything."""
        while self._waiting and (last or self._waiting[0][0] <= tick):
            at, event, again = self._waiting.pop(0)
            self._passed += again
            if again and self._passed <= self.emitted_count:
                continue
            seconds = min(at, tick) / TICKS_PER_SECOND
            if isinstance(event, Notice):
                yield NoticeEvent.from_notice(seconds, event)
            else:
                yield GapEvent.from_gap(seconds, event)
