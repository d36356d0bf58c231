"""Levelling of a recording to one loudness, and removal of its offset and hum."""

from __future__ import annotations

from collections import deque
from functools import lru_cache
from itertools import islice

import numpy as np
from scipy.fft import irfft, rfft

from monitor.features.framing import attributes_without
from monitor.types import TICKS_PER_SECOND, FloatArray

LEVEL_DB = -16.0  # of the loudest syllable, relative to full scale, as for the shipped readers
MOST_GAIN_DB = 40.0  # enough for speech at -60 dBFS, but not for the noise of 16 bits
HELD_TICKS = 120  # maximum sound that is held until the first syllable is complete
_SETTLING_TICKS = 80  # from the beginning of the first syllable until its level is trusted
_FAINTER_DB = 8.0  # a syllable this much below later ones within that time is not yet the voice
_LEAD_TICKS = 3  # ticks before the first syllable that are output with it
_REMEMBERED_SECONDS = 60  # seconds with syllables, of which the loudest sets the gain
_LOUDNESS_TICKS, _CONTRAST_TICKS = 10, 5  # over which levels are averaged
_CONTRAST_DB = 5.0  # minimum rise and fall of a syllable
_FLUTTER_DB = 2.0  # variation of the level of noise
_ONSET_TICKS = 40  # maximum time from noise to the peak of a syllable
_LEAST_TICKS = 7  # minimum length of a syllable; a click is shorter
_LEAST_VOICING = 0.6  # nine in ten syllables in any tested noise have more; noise has 0.4
_WHISPERED = 3  # unvoiced syllables within `HELD_TICKS`, at least this loud, that count as speech
_WHISPERED_DB = -50.0
_LEAST_POWER = 1e-10
_BAND_HZ = (1000.0, 3400.0)
_PITCH_HZ = (80.0, 400.0)
_VOICING_RATE = 8000
_VOICING_SECONDS, _VOICED_FRAMES = 0.04, 2


STOP_HZ = 61.0  # offset, rumble and mains hum of 50 or 60 Hz are below
_ORDER, _STOP_DB = 7, 40.0


@lru_cache(maxsize=16)
def high_pass(rate: int) -> FloatArray:
    """Design a Chebyshev type II high-pass filter of order 7, with at least 40 dB below 61 Hz.

    It has second-order sections, (4, 6), for a rate above 160 Hz. An odd order removes a constant
    completely. Above 80 Hz, levels change by at most 3 dB.
    """
    # analog zeros and poles of the low-pass filter, inverted, by the bilinear transform
    angles = np.pi / (2 * _ORDER) * np.arange(-_ORDER + 1, _ORDER, 2)
    ellipticity = np.arcsinh(np.sqrt(10 ** (_STOP_DB / 10) - 1)) / _ORDER
    edge = 2 * rate * np.tan(np.pi * STOP_HZ / rate)
    poles = -edge * (
        np.sinh(ellipticity) * np.cos(angles) + 1j * np.cosh(ellipticity) * np.sin(angles)
    )
    zeros = 1j * edge * np.sin(angles)
    zeros, poles = ((2 * rate + x) / (2 * rate - x) for x in (zeros, poles))
    upper = angles > 1e-9
    pairs = [*zip(zeros[upper], poles[upper], strict=True)]
    sections = [[1, -2 * z.real, abs(z) ** 2, 1, -2 * p.real, abs(p) ** 2] for z, p in pairs]
    single = _ORDER // 2
    sections.insert(0, [1, -1, 0, 1, -poles[single].real, 0])
    filter_sections = np.array(sections)
    # unit gain at half the rate, where z = -1
    signs = np.array([1, -1, 1])
    filter_sections[:, :3] *= ((filter_sections[:, 3:] @ signs) / (filter_sections[:, :3] @ signs))[
        :, None
    ]
    return filter_sections


def filter_stream(sections: FloatArray, samples: FloatArray, state: FloatArray) -> FloatArray:
    """Filter further samples, (n,), of a stream: float64, the same for any division of it.

    ``sections`` are second-order sections, (k, 6). ``state``, (k, 2), starts with zeros and is
    changed in place.
    """
    if not samples.size:
        return samples.astype(np.float64)
    from scipy.signal import sosfilt  # slow to import

    filtered: FloatArray
    filtered, state[:] = sosfilt(sections, samples.astype(np.float64), zi=state)
    return filtered


