"""The samples that every protector accepts: one channel of numbers."""

from __future__ import annotations

import numpy as np

from monitor.errors import UsageError
from monitor.types import FloatArray

__all__ = ["checked"]

_LARGEST = 1e12
"""Larger samples come from broken memory, and their squares would leave float32."""


def checked(samples: FloatArray) -> FloatArray:
    """The samples as float64, shape (n,).

    Raises:
        UsageError: they are of several channels, or one of them is no number.
    """
    samples = np.asarray(samples, np.float64)
    if samples.ndim != 1:
        raise UsageError(f"a protector takes one channel, not samples of shape {samples.shape}")
    if samples.size and not -_LARGEST <= samples.min() <= samples.max() <= _LARGEST:
        raise UsageError("a sample is no number (NaN or infinite); repair the recording first")
    return samples
