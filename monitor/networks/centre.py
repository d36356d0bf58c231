"""Subtracts the mean of the last seconds from mel bands: microphone, room and level cancel."""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter

from monitor.types import FloatArray

__all__ = ["Centre"]

_KEPT = 1 - 1 / 500
"""Of what was, from frame to frame of 10 ms: a memory of 5 s."""
_PRIOR = 50.0
"""Frames that the mean of many voices counts for at the beginning."""


class Centre:
    """A running mean with exponential forgetting, taken off every frame; nothing waits for it.

    Args:
        usual: shape (40,): the bands' mean before anything was heard.

    Example:
        >>> centre = Centre(np.zeros(40))
        >>> centre(np.full((1000, 40), 3.0))[[0, -1], 0].round().tolist()
        [3.0, 0.0]
    """

    def __init__(self, usual: FloatArray) -> None:
        self._usual = np.asarray(usual, np.float64)
        self.reset()

    def reset(self) -> None:
        """Forget all."""
        self._sum = (_KEPT * _PRIOR * self._usual)[None]
        self._weight = _PRIOR

    def __call__(self, bands: FloatArray) -> FloatArray:
        """Further frames, shape (t, 40), centred; float32."""
        if not len(bands):
            return np.asarray(bands, np.float32)
        sums, self._sum = lfilter([1.0], [1.0, -_KEPT], bands, axis=0, zi=self._sum)
        fading = _KEPT ** np.arange(1, len(bands) + 1)
        weights = fading * self._weight + (1 - fading) / (1 - _KEPT)
        self._weight = float(weights[-1])
        return np.asarray(bands - sums / weights[:, None], np.float32)
