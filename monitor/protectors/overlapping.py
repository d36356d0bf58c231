"""Streams frames through a function: half-overlapping, windowed, added up again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from monitor.types import FloatArray

__all__ = ["OverlapAdd"]


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
