"""The protector that does nothing: the baseline of every comparison."""

from __future__ import annotations

import numpy as np

from monitor.protectors.samples import checked
from monitor.types import FloatArray

__all__ = ["Unchanged"]


class Unchanged:
    """Gives the samples back as they are.

    Args:
        rate: samples per second.

    Example:
        >>> Unchanged(16000).process(np.array([0.5, -0.5]))
        array([ 0.5, -0.5], dtype=float32)
    """

    latency_samples = 0

    def __init__(self, rate: int) -> None:
        self.rate = rate

    def process(self, samples: FloatArray) -> FloatArray:
        """Them, as float32."""
        return checked(samples).astype(np.float32)

    def flush(self) -> FloatArray:
        """Nothing."""
        return np.empty(0, np.float32)

    def reset(self) -> None:
        """Nothing is remembered."""