class HighPass:
    """Filter that removes offset and hum from one recording (`high_pass`)."""

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


class Syllables:
    """Finder of syllables by the rise and fall of the level, which noise lacks.

    Before its first tick, the recording counts as silent.
    """

    def __init__(self) -> None:
        self.loudest_db = -np.inf  # peak level of the current syllable, or of the last one
        self._levels: deque[float] = deque(maxlen=HELD_TICKS)
        self._tick = self._risen = self._peak = 0
        self._rises = True  # whether a syllable is in progress
        self._highest, self._lowest = -np.inf, np.inf  # since it began; since the last one ended

    @property
    def goes_on(self) -> bool:
        """True if the level has risen and not fallen yet."""
        return self._rises

    @property
    def begin(self) -> int:
        """Tick before the peak at which the syllable began: the last one as low as noise."""
        peak = len(self._levels) - (self._tick - self._peak)
        before = [*islice(self._levels, max(peak - _ONSET_TICKS, 0), max(peak, 0) + 1)]
        ceiling = min(before) + _FLUTTER_DB
        return self._peak - next(k for k, level in enumerate(reversed(before)) if level <= ceiling)

    def finish(self) -> bool:
        """Return whether the end of the recording completes a syllable."""
        return self._rises and self._tick - self._risen >= _LEAST_TICKS

    def add(self, contrast_db: float, loudness_db: float) -> bool:
        """Add a tick's levels, in the formant band and overall; True if it ends a syllable."""
        tick, self._tick = self._tick, self._tick + 1
        self._levels.append(contrast_db)
        self._lowest = min(self._lowest, contrast_db)
        if not self._rises:
            if contrast_db - self._lowest < _CONTRAST_DB:
                return False
            self._rises, self._risen = True, tick
            self._highest = self.loudest_db = -np.inf
        if contrast_db > self._highest:
            self._highest, self._peak = contrast_db, tick
        self.loudest_db = max(self.loudest_db, loudness_db)
        if self._highest - contrast_db < _CONTRAST_DB:
            return False
        self._rises, self._lowest = False, contrast_db
        return tick - self._risen >= _LEAST_TICKS


