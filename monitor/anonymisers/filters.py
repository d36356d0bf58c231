"""Anonymisers in the time domain: noise and the McAdams coefficient."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np
from scipy.signal import lfilter

from monitor.errors import UsageError
from monitor.types import FloatArray

_LARGEST = 1e12  # larger samples are corrupt, and their squares overflow float32


def check_samples(samples: FloatArray) -> FloatArray:
    """Return the samples as float64, shape (n,); raise UsageError for NaN or infinity."""
    samples = np.asarray(samples, np.float64)
    if samples.ndim != 1:
        raise UsageError(f"invalid samples of shape {samples.shape}: pass one channel")
    if samples.size and not -_LARGEST <= samples.min() <= samples.max() <= _LARGEST:
        raise UsageError("samples are NaN or infinite. Repair the recording first")
    return samples


@dataclass(frozen=True, slots=True)
class Utterance:
    """One channel of one recording."""

    rate: int  # samples per second
    name: str = ""  # of the recording, the same in every run
    speaker: str | None = None  # None if unknown
    channel: int = 0  # from 0
    seed: int = 0  # seed of all random numbers
    timeout_seconds: float | None = None  # for a program; None for `Program`'s default

    def random(self, *whose: object) -> np.random.Generator:
        """Return a generator that depends only on the seed and the keys ``whose``."""
        digest = hashlib.sha256(repr((self.seed, *whose)).encode("utf-8", "replace")).digest()
        return np.random.default_rng(int.from_bytes(digest, "big"))


class Unchanged:
    """Anonymiser that returns the samples unchanged."""

    latency_samples = 0

    def __init__(self, rate: int) -> None:
        self.rate = rate

    def process(self, samples: FloatArray) -> FloatArray:
        """Return the samples as float32."""
        return check_samples(samples).astype(np.float32)

    def flush(self) -> FloatArray:
        """Return nothing."""
        return np.empty(0, np.float32)

    def reset(self) -> None:
        """Do nothing, since there is no state."""


_MEMORY_SECONDS = 0.5
_MOST_DECIBELS = 120.0


class Noise(Unchanged):
    """White Gaussian noise, ``snr`` decibels (-120 to 120) below the running power of the voice.

    A stream's overall level is unknown in advance. The noise therefore follows an exponential
    average of the power so far, with a time constant of half a second.
    """

    _power: FloatArray

    def __init__(self, snr: float, utterance: Utterance) -> None:
        if not abs(snr) <= _MOST_DECIBELS:
            raise UsageError(f"invalid signal-to-noise ratio {snr:g} dB: use -120 to 120")
        super().__init__(utterance.rate)
        self._gain = 10 ** (-snr / 10)
        self._utterance = utterance
        self._keeps = math.exp(-1 / (_MEMORY_SECONDS * self.rate))
        self.reset()

    def process(self, samples: FloatArray) -> FloatArray:
        """Add noise to the samples."""
        samples = check_samples(samples)
        if not samples.size:  # lfilter raises on empty input
            return np.empty(0, np.float32)
        numerator, denominator = [1 - self._keeps], [1, -self._keeps]
        squares = self._gain * samples**2
        power, self._power = lfilter(numerator, denominator, squares, zi=self._power)
        noise = np.sqrt(power) * self._random.standard_normal(samples.size)
        noisy: FloatArray = (samples + noise).astype(np.float32)
        return noisy

    def reset(self) -> None:
        """Restart, with the same noise."""
        utterance = self._utterance
        self._random = utterance.random("noise", utterance.name, utterance.channel)
        self._power = np.zeros(1)


# Patino, Tomashenko, Todisco, Nautsch and Evans, Speaker anonymisation using the McAdams
# coefficient, Interspeech 2021. Baseline B2 of the VoicePrivacy challenges. Implemented from the
# paper.

DRAWN = (0.5, 0.9)  # range of random coefficients
ORDER = 20
FRAME_SECONDS = 0.02
_REFERENCE_RATE = 16_000
LEAST, MOST = 0.1, 2.0
_CORRECTION = 1e-9  # white noise as a fraction of a frame's power: keeps a pure tone predictable


class McAdams:
    """Anonymiser that moves the formants of a voice, but not its pitch or timing.

    Linear prediction of order 20 splits half-overlapping frames of 20 ms into poles and a residual.
    The angle of each complex pole, in radians at 16 kHz for any rate, is raised to the power alpha,
    0.1 to 2. An alpha below 1 moves formants towards 2546 Hz (one radian) from both sides. The
    moved poles then filter the residual. Each frame keeps its energy, whereas the published system
    scales the whole recording to its peak.
    """

    def __init__(self, alpha: float, rate: int) -> None:
        if not LEAST <= alpha <= MOST:
            raise UsageError(f"invalid McAdams coefficient {alpha:g}: use {LEAST} to {MOST:g}")
        self.alpha, self.rate = alpha, rate
        self._hop = max(ORDER, round(rate * FRAME_SECONDS / 2))
        self.latency_samples = 2 * self._hop - 1
        # square root of a periodic Hann window at analysis and synthesis: the products sum to one
        self._window = np.sin(np.pi * np.arange(2 * self._hop) / (2 * self._hop))
        self.reset()

    def reset(self) -> None:
        """Restart."""
        self._rest: FloatArray = np.empty(0)
        self._before: FloatArray = np.zeros(self._hop)
        self._begun: FloatArray = np.zeros(self._hop)
        self._taken, self._first = 0, True

    def process(self, samples: FloatArray) -> FloatArray:
        """Return the output that these samples complete, by overlap-add."""
        samples = check_samples(samples)
        sound = np.concatenate((self._rest, samples))
        self._taken += len(samples)
        count = sound.size // self._hop
        self._rest = sound[count * self._hop :]
        if not count:
            return np.empty(0, np.float32)
        halves = sound[: count * self._hop].reshape(count, self._hop)
        before = np.concatenate((self._before[None], halves[:-1]))
        frames = self._window * np.hstack((before, halves))
        changed = self._window * self._move_formants(frames)
        # the first half of a frame is final, because later frames do not overlap it
        begun = np.concatenate((self._begun[None], changed[:-1, self._hop :]))
        output = (begun + changed[:, : self._hop]).astype(np.float32)
        self._before, self._begun = halves[-1].copy(), changed[-1, self._hop :].copy()
        if self._first:  # the first output precedes the recording
            output, self._first = output[1:], False
        return output.ravel()

    def flush(self) -> FloatArray:
        """Return the last frames, as if zeros followed."""
        missing = self._taken - self._hop * max(0, self._taken // self._hop - 1)
        return self.process(np.zeros(2 * self._hop - self._rest.size))[:missing]

    def _move_formants(self, frames: FloatArray) -> FloatArray:
        size = frames.shape[1]
        power = np.stack([
            np.einsum("ij,ij->i", frames[:, lag:], frames[:, : size - lag])
            for lag in range(ORDER + 1)
        ], axis=1)  # fmt: skip
        rows = np.flatnonzero(power[:, 0])
        if not rows.size:
            return frames
        frames_in, power = frames[rows], power[rows]
        lags = power / power[:, :1]
        lags[:, 0] += _CORRECTION
        predictors = fit_predictors(lags)
        residual = frames_in.copy()
        for k in range(1, ORDER + 1):
            residual[:, k:] += predictors[:, k, None] * frames_in[:, : size - k]
        output = frames.copy()
        poles = move_poles(predictors, self.alpha, self.rate)
        for row, pole, remainder, energy in zip(rows, poles, residual, power[:, 0], strict=True):
            sound = lfilter([1.0], pole, remainder)
            if loudness := float(sound @ sound):
                output[row] = sound * math.sqrt(energy / loudness)
        return output


def fit_predictors(lags: FloatArray) -> FloatArray:
    """Fit linear prediction to autocorrelations, (n, order + 1), by Levinson's recursion."""
    predictors = np.zeros_like(lags)
    predictors[:, 0] = 1.0
    error = lags[:, 0].copy()
    for k in range(1, lags.shape[1]):
        missing = np.einsum("ij,ij->i", predictors[:, :k], lags[:, k:0:-1])
        turn = -missing / error
        predictors[:, 1 : k + 1] += turn[:, None] * predictors[:, k - 1 :: -1][:, :k]
        error *= 1.0 - turn * turn
    return predictors


