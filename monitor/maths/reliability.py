"""Is a posterior calibrated: of candidates given probability p, are a fraction p the speaker?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from monitor.types import FloatArray, IntArray

__all__ = ["EDGES", "Reliability", "reliability"]

EDGES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Bins of probability: most of N candidates are improbable, so they are narrow at the low end."""


@dataclass(frozen=True, slots=True)
class Reliability:
    """The reliability diagram of a posterior, and how far it is off.

    Attributes:
        given: mean probability in each bin that holds anybody, shape (K,).
        true: fraction of the candidates in it who are the true speaker, shape (K,).
        share: fraction of all candidates in it, shape (K,).
        top_error: expected calibration error of the most probable candidate (ten even bins): mean
            distance between the probability claimed for the best guess and how often it is right.
        all_error: the same over all candidates, each a separate claim, times N: the probability
            misplaced in a trial.
    """

    given: FloatArray
    true: FloatArray
    share: FloatArray
    top_error: float
    all_error: float


def reliability(posterior: FloatArray, own: IntArray, weight: FloatArray) -> Reliability:
    """Compare probabilities with what came true.

    Args:
        posterior: shape (n, N), each row a trial.
        own: shape (n,), position of the true speaker.
        weight: shape (n,), weight of each trial.

    Example:
        >>> even = np.full((4, 4), 0.25)
        >>> found = reliability(even, np.arange(4), np.ones(4))
        >>> found.given, found.true, found.all_error
        (array([0.25]), array([0.25]), 0.0)
    """
    trials, candidates = posterior.shape
    right = np.zeros(posterior.shape, dtype=bool)
    right[np.arange(trials), own] = True
    each = np.broadcast_to(weight[:, None] / candidates, posterior.shape)
    given, true, share = _binned(posterior.ravel(), right.ravel(), each.ravel(), np.array(EDGES))
    best = posterior.argmax(axis=1)
    # ties are nobody's: the first of N equal candidates is right as often as any
    top = _binned(posterior[np.arange(trials), best], best == own, weight, np.linspace(0, 1, 11))
    return Reliability(
        given,
        true,
        share,
        float((top[2] * np.abs(top[0] - top[1])).sum()),
        float(candidates * (share * np.abs(given - true)).sum()),
    )


def _binned(
    p: FloatArray, right: FloatArray, weight: FloatArray, edges: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    place = np.clip(np.searchsorted(edges, p, side="right") - 1, 0, edges.size - 2)
    mass = np.bincount(place, weight, edges.size - 1)
    used = mass > 0
    given = np.bincount(place, weight * p, edges.size - 1)[used] / mass[used]
    true = np.bincount(place, weight * right, edges.size - 1)[used] / mass[used]
    return given, true, mass[used] / mass.sum()
