"""The modelled attacker: from running sketches to ranks, posteriors and bits.

Sources: docs/method.md sections 4 (lengths), 5 (posteriors, expected bits) and 10 (likelihood
ratios).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import compress, pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from monitor.crowds import YOU
from monitor.errors import StoreError, UsageError
from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup, ready, superseded, takes
from monitor.kinds import unlike_networks
from monitor.maths.condition import Condition, degradation, unlike
from monitor.maths.evidence import (
    e_value,
    enrolled_share,
    held_to,
    levelled,
    log2_ratios,
    with_misses,
)
from monitor.maths.posterior import (
    confidence_bits,
    local_bits,
    replicate_bits,
    score_posterior,
    weighted_evidence,
)
from monitor.maths.ranks import rank_now
from monitor.maths.scores import SessionMixture, Similarity
from monitor.maths.sketch import AnySketch
from monitor.maths.statistics import limits, limits_of_each
from monitor.population.cohort import CohortScoring, normalised
from monitor.population.interpolation import (
    GOOD_AREA,
    EnrolledProbability,
    EvidenceSpread,
    LengthModel,
    at_template,
)
from monitor.population.population import MISMATCH, Population, Scoring
from monitor.population.rank_model import EvidencePoint, RankModel, RankModels
from monitor.stream.reading import (
    ZERO,
    Assessment,
    Bits,
    CrowdEvidence,
    FeatureReading,
    RunningTotals,
    among_each,
    crowds_for,
)
from monitor.types import AnyArray, BoolArray, FloatArray, IntArray

MOST_COMPARED = 300
"""People who are enrolled, up to which it is asked whether they contradict the ratios."""
_FIRST_SECONDS = 0.1
"""Shorter than any length that is calibrated."""
MATCHING_SECONDS = 10.0
"""Of speech, at which a notice tells what templates of the stream's own sound would say."""
_EXAMPLE_SECONDS = 30.0
"""Length of the test, of speech, by which a notice tells what longer templates would say."""


@dataclass(frozen=True, slots=True)
class CommonLength:
    """The one length D that all templates of a run are cut to.

    The shortest template decides, or the watched speaker's: who has less than the others is
    compared with as much of each, never with more. What a model says belongs to its own D, so a
    length far below those that it was learnt at gives no figures at all (``withheld`` says why);
    ``notice`` is what to mind where D is not what the templates have, or the rank model was not
    learnt there.
    """

    scoring: Scoring
    withheld: str = ""
    notice: str = ""


def common_length(
    population: Population, rank_model: RankModel, watch: str | None, asked_seconds: float | None
) -> CommonLength:
    """Choose D; ``asked_seconds`` where the user chose it, which two templates must have."""
    have = 0.0 if watch is None else float(population.template_seconds[population.index(watch)])
    if asked_seconds is not None:
        scoring = population.scoring(asked_seconds)
        if watch is not None and have < scoring.seconds:
            return CommonLength(
                scoring,
                f"template_mismatch: {watch} has {have:g} s of enrolled speech, not the "
                f"{scoring.seconds:g} s asked for; enrol more, or leave out --template-seconds",
            )
        return CommonLength(scoring, notice=_off_the_grid(rank_model, scoring.seconds))
    usual = population.common_seconds
    if watch is None:
        scoring = population.scoring()
        if scoring.seconds == usual:
            return CommonLength(scoring, notice=_off_the_grid(rank_model, usual))
        first = int(np.argmin(np.where(scoring.members, population.template_seconds, np.inf)))
        shortest = population.names[first]
        cure = f"; --template-seconds {usual:g} leaves out who has less"
        return CommonLength(
            scoring, notice=_cut(population, rank_model, shortest, scoring, usual) + cure
        )
    if have >= usual:
        return CommonLength(
            population.scoring(watch=watch), notice=_off_the_grid(rank_model, usual)
        )
    least = float(rank_model.template_lengths[0])
    if have < MISMATCH * least:
        return CommonLength(
            population.scoring(usual),
            f"template_mismatch: {watch} has {have:g} s of enrolled speech, too little: the rank "
            f"model knows no templates under {least:g} s; enrol more",
        )
    scoring = population.scoring(watch=watch)
    return CommonLength(scoring, notice=_cut(population, rank_model, watch, scoring, usual))


def _cut(
    population: Population, rank_model: RankModel, name: str, scoring: Scoring, usual: float
) -> str:
    """What it costs to be compared by less speech than the others have."""
    additive = np.array([each.additive for each in population.scorers(rank_model).values()])
    speakers = int(scoring.members.sum())
    now, then = (
        at_template(rank_model, d, additive)
        .at(_EXAMPLE_SECONDS)
        .expected_bits(speakers, slice(0, 1))[0]
        for d in (scoring.seconds, usual)
    )
    whose = "your" if name.lower() in YOU else f"{name}'s"
    where = _off_the_grid(rank_model, scoring.seconds)
    here, there = f"{now:.1f}", f"{then:.1f}"
    instead = "" if here == there else f" instead of {there}"
    return (
        f"{whose} template has {scoring.seconds:g} s, the others {usual:g} s: all are compared at "
        f"{scoring.seconds:g} s{where and f', and {where}'}. {_EXAMPLE_SECONDS:g} s of speech "
        f"disclose {here} bits on average among the {speakers}{instead}. "
        "Enrol more: monitor enrol --add"
    )


def _off_the_grid(rank_model: RankModel, seconds: float) -> str:
    """Which rank model stands in at a D that it was not learnt at; empty where it was."""
    grid = rank_model.template_lengths
    if np.isclose(grid, seconds).any():
        return ""
    place = int(np.searchsorted(grid, seconds))
    if 0 < place < grid.size:
        return (
            f"what was learnt from templates of {grid[place - 1]:g} and {grid[place]:g} s is "
            "interpolated"
        )
    nearest = float(grid[0] if place == 0 else grid[-1])
    which, bias = ("shorter", "high") if place == 0 else ("longer", "low")
    return f"nothing {which} than {nearest:g} s was learnt from: the figures are too {bias}"


_RESCORED = 4096
"""Templates taken at a time."""
_AT_ONCE = 1 << 22
"""Most candidates, of all moments together, that are weighed at a time."""
_SORTED = 64
"""Of more speakers only those that may be among the most probable are sorted."""


