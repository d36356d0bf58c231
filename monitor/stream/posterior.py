"""Posterior and bits of scores, by one rank model (docs/method.md section 5)."""

from __future__ import annotations

from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from monitor.events.reading import Bits
from monitor.maths.posterior import (
    confidence_bits,
    local_bits,
    replicate_bits,
    score_posterior,
    weighted_evidence,
)
from monitor.maths.scores import SessionMixture
from monitor.maths.statistics import limits, limits_of_each
from monitor.population.interpolation import EnrolledProbability, LengthModel, at_template
from monitor.population.rank_model import RankModel
from monitor.stream.ratios import LikelihoodRatioScorer
from monitor.stream.reading import ZERO
from monitor.types import BoolArray, FloatArray, IntArray

_MODEL, _REPLICATES = slice(0, 1), slice(1, None)
_NODES_PER_OCTAVE, _NODES_PER_OCTAVE_MIXED = 6, 12


class ExpectedBits:
    """MeanD(T, D) of a rank model at N speakers, along a stream.

    The figure itself is exact at every T. Its limits need MeanD under every replicate, dear for
    thousands of speakers: how far they lie from the figure is worked out at six lengths an
    octave (twelve beside a degenerate rank model), the grid of the rank model among them, when
    first needed, and interpolated in log T between (``benchmarks/update.py``).
    """

    def __init__(self, rank_model: LengthModel, speakers: int) -> None:
        self._rank_model, self._speakers = rank_model, speakers
        self._nodes = _choose_nodes(rank_model)
        self._node_margin = lru_cache(None)(lambda node: self._margin(float(self._nodes[node])))
        self._at_length = lru_cache(64)(self._figure)  # of one block: it may be asked twice

    @cached_property
    def first_bits(self) -> float:
        """At the first length of the grid."""
        return self._value(float(self._rank_model.lengths[0]))

    @cached_property
    def plateau_bits(self) -> float:
        """The most at any length of the grid."""
        return max(self._value(float(t)) for t in self._rank_model.lengths)

    def at(self, seconds: float) -> Bits:
        """Return expected bits with limits at T speech seconds; zero at T = 0."""
        seconds = min(max(seconds, 0.0), float(self._nodes[-1]))
        return self._at_length(seconds) if seconds else ZERO

    def _figure(self, seconds: float) -> Bits:
        if seconds <= self._nodes[0]:
            low, high = self._margin(seconds)
        else:
            right = int(np.searchsorted(self._nodes, seconds))
            t0, t1 = self._nodes[right - 1], self._nodes[right]
            w = float(np.log(seconds / t0) / np.log(t1 / t0))
            (low0, high0), (low1, high1) = self._node_margin(right - 1), self._node_margin(right)
            low, high = (1 - w) * low0 + w * low1, (1 - w) * high0 + w * high1
        value, ceiling = self._value(seconds), float(np.log2(self._speakers))
        return Bits(value, max(value + low, 0.0), min(value + high, ceiling))

    def _value(self, seconds: float) -> float:
        return float(self._rank_model.at(seconds).expected_bits(self._speakers, _MODEL)[0])

    def _margin(self, seconds: float) -> tuple[float, float]:
        """Return how far the limits lie from the value."""
        low, high = limits(self._rank_model.at(seconds).expected_bits(self._speakers, _REPLICATES))
        value = self._value(seconds)
        return low - value, high - value


def _choose_nodes(rank_model: LengthModel) -> FloatArray:
    """Return the model's grid and lengths between: more where pmfs are mixed."""
    nodes = [float(rank_model.lengths[0])]
    for left, (low, high) in enumerate(pairwise(rank_model.lengths.tolist())):
        mixed = rank_model.degenerate[left : left + 2].any()
        dense = _NODES_PER_OCTAVE_MIXED if mixed else _NODES_PER_OCTAVE
        count = int(np.ceil(np.log2(high / low) * dense))
        nodes += np.geomspace(low, high, count + 1)[1:].tolist()
    return np.array(nodes)


