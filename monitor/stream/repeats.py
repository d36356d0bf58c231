"""Detection of audio that repeats earlier audio of a stream."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from monitor.features.framing import attributes_without
from monitor.maths.landmarks import FRAME_TICKS, FRAMES_PER_SECOND, StreamLandmarks
from monitor.maths.repeats import KEPT_TICKS, LATE_TICKS, NAME, WaveformPast
from monitor.stream.copies import LandmarkWindows
from monitor.types import TICKS_PER_SECOND, BoolArray, Frames, IntArray, Track

LEAST_SHARE = 0.6
"""Minimum fraction of half seconds of a window found before, if only landmarks decide."""
LEAST_CELLS = 6
_NEWEST = 4  # half seconds at the end of the window, of which all but one must have been, too
_LANDMARK_TICKS = 5 * TICKS_PER_SECOND  # from look to look
_POINTED_TICKS = 10 * TICKS_PER_SECOND  # in which a distance by landmarks is tried


@dataclass(frozen=True, slots=True)
class Decision:
    """Result of one search for repeated audio."""

    tick: int  # tick after which the decision applies
    intervals: tuple[tuple[int, int], ...]  # repeated audio, (begin, end] in ticks
    # tick after which audio waits for the next search; None if audio counts at once
    waits_from: int | None


class RepeatFinder:
    """Finder of audio that repeats earlier audio of a stream. It searches once per second.

    The waveform of the last 25 s is compared at every distance, and that of the last ten minutes at
    distances suggested by landmarks. Further back, up to two hours, only landmarks decide. The
    result does not depend on how the audio is cut. Checkpoints contain none of it.
    """

    def __init__(self) -> None:
        self._windows, self._own = LandmarkWindows(), StreamLandmarks()
        self._windows.every = _LANDMARK_TICKS
        self._past = WaveformPast()
        self._rows: list[Track] = []  # of the waveform that no look has reached
        self._pointers: list[tuple[int, list[float]]] = []  # ticks, and distances in ticks
        self._old: list[tuple[int, tuple[int, int]]] = []  # ticks, and intervals by landmarks alone
        self._looked = 0  # tick
        self._since = 0  # tick from which on there is a waveform

    def kept(self) -> dict[str, object]:
        """Return the attributes for a snapshot: landmarks, without the waveform."""
        return {**attributes_without(self, "_past", "_rows"), "_since": self._looked}

    def update(self, frames: Frames, arrived: int) -> list[Decision]:
        """Process further ticks; return their decisions, the last one at their end."""
        if NAME in frames.tracks:
            self._rows.append(frames.tracks[NAME])
        for tick, times, pitches in self._windows.update(frames, arrived):
            self._compare(tick, times, pitches)
        decisions = []
        while self._looked + TICKS_PER_SECOND <= arrived:
            self._looked += TICKS_PER_SECOND
            decisions.append(self._look(self._looked - 1, self._looked - LATE_TICKS))
        return decisions

    def finish(self, arrived: int) -> Decision:
        """Return the decision at the end of the stream, after which no audio waits."""
        decision = self._look(arrived, arrived)
        return replace(decision, waits_from=None)

    def _look(self, tick: int, newest_tick: int) -> Decision:
        """Look where the newest second of what is known came before."""
        self._add_rows(newest_tick)
        distances = [
            distance
            for since, distances in self._pointers
            if since <= tick
            for distance in distances
        ]
        repetition = self._past.look(newest_tick, distances)
        intervals = list(repetition.intervals)
        intervals += [interval for since, interval in self._old if since <= tick]
        self._old = [interval for interval in self._old if interval[0] > tick]
        self._pointers = [
            pointer for pointer in self._pointers if pointer[0] > tick - _POINTED_TICKS
        ]
        return Decision(tick, tuple(intervals), newest_tick if repetition.goes_on else None)

    def _add_rows(self, newest_tick: int) -> None:
        """Add the waveform up to a tick, always in the same portions."""
        waiting = []
        for track in self._rows:
            ticks = track.first_ticks
            count = int(np.searchsorted(ticks, newest_tick, side="right"))
            self._past.add(ticks[:count], track.values[:count])
            if count < ticks.size:
                waiting.append(track.some(slice(count, None)))
        self._rows = waiting

    def _compare(self, tick: int, times: IntArray, pitches: IntArray) -> None:
        """Look up the landmarks of the last ten seconds among all before them."""
        repeated, frames = self._own.find_repeats(times, pitches)
        distances = [distance * FRAME_TICKS for distance in frames]
        reach = min(KEPT_TICKS, tick - self._since)
        if near := [distance for distance in distances if distance <= reach]:
            self._pointers.append((tick, near))
        elif distances and is_repetition(times, repeated):
            first, last = times[repeated][[0, -1]].tolist()
            self._old.append((tick, (first * FRAME_TICKS, (last + 1) * FRAME_TICKS)))


def is_repetition(times: IntArray, before: BoolArray) -> bool:
    """Return whether most of a window, and its end, repeats earlier audio.

    ``times`` are frames of the window's landmarks, non-decreasing. ``before`` marks those that
    occurred before.
    """
    if not before.any():  # as nearly always
        return False
    cells, cell = np.unique(times * 2 // FRAMES_PER_SECOND, return_inverse=True)
    is_counted = np.bincount(cell, minlength=cells.size) >= 2
    again = (np.bincount(cell, before, cells.size) >= 2)[is_counted]
    if again.size < LEAST_CELLS or again.mean() < LEAST_SHARE:
        return False
    return bool(again[-_NEWEST:].sum() >= _NEWEST - 1)
