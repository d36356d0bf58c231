"""Checks of samples, their division into frames, and small operations on frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral

import numpy as np
from numpy.lib.stride_tricks import as_strided

from monitor.arrays import real_numbers
from monitor.errors import SourceError, UsageError
from monitor.kinds import FeatureSpec
from monitor.protocols import LEAST_RATE, MOST_CHANNELS, MOST_RATE
from monitor.types import TICKS_PER_SECOND, Block, FloatArray, Frames, Gap, Notice, Track


def attributes_without(component: object, *names: str) -> dict[str, object]:
    """Return the attributes of a component for a snapshot, without those of these names."""
    return {name: value for name, value in vars(component).items() if name not in names}


class AudioFeature:
    """Base of audio features, with the tick up to which no frames are needed."""

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
        """Reset: the next sample is the first of a recording."""
        self._skip = 0


class Framer:
    """Divider of a stream into frames: frame i has samples [hop * i, hop * i + length).

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

    @property
    def waits(self) -> int:
        """Samples of an unfinished frame."""
        return int(self._rest.size)

    def snapshot_attributes(self) -> dict[str, object]:
        """Return the attributes that a snapshot keeps: the samples of an unfinished frame."""
        return {"_rest": self._rest}

    def reset(self) -> None:
        """Forget what was pushed: the next sample is the first of a stream."""
        self._rest = np.empty(0, np.float32)


def columns_of(block: Block, channel: int | None) -> FloatArray:
    """Return the channels of a block in use, shape (n, channels); None for all of them."""
    if not (isinstance(block.rate, (int, Integral)) and LEAST_RATE <= block.rate <= MOST_RATE):
        raise SourceError(
            f"unsupported rate {block.rate!r}: use {LEAST_RATE} to {MOST_RATE} samples per second"
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
        raise SourceError(f"invalid channel {channel}: use 0 to {count - 1}, or the mean of all")
    return columns[:, channel : channel + 1]


_LARGEST = 1e12  # larger samples come from broken memory; their squares would leave float32
_BEYOND = 8.0  # 18 dB above full scale; audio with a full scale of 1 rarely reaches half of it


class BadSamples:
    """Silences invalid samples (NaN, infinite) of one recording, and reports them per second.

    Samples far beyond -1 to 1 give one notice, since they may be whole numbers. ``first_tick`` is
    the number of ticks of the stream before the recording.
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
        """Return the samples, shape (n, channels), float32, with zeros for invalid ones."""
        samples = np.asarray(samples, np.float32)
        # NaN is also an extreme: two passes without extra memory
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
        """Return losses of the seconds complete by this tick of the recording, as (tick, Gap)."""
        seconds = [second for second in self._pending if (second + 1) * TICKS_PER_SECOND <= ticks]
        return tuple(self._gap(*self._pending.pop(second)) for second in sorted(seconds))

    def finish(self) -> tuple[tuple[int, Gap], ...]:
        """Return the remaining losses at the end of the recording."""
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


def join_tracks(before: Track, after: Track) -> Track:
    """Join the frames of two consecutive tracks."""
    early = before.early if after.early is None else after.early
    if before.early is not None and after.early is not None:
        early = before.early.joined(after.early)
    for track, other in ((before, after), (after, before)):
        if not len(track.ticks):
            return other if other.early is early else replace(other, early=early)
    ticks = np.concatenate((before.ticks, after.ticks))
    values = np.concatenate((before.values, after.values))
    spans = windows = None
    if before.spans is not None and after.spans is not None:
        spans = np.concatenate((before.spans, after.spans))
    if before.windows is not None and after.windows is not None:
        windows = before.windows + after.windows
    return Track(ticks, values, spans, early, windows)


def join_frames(before: Frames, after: Frames) -> Frames:
    """Join two consecutive runs of ticks."""
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
