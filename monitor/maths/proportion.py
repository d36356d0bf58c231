"""Exact limits of a proportion (Clopper and Pearson)."""

from __future__ import annotations

import numpy as np

from monitor.errors import UsageError

__all__ = ["clopper_pearson"]


def clopper_pearson(hits: int, trials: int, tail: float = 0.025) -> tuple[float, float]:
    """Limits that a proportion passes with at most the given probability on each side.

    Clopper and Pearson (1934). Exact for independent trials only.

    Args:
        hits: 0 to `trials`.
        trials: 1 or more.
        tail: error of each side; each limit alone is one-sided at that level.

    Returns:
        lower and upper limit; 0 below no hit, 1 above nothing but hits.

    Raises:
        UsageError: counts that do not fit, or a tail outside (0, 0.5).

    Example:
        >>> [round(limit, 4) for limit in clopper_pearson(30, 1000)]
        [0.0203, 0.0426]
    """
    from scipy.special import betaincinv

    if not 0 <= hits <= trials or trials < 1:
        raise UsageError(f"{hits} hits in {trials} trials: give counts of at least one trial")
    if not 0 < tail < 0.5:
        raise UsageError("the error on each side of an interval lies between 0 and 0.5")
    low = betaincinv(hits, trials - hits + 1, tail) if hits else 0.0
    high = betaincinv(hits + 1, trials - hits, np.subtract(1, tail)) if hits < trials else 1.0
    return float(low), float(high)
