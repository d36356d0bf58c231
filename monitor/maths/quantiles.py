"""Quantiles: one rule for limits over replicates, one for figures of a weighted sample.

Limits are order statistics of the replicates (`limits`): no value is made up between two of them.
A figure that is itself a quantile of the sample is the smallest value that reaches a share of the
weight (`weighted_quantile`), as a distribution function is inverted. One figure interpolates, since
its publication does (`interpolated_quantile`): the lowest percentile of mean ranks, which lies
between the two lowest of fewer than a hundred speakers and would otherwise be the lowest itself.

Other things by nature, and apart: exact limits of a quantile of independent values
(`monitor.maths.intervals.quantile_limits`) and the finite-sample rank of a conformal threshold
(`monitor.maths.conformal`). Each takes another order statistic than a percentile would, on purpose.
"""

from __future__ import annotations

import numpy as np

from monitor.errors import UsageError
from monitor.types import FloatArray

__all__ = ["interpolated_quantile", "limits", "limits_of_each", "weighted_quantile"]


def limits(values: FloatArray) -> tuple[float, float]:
    """2.5 and 97.5 percentiles of a figure over its replicates, shape (B,).

    The two order statistics nearest to the percentiles, without interpolation: one partition, no
    sort, since this stands in every reading (``benchmarks/update.py``). The negative of the values
    has the negative limits.

    Example:
        >>> limits(np.arange(200.0))
        (5.0, 194.0)
    """
    low, high = limits_of_each(values).tolist()
    return low, high


def limits_of_each(values: FloatArray) -> FloatArray:
    """``limits`` of many figures: shape (..., B) to shape (..., 2)."""
    count = values.shape[-1]
    low = round(0.025 * (count - 1))
    both = (low, count - 1 - low)
    return np.asarray(np.partition(values, both, axis=-1)[..., both])


def weighted_quantile(values: FloatArray, weights: FloatArray, share: float) -> FloatArray:
    """The smallest value that, with those below it, holds a share of the weight.

    Exact where weights are whole numbers; of others, where a value holds the share to the last bit,
    their running sum decides as it was rounded.

    Args:
        values: shape (S,).
        weights: shape (B, S), 0 or more.
        share: 0 to 1.

    Returns:
        shape (B,), one of the values each.

    Raises:
        UsageError: as `interpolated_quantile`.

    Example:
        >>> weighted_quantile(np.array([3.0, 1.0]), np.array([[1, 1], [3, 0]]), 0.5).tolist()
        [1.0, 3.0]
    """
    ordered, running = _running(values, weights, share)
    enough = running >= share * running[:, -1:]
    return np.asarray(ordered[enough.argmax(axis=1)])


def interpolated_quantile(values: FloatArray, weights: FloatArray, share: float) -> FloatArray:
    """Quantile of many weightings of one sample, interpolated linearly as NumPy does.

    Nothing is repeated: the two neighbours are found in the running sums of the weights.

    Args:
        values: shape (S,).
        weights: shape (B, S), how often each value counts: whole numbers of 0 or more.
        share: 0 to 1.

    Returns:
        shape (B,); element b is ``np.quantile(np.repeat(values, weights[b]), share)``.

    Raises:
        UsageError: shapes that do not fit, a share out of range, or a row without any weight.

    Example:
        >>> interpolated_quantile(np.array([3.0, 1.0]), np.array([[1, 1], [3, 0]]), 0.5).tolist()
        [2.0, 3.0]
    """
    ordered, running = _running(values, weights, share)
    place = (running[:, -1] - 1) * share
    below = np.floor(place)
    last = ordered.size - 1
    # a value stands at the places from the running sum before it to just before its own
    first = np.minimum((running <= below[:, None]).sum(axis=1), last)
    second = np.minimum((running <= np.ceil(place)[:, None]).sum(axis=1), last)
    low, high = ordered[first], ordered[second]
    return np.asarray(low + (place - below) * (high - low))


def _running(
    values: FloatArray, weights: FloatArray, share: float
) -> tuple[FloatArray, FloatArray]:
    """Values in order, shape (S,), and the weight of each and those before, shape (B, S)."""
    if values.ndim != 1 or weights.ndim != 2 or weights.shape[1] != values.size:
        raise UsageError("a weighted quantile takes values (S,) and weights (B, S)")
    if not 0 <= share <= 1:
        raise UsageError(f"a quantile lies between shares of 0 and 1, not at {share:g}")
    order = np.argsort(values, kind="stable")
    running = np.cumsum(weights[:, order], axis=1)
    if values.size == 0 or not (running[:, -1] > 0).all():
        raise UsageError("a sample has no value in it: give each row of weights at least one")
    return np.asarray(values, dtype=np.float64)[order], running
