"""Likelihood ratios of scores against a cohort (docs/method.md section 10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np

from monitor.errors import UsageError
from monitor.maths.condition import Condition, degradation, unlike
from monitor.maths.evidence import cap_bits, level_ratios, log2_ratios, with_misses
from monitor.maths.scores import SessionMixture
from monitor.maths.statistics import limits_of_each
from monitor.population.cohort import CohortScoring, normalise
from monitor.population.population import Population, Scoring
from monitor.population.rank_model import EvidencePoint, RankModel
from monitor.stream.choice import explain_missing_ratios
from monitor.types import AnyArray, BoolArray, FloatArray, IntArray

LN2 = np.log(2.0)
Levels: TypeAlias = tuple[FloatArray, FloatArray]
"""Mean and spread of the cohort's scores at R moments, (R,) each."""


class RatioBits(NamedTuple):
    """Evidence of R moments of a stream about everybody enrolled.

    Attributes:
        bits: log2 of the likelihood ratios, shape (R, N): all of a moment lowered alike until the
            mean of all but the best is at most 1, and the best at most ``support``, so that odds
            among the enrolled are as the scores have them.
        watched: evidence of the watched speaker with its limits, shape (R, 3), held to the support;
            NaN where nobody is.
        support: the most bits that the calibration can support, shape (R,).
        at_least: where the figure (the best candidate's where nobody is watched) was cut, shape
            (R,).
        area: of ``enrolled_share``, telling impostors from enrolled speakers in calibration: area
            under the ROC curve, shape (R,).
    """

    bits: FloatArray
    watched: FloatArray
    support: FloatArray
    at_least: BoolArray
    area: FloatArray


class _Effect(NamedTuple):
    """Effect of conditions on the ratios of N people at each of R moments.

    Attributes:
        shift: bits more, (R, N).
        slope: factor of each feature's part, (R, F, N).
        support: most bits, (R, N).
    """

    shift: FloatArray
    slope: FloatArray
    support: FloatArray

    def pick(self, place: IntArray) -> _Effect:
        """Pick the templates at (R, N) places."""
        shift, support = (np.take_along_axis(x, place, axis=1) for x in (self.shift, self.support))
        return _Effect(shift, SessionMixture.select(self.slope, place), support)


def intercept_bits(point: EvidencePoint) -> FloatArray:
    """Return the bits of the intercept that a shift is a share of, shape (R,)."""
    return np.asarray(np.maximum(-point.intercept[:, 0], 0.0) / LN2)


def _support(
    point: EvidencePoint, effect: _Effect | None, rows: IntArray, place: IntArray
) -> FloatArray:
    """Return the most bits that calibration supports of one person at each moment."""
    if effect is None:
        return point.support
    return np.minimum(point.support, effect.support[rows, place])


