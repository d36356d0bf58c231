"""Differences of two systems, figure by figure, with the limits of each."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from monitor.evaluation.families import rule_of
from monitor.evaluation.figure import Figure
from monitor.evaluation.report.report import Report
from monitor.maths.estimate import Estimate, difference_reach

__all__ = ["ERROR", "Difference", "between", "paired"]

ERROR = 0.05
"""Chance with which the limits of a row of differences may fail."""
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Difference:
    """A system less the first one.

    Attributes:
        value: None where one of the two figures does not exist.
        low: lower limit; None where either figure has no limits, or too seldom existed.
        high: upper limit.
        significant: the limits leave zero out.
    """

    value: float | None
    low: float | None = None
    high: float | None = None

    @property
    def significant(self) -> bool:
        """Whether zero lies outside the limits."""
        return (
            self.low is not None and self.high is not None and (self.low > 0.0 or self.high < 0.0)
        )


def paired(first: Report, other: Report) -> bool:
    """Whether two systems were tested on the same speakers and resampled together."""
    one, two = ((each.tested, each.replicates, each.seed) for each in (first, other))
    return one == two


def between(first: Report, other: Report, key: str, error: float = ERROR) -> Difference:
    """A figure of one system less that of the first.

    Args:
        first: what is taken off.
        other: what it is taken off from.
        key: of the figure.
        error: chance with which the limits may fail.
    """
    figures = first.figures.get(key), other.figures.get(key)
    speakers = len(first.tested), len(other.tested)
    return _difference(*figures, paired(first, other), error, *speakers)


def _difference(
    first: Figure | None, other: Figure | None, paired: bool, error: float, *speakers: int
) -> Difference:
    if first is None or other is None or first.value is None or other.value is None:
        return Difference(None)
    value = other.value - first.value
    if np.isnan(value):  # both infinite
        return Difference(None)
    a, b = _estimate(first, speakers[0]), _estimate(other, speakers[1])
    if a is None or b is None:
        return Difference(value)
    if paired and a.left_out.shape == b.left_out.shape:
        gap = replace(
            b, value=value, replicates=b.replicates - a.replicates, left_out=b.left_out - a.left_out
        )
        if not gap.exists:
            return Difference(value)
        reach = gap.reach(error / 2)
    else:
        reach = difference_reach(a, b, error / 2)
    if reach > _ROUNDING * max(abs(first.value), abs(other.value)):
        return Difference(value, value - reach, value + reach)
    # neither varies, as at the edges of shares: what their own limits allow
    (low, high), (other_low, other_high) = first.limits, other.limits
    if low is None or high is None or other_low is None or other_high is None:
        return Difference(value)
    return Difference(value, other_low - high, other_high - low)


def _estimate(figure: Figure, speakers: int) -> Estimate | None:
    """None where it has no limits that hold."""
    if figure.replicates is None or figure.left_out is None or figure.value is None:
        return None
    rule = rule_of(figure.key)
    if None in figure.limits or (rule is not None and rule.few_decide):
        return None
    found = Estimate(figure.value, figure.replicates, figure.left_out, speakers, speakers)
    return found if found.exists else None
