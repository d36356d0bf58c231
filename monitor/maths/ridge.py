"""Logistic regression of several numbers, with a ridge, by Newton's method."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from monitor.types import BoolArray, FloatArray

__all__ = ["fit_ridge"]

_STEPS = 50


def fit_ridge(
    scores: FloatArray, label: BoolArray, weight: FloatArray, ridge: float
) -> tuple[float, FloatArray]:
    """Log odds ``bias + scores @ slopes`` of a label.

    Scores are standardised first. Then the mean negative log-likelihood plus half of ``ridge``
    times the squared slopes is least.

    Args:
        scores: shape (n, F).
        label: shape (n,).
        weight: shape (n,), how much each row counts; only their proportions matter.
        ridge: above 0.

    Returns:
        bias, and slopes of shape (F,).

    Example:
        >>> scores = np.array([[-1.0], [0.0], [0.0], [1.0]])
        >>> bias, slopes = fit_ridge(scores, np.array([False, False, True, True]), np.ones(4), 0.01)
        >>> bool(slopes[0] > 1), round(abs(bias), 6)
        (True, 0.0)
    """
    weight = weight / weight.sum()
    mean = weight @ scores
    spread = np.sqrt(weight @ (scores - mean) ** 2)
    spread = np.where(spread > 0, spread, 1.0)
    x = np.column_stack([np.ones(len(scores)), (scores - mean) / spread])
    penalty = np.diag([0.0, *np.full(scores.shape[1], ridge)])
    found = np.zeros(x.shape[1])
    for _ in range(_STEPS):
        p = expit(x @ found)
        slope = x.T @ (weight * (label - p)) - penalty @ found
        bend = (x * (weight * p * (1.0 - p))[:, None]).T @ x + penalty + 1e-9 * np.eye(len(found))
        step = np.linalg.solve(bend, slope)
        found += np.clip(step, -2.0, 2.0)
        if np.abs(step).max() < 1e-9:
            break
    slopes = found[1:] / spread
    return float(found[0] - slopes @ mean), slopes
