"""Scores to posteriors, bits and likelihood ratios, in crowds of any size.

Sources: docs/method.md sections 5 (posterior, expected bits) and 10 (likelihood ratios).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np

from monitor.crowds import people, sizes
from monitor.errors import UsageError
from monitor.events.reading import Bits, Bystander, CrowdReading
from monitor.maths.condition import Condition, degradation, unlike
from monitor.maths.evidence import (
    bits_among,
    cap_bits,
    crowd_bits,
    level_ratios,
    log2_ratios,
    posterior_among,
    total_bits,
    with_misses,
)
from monitor.maths.posterior import (
    confidence_bits,
    local_bits,
    replicate_bits,
    score_posterior,
    weighted_evidence,
)
from monitor.maths.rank_models import ALL_RANKS_TO
from monitor.maths.scores import SessionMixture
from monitor.maths.statistics import limits, limits_of_each
from monitor.phrases import format_odds
from monitor.population.cohort import CohortScoring, normalise
from monitor.population.evidence_model import EvidencePoint
from monitor.population.interpolation import EnrolledProbability, LengthModel, at_template
from monitor.population.population import Population
from monitor.population.rank_model import RankModel
from monitor.population.templates import Scoring, share
from monitor.stream.choice import explain_missing_ratios
from monitor.types import AnyArray, BoolArray, FloatArray, IntArray


class Bystanders:
    """Finder of other enrolled people with a probability among M people above a level.

    Any person's speech discloses something about all enrolled people (docs/method.md section 10).
    ``people`` is M, at least N. UsageError if the level is not a probability above the initial 1/M.
    """

    def __init__(
        self, names: Sequence[str], watched: str | None, people: int, level: float
    ) -> None:
        if not 1.0 / people < level < 1.0:
            raise UsageError(
                f"bystanders={level:g} must be a probability under 1 and over 1 in "
                f"{people:,}, the probability before any speech"
            )
        self.people, self.level = people, level
        self._names = tuple(names)
        self._watched = None if watched is None else self._names.index(watched)

    def find(self, ratios: Sequence[FloatArray | None]) -> list[tuple[Bystander, ...] | None]:
        """List bystanders at each of R moments, most probable first, by ratios in bits, (N,)."""
        bystanders: list[tuple[Bystander, ...] | None] = [None] * len(ratios)
        rows = [r for r, row in enumerate(ratios) if row is not None]
        if not rows:
            return bystanders
        table = posterior_among(np.stack([ratios[r] for r in rows]), self.people)  # type: ignore[misc]
        if self._watched is not None:
            table[:, self._watched] = 0.0
        for r, row, above in zip(rows, table, table > self.level, strict=True):
            places = np.flatnonzero(above)
            order = places[np.argsort(-row[places], kind="stable")].tolist()
            bystanders[r] = tuple(
                Bystander(self._names[j], float(row[j]), self.people) for j in order
            )
        return bystanders

    def notice(self, support_bits: float) -> str:
        """Explain why calibration does not support the level; empty if it does."""
        ratio = 2.0**support_bits
        maximum = ratio / (ratio + self.people - 1)
        if maximum > self.level:
            return ""
        enough = ratio * (1.0 / self.level - 1.0)
        size = 10.0 ** math.floor(math.log10(max(enough, 10.0)))
        return (
            f"no bystander can reach a probability of {format_odds(self.level)} among "
            f"{people(self.people)}. Calibration supports {support_bits:.1f} bits of evidence, "
            f"{format_odds(maximum)} there. State a smaller crowd (--among {size:g}) or level"
        )


ZERO = Bits(0.0, 0.0, 0.0)


CITY = 1_000_000


def choose_crowds(requested: Sequence[float] | None, speakers: int) -> tuple[int, ...]:
    """Return the sizes of crowds, smallest first; by default the N enrolled and a million.

    Example:
        >>> choose_crowds(None, 50), choose_crowds([1e4], 50)
        ((50, 1000000), (10000,))
    """
    if requested is None:
        return tuple(sorted({speakers, max(speakers, CITY)}))
    crowds = sizes(requested)
    if crowds[0] < speakers:
        raise UsageError(
            f"a crowd of {people(crowds[0])} people is smaller than the {speakers} enrolled: use "
            f"{speakers} or more"
        )
    return crowds


def compute_crowds(
    bits: FloatArray,
    watched: Sequence[Bits | None],
    watched_index: int | IntArray | None,
    crowds: Sequence[int],
    names: Sequence[str],
) -> list[tuple[CrowdReading, ...]]:
    """Compute the figures of R moments in each crowd, from the evidence of N people, shape (R, N).

    ``watched`` is the evidence of the watched speaker, at ``watched_index``, one or (R,), with its
    limits.
    """
    if watched_index is None:
        series = [_compute_gains(bits, m, names) for m in crowds]
        return list(zip(*series, strict=True))
    # the distances of the limits from the figure, added to ratios that keep all odds
    watched_bits = np.array(
        [[0.0, b.low - b.value, b.high - b.value] for b in watched if b is not None]
    )
    index = np.broadcast_to(watched_index, len(bits))[:, None]
    watched_bits += np.take_along_axis(bits, index, axis=1)
    other_bits = total_bits(bits[np.arange(len(names)) != index].reshape(len(bits), -1))
    figures = crowd_bits(
        watched_bits[:, None], other_bits[:, None, None], len(names), np.array(crowds)[:, None]
    )
    return [
        tuple(
            CrowdReading(m, value, low, high, min(2.0**value / m, 1.0))
            for m, (value, low, high) in zip(crowds, row, strict=True)
        )
        for row in figures.tolist()
    ]


def _compute_gains(bits: FloatArray, m: int, names: Sequence[str]) -> list[CrowdReading]:
    posterior = posterior_among(bits, m)
    best = posterior.argmax(axis=1)
    favourites = [
        (names[j], row[j]) for j, row in zip(best.tolist(), posterior.tolist(), strict=True)
    ]
    gains = bits_among(bits, m, None).tolist()
    return [
        CrowdReading(m, b, favourite=favourite)
        for b, favourite in zip(gains, favourites, strict=True)
    ]


LN2 = np.log(2.0)
_BLOCK = 1 << 18
"""Maximum pairs of templates compared at a time."""
Levels: TypeAlias = tuple[FloatArray, FloatArray]
"""Mean and spread of the cohort's scores at R moments, (R,) each."""


