"""Composition of disclosure over time: guide curves, and bounds on a declared epsilon.

The guides scale like basic and advanced composition (SRD fig. 8) but promise nothing: bits of MeanD
are not an epsilon. The accounting does, in nats, for k windows that are each (epsilon, 0)-private.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from monitor.errors import UsageError

__all__ = ["advanced", "basic", "guides", "optimal"]

_Doubles: TypeAlias = NDArray[np.float64]


def guides(
    length_seconds: ArrayLike, first_seconds: float, first_bits: float, ceiling: float
) -> tuple[_Doubles, _Doubles]:
    """The straight and the square-root guide: ``D0 T / T0`` and ``D0 sqrt(T / T0)``.

    Args:
        length_seconds: T, speech seconds, shape (...).
        first_seconds: T0, the first length of the law's grid.
        first_bits: D0, the law's expected bits at T0.
        ceiling: log2 N, in bits; neither guide exceeds it.

    Returns:
        linear and square-root guide, bits, shape (...); 0 at length 0.

    Raises:
        UsageError: T0 is not positive, or a length, D0 or the ceiling is negative or not finite.

    Example:
        >>> linear, root = guides([0.0, 1.0, 4.0, 100.0], 1.0, 0.5, 3.0)
        >>> linear.tolist(), root.tolist()
        ([0.0, 0.5, 2.0, 3.0], [0.0, 0.5, 1.0, 3.0])
    """
    length = np.asarray(length_seconds, dtype=np.float64)
    if not (np.isfinite(first_seconds) and first_seconds > 0):
        raise UsageError("guides start from the first length of a law: give seconds above 0")
    given = np.concatenate([length.ravel(), [first_bits, ceiling]])
    if not (np.isfinite(given) & (given >= 0)).all():
        raise UsageError("guides take finite lengths, first bits and ceiling of 0 or more")
    ratio = length / first_seconds
    linear, root = first_bits * ratio, first_bits * np.sqrt(ratio)
    return np.asarray(np.minimum(linear, ceiling)), np.asarray(np.minimum(root, ceiling))


def basic(epsilon: float, windows: int) -> float:
    """Basic composition, ``k epsilon`` nats.

    Args:
        epsilon: of one window, nats.
        windows: k.

    Raises:
        UsageError: a negative or infinite epsilon, or a negative k.

    Example:
        >>> basic(0.5, 8)
        4.0
    """
    _check(epsilon, windows, 0.5)
    return windows * epsilon


def advanced(epsilon: float, windows: int, delta: float) -> float:
    """Advanced composition of Dwork, Rothblum and Vadhan.

    ``epsilon sqrt(2 k ln(1 / delta)) + k epsilon (exp(epsilon) - 1)``. It never beats the basic one
    where epsilon >= ln 2.

    Args:
        epsilon: of one window, nats.
        windows: k.
        delta: probability with which the bound may fail, in (0, 1).

    Returns:
        nats.

    Raises:
        UsageError: as `basic`, or delta outside (0, 1).

    Example:
        >>> round(advanced(0.1, 64, 1e-4), 3), basic(0.1, 64)
        (4.107, 6.4)
    """
    _check(epsilon, windows, delta)
    with np.errstate(over="ignore"):
        drift = windows * epsilon * np.expm1(epsilon)
    return float(epsilon * np.sqrt(2 * windows * -np.log(delta)) + drift)


def optimal(epsilon: float, windows: int, delta: float) -> float:
    """The least epsilon that holds: Kairouz, Oh and Viswanath, solved between the grid points.

    Theorem 3.3 gives the delta of each ``(k - 2 i) epsilon``. In between it is that of k randomised
    responses, which no (epsilon, 0)-private mechanisms exceed: a sum of straight lines in exp(x),
    so that the x at which it comes to ``delta`` has a formula.

    Args:
        epsilon: of one window, nats.
        windows: k.
        delta: probability with which the bound may fail, in (0, 1).

    Returns:
        nats, at least 0 and never above `basic`.

    Raises:
        UsageError: as `advanced`.

    Example:
        >>> round(optimal(0.05, 10, 1e-4), 3), round(optimal(0.5, 64, 1e-4), 3)
        (0.417, 20.846)
    """
    _check(epsilon, windows, delta)
    low, high = 0, windows // 2  # delta_i grows with i: the last i that still holds
    while low < high:
        middle = (low + high + 1) // 2
        if _failure(epsilon, windows, middle)[0] <= delta:
            low = middle
        else:
            high = middle - 1
    failure, slope = _failure(epsilon, windows, low)
    with np.errstate(divide="ignore"):  # a slope that underflows is not used
        room = np.float64(delta - failure) / slope
    down = np.log1p(-min(float(room), -np.expm1(-2 * epsilon)))  # not below the next grid point
    return max((windows - 2 * low) * epsilon + float(down), 0.0)


def _failure(epsilon: float, windows: int, i: int) -> tuple[float, float]:
    """delta_i of theorem 3.3, and by how much delta falls with exp(x - x_i) below the grid point.

    Both summed in logarithms over the outcomes j <= i of k randomised responses.
    """
    drawn = np.arange(i + 1, dtype=np.float64)
    ways = np.concatenate([[0.0], np.cumsum(np.log((windows - drawn[:-1]) / (drawn[:-1] + 1)))])
    chance = ways - drawn * epsilon - windows * np.log1p(np.exp(-epsilon))
    beyond = -2 * (i - drawn) * epsilon
    with np.errstate(divide="ignore"):  # the outcome at x_i adds nothing: log 0
        failure = np.exp(chance + np.log(-np.expm1(beyond))).sum()
    return float(failure), float(np.exp(chance + beyond).sum())


def _check(epsilon: float, windows: int, delta: float) -> None:
    if not (np.isfinite(epsilon) and epsilon >= 0):
        raise UsageError("epsilon of a window is a finite number of nats, 0 or more")
    if windows < 0:
        raise UsageError("the number of windows is 0 or more")
    if not 0 < delta < 1:
        raise UsageError("delta is a probability between 0 and 1, such as 1e-4")
