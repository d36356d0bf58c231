"""Fourier transforms of real numbers: the compiled part of ``scipy.fft``, by itself.

Its package copies every name of numpy, loads ``scipy.special`` for a transform that is not used
here and parses the docstrings of 200 functions, an eighth of the CPU of a start
(``benchmarks/runs.py``), and asks at every call whose array it is. The numbers are the same to
the last bit. A version of scipy that keeps its compiled part elsewhere is asked itself.
"""

from __future__ import annotations

import sys
from functools import cache, lru_cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any

import numpy as np

from monitor.types import AnyArray, FloatArray

_DIVIDED = 2  # by the length, as an inverse is


@cache
def compiled_part(name: str) -> Any:
    """Load a compiled module of scipy, by its full name, without its package; else None."""
    if name in sys.modules:
        return sys.modules[name]
    scipy = find_spec("scipy")
    folders = [] if scipy is None else scipy.submodule_search_locations or []
    inner = "/".join(name.split(".")[1:-1])
    spec = PathFinder.find_spec(name, [f"{folder}/{inner}" for folder in folders])
    if spec is None or spec.loader is None:
        return None
    try:
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError:
        return None
    # it cannot be loaded twice: whoever imports its package after us gets this one
    return sys.modules.setdefault(name, module)


def _pocketfft() -> Any:
    return compiled_part("scipy.fft._pocketfft.pypocketfft")


def rfft(x: AnyArray, n: int | None = None) -> AnyArray:
    """Transform each row: real (..., m) to complex (..., n // 2 + 1), of the same precision.

    Rows are cut to n numbers, or filled up with zeros; n is m where it is not given.
    """
    if (pocketfft := _pocketfft()) is None:
        from scipy.fft import rfft as transform

        return np.asarray(transform(x, n))
    spectrum: AnyArray = pocketfft.r2c(_of_length(x, n), axes=(-1,))
    return spectrum


def irfft(x: AnyArray, n: int) -> AnyArray:
    """Invert `rfft`: complex (..., m) to real (..., n)."""
    if (pocketfft := _pocketfft()) is None:
        from scipy.fft import irfft as transform

        return np.asarray(transform(x, n))
    cut = _of_length(x, n // 2 + 1)
    signal: AnyArray = pocketfft.c2r(cut, axes=(-1,), lastsize=n, forward=False, inorm=_DIVIDED)
    return signal


def dct_1(x: AnyArray) -> AnyArray:
    """Transform each row by cosines of type 1, in its place: real (..., m), m > 1."""
    if (pocketfft := _pocketfft()) is None:
        from scipy.fft import dct

        return np.asarray(dct(x, type=1, overwrite_x=True))
    transform: AnyArray = pocketfft.dct(x, type=1, axes=(-1,), out=x)
    return transform


def _of_length(x: AnyArray, n: int | None) -> AnyArray:
    """Cut rows to n numbers, or fill them up with zeros."""
    missing = 0 if n is None else n - x.shape[-1]
    if missing > 0:
        return np.concatenate([x, np.zeros((*x.shape[:-1], missing), x.dtype)], axis=-1)
    return x if n is None else x[..., :n]


# ------------------------------------------------------------------------------------------ filters
# Recursive filters of a stream: the compiled part of ``scipy.signal``, by itself.
#
# Its package takes half a second to import, and most of ``scipy`` with it.

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

    Of sections (k, 6), as of `high_pass`; the state, (k, 2), zeros at the beginning, is changed in
    place.
    """
    filtered: FloatArray = samples.astype(np.float64)
    if not filtered.size:
        return filtered
    compiled = compiled_part("scipy.signal._sosfilt")
    if compiled is None:
        from scipy.signal import sosfilt

        filtered, state[:] = sosfilt(sections, filtered, zi=state)
        return filtered
    compiled._sosfilt(sections, filtered[None], state[None])
    return filtered
