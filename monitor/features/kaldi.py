"""Kaldi's log mel energies (fbank), the front end of WeSpeaker's and 3D-Speaker's networks."""

from __future__ import annotations

from functools import cache

import numpy as np

from monitor.maths.spectra import fft
from monitor.types import FloatArray

__all__ = ["Kaldi"]

_RATE = 16000
_FRAME, _STEP, _POINTS = 400, 160, 512
_LOWEST = 20.0
_EMPHASIS = 0.97
_FLOOR = float(np.finfo(np.float32).eps)
_FULL_SCALE = 32768.0


class Kaldi:
    """Energies as ``compute-fbank-feats`` gives them without dither (D. Povey et al., ASRU 2011).

    Frames of 25 ms every 10 ms that lie wholly inside (snip-edges), each less its mean,
    pre-emphasis 0.97, 512 points, 80 triangles in mel from 20 to 8000 Hz over powers, natural
    logarithm. Equal to ``torchaudio.compliance.kaldi.fbank`` to 1e-3.

    Args:
        hamming: Hamming's window, as WeSpeaker takes, in place of Povey's.
        whole_numbers: samples count up to 32768, as in a file of 16 bits, and not up to 1.
        centred: each band less its mean over the window.

    Example:
        >>> Kaldi().energies(np.zeros(16000, np.float32)).shape
        (98, 80)
    """

    bands = 80

    def __init__(
        self, *, hamming: bool = False, whole_numbers: bool = True, centred: bool = True
    ) -> None:
        phase = 2 * np.pi * np.arange(_FRAME) / (_FRAME - 1)
        self._window = 0.54 - 0.46 * np.cos(phase)
        if not hamming:
            self._window = (0.5 - 0.5 * np.cos(phase)) ** 0.85
        self._scale = _FULL_SCALE if whole_numbers else 1.0
        self._centred = centred

    def energies(self, sound: FloatArray) -> FloatArray:
        """Energies of sound, shape (n,), at 16 kHz: shape (frames, 80), float32."""
        every = np.lib.stride_tricks.sliding_window_view(sound, _FRAME)[::_STEP]
        frames = every.astype(np.float64) * self._scale
        frames -= frames.mean(axis=1, keepdims=True)
        before = np.concatenate([frames[:, :1], frames[:, :-1]], axis=1)
        frames = (frames - _EMPHASIS * before) * self._window
        spectra = fft.rfft(frames, _POINTS)[:, :-1]
        powers = spectra.real**2 + spectra.imag**2
        levels = np.log(np.maximum(powers @ _triangles(), _FLOOR))
        if self._centred:
            levels -= levels.mean(axis=0)
        made: FloatArray = levels.astype(np.float32)
        return made


@cache
def _triangles() -> FloatArray:
    """Weights of the bins, shape (256, 80)."""
    edges = np.linspace(_mel(_LOWEST), _mel(_RATE / 2), Kaldi.bands + 2)
    at = _mel(np.arange(_POINTS // 2) * _RATE / _POINTS)[:, None]
    left, centre, right = edges[:-2], edges[1:-1], edges[2:]
    made: FloatArray = np.maximum(
        0.0, np.minimum((at - left) / (centre - left), (right - at) / (right - centre))
    )
    return made


def _mel(hertz: float | FloatArray) -> FloatArray:
    return np.asarray(1127.0 * np.log1p(np.asarray(hertz) / 700.0))
