"""Is a posterior calibrated, and what does the largest value of a whole stream exceed?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from monitor.errors import UsageError
from monitor.types import FloatArray, IntArray

# ------------------------------------------------------------------------------------- reliability
# Is a posterior calibrated: of candidates given probability p, are a fraction p the speaker?

EDGES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Bins of probability: most of N candidates are improbable, so they are narrow at the low end."""


@dataclass(frozen=True, slots=True)
class Reliability:
    """The reliability diagram of a posterior, and how far it is off.

    Attributes:
        given, true, share: of each bin that holds anybody, shape (K,): mean probability, fraction
            of its candidates who are the true speaker, and of all candidates in it.
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

    Of posteriors (n, N), the position of the true speaker and the weight of each trial.

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


# --------------------------------------------------------------------------------------- conformal
# Conformal thresholds: what the largest value of a whole stream exceeds with a stated probability.
#
# Source: docs/method.md section 11.

_ROUNDING = 1e-9
"""Of a share such as 0.07 times a whole number."""


def conformal_threshold(maxima: FloatArray, share: float) -> float:
    """What the maximum of one more stream exceeds with a probability of at most ``share``.

    Split conformal prediction (Vovk, Gammerman and Shafer, *Algorithmic Learning in a Random
    World*, 2005; Lei et al., JASA 113, 2018, theorem 2) with the largest value of a whole stream as
    the score: the ``ceil((n + 1)(1 - q))``-th smallest of n maxima. Of n + 1 exchangeable maxima
    the last is larger than that with a probability of at most q, and of exactly
    ``floor((n + 1) q) / (n + 1)`` where no two are equal. To *equal* it is no crossing: maxima that
    stop at a common bound are ties, and compared by >= they would all cross. Marginally: over the
    draw of the n as well as of the one more. A stream that never had a value counts as -inf.

    Raises:
        UsageError: a share not over 0 and under 1, too few maxima for it, or one that is no number.

    Example:
        >>> maxima = np.arange(1.0, 20.0)
        >>> conformal_threshold(maxima, 0.05), conformal_threshold(maxima, 0.2)
        (19.0, 16.0)
    """
    needed = fewest_maxima(share)
    maxima = np.asarray(maxima, dtype=np.float64)
    if maxima.ndim != 1 or np.isnan(maxima).any():
        raise UsageError("a conformal threshold takes one maximum of each stream, shape (n,)")
    if maxima.size < needed:
        raise UsageError(
            f"{maxima.size} maxima are too few for a share of {share:g}: {needed} are needed"
        )
    above = math.floor((maxima.size + 1) * share * (1 + _ROUNDING))  # that may be larger
    return float(np.sort(maxima)[maxima.size - above])


def fewest_maxima(share: float) -> int:
    """How many maxima a share q takes: the least n of ``1/q - 1`` or more.

    Raises:
        UsageError: not over 0 and under 1.

    Example:
        >>> fewest_maxima(0.05), fewest_maxima(0.01), fewest_maxima(0.5)
        (19, 99, 1)
    """
    if not 0 < share < 1:
        raise UsageError(f"share={share:g} must be over 0 and under 1")
    return max(1, math.ceil(1 / share * (1 - _ROUNDING)) - 1)


def smallest_share(count: int) -> float:
    """The smallest share that so many maxima can hold: ``1/(n + 1)``.

    Example:
        >>> smallest_share(19)
        0.05
    """
    return 1 / (count + 1)
