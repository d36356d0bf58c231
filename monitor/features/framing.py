"""Streams of samples checked, levelled and cut into frames; and small operations on frames."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral

import numpy as np
from numpy.lib.stride_tricks import as_strided

from monitor.arrays import real_numbers
from monitor.errors import SourceError, UsageError
from monitor.kinds import FeatureSpec
from monitor.maths.filters import filter_stream, high_pass
from monitor.protocols import LEAST_RATE, MOST_CHANNELS, MOST_RATE
from monitor.types import TICKS_PER_SECOND, Block, FloatArray, Frames, Gap, Notice, Track


class AudioFeature:
    """Base of audio features: holds the tick up to which no frames are wanted."""

    spec: FeatureSpec

    def __init__(self) -> None:
        self.reset()

    def flush(self) -> Track:
        """Return frames that only the end of the recording completes: none."""
        return self.spec.no_frames()

    def skip_to(self, tick: int) -> None:
        """Skip frames complete by ``tick``, counted from the last reset."""
        self._skip = tick

    def reset(self) -> None:
        """Start afresh: the next sample is the first of a recording."""
        self._skip = 0


class Framer:
    """Frame i holds the samples [hop * i, hop * i + length) of the stream.

    Example:
        >>> framer = Framer(length=4, hop=2)
        >>> framer.push(np.arange(7.0))
        array([[0., 1., 2., 3.],
               [2., 3., 4., 5.]], dtype=float32)
    """

    def __init__(self, length: int, hop: int) -> None:
        if not 1 <= hop <= length:
            raise UsageError(f"hop={hop} must lie between 1 and the frame length, {length}")
        self.length = length
        self.hop = hop
        self._rest: FloatArray = np.empty(0, np.float32)

    def push(self, samples: FloatArray) -> FloatArray:
        """Return the frames, (k, length), that further samples, (n,), complete; read-only."""
        sound = np.concatenate((self._rest, samples), dtype=np.float32)
        count = max(0, (sound.size - self.length) // self.hop + 1)
        # A copy, so that an hour pushed at once is not kept alive by its last few samples.
        self._rest = sound[count * self.hop :].copy() if count else sound
        if not count:
            return np.empty((0, self.length), np.float32)
        step = sound.itemsize
        return as_strided(sound, (count, self.length), (self.hop * step, step), writeable=False)

    def reset(self) -> None:
        """Forget what was pushed: the next sample is the first of a stream."""
        self._rest = np.empty(0, np.float32)


def columns_of(block: Block, channel: int | None) -> FloatArray:
    """Return the channels of a block in use, shape (n, channels); None for all of them."""
    if not (isinstance(block.rate, Integral) and LEAST_RATE <= block.rate <= MOST_RATE):
        raise SourceError(
            f"a rate of {block.rate!r} cannot be heard: give samples a second, {LEAST_RATE} to "
            f"{MOST_RATE}"
        )
    samples = real_numbers(block.samples, "samples", error=SourceError)
    if samples.dtype.kind != "f":
        hint = "; divide by 32768" if samples.dtype == np.int16 else ""
        raise SourceError(f"samples are {samples.dtype}: give floats from -1 to 1{hint}")
    columns = samples[:, None] if samples.ndim == 1 else samples
    if columns.ndim != 2 or not 1 <= columns.shape[1] <= MOST_CHANNELS:
        raise SourceError(
            f"samples of shape {samples.shape} must be (n,) or (n, channels), with at most "
            f"{MOST_CHANNELS} channels"
        )
    if channel is None:
        return columns
    count = columns.shape[1]
    if not 0 <= channel < count:
        raise SourceError(
            f"no channel {channel}: this recording has {count}, counted from 0;"
            " choose one of them or the mean of all"
        )
    return columns[:, channel : channel + 1]


_LARGEST = 1e12  # larger samples come from broken memory; their squares would leave float32
_BEYOND = 8.0  # 18 dB above full scale: floats from -1 to 1 are rarely half as far beyond it


class BadSamples:
    """Samples of one recording that are no numbers: silenced, and reported a second at a time.

    Samples far beyond -1 to 1 are noticed once: the recording may hold whole numbers.
    ``first_tick`` is how many ticks of the stream are before the recording.
    """

    def __init__(self, rate: int, recording: int, first_tick: int) -> None:
        self._rate = rate
        self._recording = recording
        self._first_tick = first_tick
        self._samples_in = 0
        self._pending: dict[int, tuple[int, int]] = {}  # second: first tick, samples
        self._in_range = True
        self._notices: tuple[tuple[int, Notice], ...] = ()

    def silence(self, samples: FloatArray) -> FloatArray:
        """Return shape (n, channels), float32, with zeros where there was no number."""
        samples = np.asarray(samples, np.float32)
        # what is no number spoils the extremes, too: two passes that need no memory
        if samples.size and not -_LARGEST <= samples.min() <= samples.max() <= _LARGEST:
            sound = np.abs(samples) <= _LARGEST
            samples = np.where(sound, samples, np.float32(0))
            self._note(self._samples_in + np.flatnonzero(~sound.all(axis=1)))
        if self._in_range and samples.size and max(samples.max(), -samples.min()) > _BEYOND:
            self._in_range = False
            first = int(np.argmax((np.abs(samples) > _BEYOND).any(axis=1)))
            tick = (self._samples_in + first) * TICKS_PER_SECOND // self._rate + 1
            text = (
                f"Samples reach beyond {_BEYOND:g} times full scale. They were scaled down, and "
                "bits are not affected. Write whole numbers as integers, or divide them by 32768."
            )
            notice = Notice("samples out of range", text, self._recording, "info")
            self._notices = ((self._first_tick + tick, notice),)
        self._samples_in += len(samples)
        return samples

    def pop_notices(self) -> tuple[tuple[int, Notice], ...]:
        """Return the notices since the last call, as (tick, Notice)."""
        notices, self._notices = self._notices, ()
        return notices

    def report(self, ticks: int) -> tuple[tuple[int, Gap], ...]:
        """Return losses of the seconds complete after so many ticks of it, as (tick, Gap)."""
        seconds = [second for second in self._pending if (second + 1) * TICKS_PER_SECOND <= ticks]
        return tuple(self._gap(*self._pending.pop(second)) for second in sorted(seconds))

    def finish(self) -> tuple[tuple[int, Gap], ...]:
        """Report the losses that are left at the end of the recording."""
        return self.report(self._samples_in * TICKS_PER_SECOND + TICKS_PER_SECOND)

    def _note(self, lost: np.ndarray) -> None:
        ticks = lost * TICKS_PER_SECOND // self._rate
        for second in np.unique(ticks // TICKS_PER_SECOND).tolist():
            inside = ticks[ticks // TICKS_PER_SECOND == second]
            first, count = self._pending.get(second, (int(inside[0]) + 1, 0))
            self._pending[second] = first, count + inside.size

    def _gap(self, tick: int, count: int) -> tuple[int, Gap]:
        detail = "1 sample" if count == 1 else f"{count} samples"
        gap = Gap("not finite", count / self._rate, self._recording, detail)
        return self._first_tick + tick, gap


# ----------------------------------------------------------------------------------------- level
# Sound at one loudness, without offset and hum: what voice activity and features are fed.

LEVEL_DB = -22.0  # of the loudest half second, of full scale: what the shipped readers have
MOST_GAIN_DB = 40.0  # speech at -60 dBFS comes up to the level, the noise of 16 bits does not
_REMEMBERED_SECONDS = 60  # a pause this long changes no gain
_STRETCH = 50  # ticks that make half a second; of their mean decibels, a click hardly moves them
_LEAST_DB = -100.0


class HighPass:
    """One recording without offset and hum (`monitor.maths.filters.high_pass`)."""

    def __init__(self, rate: int) -> None:
        self._sections = high_pass(rate)
        self._state = np.zeros((len(self._sections), 2))
        self._offset: float | None = None

    def process(self, samples: FloatArray) -> FloatArray:
        """Filter further samples, shape (n,): shape (n,), float32."""
        if not samples.size:
            return samples
        if self._offset is None:
            self._offset = float(samples[0])  # so that a constant does not begin with a step
        shifted = samples.astype(np.float64) - self._offset
        return filter_stream(self._sections, shifted, self._state).astype(np.float32)


class Leveller:
    """One recording at one loudness: the loudest half second of the last minute is at `LEVEL_DB`.

    A recording ten times as loud gives the same samples. The gain depends on the past alone, and
    moves from tick to tick in a straight line. Any cutting into blocks gives the same.
    """

    def __init__(self, rate: int) -> None:
        self._size = max(1, round(rate / TICKS_PER_SECOND))
        self._ramp = np.arange(1, self._size + 1, dtype=np.float32) / np.float32(self._size)
        self._rest = np.empty(0, np.float32)
        self._ticks = 0
        self._sums = np.zeros(_STRETCH)  # of decibels since the beginning, at the last ticks
        self._loudest = deque([-np.inf], maxlen=_REMEMBERED_SECONDS)  # of each second
        self._gain: np.float32 | None = None

    def process(self, samples: FloatArray) -> FloatArray:
        """Level the whole ticks that further samples, shape (n,), complete: float32."""
        sound = np.concatenate((self._rest, samples), dtype=np.float32)
        size = sound.size - sound.size % self._size
        self._rest = sound[size:].copy()
        return self._level(sound[:size])

    def flush(self) -> FloatArray:
        """Level the last samples, less than a tick."""
        size = self._rest.size
        return self.process(np.zeros(-size % self._size, np.float32))[:size]

    def _level(self, sound: FloatArray) -> FloatArray:
        if not sound.size:
            return sound
        ticks = sound.reshape(-1, self._size)
        power = np.square(ticks, dtype=np.float64).mean(axis=1)
        decibels = 10 * np.log10(np.maximum(power, 10 ** (_LEAST_DB / 10)))
        louder = np.minimum(LEVEL_DB - self._loudness(decibels), MOST_GAIN_DB)
        gains = (10 ** (louder / 20)).astype(np.float32)
        before = np.append(gains[0] if self._gain is None else self._gain, gains[:-1])
        self._gain = gains[-1]
        ramps = before[:, None] + (gains - before)[:, None] * self._ramp
        return np.asarray(ticks * ramps).ravel()

    def _loudness(self, decibels: FloatArray) -> FloatArray:
        """Return the loudest half second lately, at each further tick, in decibels."""
        # a running sum over the whole recording: however it is cut, the same numbers are added
        sums = np.cumsum(np.append(self._sums[-1], decibels))
        sums = np.append(self._sums[:-1], sums)
        self._sums = sums[-_STRETCH:]
        first = self._ticks
        counts = np.minimum(first + 1 + np.arange(decibels.size), _STRETCH)
        means = (sums[_STRETCH:] - sums[:-_STRETCH]) / counts
        self._ticks += decibels.size
        # until there was half a second, what there was counts, and is not remembered
        loudness = means.copy()
        start = max(_STRETCH - 1 - first, 0)
        while start < means.size:
            end = start + TICKS_PER_SECOND - (first + start) % TICKS_PER_SECOND
            lately = np.maximum.accumulate(np.append(max(self._loudest), means[start:end]))
            loudness[start:end] = lately[1:]
            self._loudest[-1] = max(self._loudest[-1], means[start:end].max())
            if first + end <= self._ticks:  # the second is over
                self._loudest.append(-np.inf)
            start = end
        return np.asarray(loudness)


# --------------------------------------------------------------------------------------- joining


def join_tracks(before: Track, after: Track) -> Track:
    """Join the frames of one track and then of another."""
    early = before.early if after.early is None else after.early
    if before.early is not None and after.early is not None:
        early = before.early.joined(after.early)
    if not len(before.ticks):
        return replace(after, early=early)
    if not len(after.ticks):
        return replace(before, early=early)
    ticks = np.concatenate((before.ticks, after.ticks))
    values = np.concatenate((before.values, after.values))
    if before.spans is None or after.spans is None:
        return Track(ticks, values, early=early)
    return Track(ticks, values, np.concatenate((before.spans, after.spans)), early)


def join_frames(before: Frames, after: Frames) -> Frames:
    """Join one run of ticks and the next."""
    tracks: dict[str, Track] = {**before.tracks, **after.tracks}
    for name in before.tracks.keys() & after.tracks.keys():
        tracks[name] = join_tracks(before.tracks[name], after.tracks[name])
    speech = np.concatenate((before.speech, after.speech))
    notices = before.notices + after.notices
    return Frames(speech, tracks, before.gaps + after.gaps, before.recording, notices)


def join_runs(runs: Sequence[Frames]) -> Frames:
    """Join all runs of a recording, at least one; neighbours first, to copy less."""
    joined = list(runs)
    while len(joined) > 1:
        pairs = [joined[start : start + 2] for start in range(0, len(joined), 2)]
        joined = [join_frames(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return joined[0]
