"""Empirical cross-entropy: the uncertainty left after the scores, for every prior belief."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from monitor.maths.pav import Blocks, pool
from monitor.maths.roc import count_scores
from monitor.types import FloatArray

__all__ = ["EceProfile", "ece_profile", "profile_of_blocks"]

_Doubles: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class EceProfile:
    """Empirical cross-entropy over prior beliefs: ZEBRA's figure 3.

    Attributes:
        prior_log_odds: shape (P,), nats.
        default: shape (P,), bits: entropy of the prior itself, what perfect privacy leaves.
        calibrated: shape (P,), bits left to someone who calibrated the scores ideally. D_ECE is
            the mean over all priors of the space between the two.
    """

    prior_log_odds: FloatArray
    default: FloatArray
    calibrated: FloatArray


def ece_profile(
    mated: ArrayLike, non_mated: ArrayLike, prior_log_odds: ArrayLike | None = None
) -> EceProfile:
    """Cross-entropy left after the scores, at each prior belief.

    Args:
        mated: any shape, scores of the same speaker; higher is more alike.
        non_mated: any shape, scores of different speakers.
        prior_log_odds: shape (P,), nats; from -7 to 7 by default.

    Raises:
        UsageError: one of the two is empty, or a score is not finite.

    Example:
        >>> profile = ece_profile([0.9], [0.1], [0.0])
        >>> profile.default.tolist(), profile.calibrated.tolist()
        ([1.0], [0.0])
    """
    counts = count_scores(mated, non_mated)
    return profile_of_blocks(pool(counts.mated, counts.non_mated), prior_log_odds)


def profile_of_blocks(blocks: Blocks, prior_log_odds: ArrayLike | None = None) -> EceProfile:
    """`ece_profile` of blocks of one draw, such as `ScoreCounts.blocks`."""
    given = np.linspace(-7.0, 7.0, 141) if prior_log_odds is None else prior_log_odds
    odds = np.atleast_1d(np.asarray(given, dtype=np.float64))
    shares = np.stack(
        [blocks.mated / blocks.mated.sum(), blocks.non_mated / blocks.non_mated.sum()]
    )
    with np.errstate(divide="ignore"):
        llr = np.log(shares[0]) - np.log(shares[1])
    prior = expit(odds), expit(-odds)
    posterior = llr[:, None] + odds
    calibrated = prior[0] * _weighed(shares[0], -posterior) + prior[1] * _weighed(
        shares[1], posterior
    )
    default = prior[0] * np.logaddexp(0.0, -odds) + prior[1] * np.logaddexp(0.0, odds)
    return EceProfile(odds, default / np.log(2.0), calibrated / np.log(2.0))


def _weighed(shares: _Doubles, nats: _Doubles) -> _Doubles:
    """Mean of ``ln(1 + exp(nats))`` over blocks; none where a block is empty, even of infinity."""
    full = shares > 0
    return np.asarray(shares[full] @ np.logaddexp(0.0, nats[full]))
