"""Orders what happens between the readings of a stream: losses, and notices for people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from monitor.types import TICKS_PER_SECOND, Gap, Notice

__all__ = ["EventOrder", "GapEvent", "NoticeEvent"]

MOST_NOTICES = 100
"""Of a stream; what comes after them is left out, so that a run that ends says all that it said."""


@dataclass(frozen=True, slots=True)
class GapEvent:
    """A loss, placed on the stream: ``seconds`` is where it was noticed."""

    seconds: float
    gap: Gap


@dataclass(frozen=True, slots=True)
class NoticeEvent:
    """A notice, placed on the stream: ``seconds`` is when it could be said."""

    seconds: float
    notice: Notice


class EventOrder:
    """Gives every loss and notice once, in order, at the same place for any cutting of the stream.

    Attributes:
        given: how many were given before the stop that the stream is resumed from.

    Example:
        >>> order = EventOrder()
        >>> order.add(250, Gap("not finite", 0.01))
        >>> [len(list(order.due(tick))) for tick in (200, 300, 400)]
        [0, 1, 0]
    """

    def __init__(self) -> None:
        self.given = 0
        self._passed = self._notices = 0
        self._waiting: list[tuple[int, Gap | Notice, bool]] = []

    @property
    def count(self) -> int:
        """How many were given, those before a stop included, of those that come again."""
        return max(self._passed, self.given)

    def add(self, tick: int, event: Gap | Notice, *, again: bool = True) -> None:
        """Take note of one, to be given once so many ticks have been learnt.

        Args:
            tick: of the stream.
            event: the loss or notice.
            again: whether it would come again if the stream were heard again from its start.
        """
        if isinstance(event, Notice):
            self._notices += 1
            if self._notices > MOST_NOTICES:
                return
        self._waiting.append((tick, event, again))
        self._waiting.sort(key=lambda waiting: waiting[0])

    def due(self, tick: int, *, last: bool = False) -> Iterator[GapEvent | NoticeEvent]:
        """What to give when so many ticks have been learnt; all that waits at the last tick."""
        while self._waiting and (last or self._waiting[0][0] <= tick):
            at, event, again = self._waiting.pop(0)
            self._passed += again
            if again and self._passed <= self.given:
                continue
            seconds = min(at, tick) / TICKS_PER_SECOND
            if isinstance(event, Notice):
                yield NoticeEvent(seconds, replace(event, seconds=seconds))
            else:
                yield GapEvent(seconds, event)
