"""SRD's four losses beside the likelihood, with their slopes (SRD section IV-B)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from monitor.maths import betabinomial

__all__ = ["RankLoss", "loss_values"]

_Doubles: TypeAlias = NDArray[np.float64]
_HELD = 1e5
"""How hard CLL is held to rank 1 (SRD eq. 7)."""


def loss_values(shares: _Doubles, log: _Doubles, loss: str) -> _Doubles:
    """The loss of each law.

    Args:
        shares: histogram that sums to one, shape (N,).
        log: log-probabilities of the laws, shape (..., N).
        loss: ``"LL"``, ``"MS"``, ``"WMS"``, ``"RWMS"`` or ``"CLL"``.

    Returns:
        shape (...): nats for LL and CLL, squared probability for the others.

    Example:
        >>> float(loss_values(np.array([1.0, 0.0]), np.log([0.5, 0.5]), "MS"))
        0.5
    """
    if loss in ("LL", "CLL"):
        seen = shares > 0
        value = -(log[..., seen] @ shares[seen])
        if loss == "CLL":
            value = value + _HELD * (shares[0] - np.exp(log[..., 0])) ** 2
        return np.asarray(value)
    return np.asarray((shares - np.exp(log)) ** 2 @ _weights(shares, loss))


def _weights(shares: _Doubles, loss: str) -> _Doubles:
    if loss == "MS":
        return np.ones(shares.size)
    return shares if loss == "WMS" else np.exp(-np.arange(1.0, shares.size + 1.0))


@dataclass(frozen=True, slots=True)
class RankLoss:
    """A loss at (log alpha, log beta), with slope and Hessian: an objective of `descend`.

    Attributes:
        shares: histogram that sums to one, shape (N,).
        loss: ``"MS"``, ``"WMS"``, ``"RWMS"`` or ``"CLL"``.
        unit: what the loss is divided by.
    """

    shares: _Doubles
    loss: str
    unit: float = 1.0

    def __call__(self, logs: _Doubles) -> tuple[_Doubles, _Doubles, _Doubles]:
        """At B points, shape (B, 2): loss (B,), slope (B, 2), Hessian (B, 2, 2)."""
        a, b = np.exp(logs).T
        log = betabinomial.log_pmf(a, b, self.shares.size)
        slopes, bends = _derivatives(a[:, None], b[:, None], self.shares.size - 1)
        gamma, weights = np.exp(log), np.ones(1)
        behind = gamma - self.shares
        if self.loss == "CLL":
            # only rank 1 enters the squared part
            gamma, behind, weights = gamma[:, :1], behind[:, :1], np.full(1, _HELD)
        else:
            weights = _weights(self.shares, self.loss)
        ranks, outer = gamma.shape[1], slopes[:, :, None] * slopes[:, None]
        first = gamma[:, None] * slopes[..., :ranks]
        second = gamma[:, None, None] * (outer + bends)[..., :ranks]
        slope = 2.0 * (first * behind[:, None]) @ weights
        hessian = first[:, :, None] * first[:, None] + behind[:, None, None] * second
        hessian = 2.0 * hessian @ weights
        if self.loss == "CLL":
            slope -= slopes @ self.shares
            hessian -= bends @ self.shares
        value = loss_values(self.shares, log, self.loss)
        return value / self.unit, slope / self.unit, hessian / self.unit


def _derivatives(a: _Doubles, b: _Doubles, last: int) -> tuple[_Doubles, _Doubles]:
    """First and second derivatives of log gamma in (log a, log b): (B, 2, N) and (B, 2, 2, N)."""
    i = np.arange(last, dtype=np.float64)
    x, y, z = 1.0 / (a + i), 1.0 / (b + i), 1.0 / (a + b + i)
    every, bend = z.sum(axis=1, keepdims=True), (z * z).sum(axis=1, keepdims=True)
    slope_a, slope_b = a * (_sums(x) - every), b * (_sums(y)[:, ::-1] - every)
    across = np.broadcast_to(a * b * bend, slope_a.shape)
    bend_a = slope_a + a * a * (bend - _sums(x * x))
    bend_b = slope_b + b * b * (bend - _sums(y * y)[:, ::-1])
    bends = np.stack([bend_a, across, across, bend_b], axis=1)
    return np.stack([slope_a, slope_b], axis=1), bends.reshape(len(a), 2, 2, last + 1)


def _sums(steps: _Doubles) -> _Doubles:
    """Running sums from zero: shape (B, n) to (B, n + 1)."""
    sums = np.zeros((steps.shape[0], steps.shape[1] + 1))
    np.cumsum(steps, axis=1, out=sums[:, 1:])
    return sums
