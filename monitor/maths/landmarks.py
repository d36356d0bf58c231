"""Landmarks: peaks of a spectrogram, by which a recording is known again.

Two peaks that lie near each other make a key of both pitches and the time between them. Keys of one
recording that are found in another, many of them at one and the same distance in time, say that
both are the same audio: at another gain, cut elsewhere, compressed, in noise. Another speed moves
all pitches alike, and time with them, so that keys are made for several speeds; backwards, time is
negated.

Source: A. Wang, "An industrial strength audio search algorithm", ISMIR 2003.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from monitor.types import TICKS_PER_SECOND, BoolArray, FloatArray, IntArray, Track

__all__ = [
    "FRAMES_PER_SECOND",
    "FRAME_TICKS",
    "LATE_TICKS",
    "NAME",
    "PITCHES",
    "STEPS_PER_OCTAVE",
    "LandmarkIndex",
    "LandmarkMatch",
    "LandmarkPairs",
    "OwnLandmarks",
    "frames_of",
    "pack",
    "pairs_of",
    "unpack",
]

NAME = "landmarks"
"""Of their track, which `monitor.features.landmarks` makes."""
FRAMES_PER_SECOND = 25
FRAME_TICKS = TICKS_PER_SECOND // FRAMES_PER_SECOND
LATE_TICKS = 78
"""Ticks after which every landmark of a moment has come: half a second, and what lies around."""
PITCHES = 250
"""Steps of 1/60 octave, from 200 Hz on."""
STEPS_PER_OCTAVE = 60
FAN_OUT = 5
"""Later peaks that a peak is paired with."""
_LOOKED_AT = 3 * FAN_OUT
LEAST_APART, MOST_APART = 2, 20
"""Frames between the peaks of a pair."""
_LONGEST, _NO_PITCH = 255, 255
_COARSE = 2.5
"""Steps of pitch that make one key: 1/24 octave, more than a codec moves a peak."""
_SHIFT = 16
"""What is added to coarse pitches, so that no speed makes them negative."""
_LEAST_LATER = 20
"""Frames after which audio can come again: 0.8 s."""
_AGAIN_HITS, _AGAIN_CELLS = 16, 4
_MOST_PLACES = 6
_MOST_UNSORTED = 6
_WHOLE_FRAMES = 600 * FRAMES_PER_SECOND
_REMEMBERED_FRAMES = 7200 * FRAMES_PER_SECOND
SAME_FRAMES = 2.5
"""Distances in time that are counted as one: 0.1 s, and the next as well."""


def frames_of(track: Track | None) -> tuple[IntArray, IntArray] | None:
    """Times, in frames of the stream, and pitches, in order; None where there is no track."""
    if track is None:
        return None
    spans = np.empty((0, 2), np.intp) if track.spans is None else track.spans
    return spans[:, 0] // FRAME_TICKS, track.values


def pack(times: IntArray, pitches: IntArray) -> IntArray:
    """Peaks as a store keeps them, 16 bits each: frames since the one before, and the pitch.

    Longer pauses are made up of steps without a pitch.

    Example:
        >>> packed = pack(np.array([3, 3, 700]), np.array([9, 40, 249]))
        >>> packed.dtype, packed.size
        (dtype('uint16'), 5)
        >>> [part.tolist() for part in unpack(packed)]
        [[3, 3, 700], [9, 40, 249]]
    """
    steps = np.diff(times, prepend=0)
    pauses = steps // _LONGEST
    whole = np.repeat(steps % _LONGEST << 8 | pitches, 1 + pauses)
    last = np.cumsum(1 + pauses)
    pause = np.ones(whole.size, np.bool_)
    pause[last - 1] = False
    whole[pause] = _LONGEST << 8 | _NO_PITCH
    return np.asarray(whole, "<u2")


def unpack(packed: IntArray) -> tuple[IntArray, IntArray]:
    """The reverse of `pack`: times and pitches."""
    wide = packed.astype(np.int64)
    pitches = wide & 255
    told = pitches < PITCHES
    return np.cumsum(wide >> 8)[told], pitches[told]


class LandmarkPairs(NamedTuple):
    """Pairs of P peaks.

    Attributes:
        first, second: shape (P,), pitches of the earlier and the later peak.
        apart: shape (P,), frames between them.
        times: shape (P,), frame of the earlier one.
    """

    first: IntArray
    second: IntArray
    apart: FloatArray
    times: FloatArray

    def keys(self, speed: float = 1.0) -> IntArray:
        """A key for each pair, shape (P,), of audio that is heard so many times too slow."""
        move = STEPS_PER_OCTAVE * np.log2(speed) + 0.5 + _COARSE * _SHIFT
        first = np.floor((self.first + move) / _COARSE).astype(np.int64)
        second = np.floor((self.second + move) / _COARSE).astype(np.int64)
        apart = np.rint(self.apart / speed).astype(np.int64)
        return np.asarray((first << 16) | (second << 8) | apart)


def pairs_of(times: IntArray, pitches: IntArray, *, backwards: bool = False) -> LandmarkPairs:
    """Each peak with the next few.

    Args:
        times: shape (K,), frames, non-decreasing.
        pitches: shape (K,), steps.
        backwards: as of the same audio played backwards; times are negative then.

    Example:
        >>> pairs = pairs_of(np.array([0, 4, 9]), np.array([10, 20, 30]))
        >>> pairs.times, pairs.apart
        (array([0., 0., 4.]), array([4., 9., 5.]))
    """
    if backwards:
        times, pitches = -times[::-1], pitches[::-1]
    at = times.astype(np.float64)
    count = np.zeros(at.size, np.intp)
    a: list[IntArray] = []
    b: list[IntArray] = []
    for step in range(1, min(_LOOKED_AT, at.size - 1) + 1):
        apart = at[step:] - at[:-step]
        due = (apart >= LEAST_APART) & (apart <= MOST_APART) & (count[:-step] < FAN_OUT)
        count[:-step] += due
        some = np.flatnonzero(due)
        a.append(some)
        b.append(some + step)
    first = np.concatenate(a) if a else np.empty(0, np.intp)
    second = np.concatenate(b) if b else np.empty(0, np.intp)
    order = np.argsort(first, kind="stable")
    first, second = first[order], second[order]
    return LandmarkPairs(pitches[first], pitches[second], at[second] - at[first], at[first])


@dataclass(frozen=True, slots=True)
class LandmarkMatch:
    """Where a stretch of audio was found.

    Attributes:
        source: number of the recording.
        speed: how many times as fast it was heard; negative: backwards.
        hits: pairs found at this place.
        cells: half seconds of the stretch with two of them or more.
        chance: pairs that any other place of that recording has, on average: many where both hum.
        times: shape (hits,), frames of the stretch in which they lie.
        apart: frames from the stretch to the place, where the speed is 1.
    """

    source: int
    speed: float
    hits: int
    cells: int
    chance: float
    times: FloatArray
    apart: float


class LandmarkIndex:
    """Pairs of many recordings, to look up others in.

    Args:
        recordings: peaks of each, times and pitches, as of `pairs_of`.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> times, pitches = np.sort(rng.integers(0, 2500, 1000)), rng.integers(0, PITCHES, 1000)
        >>> index = LandmarkIndex([(times, pitches)])
        >>> some = slice(300, 400)
        >>> match = index.best(times[some] - times[300], pitches[some])
        >>> match.source, match.hits > 100
        (0, True)
        >>> index.best(times[some], rng.permutation(pitches)[some]).hits < 15
        True
    """

    def __init__(self, recordings: Sequence[tuple[IntArray, IntArray]]) -> None:
        keys, times, starts, end = [], [], [0], 0.0
        for at, pitches in recordings:
            pairs = pairs_of(at, pitches)
            keys.append(pairs.keys())
            times.append(pairs.times + end)
            end += (float(at[-1]) if at.size else 0.0) + 4 * MOST_APART
            starts.append(round(end))
        whole = np.concatenate(keys) if keys else np.empty(0, np.int64)
        order = np.argsort(whole, kind="stable")
        self._keys = whole[order].astype(np.int32)
        self._times = np.concatenate(times)[order].astype(np.float32) if keys else np.empty(0)
        self._starts = np.array(starts)

    def best(
        self,
        times: IntArray,
        pitches: IntArray,
        speeds: Sequence[float] = (1.0,),
    ) -> LandmarkMatch | None:
        """Where most pairs of a stretch lie at one distance; None where there are none at all.

        Args:
            times: of peaks of the stretch, frames.
            pitches: of the same.
            speeds: how many times too fast it may be; negative: backwards.
        """
        best: LandmarkMatch | None = None
        made = {back: pairs_of(times, pitches, backwards=back) for back in {s < 0 for s in speeds}}
        for speed in speeds:
            found = self._best(made[speed < 0], speed)
            if found is not None and (best is None or found.hits > best.hits):
                best = found
        return best

    def _best(self, pairs: LandmarkPairs, speed: float) -> LandmarkMatch | None:
        fast = abs(speed)
        there, here = _hits(self._keys, self._times, pairs.keys(1 / fast), pairs.times)
        if not there.size:
            return None
        place = _densest(there - here * fast)
        inside, at = here[place], there[place]
        source = int(np.searchsorted(self._starts, float(np.median(at)), side="right")) - 1
        first, last = self._starts[source : source + 2].tolist()
        beside = np.count_nonzero((there >= first) & (there < last)) - inside.size
        chance = 2 * SAME_FRAMES * beside / (last - first)
        apart = float(np.median(at - inside * fast))
        return LandmarkMatch(
            source, speed, inside.size, _cells(inside), chance, np.abs(inside), apart
        )


class OwnLandmarks:
    """What a stream has said so far, to find out what it says again.

    Memory is bounded: of what lies further back than ten minutes an eighth is kept, of what lies
    further back than two hours nothing.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> times, pitches = np.sort(rng.integers(0, 250, 100)), rng.integers(0, PITCHES, 100)
        >>> own = OwnLandmarks()
        >>> bool(own.heard_before(times, pitches).any())
        False
        >>> bool(own.heard_before(times + 250, pitches).mean() > 0.7)
        True
    """

    def __init__(self) -> None:
        self._keys: IntArray = np.empty(0, np.int32)
        self._times: FloatArray = np.empty(0, np.float32)
        self._begins: list[tuple[IntArray, FloatArray]] = []  # windows that are not sorted in yet

    def heard_before(self, times: IntArray, pitches: IntArray) -> BoolArray:
        """Which landmarks of a further stretch begin a pair that was there before, shape (K,).

        Args:
            times: frames of the stream.
            pitches: as of `pairs_of`.
        """
        pairs = pairs_of(times, pitches)
        keys = pairs.keys().astype(np.int32)
        self._begins.append((keys, pairs.times.astype(np.float32)))
        recent = np.concatenate([each for each, _ in self._begins])
        order = np.argsort(recent, kind="stable")
        at = np.concatenate([each for _, each in self._begins])[order]
        found = [
            _hits(self._keys, self._times, keys, pairs.times),
            _hits(recent[order], at, keys, pairs.times),
        ]
        there, here = (np.concatenate(each) for each in zip(*found, strict=True))
        apart = here - there
        later = apart >= _LEAST_LATER
        here, apart = here[later], apart[later]
        again: list[FloatArray] = []
        past = float(times[-1] - self._first) if times.size else 1.0
        for _ in range(_MOST_PLACES):
            if not here.size:
                break
            place = _densest(apart)
            chance = 2 * SAME_FRAMES * (here.size - place.size) / max(past, 1.0)
            cells = _cells(here[place])
            least = _AGAIN_HITS + 2 * chance
            if place.size < least or cells < _AGAIN_CELLS:
                break
            again.append(here[place])
            left = np.ones(here.size, np.bool_)
            left[place] = False
            here, apart = here[left], apart[left]
        if len(self._begins) >= _MOST_UNSORTED:
            self._sort_in()
        return np.isin(times, np.concatenate(again)) if again else np.zeros(times.size, np.bool_)

    @property
    def _first(self) -> float:
        """Where what is remembered begins."""
        firsts = [float(at[0]) for _, at in self._begins if at.size]
        if self._times.size:
            firsts.append(float(self._times.min()))
        return min(firsts, default=0.0)

    def _sort_in(self) -> None:
        keys = np.concatenate([self._keys, *(each for each, _ in self._begins)])
        times = np.concatenate([self._times, *(each for _, each in self._begins)])
        self._begins = []
        age = times.max(initial=0.0) - times
        # by the key alone, so that what is kept of one round is kept of all
        eighth = (keys.astype(np.int64) * 2654435761 >> 13) % 8 == 0
        kept = (age < _WHOLE_FRAMES) | (eighth & (age < _REMEMBERED_FRAMES))
        keys, times = keys[kept], times[kept]
        order = np.argsort(keys, kind="stable")
        self._keys, self._times = keys[order], times[order]


def _hits(
    keys: IntArray, times: FloatArray, wanted: IntArray, at: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """For every equal key of a sorted index: its time there, and the time here."""
    wanted = wanted.astype(np.int32)
    order = np.argsort(wanted, kind="stable")  # the index is then read in one direction
    wanted, at = wanted[order], at[order]
    low = np.searchsorted(keys, wanted, side="left")
    counts = np.searchsorted(keys, wanted, side="right") - low
    total = int(counts.sum())
    before = np.cumsum(counts) - counts
    which = np.repeat(low - before, counts) + np.arange(total)
    return times[which].astype(np.float64), np.repeat(at, counts)


def _densest(distances: FloatArray) -> IntArray:
    """Which of the distances lie within two neighbouring steps that hold most of them."""
    steps = np.floor(distances / SAME_FRAMES).astype(np.int64)
    found, counts = np.unique(steps, return_counts=True)
    both = counts.copy()
    both[:-1] += np.where(np.diff(found) == 1, counts[1:], 0)
    most = found[np.argmax(both)]
    return np.flatnonzero((steps == most) | (steps == most + 1))


def _cells(times: FloatArray) -> int:
    """Half seconds with two or more of these times."""
    _, counts = np.unique(np.floor(times * (2 / FRAMES_PER_SECOND)), return_counts=True)
    return int(np.count_nonzero(counts >= 2))
