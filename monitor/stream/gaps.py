"""Orders gap events among the readings of a stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from monitor.types import TICKS_PER_SECOND, Gap

__all__ = ["GapEvent", "GapOrder"]


@dataclass(frozen=True, slots=True)
class GapEvent:
    """A loss, placed on the stream: ``seconds`` is where it was noticed."""

    seconds: float
    gap: Gap


class GapOrder:
    """Tells every loss once, in order, at the same place for any cutting of the stream.

    Attributes:
        told: how many were told before the stop that the stream is resumed from.

    Example:
        >>> gaps = GapOrder()
        >>> gaps.add(250, Gap("not finite", 0.01))
        >>> [len(list(gaps.due(tick))) for tick in (200, 300, 400)]
        [0, 1, 0]
    """

    def __init__(self) -> None:
        self.told = 0
        self._passed = 0
        self._waiting: list[tuple[int, Gap]] = []

    @property
    def count(self) -> int:
        """Losses told so far, those before a stop included."""
        return max(self._passed, self.told)

    def add(self, tick: int, gap: Gap) -> None:
        """Take note of a loss, to be told once so many ticks have been learnt."""
        self._waiting.append((tick, gap))
        self._waiting.sort(key=lambda loss: loss[0])

    def due(self, tick: int, *, last: bool = False) -> Iterator[GapEvent]:
        """The losses to tell when so many ticks have been learnt; all of them at the last tick."""
        while self._waiting and (last or self._waiting[0][0] <= tick):
            at, gap = self._waiting.pop(0)
            self._passed += 1
            if self._passed > self.told:
                yield GapEvent(min(at, tick) / TICKS_PER_SECOND, gap)