class Leveller:
    """Leveller of one recording: its loudest syllable of the last minute gets `LEVEL_DB`.

    A recording ten times as loud gives the same samples. The output is silent until the first
    syllable is complete, and then contains that syllable from its beginning. Noise alone is
    never amplified. Only seconds with syllables count as time, so a pause changes no gain. The gain
    changes linearly from tick to tick. The output does not depend on the division into blocks.
    """

    def __init__(self, rate: int) -> None:
        self._rate, self._size = rate, max(1, round(rate / TICKS_PER_SECOND))
        self._ramp = np.arange(1, self._size + 1, dtype=np.float32) / np.float32(self._size)
        self._sections = _formant_band(rate)
        self._state = np.zeros((len(self._sections), 2))
        self._rest = np.empty(0, np.float32)
        self._held = np.empty((0, self._size), np.float32)  # ticks before the first syllable
        self._band: deque[FloatArray] = deque(maxlen=HELD_TICKS)  # of the last ticks
        self._powers: FloatArray = np.empty((0, 2))  # of the last ticks
        self._syllables = Syllables()
        self._whispered: deque[int] = deque(maxlen=_WHISPERED)  # ticks of syllables without pitch
        self._ticks = self._second = 0
        self._is_open = False
        self._rises: list[tuple[int, float]] = []  # begin and loudness of syllables, until open
        self._first = 0  # tick of the first syllable in the output
        self._loudest: deque[float] = deque(maxlen=_REMEMBERED_SECONDS)  # of each second
        self._reference = -np.inf  # the largest of these
        self._gain = np.float32(0)  # at the last tick of output
        self._voicing = 0.0  # of a syllable in progress at a snapshot
        self._silent = 0, 0  # numbers of ticks held at a snapshot

    def snapshot_attributes(self) -> dict[str, object]:
        """Return the attributes that a snapshot keeps; held sound becomes silence, except 10 ms.

        This loses up to 1.2 s of sound before the first syllable.
        """
        voicing = 0.0
        if self._syllables.goes_on and self._band:
            voicing = max(self._voicing, measure_voicing(self._current_syllable(), self._rate))
        attributes = attributes_without(self, "_held", "_band", "_ramp", "_sections")
        return {**attributes, "_silent": (len(self._held), len(self._band)), "_voicing": voicing}

    def resume(self) -> None:
        """Continue from a snapshot's attributes."""
        held_samples, band = (
            np.zeros((min(count, HELD_TICKS), self._size)) for count in self._silent
        )
        self._held = held_samples.astype(np.float32)
        self._band.extend(band)

    def process(self, samples: FloatArray) -> FloatArray:
        """Level the ticks that further samples, shape (n,), complete: whole ticks, float32."""
        sound = np.concatenate((self._rest, samples), dtype=np.float32)
        size = sound.size - sound.size % self._size
        self._rest = sound[size:].copy()
        if not size:
            return sound[:0]
        ticks = sound[:size].reshape(-1, self._size)
        gains = self._measure_gains(ticks)
        waiting = int(np.count_nonzero(np.isnan(gains)))
        if waiting == len(ticks):
            return self._wait(ticks)
        if waiting or len(self._held):
            ticks = np.concatenate((self._held, ticks))
            opening = self._open_with(gains[waiting], len(self._held) + waiting, len(ticks))
            gains = np.concatenate((opening, gains[waiting:]))
            self._held = self._held[:0]
        return self._amplify(ticks, gains)

    def flush(self) -> FloatArray:
        """Level the last samples and held ones, which are silenced without a syllable."""
        missing = -self._rest.size % self._size
        levelled = self.process(np.zeros(missing, np.float32))
        if count := len(self._held):
            if self._syllables.finish():
                self._judge()
            gains: FloatArray = np.zeros(count)
            if self._opens(ends=True):
                gains = self._open_with(self._compute_gain(), count, count)
            levelled = np.concatenate((levelled, self._amplify(self._held, gains)))
            self._held = self._held[:0]
        return levelled[: levelled.size - missing]

    def _wait(self, ticks: FloatArray) -> FloatArray:
        """Hold ticks until there is a syllable; return silence for those held too long."""
        waiting = np.concatenate((self._held, ticks))
        over = max(len(waiting) - HELD_TICKS, 0)
        self._held = waiting[over:].copy()
        return np.zeros(over * self._size, np.float32)

    def _open_with(self, gain: float, opening: int, count: int) -> FloatArray:
        """Return the gains of the first ``opening`` of the last ``count`` ticks.

        They are 0 before the first syllable.
        """
        begin = self._first - _LEAD_TICKS - (self._ticks - count)
        gains = np.full(opening, gain)
        gains[: max(begin, opening + 1 - HELD_TICKS, 0)] = 0
        return gains

    def _amplify(self, ticks: FloatArray, gains: FloatArray) -> FloatArray:
        before = np.append(self._gain, gains[:-1])
        before = np.where(before == 0, gains, before)  # the first syllable begins at once
        self._gain = gains[-1]
        ramps = before[:, None] + (gains - before)[:, None] * self._ramp
        return np.asarray(ticks * ramps).ravel()

    def _measure_gains(self, ticks: FloatArray) -> FloatArray:
        """Compute the gain at the end of each further tick; NaN before the first syllable."""
        band = filter_stream(self._sections, ticks.ravel(), self._state).reshape(ticks.shape)
        levels = self._measure_levels(band, ticks)
        gains, is_long = [], len(band) > 2 * HELD_TICKS  # views would keep the whole block
        for tick, (contrast, loudness) in zip(band, levels.tolist(), strict=True):
            self._ticks += 1
            self._band.append(tick.copy() if is_long else tick)
            if self._syllables.add(contrast, loudness):
                self._judge()
            gains.append(self._compute_gain() if self._is_open or self._opens() else np.nan)
        return np.array(gains, np.float32)

    def _measure_levels(self, band: FloatArray, ticks: FloatArray) -> FloatArray:
        """Measure levels for `Syllables.add` at each tick, shape (n, 2), in decibels."""
        powers = [np.square(sound, dtype=np.float64).mean(axis=1) for sound in (band, ticks)]
        now = np.stack(powers, axis=1)
        before = self._powers if len(self._powers) else np.repeat(now[:1], _LOUDNESS_TICKS, axis=0)
        lately = np.concatenate((before, now))
        self._powers = lately[-_LOUDNESS_TICKS:]
        levels = np.empty((len(ticks), 2))
        for column, count in enumerate((_CONTRAST_TICKS, _LOUDNESS_TICKS)):
            windows = np.lib.stride_tricks.sliding_window_view(lately[1:, column], count)
            levels[:, column] = windows[len(windows) - len(ticks) :].mean(axis=1)
        return 10 * np.log10(np.maximum(levels, _LEAST_POWER))

    def _judge(self) -> None:
        """Count a complete rise and fall of the level if it is a syllable."""
        loudest, second = self._syllables.loudest_db, self._ticks // TICKS_PER_SECOND
        if self._is_open and second == self._second and loudest <= self._loudest[-1]:
            return
        voicing = max(measure_voicing(self._current_syllable(), self._rate), self._voicing)
        self._voicing = 0.0
        if voicing < _LEAST_VOICING:
            if loudest < _WHISPERED_DB:
                return
            self._whispered.append(self._ticks)
            lately = self._ticks - self._whispered[0] <= HELD_TICKS
            if not (lately and len(self._whispered) == _WHISPERED):
                return
        if not self._is_open:
            self._rises.append((self._syllables.begin, loudest))
        if self._loudest and second == self._second:
            self._loudest[-1] = max(self._loudest[-1], loudest)
        else:
            self._loudest.append(loudest)
        self._second, self._reference = second, max(self._loudest)

    def _current_syllable(self) -> FloatArray:
        first = max(len(self._band) - (self._ticks - self._syllables.begin), 0)
        return np.concatenate([*islice(self._band, first, None)])

    def _opens(self, *, ends: bool = False) -> bool:
        """Return whether the first syllables are known well enough, or all of them are known."""
        if not self._rises:
            return False
        rises = list(self._rises)
        if self._syllables.goes_on:
            rises.append((self._syllables.begin, self._syllables.loudest_db))
        minimum = max(loudest for _, loudest in rises) - _FAINTER_DB
        self._first = next(begin for begin, loudest in rises if loudest >= minimum)
        self._is_open = ends or self._ticks - self._first >= _SETTLING_TICKS
        return self._is_open

    def _compute_gain(self) -> float:
        loudest = self._reference
        if self._syllables.goes_on:
            loudest = max(loudest, self._syllables.loudest_db)
        return float(10 ** (min(LEVEL_DB - loudest, MOST_GAIN_DB) / 20))


