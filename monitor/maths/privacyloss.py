"""The epsilon of differential privacy that an attacker's rates rule out (VoxGuard eq. (5))."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from monitor.errors import UsageError
from monitor.maths.proportion import clopper_pearson
from monitor.types import FloatArray

__all__ = ["DELTA", "epsilon_lower_nats", "epsilon_nats", "finite_epsilon_nats"]

DELTA = 1e-4
"""VoxGuard's fixed delta, which its eq. (5) leaves out; the lower bound takes it off."""


def epsilon_nats(tpr: ArrayLike, fpr: ArrayLike) -> FloatArray:
    """Privacy loss at an operating point, VoxGuard eq. (5), without delta.

    ``max(ln(TPR / FPR), ln((1 - FPR) / (1 - TPR)))``. A lower bound on the mechanism's epsilon, up
    to sampling error: use `epsilon_lower_nats` to claim one. (VoxGuard calls it an upper bound.)

    Args:
        tpr: shape (...).
        fpr: shape (...).

    Returns:
        shape (...); infinite where nobody is accepted by mistake or missed, below 0 where the
        attacker is worse than chance; ``0 / 0`` counts as no loss.

    Raises:
        UsageError: a rate outside 0 to 1.

    Example:
        >>> epsilon_nats([0.5, 0.5, 0.0], [0.01, 0.0, 0.0]).round(3).tolist()
        [3.912, inf, 0.0]
    """
    hit, alarm = np.asarray(tpr, dtype=np.float64), np.asarray(fpr, dtype=np.float64)
    if not (((hit >= 0) & (hit <= 1)).all() and ((alarm >= 0) & (alarm <= 1)).all()):
        raise UsageError("a rate lies between 0 and 1")
    return np.asarray(np.maximum(_log_ratio(hit, alarm), _log_ratio(1 - alarm, 1 - hit)))


def _log_ratio(upper: FloatArray, lower: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(upper) - np.log(lower)
    return np.where(upper == 0, -np.inf, ratio)


def finite_epsilon_nats(tpr: FloatArray, fpr: FloatArray) -> FloatArray:
    """`epsilon_nats`, at least 0, and NaN where it is infinite: for the replicates of a figure.

    Example:
        >>> finite_epsilon_nats(np.array([0.0, 0.5]), np.array([0.5, 0.0])).tolist()
        [0.0, nan]
    """
    loss = epsilon_nats(tpr, fpr)
    return np.where(np.isfinite(loss), np.maximum(loss, 0.0), np.nan)


def epsilon_lower_nats(
    hits: int,
    mated: int,
    false_alarms: int,
    non_mated: int,
    delta: float = DELTA,
    *,
    tail: float = 0.025,
) -> float:
    """What the mechanism's epsilon is at least, with 95 % confidence.

    Each rate is moved against the attacker to its one-sided Clopper-Pearson limit, and delta is
    taken off, as (epsilon, delta)-privacy allows it. Valid for one threshold that was not searched
    for, and for independent trials.

    Args:
        hits: mated scores accepted.
        mated: out of how many.
        false_alarms: non-mated scores accepted.
        non_mated: out of how many.
        delta: of the (epsilon, delta)-privacy in question.
        tail: error of each of the two limits.

    Returns:
        nats, at least 0.

    Raises:
        UsageError: counts that do not fit, or delta outside [0, 1).

    Example:
        >>> round(epsilon_lower_nats(30, 1000, 0, 99_000), 3)
        6.297
    """
    if not 0 <= delta < 1:
        raise UsageError("delta is a probability from 0 to below 1, such as 1e-4")
    accepted, _ = clopper_pearson(hits, mated, tail)
    _, mistaken = clopper_pearson(false_alarms, non_mated, tail)
    ratios = (accepted - delta) / mistaken, (1 - mistaken - delta) / (1 - accepted)
    return float(np.log(max(1.0, *ratios)))
