"""What an attacker concludes from the scores of N templates: posteriors, and bits with limits.

One law (`monitor.population.law`) at one template length turns scores into probabilities, and
ranks into rank bits; its bootstrap replicates give the limits.

Source: docs/method.md section 5.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from monitor.maths.posterior import (
    confidence_bits,
    local_bits,
    replicate_bits,
    score_posterior,
    weighted_evidence,
)
from monitor.maths.quantiles import limits, limits_of_each
from monitor.population.enrolled_probability import EnrolledProbability
from monitor.population.interpolation import LengthLaw, at_template
from monitor.population.law import RankLaw
from monitor.stream.expected import ExpectedBits
from monitor.stream.ratios import Ratios
from monitor.stream.reading import Bits
from monitor.types import BoolArray, FloatArray, IntArray

__all__ = ["Judgement", "WeighedScores"]

_MOST_RANKS = 1000


class Judgement:
    """One law (of a feature, or of several together) at one template length."""

    def __init__(
        self,
        law: RankLaw,
        seconds: float,
        speakers: int,
        additive: BoolArray,
        ratios: Ratios | None = None,
    ) -> None:
        self.features = law.features
        self.law: LengthLaw = at_template(law, seconds, additive)
        self._additive, self._enrolled = additive, EnrolledProbability(law, seconds)
        self.expected = ExpectedBits(self.law, speakers)
        self.ratios = ratios
        # beyond the grid the rank law stands still, for hours: the same ranks say the same
        self._beyond: dict[tuple[int, int], Bits] = {}

    def rank_bits(self, seconds: float, speakers: int, better: int, tied: int) -> Bits:
        """Rank bits with limits, at T speech seconds."""
        beyond = seconds > self.law.lengths[-1]
        if beyond and (better, tied) in self._beyond:
            return self._beyond[better, tied]
        replicates = self.law.at(seconds).rank_bits(speakers, better, tied)
        bits = Bits(float(replicates[0]), *limits(replicates[1:]))
        if beyond and len(self._beyond) < _MOST_RANKS:
            self._beyond[better, tied] = bits
        return bits

    def weigh(self, seconds: FloatArray, scores: FloatArray, watched: int | None) -> WeighedScores:
        """Posteriors, local and gain bits: T, shape (R,), raw scores, shape (R, F, N)."""
        weights, spread = self.law.weighing(seconds)
        posterior = score_posterior(weighted_evidence(scores, weights[:, 0]), spread[:, 0])
        local, drawn = replicate_bits(scores, weights, spread[:, 1:], watched)
        gain = _with_limits(confidence_bits(posterior), drawn)
        if watched is None or local is None:
            return WeighedScores(posterior, [None] * len(seconds), gain)
        own = local_bits(posterior[:, watched], scores.shape[2])
        return WeighedScores(posterior, list(_with_limits(own, local)), gain)

    def enrolled(
        self, seconds: FloatArray, scores: FloatArray, frames: IntArray, posterior: FloatArray
    ) -> FloatArray:
        """Probability that the speaker is enrolled, or NaN, shape (R,); frames: shape (R, F)."""
        best = scores[np.arange(len(scores)), :, posterior.argmax(axis=1)]
        return self._enrolled.at(seconds, best / np.where(self._additive, np.maximum(frames, 1), 1))

    def stranger_area(self, seconds: FloatArray) -> FloatArray:
        """How well that probability told strangers in calibration: area under the ROC curve."""
        return self._enrolled.area(seconds)


class WeighedScores(NamedTuple):
    """The joint, or one feature's, figures of R readings."""

    posterior: FloatArray
    local: list[Bits | None]
    gain: list[Bits]


def _with_limits(values: FloatArray, replicates: FloatArray) -> list[Bits]:
    both = limits_of_each(replicates).tolist()
    return [Bits(value, *pair) for value, pair in zip(values.tolist(), both, strict=True)]
