"""Vowels of known pitch and formants, and how to find both in a sound."""

from __future__ import annotations

import math

import numpy as np
import soxr
from scipy.signal import lfilter

from monitor.features.f0 import F0, LOWEST_LAG
from monitor.features.f0 import RATE as F0_RATE
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
    heard = F0().process(soxr.resample(sound, rate, F0_RATE))
    return np.asarray(F0_RATE / (heard.values + LOWEST_LAG))
