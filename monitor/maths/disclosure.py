"""What a distribution of ranks discloses (SRD section IV-C, corrected).

The disclosure of rank k is ``log2(N p_k)``: the paper prints a minus, its own table needs the plus
(docs/method.md section 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from monitor.errors import UsageError
from monitor.types import FloatArray, IntArray

_Doubles: TypeAlias = NDArray[np.float64]
_LN2 = float(np.log(2.0))


@dataclass(frozen=True, slots=True)
class RankStatistics:
    """The statistics of SRD's Table II, of a histogram of n trials or of a rank model.

    Attributes:
        mean_bits: MeanD, ``log2 N - H(p)``; of a histogram it is biased up.
        miller_madow_bits: MeanD less ``(occupied ranks - 1) / (2 n ln 2)``, at least 0; None
            where the histogram does not hold whole counts.
        identification_rate: IdR, the probability of rank 1.
        std_bits: StDD, over the ranks that occur.
        max_bits, max_rank: MaxD, and the rank at which it stands. On a sparse histogram it is
            noise.
        rank1_bits: disclosure of rank 1; None where it never occurs (minus infinity).
        spread: share of the ranks that are likelier than chance, strictly.
        ceiling_bits: log2 N.
    """

    speakers: int
    trials: float | None
    mean_bits: float
    miller_madow_bits: float | None
    identification_rate: float
    std_bits: float
    max_bits: float
    max_rank: int
    rank1_bits: float | None
    spread: float
    ceiling_bits: float


def rank_statistics(
    histogram: FloatArray | IntArray, trials: float | None = None
) -> RankStatistics:
    """Statistics of a rank histogram (N,) of counts, or of a rank model's probabilities.

    `trials` is n, where it holds the proportions of n trials.

    Raises:
        UsageError: nothing in it, a negative or infinite number, or fewer than two ranks.

    Example:
        >>> found = rank_statistics(np.array([6, 2, 0, 0]))
        >>> round(found.mean_bits, 3), round(found.max_bits, 3), found.max_rank, found.spread
        (1.189, 1.585, 1, 0.25)
    """
    counts = _distribution(histogram)
    total = float(counts.sum())
    proportions = abs(total - 1.0) < 1e-6 and float(counts.max()) < 1.0
    if trials is not None:
        if not trials > 0:
            raise UsageError("a histogram has at least one trial behind it: check trials")
        counts, total, proportions = counts * (trials / total), float(trials), False
    whole = np.rint(counts)
    integer = not proportions and bool(np.abs(counts - whole).max() <= 1e-9 * total)
    speakers = counts.size
    p = (whole if integer else counts) / total
    seen = p > 0
    bits = np.log2(speakers * p[seen])
    mean = max(float(p[seen] @ bits), 0.0)
    top = int(np.argmax(p))
    above = whole * speakers > round(total) if integer else p * speakers > 1 + 1e-9
    bias = (int(seen.sum()) - 1) / (2 * total * _LN2)
    return RankStatistics(
        speakers=speakers,
        trials=None if proportions else total,
        mean_bits=mean,
        miller_madow_bits=max(mean - bias, 0.0) if integer else None,
        identification_rate=float(p[0]),
        std_bits=float(np.sqrt(p[seen] @ (bits - mean) ** 2)),
        max_bits=float(bits.max()),
        max_rank=top + 1,
        rank1_bits=float(np.log2(speakers * p[0])) if p[0] > 0 else None,
        spread=float(np.mean(above)),
        ceiling_bits=ceiling_bits(speakers),
    )


def kl_bits(p: FloatArray | IntArray, gamma: FloatArray) -> float:
    """Kullback-Leibler divergence of a rank model from a histogram: SRD's goodness of fit.

    Infinite where the rank model calls an observed rank impossible.

    Example:
        >>> kl_bits(np.array([1.0, 0.0]), np.array([0.5, 0.5]))
        1.0
    """
    p, gamma = _pair(p, gamma)
    seen = p > 0
    if not (gamma[seen] > 0).all():
        return float("inf")
    return float(p[seen] @ np.log2(p[seen] / gamma[seen]))


def rank1_match_bits(p: FloatArray | IntArray, gamma: FloatArray) -> float:
    """``|log2(p_1 / gamma_1)|``: how well a rank model meets the most important rank.

    Infinite where only one of the two calls rank 1 impossible.

    Example:
        >>> rank1_match_bits(np.array([1.0, 0.0]), np.array([0.5, 0.5]))
        1.0
    """
    p, gamma = _pair(p, gamma)
    if p[0] == gamma[0]:
        return 0.0
    if p[0] == 0 or gamma[0] == 0:
        return float("inf")
    return float(abs(np.log2(p[0] / gamma[0])))


def null_bias_bits(speakers: int, trials: float) -> float:
    """Plug-in MeanD that no evidence would read: ``(N - 1) / (2 n ln 2)``.

    For independent trials, many more than ranks; overlapping windows read more.

    Example:
        >>> round(null_bias_bits(100, 1000), 4)
        0.0714
    """
    if speakers < 1 or not trials > 0:
        raise UsageError("the null bias needs speakers and trials: give positive numbers")
    return (speakers - 1) / (2 * trials * _LN2)


def ceiling_bits(speakers: int) -> float:
    """log2 N: nobody discloses more among N speakers."""
    if speakers < 1:
        raise UsageError("there is no ceiling without speakers: give at least 1")
    return float(np.log2(speakers))


def _distribution(histogram: FloatArray | IntArray) -> _Doubles:
    counts = np.asarray(histogram, dtype=np.float64)
    if counts.ndim != 1 or counts.size < 2:
        raise UsageError("a rank histogram has one number for each of at least two ranks")
    if not ((counts >= 0) & np.isfinite(counts)).all() or not counts.any():
        raise UsageError("a rank histogram holds counts of 0 or more, and at least one trial")
    return counts


def _pair(p: FloatArray | IntArray, gamma: FloatArray) -> tuple[_Doubles, _Doubles]:
    first, second = _distribution(p), _distribution(gamma)
    if first.shape != second.shape:
        raise UsageError(
            f"{first.size} ranks against {second.size}: evaluate the rank model at the same N"
        )
    return first / first.sum(), second
