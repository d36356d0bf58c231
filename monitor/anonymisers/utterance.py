"""Recordings as an anonymiser sees them, and the samples that every anonymiser accepts."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np
from scipy.signal import lfilter

from monitor.errors import UsageError
from monitor.types import FloatArray

_LARGEST = 1e12  # larger ones come from broken memory, and their squares would leave float32


def check_samples(samples: FloatArray) -> FloatArray:
    """Return the samples as float64, shape (n,); refuse what is no number."""
    samples = np.asarray(samples, np.float64)
    if samples.ndim != 1:
        raise UsageError(f"an anonymiser takes one channel, not samples of shape {samples.shape}")
    if samples.size and not -_LARGEST <= samples.min() <= samples.max() <= _LARGEST:
        raise UsageError("a sample is no number (NaN or infinite); repair the recording first")
    return samples


@dataclass(frozen=True, slots=True)
class Utterance:
    """One channel of one recording.

    Attributes:
        rate: samples per second.
        name: of the recording, the same in every run.
        speaker: who speaks; None where nobody said.
        channel: from 0.
        seed: of everything that is drawn at random.
        timeout_seconds: that a program may take for it; None for what `Program` gives.
    """

    rate: int
    name: str = ""
    speaker: str | None = None
    channel: int = 0
    seed: int = 0
    timeout_seconds: float | None = None

    def random(self, *whose: object) -> np.random.Generator:
        """Return a generator that depends on the seed and ``whose`` draws these are alone.

        Example:
            >>> monday, tuesday = Utterance(16000, "monday"), Utterance(16000, "tuesday")
            >>> monday.random("ann").random() == tuesday.random("ann").random()
            True
            >>> monday.random("ann").random() == monday.random("bob").random()
            False
        """
        digest = hashlib.sha256(repr((self.seed, *whose)).encode("utf-8", "replace")).digest()
        return np.random.default_rng(int.from_bytes(digest, "big"))


class Unchanged:
    """Anonymiser that gives the samples back as they are.

    Example:
        >>> Unchanged(16000).process(np.array([0.5, -0.5]))
        array([ 0.5, -0.5], dtype=float32)
    """

    latency_samples = 0

    def __init__(self, rate: int) -> None:
        self.rate = rate

    def process(self, samples: FloatArray) -> FloatArray:
        """Return them as float32."""
        return check_samples(samples).astype(np.float32)

    def flush(self) -> FloatArray:
        """Return nothing."""
        return np.empty(0, np.float32)

    def reset(self) -> None:
        """Do nothing: there is no state."""


MEMORY_SECONDS = 0.5
MOST_DECIBELS = 120.0


class Noise:
    """White Gaussian noise whose power follows the voice's, so many decibels below it.

    A stream does not know how loud it will have been: the noise stands to the mean power of what
    was heard so far, forgetting exponentially with a time constant of half a second. Over a whole
    recording the ratio is the one asked for; before the first sound there is no noise.

    Args:
        snr: signal-to-noise ratio in dB, -120 to 120.
        utterance: its rate, and what the noise is drawn by: seed, name and channel.

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
        """Add noise to the samples."""
        samples = check_samples(samples)
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
        """Return nothing."""
        return np.empty(0, np.float32)

    def reset(self) -> None:
        """Begin again, with the same noise."""
        utterance = self._utterance
        self._random = utterance.random("noise", utterance.name, utterance.channel)
        self._power = np.zeros(1)
