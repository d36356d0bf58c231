"""Newton's method on many small problems at once, and the logistic function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from monitor.types import BoolArray, FloatArray

# ---------------------------------------------------------------------------------------- logistic
# The logistic function as NumPy computes it, for fits whose results are stored or printed in full.
#
# Elsewhere `scipy.special.expit`, ``softmax`` and ``log_softmax`` are used as they are. They may
# round the last bit otherwise than NumPy's exponential does, and a model or a report shows every
# digit: the fits here, and the softmaxes of `monitor.maths.posterior_fit`, `monitor.maths.lid` and
# `monitor.lab.evaluation.lid`, keep NumPy's, so that numbers that were published can be made
# again to the last digit (they would move by some 1e-15 of themselves, a reliability by 1e-13).

_FAR = 700.0  # exp does not overflow


def logistic(log_odds: FloatArray) -> FloatArray:
    """Compute the probability ``1 / (1 + exp(-x))`` of log odds, any shape, nats.

    Example:
        >>> logistic(np.array([0.0, np.log(3.0), 1e9]))
        array([0.5 , 0.75, 1.  ])
    """
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(log_odds, -_FAR, _FAR))))


# ----------------------------------------------------------------------------------------- descent
# Newton's method on many small problems of two unknowns at once.

_Doubles: TypeAlias = NDArray[np.float64]
_Objective: TypeAlias = Callable[[_Doubles], tuple[_Doubles, _Doubles, _Doubles]]
_STEPS = 200
_LONGEST = 2.0
"""Longest step of either unknown."""
_ARRIVED = 1e-9
_NOISE = 1e-13


def descend(
    objective: _Objective,
    start: _Doubles,
    low: float | _Doubles = -np.inf,
    high: float | _Doubles = np.inf,
    steps: int = _STEPS,
) -> tuple[_Doubles, _Doubles]:
    """Walk downhill from every start, (B, 2), by damped Newton steps: points and losses.

    The objective gives the loss (B,), its slope (B, 2) and its Hessian (B, 2, 2) at B points. A
    loss far below 1 is to be scaled up. Neither unknown goes below `low` or above `high`.

    Example:
        >>> def bowl(x):
        ...     bend = np.broadcast_to(2 * np.eye(2), (len(x), 2, 2))
        ...     return ((x - 1) ** 2).sum(axis=1), 2 * (x - 1), bend
        >>> descend(bowl, np.array([[4.0, -3.0]]))[0].round(6)
        array([[1., 1.]])
    """
    point = np.clip(start, low, high)
    loss, gradient, hessian = objective(point)
    pace = np.ones(loss.size)  # 1 a full Newton step, less after a step uphill, 0 once arrived
    for _ in range(steps):
        is_bound = ((point <= low) & (gradient > 0)) | ((point >= high) & (gradient < 0))
        trial = np.clip(point + pace[:, None] * _newton(gradient, hessian, is_bound), low, high)
        distance = np.abs(trial - point).max(axis=1)
        values = objective(trial)
        is_lower = values[0] <= loss + _NOISE * np.maximum(np.abs(loss), 1.0)
        point = np.where(is_lower[:, None], trial, point)
        loss = np.where(is_lower, values[0], loss)
        gradient = np.where(is_lower[:, None], values[1], gradient)
        hessian = np.where(is_lower[:, None, None], values[2], hessian)
        pace = np.where(distance < _ARRIVED, 0.0, np.where(is_lower, 1.0, pace / 4))
        if not pace.any():
            break
    return point, loss


def _newton(gradient: _Doubles, hessian: _Doubles, is_bound: BoolArray) -> _Doubles:
    """Compute steps downhill; hills and ridges are bent upwards, a bound coordinate stays."""
    p, q, r = hessian[:, 0, 0], hessian[:, 1, 1], hessian[:, 0, 1]
    gradient, r = np.where(is_bound, 0.0, gradient), np.where(is_bound.any(axis=1), 0.0, r)
    middle, reach = (p + q) / 2, np.hypot((p - q) / 2, r)
    lowest = middle - reach
    lift = np.where(lowest > 0, 0.0, 1e-6 * (np.abs(middle) + reach) - 2 * lowest)
    p, q = p + lift, q + lift
    determinant = p * q - r * r
    step = np.stack(
        [r * gradient[:, 1] - q * gradient[:, 0], r * gradient[:, 0] - p * gradient[:, 1]], axis=1
    )
    step /= np.where(determinant > 0, determinant, np.inf)[:, None]
    longest = np.abs(step).max(axis=1)
    return np.asarray(step * (_LONGEST / np.maximum(longest, _LONGEST))[:, None])
