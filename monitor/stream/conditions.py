"""What a stream sounds like, second by second, and whether the templates sound so too."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from monitor.condition_words import mismatch_in_words, poor_in_words
from monitor.maths.condition import ROW, Condition, condition_of, mismatch, poor
from monitor.types import AnyArray, Notice, Track

__all__ = ["StreamConditions"]

_SLOWLY = 1.05
"""The longer a stream, the less a second changes: it is estimated anew at 5 % more."""
_TIMES = 3
"""Estimates on end that must agree before something is said."""


class StreamConditions:
    """Adds up what the sound of a stream is like, and compares it with the templates'.

    Args:
        templates: what they sound like; None where nobody knows.

    Attributes:
        now: of all seconds so far; None until one was described.
        differs: figures in which the stream is unlike the templates, or bad in itself.
    """

    def __init__(self, templates: Condition | None) -> None:
        self.templates = templates
        self.now: Condition | None = None
        self.differs: tuple[str, ...] = ()
        self._waiting: list[tuple[int, AnyArray]] = []
        self._tick = 0
        self.begin_afresh()
        self._noticed: set[str] = set()

    def begin_afresh(self) -> None:
        """Another voice: what was heard before is not of its sound."""
        self._total = np.zeros(ROW, np.int64)
        self._seconds = self._due = 0
        self._times: dict[str, int] = {}
        self.now, self.differs = None, ()

    def take(self, track: Track | None) -> None:
        """Seconds of sound have arrived; those that were counted before a stop are dropped."""
        if track is not None:
            rows = zip(track.ticks.tolist(), track.values, strict=True)
            self._waiting += [(tick, row) for tick, row in rows if tick > self._tick]

    def hear(self, tick: int) -> Iterator[Notice]:
        """Count the seconds complete by a tick: what they bring up for the first time."""
        self._tick = tick
        while self._waiting and self._waiting[0][0] <= tick:
            self._total += self._waiting.pop(0)[1]
            self._seconds += 1
            if self._seconds >= self._due:
                self._due = max(self._seconds + 1, math.ceil(_SLOWLY * self._seconds))
                yield from self._estimate()

    def _estimate(self) -> Iterator[Notice]:
        self.now = condition_of(self._total)
        unlike = () if self.templates is None else mismatch(self.now, self.templates)
        bad = tuple(name for name in poor(self.now) if name not in unlike)
        self._times = {name: self._times.get(name, 0) + 1 for name in (*unlike, *bad)}
        self.differs = tuple(name for name, times in self._times.items() if times >= _TIMES)
        fresh = [name for name in self.differs if name not in self._noticed]
        self._noticed.update(fresh)
        told = [name for name in fresh if name in unlike]
        if told and self.templates is not None:
            text = mismatch_in_words(told, self.now.record(), self.templates.record())
            both = {"stream": self.now.record(), "templates": self.templates.record()}
            yield Notice("conditions differ", text, fields={"figures": told, **both})
        if rest := [name for name in fresh if name in bad]:
            now = self.now.record()
            yield Notice("poor sound", poor_in_words(rest, now), fields={"figures": rest, **now})

    def state(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """What hearing the stream again would not bring back: plain values and arrays."""
        plain = {
            "seconds": self._seconds,
            "due": self._due,
            "now": None if self.now is None else self.now.record(),
            "times": self._times,
            "noticed": sorted(self._noticed),
        }
        return plain, {"total": self._total}

    def restore(self, tick: int, plain: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> None:
        """Take up a ``state`` that was taken at a tick of the stream.

        Raises:
            ValueError: it is none.
        """
        if arrays["total"].shape != (ROW,):
            raise ValueError
        self._total, self._tick = arrays["total"], tick
        self._seconds, self._due = int(plain["seconds"]), int(plain["due"])
        self.now = Condition.of(plain["now"])
        self._times = {str(name): int(times) for name, times in plain["times"].items()}
        self.differs = tuple(name for name, times in self._times.items() if times >= _TIMES)
        self._noticed = set(plain["noticed"])
