"""Conformal thresholds: what the largest value of a whole stream exceeds with a stated probability.

Source: docs/method.md section 11.
"""

from __future__ import annotations

import math

import numpy as np

from monitor.errors import UsageError
from monitor.types import FloatArray

__all__ = ["conformal_threshold", "fewest_maxima", "smallest_share"]

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
    draw of the n as well as of the one more.

    Args:
        maxima: shape (n,), the largest value of each stream, one stream a speaker; -inf where a
            stream never had a value.
        share: q, over 0 and under 1.

    Returns:
        the threshold, one of the maxima.

    Raises:
        UsageError: fewer maxima than the share needs, or one that is no number.

    Examples:
        >>> conformal_threshold(np.arange(1.0, 20.0), 0.05)
        19.0
        >>> conformal_threshold(np.arange(1.0, 20.0), 0.2)
        16.0
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
