"""When so many bits are out, and how many seconds a protector buys: times that may be censored.

A recording that ends below a level says only that the level was not reached by then. Shares and
means over recordings are Kaplan and Meier's (1958), and a mean is of the first ``horizon_seconds``
alone (the restricted mean of Irwin, 1949): beyond what was heard nothing is claimed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from monitor.errors import UsageError
from monitor.maths.bootstrap import speaker_weights
from monitor.maths.intervals import freedom, t_limits
from monitor.types import FloatArray

__all__ = [
    "HOLD_SECONDS",
    "Crossing",
    "FirstCrossing",
    "SecondsBought",
    "mean_seconds",
    "median_seconds",
    "seconds_bought",
    "share_crossed",
]

HOLD_SECONDS = 5.0
"""How long a figure must stay at a level, as of an alert: one noisy reading is no crossing."""
_SLACK_SECONDS = 1e-6


class Crossing(NamedTuple):
    """When a level was reached for good, or until when it is known that it was not.

    Attributes:
        seconds: of the stream.
        crossed: False where that is all that is known (the time is censored).
    """

    seconds: float
    crossed: bool


class FirstCrossing:
    """Finds in one stream when a figure first reached a level and stayed there for a while.

    The time is that of the first reading of the stretch. What interrupts an alert interrupts it,
    too: a figure that is withheld, and whatever is told by ``broken``. A figure that was cut to
    what calibration can support, below the level, may in truth lie above it: from there on nothing
    is known, and the time is censored.

    Args:
        level: bits.
        hold_seconds: how long the figure must stay; 0 takes a single reading for it.

    Attributes:
        known: the crossing, or None as long as it may still come.

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
        """The figure at a further reading.

        Args:
            seconds: of the stream.
            value: bits; None where it is withheld.
            cut: whether the figure is at least this.
        """
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
        """Something came between two readings: the stretch begins anew."""
        self._since = None

    def state(self) -> list[float | None]:
        """What a checkpoint must keep."""
        crossed = None if self.known is None else float(self.known.crossed)
        return [self._last if self.known is None else self.known.seconds, crossed, self._since]

    def restore(self, state: Sequence[float | None]) -> None:
        """Go on where ``state`` was taken."""
        seconds, crossed, self._since = state
        self._last = seconds or 0.0
        self.known = None if crossed is None else Crossing(self._last, bool(crossed))

    def so_far(self) -> Crossing:
        """What is known by now; at the end of a stream, what is known of it."""
        if self.known is not None:
            return self.known
        return Crossing(self._last if self._since is None else self._since, crossed=False)


def share_crossed(crossings: Sequence[Crossing], seconds: float) -> float:
    """The share of streams that have reached a level by so many seconds (Kaplan and Meier).

    Raises:
        UsageError: there is no stream.

    Example:
        >>> heard = [Crossing(4.0, True), Crossing(9.0, True), Crossing(5.0, False)]
        >>> round(share_crossed(heard, 4.0), 2), share_crossed(heard, 9.0)
        (0.33, 1.0)
    """
    times, left = _survival(*_columns(crossings))
    return float(1 - left[np.searchsorted(times, seconds, side="right")])


def median_seconds(crossings: Sequence[Crossing]) -> float | None:
    """When half of the streams have reached a level; None where that was not seen.

    Example:
        >>> median_seconds([Crossing(4.0, True), Crossing(9.0, True), Crossing(5.0, False)])
        9.0
        >>> median_seconds([Crossing(4.0, True), Crossing(9.0, False), Crossing(8.0, False)])
    """
    times, left = _survival(*_columns(crossings))
    half = np.flatnonzero(left[1:] <= 0.5 + 1e-12)
    return float(times[half[0]]) if half.size else None


def mean_seconds(crossings: Sequence[Crossing], horizon_seconds: float) -> float:
    """How long a level is not reached, of the first ``horizon_seconds``, on average.

    Raises:
        UsageError: no stream, no positive horizon, or one beyond all that was heard.

    Example:
        >>> mean_seconds([Crossing(4.0, True), Crossing(10.0, False)], 10.0)
        7.0
    """
    _check_horizon(horizon_seconds, crossings)
    return _mean(*_columns(crossings), horizon_seconds)


