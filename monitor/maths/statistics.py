"""Bootstrap replicates of speakers, quantiles and confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from monitor.errors import UsageError
from monitor.types import FloatArray

REPLICATES = 200  # B of docs/method.md section 5


def speaker_weights(speakers: int, replicates: int = REPLICATES, seed: int = 0) -> FloatArray:
    """Draw bootstrap replicates: how often each speaker occurs, with replacement.

    Shape (replicates, speakers), whole numbers as float64; every row sums to ``speakers``.
    """
    generator = np.random.default_rng(seed)
    picks = generator.integers(0, speakers, size=(replicates, speakers))
    weights = np.zeros((replicates, speakers))
    np.add.at(weights, (np.arange(replicates)[:, None], picks), 1.0)
    return weights


# Limits are order statistics of the replicates without interpolation (`limits`). A figure that is
# itself a quantile of the sample inverts the distribution function (`weighted_quantile`). It is the
# smallest value that reaches a fraction of the weight. One figure interpolates, as in its
# publication (`interpolated_quantile`): the lowest percentile of mean ranks. With fewer than a
# hundred speakers it is between the two lowest, and would otherwise be the lowest. Two cases need
# other order statistics: exact limits of a quantile of independent values (`quantile_limits`), and
# the finite-sample rank of a conformal threshold (`monitor.population.false_alarms`).
def median(values: FloatArray) -> float:
    """Compute the median of n > 0 numbers, shape (n,), like NumPy but without ``numpy.ma``."""
    low, high = (len(values) - 1) // 2, len(values) // 2
    ordered = np.partition(values, (low, high))
    return (float(ordered[low]) + float(ordered[high])) / 2


def limits(values: FloatArray) -> tuple[float, float]:
    """Return the order statistics of values, (B,), nearest to the 2.5 and 97.5 percentiles.

    Example:
        >>> limits(np.arange(200.0))
        (5.0, 194.0)
    """
    low, high = limits_of_each(values).tolist()
    return low, high


def limits_of_each(values: FloatArray) -> FloatArray:
    """Compute ``limits`` of many figures: shape (..., B) to shape (..., 2).

    It partitions instead of sorting, because every reading uses it (``benchmarks/scale.py``).
    """
    count = values.shape[-1]
    low = round(0.025 * (count - 1))
    ends = (low, count - 1 - low)
    return np.asarray(np.partition(values, ends, axis=-1)[..., ends])


def weighted_quantile(values: FloatArray, weights: FloatArray, level: float) -> FloatArray:
    """Return the smallest value with a fraction ``level`` of the weight up to it: shape (B,).

    Values have shape (S,), and weights, at least 0, (B, S). Whole weights make it exact.

    Example:
        >>> weighted_quantile(np.array([3.0, 1.0]), np.array([[1, 1], [3, 0]]), 0.5).tolist()
        [1.0, 3.0]
    """
    ordered, running = _running(values, weights, level)
    enough = running >= level * running[:, -1:]
    return np.asarray(ordered[enough.argmax(axis=1)])


def interpolated_quantile(values: FloatArray, weights: FloatArray, level: float) -> FloatArray:
    """Compute ``np.quantile(np.repeat(values, weights[b]), level)`` for each row b: (B,).

    ``values`` have shape (S,), and ``weights`` are whole numbers, (B, S).

    Example:
        >>> interpolated_quantile(np.array([3.0, 1.0]), np.array([[1, 1], [3, 0]]), 0.5).tolist()
        [2.0, 3.0]
    """
    ordered, running = _running(values, weights, level)
    position = (running[:, -1] - 1) * level
    below = np.floor(position)
    last = ordered.size - 1
    # a value occupies the positions from the previous running sum up to its own
    first = np.minimum((running <= below[:, None]).sum(axis=1), last)
    second = np.minimum((running <= np.ceil(position)[:, None]).sum(axis=1), last)
    low, high = ordered[first], ordered[second]
    return np.asarray(low + (position - below) * (high - low))


def _running(
    values: FloatArray, weights: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Return values in order, shape (S,), and their running weights, shape (B, S)."""
    if values.ndim != 1 or weights.ndim != 2 or weights.shape[1] != values.size:
        raise UsageError("a weighted quantile takes values (S,) and weights (B, S)")
    if not 0 <= level <= 1:
        raise UsageError(f"invalid quantile {level:g}: use 0 to 1")
    order = np.argsort(values, kind="stable")
    running = np.cumsum(weights[:, order], axis=1)
    if values.size == 0 or not (running[:, -1] > 0).all():
        raise UsageError("an empty sample: give each row at least one positive weight")
    return np.asarray(values, dtype=np.float64)[order], running


