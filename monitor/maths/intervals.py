"""Confidence limits for few speakers: of shares, of means and of quantiles.

Percentiles over resampled speakers are too short for thirty of them, and have no width where all
agree. Here resampling gives a variance only; how far limits then reach follows from how well that
variance is known (docs/method.md section 12). Coverage is measured in docs/coverage.md.
"""

from __future__ import annotations

import numpy as np

from monitor.errors import UsageError
from monitor.types import FloatArray

__all__ = ["TAIL", "freedom", "quantile_limits", "share_limits", "t_limits"]

TAIL = 0.025
"""Error on each side of 95 % limits."""

_UNSEEN = 0.5
"""Units at the far edge that may not have been drawn: without them limits hold too seldom where
scores tell nearly everything, and few speakers are missed."""


def freedom(left_out: FloatArray) -> float:
    """Degrees of freedom of a variance over units, from how unequally they contribute to it.

    Satterthwaite's (1946): a variance of n values of kurtosis k varies like a chi-square of
    ``2 n / (k - (n - 3) / (n - 1))`` degrees: n - 1 for normal values, about 2 where a single one
    stands out. The values are those that the figure takes with each unit left out (the jackknife),
    which are linear in the unit's influence.

    Args:
        left_out: shape (n,), NaN where the figure does not exist.

    Returns:
        1 to n - 1; n - 1 where no unit changes anything.

    Example:
        >>> freedom(np.linspace(0.0, 1.0, 30)), round(freedom(np.eye(30)[0]), 1)
        (29.0, 2.2)
    """
    values = left_out[~np.isnan(left_out)]
    count = values.size
    if count < 3:
        return 1.0
    apart = values - values.mean()
    most = float(np.abs(apart).max())
    if most <= 1e-9 * max(1.0, float(np.abs(values).max())):
        return count - 1.0
    apart /= most  # squares of any scale
    square = float(np.mean(apart**2))
    kurtosis = float(np.mean(apart**4)) / square**2
    return float(np.clip(2 * count / (kurtosis - (count - 3) / (count - 1)), 1.0, count - 1))


def share_limits(
    share: float, variance: float, units: int, trials: int, degrees: float
) -> tuple[float, float]:
    """Limits of a share whose trials come in units: trials of one speaker are alike.

    Clopper and Pearson (1934) with the number of independent trials that have the same variance,
    ``p (1 - p) / variance``, after Korn and Graubard (1998): at most `trials`, times
    ``(t_trials-1 / t_degrees)^2`` for how well the variance is known, and at least a trial for each
    unit, since no mean of numbers in [0, 1] can vary more.

    What is rare may not have been drawn, and resamples cannot know of it. So share and variance
    that this number is taken from count half a unit more, which stands at the far edge (as the
    prior of Jeffreys adds half a trial). At 0 and 1 each unit is then just one trial.

    Args:
        share: 0 to 1; any mean of numbers in [0, 1], or a figure in units of its ceiling.
        variance: of the share, units drawn anew.
        units: S, 1 or more.
        trials: T, S or more.
        degrees: of freedom behind the variance, see `freedom`.

    Returns:
        lower and upper limit, 0 to 1, with the share between them.

    Raises:
        UsageError: a share outside [0, 1], or counts that do not fit.

    Example:
        >>> [round(limit, 3) for limit in share_limits(0.0, 0.0, 30, 240, 29.0)]
        [0.0, 0.116]
        >>> [round(limit, 3) for limit in share_limits(0.5, 0.25 / 240, 30, 240, 29.0)]
        [0.429, 0.571]
    """
    from scipy.special import betaincinv, stdtrit

    if not 0 <= share <= 1 or not 1 <= units <= trials:
        raise UsageError("limits of a share take a share from 0 to 1, and a trial of each unit")
    rare, more = min(share, 1 - share), units + _UNSEEN
    spread = (variance * units**2 + _UNSEEN * (1 - rare) ** 2) / more**2
    rare = (rare * units + _UNSEEN) / more
    known = float(stdtrit(max(trials - 1, 1), TAIL) / stdtrit(degrees, TAIL))
    count = max(min(rare * (1 - rare) / spread, float(trials)) * known**2, float(units))
    hits = share * count
    low = betaincinv(hits, count - hits + 1, TAIL) if hits > 0 else 0.0
    high = betaincinv(hits + 1, count - hits, 1 - TAIL) if share < 1 else 1.0
    return min(float(low), share), max(float(high), share)


def t_limits(
    value: float,
    replicates: FloatArray,
    units: int,
    degrees: float,
    tail: float = TAIL,
) -> tuple[float, float]:
    """Student's limits with the spread of the resamples.

    Args:
        value: the figure.
        replicates: shape (B,), the figure on resamples of units, finite.
        units: S, 2 or more: a resample spreads less than units drawn anew, by (S - 1) / S.
        degrees: of freedom, see `freedom`.
        tail: error on each side.

    Returns:
        lower and upper limit.

    Example:
        >>> [round(limit, 2) for limit in t_limits(1.0, np.linspace(0.8, 1.2, 200), 30, 29.0)]
        [0.76, 1.24]
    """
    from scipy.special import stdtrit

    gaps = replicates - value
    size = float(np.abs(gaps).max()) or 1.0  # squares of any scale
    spread = size * float((gaps / size).std(ddof=1)) * np.sqrt(units / (units - 1))
    reach = float(-stdtrit(degrees, tail) * spread)
    return value - reach, value + reach


def quantile_limits(
    values: FloatArray, share: float, least: float, most: float
) -> tuple[float, float]:
    """Limits of a quantile of independent values: order statistics, exact for any distribution.

    The number of values below a quantile is binomial (Thompson, 1936). Where even the lowest or the
    highest value is too near, the end of the range stands for it.

    Args:
        values: shape (n,), one of each unit.
        share: of the quantile, in (0, 1).
        least: the lowest that a value can be.
        most: the highest.

    Returns:
        lower and upper limit.

    Raises:
        UsageError: no value, or a share outside (0, 1).

    Example:
        >>> quantile_limits(np.arange(1.0, 31.0), 0.5, 0.0, 99.0)
        (10.0, 21.0)
        >>> quantile_limits(np.arange(1.0, 31.0), 0.01, 0.0, 99.0)
        (0.0, 3.0)
    """
    from scipy.special import bdtr

    if not values.size or not 0 < share < 1:
        raise UsageError("limits of a quantile take values, and a share between 0 and 1")
    count = values.size
    ordered = np.concatenate([[least], np.sort(values), [most]])
    # at most TAIL: that k or fewer, or k or more, of the values lie below the quantile
    below = bdtr(np.arange(count + 1), count, share)
    low = int(np.searchsorted(below, TAIL, side="right"))
    high = int(np.searchsorted(below, 1 - TAIL, side="left")) + 1
    return float(ordered[low]), float(ordered[min(high, count + 1)])
