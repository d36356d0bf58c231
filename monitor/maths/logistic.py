"""Logistic regressions and other fits by Newton's method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from monitor.errors import CalibrationError
from monitor.types import BoolArray, DoubleArray, FloatArray, IntArray

# Other modules use `scipy.special.expit`, ``softmax`` and ``log_softmax``. Their last bit may
# differ from that of NumPy's exponential, and a model or a report shows every digit. The fits here
# and two softmaxes (`monitor.maths.posterior_fit`, `monitor.lab.evaluation.calibration`) keep
# NumPy's. Published numbers therefore stay the same to the last digit. Otherwise they would change
# by a fraction of some 1e-15, a reliability by 1e-13.
_FAR = 700.0  # exp does not overflow


def logistic(log_odds: FloatArray) -> FloatArray:
    """Compute the probability ``1 / (1 + exp(-x))`` of log odds, any shape, nats.

    Example:
        >>> logistic(np.array([0.0, np.log(3.0), 1e9]))
        array([0.5 , 0.75, 1.  ])
    """
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(log_odds, -_FAR, _FAR))))


_Objective: TypeAlias = Callable[
    [DoubleArray, IntArray], tuple[DoubleArray, DoubleArray, DoubleArray]
]
_STEPS = 200
_LONGEST = 2.0  # longest step of either unknown
_ARRIVED = 1e-9
_NOISE = 1e-13


def descend(
    objective: _Objective,
    start: DoubleArray,
    low: float | DoubleArray = -np.inf,
    high: float | DoubleArray = np.inf,
    steps: int = _STEPS,
) -> tuple[DoubleArray, DoubleArray]:
    """Minimise from every start, (B, 2), by damped Newton steps: points (B, 2), losses (B,).

    The objective gets R points and their rows of ``start``, and returns the loss (R,), its gradient
    (R, 2) and its Hessian (R, 2, 2). Scale up a loss far below 1. Points stay from `low` to `high`.
    """
    point = np.clip(start, low, high)
    rows = np.arange(len(point))  # not yet converged
    loss, gradient, hessian = objective(point, rows)
    pace = np.ones(loss.size)  # 1 a full Newton step, less after a step uphill
    for _ in range(steps):
        here, slope = point[rows], gradient[rows]
        is_bound = ((here <= low) & (slope > 0)) | ((here >= high) & (slope < 0))
        step = pace[rows, None] * _newton(slope, hessian[rows], is_bound)
        trial = np.clip(here + step, low, high)
        values = objective(trial, rows)
        is_lower = values[0] <= loss[rows] + _NOISE * np.maximum(np.abs(loss[rows]), 1.0)
        lower = rows[is_lower]
        point[lower] = trial[is_lower]
        loss[lower], gradient[lower], hessian[lower] = (value[is_lower] for value in values)
        pace[rows] = np.where(is_lower, 1.0, pace[rows] / 4)
        rows = rows[~(np.abs(trial - here).max(axis=1) < _ARRIVED)]
        if not rows.size:
            break
    return point, loss


def _newton(gradient: DoubleArray, hessian: DoubleArray, is_bound: BoolArray) -> DoubleArray:
    """Compute downhill steps, with indefinite Hessians shifted and bound values fixed."""
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


_RIDGE_STEPS = 50


def fit_ridge(
    scores: FloatArray,
    label: BoolArray,
    weight: FloatArray,
    ridge: float,
    start: tuple[float, FloatArray] | None = None,
) -> tuple[float, FloatArray]:
    """Fit log odds ``bias + scores @ slopes`` of a label: the bias, and slopes (F,).

    ``scores``, (n, F), are standardised first. ``label`` and ``weight`` have shape (n,). The fit
    minimises the mean negative log-likelihood plus half of ``ridge`` times the squared slopes.
    ``start`` is a similar fit, which only saves time.

    Example:
        >>> scores = np.array([[-1.0], [0.0], [0.0], [1.0]])
        >>> bias, slopes = fit_ridge(scores, np.array([False, False, True, True]), np.ones(4), 0.01)
        >>> bool(slopes[0] > 1), round(abs(bias), 6)
        (True, 0.0)
    """
    from scipy.special import expit

    weight = weight / weight.sum()
    mean = weight @ scores
    deviation = np.sqrt(weight @ (scores - mean) ** 2)
    deviation = np.where(deviation > 0, deviation, 1.0)
    x = np.column_stack([np.ones(len(scores)), (scores - mean) / deviation])
    penalty = np.diag([0.0, *np.full(scores.shape[1], ridge)])
    coefficients = np.zeros(x.shape[1])
    if start is not None:
        coefficients = np.append(start[0] + start[1] @ mean, start[1] * deviation)
    for _ in range(_RIDGE_STEPS):
        p = expit(x @ coefficients)
        gradient = x.T @ (weight * (label - p)) - penalty @ coefficients
        hessian = (x * (weight * p * (1.0 - p))[:, None]).T @ x + penalty
        step = np.linalg.solve(hessian + 1e-9 * np.eye(len(coefficients)), gradient)
        coefficients += np.clip(step, -2.0, 2.0)
        if np.abs(step).max() < 1e-9:
            break
    slopes = coefficients[1:] / deviation
    return float(coefficients[0] - slopes @ mean), slopes


# The weighting and the penalty are scikit-learn's, so that its results are available without it.
# The loss is ``sum_i s_i log(1 + exp(-y_i (w z_i + b))) + w^2 / (2 C)``, with an unpenalised bias.
_PLATT_STEPS = 100
_LARGE, _MOST = 100, 300
"""Powers of two: the largest of scores that are not scaled, and the largest of a penalty."""
_PLATT_ARRIVED = 3e-6
"""Newton squares its error: after a step this short the next would be rounding."""


@dataclass(frozen=True, slots=True)
class Platt:
    """A calibration ``w z + b``; bounded if the classes separate, so that C = 1 keeps w finite."""

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
    """Fit a logistic regression that separates mated from non-mated scores, (n,) and (m,).

    `counts`, (m,), is the multiplicity of each non-mated score. `balanced` gives each class half of
    the total weight (``class_weight="balanced"``). `strength` is C, the inverse of the L2 penalty
    on w. `start` is the initial point. `separable` is whether a threshold separates the classes, if
    known.

    Example:
        >>> found = platt(np.array([1.0, 2.0, 0.0]), np.array([-1.0, 0.5, -2.0, 0.0]))
        >>> round(found.weight, 4), round(found.bias, 4)
        (2.3005, -0.8566)
    """
    mated, non_mated = np.ravel(mated), np.ravel(non_mated)
    non_mated_count = float(non_mated.size if counts is None else counts.sum())
    if mated.size == 0 or non_mated_count == 0:
        raise CalibrationError("a calibration needs mated and non-mated scores: add trials")
    lows, highs = (mated.min(), non_mated.min()), (mated.max(), non_mated.max())
    log_odds = 0.0 if balanced else float(np.log(mated.size / non_mated_count))
    if min(lows) == max(highs):
        return Platt(0.0, log_odds)
    if separable is None:
        separable = bool(lows[0] >= highs[1] or highs[0] <= lows[1])
    bounded = separable and not np.isfinite(strength)
    penalty = 1.0 if bounded else 1.0 / strength
    # squares of scores may neither overflow nor vanish
    power = int(np.frexp(max(np.abs(mated).max(), np.abs(non_mated).max()))[1])
    power = power if abs(power) > _LARGE else 0
    mated, non_mated = np.ldexp(mated, -power), np.ldexp(non_mated, -power)
    penalty = float(np.ldexp(penalty, max(min(-2 * power, _MOST), -_MOST)))  # of w 2^power
    total = mated.size + non_mated_count
    scale = (total / (2 * mated.size), total / (2 * non_mated_count)) if balanced else (1.0, 1.0)

    def compute_loss(point: DoubleArray) -> float:
        mated_loss = np.logaddexp(0.0, -(point[0] * mated + point[1])).sum()
        non_mated_loss = np.logaddexp(0.0, point[0] * non_mated + point[1])
        non_mated_loss = non_mated_loss.sum() if counts is None else non_mated_loss @ counts
        return float(
            scale[0] * mated_loss + scale[1] * non_mated_loss + penalty * point[0] ** 2 / 2
        )

    point = np.array([0.0, log_odds])
    if start is not None:
        point = np.array([np.ldexp(start.weight, power), start.bias])
    for _ in range(_PLATT_STEPS):
        mated_side, other_side = _side(-point, mated, None), _side(point, non_mated, counts)
        gradient = scale[1] * other_side[0] - scale[0] * mated_side[0] + [penalty * point[0], 0.0]
        hessian = scale[0] * mated_side[1] + scale[1] * other_side[1] + np.diag([penalty, 0.0])
        step = -np.linalg.solve(hessian + 1e-14 * np.trace(hessian) * np.eye(2), gradient)
        if (np.abs(step) <= _PLATT_ARRIVED * (1.0 + np.abs(point))).all():
            point = point + step
            break
        loss = compute_loss(point)
        while (
            compute_loss(point + step) > loss * (1 + 1e-12) and np.abs(step).max() > _PLATT_ARRIVED
        ):
            step /= 4
        point = point + step
    return Platt(float(np.ldexp(point[0], -power)), float(point[1]), bounded)


def _side(
    point: DoubleArray, scores: FloatArray, counts: FloatArray | None
) -> tuple[DoubleArray, DoubleArray]:
    """Return gradient and Hessian of ``sum c log(1 + exp(w z + b))``."""
    margin = point[0] * scores + point[1]
    exponential = np.exp(-np.abs(margin))  # as `logistic`
    probability = np.where(margin >= 0, 1.0, exponential) / (1.0 + exponential)
    curvature = probability * (1.0 - probability)
    if counts is not None:
        probability, curvature = probability * counts, curvature * counts
    weighted_scores = curvature * scores
    cross_term = weighted_scores.sum()
    return (
        np.array([probability @ scores, probability.sum()]),
        np.array([[weighted_scores @ scores, cross_term], [cross_term, curvature.sum()]]),
    )


# A posterior over N enrolled speakers cannot express "none of them" (docs/method.md section 5). The
# absolute fit of the best candidate can. Every calibration trial is used twice: unchanged, and
# without the true speaker's template, as for an impostor. A logistic regression on the favourite's
# absolute scores, one number per feature, separates the two.
_OPENSET_RIDGE = 1e-3
_OPENSET_FOLDS = 20


@dataclass(frozen=True, slots=True)
class OpenSet:
    """Regression that separates enrolled speakers from impostors, with its cross-validated rates.

    The log odds of being enrolled, at even prior odds, are ``bias + slopes @ favourite``. The
    fractions of enrolled trials kept and of impostors found are those at log odds of 0. ``area`` is
    the area under the ROC curve: 0.5 is useless, 1 is perfect.
    """

    bias: float
    slopes: FloatArray
    enrolled_kept: float
    impostors_found: float
    area: float


def fit_open_set(enrolled: FloatArray, impostors: FloatArray, speaker: IntArray) -> OpenSet:
    """Fit the open-set regression and evaluate it on held-out speakers.

    ``enrolled`` are absolute scores of the favourite, (n, F), with all speakers enrolled, and
    ``impostors`` those without the true speaker. ``speaker`` is that of each trial, (n,). Every
    speaker has the same weight.
    """
    weight = 1.0 / np.bincount(speaker)[speaker]
    weights = np.tile(weight, 2)
    scores = np.concatenate([enrolled, impostors])
    label = np.repeat([True, False], len(enrolled))
    # folds of whole speakers
    fold = np.tile(np.unique(speaker, return_inverse=True)[1] % _OPENSET_FOLDS, 2)
    odds = np.empty(label.size)
    full_fit = fit_ridge(scores, label, weights, _OPENSET_RIDGE)
    for index in np.unique(fold):
        is_training = fold != index
        if is_training.any():
            bias, slopes = fit_ridge(
                scores[is_training],
                label[is_training],
                weights[is_training],
                _OPENSET_RIDGE,
                full_fit,
            )
            odds[~is_training] = bias + scores[~is_training] @ slopes
    bias, slopes = full_fit
    enrolled_kept, impostors_found, area = compute_separation(odds[label], odds[~label], weight)
    return OpenSet(bias, slopes, enrolled_kept, impostors_found, area)


def compute_separation(
    enrolled: FloatArray, impostors: FloatArray, weight: FloatArray
) -> tuple[float, float, float]:
    """Compute rates at even log odds (enrolled kept, impostors found), and the ROC area.

    The inputs, all (n,), are the log odds of enrolled and impostor trials, and the weight of each
    trial.
    """
    total = weight.sum()
    order = np.argsort(impostors, kind="stable")
    mass = np.concatenate([[0.0], np.cumsum(weight[order])])
    below = mass[np.searchsorted(impostors[order], enrolled, side="left")]
    upto = mass[np.searchsorted(impostors[order], enrolled, side="right")]
    return (
        float(weight[enrolled >= 0].sum() / total),
        float(weight[impostors < 0].sum() / total),
        float((weight * 0.5 * (below + upto)).sum() / total**2),
    )
