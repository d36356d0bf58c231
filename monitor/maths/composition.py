"""Composition of disclosure over time, differential privacy and its bounds."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from monitor.errors import UsageError
from monitor.maths.statistics import clopper_pearson
from monitor.types import DoubleArray, FloatArray

# The guides scale like basic and advanced composition (SRD fig. 8) but promise nothing: bits of
# MeanD are not an epsilon. The accounting does, in nats, for k windows that are each (epsilon,
# 0)-private.


def guides(
    length_seconds: ArrayLike, first_seconds: float, first_bits: float, ceiling: float
) -> tuple[DoubleArray, DoubleArray]:
    """Compute the linear and square-root guides, ``D0 T / T0`` and ``D0 sqrt(T / T0)``, in bits.

    T is in speech seconds, of any shape. T0 is the first length of a rank model's grid, with D0
    expected bits. Neither guide exceeds the ceiling, log2 N.

    Example:
        >>> linear, root = guides([0.0, 1.0, 4.0, 100.0], 1.0, 0.5, 3.0)
        >>> linear.tolist(), root.tolist()
        ([0.0, 0.5, 2.0, 3.0], [0.0, 0.5, 1.0, 3.0])
    """
    length = np.asarray(length_seconds, dtype=np.float64)
    if not (np.isfinite(first_seconds) and first_seconds > 0):
        raise UsageError("guides start from the first length of a rank model: give seconds above 0")
    inputs = np.concatenate([length.ravel(), [first_bits, ceiling]])
    if not (np.isfinite(inputs) & (inputs >= 0)).all():
        raise UsageError("invalid guides: use finite lengths, first bits and ceiling of at least 0")
    ratio = length / first_seconds
    linear, root = first_bits * ratio, first_bits * np.sqrt(ratio)
    return np.asarray(np.minimum(linear, ceiling)), np.asarray(np.minimum(root, ceiling))


@dataclass(frozen=True, slots=True)
class PrivacySpent:
    """Epsilon spent in k trials by each bound, in nats; each bound is valid by itself."""

    trials: int
    basic_nats: float
    advanced_nats: float
    optimal_nats: float


def basic(epsilon: float, windows: int) -> float:
    """Compose k windows by the basic theorem: ``k epsilon`` nats."""
    _check(epsilon, windows, 0.5)
    return windows * epsilon


def advanced(epsilon: float, windows: int, delta: float) -> float:
    """Compose k windows by the advanced theorem of Dwork, Rothblum and Vadhan: nats.

    ``epsilon sqrt(2 k ln(1 / delta)) + k epsilon (exp(epsilon) - 1)``, which may fail with
    probability delta. It never beats the basic one where epsilon >= ln 2.

    Example:
        >>> round(advanced(0.1, 64, 1e-4), 3), basic(0.1, 64)
        (4.107, 6.4)
    """
    _check(epsilon, windows, delta)
    with np.errstate(over="ignore"):
        drift = windows * epsilon * np.expm1(epsilon)
    return float(epsilon * np.sqrt(2 * windows * -np.log(delta)) + drift)


def optimal(epsilon: float, windows: int, delta: float) -> float:
    """Compute the smallest epsilon that k windows compose to (Kairouz, Oh and Viswanath): nats.

    Theorem 3.3 gives the delta at each ``(k - 2 i) epsilon``. In between, delta is that of k
    randomised responses, which no (epsilon, 0)-private mechanisms exceed. It is piecewise linear in
    exp(x), so the x that reaches ``delta`` has a closed form.

    Example:
        >>> round(optimal(0.05, 10, 1e-4), 3), round(optimal(0.5, 64, 1e-4), 3)
        (0.417, 20.846)
    """
    _check(epsilon, windows, delta)
    low, high = 0, windows // 2  # delta_i grows with i: find the last i with delta_i <= delta
    while low < high:
        middle = (low + high + 1) // 2
        if _failure(epsilon, windows, middle)[0] <= delta:
            low = middle
        else:
            high = middle - 1
    failure, decay = _failure(epsilon, windows, low)
    with np.errstate(divide="ignore"):  # if the slope underflows, the next line limits the step
        room = np.float64(delta - failure) / decay
    down = np.log1p(-min(float(room), -np.expm1(-2 * epsilon)))  # not below the next grid point
    return max((windows - 2 * low) * epsilon + float(down), 0.0)


def _failure(epsilon: float, windows: int, i: int) -> tuple[float, float]:
    """Compute delta_i of theorem 3.3, and its decrease per unit of exp(x - x_i) below x_i.

    Both are sums over the outcomes j <= i of k randomised responses.
    """
    counts = np.arange(i + 1, dtype=np.float64)
    log_choose = np.concatenate(
        [[0.0], np.cumsum(np.log((windows - counts[:-1]) / (counts[:-1] + 1)))]
    )
    chance = log_choose - counts * epsilon - windows * np.log1p(np.exp(-epsilon))
    beyond = -2 * (i - counts) * epsilon
    with np.errstate(divide="ignore"):  # log 0: outcome i adds nothing
        failure = np.exp(chance + np.log(-np.expm1(beyond))).sum()
    return float(failure), float(np.exp(chance + beyond).sum())


def _check(epsilon: float, windows: int, delta: float) -> None:
    if not (np.isfinite(epsilon) and epsilon >= 0):
        raise UsageError("invalid epsilon of a window: use a finite number of nats, at least 0")
    if windows < 0:
        raise UsageError("invalid number of windows: use at least 0")
    if not 0 < delta < 1:
        raise UsageError("invalid delta: use a probability between 0 and 1, such as 1e-4")


# The epsilon of differential privacy that an attacker's rates rule out (VoxGuard eq. (5)).
DELTA = 1e-4  # VoxGuard's fixed delta, missing from its eq. (5); the lower bound subtracts it


def epsilon_nats(tpr: ArrayLike, fpr: ArrayLike) -> FloatArray:
    """Compute the privacy loss at an operating point, VoxGuard eq. (5), without delta.

    It is ``max(ln(TPR / FPR), ln((1 - FPR) / (1 - TPR)))``. It is infinite without false accepts or
    without misses, and below 0 if the attacker is worse than chance. ``0 / 0`` counts as no loss.
    Up to sampling error this is a lower bound on the mechanism's epsilon (VoxGuard calls it an
    upper bound).

    Example:
        >>> epsilon_nats([0.5, 0.5, 0.0], [0.01, 0.0, 0.0]).round(3).tolist()
        [3.912, inf, 0.0]
    """
    hit, alarm = np.asarray(tpr, dtype=np.float64), np.asarray(fpr, dtype=np.float64)
    if not (((hit >= 0) & (hit <= 1)).all() and ((alarm >= 0) & (alarm <= 1)).all()):
        raise UsageError("invalid rate: use 0 to 1")
    return np.asarray(np.maximum(_log_ratio(hit, alarm), _log_ratio(1 - alarm, 1 - hit)))


def _log_ratio(upper: FloatArray, lower: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(upper) - np.log(lower)
    return np.where(upper == 0, -np.inf, ratio)


def epsilon_lower_nats(
    hits: int, mated: int, false_alarms: int, non_mated: int, delta: float = DELTA, *,
    tail: float = 0.025,
) -> float:  # fmt: skip
    """Compute a lower bound of the mechanism's epsilon, with 95 % confidence: nats, at least 0.

    `hits` of `mated` trials and `false_alarms` of `non_mated` trials were accepted. Each rate is
    moved against the attacker to its one-sided Clopper-Pearson limit with error `tail`, and delta
    is subtracted. The bound is valid for independent trials and a threshold fixed in advance.

    Example:
        >>> round(epsilon_lower_nats(30, 1000, 0, 99_000), 3)
        6.297
    """
    if not 0 <= delta < 1:
        raise UsageError("invalid delta: use a probability from 0 to below 1, such as 1e-4")
    accepted, _ = clopper_pearson(hits, mated, tail)
    _, mistaken = clopper_pearson(false_alarms, non_mated, tail)
    ratios = (accepted - delta) / mistaken, (1 - mistaken - delta) / (1 - accepted)
    return float(np.log(max(1.0, *ratios)))


# Dwork, McSherry, Nissim and Smith, Calibrating noise to sensitivity in private data analysis, TCC
# 2006; on clipped features as in USC section 2.5.
def clipped(vectors: FloatArray, bound: float) -> FloatArray:
    """Shorten vectors (..., d) to an L1 norm of at most C > 0, the ``bound``."""
    norms = np.abs(vectors).sum(axis=-1, keepdims=True)
    return np.asarray(
        vectors * np.divide(bound, norms, out=np.ones_like(norms), where=norms > bound)
    )


def noise_scale(epsilon: float, bound: float) -> float:
    """Compute ``2 C / epsilon`` for vectors clipped to norm C; epsilon in nats."""
    return 2 * bound / epsilon


def laplace(uniform: FloatArray, scale: float) -> FloatArray:
    """Draw Laplace noise from uniform numbers in (0, 1), by the inverse distribution function.

    `scale`: b of the density ``exp(-|x| / b) / (2 b)``; its standard deviation is sqrt(2) b.
    """
    tail = np.minimum(uniform, 1 - uniform)
    return np.asarray(-scale * np.sign(uniform - 0.5) * np.log(2 * tail))


def secret_uniform(count: int, *key_parts: object) -> FloatArray:
    """Draw numbers strictly between 0 and 1, (count,), which only knowing all parts reproduces.

    They are output of SHAKE-256, 52 bits each, keyed by the ``repr`` of the parts, such as a secret
    seed.
    """
    key = repr(key_parts).encode("utf-8", "replace")
    integers = np.frombuffer(hashlib.shake_256(key).digest(8 * count), "<u8") >> np.uint64(12)
    return np.asarray((integers + 0.5) * 2.0**-52)
