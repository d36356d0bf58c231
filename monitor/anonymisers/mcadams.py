"""The McAdams coefficient: formants moved by raising the angles of LPC poles to a power."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.linalg import solve_toeplitz
from scipy.signal import lfilter

from monitor.anonymisers.utterance import checked
from monitor.errors import UsageError
from monitor.types import FloatArray


class OverlapAdd:
    """Frames of 2 x ``hop`` samples every ``hop``, each through a function of its own frame alone.

    Windows are square roots of a periodic Hann window, before the function and after it: their
    products add up to one, and a function that changes nothing gives the samples back.

    Args:
        hop: half a frame, in samples.
        change: from a windowed frame, shape (2 x hop,), to one of the same shape.

    Attributes:
        latency_samples: by how many what comes out lags behind, at most.

    Example:
        >>> frames = OverlapAdd(4, lambda frame: frame)
        >>> heard = [frames.process(np.arange(10.0)), frames.flush()]
        >>> [each.size for each in heard], np.concatenate(heard).round(6).tolist()
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
        """What is whole after these samples, shape (n,): shape (m,), float64."""
        heard = np.concatenate((self._rest, samples))
        self._taken += len(samples)
        whole = heard.size // self._hop
        self._rest = heard[whole * self._hop :]
        done = [self._step(half) for half in heard[: whole * self._hop].reshape(whole, self._hop)]
        if done and self._first:  # it is of the time before
            done, self._first = done[1:], False
        return np.concatenate(done) if done else np.empty(0)

    def flush(self) -> FloatArray:
        """The rest, as if zeros followed; then `reset`."""
        missing = self._taken - self._hop * max(0, self._taken // self._hop - 1)
        padded = self.process(np.zeros(2 * self._hop - self._rest.size))
        return padded[:missing]

    def _step(self, half: FloatArray) -> FloatArray:
        """The half frame that no later one reaches back to."""
        changed = self._window * self._change(self._window * np.append(self._before, half))
        ready: FloatArray = self._begun + changed[: self._hop]
        self._before, self._begun = half, changed[self._hop :]
        return ready


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
    """Moves the formants of a voice, and leaves pitch and timing.

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
        self._frames = OverlapAdd(max(ORDER, round(rate * FRAME_SECONDS / 2)), self._moved)
        self.latency_samples = self._frames.latency_samples

    def process(self, samples: FloatArray) -> FloatArray:
        """What is whole after these samples."""
        return self._frames.process(checked(samples)).astype(np.float32)

    def flush(self) -> FloatArray:
        """The last frames."""
        return self._frames.flush().astype(np.float32)

    def reset(self) -> None:
        """Begin again."""
        self._frames.reset()

    def _moved(self, frame: FloatArray) -> FloatArray:
        """One frame with its formants elsewhere."""
        power = [float(frame[lag:] @ frame[: frame.size - lag]) for lag in range(ORDER + 1)]
        if not power[0]:
            return frame
        lags = np.array(power) / power[0]
        lags[0] += _CORRECTION
        predictor = np.append(1.0, -solve_toeplitz(lags[:-1], lags[1:]))
        residual = lfilter(predictor, [1.0], frame)
        made = lfilter([1.0], moved_poles(predictor, self.alpha, self.rate), residual)
        loudness = float(made @ made)
        return made * math.sqrt(power[0] / loudness) if loudness else frame


def moved_poles(predictor: FloatArray, alpha: float, rate: int) -> FloatArray:
    """The prediction polynomial, shape (order + 1,), with its roots' angles at 16 kHz to a power.

    Radii are kept, but none lies outside of the unit circle.
    """
    roots = np.roots(predictor)
    pole, real = roots[roots.imag > 0], roots[roots.imag == 0]
    scale = rate / REFERENCE_RATE
    angle = np.minimum(math.pi, (np.angle(pole) * scale) ** alpha / scale)
    pole = np.minimum(np.abs(pole), 1.0) * np.exp(1j * angle)
    moved: FloatArray = np.poly(np.concatenate((real, pole, pole.conj()))).real
    return moved
