"""MeanD of many rank histograms: of bootstrap replicates, and of single speakers.

Source: docs/method.md section 3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from monitor.evaluation.scores.matrix import ScoreMatrix
from monitor.maths.betabinomial import binomial_mean_disclosure_bits, mean_disclosure_bits
from monitor.maths.fitting import fit_many
from monitor.maths.ranks import placed, rank_histograms
from monitor.types import FloatArray

__all__ = [
    "FittedLaws",
    "fit_laws",
    "mean_bits_by_speaker",
    "resampled_histograms",
]

_CHUNK = 1 << 22
_SPEAKERS = 128
"""Speakers whose laws are fitted at a time."""


@dataclass(frozen=True)
class FittedLaws:
    """The LL law of many histograms.

    Attributes:
        alpha: shape (B,), NaN where the law is binomial.
        beta: shape (B,), as alpha.
        mean_bits: shape (B,), MeanD of the law.
    """

    alpha: FloatArray
    beta: FloatArray
    mean_bits: FloatArray


def resampled_histograms(
    matrix: ScoreMatrix, weights: FloatArray, ties: str = "spread"
) -> FloatArray:
    """The rank histogram of each resample of speakers.

    Args:
        matrix: the trials.
        weights: shape (B, S), from `resamples`.
        ties: one of `TIE_RULES`.

    Returns:
        shape (B, N).
    """
    first, width = placed(matrix.better, matrix.tied, ties)
    step = max(_CHUNK // matrix.trials, 1)
    parts = [
        rank_histograms(
            first, width, matrix.population, weights[k : k + step].take(matrix.owner, 1)
        )
        for k in range(0, len(weights), step)
    ]
    return np.concatenate(parts)


def fit_laws(histograms: FloatArray) -> FittedLaws:
    """Fit the LL law to many histograms: the limits that cover stand on its MeanD.

    Args:
        histograms: shape (B, N).
    """
    speakers = histograms.shape[1]
    alpha, beta, binomial = fit_many(histograms)
    bits = np.empty(len(alpha))
    wide = ~binomial
    if wide.any():
        bits[wide] = mean_disclosure_bits(alpha[wide], beta[wide], speakers)
    if binomial.any():
        bits[binomial] = binomial_mean_disclosure_bits(alpha[binomial], speakers)
    return FittedLaws(np.where(wide, alpha, np.nan), np.where(wide, beta, np.nan), bits)


def mean_bits_by_speaker(matrix: ScoreMatrix, ties: str = "spread") -> FloatArray:
    """MeanD of each speaker's own trials (SRD fig. 6), through the law.

    A speaker has few trials: the plug-in MeanD of n trials among N speakers reads up to
    ``log2(N / n)`` bits without any evidence, so each speaker's histogram is fitted by LL and the
    law's MeanD is given (docs/method.md section 3).

    Args:
        matrix: the trials.
        ties: one of `TIE_RULES`.

    Returns:
        shape (S,), bits, in the order of `matrix.tested`.

    Example:
        >>> scores = np.eye(3)[[0, 0, 1, 1, 2, 2]]
        >>> matrix = ScoreMatrix(scores, np.array([0, 0, 1, 1, 0, 0]))
        >>> mean_bits_by_speaker(matrix).round(2)
        array([0.08, 1.58])
    """
    first, width = placed(matrix.better, matrix.tied, ties)
    order = np.argsort(matrix.owner, kind="stable")
    owner = matrix.owner[order]
    count = len(matrix.tested)
    parts = []
    for start in range(0, count, _SPEAKERS):
        low, high = np.searchsorted(owner, [start, start + _SPEAKERS])
        rows, some = order[low:high], np.arange(start, min(start + _SPEAKERS, count))
        alone = (owner[low:high] == some[:, None]).astype(np.float64)
        histograms = rank_histograms(first[rows], width[rows], matrix.population, alone)
        parts.append(fit_laws(histograms).mean_bits)
    return np.concatenate(parts)