def most_probable(
    posterior: FloatArray, names: Sequence[str], most: int
) -> list[list[tuple[str, float]]]:
    """The ``most`` most probable speakers of each row, best first; of equals, the first enrolled.

    Args:
        posterior: shape (R, N).
        names: of the N.
        most: how many, at most N.

    Example:
        >>> most_probable(np.array([[0.2, 0.5, 0.3]]), ["ann", "bob", "eve"], 2)
        [[('bob', 0.5), ('eve', 0.3)]]
    """
    if len(names) > _SORTED:
        edge = np.partition(posterior, len(names) - most, axis=1)
        edge = edge[:, len(names) - most]
        few = [np.flatnonzero(row >= least) for row, least in zip(posterior, edge, strict=True)]
        order = np.array([
            places[np.argsort(-row[places], kind="stable")[: most]]
            for row, places in zip(posterior, few, strict=True)
        ])  # fmt: skip
    else:
        order = np.argsort(-posterior, axis=1, kind="stable")[:, :most]
    values = posterior[np.arange(len(order))[:, None], order].tolist()
    return [
        [(names[j], p) for j, p in zip(*each, strict=True)]
        for each in zip(order.tolist(), values, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class RatioBits:
    """What R moments of a stream say about everybody enrolled.

    Attributes:
        bits: log2 of the likelihood ratios, shape (R, N): all of a moment lowered alike until the
            mean of all but the best is at most 1, and the best at most ``support``, so that odds
            among the enrolled are as the scores have them.
        watched: evidence bits of the watched speaker, held to the support; None where nobody is.
        support: the most bits that the calibration can support, shape (R,).
        at_least: where the figure (the best candidate's where nobody is watched) was cut, shape
            (R,).
        area: how well ``enrolled_share`` told impostors from enrolled speakers in calibration: area
            under the ROC curve, shape (R,).
    """

    bits: FloatArray
    watched: list[Bits | None]
    support: FloatArray
    at_least: BoolArray
    area: FloatArray


def explain_missing_ratios(population: Population, rank_model: RankModel) -> str:
    """Why a population and a model give no likelihood ratios, and what helps; or empty."""
    about, cohort = "+".join(rank_model.features), population.cohort
    if rank_model.evidence is None:
        return f"the rank model of {about} was learnt without evidence; calibrate again"
    if cohort is None:
        return (
            "the population has no cohort of background speakers to set scores against; "
            "calibrate again"
        )
    for name, mark in zip(rank_model.features, rank_model.evidence.cohort, strict=True):
        if name not in cohort.features:
            return f"the cohort has nothing of {name}; calibrate against one that has (--cohort)"
        if cohort.mark(name) != mark:
            return (
                f"the rank model of {about} was learnt against another cohort than the "
                f"population's; calibrate again"
            )
    return ""


def evidence_model_of(
    population: Population, rank_models: RankModels, rank_model: RankModel
) -> RankModel | None:
    """The rank model whose likelihood ratios are told where another one weighs the rest, or None.

    Mostly the same one. Where it has none, that of its features that are not made of words: the
    ratios of a voice are not given up for a transcript of it.
    """
    if not explain_missing_ratios(population, rank_model):
        return rank_model
    heard = tuple(name for name in rank_model.features if takes(name) != "words")
    other = rank_models.find(heard, rank_model.session)
    if (
        other is None
        or other.features == rank_model.features
        or explain_missing_ratios(population, other)
    ):
        return None
    scored = dict(zip(rank_model.features, rank_model.similarities, strict=True))
    alike = all(
        scored[name] == similarity and rank_model.network(name) == other.network(name)
        for name, similarity in zip(other.features, other.similarities, strict=True)
    )
    return other if alike else None


class _Effect(NamedTuple):
    """What conditions do to the ratios of N people, at each of R moments.

    Bits more, (R, N); factors of each feature's part, (R, F, N); most bits, (R, N).
    """

    shift: FloatArray
    slope: FloatArray
    support: FloatArray

    def taken(self, place: IntArray) -> _Effect:
        """Of the templates at (R, N) places."""
        shift, support = (np.take_along_axis(x, place, axis=1) for x in (self.shift, self.support))
        return _Effect(shift, SessionMixture.taken(self.slope, place), support)


_Levels: TypeAlias = tuple[FloatArray, FloatArray]
"""Mean and spread of the cohort's scores at R moments, (R,) each."""


class _Told(NamedTuple):
    """What R moments say of N people: bits before and after they are levelled, (R, N) each.

    Of people with several sessions by the best of them, which the bits exceed by ``less``.
    """

    point: EvidencePoint
    effect: _Effect | None
    levels: Sequence[_Levels]
    scores: FloatArray
    full: FloatArray
    less: FloatArray
    raw: FloatArray
    best: IntArray

    def most(self, rows: IntArray, place: IntArray) -> FloatArray:
        """The most bits that calibration supports of these people, one at each moment."""
        support = self.point.support
        if self.effect is None:
            return support
        return np.minimum(support, self.effect.support[rows, place])


def _told_by_a(point: EvidencePoint) -> FloatArray:
    """Bits of the intercept that a shift is a share of, shape (R,)."""
    return np.asarray(np.maximum(-point.intercept[:, 0], 0.0) / np.log(2.0))


class Ratios:
    """Turns scores into likelihood ratios, by one more product with the population's cohort.

    Ask ``explain_missing_ratios`` first; ``watched`` is a place among the scoring's members, or
    None. Where it is known what stream and template sound like, a ratio counts as these conditions
    have it. ``against`` keeps the cohort's scoring by feature, for several rank models of one
    population.
    """

    def __init__(
        self,
        population: Population,
        rank_model: RankModel,
        scoring: Scoring,
        watched: int | None,
        against: dict[str, CohortScoring] | None = None,
    ) -> None:
        cohort = population.cohort
        if cohort is None or rank_model.evidence is None:
            raise UsageError(explain_missing_ratios(population, rank_model))
        self.features = rank_model.features
        self.rank_model = rank_model.evidence.at_template(scoring.seconds)
        self._watched = watched
        self._against = {} if against is None else against
        for name, scorer in population.scorers(rank_model).items():
            if name not in self._against:
                self._against[name] = CohortScoring(cohort, name, scorer)
        self._mixture = population.sessions_apart(scoring)
        self._sounds = population.degradations(scoring)
        self._people = int(scoring.members.sum())
        self._latest: tuple[Condition | None, _Effect | None] = (None, None)

    def at(
        self,
        seconds: FloatArray,
        levels: Sequence[_Levels],
        scores: FloatArray,
        conditions: Sequence[Condition | None] = (),
        *,
        limited: bool = True,
    ) -> RatioBits:
        """What R moments say, by T, (R,), the cohort's ``levels`` and raw scores (R, F, N).

        And by what the stream sounds like at each of them, where that is known. Of people with
        several sessions scores of every template, as `SessionMixture` has them. The watched
        speaker's bits have limits, or NaN in their place.
        """
        told = self._told(seconds, scores, conditions, levels)
        point, effect, rows, place = told.point, told.effect, np.arange(len(seconds)), told.best
        ratios = held_to(told.raw, told.most(rows, place))
        watched: list[Bits | None] = [None] * len(seconds)
        if self._watched is not None:
            place = np.full(rows.size, self._watched)
        most = told.most(rows, place)
        if self._watched is not None and not limited:
            watched = [*_without_limits(np.minimum(told.raw[rows, place], most))]
        elif self._watched is not None:
            mean, spread = (np.stack(each, axis=1) for each in zip(*told.levels, strict=True))
            own = normalised(told.scores[..., self._watched, None], mean, spread)
            value = told.raw[rows, place]
            lowered, shift = told.full[rows, place] - value, told.less[rows, place]
            if effect is not None:
                own = own * effect.slope[rows, :, place, None]
                shift = effect.shift[rows, place] + shift
            watched = self._limits(point, value, own, lowered - shift, most)
        return RatioBits(
            ratios, watched, most, np.asarray(told.raw[rows, place] > most), point.area
        )

    def levels(self, totals: Mapping[str, AnyArray]) -> list[_Levels]:
        """Of each feature, mean and spread over the cohort of the scores of R totals, (R, M)."""
        return [self._against[name].levels(totals[name]) for name in self.features]

    def _told(
        self,
        seconds: FloatArray,
        scores: FloatArray,
        conditions: Sequence[Condition | None],
        levels: Sequence[_Levels],
    ) -> _Told:
        point = self.rank_model.at(seconds)
        effect = self._effect(point, conditions)
        full = self._bits(point, levels, scores, effect)
        less = np.zeros((len(seconds), self._people))
        if self._mixture is not None:
            nats, session = self._mixture.mixed(full * np.log(2.0))
            best_session = np.take_along_axis(full, session, axis=1)
            full = nats / np.log(2.0)
            less = full - best_session
            scores = self._mixture.taken(scores, session)
            if effect is not None:
                effect = effect.taken(session)
        raw = levelled(full)
        return _Told(point, effect, levels, scores, full, less, raw, raw.argmax(axis=1))

    def _effect(
        self, point: EvidencePoint, conditions: Sequence[Condition | None]
    ) -> _Effect | None:
        """Of everybody at each moment; None: none is known of this rank model."""
        effect = self.rank_model.conditions
        if effect is None:
            return None
        each = []
        # one path, whatever is known: a moment must not depend on those worked out beside it
        for condition in conditions or [None] * len(point.support):
            before, found = self._latest
            if found is None or condition != before:  # it is estimated anew ever more seldom
                shift, slope, support = effect.at(
                    unlike(degradation(condition)[None], self._sounds)[0]
                )
                found = _Effect(shift, slope.T, support)
                if len(self._sounds) == 1:
                    found = _Effect(*(np.broadcast_to(x, (*x.shape[:-1], self._people))
                                      for x in found))  # fmt: skip
                self._latest = condition, found
            each.append(found)
        made = _Effect(*(np.stack(parts) for parts in zip(*each, strict=True)))
        return made._replace(shift=made.shift * _told_by_a(point)[:, None])

    def _bits(
        self,
        point: EvidencePoint,
        levels: Sequence[_Levels],
        scores: FloatArray,
        effect: _Effect | None = None,
    ) -> FloatArray:
        """Bits of everybody, (R, N), by mean and spread of the cohort's scores of each feature."""
        mean, spread = (np.stack(each, axis=1) for each in zip(*levels, strict=True))
        # a + sum_f b_f (s_fj - mean_f) / spread_f, in one product over the candidates
        scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
        slopes = point.slopes[:, 0] * scale
        if effect is None:
            level = point.intercept[:, 0] - (slopes * mean).sum(axis=1)
            return log2_ratios(scores, level, slopes)
        parts = slopes[..., None] * (scores - mean[..., None]) * effect.slope
        bits = (point.intercept[:, :1] + parts.sum(axis=1)) / np.log(2.0)
        return with_misses(bits + effect.shift)

    def of_the_enrolled(
        self, population: Population, rank_model: RankModel, scoring: Scoring
    ) -> FloatArray:
        """Mean ratio that each of the enrolled has with those after, as their streams: (N - 1,).

        What is enrolled of each is the stream. If the ratios are calibrated for these people none
        of them exceeds 1 on average, whatever the ones before showed: `e_value` says whether.
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
        sounds = [
            population.speakers[i].condition for i in np.flatnonzero(scoring.members).tolist()
        ]
        effect = self._effect(point, sounds)
        if effect is not None and self._mixture is not None:  # by their first templates
            effect = effect.taken(np.tile(np.arange(self._people), (len(sounds), 1)))
        most = np.repeat(point.support[:, None], len(sounds), axis=1)
        if effect is not None:
            most = np.minimum(most, effect.support)
        bits = np.minimum(self._bits(point, self.levels(totals), scores, effect), most)
        return np.array([np.exp2(bits[i, i + 1 :]).mean() for i in range(len(bits) - 1)])

    @staticmethod
    def _limits(
        point: EvidencePoint,
        value: FloatArray,
        z: FloatArray,
        lowered: FloatArray,
        support: FloatArray,
    ) -> list[Bits | None]:
        """Of the watched speaker alone, under every resample; z has shape (R, F, 1)."""
        replicates = (point.intercept[:, 1:] + (point.slopes[:, 1:] @ z)[..., 0]) / np.log(2.0)
        both = limits_of_each(with_misses(replicates)) - lowered[:, None]  # others have none
        both = np.minimum(both, support[:, None])
        values = np.minimum(value, support)
        # the rank model itself need not lie within the percentiles of its resamples
        low, high = np.minimum(both[:, 0], values), np.maximum(both[:, 1], values)
        return [Bits(*each) for each in np.column_stack([values, low, high]).tolist()]


_NODES_PER_OCTAVE = 6
_NODES_PER_OCTAVE_MIXED = 12
_RANK_MODEL = slice(0, 1)
_REPLICATES = slice(1, None)
_LATEST = 64


class ExpectedBits:
    """MeanD(T, D) of a rank model at N speakers, along a stream.

    The figure itself is exact at every T. Its limits need MeanD under every replicate, dear for
    thousands of speakers: how far they lie from the figure is worked out at six lengths an
    octave (twelve beside a degenerate rank model), the grid of the rank model among them, when
    first needed, and interpolated in log T between (``benchmarks/update.py``).
    """

    def __init__(self, rank_model: LengthModel, speakers: int) -> None:
        self._rank_model, self._speakers = rank_model, speakers
        self._offsets: dict[int, tuple[float, float]] = {}
        self._latest: dict[float, Bits] = {}  # of one block: a rank model may be asked twice
        self._nodes = _nodes(rank_model)

    @cached_property
    def first_bits(self) -> float:
        """At the first length of the grid."""
        return self._value(float(self._rank_model.lengths[0]))

    @cached_property
    def plateau_bits(self) -> float:
        """The most at any length of the grid."""
        return max(self._value(float(t)) for t in self._rank_model.lengths)

    def at(self, seconds: float) -> Bits:
        """Expected bits with limits at T speech seconds; zero at T = 0."""
        seconds = min(max(seconds, 0.0), float(self._nodes[-1]))
        if seconds not in self._latest:
            if len(self._latest) >= _LATEST:
                self._latest.clear()
            self._latest[seconds] = self._at(seconds) if seconds else ZERO
        return self._latest[seconds]

    def _at(self, seconds: float) -> Bits:
        value = self._value(seconds)
        if seconds <= self._nodes[0]:
            low, high = self._exact(seconds, value)
        else:
            right = int(np.searchsorted(self._nodes, seconds))
            t0, t1 = self._nodes[right - 1], self._nodes[right]
            w = float(np.log(seconds / t0) / np.log(t1 / t0))
            (low0, high0), (low1, high1) = self._at_node(right - 1), self._at_node(right)
            low, high = (1 - w) * low0 + w * low1, (1 - w) * high0 + w * high1
        ceiling = float(np.log2(self._speakers))
        return Bits(value, max(value + low, 0.0), min(value + high, ceiling))

    def _value(self, seconds: float) -> float:
        return float(self._rank_model.at(seconds).expected_bits(self._speakers, _RANK_MODEL)[0])

    def _exact(self, seconds: float, value: float) -> tuple[float, float]:
        low, high = limits(self._rank_model.at(seconds).expected_bits(self._speakers, _REPLICATES))
        return low - value, high - value

    def _at_node(self, node: int) -> tuple[float, float]:
        if node not in self._offsets:
            seconds = float(self._nodes[node])
            self._offsets[node] = self._exact(seconds, self._value(seconds))
        return self._offsets[node]


def _nodes(rank_model: LengthModel) -> FloatArray:
    """The grid of the model, and lengths between: more where pmfs are mixed, which bends faster."""
    nodes = [float(rank_model.lengths[0])]
    for left, (low, high) in enumerate(pairwise(rank_model.lengths.tolist())):
        mixed = rank_model.degenerate[left : left + 2].any()
        dense = _NODES_PER_OCTAVE_MIXED if mixed else _NODES_PER_OCTAVE
        count = int(np.ceil(np.log2(high / low) * dense))
        nodes += np.geomspace(low, high, count + 1)[1:].tolist()
    return np.array(nodes)


_MOST_RANKS = 1000


class PosteriorModel:
    """One rank model, of a feature or of several, at one template length: scores to probabilities.

    Its bootstrap replicates give the limits.
    """

    def __init__(
        self,
        rank_model: RankModel,
        seconds: float,
        speakers: int,
        additive: BoolArray,
        ratios: Ratios | None = None,
    ) -> None:
        self.features = rank_model.features
        self.rank_model: LengthModel = at_template(rank_model, seconds, additive)
        self._additive, self._enrolled = additive, EnrolledProbability(rank_model, seconds)
        self.expected = ExpectedBits(self.rank_model, speakers)
        self.ratios = ratios
        # beyond the grid the rank model stands still, for hours: the same ranks say the same
        self._beyond: dict[tuple[int, int], Bits] = {}

    def rank_bits(self, seconds: float, speakers: int, better: int, tied: int) -> Bits:
        """Rank bits with limits, at T speech seconds."""
        beyond = seconds > self.rank_model.lengths[-1]
        if beyond and (better, tied) in self._beyond:
            return self._beyond[better, tied]
        replicates = self.rank_model.at(seconds).rank_bits(speakers, better, tied)
        bits = Bits(float(replicates[0]), *limits(replicates[1:]))
        if beyond and len(self._beyond) < _MOST_RANKS:
            self._beyond[better, tied] = bits
        return bits

    def weigh(
        self,
        seconds: FloatArray,
        scores: FloatArray,
        watched: int | None,
        mixture: SessionMixture | None = None,
        *,
        limited: bool = True,
    ) -> WeighedScores:
        """Posteriors, local and gain bits: T, shape (R,), raw scores, shape (R, F, N).

        With a mixture scores of every template: the best one's of each, and beside them, as a
        feature of weight 1, what the others leave of it. Bits have limits, or NaN in their place.
        """
        rows = slice(None) if limited else slice(0, 1)
        weights, spread = self.rank_model.weighing(seconds, rows)
        if mixture is not None:
            scores, weights = _each_once(mixture, scores, weights)
        posterior = score_posterior(weighted_evidence(scores, weights[:, 0]), spread[:, 0])
        gain, own = confidence_bits(posterior), None
        if watched is not None:
            own = local_bits(posterior[:, watched], scores.shape[2])
        told: list[Bits | None] = [None] * len(seconds)
        if not limited:
            told = told if own is None else [*_without_limits(own)]
            return WeighedScores(posterior, told, _without_limits(gain))
        local, drawn = replicate_bits(scores, weights, spread[:, 1:], watched)
        if own is not None and local is not None:
            told = [*_with_limits(own, local)]
        return WeighedScores(posterior, told, _with_limits(gain, drawn))

    def enrolled(
        self, seconds: FloatArray, scores: FloatArray, frames: IntArray, posterior: FloatArray
    ) -> FloatArray:
        """Probability that the speaker is enrolled, or NaN, shape (R,); frames: shape (R, F)."""
        best = scores[np.arange(len(scores)), :, posterior.argmax(axis=1)]
        return self._enrolled.at(seconds, best / np.where(self._additive, np.maximum(frames, 1), 1))

    def impostor_area(self, seconds: FloatArray) -> FloatArray:
        """How well that probability told impostors in calibration: area under the ROC curve."""
        return self._enrolled.area(seconds)


def _each_once(
    mixture: SessionMixture, scores: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Scores of the best template of each, and as one more feature what the others leave of it."""
    rows = weighted_evidence(scores, weights[:, 0])
    mixed, place = mixture.mixed(rows)
    left = mixed - np.take_along_axis(rows, place, axis=1)
    scores = np.concatenate([mixture.taken(scores, place), left[:, None]], axis=1)
    return scores, np.concatenate([weights, np.ones((*weights.shape[:2], 1))], axis=2)


class WeighedScores(NamedTuple):
    """The joint, or one feature's, figures of R readings."""

    posterior: FloatArray
    local: list[Bits | None]
    gain: list[Bits]


def _with_limits(values: FloatArray, replicates: FloatArray) -> list[Bits]:
    both = limits_of_each(replicates).tolist()
    return [Bits(value, *pair) for value, pair in zip(values.tolist(), both, strict=True)]


def _without_limits(values: FloatArray) -> list[Bits]:
    return [Bits(value, math.nan, math.nan) for value in values.tolist()]


def _values(bits: Sequence[Bits | None]) -> FloatArray:
    """NaN where there is none."""
    return np.array([math.nan if each is None else each.value for each in bits])


class _Alone(NamedTuple):
    """What one feature says from its first frame on: T, and how many are better and as good."""

    some: IntArray
    seconds: FloatArray
    weighed: WeighedScores
    ranks: tuple[IntArray, IntArray] | None


class _Together(NamedTuple):
    """What all features that some moments have heard say, by one rank model."""

    posterior_model: PosteriorModel
    some: IntArray
    seconds: FloatArray
    scores: FloatArray
    frames: IntArray
    weighed: WeighedScores
    ratios: RatioBits | None


def choose_features(
    rank_models: RankModels,
    there: Collection[str] | None = None,
    *,
    words: bool = False,
    setup: FeatureSetup = AS_ENVIRONMENT,
) -> tuple[str, ...]:
    """The largest set of features that there is a rank model for and that can be had.

    Of two as large the one without what another feature does better.

    Args:
        rank_models: what a rank means.
        there: what ready-made frames bring; None for audio, of which all is computed here.
        words: whether timed words lie beside the audio; what is made of them is left out otherwise.
        setup: from where features are made.

    Raises:
        StoreError: there is no rank model, or none for features that are there.

    Example:
        >>> rank_models = Population.reference().rank_models
        >>> choose_features(rank_models, ["f0", "phones", "voice"])
        ('f0', 'phones', 'voice')
    """
    sets = [features for features, _ in rank_models.kinds]
    if not sets and there is None:
        raise StoreError(
            "the population has no rank model; learn one with: "
            "monitor calibrate CORPUS -o POPULATION.npz"
        )

    def worth(names: Sequence[str]) -> tuple[int, ...]:
        weak = [name for name in names if superseded(name, names)]
        return len(names) - len(weak), -len(weak), "voice" not in names

    if there is None:
        heard = [names for names in sets if words or "words" not in map(takes, names)] or sets
        able = [names for names in heard if all(ready(name, setup) for name in names)]
        return max(able or heard, key=worth)
    had = [names for names in sets if set(names) <= set(there)]
    if not had:
        raise _no_rank_model(there)
    return max(had, key=worth)


def choose_rank_model(
    rank_models: RankModels, features: tuple[str, ...], session: str
) -> tuple[RankModel, str, bool]:
    """The rank model to use, the session it is of, and whether it favours the attacker."""
    rank_model = rank_models.find(features, session)
    if rank_model is not None:
        return rank_model, session, False
    other = "same" if session == "cross" else "cross"
    rank_model = rank_models.find(features, other)
    if rank_model is not None:
        return rank_model, other, other == "same"
    raise _no_rank_model(features)


def _no_rank_model(features: Collection[str]) -> StoreError:
    return StoreError(
        f"the population has no rank model for {'+'.join(features)}; "
        "learn one with: monitor calibrate CORPUS -o POPULATION.npz"
    )


def rows_by_features(
    features: Sequence[str], heard: BoolArray
) -> Iterator[tuple[frozenset[str], IntArray]]:
    """Which rows, shape (R, F), have frames of just the same features; those without any of none.

    Example:
        >>> heard = np.array([[True, True], [False, False], [True, False]])
        >>> [(sorted(names), rows.tolist()) for names, rows in rows_by_features(["a", "b"], heard)]
        [(['a'], [2]), (['a', 'b'], [0])]
    """
    for row in sorted(set(map(tuple, heard.tolist()))):
        if names := frozenset(compress(features, row)):
            yield names, np.flatnonzero((heard == row).all(axis=1))


def check_networks(population: Population, rank_model: RankModel) -> None:
    """Refuse a rank model of another network's frames than the templates were made of."""
    for name in rank_model.features:
        mine, theirs = rank_model.network(name), population.features[name].spec.network
        if mine != theirs:
            what = unlike_networks(name, "the rank model", mine, "the templates", theirs)
            raise StoreError(f"{what}; enrol and calibrate again with this version")


_NOTHING = CrowdEvidence()


def _from_even(probability: FloatArray, prior: float) -> FloatArray:
    """A probability at even odds before, at others."""
    if prior == 0.5:
        return probability
    odds = prior / (1.0 - prior) * probability / (1.0 - probability)
    return np.asarray(odds / (1.0 + odds))


def _weighed_as(seconds: FloatArray, heard: Sequence[RunningTotals]) -> FloatArray:
    """T as what was heard is weighed: that of an early frame, where more has been heard since."""
    for one in heard:
        if one.early_seconds is not None:
            early = np.where(one.early_seconds > 0, one.early_seconds, np.inf)
            seconds = np.minimum(seconds, early)
    return seconds


class Attacker:
    """Scores a stream against N templates and turns the scores into bits.

    Args:
        population: templates, and rank models unless ``rank_models`` are given.
        features: names; the rank model says in which order they are kept.
        watch: the speaker the user cares about, or None.
        session: ``"cross"`` or ``"same"``: which rank model to use. Where there is no cross-session
            rank model the same-session one stands in, and ``same_session_biased`` is True.
        rank_models, template_seconds, top, among, enrolled_prior: as of `Monitor`.

    Attributes:
        evidence_model: the rank model whose likelihood ratios are told, of fewer features where
            what is said has none; None where nothing tells any.
        spread: how far the evidence of different voices lies apart, by length, or None.
        no_evidence_reason: why the rank model of all features has none; empty where it does.

    Raises:
        UsageError: an unknown feature or speaker, or a crowd or prior that makes no sense.
        StoreError: there is no rank model for these features.
    """

    def __init__(
        self,
        population: Population,
        features: Sequence[str],
        watch: str | None = None,
        *,
        session: str = "cross",
        rank_models: RankModels | None = None,
        template_seconds: float | None = None,
        top: int = 5,
        among: Sequence[float] | None = None,
        enrolled_prior: float = 0.5,
    ) -> None:
        if not 0.0 < enrolled_prior < 1.0:
            raise UsageError(f"enrolled_prior={enrolled_prior:g} must lie between 0 and 1")
        rank_models = rank_models if rank_models is not None else population.rank_models
        if not features or len(set(features)) != len(features):
            raise UsageError("name each feature once, and at least one")
        unknown = [name for name in features if name not in population.features]
        if unknown:
            raise UsageError(
                f"the population has no templates of {', '.join(unknown)}; "
                f"it has {', '.join(population.features)}"
            )
        position = None if watch is None else population.index(watch)
        rank_model, self.session, self.same_session_biased = choose_rank_model(
            rank_models, tuple(features), session
        )
        check_networks(population, rank_model)
        length = common_length(population, rank_model, watch, template_seconds)
        self.scoring, self.withheld, self.length_notice = (
            length.scoring,
            length.withheld,
            length.notice,
        )
        places = np.flatnonzero(self.scoring.members)
        self.names = tuple(population.names[i] for i in places)
        self._most = min(top, len(self.names))
        self.left_out = tuple(
            name
            for name, member in zip(population.names, self.scoring.members, strict=True)
            if not member
        )
        self._watched: int | None = None
        if position is not None and not self.withheld:
            self._watched = int(np.searchsorted(places, position))
        self.speakers = len(self.names)
        self.ceiling = float(np.log2(self.speakers))
        self.among = crowds_for(among, self.speakers)
        self.enrolled_prior = enrolled_prior

        self.rank_model = rank_model
        self.features = rank_model.features
        self.evidence_model = evidence_model_of(population, rank_models, rank_model)
        self.no_evidence_reason = explain_missing_ratios(population, rank_model)
        self.spread: EvidenceSpread | None = None
        if self.evidence_model is not None:
            self.spread = EvidenceSpread.of(self.evidence_model.rows, self.scoring.seconds)
        specs = population.specs
        self._discerning = {name for name in self.features if specs[name].kind.discerning}
        self._against: dict[str, CohortScoring] = {}
        make = partial(self._posterior_model, population, rank_models)
        self.joint = make(rank_model)
        self._single: dict[str, PosteriorModel] = {}
        self._similarity: dict[str, Similarity] = {}
        self._templates: dict[str, FloatArray] = {}
        self._mixture = population.sessions_apart(self.scoring)
        for name, scorer in population.scorers(rank_model).items():
            own = self.joint
            if len(self.features) > 1:
                single, _, same_session_biased = choose_rank_model(rank_models, (name,), session)
                if single.similarities != (scorer.name,):
                    raise StoreError(
                        f"the rank model of {name} alone is for {single.similarities[0]} scores, "
                        f"the joint rank model for {scorer.name}: calibrate both together"
                    )
                check_networks(population, single)
                self.same_session_biased |= same_session_biased
                own = make(single)
            self._single[name] = own
            self._similarity[name] = scorer
            self._templates[name] = population.prepared(name, self.scoring, scorer)
            if self._mixture is not None:
                further = population.prepared_apart(name, self.scoring, scorer)
                self._templates[name] = np.concatenate([self._templates[name], further])
        self._judgements = {frozenset([name]): own for name, own in self._single.items()}
        self._judgements[frozenset(self.features)] = self.joint
        for names, kind in rank_models.kinds:
            part = frozenset(names)
            if kind != self.session or not part < set(self.features) or part in self._judgements:
                continue
            other = rank_models[names, kind]
            known = dict(zip(rank_model.features, rank_model.similarities, strict=True))
            fits = other.similarities == tuple(known[name] for name in names)
            if fits and all(other.network(name) == rank_model.network(name) for name in names):
                self._judgements[part] = make(other)
        self._population = population
        self.frame_seconds = {name: specs[name].frame_seconds for name in self.features}
        self._without_audio = self._before()

    def _posterior_model(
        self, population: Population, rank_models: RankModels, rank_model: RankModel
    ) -> PosteriorModel:
        ratios, evidence_model = None, evidence_model_of(population, rank_models, rank_model)
        if evidence_model is not None and not self.withheld:
            ratios = Ratios(population, evidence_model, self.scoring, self._watched, self._against)
        additive = np.array([each.additive for each in population.scorers(rank_model).values()])
        return PosteriorModel(rank_model, self.scoring.seconds, self.speakers, additive, ratios)

    @property
    def reachable_bits(self) -> float:
        """The most closed-set bits that a reading can have: below the ceiling.

        A share of the probability is held back for a mistake.
        """
        models = (model.rank_model for model in self._judgements.values())
        share = min(model.least_floor for model in models) / self.speakers
        best = 1.0 - (self.speakers - 1) * share
        if self._watched is not None or not share:
            return self.ceiling + float(np.log2(best))
        rest = (self.speakers - 1) * share * np.log2(share)
        return self.ceiling + float(best * np.log2(best) + rest)

    @property
    def support_bits(self) -> float | None:
        """The most bits of evidence that calibration can support; None where there is none."""
        ratios = self.joint.ratios
        return None if ratios is None else float(ratios.rank_model.support.max())

    def _calibrated(self, seconds: float) -> Mapping[str, Any] | None:
        """The calibrated cell nearest to so much speech, and then to these templates."""
        model = self.evidence_model
        rows = () if model is None else model.rows
        cells = [row for row in rows if row.get("evidence_bits") is not None]
        return min(
            cells,
            key=lambda row: (
                abs(np.log(row["T"] / seconds)),
                abs(np.log(row["D"] / self.scoring.seconds)),
            ),
            default=None,
        )

    @cached_property
    def first_evidence(self) -> tuple[float, float] | None:
        """The first calibrated length T, and mean evidence of voices there: seconds and bits.

        None where there are no ratios. The guides beside the evidence begin there.
        """
        cell = self._calibrated(_FIRST_SECONDS)
        if self.joint.ratios is None or cell is None:
            return None
        return float(cell["T"]), max(float(cell["evidence_bits"]), 0.0)

    def matching_bits(self, condition: Condition) -> float | None:
        """Mean evidence of a voice's first 10 s where the templates sound as the stream does.

        Bits; None where calibration says nothing of that length.
        """
        ratios, cell = self.joint.ratios, self._calibrated(MATCHING_SECONDS)
        if ratios is None or cell is None:
            return None
        bits, effect = float(cell["evidence_bits"]), ratios.rank_model.conditions
        if effect is None:
            return bits
        sound = degradation(condition)[None]
        shift, slope, support = (each[0, 0] for each in effect.at(unlike(sound, sound)))
        point = ratios.rank_model.at(np.array([cell["T"]]))
        told = float(_told_by_a(point)[0])
        # features share what a mean ratio exceeds the intercept by as they share the slopes
        share = point.slopes[0, 0] / max(float(point.slopes[0, 0].sum()), 1e-9)
        bits = (bits + told) * float(share @ slope) - told * (1.0 - float(shift))
        return min(bits, float(support))

    def contradiction(self, population: Population) -> tuple[float, float]:
        """Whether those enrolled contradict the ratios: an e-value, and their mean ratio.

        Above 20 the calibration is rejected at 5 % (docs/method.md section 10). 1 and 1 where there
        are no ratios, or more are enrolled than `MOST_COMPARED`.
        """
        ratios, model = self.joint.ratios, self.evidence_model
        if ratios is None or model is None or self.speakers > MOST_COMPARED:
            return 1.0, 1.0
        found = ratios.of_the_enrolled(population, model, self.scoring)
        return e_value(found), float(found.mean())

    @property
    def watched(self) -> bool:
        """True where local bits are measured."""
        return self._watched is not None

    def assess(self, sketches: Mapping[str, AnySketch], speech_seconds: float) -> Assessment:
        """Rank and weigh what was heard, of a sketch for each feature, at T speech seconds.

        Exact zeros, and an even posterior, as long as no feature has a frame.
        """
        heard = {}
        for name in self.features:
            frames = np.array([sketches[name].frames])
            usable = frames * self.frame_seconds[name]
            heard[name] = RunningTotals(sketches[name].total[None], frames, usable)
        return self.assess_each(heard, np.array([speech_seconds]))[0]

    def assess_each(
        self,
        heard: Mapping[str, RunningTotals],
        speech_seconds: FloatArray,
        conditions: Sequence[Condition | None] | None = None,
    ) -> list[Assessment]:
        """As ``assess``, at each of R moments, T of shape (R,); no moment depends on the others.

        Of each moment what the stream sounds like, as far as that is known.
        """
        heard = self._with_early(heard)
        each = [heard[name] for name in self.features]
        sounds = [None] * speech_seconds.size if conditions is None else list(conditions)
        rows = [
            row
            for one in each
            for row in (one.frames, one.usable_seconds, one.early_seconds)
            if row is not None
        ]
        steps = [np.diff(row) != 0 for row in rows]
        steps.append(np.array([a != b for a, b in pairwise(sounds)], np.bool_))
        more = np.any([np.diff(speech_seconds) != 0, *steps], axis=0)
        if more.all():
            return self._assess_each(heard, speech_seconds, sounds)
        # a pause says nothing new
        new = np.concatenate(([True], more))
        few = {name: one.some(new) for name, one in zip(self.features, each, strict=True)}
        few_sounds = [sounds[i] for i in np.flatnonzero(new).tolist()]
        found = self._assess_each(few, speech_seconds[new], few_sounds)
        return [found[i] for i in (np.cumsum(new) - 1).tolist()]

    def _with_early(self, heard: Mapping[str, RunningTotals]) -> Mapping[str, RunningTotals]:
        """With what early frames add, where the rank model knows such."""
        made = dict(heard)
        for name in self.features:
            one = heard[name]
            if one.early is None or one.early_seconds is None:
                continue
            there = one.early_seconds >= self._single[name].rank_model.lengths[0]
            made[name] = RunningTotals(
                one.totals + one.early * there[:, None],
                one.frames + there,
                np.where(there, one.early_seconds, one.usable_seconds),
                early_seconds=one.early_seconds * there,
            )
        return made

    def _assess_each(
        self,
        heard: Mapping[str, RunningTotals],
        speech_seconds: FloatArray,
        sounds: Sequence[Condition | None],
    ) -> list[Assessment]:
        """A few moments at a time where there are many candidates: none depends on the others."""
        step = max(1, _AT_ONCE // self.speakers)
        made: list[Assessment] = []
        for first in range(0, speech_seconds.size, step):
            some = slice(first, first + step)
            few = {name: heard[name].some(some) for name in self.features}
            made += self._assess_few(few, speech_seconds[some], sounds[some])
        return made

    def _assess_few(
        self,
        heard: Mapping[str, RunningTotals],
        speech_seconds: FloatArray,
        sounds: Sequence[Condition | None],
    ) -> list[Assessment]:
        moments = speech_seconds.size
        known: dict[tuple[str, str, bytes], Any] = {}
        alone, together = self._weighed(heard, speech_seconds, sounds, known)
        readings: list[dict[str, FeatureReading]] = [{} for _ in range(moments)]
        for name in self.features:
            self._fill_in(readings, name, alone.get(name), heard[name].usable_seconds)
        posterior = np.full((moments, self.speakers), 1.0 / self.speakers)
        local: list[Bits | None] = [ZERO if self.watched else None] * moments
        gain, expected = [ZERO] * moments, [ZERO] * moments
        told = [self._without_audio] * moments
        enrolled: list[float | None] = [None] * moments
        unable: list[tuple[str, ...]] = [()] * moments
        for posterior_model, some, seconds, mine, behind, weighed, found in together:
            if found is None:
                if self._mixture is not None:
                    weights, _ = posterior_model.rank_model.weighing(seconds, slice(0, 1))
                    _, place = self._mixture.mixed(weighted_evidence(mine, weights[:, 0]))
                    mine = self._mixture.taken(mine, place)
                odds = posterior_model.enrolled(seconds, mine, behind, weighed.posterior)
                odds = _from_even(odds, self.enrolled_prior)
                areas = posterior_model.impostor_area(seconds)
                evidence = [_NOTHING] * some.size
            else:
                odds = enrolled_share(found.bits, self.enrolled_prior)
                areas = found.area
                odds = np.where(areas >= GOOD_AREA, odds, np.nan)
                evidence = self._told(found)
            posterior[some] = weighed.posterior
            for i, r in enumerate(some.tolist()):
                local[r], told[r] = weighed.local[i], evidence[i]
                gain[r] = weighed.gain[i]
                if np.isnan(odds[i]):
                    unable[r] = self._unable(posterior_model, float(areas[i]))
                else:
                    enrolled[r] = float(odds[i])
                expected[r] = self.joint.expected.at(float(seconds[i]))
        some_frames = np.any([heard[name].frames > 0 for name in self.features], axis=0)
        beyond = (speech_seconds > self.joint.rank_model.lengths[-1]) & some_frames
        return [
            Assessment(*each)
            for each in zip(
                readings,
                local,
                gain,
                expected,
                [row.copy() for row in posterior],  # none keeps the others alive
                most_probable(posterior, self.names, self._most),
                told,
                enrolled,
                unable,
                beyond.tolist(),
                strict=True,
            )
        ]

    def _told(self, found: RatioBits) -> list[CrowdEvidence]:
        among = among_each(found.bits, found.watched, self._watched, self.among, self.names)
        return [
            CrowdEvidence(*each)
            for each in zip(
                found.watched,
                found.support.tolist(),
                found.at_least.tolist(),
                among,
                [row.copy() for row in found.bits],
                strict=True,
            )
        ]

    def _before(self) -> CrowdEvidence:
        """Before anything is heard everybody is as likely, in any crowd."""
        if self.joint.ratios is None:
            return _NOTHING
        own = ZERO if self.watched else None
        nothing = np.zeros((1, self.speakers))
        (among,) = among_each(nothing, [own], self._watched, self.among, self.names)
        return CrowdEvidence(own, 0.0, False, among, nothing[0])

    def _unable(self, posterior_model: PosteriorModel, area: float) -> tuple[str, ...]:
        """Why these features do not say whether the speaker is enrolled, and what could."""
        heard = "+".join(posterior_model.features)
        measured = "not measured" if np.isnan(area) else f"{area:.2f}"
        waiting = self._discerning.difference(posterior_model.features)
        why = (
            f"{heard} cannot tell impostors from enrolled speakers (area under the ROC curve "
            f"{measured}, {GOOD_AREA:g} is needed)"
        )
        if waiting:
            return why, f"{', '.join(sorted(waiting))} has not said anything yet"
        if not self._discerning:
            return why, "it takes a speaker embedding (voice)"
        return (why,)

    def _by_posterior_model(self, heard: BoolArray) -> list[tuple[PosteriorModel, IntArray]]:
        """Which rank model weighs which moments: that of the features heard by then, shape (R, F).

        A feature that has not said anything yet leaves the others to a rank model of their own;
        where there is none, the joint rank model weighs what there is.
        """
        if heard.all():
            return [(self.joint, np.arange(len(heard)))]
        return [
            (self._judgements.get(names, self.joint), some)
            for names, some in rows_by_features(self.features, heard)
        ]

    def _scores(self, name: str, totals: AnyArray) -> FloatArray:
        similarity, templates = self._similarity[name], self._templates[name]
        scores = similarity.score_each(templates, totals)
        if templates.dtype == np.float32:
            self._make_exact(name, scores, totals)
        return scores

    def _make_exact(self, name: str, scores: FloatArray, totals: AnyArray) -> None:
        """Score anew, in double precision, what a rank or the order of the best may hang on.

        Of templates in single precision, scores (R, N): those as near to the watched speaker's, or
        to the best, as both may be off.
        """
        similarity, size = self._similarity[name], totals.shape[1]
        assert similarity.bound is not None
        apart = 2.0 * similarity.bound(size)
        for row, total in zip(scores, totals, strict=True):
            if not total.any():
                continue  # everybody scores zero
            if not (np.isfinite(row).all() and row.any()):
                raise StoreError(
                    f"templates of {name} are no numbers any more: the store was changed, or "
                    "somebody was forgotten, while it was in use; start again"
                )
            least = np.partition(row, self.speakers - self._most)[self.speakers - self._most]
            near = row >= least - apart
            if self._watched is not None:
                near |= np.abs(row - row[self._watched]) <= apart
            places = np.flatnonzero(near)
            for first in range(0, places.size, _RESCORED):
                some = places[first : first + _RESCORED]
                exact = self._population.exact(name, self.scoring, similarity, some)
                row[some] = similarity.score(exact, total)

    def _weighed(
        self,
        heard: Mapping[str, RunningTotals],
        speech_seconds: FloatArray,
        sounds: Sequence[Condition | None],
        known: dict[tuple[str, str, bytes], Any],
        *,
        limited: bool = True,
    ) -> tuple[dict[str, _Alone], list[_Together]]:
        """What each feature says that was heard at all, and what they say together.

        What does not depend on the rank model (scores) is looked up in ``known``, or kept there.
        """
        marks = {name: (heard[name].frames > 0).tobytes() for name in self.features}

        def once(what: str, name: str, make: Callable[[AnyArray], Any]) -> Any:
            key = what, name, marks[name]
            if key not in known:
                known[key] = make(heard[name].totals)
            return known[key]

        scores = np.stack(
            [once("scores", name, partial(self._scores, name)) for name in self.features], axis=1
        )
        alone: dict[str, _Alone] = {}
        for f, name in enumerate(self.features):
            some: IntArray = np.flatnonzero(heard[name].frames)
            if not some.size:
                continue
            seconds, mine = (
                _weighed_as(speech_seconds, [heard[name]])[some],
                scores[some, f : f + 1],
            )
            weighed = self._single[name].weigh(
                seconds, mine, self._watched, self._mixture, limited=limited
            )
            ranks: tuple[IntArray, IntArray] | None = None
            if self._watched is not None:
                ranks = self._ranked(mine[:, 0], self._watched)
            alone[name] = _Alone(some, seconds, weighed, ranks)
        weighed_as = _weighed_as(speech_seconds, [heard[name] for name in self.features])
        frames = np.stack([heard[name].frames for name in self.features], axis=1)
        together = []
        for posterior_model, some in self._by_posterior_model(frames > 0):
            axis = np.array([self.features.index(name) for name in posterior_model.features])
            seconds, mine = weighed_as[some], scores[np.ix_(some, axis)]
            if len(self.features) == 1:
                weighed = alone[self.features[0]].weighed
            else:
                weighed = posterior_model.weigh(
                    seconds, mine, self._watched, self._mixture, limited=limited
                )
            behind, ratios, found = frames[np.ix_(some, axis)], posterior_model.ratios, None
            if ratios is not None and behind.all():
                own = [posterior_model.features.index(name) for name in ratios.features]
                levels = [
                    once("levels", name, self._against[name].levels) for name in ratios.features
                ]
                found = ratios.at(
                    seconds,
                    [(mean[some], spread[some]) for mean, spread in levels],
                    mine[:, own],
                    [sounds[i] for i in some.tolist()],
                    limited=limited,
                )
            together.append(_Together(posterior_model, some, seconds, mine, behind, weighed, found))
        return alone, together

    def _fill_in(
        self,
        readings: list[dict[str, FeatureReading]],
        name: str,
        found: _Alone | None,
        usable_seconds: FloatArray,
    ) -> None:
        """Fill in the readings of one feature."""
        zero = ZERO if self.watched else None
        nothing = FeatureReading.of(
            0.0, None, expected_bits=ZERO, rank_bits=zero, local_bits=zero, gain_bits=ZERO
        )
        for reading in readings:
            reading[name] = nothing
        if found is None:
            return
        posterior_model, seconds = self._single[name], found.seconds.tolist()
        ranks: list[tuple[float | None, Bits | None]] = [(None, None)] * found.some.size
        if found.ranks is not None:
            better, tied = (each.tolist() for each in found.ranks)
            ranks = [
                (b + (t + 1) / 2, posterior_model.rank_bits(at, self.speakers, b, t))
                for at, b, t in zip(seconds, better, tied, strict=True)
            ]
        usable = usable_seconds[found.some].tolist()
        for i, r in enumerate(found.some.tolist()):
            expected, (rank, rank_bits) = posterior_model.expected.at(seconds[i]), ranks[i]
            readings[r][name] = FeatureReading.of(
                usable[i],
                rank,
                expected_bits=expected,
                rank_bits=rank_bits,
                local_bits=found.weighed.local[i],
                gain_bits=found.weighed.gain[i],
            )

    def _ranked(self, scores: FloatArray, watched: int) -> tuple[IntArray, IntArray]:
        """How many are better, and as good, by scores (R, N) of one feature: (R,) each."""
        if self._mixture is not None:  # each by their best session
            _, place = self._mixture.mixed(scores)
            scores = np.take_along_axis(scores, place, axis=1)
        return rank_now(scores, watched)

    def figures(
        self,
        heard: Mapping[str, RunningTotals],
        speech_seconds: FloatArray,
        known: dict[tuple[str, str, bytes], Any],
    ) -> dict[str, FloatArray]:
        """Figures of ``assess_each`` by their names in a reading, without limits: shape (R,) each.

        NaN where there is none. ``rank_bits`` are of the one feature of a rank model of one. What
        does not depend on the rank model (scores) is kept in ``known``, for attackers with the same
        templates and the same R moments.
        """
        early, moments = self._with_early(heard), speech_seconds.size
        alone, together = self._weighed(
            early, speech_seconds, [None] * moments, known, limited=False
        )
        nothing = 0.0 if self.watched else np.nan
        gain, total = np.zeros(moments), np.full(moments, nothing)
        closed, rank = np.full(moments, nothing), np.full(moments, np.nan)
        evidence = np.full(moments, np.nan if self._without_audio.evidence is None else 0.0)
        if self.watched and len(self.features) == 1:
            rank[:] = 0.0
        for name, one in alone.items():
            total[one.some] += _values(one.weighed.local)
            if one.ranks is not None and len(self.features) == 1:
                point = self._single[name].rank_model.at_each(one.seconds)
                rank[one.some] = point.rank_bits(self.speakers, *one.ranks)
        for part in together:
            closed[part.some] = _values(part.weighed.local)
            gain[part.some] = _values(part.weighed.gain)
            evidence[part.some] = np.nan
            if part.ratios is not None:
                evidence[part.some] = _values(part.ratios.watched)
        return {
            "closed_set_bits": closed,
            "gain_bits": gain,
            "sum_bits": total,
            "rank_bits": rank,
            "evidence_bits": evidence,
        }

    def scores(
        self, totals: Mapping[str, AnyArray], speech_seconds: FloatArray
    ) -> dict[str, FloatArray]:
        """What R stretches of speech score against every template, by totals (R, M) and T, (R,).

        Returns:
            raw scores of each feature and, of several, ``"joint"``: their sum as the rank model
            weighs them at T, by which the posterior ranks. Each of shape (R, N).
        """
        found = {name: self._scores(name, totals[name]) for name in self.features}
        every = np.stack([found[name] for name in self.features], axis=1)
        if self._mixture is not None:
            found = {
                name: np.take_along_axis(each, self._mixture.mixed(each)[1], axis=1)
                for name, each in found.items()
            }
        if len(self.features) == 1:
            return found
        heard = np.stack([totals[name].any(axis=1) for name in self.features], axis=1)
        joint = np.zeros((speech_seconds.size, self.speakers))
        for posterior_model, some in self._by_posterior_model(heard):
            axis = np.array([self.features.index(name) for name in posterior_model.features])
            weights, _ = posterior_model.rank_model.weighing(speech_seconds[some])
            told = weighted_evidence(every[np.ix_(some, axis)], weights[:, 0])
            joint[some] = told if self._mixture is None else self._mixture.mixed(told)[0]
        return {**found, "joint": joint}

    def expected_alone(self, feature: str | None, speech_seconds: float) -> float:
        """What a voice gives away on average by one feature, or by all (None), bits."""
        posterior_model = self.joint if feature is None else self._single[feature]
        return posterior_model.expected.at(speech_seconds).value

    def most_bits(self, field: str) -> float:
        """What no reading of a field exceeds; infinity where nothing is known.

        Probabilities keep a share e for everybody, at every length.
        """
        name, _, last = field.rpartition(".")
        posterior_model = self._single.get(name, self.joint)
        if field == "evidence_bits" and self.support_bits is not None:
            return self.support_bits
        known = ("closed_set_bits", "local_bits", "gain_bits")
        if name.partition(".")[0] == "among" or last not in known:
            return math.inf
        lengths = posterior_model.rank_model.lengths
        spread = float(posterior_model.rank_model.weighing(lengths)[1][:, 0].min())
        best = np.full((1, self.speakers), spread / self.speakers)
        best[0, 0] += 1.0 - spread
        if last == "gain_bits" or not self.watched:
            return float(confidence_bits(best)[0])
        return float(local_bits(best[:, 0], self.speakers)[0])

    def rank_posterior(self, sketch: AnySketch, feature: str, speech_seconds: float) -> FloatArray:
        """``gamma_{r_j}`` of every candidate: what the rank alone says, shape (N,).

        Tied candidates share their ranks' mean; the floor e of the live rank model is mixed in.
        """
        templates = self._templates[feature][: self.speakers]  # the first of everybody
        scores = self._similarity[feature].score(templates, sketch.total)
        point = self._single[feature].rank_model.at(speech_seconds)
        pmf = point.pmf(self.speakers, slice(0, 1), floor=True)[0]
        _, place, counts = np.unique(-scores, return_inverse=True, return_counts=True)
        ends = np.cumsum(counts)
        sums = np.concatenate([[0.0], np.cumsum(pmf)])
        return np.asarray(((sums[ends] - sums[ends - counts]) / counts)[place])
