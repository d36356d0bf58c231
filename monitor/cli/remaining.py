"""Remaining time of a job with steps."""

from __future__ import annotations

from bisect import bisect_right

from monitor.phrases import clock_time

_RESOLUTION_SECONDS = 0.1
_FEWEST = 6
_STEADY = 1.5


class RemainingTime:
    """Estimate of the time that a job will still take, from the amount done at each step.

    The rate is that of the second half of the elapsed time. It excludes the start of workers,
    networks being loaded and finished work that is skipped. There is no estimate before that half
    has 6 steps, and before the rates of its two parts agree within a factor of 1.5.

    Args:
        total: amount of the whole job, in any unit.
        now: seconds of the clock at its beginning.

    Example:
        >>> remaining = RemainingTime(100, now=0)
        >>> for second in range(20, 70):
        ...     remaining.add(1, now=second)
        >>> remaining.describe()
        'about 0:49 left'
    """

    def __init__(self, total: float, now: float) -> None:
        self._total = total
        self._times, self._done = [now], [0.0]

    def add(self, amount: float, now: float) -> None:
        """Count what a step did."""
        done = self._done[-1] + amount
        if len(self._times) > 1 and now - self._times[-2] < _RESOLUTION_SECONDS:
            self._times[-1], self._done[-1] = now, done
        else:
            self._times.append(now)
            self._done.append(done)

    def estimate_seconds(self) -> float | None:
        """Estimate the remaining seconds after the latest step; None if there is no trend yet."""
        began, now = self._times[0], self._times[-1]
        half, later = (bisect_right(self._times, began + (now - began) * x) for x in (0.5, 0.75))
        before, between, done = self._done[half - 1], self._done[later - 1], self._done[-1]
        slower, faster = sorted((between - before, done - between))
        if len(self._times) - half < _FEWEST or slower * _STEADY <= faster:
            return None
        return max(self._total - done, 0.0) * (now - began) / 2 / (done - before)

    def describe(self) -> str:
        """Describe the estimate for people; empty without one."""
        seconds = self.estimate_seconds()
        return "" if seconds is None else f"about {clock_time(seconds)} left"
