"""Log mel energies, what the networks hear and say: the same code in training and in running."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from monitor.errors import UsageError
from monitor.maths.spectra import fft
from monitor.types import FloatArray

__all__ = [
    "BANDS",
    "FFT",
    "FLOOR",
    "HOP",
    "RATE",
    "WIDTH",
    "filters",
    "frames_of",
    "log_mel",
    "window",
]

RATE = 16_000
BANDS = 40
WIDTH = 400
"""Samples a frame: 25 ms."""
HOP = 160
"""Samples from frame to frame: 10 ms."""
FFT = 512
_LOWEST_HZ, _HIGHEST_HZ = 20.0, 7600.0
FLOOR = 1e-6
"""Energy of a band in silence, of samples in -1 to 1: the rounding of 16 bits lies below."""


def frames_of(samples: int) -> int:
    """How many whole frames a sound has."""
    return 0 if samples < WIDTH else 1 + (samples - WIDTH) // HOP


def log_mel(sound: FloatArray, bands: int = BANDS) -> FloatArray:
    """Natural logarithm of the energy in mel bands, 20 to 7600 Hz, without padding.

    Args:
        sound: shape (..., n), samples in -1 to 1 at 16 kHz, n of 400 or more.
        bands: how many.

    Returns:
        shape (..., 1 + (n - 400) // 160, bands), float32. A frame depends on its own 400 samples.

    Raises:
        UsageError: shorter than a frame.

    Example:
        >>> tone = np.sin(2 * np.pi * 1000 * np.arange(RATE) / RATE)
        >>> bands = log_mel(tone)
        >>> bands.shape, int(bands.mean(axis=0).argmax())
        ((98, 40), 13)
    """
    if sound.shape[-1] < WIDTH:
        raise UsageError(f"a frame has {WIDTH} samples, not {sound.shape[-1]}")
    frames = sliding_window_view(np.asarray(sound, np.float32), WIDTH, axis=-1)[..., ::HOP, :]
    spectrum = fft.rfft(frames * window(), FFT, axis=-1)
    power = spectrum.real**2 + spectrum.imag**2
    return np.asarray(np.log(power @ filters(bands) + np.float32(FLOOR)), np.float32)


@cache
def window() -> FloatArray:
    """Hann's, over a frame: shape (400,)."""
    angle = 2 * np.pi * np.arange(WIDTH) / WIDTH
    return np.asarray(0.5 - 0.5 * np.cos(angle), np.float32)


@cache
def filters(bands: int = BANDS) -> FloatArray:
    """Triangles evenly spaced in mel (O'Shaughnessy, 1987), of height 1; shape (257, bands)."""
    lowest, highest = 2595 * np.log10(1 + np.array([_LOWEST_HZ, _HIGHEST_HZ]) / 700)
    edges = 700 * (10 ** (np.linspace(lowest, highest, bands + 2) / 2595) - 1)
    bins = np.arange(FFT // 2 + 1)[:, None] * (RATE / FFT)
    rising = (bins - edges[:-2]) / np.diff(edges)[:-1]
    falling = (edges[2:] - bins) / np.diff(edges)[1:]
    return np.asarray(np.clip(np.minimum(rising, falling), 0, None), np.float32)
