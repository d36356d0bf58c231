"""The lag of every whole frame, as the feature ``f0`` tells it."""

from __future__ import annotations

import numpy as np

from monitor.features.f0 import F0, FRAME, HOP, LOWEST_LAG
from monitor.types import FloatArray, IntArray

__all__ = ["yin_lags"]


def yin_lags(samples: FloatArray) -> IntArray:
    """The period of each frame in samples, 0 where it is not periodic: frame i begins at 80 i."""
    track = F0().process(samples)
    lags = np.zeros(max(0, (len(samples) - FRAME) // HOP + 1), np.int64)
    lags[track.ticks - int(np.ceil(FRAME / HOP))] = track.values + LOWEST_LAG
    return lags
