"""Repeated audio in a stream, found by its waveform.

The same words spoken again have another waveform. Audio played again keeps its waveform through
another gain, another rate or a codec. The newest second of a stream is therefore correlated with
its past. The waveform has the band from 150 to 950 Hz, levelled over a few periods, so that no
vowel outweighs the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.fft import irfft, rfft

from monitor.types import TICKS_PER_SECOND, BoolArray, FloatArray, IntArray, find_runs

NAME = "waveform"
"""Name of the track from `monitor.features.waveform`."""
SAMPLES_PER_TICK = 20
RATE = SAMPLES_PER_TICK * TICKS_PER_SECOND
LATE_TICKS = 25  # ticks until the waveform of a moment is available
WINDOW_TICKS = TICKS_PER_SECOND
"""Newest audio that is searched for in the past. It detects repetitions of twice this length."""
BACK_TICKS = 12 * TICKS_PER_SECOND
"""Maximum audio before now in which the beginning of a repetition is sought."""
SEARCHED_TICKS = 25 * TICKS_PER_SECOND
"""Past in which every distance is tried. Further back, only distances from landmarks are tried."""
KEPT_TICKS = 600 * TICKS_PER_SECOND
LEAST_CORRELATION = 0.8
"""Minimum over 1 s. Opus at 12 kb/s leaves 0.90, and different seconds of readers reach 0.72."""
_ALIKE = 0.03  # correlations that differ by less count as equal, and the shortest distance wins
_LEAST_LAG = 0.06 * RATE  # shorter ones are periods of a voice, or multiples of one
_NEAR = round(0.25 * RATE)  # samples around a distance by landmarks
_QUIET = 0.35 * 32.0**2  # mean power of a waveform: pauses have less, most speech has more
_LONGER = (2, 3, 5, 8)  # window lengths, seconds, that are tried if the newest second is quiet
_FAINT = 0.02 * 32.0**2
_SMOOTHED_TICKS = 11
_LEAST_ALIKE = 0.5  # minimum correlation over that many ticks of repeated audio
_GAP_TICKS = 25  # gaps up to this length are part of a repetition
_PAUSE_TICKS = 50  # maximum pause added before and after a repetition
_OPEN_PAUSE_TICKS = 200  # the same for a pause that has not ended
_SHORTEST_TICKS = 60
_REACH = 16  # samples on either side that interpolation uses
_FRACTIONS = np.arange(-0.75, 0.76, 0.25)
_TAPS = np.arange(-_REACH, _REACH + 1)


def _sinc(fraction: FloatArray) -> FloatArray:
    """Return weights, shape (..., 33), that interpolate at fractions of a sample, shape (...)."""
    at = _TAPS - np.asarray(fraction)[..., None]
    return np.asarray(np.sinc(at) * np.cos(np.pi / 2 * at / (_REACH + 1)) ** 2, np.float32)


_BETWEEN = _sinc(_FRACTIONS)


@dataclass(frozen=True, slots=True)
class Repetition:
    """Result of a look: intervals (begin, end] in ticks, and whether the audio still repeats."""

    intervals: tuple[tuple[int, int], ...] = ()
    goes_on: bool = False


class WaveformPast:
    """The waveform of the last ten minutes of a stream, and the distance at which it repeats."""

    def __init__(self) -> None:
        self._sound = np.zeros(KEPT_TICKS * SAMPLES_PER_TICK * 5 // 4, np.int8)
        self._first = 0  # earliest kept sample of the stream
        self._lag: float | None = None  # distance in samples while audio repeats

    def add(self, ticks: IntArray, rows: IntArray) -> None:
        """Add the waveform, shape (k, 20), of further ticks, counted from 1."""
        if not ticks.size:
            return
        end = int(ticks[-1]) * SAMPLES_PER_TICK
        if end - self._first > self._sound.size:
            capacity = KEPT_TICKS * SAMPLES_PER_TICK
            drop = max(end - capacity - self._first, 0)
            remaining = self._sound[drop:].copy()
            self._sound[: remaining.size], self._sound[remaining.size :] = remaining, 0
            self._first += drop
        places = (ticks[:, None] - 1) * SAMPLES_PER_TICK + np.arange(SAMPLES_PER_TICK)
        self._sound[places - self._first] = rows

    def look(self, tick: int, distances: Iterable[float] = ()) -> Repetition:
        """Find where the newest second, up to this tick, occurred before.

        ``distances``, in ticks, are those of repetitions that landmarks found.
        """
        end, before = tick * SAMPLES_PER_TICK, self._lag
        self._lag = self._find(end, [distance * SAMPLES_PER_TICK for distance in distances])
        intervals: list[tuple[int, int]] = []
        is_other = before is None or self._lag is None or abs(before - self._lag) > 2
        if before is not None and is_other:
            intervals = self._intervals(before, tick)
        if self._lag is not None:
            intervals += self._intervals(self._lag, tick)
        if self._lag is not None and not self._is_quiet(end):
            if intervals and intervals[-1][1] >= tick - _SMOOTHED_TICKS:
                intervals[-1] = intervals[-1][0], tick
            else:
                self._lag = None
        return Repetition(tuple(intervals), self._lag is not None)

    def _find(self, end: int, distances: list[float]) -> float | None:
        """Find the distance, in samples, at which the newest second occurred before, or None."""
        size = WINDOW_TICKS * SAMPLES_PER_TICK
        if end - size < self._first:
            return None
        if self._is_quiet(end):
            if self._lag is not None:  # a pause does not end a repetition
                return self._lag
            sizes = (times * size for times in _LONGER if end - times * size >= self._first)
            size = next((length for length in sizes if not self._is_quiet(end, length)), 0)
            if not size:
                return None
        window = self._part(end - size, end)
        if self._lag is not None:
            again = self._best(window, end, self._lag - 1, self._lag + 1)
            if again is not None:
                return again
        lag = self._best(window, end, _LEAST_LAG, SEARCHED_TICKS * SAMPLES_PER_TICK)
        for distance in distances:
            if lag is None:
                lag = self._best(window, end, distance - _NEAR, distance + _NEAR)
        return lag

    def _is_quiet(self, end: int, size: int = WINDOW_TICKS * SAMPLES_PER_TICK) -> bool:
        newest = self._part(end - size, end)
        return float(np.sum(newest * newest)) < _QUIET * WINDOW_TICKS * SAMPLES_PER_TICK

    def _best(self, window: FloatArray, end: int, low: float, high: float) -> float | None:
        """Return the shortest distance from low to high at which the window repeats, or None."""
        # the lags from low to high, with a margin
        first, last = int(np.floor(low)) - _REACH, int(np.ceil(high)) + _REACH
        start = end - window.size
        if first < 0:
            first = 0
        last = min(last, start - self._first)
        if last - first <= 2 * _REACH:
            return None
        past = self._part(start - last, end - first)
        products = _correlate(past, window)[::-1]  # by distance, from first on
        sums = np.concatenate(([0], np.cumsum(past * past, dtype=np.int32)))  # samples are whole
        power = (sums[window.size :] - sums[: -window.size])[::-1].astype(np.float32)
        scale = np.sqrt(np.maximum(power, _FAINT * window.size) * np.sum(window * window))
        inner = slice(_REACH, products.size - _REACH)
        coarse = (products / scale)[inner]
        best, lag = LEAST_CORRELATION, None
        # true peaks, between two samples, are up to two fifths higher
        for peak in _find_peaks(coarse, LEAST_CORRELATION / 2).tolist():
            around = products[peak : peak + 2 * _REACH + 1]
            between = _BETWEEN @ around / scale[peak + _REACH]
            fraction = int(np.argmax(between))
            distance = first + _REACH + peak + float(_FRACTIONS[fraction])
            if distance >= _LEAST_LAG and between[fraction] > best + (lag is not None) * _ALIKE:
                best, lag = float(between[fraction]), distance
        return lag

    def _intervals(self, lag: float, tick: int) -> list[tuple[int, int]]:
        """Return intervals of recent ticks with the audio at this distance before them."""
        earliest = round((self._first + lag) / SAMPLES_PER_TICK)
        start = max(tick - BACK_TICKS, earliest, 0)
        if tick - start < _SHORTEST_TICKS:
            return []
        now = self._part(start * SAMPLES_PER_TICK, tick * SAMPLES_PER_TICK)
        whole_lag = int(np.floor(lag))
        first = start * SAMPLES_PER_TICK - whole_lag
        early = self._part(first - _REACH, first + now.size + _REACH)
        then = np.convolve(early, _sinc(np.array(lag - whole_lag)), "valid")
        alike, *powers = (
            np.convolve(product.reshape(-1, SAMPLES_PER_TICK).sum(axis=1), _SMOOTH)[_HALF:-_HALF]
            for product in (now * then, now * now, then * then)
        )
        # levelling makes quiet audio louder at the beginning of a stream
        min_power = SAMPLES_PER_TICK * _SMOOTHED_TICKS
        again = alike > _LEAST_ALIKE * np.sqrt(np.prod(np.maximum(powers, min_power), axis=0))
        quiet = np.mean(powers, axis=0) < _QUIET * min_power
        runs = []
        for begin, last in _runs(again | quiet):
            loud = begin + np.flatnonzero((again & ~quiet)[begin:last])
            if loud.size >= _SHORTEST_TICKS:
                begin = max(begin, int(loud[0]) - _PAUSE_TICKS)
                pause = _PAUSE_TICKS if last < again.size else _OPEN_PAUSE_TICKS
                last = min(last, int(loud[-1]) + pause)
                runs.append((start + begin, start + last))
        return runs

    def _part(self, start: int, end: int) -> FloatArray:
        """Return samples of the stream from ``start`` on, and silence beyond both ends."""
        low, high = max(start, self._first), max(end, self._first)
        segment = self._sound[low - self._first : high - self._first].astype(np.float32)
        return np.pad(segment, (low - start, max(0, end - low - segment.size)))


_HALF = _SMOOTHED_TICKS // 2
_SMOOTH = np.ones(_SMOOTHED_TICKS, np.float32)


def _correlate(past: FloatArray, window: FloatArray) -> FloatArray:
    """Compute the products of a window with each part of the past, by overlap-save."""
    points = 4 << (window.size - 1).bit_length()  # these stay in a processor's cache
    step, count = points - window.size + 1, past.size - window.size + 1
    padded = np.pad(past, (0, -count % step))
    spectra = rfft(np.lib.stride_tricks.sliding_window_view(padded, points)[::step])
    spectra *= np.conj(rfft(window, points))
    return np.asarray(irfft(spectra, points)[:, :step].reshape(-1)[:count])


def _find_peaks(values: FloatArray, least: float) -> IntArray:
    """Return indices of local maxima above ``least``."""
    places = np.flatnonzero(values > least)
    padded = np.pad(values, 1, constant_values=-np.inf)
    is_peak = (values[places] >= padded[places]) & (values[places] >= padded[places + 2])
    return places[is_peak]


def _runs(marked: BoolArray) -> list[tuple[int, int]]:
    """Return runs (begin, end) of marked ticks, joined over short gaps."""
    runs: list[tuple[int, int]] = []
    for begin, last in find_runs(marked):
        if runs and begin - runs[-1][1] <= _GAP_TICKS:
            runs[-1] = runs[-1][0], last
        else:
            runs.append((begin, last))
    return runs