# Percentile intervals over resampled speakers are too short with thirty, and have no width if all
# agree. Resampling therefore gives only a variance. Limits follow from it and from its degrees of
# freedom (docs/method.md section 12). Their coverage is in benchmarks/results/coverage.md.
TAIL = 0.025  # error on each side of a 95 % interval

_UNSEEN = 0.5
"""Units at the far edge that may not have been sampled. Without them, coverage is too low for
nearly perfect scores with few missed speakers.
"""


def freedom(left_out: FloatArray) -> float:
    """Estimate degrees of freedom of a variance over units, from their unequal influence.

    This is Satterthwaite's method (1946). A variance of n values varies like a chi-square. With
    kurtosis k it has ``2 n / (k - (n - 3) / (n - 1))`` degrees. That is n - 1 for normal values,
    and about 2 for a single outlier. The values are the figures with each unit left out (the
    jackknife), which are linear in the unit's influence.

    Example:
        >>> freedom(np.linspace(0.0, 1.0, 30)), round(freedom(np.eye(30)[0]), 1)
        (29.0, 2.2)
    """
    values = left_out[~np.isnan(left_out)]
    count = values.size
    if count < 3:
        return 1.0
    deviations = values - values.mean()
    maximum = float(np.abs(deviations).max())
    if maximum <= 1e-9 * max(1.0, float(np.abs(values).max())):
        return count - 1.0
    deviations /= maximum  # squares of any scale
    square = float(np.mean(deviations**2))
    kurtosis = float(np.mean(deviations**4)) / square**2
    return float(np.clip(2 * count / (kurtosis - (count - 3) / (count - 1)), 1.0, count - 1))


def share_limits(
    fraction: float, variance: float, units: int, trials: int, degrees: float
) -> tuple[float, float]:
    """Compute limits of a fraction with trials in units, such as speakers.

    These are Clopper and Pearson's limits (1934) with an effective number of independent trials,
    ``p (1 - p) / variance``, after Korn and Graubard (1998). It is at most `trials`, times
    ``(t_trials-1 / t_degrees)^2`` for the uncertainty of the variance (`freedom`), and at least one
    trial per unit.

    Rare outcomes may be missing from the sample. The fraction and variance behind this number
    therefore include half a unit at the far edge. At 0 and 1 each unit is then exactly one trial.

    Example:
        >>> [round(limit, 3) for limit in share_limits(0.0, 0.0, 30, 240, 29.0)]
        [0.0, 0.116]
        >>> [round(limit, 3) for limit in share_limits(0.5, 0.25 / 240, 30, 240, 29.0)]
        [0.429, 0.571]
    """
    from scipy.special import betaincinv, stdtrit

    if not 0 <= fraction <= 1 or not 1 <= units <= trials:
        raise UsageError(
            "limits of a fraction need a fraction from 0 to 1, and at least one trial per unit"
        )
    rare, more = min(fraction, 1 - fraction), units + _UNSEEN
    estimated_variance = (variance * units**2 + _UNSEEN * (1 - rare) ** 2) / more**2
    rare = (rare * units + _UNSEEN) / more
    t_ratio = float(stdtrit(max(trials - 1, 1), TAIL) / stdtrit(degrees, TAIL))
    count = max(
        min(rare * (1 - rare) / estimated_variance, float(trials)) * t_ratio**2, float(units)
    )
    hits = fraction * count
    low = betaincinv(hits, count - hits + 1, TAIL) if hits > 0 else 0.0
    high = betaincinv(hits + 1, count - hits, 1 - TAIL) if fraction < 1 else 1.0
    return min(float(low), fraction), max(float(high), fraction)


def t_limits(
    value: float, replicates: FloatArray, units: int, degrees: float, tail: float = TAIL
) -> tuple[float, float]:
    """Compute Student's limits from a figure's resamples of S >= 2 units, shape (B,).

    A resample's variance is (S - 1) / S of that of new units. `degrees` is from `freedom`.

    Example:
        >>> [round(limit, 2) for limit in t_limits(1.0, np.linspace(0.8, 1.2, 200), 30, 29.0)]
        [0.76, 1.24]
    """
    from scipy.special import stdtrit

    gaps = replicates - value
    size = float(np.abs(gaps).max()) or 1.0  # squares of any scale
    deviation = size * float((gaps / size).std(ddof=1)) * np.sqrt(units / (units - 1))
    reach = float(-stdtrit(degrees, tail) * deviation)
    return value - reach, value + reach


