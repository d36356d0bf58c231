"""A figure with its bootstrap replicates, and limits made of them (docs/method.md section 12)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from monitor.maths.intervals import TAIL, freedom, share_limits, t_limits
from monitor.types import FloatArray

__all__ = ["Estimate", "difference_reach"]


@dataclass(frozen=True)
class Estimate:
    """A figure with its bootstrap replicates and its jackknife values.

    Attributes:
        value: the figure on all units.
        replicates: shape (B,), on resamples of units; NaN where it does not exist there.
        left_out: shape (J,), with each unit, or each group of them, left out; or empty.
        units: S, such as speakers.
        trials: T, of all units.

    Example:
        >>> generator = np.random.default_rng(0)
        >>> speakers = generator.uniform(0.4, 1.0, 30)
        >>> replicates = generator.choice(speakers, (200, 30)).mean(axis=1)
        >>> left_out = (speakers.sum() - speakers) / 29
        >>> found = Estimate(speakers.mean(), replicates, left_out, units=30, trials=240)
        >>> [round(limit, 2) for limit in found.share_limits(0.0, 1.0)]
        [0.64, 0.79]
    """

    value: float
    replicates: FloatArray
    left_out: FloatArray
    units: int
    trials: int

    @property
    def exists(self) -> bool:
        """Whether there is enough to tell its spread: two units, and most of the resamples."""
        return self.units > 1 and self._seen.size >= max(self.replicates.size / 2, 2)

    @cached_property
    def degrees(self) -> float:
        """Of freedom: few where a few units decide the figure; S - 1 where none were left out."""
        return freedom(self.left_out) if self.left_out.size else self.units - 1.0

    @property
    def bias(self) -> float:
        """How much resamples exceed the value, as the value exceeds the truth (Efron, 1979)."""
        return float(self._seen.mean()) - self.value

    def t_limits(self) -> tuple[float, float]:
        """Student's."""
        return t_limits(self.value, self._seen, self.units, self.degrees)

    def reach(self, tail: float) -> float:
        """How far Student's limits are from the value.

        Args:
            tail: error on each side.
        """
        low, high = t_limits(self.value, self._seen, self.units, self.degrees, tail=tail)
        return (high - low) / 2

    def share_limits(self, least: float, most: float, fitted: bool = False) -> tuple[float, float]:
        """As a share of the way from the least to the most that it can be; edges are exact.

        Args:
            least: the value cannot be lower.
            most: or higher.
            fitted: it is fitted to what it judges: its bias is taken off first.
        """
        width = most - least
        value = self.value - (self.bias if fitted else 0.0)
        variance = float(self._seen.var(ddof=1)) * self.units / (self.units - 1) / width**2
        share = float(np.clip((value - least) / width, 0.0, 1.0))
        low, high = share_limits(share, variance, self.units, self.trials, self.degrees)
        return least + width * low, least + width * high

    def signed_limits(self, most: float) -> tuple[float, float]:
        """Of a figure with a ceiling that can be negative: Student's, and no less than its share's.

        The latter see nothing below 0, the former nothing at the ceiling.
        """
        low, high = t_limits(self.value, self._seen, self.units, self.units - 1.0)
        if self.value > 0.0:
            share_low, share_high = self.share_limits(0.0, most)
            low, high = min(low, share_low), max(high, share_high)
        return low, min(high, most)

    @cached_property
    def _seen(self) -> FloatArray:
        return self.replicates[~np.isnan(self.replicates)]


def difference_reach(first: Estimate, other: Estimate, tail: float) -> float:
    """How far Student's limits of the difference of two independent estimates reach (Welch, 1947).

    Args:
        first: one.
        other: the other.
        tail: error on each side.

    Returns:
        0 where neither varies.
    """
    from scipy.special import stdtrit

    degrees = np.array([first.degrees, other.degrees])
    reaches = np.array([first.reach(TAIL), other.reach(TAIL)])
    squares = (reaches / stdtrit(degrees, TAIL)) ** 2
    if not squares.any():
        return 0.0
    known = squares.sum() ** 2 / (squares**2 / degrees).sum()
    return float(-stdtrit(known, tail) * np.sqrt(squares.sum()))
