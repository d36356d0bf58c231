"""Features of the recording, not of the voice: channel and conditions."""

from __future__ import annotations

import numpy as np
from scipy.fft import rfft

from monitor.features.framing import AudioFeature, Framer
from monitor.kinds import LEVELS, FeatureSpec, Sensitivity
from monitor.maths.condition import ROW, describe_seconds, hide_second
from monitor.types import TICKS_PER_SECOND, BoolArray, FloatArray, IntArray, Track

BANDS_HZ = (60, 150, 300, 500, 800, 1300, 2100, 3400, 4600, 6000, 7600)  # edges
SECONDS = 3  # long enough to contain a pause of most readers
QUIET, LOUD = 0.1, 0.9  # quantiles: the level between words, and at their peaks
LEAST_RANGE = 1.0  # minimum bels from quiet to loud in speech; silence and noise have less

_RATE = 16000
_LENGTH, _HOP = 512, 1280  # a spectrum every 80 ms is as good as one every 20
_AT_ONCE = 8  # stays in the cache (benchmarks/runs.py)
SILENCE = np.float32(1e-9)  # 90 dB below full scale, above the steps of 16 bits
_WINDOW = np.hanning(_LENGTH).astype(np.float32)
_EDGES = np.searchsorted(np.fft.rfftfreq(_LENGTH, 1 / _RATE), BANDS_HZ)
_WIDTHS = np.diff(_EDGES).astype(np.float32)


class Channel(AudioFeature):
    """Levels of the channel through which a voice comes, per three seconds with speech, in bels.

    These are the quiet and the loud level of ten bands. Another microphone, room, line or gain
    shifts some of them permanently. Templates do not contain them: only the change detector uses
    them.
    """

    spec = FeatureSpec("channel", LEVELS, 2 * len(_WIDTHS), float(SECONDS), _RATE)
    # benchmarks/change.py chose it
    follow = Sensitivity(1, 4, 3.0, 0.5, back_units=4, held_units=1, min_units=3, least_drop=0.4)

    def process(self, samples: FloatArray) -> Track:
        """Return the levels of every three seconds that further samples, shape (n,), complete."""
        pieces = self._framer.push(samples)
        ticks = (self._count + 1 + np.arange(len(pieces))) * SECONDS * TICKS_PER_SECOND
        self._count += len(pieces)
        is_wanted = ticks > self._skip
        if not is_wanted.any():
            return self.spec.no_frames()
        pieces = pieces[np.argmax(is_wanted) :]
        batches = [pieces[start : start + _AT_ONCE] for start in range(0, len(pieces), _AT_ONCE)]
        levels, speech = (
            np.concatenate(arrays) for arrays in zip(*map(_levels, batches), strict=True)
        )
        return Track(ticks[is_wanted][speech], levels[speech])

    def snapshot_attributes(self) -> dict[str, object]:
        """Return the attributes that a snapshot keeps, without the unfinished three seconds."""
        ends = (self._count + 1) * SECONDS * TICKS_PER_SECOND
        return {"_count": self._count, "_skip": max(self._skip, ends), "_begun": self._framer.waits}

    def resume(self) -> None:
        """Continue from a snapshot's attributes."""
        self._framer.push(np.zeros(min(self._begun, SECONDS * _RATE - 1), np.float32))

    def reset(self) -> None:
        """Reset: the next sample is the first of a recording."""
        super().reset()
        self._begun = 0  # samples of the unfinished three seconds at a snapshot
        self._framer = Framer(SECONDS * _RATE, SECONDS * _RATE)
        self._count = 0


def _levels(pieces: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Compute levels, (n, 20), of pieces, (n, samples), and whether each has speech, (n,)."""
    looks = np.lib.stride_tricks.sliding_window_view(pieces, _LENGTH, axis=1)[:, ::_HOP]
    spectrum = rfft(looks * _WINDOW)
    power = spectrum.real**2 + spectrum.imag**2
    bands = np.add.reduceat(power[..., : _EDGES[-1]], _EDGES[:-1], axis=-1) / (_WIDTHS * _LENGTH)
    every = np.concatenate((bands, bands.sum(axis=-1, keepdims=True)), axis=-1)
    levels = np.sort(np.log10(every + SILENCE), axis=1).astype(np.float64)
    count = levels.shape[1] - 1
    quiet, loud = levels[:, round(QUIET * count)], levels[:, round(LOUD * count)]
    speech = loud[:, -1] - quiet[:, -1] > LEAST_RANGE
    return np.concatenate((quiet[:, :-1], loud[:, :-1]), axis=1), speech


CONDITION = "sound-condition"  # name of the track; no feature's name has a hyphen


_MOST_SAMPLES = 1 << 20
_TOGETHER = 8  # seconds per batch, which stays in the cache


class ConditionRows:
    """Converter of one recording to rows of counts, which `monitor.maths.condition` sums.

    This is not a feature. It uses the samples as decoded, since clipping and a narrow band leave
    their traces there. Clipping is searched for in the first channels only, with at most
    `_MOST_SAMPLES` per second together. At 48 kHz, these are 21 channels.
    """

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._waiting: list[tuple[FloatArray, FloatArray]] = []  # samples of an unfinished second
        self._samples, self._seconds, self._skip = 0, 0, 0

    def process(self, columns: FloatArray, mono: FloatArray) -> Track:
        """Return rows of the seconds that further samples, (n, channels), complete.

        ``mono``, (n,), is their mean without offset and hum.
        """
        rate, batches = self._rate, list[IntArray]()
        columns = columns[:, : max(1, _MOST_SAMPLES // rate)]
        count = (self._samples + mono.size) // rate
        if count and self._samples:
            columns, mono = map(np.concatenate, zip(*self._waiting, (columns, mono), strict=True))
        if count:
            self._waiting, self._samples = [], 0
        before = min(max(self._skip // TICKS_PER_SECOND - self._seconds, 0), count)
        for start in range(before, count, _TOGETHER):
            batch = slice(start * rate, min(start + _TOGETHER, count) * rate)
            seconds = columns[batch].reshape(-1, rate, columns.shape[1])
            batches.append(describe_seconds(seconds, mono[batch].reshape(-1, rate), rate))
        if mono.size > count * rate:  # copies, so that a long block is not kept by its last samples
            self._waiting.append((columns[count * rate :].copy(), mono[count * rate :].copy()))
            self._samples += mono.size - count * rate
        rows = np.concatenate(batches) if batches else np.empty((0, ROW), np.int32)
        ticks = (self._seconds + before + 1 + np.arange(len(rows))) * TICKS_PER_SECOND
        self._seconds += count
        return Track(ticks, rows)

    def snapshot_attributes(self) -> dict[str, object]:
        """Return the attributes that a snapshot keeps; the unfinished second is hidden."""
        waiting = self._waiting
        if waiting:
            columns, mono = map(np.concatenate, zip(*waiting, strict=True))
            waiting = [hide_second(columns, mono, self._rate)]
        return {**vars(self), "_waiting": waiting}

    def skip_to(self, tick: int) -> None:
        """Skip rows complete by ``tick`` of the recording."""
        self._skip = tick