def measure_voicing(sound: FloatArray, rate: int) -> float:
    """Measure how periodic the most periodic frames of sound, shape (n,), are: 0 to 1.

    It is the normalised autocorrelation at the best pitch period, divided by the window's, and the
    second highest over all frames.
    """
    sound = sound[:: max(rate // _VOICING_RATE, 1)]
    rate //= max(rate // _VOICING_RATE, 1)
    window, window_correlation = _voicing_window(rate)
    if sound.size < window.size:
        return 0.0
    frames = np.lib.stride_tricks.sliding_window_view(sound, window.size)[:: window.size // 2]
    frames = (frames - frames.mean(axis=1, keepdims=True)) * window
    shortest, longest = (round(rate / hertz) for hertz in reversed(_PITCH_HZ))
    correlations = _autocorrelate(frames)
    powers = np.maximum(correlations[:, :1], 1e-20)
    best = (correlations[:, shortest:longest] / powers / window_correlation[shortest:longest]).max(
        axis=1
    )
    return float(np.sort(best)[-min(_VOICED_FRAMES, best.size)])


@lru_cache(maxsize=16)
def _voicing_window(rate: int) -> tuple[FloatArray, FloatArray]:
    """Return the window of a frame, and its normalised autocorrelation."""
    window = np.hanning(round(_VOICING_SECONDS * rate))
    autocorrelation = _autocorrelate(window[None])[0]
    return window, autocorrelation / autocorrelation[0]


def _autocorrelate(frames: FloatArray) -> FloatArray:
    size = frames.shape[1]
    spectra = rfft(frames, 1 << (2 * size - 1).bit_length())
    return np.asarray(irfft(np.abs(spectra) ** 2)[:, :size])


@lru_cache(maxsize=16)
def _formant_band(rate: int) -> FloatArray:
    """Design a filter of the band in which speech rises and falls most: second-order sections."""
    from scipy.signal import butter  # slow to import

    low, high = _BAND_HZ
    nyquist = rate / 2
    sections = butter(1, min(low, nyquist / 2), "high", fs=rate, output="sos")
    if high < 0.9 * nyquist:
        sections = np.concatenate([sections, butter(2, high, "low", fs=rate, output="sos")])
    return np.asarray(sections)