def clopper_pearson(hits: int, trials: int, tail: float = 0.025) -> tuple[float, float]:
    """Compute limits that a proportion passes with probability `tail` at most on each side.

    Clopper and Pearson (1934). Exact for independent trials only.

    Example:
        >>> [round(limit, 4) for limit in clopper_pearson(30, 1000)]
        [0.0203, 0.0426]
    """
    from scipy.special import betaincinv

    if not 0 <= hits <= trials or trials < 1:
        raise UsageError(f"{hits} hits in {trials} trials: give counts of at least one trial")
    if not 0 < tail < 0.5:
        raise UsageError(
            "invalid error on each side of an interval: use more than 0 and less than 0.5"
        )
    low = betaincinv(hits, trials - hits + 1, tail) if hits else 0.0
    high = betaincinv(hits + 1, trials - hits, np.subtract(1, tail)) if hits < trials else 1.0
    return float(low), float(high)


def quantile_limits(
    values: FloatArray, level: float, minimum: float, maximum: float
) -> tuple[float, float]:
    """Compute limits of a quantile of independent values, exact for any distribution.

    The number of values below a quantile is binomial (Thompson, 1936). If even the lowest or the
    highest value is too near, the limit is the end of the range.

    Example:
        >>> quantile_limits(np.arange(1.0, 31.0), 0.5, 0.0, 99.0)
        (10.0, 21.0)
        >>> quantile_limits(np.arange(1.0, 31.0), 0.01, 0.0, 99.0)
        (0.0, 3.0)
    """
    from scipy.special import bdtr

    if not values.size or not 0 < level < 1:
        raise UsageError("limits of a quantile need values, and a fraction between 0 and 1")
    count = values.size
    ordered = np.concatenate([[minimum], np.sort(values), [maximum]])
    # probability that at most k of the values are below the quantile
    below = bdtr(np.arange(count + 1), count, level)
    low = int(np.searchsorted(below, TAIL, side="right"))
    high = int(np.searchsorted(below, 1 - TAIL, side="left")) + 1
    return float(ordered[low]), float(ordered[min(high, count + 1)])


@dataclass(frozen=True)
class Estimate:
    """A figure with its bootstrap replicates and jackknife values (docs/method.md section 12)."""

    value: float  # the figure on all units
    replicates: FloatArray  # shape (B,), on resamples of units; NaN if it does not exist there
    left_out: FloatArray  # shape (J,), without each unit or group of units; or empty
    # units, trials: number of units, such as speakers, and of all their trials
    units: int
    trials: int

    @property
    def exists(self) -> bool:
        """True if its spread is known: from two units and half of the resamples."""
        return self.units > 1 and self._seen.size >= max(self.replicates.size / 2, 2)

    @cached_property
    def degrees(self) -> float:
        """Degrees of freedom, few if a few units dominate; S - 1 without a jackknife."""
        return freedom(self.left_out) if self.left_out.size else self.units - 1.0

    @property
    def bias(self) -> float:
        """Mean of the resamples minus the value: the bootstrap's bias (Efron, 1979)."""
        return float(self._seen.mean()) - self.value

    def t_limits(self) -> tuple[float, float]:
        """Compute Student's limits."""
        return t_limits(self.value, self._seen, self.units, self.degrees)

    def reach(self, tail: float) -> float:
        """Compute the distance of Student's limits from the value, with that error on each side."""
        low, high = t_limits(self.value, self._seen, self.units, self.degrees, tail=tail)
        return (high - low) / 2

    def share_limits(
        self, minimum: float, maximum: float, fitted: bool = False
    ) -> tuple[float, float]:
        """Compute limits of a figure in a range, like those of a fraction.

        If a figure was fitted to the data that it evaluates, the bias is subtracted first.
        """
        width = maximum - minimum
        value = self.value - (self.bias if fitted else 0.0)
        variance = float(self._seen.var(ddof=1)) * self.units / (self.units - 1) / width**2
        fraction = float(np.clip((value - minimum) / width, 0.0, 1.0))
        low, high = share_limits(fraction, variance, self.units, self.trials, self.degrees)
        return minimum + width * low, minimum + width * high

    def signed_limits(self, maximum: float) -> tuple[float, float]:
        """Compute limits of a signed figure with a ceiling.

        These are Student's, which ignore the ceiling. Above 0 they are widened to `share_limits`,
        which ignore negative values.
        """
        low, high = t_limits(self.value, self._seen, self.units, self.units - 1.0)
        if self.value > 0.0:
            share_low, share_high = self.share_limits(0.0, maximum)
            low, high = min(low, share_low), max(high, share_high)
        return low, min(high, maximum)

    @cached_property
    def _seen(self) -> FloatArray:
        return self.replicates[~np.isnan(self.replicates)]


