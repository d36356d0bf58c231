"""Rank histograms of resamples and of permuted speakers, and what they read (METHOD section 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from monitor.errors import UsageError
from monitor.evaluation.matrix import ScoreMatrix
from monitor.maths.allranks import all_rank_bounds
from monitor.maths.betabinomial import binomial_mean_disclosure_bits, mean_disclosure_bits
from monitor.maths.bootstrap import limits
from monitor.maths.fitting import fit_many
from monitor.maths.ranks import placed, rank_histograms
from monitor.types import FloatArray

__all__ = [
    "PERMUTATIONS",
    "ModelDraws",
    "NullBand",
    "mean_bits_by_speaker",
    "model_draws",
    "null_band",
    "resampled_histograms",
]

PERMUTATIONS = 200
_RANKS = 1 << 26
"""Most permuted ranks held at once: 512 MB."""
_FEWEST = 20
_Doubles: TypeAlias = NDArray[np.float64]
_CHUNK = 1 << 22
_SPEAKERS = 128
"""Speakers whose laws are fitted at a time."""


@dataclass(frozen=True)
class ModelDraws:
    """The LL law of many histograms.

    Attributes:
        alpha: shape (B,), NaN where the law is binomial.
        beta: shape (B,), as alpha.
        mean_bits: shape (B,), MeanD of the law.
    """

    alpha: FloatArray
    beta: FloatArray
    mean_bits: FloatArray


@dataclass(frozen=True)
class NullBand:
    """What no evidence would read: MeanD with whole speakers permuted against the templates.

    Attributes:
        mean_bits: shape (P,), the plug-in MeanD of each permutation.
        model_bits: shape (P,), the law's MeanD of each permutation.
    """

    mean_bits: FloatArray
    model_bits: FloatArray

    @property
    def limits(self) -> tuple[float, float]:
        """2.5 and 97.5 percentiles of the plug-in MeanD."""
        return limits(self.mean_bits)

    @property
    def model_limits(self) -> tuple[float, float]:
        """2.5 and 97.5 percentiles of the law's MeanD."""
        return limits(self.model_bits)


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


def model_draws(histograms: FloatArray) -> ModelDraws:
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
    return ModelDraws(np.where(wide, alpha, np.nan), np.where(wide, beta, np.nan), bits)


def mean_bits_by_speaker(matrix: ScoreMatrix, ties: str = "spread") -> FloatArray:
    """MeanD of each speaker's own trials (SRD fig. 6), through the law.

    A speaker has few trials: the plug-in MeanD of n trials among N speakers reads up to
    ``log2(N / n)`` bits without any evidence, so each speaker's histogram is fitted by LL and the
    law's MeanD is given (METHOD section 3).

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
        parts.append(model_draws(histograms).mean_bits)
    return np.concatenate(parts)


def null_band(
    matrix: ScoreMatrix,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
    ties: str = "spread",
) -> NullBand:
    """Permute whole speakers against templates and read the disclosure that is left.

    The trials of a speaker stay together: they are alike, and the usual formula
    ``(N - 1) / (2 n ln 2)`` holds for independent trials only.

    Args:
        matrix: the trials; its rows are sorted once, a block at a time.
        permutations: P, at most: of more than 335 000 trials fewer than 200 are taken.
        seed: of the permutations.
        ties: one of `TIE_RULES`.

    Returns:
        the readings of every permutation.

    Raises:
        UsageError: no permutation, or an unknown rule.
    """
    if permutations < 1:
        raise UsageError("a null band needs at least one permutation")
    permutations = min(permutations, max(_FEWEST, _RANKS // matrix.trials))
    generator = np.random.default_rng(seed)
    places = np.tile(np.arange(matrix.population), (permutations, 1))
    places = generator.permuted(places, axis=1)
    first, width = np.empty((2, permutations, matrix.trials), dtype=np.int32)
    for part, scores in matrix.blocks():
        better, tied = placed(*all_rank_bounds(scores), ties)
        column = places[:, matrix.target[part]]
        row = np.arange(len(scores))
        first[:, part], width[:, part] = better[row, column], tied[row, column]
    once = np.ones((1, matrix.trials))
    histograms = np.concatenate(
        [
            rank_histograms(start, wide, matrix.population, once)
            for start, wide in zip(first, width, strict=True)
        ]
    )
    return NullBand(_plug_in_bits(histograms), model_draws(histograms).mean_bits)


def _plug_in_bits(histograms: _Doubles) -> _Doubles:
    p = histograms / histograms.sum(axis=1, keepdims=True)
    bits = np.log2(histograms.shape[1] * np.where(p > 0, p, 1.0))
    return np.asarray(np.maximum((p * bits).sum(axis=1), 0.0))