class RatioBits(NamedTuple):
    """Evidence of R moments of a stream about all enrolled people."""

    # log2 of the likelihood ratios, shape (R, N). All ratios of a moment are lowered equally, which
    # keeps the odds among the enrolled. The mean of all but the best is then at most 1, and the
    # best at most ``support``
    bits: FloatArray
    # evidence of the watched speaker with its limits, shape (R, 3), at most the support; NaN
    # without a watched speaker
    watched: FloatArray
    support: FloatArray  # maximum bits that the calibration supports, shape (R,)
    # whether the figure (the best candidate's without a watched speaker) was capped, shape (R,)
    at_least: BoolArray
    # area under the ROC curve of ``enrolled_share`` between impostors and enrolled speakers in
    # calibration, shape (R,)
    area: FloatArray


class _Effect(NamedTuple):
    """Effect of conditions on the ratios of N people at R moments.

    ``shift``, (R, N), is added to the bits. ``slope``, (R, F, N), multiplies each feature's part.
    ``support``, (R, N), is the maximum of bits.
    """

    shift: FloatArray
    slope: FloatArray
    support: FloatArray

    def pick(self, indices: IntArray) -> _Effect:
        """Pick the templates at (R, N) places."""
        shift, support = (
            np.take_along_axis(x, indices, axis=1) for x in (self.shift, self.support)
        )
        return _Effect(shift, SessionMixture.select(self.slope, indices), support)


def intercept_bits(point: EvidencePoint) -> FloatArray:
    """Return the negative intercept in bits, (R,), of which a shift is a fraction."""
    return np.asarray(np.maximum(-point.intercept[:, 0], 0.0) / LN2)


