"""Sound at one loudness, without offset and hum: what voice activity and features are fed."""

from __future__ import annotations

from collections import deque

import numpy as np

from monitor.maths.spectra import filter_stream, high_pass
from monitor.types import TICKS_PER_SECOND, FloatArray

LEVEL_DB = -22.0
"""Of the loudest half second, in decibels of full scale: what the shipped readers have."""
MOST_GAIN_DB = 40.0
"""So that speech at -60 dBFS comes up to the level, and the noise of 16 bits, at -98, does not."""
REMEMBERED_SECONDS = 60
"""A pause this long changes no gain."""
_STRETCH = 50
"""Ticks that make half a second. Their decibels are averaged: a click hardly moves the mean."""
_LEAST_DB = -100.0


class HighPass:
    """One recording without offset and hum (`monitor.maths.spectra.high_pass`).

    Example:
        >>> hum = 0.5 + 0.1 * np.sin(2 * np.pi * 50 * np.arange(16000) / 16000)
        >>> float(abs(HighPass(16000).process(hum)[8000:]).max()) < 0.001
        True
    """

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

    Args:
        rate: samples per second.

    Example:
        >>> noise = np.random.default_rng(0).standard_normal(16000).astype(np.float32)
        >>> loud, quiet = (Leveller(16000).process(noise * gain) for gain in (1 / 8, 1 / 256))
        >>> np.array_equal(loud, quiet), round(float(20 * np.log10(loud.std())))
        (True, -22)
    """

    def __init__(self, rate: int) -> None:
        self._size = max(1, round(rate / TICKS_PER_SECOND))
        self._ramp = np.arange(1, self._size + 1, dtype=np.float32) / np.float32(self._size)
        self._rest = np.empty(0, np.float32)
        self._ticks = 0
        self._sums = np.zeros(_STRETCH)  # of decibels since the beginning, at the last ticks
        self._loudest = deque([-np.inf], maxlen=REMEMBERED_SECONDS)  # of each second
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
