"""How many bits the rank of a voice discloses among M people, for M far beyond those measured.

The law needed is that of the chance that a stranger scores higher than the true speaker. If each
of M - 1 strangers scores higher with probability p, the rank is 1 + Binomial(M - 1, p);
over trials p varies, with density f on [0, 1]. MeanD among M, ``log2 M - H(rank)``, never falls
with M, since ranks among a random part of the crowd follow from those among all, and tends to the
divergence of f from the uniform law. SRD's rank law is f = Beta(alpha, beta).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from monitor.maths.betabinomial import rise
from monitor.types import FloatArray

__all__ = ["beta_mass", "mean_bits", "probit_mass"]

_Doubles: TypeAlias = NDArray[np.float64]
_WIDTH = 0.05
_ODDS = np.arange(-60.0, 60.0 + _WIDTH / 2, _WIDTH)
"""ln(p / (1 - p)) at the nodes."""
_LOG_P, _LOG_Q = -np.logaddexp(0.0, -_ODDS), -np.logaddexp(0.0, _ODDS)
_CELL = np.exp(_LOG_P + _LOG_Q) * _WIDTH
"""Of p: how wide the cell of a node is."""
_EACH = 256
"""Ranks at either end that are gone through one by one; between them f hardly changes from one to
the next."""


def beta_mass(points: FloatArray) -> _Doubles:
    """Share of the trials in each cell of p, by SRD's rank law.

    Args:
        points: shape (B, 2), as `monitor.maths.identification.beta_binomial`.

    Returns:
        shape (B, G). What lies below the lowest cell is left out.
    """
    from scipy.special import gammaln

    a, b = np.exp(points).T[..., None]
    return np.asarray(_WIDTH * np.exp(a * _LOG_P + b * _LOG_Q + rise(b, a) - gammaln(a)))


def probit_mass(points: FloatArray) -> _Doubles:
    """The same by normal scores with a share of misses; a miss tells nothing: p is uniform.

    Args:
        points: shape (B, 2), as `monitor.maths.identification.probit`.
    """
    from scipy.special import expit, ndtri_exp

    w, d = expit(points[:, :1]), points[:, 1:]
    stranger = np.where(_ODDS > 0, ndtri_exp(_LOG_Q), -ndtri_exp(_LOG_P))
    return np.asarray((w * np.exp(d * stranger - d * d / 2) + 1 - w) * _CELL)


def mean_bits(mass: FloatArray, people: int) -> _Doubles:
    """MeanD among M people.

    Args:
        mass: shape (B, G), of `beta_mass` or `probit_mass`; what is missing from 1 stands at p = 0.
        people: M, 2 or more.

    Returns:
        shape (B,), bits, from 0 to ``log2 M``, within 0.002 where p spreads wider than a cell.

    Example:
        >>> mean_bits(beta_mass(np.log([[0.6248, 1.7375]])), 11696).round(3)
        array([0.59])
    """
    whole = np.maximum(mass.sum(axis=1, keepdims=True), 1e-300)
    share = mass / np.maximum(whole, 1.0)
    ends = [share @ ways.T for ways in _ways(people)]
    ends[0][:, 0] += 1.0 - share.sum(axis=1)
    bits = sum(_times_log(each, each * people).sum(axis=1) for each in ends)
    if people > 2 * _EACH:
        edge = np.log((_EACH - 0.5) / (people - _EACH + 0.5))
        inside = np.clip((np.abs(edge) - np.abs(_ODDS)) / _WIDTH + 0.5, 0.0, 1.0)
        bits = bits + _times_log(share, share / _CELL) @ inside
    return np.asarray(np.clip(bits, 0.0, np.log2(people)))


def _times_log(share: _Doubles, ratio: _Doubles) -> _Doubles:
    return np.asarray(share * np.log2(np.where(share > 0, ratio, 1.0)))


def _ways(people: int) -> tuple[_Doubles, ...]:
    """Chance of each rank at either end, by cell: shape (J, G) each; of all ranks where few."""
    others = people - 1.0
    j = np.arange(min(people, 2 * _EACH) if people <= 2 * _EACH else _EACH, dtype=np.float64)[
        :, None
    ]
    choose = rise(others - j + 1.0, j) - rise(1.0, j)
    low = np.exp(choose + j * _LOG_P + (others - j) * _LOG_Q)
    return (low,) if people <= 2 * _EACH else (low, low[:, ::-1])