@dataclass(frozen=True, slots=True)
class SecondsBought:
    """What a protector buys before a level is reached, over many streams.

    Attributes:
        streams: how many.
        horizon_seconds: of how much of each stream the means are.
        clear_seconds, protected_seconds: how long the level is not reached of these, on average.
        seconds: the difference, with its 95 % limits; the limits are None of fewer than three
            groups.
        low, high: the limits.
        clear_share, protected_share: of streams that have reached the level by the horizon.
        clear_median, protected_median: seconds until half have; None where that was not seen.
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
    clear_median: float | None
    protected_median: float | None


def seconds_bought(
    clear: Sequence[Crossing],
    protected: Sequence[Crossing],
    horizon_seconds: float,
    groups: Sequence[object] | None = None,
) -> SecondsBought:
    """How many more seconds pass on average before a level is reached, with a protector.

    Within a horizon, since a stream that never reaches the level has no time at which it did: the
    difference of the two restricted means. Limits are Student's with the spread of 200 resamples of
    whole groups, both sides of a stream together.

    Args:
        clear: of each stream as it was spoken.
        protected: of the same streams, protected.
        horizon_seconds: not beyond the longest stream, and better within most of them.
        groups: who speaks in each, since streams of one speaker are alike; None for one each.

    Raises:
        UsageError: no streams, not as many of each, no positive horizon, or one beyond all that was
            heard of a side.

    Example:
        >>> clear = [Crossing(2.0, True), Crossing(4.0, True), Crossing(3.0, True)]
        >>> safe = [Crossing(10.0, False), Crossing(8.0, True), Crossing(9.0, True)]
        >>> bought = seconds_bought(clear, safe, 10.0)
        >>> bought.seconds, bought.clear_median, bought.protected_median
        (6.0, 3.0, 9.0)
    """
    _check_horizon(horizon_seconds, clear, protected)
    names = list(range(len(clear)) if groups is None else groups)
    if not len(clear) == len(protected) == len(names):
        raise UsageError("seconds bought take the clear and the protected side of every stream")
    sides = _columns(clear), _columns(protected)
    _, group = np.unique([repr(name) for name in names], return_inverse=True)

    def difference(weights: FloatArray | None) -> float:
        means = [_mean(*side, horizon_seconds, weights) for side in sides]
        return means[1] - means[0]

    value, count = difference(None), int(group.max()) + 1
    low = high = None
    if count > 2:
        left_out = [difference((group != each).astype(float)) for each in range(count)]
        replicates = np.array([difference(each[group]) for each in speaker_weights(count)])
        limits = t_limits(value, replicates, count, freedom(np.array(left_out)))
        low, high = max(limits[0], -horizon_seconds), min(limits[1], horizon_seconds)
    return SecondsBought(
        streams=len(clear),
        horizon_seconds=horizon_seconds,
        clear_seconds=_mean(*sides[0], horizon_seconds),
        protected_seconds=_mean(*sides[1], horizon_seconds),
        seconds=value,
        low=low,
        high=high,
        clear_share=share_crossed(clear, horizon_seconds),
        protected_share=share_crossed(protected, horizon_seconds),
        clear_median=median_seconds(clear),
        protected_median=median_seconds(protected),
    )


def _check_horizon(seconds: float, *sides: Sequence[Crossing]) -> None:
    if not (math.isfinite(seconds) and seconds > 0):
        raise UsageError(f"horizon_seconds={seconds:g} must be a positive number of seconds")
    for side in sides:
        last = max(side, default=None)  # of equal times the crossing comes last
        if last is not None and not last.crossed and last.seconds < seconds:
            raise UsageError(
                f"horizon_seconds={seconds:g}: nothing is known beyond {last.seconds:g} s; take a "
                "shorter one"
            )


def _columns(crossings: Iterable[Crossing]) -> tuple[FloatArray, FloatArray]:
    """Times, and 1 where it is that of a crossing."""
    table = np.array([tuple(each) for each in crossings], float)
    if not table.size:
        raise UsageError("times of at least one stream are needed")
    return table[:, 0], table[:, 1]


def _survival(
    times: FloatArray, crossed: FloatArray, weights: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """The k times of crossings, ascending, and the shares left before, and from each on (k + 1)."""
    weights = np.ones(times.size) if weights is None else weights
    events, at = np.unique(times[crossed > 0], return_inverse=True)
    out = np.bincount(at, weights[crossed > 0], minlength=events.size)
    order = np.argsort(times)
    later = np.append(np.cumsum(weights[order][::-1])[::-1], 0.0)
    there = later[np.searchsorted(times[order], events)]
    stay = np.where(there > 0, 1 - out / np.where(there > 0, there, 1), 1.0)
    return events, np.append(1.0, np.cumprod(stay))


def _mean(
    times: FloatArray, crossed: FloatArray, horizon: float, weights: FloatArray | None = None
) -> float:
    """The area below the share that is left, up to the horizon."""
    events, left = _survival(times, crossed, weights)
    edges = np.minimum(np.concatenate(([0.0], events, [np.inf])), horizon)
    return float(np.diff(edges) @ left)
