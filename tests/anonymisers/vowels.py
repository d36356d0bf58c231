"""Vowels of known pitch and formants, and how to find pitch, formants and loudness in a sound."""

import math

import numpy as np
import soxr
from scipy.signal import lfilter

from monitor.anonymisers.vocoder import scale_formants
from monitor.features.f0 import F0, LOWEST_LAG
from monitor.features.f0 import RATE as F0_RATE
from monitor.types import Track
from tests.sounds import RATE

FORMANTS = (600.0, 1500.0, 2500.0, 3500.0)


def vowel(rate: int = RATE, pitch: int = 100, seconds: float = 1.0) -> np.ndarray:
    """A train of pulses through four resonances."""
    sound = np.zeros(round(seconds * rate))
    sound[:: rate // pitch] = 1.0
    for hertz in FORMANTS:
        radius = math.exp(-math.pi * 90 / rate)
        sound = lfilter(
            [1], [1, -2 * radius * math.cos(2 * math.pi * hertz / rate), radius**2], sound
        )
    return np.asarray(0.3 * sound / np.abs(sound).max(), np.float32)


def peaks(sound: np.ndarray, rate: int = RATE, pitch: int = 100) -> np.ndarray:
    """Where the spectrum has its four resonances, Hz: the strongest harmonics, some way apart."""
    power = (
        np.abs(np.fft.rfft(sound[rate // 10 : rate // 10 + rate // 2] * np.hanning(rate // 2))) ** 2
    )
    harmonics = power[np.arange(1, 5000 // pitch) * pitch // 2]
    inner = harmonics[1:-1]
    tops = 1 + np.flatnonzero((inner > harmonics[:-2]) & (inner >= harmonics[2:]))
    chosen = sorted(tops, key=lambda i: -harmonics[i])[:4]
    return (np.sort(chosen) + 1.0) * pitch


def pitches(sound: np.ndarray, rate: int = RATE) -> np.ndarray:
    """Of every voiced 10 ms, Hz, as the monitor hears them."""
    return F0_RATE / (_heard(sound, rate).values + LOWEST_LAG)


def semitones_moved(before: np.ndarray, after: np.ndarray, rate: int = RATE) -> float:
    """The median over the 10 ms in which both are voiced; NaN where there is none."""
    one, other = _heard(before, rate), _heard(after, rate)
    _, here, there = np.intersect1d(one.ticks, other.ticks, return_indices=True)
    lags = (one.values[here] + LOWEST_LAG) / (other.values[there] + LOWEST_LAG)
    return float(12 * np.log2(np.median(lags))) if lags.size else np.nan


def _heard(sound: np.ndarray, rate: int) -> Track:
    return F0().process(soxr.resample(sound, rate, F0_RATE))


def formant_ratio(before: np.ndarray, after: np.ndarray) -> float:
    """By which the one's long-term envelope has to be stretched to look like the other's."""
    rows = np.stack([envelope(sound) for sound in (before, after)])
    inner = slice(25, 400)  # 400 Hz to 6.2 kHz
    rows -= rows[:, inner].mean(axis=1, keepdims=True)
    ratios = np.arange(0.7, 1.4, 0.01)
    stretched = (np.log(scale_formants(np.exp(rows[:1]), ratio))[0] for ratio in ratios)
    errors = [np.std((row - rows[1])[inner]) for row in stretched]
    return float(ratios[np.argmin(errors)])


def envelope(sound: np.ndarray) -> np.ndarray:
    """Mean log power of the loud frames, 513 bins, smoothed over 200 Hz."""
    frames = np.lib.stride_tricks.sliding_window_view(sound.astype(float), 1024)[::256]
    loud = frames[frames.std(axis=1) > 0.3 * frames.std()]
    power = np.abs(np.fft.rfft(loud * np.hanning(1024), axis=1)) ** 2
    smooth = np.apply_along_axis(np.convolve, 1, power, np.hanning(27), "same")
    return np.asarray(np.log(smooth + 1e-12).mean(axis=0))


def level(sound: np.ndarray) -> float:
    """In dB."""
    return float(10 * np.log10(np.mean(sound.astype(float) ** 2)))
