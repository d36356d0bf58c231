"""MeanD of the ranks of some trials, every speaker weighing the same, with its limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from monitor.maths.rank_models import fit_many, mean_bits_of
from monitor.maths.ranks import rank_histograms
from monitor.maths.statistics import limits, speaker_weights
from monitor.types import FloatArray, IntArray


class RankBits(NamedTuple):
    """What ranks disclose.

    Attributes:
        bits: MeanD of the beta-binomial, bits.
        low, high: 95 % interval over resampled speakers.
        many: the same rank model among as many people as SRD had, bits: stretched far beyond its N.
        speakers, trials: how many.
    """

    bits: float
    low: float
    high: float
    many: float
    speakers: int
    trials: int

    def __str__(self) -> str:
        return f"{self.bits:.2f} ({self.low:.2f} to {self.high:.2f})"


SRD_SPEAKERS = 11_696


def rank_bits(better: IntArray, tied: IntArray, owners: Sequence[str], candidates: int) -> RankBits:
    """Fit the rank model of similarity rank disclosure to ranks.

    Args:
        better: shape (n,), as of `monitor.maths.ranks.rank_bounds`.
        tied: shape (n,), likewise.
        owners: whose trial each is; every one of them weighs the same.
        candidates: N.
    """
    names, index, count = np.unique(owners, return_inverse=True, return_counts=True)
    each = 1.0 / count[index]
    weights: FloatArray = np.vstack([each, speaker_weights(names.size)[:, index] * each])
    alpha, beta, binomial = fit_many(rank_histograms(better, tied, candidates, weights))
    bits = mean_bits_of(alpha, beta, binomial, candidates)
    low, high = limits(bits[1:])
    many = mean_bits_of(alpha[:1], beta[:1], binomial[:1], SRD_SPEAKERS)
    return RankBits(float(bits[0]), low, high, float(many[0]), names.size, better.size)
