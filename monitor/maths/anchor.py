"""A prior on the weights and the floor of a posterior, from a law of other speakers.

A fit on few speakers can be far off, and what it then claims is far off too. Another law, learnt on
other speakers, says where to look: as if m further speakers had been heard whose trials look like
ours and whose true speakers are drawn from what the other law says (a catalytic prior: Huang,
Stein, Rubin and Kou, "Catalytic prior distributions with application to generalized linear models",
PNAS 117, 2020). Their mean loss is, to second order, a paraboloid around the other law whose bend
is the Fisher information of one trial. Against S speakers it counts m / (S + m): it fades.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from monitor.types import FloatArray

__all__ = ["Anchor", "information"]


@dataclass(frozen=True, slots=True)
class Anchor:
    """A quadratic penalty around the parameters of another law.

    Attributes:
        centre: lambda and log e of that law, and of each of its resamples, shape (1 + B, F + 1);
            or of the law alone, shape (1, F + 1).
        precision: its bend, nats of one speaker's mean loss, shape (F + 1, F + 1).
    """

    centre: FloatArray
    precision: FloatArray

    def worth(self, speakers: float) -> Anchor:
        """The same in the weight of so many speakers."""
        return Anchor(self.centre, self.precision * speakers)

    @property
    def law(self) -> Anchor:
        """The law without its resamples."""
        return Anchor(self.centre[:1], self.precision)

    def cost(self, weights: FloatArray, floors: FloatArray) -> FloatArray:
        """Nats at every point: weights of shape (P, F), floors (E,); shape (1 + B, P, E)."""
        points = np.repeat(weights, floors.size, axis=0)
        x = np.column_stack([points, np.tile(np.log(floors), len(weights))])
        bent, pulled = x @ self.precision, self.centre @ self.precision
        own, theirs = (bent * x).sum(axis=1), (pulled * self.centre).sum(axis=1)
        cost = 0.5 * (own + theirs[:, None]) - pulled @ x.T
        return np.asarray(cost.reshape(-1, len(weights), floors.size))

    def slope(self, weights: FloatArray, floor: float) -> tuple[float, FloatArray]:
        """The law's cost at one point, weights of shape (F,), and its slopes by lambda, log e."""
        away = np.append(weights, np.log(floor)) - self.centre[0]
        slope = self.precision @ away
        return float(0.5 * away @ slope), slope


def information(behind: FloatArray, weights: FloatArray, floor: float) -> FloatArray:
    """Fisher information of one trial on lambda and log e, at a law that is taken to be true.

    Args:
        behind: shape (n, F, N), raw scores against any one of each trial's candidates.
        weights: lambda, shape (F,).
        floor: e.

    Returns:
        shape (F + 1, F + 1): the mean over the trials of ``sum_j p_j g_j g_j'``, with g the
        gradient of ``log p_j``, ``p = (1 - e) softmax(sum_f lambda_f s_f) + e / N``.

    Example:
        >>> information(np.array([[[0.0, 1.0]]]), np.array([0.0]), 1e-9).round(3)
        array([[0.25, 0.  ],
               [0.  , 0.  ]])
    """
    candidates = behind.shape[2]
    q = softmax(np.einsum("f,nfj->nj", weights, behind), axis=1)
    p = (1.0 - floor) * q + floor / candidates
    ahead = behind - np.einsum("nj,nfj->nf", q, behind)[:, :, None]
    by_weight = ahead * ((1.0 - floor) * q / p)[:, None]
    by_floor = floor * (1.0 / candidates - q) / p
    slopes = np.concatenate([by_weight, by_floor[:, None]], axis=1)
    return np.asarray(np.einsum("nj,nfj,ngj->fg", p, slopes, slopes, optimize=True) / len(behind))
