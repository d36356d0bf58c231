"""Notices of copies of enrolled recordings."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TypeAlias

import numpy as np

from monitor.maths.landmarks import (
    FRAME_TICKS,
    LATE_TICKS,
    NAME,
    LandmarkIndex,
    LandmarkMatch,
    frames_of,
    unpack,
)
from monitor.population.population import Population
from monitor.population.templates import share
from monitor.types import TICKS_PER_SECOND, Frames, IntArray, Notice

WINDOW_TICKS = 10 * TICKS_PER_SECOND
LEAST = ((16, 4), (30, 3))
"""Minimum hits in ten seconds of a copy, and half seconds that contain them. Other audio had at
most 18 hits, within one second (benchmarks/copies.py)."""
ABOVE_CHANCE = 4.0
MOST_LANDMARKS = 1_000_000
"""Maximum indexed: a day of enrolled audio. With more, the watched speaker's and the first ones."""
SLOW_OR_FAST = tuple(1 + sign * percent / 100 for percent in (1, 2, 3, 4) for sign in (1, -1))
_OTHERS = (-1.0, *SLOW_OR_FAST)
_TURNS = 5
"""Windows in which all other speeds are tried once."""


def is_same_audio(match: LandmarkMatch | None) -> bool:
    """Return whether a match has more hits than chance gives."""
    if match is None:
        return False
    hits = match.hits - ABOVE_CHANCE * match.chance
    return any(hits >= minimum and match.cells >= cells for minimum, cells in LEAST)


class LandmarkWindows:
    """Landmarks of a stream in windows of ten seconds, the same for any division of it.

    Windows end at multiples of ``every`` ticks, a divisor of ten seconds. It may change after each
    window.
    """

    def __init__(self) -> None:
        self._times: IntArray = np.empty(0, np.intp)
        self._pitches: IntArray = np.empty(0, np.intp)
        self._last = 0  # tick at which the previous window ended
        self.has_landmarks = False
        self.every = WINDOW_TICKS

    @property
    def _end(self) -> int:
        return (self._last // self.every + 1) * self.every

    def update(self, frames: Frames, arrived: int) -> Iterator[tuple[int, IntArray, IntArray]]:
        """Yield every complete window: the tick at which it is complete, times and pitches."""
        landmarks = frames_of(frames.tracks.get(NAME))
        if landmarks is not None and landmarks[0].size:
            self.has_landmarks = True
            self._times = np.concatenate((self._times, landmarks[0]))
            self._pitches = np.concatenate((self._pitches, landmarks[1]))
        while arrived >= self._end + LATE_TICKS:
            self._last = self._end
            if self.has_landmarks:
                first, last = np.searchsorted(
                    self._times,
                    ((self._last - WINDOW_TICKS) // FRAME_TICKS, self._last // FRAME_TICKS),
                )
                yield self._last + LATE_TICKS, self._times[first:last], self._pitches[first:last]
                self._forget(self._last - WINDOW_TICKS)

    def finish(self, arrived: int) -> Iterator[tuple[int, IntArray, IntArray]]:
        """Yield the rest at the end of the stream."""
        self._forget(self._last)
        if self._times.size:
            yield arrived, self._times, self._pitches

    def _forget(self, before: int) -> None:
        recent = slice(int(np.searchsorted(self._times, before // FRAME_TICKS)), None)
        self._times, self._pitches = self._times[recent].copy(), self._pitches[recent].copy()


class EnrolledLandmarks:
    """Landmarks of the enrolled recordings and their speakers; loaded at first use.

    All streams of a population share them. If there are too many, those of the watched speaker
    come first.
    """

    def __init__(self, population: Population, watch: str | None = None) -> None:
        self._population, self._watch = population, watch
        self.names: list[str] = []

    @cached_property
    def index(self) -> LandmarkIndex:
        """All landmarks; ``names`` has the speaker of each recording."""
        shared = share(self._population, ("landmarks",), lambda: _load(self._population, None))
        index, self.names, is_whole = shared
        if not is_whole and self._watch is not None:
            index, self.names, _ = _load(self._population, self._watch)
        return index


_Loaded: TypeAlias = "tuple[LandmarkIndex, list[str], bool]"


def _load(population: Population, first: str | None) -> _Loaded:
    """Index the recordings, those of ``first`` before others; also return whether all fitted."""
    landmarks: list[tuple[IntArray, IntArray]] = []
    names: list[str] = []
    remaining = MOST_LANDMARKS
    for speaker in population.recorded(first):
        for note in speaker.sources:
            if remaining <= 0:
                return LandmarkIndex(landmarks), names, False
            if note.landmarks.size:
                landmarks.append(unpack(note.landmarks))
                names.append(speaker.name)
                remaining -= note.landmarks.size
    return LandmarkIndex(landmarks), names, True


class CopyFinder:
    """Finder of copies of enrolled recordings in a stream, every ten seconds, by landmarks.

    The enrolled file itself is recognised by its fingerprint and refused. A copy that was cut,
    compressed or made at another gain has another fingerprint. A result depends only on the window
    and its number, so that a resumed stream gives the same notices.
    """

    def __init__(self, enrolled: EnrolledLandmarks) -> None:
        self._enrolled = enrolled
        self._windows = LandmarkWindows()
        self._count = 0
        self._noticed: set[tuple[int, str]] = set()

    def update(self, frames: Frames, arrived: int) -> Iterator[tuple[int, Notice]]:
        """Yield (tick, Notice) for a further run of ticks."""
        for tick, times, pitches in self._windows.update(frames, arrived):
            yield from self._look(tick, times, pitches, frames.recording)

    def finish(self, arrived: int) -> Iterator[tuple[int, Notice]]:
        """Yield (tick, Notice) at the end of the stream."""
        for tick, times, pitches in self._windows.finish(arrived):
            yield from self._look(tick, times, pitches, 0, every=True)

    def _look(
        self, tick: int, times: IntArray, pitches: IntArray, recording: int, *, every: bool = False
    ) -> Iterator[tuple[int, Notice]]:
        index, names = self._enrolled.index, self._enrolled.names
        if not names:
            return
        speeds = _OTHERS if every else _OTHERS[self._count % _TURNS :: _TURNS]
        self._count += 1
        match = index.best(times, pitches, (1.0, *speeds))
        if match is None or not is_same_audio(match):
            return
        name = names[match.source]
        if (recording, name) not in self._noticed:
            self._noticed.add((recording, name))
            yield tick, _create_notice(name, match.speed)


def _create_notice(name: str, speed: float) -> Notice:
    change = ""
    if speed < 0:
        change = ", backwards"
    elif speed != 1:
        change = f", {abs(speed - 1):.0%} {'faster' if speed > 1 else 'slower'}"
    return Notice(
        "copy",
        f"this is a copy of audio that {name} was enrolled from{change}. The figures are far too "
        "high. Give other recordings, or enrol others",
        fields={"name": name, "speed": speed},
    )