def difference_reach(first: Estimate, other: Estimate, tail: float) -> float:
    """Compute the reach of Student's limits of two estimates' difference (Welch, 1947).

    `tail` is the error on each side; 0 if neither varies.
    """
    from scipy.special import stdtrit

    degrees = np.array([first.degrees, other.degrees])
    reaches = np.array([first.reach(TAIL), other.reach(TAIL)])
    squares = (reaches / stdtrit(degrees, TAIL)) ** 2
    if not squares.any():
        return 0.0
    pooled_degrees = squares.sum() ** 2 / (squares**2 / degrees).sum()
    return float(-stdtrit(pooled_degrees, tail) * np.sqrt(squares.sum()))


# A recording that ends below a level only shows that the level was not reached by then. Fractions
# and means over recordings are Kaplan and Meier's (1958). A mean covers only the first
# ``horizon_seconds`` (the restricted mean of Irwin, 1949), because nothing is known beyond the
# recordings.
HOLD_SECONDS = 5.0
"""Seconds that a figure must stay at a level, as for an alert: a noisy reading is no crossing."""
_SLACK_SECONDS = 1e-6


class Crossing(NamedTuple):
    """Time at which a level was reached for good, or until which it was not (censored)."""

    seconds: float
    crossed: bool


class FirstCrossing:
    """Finder of the first time that a figure reached a level in bits and stayed there.

    The time is that of the first reading of the stretch. A withheld figure or a call of ``broken``
    interrupts the stretch, as for an alert. A figure capped by calibration below the level may
    really be above it, so the time is censored from there on. ``known`` is None while the crossing
    is still open.

    Example:
        >>> crossing = FirstCrossing(2.0, hold_seconds=2.0)
        >>> for second, bits in enumerate([1.0, 2.1, 1.9, 2.0, 2.5, 2.4], 1):
        ...     crossing.update(second, bits)
        >>> crossing.known
        Crossing(seconds=4, crossed=True)
    """

    def __init__(self, level: float, hold_seconds: float = HOLD_SECONDS) -> None:
        self.level, self.hold_seconds = level, hold_seconds
        self.known: Crossing | None = None
        self._since: float | None = None
        self._last = 0.0

    def update(self, seconds: float, value: float | None, *, cut: bool = False) -> None:
        """Add a reading's figure: None if withheld, `cut` if it is capped and may be higher."""
        if self.known is not None:
            return
        self._last = seconds
        if value is None or value < self.level:
            self._since = None
            if value is not None and cut:
                self.known = Crossing(seconds, crossed=False)
            return
        self._since = seconds if self._since is None else self._since
        if seconds - self._since >= self.hold_seconds - _SLACK_SECONDS:
            self.known = Crossing(self._since, crossed=True)

    def broken(self) -> None:
        """Restart the stretch after an interruption between two readings."""
        self._since = None

    def state(self) -> list[float | None]:
        """Return the values that a checkpoint must keep."""
        crossed = None if self.known is None else float(self.known.crossed)
        return [self._last if self.known is None else self.known.seconds, crossed, self._since]

    def restore(self, state: Sequence[float | None]) -> None:
        """Resume from ``state``."""
        seconds, crossed, self._since = state
        self._last = seconds or 0.0
        self.known = None if crossed is None else Crossing(self._last, bool(crossed))

    def so_far(self) -> Crossing:
        """Return the known crossing, or one censored at the open stretch or the last reading."""
        if self.known is not None:
            return self.known
        return Crossing(self._last if self._since is None else self._since, crossed=False)


def share_crossed(crossings: Sequence[Crossing], seconds: float) -> float:
    """Compute the fraction of streams that have reached the level by then (Kaplan and Meier)."""
    times, surviving = _survival(*_columns(crossings))
    return float(1 - surviving[np.searchsorted(times, seconds, side="right")])


def median_seconds(crossings: Sequence[Crossing]) -> float | None:
    """Return when half of the streams had reached a level; None if that was not seen."""
    times, surviving = _survival(*_columns(crossings))
    half = np.flatnonzero(surviving[1:] <= 0.5 + 1e-12)
    return float(times[half[0]]) if half.size else None


@dataclass(frozen=True, slots=True)
class DisclosureDelay:
    """Delay that an anonymiser gives before a level is reached, over many streams.

    Seconds are the mean times below the level within the first ``horizon_seconds``. Their
    difference has a 95 % interval (None with fewer than three groups). Shares are the fractions of
    streams that have reached the level by then.
    """

    streams: int
    horizon_seconds: float
    clear_seconds: float
    protected_seconds: float
    seconds: float
    low: float | None
    high: float | None
    clear_share: float
    protected_share: float