def move_poles(predictors: FloatArray, alpha: float, rate: int) -> FloatArray:
    """Raise the root angles of polynomials, shape (n, order + 1), to a power, in radians at 16 kHz.

    Radii are unchanged, except that those above 1 become 1. The result has the same shape.
    """
    count, order = predictors.shape[0], predictors.shape[1] - 1
    companion = np.zeros((count, order, order))
    companion[:, np.arange(1, order), np.arange(order - 1)] = 1.0
    companion[:, 0] = -predictors[:, 1:] / predictors[:, :1]
    roots = np.linalg.eigvals(companion)
    pole, real = roots.imag > 0, roots.imag == 0
    scale = rate / _REFERENCE_RATE
    angle = np.minimum(math.pi, (np.angle(np.where(pole, roots, 1.0)) * scale) ** alpha / scale)
    radius = np.minimum(np.abs(roots), 1.0)
    # a pole and its mirror image are (1, -2 r cos, r r), a real root is (1, -x)
    linear = np.where(pole, -2.0 * radius * np.cos(angle), np.where(real, -roots.real, 0.0))
    quadratic = np.where(pole, radius * radius, 0.0)
    moved = np.zeros_like(predictors)
    moved[:, 0] = 1.0
    for k in range(order):
        before = moved.copy()
        moved[:, 1:] += linear[:, k, None] * before[:, :-1]
        moved[:, 2:] += quadratic[:, k, None] * before[:, :-2]
    return moved
