"""Maximum likelihood of many rank laws at once.

In the corrected equation (3) log gamma_k is a sum of log(alpha + i) over i < j and of log(beta + i)
over i < n - j. A histogram therefore enters the likelihood only through how many of its trials lie
above each i and how many below, and those sums thin well (`monitor.maths.quadrature`): 11696 ranks
cost about what 200 do.

Source: docs/method.md section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from monitor.maths import quadrature
from monitor.maths.descent import descend
from monitor.types import FloatArray

__all__ = ["HIGHEST", "LOWEST", "maximise"]

LOWEST, HIGHEST = 1e-9, 1e12
"""Where alpha and beta are held; a law that reaches either end has no finite optimum."""
_Doubles: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Tails:
    """Shares of the trials with j > i, with n - j > i, and all of them, at the nodes i."""

    above: _Doubles
    below: _Doubles
    every: _Doubles
    at: _Doubles

    def __call__(self, logs: _Doubles) -> tuple[_Doubles, _Doubles, _Doubles]:
        """Loss (up to a constant), gradient and Hessian at (log alpha, log beta)."""
        a, b = np.exp(logs).T
        x, y, z = (value[:, None] + self.at for value in (a, b, a + b))
        # Each logarithm against that of the uniform law: small numbers, little to cancel.
        unit = self.at + 1.0
        loss = (
            np.log(z / unit) @ self.every
            - _dot(self.above, np.log(x / unit))
            - _dot(self.below, np.log(y / unit))
        )
        x, y, z = 1.0 / x, 1.0 / y, 1.0 / z
        both, bend = z @ self.every, (z * z) @ self.every
        slope_a = a * (both - _dot(self.above, x))
        slope_b = b * (both - _dot(self.below, y))
        hessian = np.empty((a.size, 2, 2))
        hessian[:, 0, 0] = slope_a + a * a * (_dot(self.above, x * x) - bend)
        hessian[:, 1, 1] = slope_b + b * b * (_dot(self.below, y * y) - bend)
        hessian[:, 0, 1] = hessian[:, 1, 0] = -a * b * bend
        return loss, np.stack([slope_a, slope_b], axis=1), hessian


def maximise(shares: FloatArray, start: FloatArray) -> FloatArray:
    """The (alpha, beta) of each histogram, by damped Newton steps in their logarithms.

    Args:
        shares: histograms that each sum to one, shape (B, N). Each must be over-dispersed: its
            variance of j above the binomial's, else there is no finite optimum.
        start: first guesses of (alpha, beta), shape (B, 2).

    Returns:
        shape (B, 2), within [1e-9, 1e12].
    """
    tails = _tails(np.asarray(shares, dtype=np.float64))
    low, high = float(np.log(LOWEST)), float(np.log(HIGHEST))
    point, _ = descend(tails, np.log(start), low, high)
    return np.asarray(np.exp(point))


def _tails(shares: _Doubles) -> _Tails:
    above = np.cumsum(shares[:, :0:-1], axis=1)[:, ::-1]
    below = np.cumsum(shares[:, :-1], axis=1)[:, ::-1]
    last = above.shape[1]
    return _Tails(
        quadrature.gather(above),
        quadrature.gather(below),
        quadrature.gather(np.ones(last)),
        quadrature.nodes(last),
    )


def _dot(weights: _Doubles, values: _Doubles) -> _Doubles:
    return np.asarray(np.einsum("bk,bk->b", weights, values))
