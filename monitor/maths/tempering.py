"""Tempering of log-likelihood ratios that were summed over dependent trials (LID, longitudinal).

Trials of one speaker resemble each other, so their plain sum is overconfident. The sum is divided
by a temperature: one number, or ``tau (1 + rho g)`` where g grows with the number of trials.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from monitor.errors import UsageError
from monitor.maths.descent import descend
from monitor.maths.lid import softmax_bits
from monitor.types import FloatArray, IntArray

__all__ = ["fit_growing_temperature", "fit_temperature", "tempered_bits"]

_Doubles: TypeAlias = NDArray[np.float64]
_LOWEST, _HIGHEST = 0.05, 100.0
_SECTIONS, _STEPS = 60, 30
_WIDEST = 20.0
"""Range of log tau and of the logit of rho."""


def tempered_bits(ratios: FloatArray, target: IntArray, temperature: FloatArray) -> _Doubles:
    """``log2(N p_target)`` under the softmax of ``ratios / temperature``.

    Args:
        ratios: summed log-likelihood ratios, shape (..., N).
        target: column of the true speaker, broadcast with shape (...).
        temperature: broadcast with shape (...).

    Returns:
        shape (...), bits.

    Example:
        >>> tempered_bits(np.log([[3.0, 1.0]]), np.array([0]), np.array([1.0])).round(3)
        array([0.585])
    """
    return softmax_bits(ratios / np.asarray(temperature)[..., None], target)


def fit_temperature(ratios: FloatArray, target: IntArray, trials: int = 1) -> float:
    """The temperature under which summed ratios predict their speakers best.

    The loss is convex in ``1 / T``: the one minimum between 0.05 and ``max(100, 4 trials)`` that
    a fine grid and a golden section would find, by Newton steps held inside a bracket.

    Args:
        ratios: sums of development speakers, shape (n, N).
        target: shape (n,).
        trials: the most that a sum holds.

    Returns:
        T > 0.

    Raises:
        UsageError: no sum to fit on.

    Example:
        >>> ratios = 6 * np.eye(4) + 8 * np.eye(4)[[1, 1, 2, 3]]
        >>> round(fit_temperature(ratios, np.arange(4)), 2)
        2.79
    """
    if not len(ratios):
        raise UsageError("a temperature is fitted on sums of development speakers: give some")
    columns = np.broadcast_to(target, len(ratios))[:, None]
    behind = ratios - ratios.max(axis=1, keepdims=True)
    own = float(np.take_along_axis(behind, columns, axis=1).mean())

    def slope(cold: float) -> tuple[float, float]:
        mass = softmax(behind * cold, axis=1)
        weighed = mass * behind
        mean = weighed.sum(axis=1)
        bend = np.einsum("ij,ij->i", weighed, behind) - mean**2
        return float(mean.mean()) - own, float(bend.mean())

    low, high = 1.0 / max(_HIGHEST, 4.0 * trials), 1.0 / _LOWEST
    if slope(high)[0] <= 0:  # sums that are all right have no best temperature
        return _LOWEST
    cold = 1.0
    for _ in range(_SECTIONS):
        rise, bend = slope(cold)
        low, high = (low, cold) if rise > 0 else (cold, high)
        new = cold - rise / bend if bend > 0 else low
        if not low < new < high:
            new = float(np.sqrt(low * high))
        arrived = abs(new - cold) <= 1e-10 * cold
        cold = new
        if arrived:
            break
    return 1.0 / cold


def fit_growing_temperature(
    ratios: FloatArray, target: IntArray, growth: FloatArray
) -> tuple[float, float]:
    """Tau and rho of ``T = tau (1 + rho g)``.

    Args:
        ratios: sums of development speakers after different numbers of trials, shape (n, N).
        target: shape (n,).
        growth: g of each, shape (n,): k - 1 after k trials, or what embeddings say.

    Returns:
        tau > 0 and rho in [0, 1], at which the mean of ``-log p_target`` is lowest.

    Raises:
        UsageError: no sum to fit on.
    """
    if not len(ratios):
        raise UsageError("a temperature is fitted on sums of development speakers: give some")
    columns = np.broadcast_to(target, len(ratios))[:, None]
    own = np.take_along_axis(ratios, columns, axis=1)[:, 0]
    behind = ratios - ratios.max(axis=1, keepdims=True)

    def objective(points: _Doubles) -> tuple[_Doubles, _Doubles, _Doubles]:
        losses, slopes, bends = zip(*(at(float(u), float(v)) for u, v in points), strict=True)
        return np.array(losses), np.stack(slopes), np.stack(bends)

    def at(u: float, v: float) -> tuple[float, _Doubles, _Doubles]:
        rho = float(expit(v))
        turn = rho * (1.0 - rho)
        q = 1.0 + rho * growth
        cold = np.exp(-u) / q  # one over the temperature
        mass = np.exp(behind * cold[:, None])
        total = mass.sum(axis=1)
        mean = (mass * behind).sum(axis=1) / total
        spread = (mass * behind**2).sum(axis=1) / total - mean**2
        lead = own - ratios.max(axis=1)
        loss, first = np.log(total) - lead * cold, mean - lead
        by_rho = -cold * growth / q
        c_u, c_v = -cold, by_rho * turn
        c_vv = 2.0 * cold * (growth / q * turn) ** 2 + by_rho * turn * (1.0 - 2.0 * rho)
        slope = np.array([(first * c_u).mean(), (first * c_v).mean()])
        across = (spread * c_u * c_v - first * c_v).mean()
        return (
            float(loss.mean()),
            slope,
            np.array(
                [
                    [(spread * c_u**2 + first * cold).mean(), across],
                    [across, (spread * c_v**2 + first * c_vv).mean()],
                ]
            ),
        )

    # sums that are all right have no best temperature: a few steps towards a sharper one will do
    found, _ = descend(objective, np.array([[0.0, -1.0]]), -_WIDEST, _WIDEST, _STEPS)
    log_tau, logit = found[0]
    return float(np.exp(log_tau)), float(expit(logit))