def _support(
    point: EvidencePoint, effect: _Effect | None, rows: IntArray, indices: IntArray
) -> FloatArray:
    """Return the maximum bits that calibration supports for one person at each moment."""
    if effect is None:
        return point.support
    return np.minimum(point.support, effect.support[rows, indices])


class LikelihoodRatioScorer:
    """Converter of scores to likelihood ratios, normalised by the population's cohort.

    Known conditions of stream and template change a ratio as calibration measured. UsageError if
    ``explain_missing_ratios`` has a reason.
    """

    def __init__(self, population: Population, rank_model: RankModel, scoring: Scoring) -> None:
        if population.cohort is None or rank_model.evidence is None:
            raise UsageError(explain_missing_ratios(population, rank_model))
        self.features = rank_model.features
        self.rank_model = rank_model.evidence.at_template(scoring.seconds)
        self.cohort = {
            name: share(
                population,
                ("cohort", name, scorer.name),
                partial(CohortScoring, population.cohort, name, scorer),
            )
            for name, scorer in population.scorers(rank_model).items()
        }
        self._sessions = population.sessions_apart(scoring)
        self._sounds = population.degradations(scoring)
        self._speakers = int(scoring.members.sum())
        # cached, because a stream's estimates change ever more rarely
        key = "effects", id(rank_model), scoring.seconds, scoring.members.tobytes()
        _, self._condition_effect = share(
            population, key, lambda: (rank_model, lru_cache(256)(self._effect_of))
        )

    def compute_score_stats(self, totals: Mapping[str, AnyArray]) -> list[Levels]:
        """Compute each feature's mean and spread of R totals' scores, (R, M), over the cohort."""
        return [self.cohort[name].compute_score_stats(totals[name]) for name in self.features]

    def evaluate_at(
        self,
        seconds: FloatArray,
        levels: Sequence[Levels],
        scores: FloatArray,
        conditions: Sequence[Condition | None] = (),
        watched_indices: IntArray | None = None,
        *,
        limits: bool = True,
    ) -> RatioBits:
        """Compute the evidence of R moments of T seconds, (R,).

        ``scores`` are raw, (R, F, N), or of every template in the order of `SessionMixture` if
        people have several sessions. ``levels`` are `compute_score_stats`. ``watched_indices``,
        (R,), has the watched speaker of each moment. Without ``limits``, limits are NaN.
        """
        point = self.rank_model.evaluate_at(seconds)
        effect = self._effect(point, conditions)
        bits = self._bits(point, levels, scores, effect)
        surplus = np.zeros((seconds.size, self._speakers))  # mixture minus best session, bits
        if self._sessions is not None:
            nats, session = self._sessions.mix(bits * LN2)
            best = np.take_along_axis(bits, session, axis=1)
            bits = nats / LN2
            surplus = bits - best
            scores = self._sessions.select(scores, session)
            effect = None if effect is None else effect.pick(session)
        level = level_ratios(bits)
        rows, indices = np.arange(seconds.size), level.argmax(axis=1)
        ratios = cap_bits(level, _support(point, effect, rows, indices))
        if watched_indices is not None:
            indices = watched_indices
        support, value = _support(point, effect, rows, indices), level[rows, indices]
        watched = np.full((rows.size, 3), np.nan)
        if watched_indices is not None:
            watched[:, 0] = np.minimum(value, support)
            if limits:
                z = self._normalise(scores[rows, :, indices, None], levels)
                shift = surplus[rows, indices]
                if effect is not None:
                    z = z * effect.slope[rows, :, indices, None]
                    shift = effect.shift[rows, indices] + shift
                lower = bits[rows, indices] - value - shift
                draws = (point.intercept[:, 1:] + (point.slopes[:, 1:] @ z)[..., 0]) / LN2
                both = limits_of_each(with_misses(draws)) - lower[:, None]
                both = np.minimum(both, support[:, None])
                # the figure itself may be outside the percentiles of its resamples
                watched[:, 1] = np.minimum(both[:, 0], watched[:, 0])
                watched[:, 2] = np.maximum(both[:, 1], watched[:, 0])
        return RatioBits(ratios, watched, support, value > support, point.area)

    @staticmethod
    def _normalise(scores: FloatArray, levels: Sequence[Levels]) -> FloatArray:
        mean, spread = (np.stack(parts, axis=1) for parts in zip(*levels, strict=True))
        return normalise(scores, mean, spread)

    def _effect(
        self, point: EvidencePoint, conditions: Sequence[Condition | None]
    ) -> _Effect | None:
        """Compute the effect on all people at each moment; None without one in the model."""
        if self.rank_model.conditions is None:
            return None
        # unknown conditions take the same path, so that moments do not depend on each other
        effects = map(self._condition_effect, conditions or [None] * len(point.support))
        shift, slope, support = (np.stack(arrays) for arrays in zip(*effects, strict=True))
        return _Effect(shift * intercept_bits(point)[:, None], slope, support)

    def _effect_of(self, condition: Condition | None) -> _Effect:
        assert self.rank_model.conditions is not None
        is_new = condition is not None and condition.snr_db is None
        q = unlike(degradation(condition)[None], self._sounds, is_new=is_new)[0]
        shift, slope, support = self.rank_model.conditions.evaluate_at(q)
        # a single row if no template has known conditions
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
        """Compute the bits of N people, (R, N), normalised by the cohort's scores."""
        mean, spread = (np.stack(parts, axis=1) for parts in zip(*levels, strict=True))
        # a + sum_f b_f (s_fj - mean_f) / spread_f, in one product over the candidates
        scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
        slopes = point.slopes[:, 0] * scale
        if effect is None:
            return log2_ratios(scores, point.intercept[:, 0] - (slopes * mean).sum(axis=1), slopes)
        parts = slopes[..., None] * (scores - mean[..., None]) * effect.slope
        bits = (point.intercept[:, :1] + parts.sum(axis=1)) / LN2
        return with_misses(bits + effect.shift)

    def compare_templates(
        self, population: Population, rank_model: RankModel, scoring: Scoring
    ) -> Iterator[tuple[int, FloatArray]]:
        """Yield the bits of templates as streams under every template, block by block.

        Each block, (block, N), has the index of its first row. Bits are at most the support. Only
        the first of a person's sessions is used.
        """
        scorers = population.scorers(rank_model)
        templates = {name: population.templates(name, scoring) for name in self.features}
        prepared = {
            name: population.prepared(name, scoring, scorers[name]) for name in self.features
        }
        places = np.flatnonzero(scoring.members).tolist()
        sounds = [population.speakers[i].condition for i in places]
        step = max(1, _BLOCK // self._speakers)
        for first in range(0, self._speakers, step):
            rows = slice(first, min(first + step, self._speakers))
            totals = {name: templates[name][rows] for name in self.features}
            scores = np.stack(
                [scorers[name].score(prepared[name], totals[name]) for name in self.features],
                axis=1,
            )
            point = self.rank_model.evaluate_at(np.full(len(scores), scoring.seconds))
            effect = self._effect(point, sounds[rows])
            support = np.repeat(point.support[:, None], self._speakers, axis=1)
            if effect is not None:
                if self._sessions is not None:  # by their first templates
                    effect = effect.pick(np.tile(np.arange(self._speakers), (len(scores), 1)))
                support = np.minimum(support, effect.support)
            levels = self.compute_score_stats(totals)
            yield first, np.minimum(self._bits(point, levels, scores, effect), support)


_REPLICATES = slice(1, None)
_NODES_PER_OCTAVE, _NODES_PER_OCTAVE_MIXED = 6, 12


class ExpectedBits:
    """MeanD(T, D) of a rank model at N speakers, along a stream.

    The figure is exact at every T. Its limits are costly for thousands of speakers. They are
    therefore computed when first needed, at six lengths per octave (twelve beside a degenerate rank
    model), and interpolated in log T (``benchmarks/scale.py``).
    """

    def __init__(self, rank_model: LengthModel, speakers: int) -> None:
        self._rank_model, self._speakers = rank_model, speakers
        self._nodes = _choose_nodes(rank_model)
        self._node_margin = lru_cache(None)(lambda node: self._margin(float(self._nodes[node])))
        self._at_lengths = lru_cache(4)(self._figures)  # a block may need them twice

    @cached_property
    def first_bits(self) -> float:
        """Expected bits at the first length of the grid."""
        return float(self._values(self._rank_model.lengths[:1])[0])

    @cached_property
    def plateau_bits(self) -> float:
        """Maximum expected bits over the lengths of the grid."""
        return float(self._values(self._rank_model.lengths).max())

    def evaluate_at(self, seconds: float) -> Bits:
        """Return expected bits with limits at T speech seconds; zero at T = 0."""
        return self.evaluate_each(np.array([seconds]))[0]

    def evaluate_each(self, seconds: FloatArray) -> list[Bits]:
        """Return expected bits with limits at each of R lengths."""
        return list(self._at_lengths(seconds.tobytes()))

    def _figures(self, lengths: bytes) -> list[Bits]:
        seconds = np.frombuffer(lengths)
        values, ceiling = self._values(seconds), float(np.log2(self._speakers))
        margins = map(self._margin_at, np.minimum(seconds, self._nodes[-1]))
        return [
            Bits(value, max(value + low, 0.0), min(value + high, ceiling)) if t > 0 else ZERO
            for t, value, (low, high) in zip(
                seconds.tolist(), values.tolist(), margins, strict=True
            )
        ]

    def _margin_at(self, seconds: float) -> tuple[float, float]:
        """Return the distances of the limits from the value, interpolated between nodes."""
        if seconds <= self._nodes[0]:
            return self._margin(seconds) if seconds > 0 else (0.0, 0.0)
        right = int(np.searchsorted(self._nodes, seconds))
        t0, t1 = self._nodes[right - 1], self._nodes[right]
        w = float(np.log(seconds / t0) / np.log(t1 / t0))
        (low0, high0), (low1, high1) = self._node_margin(right - 1), self._node_margin(right)
        return (1 - w) * low0 + w * low1, (1 - w) * high0 + w * high1

    def _values(self, seconds: FloatArray) -> FloatArray:
        model, count = self._rank_model, seconds.size
        # the rounding of sums over very many ranks depends on the number of lengths in a batch
        step = count if self._speakers <= ALL_RANKS_TO else 1
        if step == count and len(model.split(count)) == 1:
            points = model.evaluate_each(seconds)  # as was weighed
            models = slice(None, None, points.floor.size // count)
            return points.expected_bits(self._speakers, models)
        batches = [seconds[start : start + step] for start in range(0, count, step)]
        evaluated = map(model.at_each, batches)
        return np.concatenate(
            [points.expected_bits(self._speakers, slice(None)) for points in evaluated]
        )

    def _margin(self, seconds: float) -> tuple[float, float]:
        point = self._rank_model.evaluate_at(seconds)
        low, high = limits(point.expected_bits(self._speakers, _REPLICATES))
        value = float(self._values(np.array([seconds]))[0])
        return low - value, high - value


def _choose_nodes(rank_model: LengthModel) -> FloatArray:
    """Return the model's grid and lengths between: more where pmfs are mixed."""
    nodes = [float(rank_model.lengths[0])]
    for index, (low, high) in enumerate(pairwise(rank_model.lengths.tolist())):
        mixed = rank_model.degenerate[index : index + 2].any()
        dense = _NODES_PER_OCTAVE_MIXED if mixed else _NODES_PER_OCTAVE
        count = int(np.ceil(np.log2(high / low) * dense))
        nodes += np.geomspace(low, high, count + 1)[1:].tolist()
    return np.array(nodes)


class Weighed(NamedTuple):
    """Scores of some moments (rows), weighed by one rank model."""

    # the rank model. Every moment has frames of all its features, or it is the joint one
    model: PosteriorModel
    rows: IntArray  # which of the moments, (R,)
    seconds: FloatArray  # T at each, (R,)
    posterior: FloatArray  # probability of each speaker, shape (R, N)
    # bits with limits, (R, 3). Limits that were not requested are NaN
    local: FloatArray  # NaN without a watched speaker
    gain: FloatArray
    scores: FloatArray  # raw scores of the best session of each, shape (R, F, N)
    # for one feature, numbers of templates that beat and that tie with the watched one, (R,) each
    ranks: tuple[IntArray, IntArray] | None = None
    # evidence; None if the rank model has none, or a moment lacks a feature
    ratios: RatioBits | None = None


class PosteriorModel:
    """Rank model at one template length: scores to probabilities, with bootstrap limits."""

    def __init__(
        self, rank_model: RankModel, seconds: float, speakers: int, additive: BoolArray
    ) -> None:
        self.features = rank_model.features
        self.rank_model: LengthModel = at_template(rank_model, seconds, additive)
        self.expected = ExpectedBits(self.rank_model, speakers)
        self.ratios: LikelihoodRatioScorer | None = None
        self._speakers, self._additive = speakers, additive
        self._enrolled = EnrolledProbability(rank_model, seconds)

    def rank_bits(self, seconds: FloatArray, better: IntArray, tied: IntArray) -> FloatArray:
        """Return rank bits with limits at T speech seconds of R ranks: shape (R, 3)."""
        rows = []
        for batch in self.rank_model.split(seconds.size):
            points = self.rank_model.evaluate_each(seconds[batch])
            replicates = points.floor.size // seconds[batch].size
            ranks = [
                np.repeat(counts[batch], replicates) if seconds.size > 1 else int(counts[0])
                for counts in (better, tied)
            ]
            bits = points.rank_bits(self._speakers, *ranks).reshape(-1, replicates)
            rows.append(np.column_stack([bits[:, 0], limits_of_each(bits[:, 1:])]))
        return np.concatenate(rows)

    def weigh(
        self,
        rows: IntArray,
        seconds: FloatArray,
        scores: FloatArray,
        watched: IntArray | None,
        sessions: SessionMixture | None = None,
        *,
        limits: bool = True,
    ) -> Weighed:
        """Weigh raw scores, (R, F, N), of some moments (rows) at T, (R,).

        ``watched`` has the watched speaker's index at each of all moments.

        With ``sessions``, scores are those of every template. Each person's best one counts. The
        rest of the mixture is added as a feature of weight 1.
        """
        features = scores.shape[1]
        weights, spread = self.rank_model.weighing(seconds, resamples=limits)
        if sessions is not None:
            scores, weights = _select_best_sessions(sessions, scores, weights)
        posterior = score_posterior(weighted_evidence(scores, weights[:, 0]), spread[:, 0])
        local, gain = np.full((2, seconds.size, 3), np.nan)
        gain[:, 0] = confidence_bits(posterior)
        if watched is not None:
            watched = watched[rows]
            probability = posterior[np.arange(rows.size), watched]
            local[:, 0] = local_bits(probability, scores.shape[2])
        if limits:
            local_draws, gain_draws = replicate_bits(scores, weights, spread[:, 1:], watched)
            gain[:, 1:] = limits_of_each(gain_draws)
            if local_draws is not None:
                local[:, 1:] = limits_of_each(local_draws)
        return Weighed(self, rows, seconds, posterior, local, gain, scores[:, :features])

    def enrolled(self, weighed: Weighed, frames: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the probability that the speaker is enrolled, or NaN, and ROC areas: (R,).

        ``weighed`` is from `weigh`, and ``frames``, (R, F), are numbers of frames.
        """
        scores, best_index = weighed.scores, weighed.posterior.argmax(axis=1)
        best = scores[np.arange(len(scores)), :, best_index]
        best = best / np.where(self._additive, np.maximum(frames, 1), 1)
        seconds = weighed.seconds
        return self._enrolled.evaluate_at(seconds, best), self._enrolled.area(seconds)


def _select_best_sessions(
    sessions: SessionMixture, scores: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Select scores of each best session, with the rest of the mixture as one more feature."""
    rows = weighted_evidence(scores, weights[:, 0])
    mixed, index = sessions.mix(rows)
    remainder = mixed - np.take_along_axis(rows, index, axis=1)
    scores = np.concatenate([sessions.select(scores, index), remainder[:, None]], axis=1)
    return scores, np.concatenate([weights, np.ones((*weights.shape[:2], 1))], axis=2)
