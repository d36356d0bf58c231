"""Platt calibration: logistic regression of one score, by Newton's method.

The weighting and the penalty are scikit-learn's, so that its results can be had without it:
``sum_i s_i log(1 + exp(-y_i (w z_i + b))) + w^2 / (2 C)``, the bias free.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from monitor.errors import CalibrationError
from monitor.types import FloatArray

__all__ = ["Platt", "platt"]

_Doubles: TypeAlias = NDArray[np.float64]
_STEPS = 100
_LARGE, _MOST = 100, 300
"""Powers of two: of scores that are fitted as they are, and by which a penalty is scaled."""
_ARRIVED = 3e-6
"""Newton squares its error: after a step this short the next would be rounding."""


@dataclass(frozen=True, slots=True)
class Platt:
    """A calibration ``w z + b``.

    Attributes:
        weight: w.
        bias: b.
        bounded: the classes separate and no penalty was asked for: w would be infinite, so the
            penalty of C = 1 was taken.
    """

    weight: float
    bias: float
    bounded: bool = False


def platt(
    mated: FloatArray,
    non_mated: FloatArray,
    counts: FloatArray | None = None,
    balanced: bool = False,
    strength: float = np.inf,
    start: Platt | None = None,
    separable: bool | None = None,
) -> Platt:
    """Fit a logistic regression that tells mated from non-mated scores.

    Args:
        mated: shape (n,).
        non_mated: shape (m,).
        counts: shape (m,), how often each non-mated score stands; 1 where not given.
        balanced: both classes weigh half of all scores (``class_weight="balanced"``).
        strength: C, the inverse of the L2 penalty on w; infinite means none.
        start: where to begin.
        separable: whether one threshold tells the classes apart, where that is known.

    Returns:
        w to about 1e-10 of itself, and b.

    Raises:
        CalibrationError: a class is empty.

    Example:
        >>> found = platt(np.array([1.0, 2.0, 0.0]), np.array([-1.0, 0.5, -2.0, 0.0]))
        >>> round(found.weight, 4), round(found.bias, 4)
        (2.3005, -0.8566)
    """
    mated, non_mated = np.ravel(mated), np.ravel(non_mated)
    many = float(non_mated.size if counts is None else counts.sum())
    if mated.size == 0 or many == 0:
        raise CalibrationError("a calibration needs mated and non-mated scores: add trials")
    lows, highs = (mated.min(), non_mated.min()), (mated.max(), non_mated.max())
    if min(lows) == max(highs):
        share = 0.0 if balanced else float(np.log(mated.size / many))
        return Platt(0.0, share)
    if separable is None:
        separable = bool(lows[0] >= highs[1] or highs[0] <= lows[1])
    bounded = separable and not np.isfinite(strength)
    penalty = 1.0 if bounded else 1.0 / strength
    power = _power(mated, non_mated)
    if power:
        mated, non_mated = np.ldexp(mated, -power), np.ldexp(non_mated, -power)
    penalty = float(np.ldexp(penalty, max(min(-2 * power, _MOST), -_MOST)))  # of w 2^power
    total = mated.size + many
    heavy = (total / (2 * mated.size), total / (2 * many)) if balanced else (1.0, 1.0)

    def lost(point: _Doubles) -> float:
        own = np.logaddexp(0.0, -(point[0] * mated + point[1])).sum()
        other = np.logaddexp(0.0, point[0] * non_mated + point[1])
        other = other.sum() if counts is None else other @ counts
        return float(heavy[0] * own + heavy[1] * other + penalty * point[0] ** 2 / 2)

    first = 0.0 if balanced else float(np.log(mated.size / many))
    point = np.array([0.0, first] if start is None else [np.ldexp(start.weight, power), start.bias])
    for _ in range(_STEPS):
        own, other = _side(-point, mated, None), _side(point, non_mated, counts)
        slope = heavy[1] * other[0] - heavy[0] * own[0] + [penalty * point[0], 0.0]
        bend = heavy[0] * own[1] + heavy[1] * other[1] + np.diag([penalty, 0.0])
        step = -np.linalg.solve(bend + 1e-14 * np.trace(bend) * np.eye(2), slope)
        if (np.abs(step) <= _ARRIVED * (1.0 + np.abs(point))).all():
            point = point + step
            break
        here = lost(point)
        while lost(point + step) > here * (1 + 1e-12) and np.abs(step).max() > _ARRIVED:
            step /= 4
        point = point + step
    return Platt(float(np.ldexp(point[0], -power)), float(point[1]), bounded)


def _power(mated: FloatArray, non_mated: FloatArray) -> int:
    """0, or the power of two of scores whose squares would overflow or vanish."""
    size = max(float(np.abs(each).max()) for each in (mated, non_mated))
    power = int(np.frexp(size)[1])
    return power if abs(power) > _LARGE else 0


def _side(
    point: _Doubles, scores: FloatArray, counts: FloatArray | None
) -> tuple[_Doubles, _Doubles]:
    """Slope and Hessian of ``sum c log(1 + exp(w z + b))``."""
    margin = point[0] * scores + point[1]
    small = np.exp(-np.abs(margin))  # see monitor.maths.logistic
    share = np.where(margin >= 0, 1.0, small) / (1.0 + small)
    bend = share * (1.0 - share)
    if counts is not None:
        share, bend = share * counts, bend * counts
    bent = bend * scores
    across = bent.sum()
    return (
        np.array([share @ scores, share.sum()]),
        np.array([[bent @ scores, across], [across, bend.sum()]]),
    )