class LikelihoodRatioScorer:
    """Converter of scores to likelihood ratios, by a product with the population's cohort.

    Ask ``explain_missing_ratios`` first. Where the conditions of stream and template are known,
    they change a ratio as calibration measured.

    Args:
        population, rank_model, scoring: whose templates, of which features, cut to what length.
        watched: a place among the scoring's members, or None.
        cohort: the cohort's scoring by feature, shared by several rank models of one population.
    """

    def __init__(
        self,
        population: Population,
        rank_model: RankModel,
        scoring: Scoring,
        watched: int | None,
        cohort: dict[str, CohortScoring] | None = None,
    ) -> None:
        if population.cohort is None or rank_model.evidence is None:
            raise UsageError(explain_missing_ratios(population, rank_model))
        self.features = rank_model.features
        self.rank_model = rank_model.evidence.at_template(scoring.seconds)
        self._watched = watched
        self._cohort = {} if cohort is None else cohort
        for name, scorer in population.scorers(rank_model).items():
            if name not in self._cohort:
                self._cohort[name] = CohortScoring(population.cohort, name, scorer)
        self._sessions = population.sessions_apart(scoring)
        self._sounds = population.degradations(scoring)
        self._speakers = int(scoring.members.sum())
        self._condition_effect = lru_cache(1)(self._effect_of)  # estimates change ever more rarely

    def compute_score_stats(self, totals: Mapping[str, AnyArray]) -> list[Levels]:
        """Compute each feature's mean and spread of R totals' scores, (R, M), over the cohort."""
        return [self._cohort[name].compute_score_stats(totals[name]) for name in self.features]

    def at(
        self,
        seconds: FloatArray,
        levels: Sequence[Levels],
        scores: FloatArray,
        conditions: Sequence[Condition | None] = (),
        *,
        limits: bool = True,
    ) -> RatioBits:
        """Weigh R moments.

        Args:
            seconds: T, shape (R,).
            levels: the cohort's, of each feature.
            scores: raw ones, shape (R, F, N); of people with several sessions those of every
                template, as `SessionMixture` has them.
            conditions: what the stream sounds like at each moment, where that is known.
            limits: False leaves NaN for the limits of the watched speaker's bits.
        """
        point = self.rank_model.at(seconds)
        effect = self._effect(point, conditions)
        bits = self._bits(point, levels, scores, effect)
        surplus = np.zeros((seconds.size, self._speakers))  # over the best session's bits
        if self._sessions is not None:
            nats, session = self._sessions.mix(bits * LN2)
            best = np.take_along_axis(bits, session, axis=1)
            bits = nats / LN2
            surplus = bits - best
            scores = self._sessions.select(scores, session)
            effect = None if effect is None else effect.pick(session)
        level = level_ratios(bits)
        rows, place = np.arange(seconds.size), level.argmax(axis=1)
        ratios = cap_bits(level, _support(point, effect, rows, place))
        if self._watched is not None:
            place = np.full(rows.size, self._watched)
        support, value = _support(point, effect, rows, place), level[rows, place]
        watched = np.full((rows.size, 3), np.nan)
        if self._watched is not None:
            watched[:, 0] = np.minimum(value, support)
            if limits:
                z = self._normalise(scores[..., self._watched, None], levels)
                shift = surplus[rows, place]
                if effect is not None:
                    z = z * effect.slope[rows, :, place, None]
                    shift = effect.shift[rows, place] + shift
                lower = bits[rows, place] - value - shift
                both = np.minimum(self._limits(point, z) - lower[:, None], support[:, None])
                # the rank model itself need not lie within the percentiles of its resamples
                watched[:, 1] = np.minimum(both[:, 0], watched[:, 0])
                watched[:, 2] = np.maximum(both[:, 1], watched[:, 0])
        return RatioBits(ratios, watched, support, value > support, point.area)

    @staticmethod
    def _normalise(scores: FloatArray, levels: Sequence[Levels]) -> FloatArray:
        mean, spread = (np.stack(parts, axis=1) for parts in zip(*levels, strict=True))
        return normalise(scores, mean, spread)

    @staticmethod
    def _limits(point: EvidencePoint, z: FloatArray) -> FloatArray:
        """Compute limits of one person's scores (R, F, 1), over all resamples: (R, 2)."""
        replicates = (point.intercept[:, 1:] + (point.slopes[:, 1:] @ z)[..., 0]) / LN2
        return limits_of_each(with_misses(replicates))

    def _effect(
        self, point: EvidencePoint, conditions: Sequence[Condition | None]
    ) -> _Effect | None:
        """Compute the effect on everybody at each moment; None where the model has none."""
        if self.rank_model.conditions is None:
            return None
        # one path, whatever is known: a moment must not depend on those worked out beside it
        effects = map(self._condition_effect, conditions or [None] * len(point.support))
        shift, slope, support = (np.stack(part) for part in zip(*effects, strict=True))
        return _Effect(shift * intercept_bits(point)[:, None], slope, support)

    def _effect_of(self, condition: Condition | None) -> _Effect:
        """Compute the effect on everybody at one moment."""
        assert self.rank_model.conditions is not None
        q = unlike(degradation(condition)[None], self._sounds)[0]
        shift, slope, support = self.rank_model.conditions.at(q)
        # a single row where nothing is known of any template
        templates = max(len(self._sounds), self._speakers)
        return _Effect(
            *(np.broadcast_to(x, (*x.shape[:-1], templates)) for x in (shift, slope.T, support))
        )

    def _bits(
        self,
        point: EvidencePoint,
        levels: Sequence[Levels],
        scores: FloatArray,
        effect: _Effect | None = None,
    ) -> FloatArray:
        """Compute bits of everybody, (R, N), by mean and spread of the cohort's scores."""
        mean, spread = (np.stack(parts, axis=1) for parts in zip(*levels, strict=True))
        # a + sum_f b_f (s_fj - mean_f) / spread_f, in one product over the candidates
        scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
        slopes = point.slopes[:, 0] * scale
        if effect is None:
            return log2_ratios(scores, point.intercept[:, 0] - (slopes * mean).sum(axis=1), slopes)
        parts = slopes[..., None] * (scores - mean[..., None]) * effect.slope
        bits = (point.intercept[:, :1] + parts.sum(axis=1)) / LN2
        return with_misses(bits + effect.shift)

    def compare_enrolled(
        self, population: Population, rank_model: RankModel, scoring: Scoring
    ) -> FloatArray:
        """Compute the mean ratio of each enrolled person with the streams of those after: (N - 1,).

        Templates serve as streams. If the ratios are calibrated for these people, none exceeds 1 on
        average, whatever the earlier ones showed: `e_value` tests that.
        """
        scorers = population.scorers(rank_model)
        totals = {name: population.templates(name, scoring) for name in self.features}
        scores = np.stack(
            [
                scorers[name].score(population.prepared(name, scoring, scorers[name]), totals[name])
                for name in self.features
            ],
            axis=1,
        )
        point = self.rank_model.at(np.full(len(scores), scoring.seconds))
        places = np.flatnonzero(scoring.members).tolist()
        effect = self._effect(point, [population.speakers[i].condition for i in places])
        support = np.repeat(point.support[:, None], len(places), axis=1)
        if effect is not None:
            if self._sessions is not None:  # by their first templates
                effect = effect.pick(np.tile(np.arange(self._speakers), (len(places), 1)))
            support = np.minimum(support, effect.support)
        bits = np.minimum(
            self._bits(point, self.compute_score_stats(totals), scores, effect), support
        )
        return np.array([np.exp2(bits[i, i + 1 :]).mean() for i in range(len(bits) - 1)])
