"""Landmarks: peaks of a spectrogram, which identify a recording.

Two peaks near each other form a key of both pitches and the time between them. If many keys of one
recording occur in another at the same offset in time, both are the same audio. This works with
another gain, another cut, compression and noise. Another speed scales all pitches and times, so
keys are computed for several speeds. For reversed audio, time is negated.

Source: A. Wang, "An industrial strength audio search algorithm", ISMIR 2003.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from monitor.maths.statistics import median
from monitor.types import TICKS_PER_SECOND, BoolArray, FloatArray, IntArray, Track

NAME = "landmarks"
"""Name of the track of landmarks, from `monitor.features.landmarks`."""
FRAMES_PER_SECOND = 25
FRAME_TICKS = TICKS_PER_SECOND // FRAMES_PER_SECOND
LATE_TICKS = 78
"""Ticks until all landmarks of a moment are available: half a second plus its neighbourhood."""
PITCHES = 250  # steps of 1/60 octave, from 200 Hz on
STEPS_PER_OCTAVE = 60
FAN_OUT = 5  # maximum later peaks paired with a peak
_LOOKED_AT = 3 * FAN_OUT
LEAST_APART, MOST_APART = 2, 20
"""Frames between the peaks of a pair."""
_LONGEST, _NO_PITCH = 255, 255
_COARSE = 2.5  # steps of pitch per key: 1/24 octave, more than a codec moves a peak
_SHIFT = 16  # offset added to coarse pitches, so that they stay positive at every speed
_ALL_PITCHES = np.arange(PITCHES)
_KEYS = 1 << 19
_LEAST_LATER = 20  # minimum frames between audio and its repetition: 0.8 s
_AGAIN_HITS, _AGAIN_CELLS = 16, 4
_MOST_PLACES = 6
_ENOUGH = 0.9  # fraction of repeated peaks at which the search ends
_NEWEST = 24  # maximum occurrences compared per key, if a short stretch is repeated many times
_MOST_RECENT = 4000
_WHOLE_FRAMES = 600 * FRAMES_PER_SECOND
_REMEMBERED_FRAMES = 7200 * FRAMES_PER_SECOND
SAME_FRAMES = 2.5  # width of a bin of offsets, 0.1 s; two neighbouring bins are one offset


def frames_of(track: Track | None) -> tuple[IntArray, IntArray] | None:
    """Return times, in frames of the stream, and pitches, in order; None without a track."""
    if track is None:
        return None
    spans = np.empty((0, 2), np.intp) if track.spans is None else track.spans
    return spans[:, 0] // FRAME_TICKS, track.values


def pack(times: IntArray, pitches: IntArray) -> IntArray:
    """Pack peaks into 16 bits each: frames since the one before, and the pitch.

    Pauses of 255 frames or more are split into entries without a pitch.
    """
    steps = np.diff(times, prepend=0)
    pauses = steps // _LONGEST
    packed = np.repeat(steps % _LONGEST << 8 | pitches, 1 + pauses)
    last = np.cumsum(1 + pauses)
    pause = np.ones(packed.size, np.bool_)
    pause[last - 1] = False
    packed[pause] = _LONGEST << 8 | _NO_PITCH
    return np.asarray(packed, "<u2")


def unpack(packed: IntArray) -> tuple[IntArray, IntArray]:
    """Reverse `pack`: times and pitches."""
    numbers = packed.astype(np.int64)
    pitches = numbers & 255
    is_peak = pitches < PITCHES
    return np.cumsum(numbers >> 8)[is_peak], pitches[is_peak]


_Run: TypeAlias = tuple[IntArray, FloatArray]  # keys in order, and the time of each


class LandmarkPairs(NamedTuple):
    """Pairs of peaks: both pitches, the frames between them, and the earlier peak's frame."""

    first: IntArray
    second: IntArray
    apart: FloatArray
    times: FloatArray

    def keys(self, speed: float = 1.0) -> IntArray:
        """Compute a key below 2**19 per pair, shape (P,), as if played ``speed`` times as fast."""
        move = STEPS_PER_OCTAVE * np.log2(speed) + 0.5 + _COARSE * _SHIFT
        coarse = np.clip((_ALL_PITCHES + move) // _COARSE, 0, 127).astype(np.intp)
        apart = np.minimum(np.rint(self.apart / speed), 31).astype(np.intp)
        return np.asarray((coarse[self.first] << 12) | (coarse[self.second] << 5) | apart)


def pairs_of(times: IntArray, pitches: IntArray, *, backwards: bool = False) -> LandmarkPairs:
    """Pair each of K peaks, in order of time, with the next few.

    With ``backwards``, the pairs are those of the reversed audio, and times are negative.
    """
    if backwards:
        times, pitches = -times[::-1], pitches[::-1]
    at = times.astype(np.float64)
    # the peaks to pair are a run of later ones
    begin = np.searchsorted(at, at + LEAST_APART, side="left")
    end = np.searchsorted(at, at + MOST_APART, side="right")
    end = np.minimum(end, np.minimum(begin + FAN_OUT, np.arange(at.size) + _LOOKED_AT + 1))
    second = begin[:, None] + np.arange(FAN_OUT)
    first, offset = np.nonzero(second < end[:, None])
    second = second[first, offset]
    return LandmarkPairs(pitches[first], pitches[second], at[second] - at[first], at[first])


@dataclass(frozen=True, slots=True)
class LandmarkMatch:
    """Match of a stretch of audio: the recording, and the relative speed.

    A negative speed means reversed. ``hits`` are pairs found at this position. ``cells`` are half
    seconds of the stretch with at least two hits. ``chance`` is the average number at other
    positions of that recording, which is high if both have hum.
    """

    source: int
    speed: float
    hits: int
    cells: int
    chance: float


class LandmarkIndex:
    """Index of the pairs of many recordings, given as times and pitches of their peaks."""

    def __init__(self, recordings: Sequence[tuple[IntArray, IntArray]]) -> None:
        keys, times, starts, end = [], [], [0], 0.0
        for at, pitches in recordings:
            pairs = pairs_of(at, pitches)
            keys.append(pairs.keys())
            times.append(pairs.times + end)
            end += (float(at[-1]) if at.size else 0.0) + 4 * MOST_APART
            starts.append(round(end))
        all_keys = np.concatenate(keys).astype(np.int64) if keys else np.empty(0, np.int64)
        # each key and its index in one number: sorting is five times as fast as argsort
        order = np.sort(all_keys << 32 | np.arange(all_keys.size)) & 0xFFFFFFFF
        self._times = np.concatenate(times)[order].astype(np.float32) if keys else np.empty(0)
        # times of key k are at _places[k] to _places[k + 1]
        self._places = np.zeros(_KEYS + 1, np.int32)
        np.cumsum(np.bincount(all_keys, minlength=_KEYS), out=self._places[1:])
        self._starts = np.array(starts)

    def best(
        self, times: IntArray, pitches: IntArray, speeds: Sequence[float] = (1.0,)
    ) -> LandmarkMatch | None:
        """Find the position with most pairs at the same offset; None without pairs.

        ``speeds`` are tried factors of the stretch's speed; negative for reversed audio.
        """
        pairs_by_direction = {
            is_backwards: pairs_of(times, pitches, backwards=is_backwards)
            for is_backwards in {s < 0 for s in speeds}
        }
        maximum, best = 0, None
        for speed in speeds:
            pairs = pairs_by_direction[speed < 0]
            indexed, heard_at = self._hits(pairs.keys(1 / abs(speed)), pairs.times)
            if indexed.size > maximum:
                hits = _densest(indexed - heard_at * abs(speed))
                if hits.size > maximum:
                    maximum, best = hits.size, (speed, indexed, heard_at, hits)
        return None if best is None else self._match(*best)

    def _hits(self, keys: IntArray, at: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the times of indexed pairs with these keys, and the query's time of each."""
        low = self._places[keys]
        counts = self._places[keys + 1] - low
        return self._times[_runs(low, counts)].astype(np.float64), np.repeat(at, counts)

    def _match(
        self, speed: float, indexed: FloatArray, heard_at: FloatArray, hits: IntArray
    ) -> LandmarkMatch:
        inside, at = heard_at[hits], indexed[hits]
        source = int(np.searchsorted(self._starts, median(at), side="right")) - 1
        first, last = self._starts[source : source + 2].tolist()
        other_hits = np.count_nonzero((indexed >= first) & (indexed < last)) - inside.size
        chance = 2 * SAME_FRAMES * other_hits / (last - first)
        return LandmarkMatch(source, speed, inside.size, _cells(inside), chance)


class StreamLandmarks:
    """Landmarks of a stream so far, to detect what it repeats.

    Memory is bounded. Beyond ten minutes, an eighth of the pairs is kept, and beyond two hours
    none.
    """

    def __init__(self) -> None:
        none = np.empty(0, np.int32), np.empty(0, np.float32)
        self._known: _Run = none
        self._recent: _Run = none  # small, so that merging a window is cheap
        self._first = 0.0  # frame from which on pairs are stored
        self._end = -np.inf  # frame up to which pairs are stored

    def find_repeats(self, times: IntArray, pitches: IntArray) -> tuple[BoolArray, list[float]]:
        """Mark peaks of the next window of the stream that occurred earlier in it.

        Times are frames of the stream, in order. Windows leave no gap and may overlap: pairs of the
        previous window are stored once. The second value has the distance in frames to each earlier
        occurrence.
        """
        pairs = pairs_of(times, pitches)
        keys = pairs.keys().astype(np.int32)
        order = np.argsort(keys, kind="stable")
        keys, at, ends = keys[order], pairs.times[order], (pairs.times + pairs.apart)[order]
        fresh = ends >= self._end
        self._recent = _merged(self._recent, (keys[fresh], at[fresh].astype(np.float32)))
        if times.size:
            if not np.isfinite(self._end):
                self._first = float(times[0])
            self._end = max(self._end, float(times[-1]) + 1)
        runs = [_hits(*run, keys, at) for run in (self._known, self._recent)]
        earlier, times_now = (np.concatenate(columns) for columns in zip(*runs, strict=True))
        distances = times_now - earlier
        later = np.flatnonzero(distances >= _LEAST_LATER)
        times_now, distances = times_now[later], distances[later]
        is_repeated, places = np.zeros(times.size, np.bool_), list[float]()
        past = float(times[-1] - self._first) if times.size else 1.0
        for _ in range(_MOST_PLACES):
            if times_now.size < _AGAIN_HITS or is_repeated.mean() > _ENOUGH:
                break
            hits = _densest(distances)
            chance = 2 * SAME_FRAMES * (times_now.size - hits.size) / max(past, 1.0)
            if hits.size < _AGAIN_HITS + 2 * chance or _cells(times_now[hits]) < _AGAIN_CELLS:
                break
            is_repeated |= np.isin(times, times_now[hits])
            places.append(median(distances[hits]))
            remaining = np.ones(times_now.size, np.bool_)
            remaining[hits] = False
            times_now, distances = times_now[remaining], distances[remaining]
        if self._recent[0].size > _MOST_RECENT:
            self._age()
        return is_repeated, places

    def _age(self) -> None:
        """Merge recent pairs; keep an eighth of the old ones and no very old ones."""
        keys, times = _merged(self._known, self._recent)
        self._recent = keys[:0], times[:0]
        age = times.max() - times
        # chosen by key alone, so that all repetitions keep the same pairs
        eighth = (keys.astype(np.int64) * 2654435761 >> 24) % 8 == 0
        is_kept = (age < _WHOLE_FRAMES) | (eighth & (age < _REMEMBERED_FRAMES))
        self._known = keys[is_kept], times[is_kept]
        self._first = float(self._known[1].min())

    @property
    def remembered(self) -> int:
        """Number of stored pairs of peaks."""
        return int(self._known[0].size + self._recent[0].size)


def _merged(first: _Run, second: _Run) -> _Run:
    """Merge two sorted runs; a stable sort uses existing runs."""
    keys, times = (np.concatenate(columns) for columns in zip(first, second, strict=True))
    order = np.argsort(keys, kind="stable")
    return keys[order], times[order]


def _hits(
    keys: IntArray, times: FloatArray, queries: IntArray, at: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the times of equal keys: the newest ones in a sorted run, and the queries' ``at``."""
    low = np.searchsorted(keys, queries, side="left")
    high = np.searchsorted(keys, queries, side="right")
    low = np.maximum(low, high - _NEWEST)
    counts = high - low
    return times[_runs(low, counts)].astype(np.float64), np.repeat(at, counts)


def _runs(low: IntArray, counts: IntArray) -> IntArray:
    """Concatenate the ranges from each ``low`` to ``low + counts``."""
    which = np.repeat(low - (np.cumsum(counts) - counts), counts)
    which += np.arange(which.size, dtype=which.dtype)
    return which


def _densest(distances: FloatArray) -> IntArray:
    """Return indices of the distances in the two neighbouring bins that contain most."""
    steps = np.floor(distances / SAME_FRAMES)
    order = np.sort(steps)
    first = np.flatnonzero(np.diff(order, prepend=-np.inf))
    levels, counts = order[first], np.diff(first, append=order.size)
    counts[:-1] += np.where(levels[1:] - levels[:-1] == 1, counts[1:], 0)
    densest = levels[np.argmax(counts)]
    return np.flatnonzero((steps == densest) | (steps == densest + 1))


def _cells(times: FloatArray) -> int:
    cells = np.floor(times * (2 / FRAMES_PER_SECOND)).astype(np.intp)
    return int(np.count_nonzero(np.bincount(cells - cells.min()) >= 2))
