"""The recursive high-pass filter of a stream."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from monitor.types import FloatArray

STOP_HZ = 61.0
"""Offset, rumble and the hum of mains of 50 or 60 Hz lie below."""
_ORDER, _STOP_DB = 7, 40.0


@lru_cache(maxsize=16)
def high_pass(rate: int) -> FloatArray:
    """Design a high-pass filter: Chebyshev's of type II, of order 7, 40 dB down from 61 Hz on.

    Second-order sections, (4, 6), for a rate above 160 Hz. An odd order stops a constant
    altogether. Above 80 Hz it changes nothing by more than 3 dB.
    """
    # analog zeros and poles of the low-pass filter, turned round, by the bilinear transform
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
    # nothing changes at half the rate, where z = -1
    signs = np.array([1, -1, 1])
    filter_sections[:, :3] *= ((filter_sections[:, 3:] @ signs) / (filter_sections[:, :3] @ signs))[
        :, None
    ]
    return filter_sections


def filter_stream(sections: FloatArray, samples: FloatArray, state: FloatArray) -> FloatArray:
    """Filter further samples, (n,), of a stream; any cutting gives the same, to the last bit.

    ``sections`` are those of `high_pass`, (k, 6). ``state``, (k, 2), starts with zeros and is
    changed in place.
    """
    if not samples.size:
        return samples.astype(np.float64)
    from scipy.signal import sosfilt  # slow to import

    filtered: FloatArray
    filtered, state[:] = sosfilt(sections, samples.astype(np.float64), zi=state)
    return filtered
