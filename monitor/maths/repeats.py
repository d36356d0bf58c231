"""Audio that a stream has had before, found by its waveform.

The same words spoken again have another waveform. Audio played again keeps its waveform through
another gain, another rate or a codec. So the newest second of a stream is correlated with
what came before it. The waveform is that from 150 to 950 Hz, every few periods of it at one level,
so that no single vowel outweighs the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.fft import irfft, rfft

from monitor.types import TICKS_PER_SECOND, BoolArray, FloatArray, IntArray

NAME = "waveform"
"""Name of its track, which `monitor.features.waveform` makes."""
SAMPLES_PER_TICK = 20
RATE = SAMPLES_PER_TICK * TICKS_PER_SECOND
LATE_TICKS = 25  # ticks after which the waveform of a moment has come
WINDOW_TICKS = TICKS_PER_SECOND
"""The newest audio, which is looked for; audio that repeats itself twice as long is found."""
BACK_TICKS = 12 * TICKS_PER_SECOND
"""How far back a repetition that is found is traced to its beginning."""
SEARCHED_TICKS = 25 * TICKS_PER_SECOND
"""Past in which every distance is tried; further back only where landmarks point to."""
KEPT_TICKS = 600 * TICKS_PER_SECOND
LEAST_CORRELATION = 0.8
"""The least for 1 s: Opus at 12 kb/s leaves 0.90, no two seconds of readers exceed 0.72."""
_ALIKE = 0.03  # correlations that differ by less are equal: then the shortest distance is taken
_LEAST_LAG = 0.06 * RATE  # shorter ones are periods of a voice, or multiples of one
_NEAR = round(0.25 * RATE)  # samples around a distance by landmarks
_QUIET = 0.35 * 32.0**2  # mean power of a waveform: pauses have less, speech more as a rule
_LONGER = (2, 3, 5, 8)  # windows in place of one that is quiet: of speech with long pauses
_FAINT = 0.02 * 32.0**2
_SMOOTHED_TICKS = 11
_LEAST_ALIKE = 0.5  # share of the power, in that many ticks, where audio repeats
_GAP_TICKS = 25  # shorter gaps are part of a repetition, and pauses in it
_PAUSE_TICKS = 50  # of a pause before or after, at most
_OPEN_PAUSE_TICKS = 200  # where it has not ended yet
_SHORTEST_TICKS = 60
_REACH = 16  # samples on both sides that a value between two samples is made of
_FRACTIONS = np.arange(-0.75, 0.76, 0.25)
_TAPS = np.arange(-_REACH, _REACH + 1)


def _sinc(fraction: FloatArray) -> FloatArray:
    """Return weights, shape (..., 33), of the samples around a place between two of them."""
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
        self._first = 0  # sample of the stream that is kept first
        self._lag: float | None = None  # samples, while it repeats

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
        """Look where the newest second, up to this tick, was before.

        Distances are where landmarks point to, in ticks.
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
        """Find the distance, samples, at which the newest second came before; None without."""
        size = WINDOW_TICKS * SAMPLES_PER_TICK
        if end - size < self._first:
            return None
        if self._is_quiet(end):
            if self._lag is not None:  # a pause is no other audio
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
        """Return the shortest distance between these where a window has its like; None without."""
        # the lags from low to high, and a margin
        first, last = int(np.floor(low)) - _REACH, int(np.ceil(high)) + _REACH
        start = end - window.size
        if first < 0:
            first = 0
        last = min(last, start - self._first)
        if last - first <= 2 * _REACH:
            return None
        past = self._part(start - last, end - first)
        products = _correlate(past, window)[::-1]  # by distance, from first on
        sums = np.concatenate(([0], np.cumsum(past * past, dtype=np.int32)))  # of whole numbers
        power = (sums[window.size :] - sums[: -window.size])[::-1].astype(np.float32)
        scale = np.sqrt(np.maximum(power, _FAINT * window.size) * np.sum(window * window))
        inner = slice(_REACH, products.size - _REACH)
        coarse = (products / scale)[inner]
        best, lag = LEAST_CORRELATION, None
        # peaks between two samples are up to two fifths higher
        for peak in _find_peaks(coarse, LEAST_CORRELATION / 2).tolist():
            around = products[peak : peak + 2 * _REACH + 1]
            between = _BETWEEN @ around / scale[peak + _REACH]
            fraction = int(np.argmax(between))
            distance = first + _REACH + peak + float(_FRACTIONS[fraction])
            if distance >= _LEAST_LAG and between[fraction] > best + (lag is not None) * _ALIKE:
                best, lag = float(between[fraction]), distance
        return lag

    def _intervals(self, lag: float, tick: int) -> list[tuple[int, int]]:
        """Return where the last ticks are those at this distance before them."""
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
        # at the beginning of a stream what is quiet may be louder than it is later
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
    """Find the values above a least one that are no smaller than those beside them."""
    places = np.flatnonzero(values > least)
    padded = np.pad(values, 1, constant_values=-np.inf)
    is_peak = (values[places] >= padded[places]) & (values[places] >= padded[places + 2])
    return places[is_peak]


def _runs(marked: BoolArray) -> list[tuple[int, int]]:
    """Return runs (begin, end) of what is marked, short gaps closed."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], marked, [False]))))
    runs: list[tuple[int, int]] = []
    for begin, last in edges.reshape(-1, 2).tolist():
        if runs and begin - runs[-1][1] <= _GAP_TICKS:
            runs[-1] = runs[-1][0], last
        else:
            runs.append((begin, last))
    return runs
