"""White noise beside the voice, at a signal-to-noise ratio."""

from __future__ import annotations

import math

import numpy as np
from scipy.signal import lfilter

from monitor.errors import UsageError
from monitor.protectors.samples import checked
from monitor.protectors.utterance import Utterance
from monitor.types import FloatArray

__all__ = ["Noise"]

MEMORY_SECONDS = 0.5
MOST_DECIBELS = 120.0


class Noise:
    """Adds white Gaussian noise whose power follows the voice's, so many decibels below it.

    A stream does not know how loud it will have been: the noise stands to the mean power of what
    was heard so far, forgetting exponentially with a time constant of half a second. Over a whole
    recording the ratio is the one asked for; before the first sound there is no noise.

    Args:
        snr: signal-to-noise ratio in dB, -120 to 120.
        utterance: its rate, and what the noise is drawn by: seed, name and channel.

    Attributes:
        rate: samples per second.

    Raises:
        UsageError: the ratio is none.

    Example:
        >>> heard = np.ones(160000)
        >>> noise = Noise(10.0, Utterance(16000)).process(heard) - heard
        >>> round(10 * np.log10(np.mean(heard**2) / np.mean(noise**2)))
        10
    """

    latency_samples = 0
    _power: FloatArray

    def __init__(self, snr: float, utterance: Utterance) -> None:
        if not abs(snr) <= MOST_DECIBELS:
            raise UsageError(f"a signal-to-noise ratio of {snr:g} dB is none; give -120 to 120")
        self.rate = utterance.rate
        self._gain = 10 ** (-snr / 10)
        self._utterance = utterance
        self._keeps = math.exp(-1 / (MEMORY_SECONDS * self.rate))
        self.reset()

    def process(self, samples: FloatArray) -> FloatArray:
        """The samples with noise."""
        samples = checked(samples)
        if not samples.size:  # scipy refuses to filter nothing
            return np.empty(0, np.float32)
        numerator, denominator = [1 - self._keeps], [1, -self._keeps]
        power, self._power = lfilter(
            numerator, denominator, self._gain * samples**2, zi=self._power
        )
        noise = np.sqrt(power) * self._random.standard_normal(samples.size)
        noisy: FloatArray = (samples + noise).astype(np.float32)
        return noisy

    def flush(self) -> FloatArray:
        """Nothing."""
        return np.empty(0, np.float32)

    def reset(self) -> None:
        """Begin again, with the same noise."""
        self._random = self._utterance.random(
            "noise", self._utterance.name, self._utterance.channel
        )
        self._power = np.zeros(1)