class Posterior(NamedTuple):
    """Posterior and bits of R moments by one rank model.

    Attributes:
        posterior: probability of everybody, shape (R, N).
        local, gain: bits with limits, shape (R, 3); local is NaN where nobody is watched, a limit
            where none was asked for.
        scores: raw scores of the best session of each, shape (R, F, N).
    """

    posterior: FloatArray
    local: FloatArray
    gain: FloatArray
    scores: FloatArray


class PosteriorModel:
    """Rank model at one template length: scores to probabilities, with bootstrap limits."""

    def __init__(
        self,
        rank_model: RankModel,
        seconds: float,
        speakers: int,
        additive: BoolArray,
        ratios: LikelihoodRatioScorer | None = None,
    ) -> None:
        self.features = rank_model.features
        self.rank_model: LengthModel = at_template(rank_model, seconds, additive)
        self.expected = ExpectedBits(self.rank_model, speakers)
        self.ratios = ratios
        self._speakers, self._additive = speakers, additive
        self._enrolled = EnrolledProbability(rank_model, seconds)
        self._rank_bits = lru_cache(1000)(self._rank_bits_at)

    def rank_bits(self, seconds: float, better: int, tied: int) -> Bits:
        """Return rank bits with limits, at T speech seconds; beyond the grid those of its end."""
        return self._rank_bits(min(seconds, float(self.rank_model.lengths[-1])), better, tied)

    def _rank_bits_at(self, seconds: float, better: int, tied: int) -> Bits:
        replicates = self.rank_model.at(seconds).rank_bits(self._speakers, better, tied)
        return Bits(float(replicates[0]), *limits(replicates[1:]))

    def weigh(
        self,
        seconds: FloatArray,
        scores: FloatArray,
        watched: int | None,
        sessions: SessionMixture | None = None,
        *,
        limits: bool = True,
    ) -> Posterior:
        """Weigh raw scores, (R, F, N), of T, (R,), into a posterior and bits.

        With sessions these are scores of every template: the best one's count for each person, and
        beside them, as a feature of weight 1, what the others leave of it.
        """
        features = scores.shape[1]
        weights, spread = self.rank_model.weighing(seconds, slice(None) if limits else _MODEL)
        if sessions is not None:
            scores, weights = _select_best_sessions(sessions, scores, weights)
        posterior = score_posterior(weighted_evidence(scores, weights[:, 0]), spread[:, 0])
        local, gain = np.full((2, seconds.size, 3), np.nan)
        gain[:, 0] = confidence_bits(posterior)
        if watched is not None:
            local[:, 0] = local_bits(posterior[:, watched], scores.shape[2])
        if limits:
            local_draws, gain_draws = replicate_bits(scores, weights, spread[:, 1:], watched)
            gain[:, 1:] = limits_of_each(gain_draws)
            if local_draws is not None:
                local[:, 1:] = limits_of_each(local_draws)
        return Posterior(posterior, local, gain, scores[:, :features])

    def enrolled(
        self, seconds: FloatArray, frames: IntArray, weighed: Posterior
    ) -> tuple[FloatArray, FloatArray]:
        """Return the probability that the speaker is enrolled, or NaN, by frames (R, F).

        And the area under the ROC curve by which it told impostors in calibration: (R,) each.
        """
        scores, place = weighed.scores, weighed.posterior.argmax(axis=1)
        best = scores[np.arange(len(scores)), :, place]
        best = best / np.where(self._additive, np.maximum(frames, 1), 1)
        return self._enrolled.at(seconds, best), self._enrolled.area(seconds)


def _select_best_sessions(
    sessions: SessionMixture, scores: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Select scores of each best session, with the rest of the mixture as one more feature."""
    rows = weighted_evidence(scores, weights[:, 0])
    mixed, place = sessions.mix(rows)
    left = mixed - np.take_along_axis(rows, place, axis=1)
    scores = np.concatenate([sessions.select(scores, place), left[:, None]], axis=1)
    return scores, np.concatenate([weights, np.ones((*weights.shape[:2], 1))], axis=2)
