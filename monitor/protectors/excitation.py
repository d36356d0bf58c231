"""What a vocoder's filters are driven by: a train of pulses for the voice, noise for the breath."""

from __future__ import annotations

import numpy as np

from monitor.types import FloatArray

__all__ = ["Pulses", "minimum_phase"]

_UNVOICED_HERTZ = 100.0
"""Until the first voice is heard; nobody hears it."""


class Pulses:
    """A train of band-limited pulses of unit power whose pitch glides from frame to frame.

    All harmonics below half the rate are equally strong. Its phase goes on over pauses.

    Args:
        rate: samples per second.
        step: samples from one frame to the next.

    Example:
        >>> train = Pulses(16000, 80).next(np.full(201, 100.0))
        >>> train.size, round(float(np.mean(train**2)), 2), int(np.argmax(train[:160]))
        (16000, 1.0, 159)
    """

    def __init__(self, rate: int, step: int) -> None:
        self._rate, self._step = rate, step
        self._phase, self._last = 0.0, _UNVOICED_HERTZ

    def next(self, f0: FloatArray) -> FloatArray:
        """The next samples.

        Args:
            f0: Hz at the ends of each step, 0 where there is no voice, shape (steps + 1,).

        Returns:
            Shape (steps * step,).
        """
        begin = np.where(f0[:-1] > 0, f0[:-1], f0[1:])
        end = np.where(f0[1:] > 0, f0[1:], f0[:-1])
        for i in np.flatnonzero(begin == 0):
            begin[i] = end[i] = end[i - 1] if i else self._last
        self._last = float(end[-1])
        along = np.arange(self._step) / self._step
        hertz = begin[:, None] + (end - begin)[:, None] * along
        phase = self._phase + np.cumsum(hertz.ravel() / self._rate)
        self._phase = float(phase[-1] % 1.0)
        count = np.maximum(1, (0.499 * self._rate / np.maximum(begin, end)).astype(int))
        harmonics = np.repeat(count, self._step)
        fraction = phase - np.round(phase)
        below = np.sin(np.pi * fraction)
        peak = np.abs(below) < 1e-9
        ratio = np.sin((2 * harmonics + 1) * np.pi * fraction) / np.where(peak, 1.0, below)
        kernel = np.where(peak, 2.0 * harmonics + 1, ratio)
        return np.asarray((kernel - 1) / np.sqrt(2 * harmonics))


def minimum_phase(power: FloatArray) -> FloatArray:
    """The causal filters with these power spectra whose energy comes soonest, by the cepstrum.

    Args:
        power: above 0, shape (n, fft / 2 + 1).

    Returns:
        Complex responses of the same shape.

    Example:
        >>> late = np.abs(np.fft.rfft([[0.5, 1.0]], 64)) ** 2
        >>> np.fft.irfft(minimum_phase(late))[0, :3].round(6) + 0.0
        array([1. , 0.5, 0. ])
    """
    cepstrum = np.fft.irfft(np.log(power) / 2, axis=1)
    half = cepstrum.shape[1] // 2
    cepstrum[:, 1:half] *= 2
    cepstrum[:, half + 1 :] = 0
    return np.asarray(np.exp(np.fft.rfft(cepstrum, axis=1)))
