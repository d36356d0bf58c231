"""Percentiles of a sample in which some values count several times."""

from __future__ import annotations

import numpy as np

from monitor.errors import UsageError
from monitor.types import FloatArray

__all__ = ["weighted_percentile"]


def weighted_percentile(values: FloatArray, weights: FloatArray, percent: float) -> FloatArray:
    """Percentile of many weightings of one sample, interpolated linearly as NumPy does.

    Nothing is repeated: the two neighbours are found in the running sums of the weights.

    Args:
        values: shape (S,).
        weights: shape (B, S), how often each value counts: whole numbers of 0 or more.
        percent: 0 to 100.

    Returns:
        shape (B,); element b is ``np.percentile(np.repeat(values, weights[b]), percent)``.

    Raises:
        UsageError: shapes that do not fit, a percentage out of range, or a row without any weight.

    Example:
        >>> weighted_percentile(np.array([3.0, 1.0]), np.array([[1, 1], [3, 0]]), 50).tolist()
        [2.0, 3.0]
    """
    if values.ndim != 1 or weights.ndim != 2 or weights.shape[1] != values.size:
        raise UsageError("a weighted percentile takes values (S,) and weights (B, S)")
    if not 0 <= percent <= 100:
        raise UsageError(f"a percentile lies between 0 and 100, not at {percent:g}")
    order = np.argsort(values, kind="stable")
    ordered = np.asarray(values, dtype=np.float64)[order]
    running = np.cumsum(weights[:, order], axis=1)
    if values.size == 0 or not (running[:, -1] >= 1).all():
        raise UsageError("a sample has no value in it: give each row of weights at least one")
    place = (running[:, -1] - 1) * (percent / 100)
    below = np.floor(place)
    last = values.size - 1
    # a value stands at the places from the running sum before it to just before its own
    first = np.minimum((running <= below[:, None]).sum(axis=1), last)
    second = np.minimum((running <= np.ceil(place)[:, None]).sum(axis=1), last)
    low, high = ordered[first], ordered[second]
    return np.asarray(low + (place - below) * (high - low))