def disclosure_delay(
    clear: Sequence[Crossing],
    protected: Sequence[Crossing],
    horizon_seconds: float,
    groups: Sequence[object] | None = None,
) -> DisclosureDelay:
    """Compute the mean further seconds before a level is reached, with an anonymiser.

    It is the difference of the two restricted means of the same streams, protected and clear. A
    horizon is needed because some streams never reach the level. Limits are Student's, from 200
    resamples of whole groups with both sides of each stream together. ``groups`` has each stream's
    speaker, because streams of one speaker are alike. Without it, each stream is a group.

    Example:
        >>> clear = [Crossing(2.0, True), Crossing(4.0, True), Crossing(3.0, True)]
        >>> safe = [Crossing(10.0, False), Crossing(8.0, True), Crossing(9.0, True)]
        >>> disclosure_delay(clear, safe, 10.0).seconds, median_seconds(clear), median_seconds(safe)
        (6.0, 3.0, 9.0)
    """
    _check_horizon(horizon_seconds, clear, protected)
    names = list(range(len(clear)) if groups is None else groups)
    if not len(clear) == len(protected) == len(names):
        raise UsageError(
            "a disclosure delay needs both sides of every stream: give as many of each"
        )
    sides = _columns(clear), _columns(protected)
    _, group = np.unique([repr(name) for name in names], return_inverse=True)

    def difference(weights: FloatArray | None) -> float:
        means = [_mean(*side, horizon_seconds, weights) for side in sides]
        return means[1] - means[0]

    value, count = difference(None), int(group.max()) + 1
    low = high = None
    if count > 2:
        left_out = [difference((group != unit).astype(float)) for unit in range(count)]
        replicates = np.array([difference(unit[group]) for unit in speaker_weights(count)])
        limits = t_limits(value, replicates, count, freedom(np.array(left_out)))
        low, high = max(limits[0], -horizon_seconds), min(limits[1], horizon_seconds)
    return DisclosureDelay(
        streams=len(clear),
        horizon_seconds=horizon_seconds,
        clear_seconds=_mean(*sides[0], horizon_seconds),
        protected_seconds=_mean(*sides[1], horizon_seconds),
        seconds=value,
        low=low,
        high=high,
        clear_share=share_crossed(clear, horizon_seconds),
        protected_share=share_crossed(protected, horizon_seconds),
    )


def _check_horizon(seconds: float, *sides: Sequence[Crossing]) -> None:
    if not (math.isfinite(seconds) and seconds > 0):
        raise UsageError(f"horizon_seconds={seconds:g} must be a positive number of seconds")
    for side in sides:
        last = max(side, default=None)  # of equal times the crossing comes last
        if last is not None and not last.crossed and last.seconds < seconds:
            raise UsageError(
                f"invalid horizon_seconds={seconds:g}: use at most {last.seconds:g}, the end of "
                "the observations"
            )


def _columns(crossings: Iterable[Crossing]) -> tuple[FloatArray, FloatArray]:
    """Return times, and 1 if a time is that of a crossing."""
    table = np.array([tuple(crossing) for crossing in crossings], float)
    if not table.size:
        raise UsageError("times of at least one stream are needed")
    return table[:, 0], table[:, 1]


def _survival(
    times: FloatArray, crossed: FloatArray, weights: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the k times of crossings, ascending, and the fractions left around them, (k + 1,)."""
    weights = np.ones(times.size) if weights is None else weights
    events, at = np.unique(times[crossed > 0], return_inverse=True)
    crossed_weight = np.bincount(at, weights[crossed > 0], minlength=events.size)
    order = np.argsort(times)
    later = np.append(np.cumsum(weights[order][::-1])[::-1], 0.0)
    at_risk = later[np.searchsorted(times[order], events)]
    remaining = np.where(at_risk > 0, 1 - crossed_weight / np.where(at_risk > 0, at_risk, 1), 1.0)
    return events, np.append(1.0, np.cumprod(remaining))


def _mean(
    times: FloatArray, crossed: FloatArray, horizon: float, weights: FloatArray | None = None
) -> float:
    """Compute the area under the survival curve, up to the horizon."""
    events, surviving = _survival(times, crossed, weights)
    edges = np.minimum(np.concatenate(([0.0], events, [np.inf])), horizon)
    return float(np.diff(edges) @ surviving)
