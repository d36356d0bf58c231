"""The McAdams coefficient: formants moved by raising the angles of LPC poles to a power."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.signal import lfilter

from monitor.anonymisers.utterance import check_samples
from monitor.errors import UsageError
from monitor.types import FloatArray


class OverlapAdd:
    """Frames of 2 x ``hop`` samples every ``hop``, through a function of each frame alone.

    Windows are square roots of a periodic Hann window, before the function and after it: their
    products add up to one, and a function that changes nothing gives the samples back.

    Args:
        hop: half a frame, in samples.
        change: from windowed frames, shape (n, 2 x hop), to as many; a frame must not depend on
            those beside it.

    Attributes:
        latency_samples: by how many what comes out lags behind, at most.

    Example:
        >>> frames = OverlapAdd(4, lambda frame: frame)
        >>> blocks = [frames.process(np.arange(10.0)), frames.flush()]
        >>> [block.size for block in blocks], np.concatenate(blocks).round(6).tolist()
        ([4, 6], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])
    """

    def __init__(self, hop: int, change: Callable[[FloatArray], FloatArray]) -> None:
        self._hop, self._change = hop, change
        self.latency_samples = 2 * hop - 1
        self._window = np.sin(np.pi * np.arange(2 * hop) / (2 * hop))
        self.reset()

    def reset(self) -> None:
        """Begin again."""
        self._rest: FloatArray = np.empty(0)
        self._before: FloatArray = np.zeros(self._hop)
        self._begun: FloatArray = np.zeros(self._hop)
        self._taken, self._first = 0, True

    def process(self, samples: FloatArray) -> FloatArray:
        """Return what is complete after these samples, shape (n,): shape (m,), float64."""
        sound = np.concatenate((self._rest, samples))
        self._taken += len(samples)
        count = sound.size // self._hop
        self._rest = sound[count * self._hop :]
        if not count:
            return np.empty(0)
        halves = sound[: count * self._hop].reshape(count, self._hop)
        before = np.concatenate((self._before[None], halves[:-1]))
        changed = self._window * self._change(self._window * np.hstack((before, halves)))
        # no later frame reaches back to the first half of one
        begun = np.concatenate((self._begun[None], changed[:-1, self._hop :]))
        output: FloatArray = begun + changed[:, : self._hop]
        self._before, self._begun = halves[-1].copy(), changed[-1, self._hop :].copy()
        if self._first:  # it is of the time before
            output, self._first = output[1:], False
        return output.ravel()

    def flush(self) -> FloatArray:
        """Return the rest, as if zeros followed; then `reset`."""
        missing = self._taken - self._hop * max(0, self._taken // self._hop - 1)
        padded = self.process(np.zeros(2 * self._hop - self._rest.size))
        return padded[:missing]


# Patino, Tomashenko, Todisco, Nautsch and Evans, Speaker anonymisation using the McAdams
# coefficient, Interspeech 2021; baseline B2 of the VoicePrivacy challenges. Written from that
# description.

DRAWN = (0.5, 0.9)  # between which coefficients are drawn
ORDER = 20
FRAME_SECONDS = 0.02
REFERENCE_RATE = 16_000
LEAST, MOST = 0.1, 2.0
_CORRECTION = 1e-9  # of a frame's power, as white noise: a pure tone has a prediction, too


class McAdams:
    """Anonymiser that moves the formants of a voice, and leaves pitch and timing.

    Frames of 20 ms, half overlapping, are split by linear prediction of order 20 into poles and a
    residual. The angle of each pole that is not real, in radians at 16 kHz whatever the rate, is
    raised to the power alpha: below 1 what lies under 2546 Hz (one radian) moves up and what lies
    above it down. The residual is filtered by the moved poles, and each frame keeps the energy that
    it had, where the published system scales the whole recording to its peak.

    Args:
        alpha: the coefficient, 0.1 to 2; 1 changes nothing.
        rate: samples per second.

    Attributes:
        latency_samples: one less than a frame.

    Raises:
        UsageError: the coefficient is none.

    Example:
        >>> moved = McAdams(0.8, 16000)
        >>> parts = [moved.process(np.ones(1000)), moved.flush()]
        >>> moved.latency_samples, [part.size for part in parts]
        (319, [800, 200])
    """

    def __init__(self, alpha: float, rate: int) -> None:
        if not LEAST <= alpha <= MOST:
            raise UsageError(
                f"a McAdams coefficient of {alpha:g} is none; give {LEAST} to {MOST:g}"
            )
        self.alpha, self.rate = alpha, rate
        self._frames = OverlapAdd(max(ORDER, round(rate * FRAME_SECONDS / 2)), self._move_formants)
        self.latency_samples = self._frames.latency_samples

    def process(self, samples: FloatArray) -> FloatArray:
        """Return what is complete after these samples."""
        return self._frames.process(check_samples(samples)).astype(np.float32)

    def flush(self) -> FloatArray:
        """Return the last frames."""
        return self._frames.flush().astype(np.float32)

    def reset(self) -> None:
        """Begin again."""
        self._frames.reset()

    def _move_formants(self, frames: FloatArray) -> FloatArray:
        """Move the formants of frames, shape (n, samples)."""
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
    """Fit linear prediction to autocorrelations, (n, order + 1): as many polynomials 1, a_1, ...

    Levinson's recursion, as Durbin has it, of many frames at once.

    Example:
        >>> fit_predictors(np.array([[1.0, 0.5, 0.25]]))
        array([[ 1. , -0.5,  0. ]])
    """
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
    """Raise the angles of polynomials' roots, (n, order + 1), at 16 kHz to a power: as many.

    Radii are kept, but none lies outside of the unit circle.
    """
    count, order = predictors.shape[0], predictors.shape[1] - 1
    companion = np.zeros((count, order, order))
    companion[:, np.arange(1, order), np.arange(order - 1)] = 1.0
    companion[:, 0] = -predictors[:, 1:] / predictors[:, :1]
    roots = np.linalg.eigvals(companion)
    pole, real = roots.imag > 0, roots.imag == 0
    scale = rate / REFERENCE_RATE
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
