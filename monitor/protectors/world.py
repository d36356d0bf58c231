"""WORLD's analysis of a voice, frame by frame: pitch, spectral envelope, aperiodicity (pyworld).

Morise, Yokomori and Ozawa, WORLD: a vocoder-based high-quality speech synthesis system for
real-time applications, IEICE Transactions E99-D, 2016.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any

import numpy as np
from scipy.signal import resample_poly

from monitor.errors import UsageError
from monitor.types import FloatArray

__all__ = ["Analysis", "analysed", "pyworld"]

_LEAST_RATE = 16_000
"""D4C looks up to 7.9 kHz, also where there is nothing: slower audio is resampled for it."""
_DIO_RATE = 12_000
_LEAST_PEAK = 1e-30


@dataclass(frozen=True, slots=True)
class Analysis:
    """What a voice is made of, in frames.

    Attributes:
        f0: Hz, 0 where there is no voice, shape (frames + 1,): of the next frame, too.
        envelope: power spectrum with a mean of 1 over the circle, shape (frames, fft / 2 + 1).
        noise: share of the envelope's amplitude that is noise, 0 to 1, of the same shape.
    """

    f0: FloatArray
    envelope: FloatArray
    noise: FloatArray


@lru_cache(maxsize=1)
def pyworld() -> Any:
    """The compiled part of pyworld.

    Its package is not run: that only asks pkg_resources for a version number, which warns, and is
    gone from newer setuptools.

    Raises:
        UsageError: it is not installed.
    """
    package = find_spec("pyworld")
    found = package and PathFinder.find_spec("pyworld.pyworld", package.submodule_search_locations)
    if found is None or found.loader is None:
        raise UsageError(
            "pitch, formant, voice and whisper need pyworld: "
            "pip install 'speaker-disclosure-monitor[vocoder]'"
        )
    module = module_from_spec(found)
    found.loader.exec_module(module)
    return module


def analysed(samples: FloatArray, rate: int, step: int, first: int, frames: int) -> Analysis:
    """Take a stretch of a voice apart: DIO and StoneMask, CheapTrick, D4C, with their defaults.

    Args:
        samples: shape (n,); the pitch of a frame is found by what lies around it.
        rate: samples per second.
        step: samples from one frame to the next.
        first: the first frame, centred at sample ``first * step``.
        frames: how many.

    Raises:
        UsageError: pyworld is not installed.
    """
    world = pyworld()
    finer = 2 ** max(0, math.ceil(math.log2(_LEAST_RATE / rate)))
    size = world.get_cheaptrick_fft_size(rate * finer)
    bins = size // finer // 2 + 1
    peak = float(np.abs(samples).max(initial=0.0))
    if peak < _LEAST_PEAK:
        flat = np.ones((frames, bins))
        return Analysis(np.zeros(frames + 1), flat, flat)
    samples = samples / peak
    if finer > 1:
        samples = resample_poly(samples, finer, 1)
    rate *= finer
    speed = min(12, max(1, rate // _DIO_RATE))
    f0, times = world.dio(samples, rate, frame_period=1000 * step * finer / rate, speed=speed)
    wanted = slice(first, first + frames + 1)
    f0, times = f0[wanted].copy(), times[wanted].copy()
    f0 = world.stonemask(samples, f0, times, rate)
    of_frames = (samples, f0[:-1].copy(), times[:-1].copy(), rate)
    envelope = world.cheaptrick(*of_frames, fft_size=size)[:, :bins]
    noise = world.d4c(*of_frames, fft_size=size)[:, :bins]
    return Analysis(f0, normalised(envelope), noise)


def normalised(envelope: FloatArray) -> FloatArray:
    """Power spectra of half the circle, shape (frames, bins), with a mean of 1 over all of it."""
    ends = envelope[:, :1] + envelope[:, -1:]
    mean = (2 * envelope.sum(axis=1, keepdims=True) - ends) / (2 * envelope.shape[1] - 2)
    return np.asarray(envelope / mean)
