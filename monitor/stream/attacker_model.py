"""Model of the attacker, chosen before any speech: rank models, template length and names.

Sources: docs/method.md sections 4 (lengths), 5 (expected bits) and 10 (likelihood ratios).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np

from monitor.errors import StoreError, UsageError
from monitor.features.registry import get_least_share
from monitor.maths.condition import Condition, degradation, unlike
from monitor.maths.evidence import e_value
from monitor.maths.posterior import confidence_bits, local_bits
from monitor.population.interpolation import EvidenceSpread
from monitor.population.population import Population
from monitor.population.rank_model import RankModel, RankModels
from monitor.population.templates import Scoring, share
from monitor.stream.choice import (
    CommonLength,
    check_features,
    check_networks,
    choose_evidence_model,
    choose_length,
    choose_rank_model,
    explain_missing_ratios,
    same_scores,
)
from monitor.stream.posterior import (
    Bystanders,
    LikelihoodRatioScorer,
    PosteriorModel,
    choose_crowds,
    intercept_bits,
)
from monitor.stream.totals import RunningTotals
from monitor.types import FloatArray, IntArray

MOST_COMPARED = 300
"""Maximum enrolled people that `AttackerModel.contradiction` compares with each other."""
_FIRST_SECONDS = 0.1
"""A length below all calibrated ones."""
MATCHING_SECONDS = 10.0
"""Seconds of speech at which a notice states the evidence of matching templates."""


@dataclass(frozen=True, slots=True)
class AttackerSettings:
    """Settings of an `Attacker`, named as in `MonitorSettings`; UsageError if invalid."""

    top: int = 5
    among: Sequence[float] | None = None
    enrolled_prior: float = 0.5

    def __post_init__(self) -> None:
        if self.top < 1:
            raise UsageError(f"top={self.top} must be 1 or more")
        if not 0.0 < self.enrolled_prior < 1.0:
            raise UsageError(f"enrolled_prior={self.enrolled_prior:g} must lie between 0 and 1")


@dataclass(frozen=True, eq=False)
class AttackerModel:
    """Model of the attacker: rank models at one template length, and the candidates' names."""

    rank_model: RankModel  # rank model of all features
    session: str  # session of the rank model in use
    same_session_biased: bool  # whether a same-session rank model replaces a cross-session one
    length: CommonLength  # common length of the templates
    # names, left_out: the N candidates, and speakers with too short templates
    names: tuple[str, ...]
    left_out: tuple[str, ...]
    # the watched speaker's index in ``names``; None if local bits are not measured
    watched_index: int | None
    # rank model with the likelihood ratios. It excludes features of words without ratios. None
    # without ratios
    evidence_model: RankModel | None
    # reason why the rank model of all features has no ratios; empty if it has
    no_evidence_reason: str
    # posterior models by set of features
    models: Mapping[frozenset[str], PosteriorModel] = field(repr=False)
    frame_seconds: Mapping[str, float]  # seconds of a frame of each feature
    discerning: frozenset[str]  # features that separate impostors from enrolled speakers
    among: tuple[int, ...]  # crowd sizes
    enrolled_prior: float  # probability, before any speech, that one of the N speaks
    top: int  # number of most probable speakers to name

    @classmethod
    def choose(
        cls,
        population: Population,
        features: Sequence[str],
        watch: str | None,
        session: str,
        rank_models: RankModels,
        template_seconds: float | None,
        settings: AttackerSettings,
    ) -> AttackerModel:
        """Choose rank models and length; arguments and errors as in `Attacker`."""
        check_features(population, features)
        position = None if watch is None else population.index(watch)
        chosen = choose_rank_model(rank_models, tuple(features), session)
        rank_model, kind, is_biased = chosen
        check_networks(population, rank_model)
        length = choose_length(population, rank_model, watch, template_seconds)
        members = length.scoring.members
        names = tuple(population.names[i] for i in np.flatnonzero(members))
        watched_index = None
        if position is not None and not length.withheld:
            watched_index = int(members[:position].sum())
        among = choose_crowds(settings.among, len(names))
        create = _PosteriorModels(population, rank_models, length).create
        models = {frozenset(rank_model.features): create(rank_model)}
        for alone, is_alone_biased in _choose_alone(population, rank_models, rank_model, session):
            is_biased |= is_alone_biased
            models[frozenset(alone.features)] = create(alone)
        for further in _list_parts(rank_models, rank_model, kind):
            models.setdefault(frozenset(further.features), create(further))
        specs = {name: population.specs[name] for name in rank_model.features}
        return AttackerModel(
            rank_model,
            kind,
            is_biased,
            length,
            names,
            tuple(population.names[i] for i in np.flatnonzero(~members)),
            watched_index,
            choose_evidence_model(population, rank_models, rank_model),
            explain_missing_ratios(population, rank_model),
            models,
            {name: spec.frame_seconds for name, spec in specs.items()},
            frozenset(name for name, spec in specs.items() if spec.kind.discerning),
            among,
            settings.enrolled_prior,
            min(settings.top, len(names)),
        )

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features, in the order of the rank model."""
        return self.rank_model.features

    @property
    def scoring(self) -> Scoring:
        """Common template length, and the speakers who have it."""
        return self.length.scoring

    @property
    def withheld(self) -> str:
        """Reason why the watched speaker has no figures; empty if there are figures."""
        return self.length.withheld

    @property
    def watched(self) -> bool:
        """True if local bits are measured."""
        return self.watched_index is not None

    def add_early_frames(self, totals: Mapping[str, RunningTotals]) -> dict[str, RunningTotals]:
        """Add early frames where the rank model covers speech this short."""
        first = {name: model.rank_model.lengths[0] for name, model in self.alone.items()}
        return {name: totals[name].with_early(first[name]) for name in self.features}

    def watch_each(self, moments: int) -> IntArray | None:
        """Return the watched speaker's index at each of R moments, (R,), or None."""
        return None if self.watched_index is None else np.full(moments, self.watched_index)

    @cached_property
    def speakers(self) -> int:
        """Number N of candidates."""
        return len(self.names)

    @cached_property
    def ceiling(self) -> float:
        """Maximum closed-set bits for N speakers, log2 N."""
        return float(np.log2(self.speakers))

    @cached_property
    def joint(self) -> PosteriorModel:
        """Posterior model of all features."""
        return self.models[frozenset(self.features)]

    @cached_property
    def alone(self) -> Mapping[str, PosteriorModel]:
        """Posterior model of each feature."""
        return {name: self.models[frozenset([name])] for name in self.features}

    @cached_property
    def least_shares(self) -> FloatArray:
        """Minimum fraction of speech with frames, for each feature, (F,)."""
        return np.array([get_least_share(name) for name in self.features])

    @cached_property
    def spread(self) -> EvidenceSpread | None:
        """Spread of the evidence over calibrated speakers; None without likelihood ratios."""
        model = self.evidence_model
        return None if model is None else EvidenceSpread.from_rows(model.rows, self.scoring.seconds)

    @property
    def support_bits(self) -> float | None:
        """Maximum evidence that calibration supports; None without evidence."""
        ratios = self.joint.ratios
        return None if ratios is None else float(ratios.rank_model.support.max())

    def _find_nearest_cell(self, seconds: float) -> tuple[float, float] | None:
        """Return T and mean evidence of the calibrated cell with the nearest T, then nearest D."""
        rows = () if self.evidence_model is None else self.evidence_model.rows
        cells = [row for row in rows if row.get("evidence_bits") is not None]
        if not cells:
            return None
        lengths = np.log([(row["T"] / seconds, row["D"] / self.scoring.seconds) for row in cells])
        row = cells[np.lexsort(np.abs(lengths).T[::-1])[0]]
        return float(row["T"]), float(row["evidence_bits"])

    @cached_property
    def first_evidence(self) -> tuple[float, float] | None:
        """First calibrated T, and the mean evidence there, where guides begin; or None."""
        cell = self._find_nearest_cell(_FIRST_SECONDS)
        if self.joint.ratios is None or cell is None:
            return None
        return cell[0], max(cell[1], 0.0)

    def create_bystanders(self, level: float) -> Bystanders:
        """Create the finder of bystanders in the largest crowd; UsageError without evidence."""
        if self.support_bits is None:
            reason = self.withheld or self.no_evidence_reason
            raise UsageError(f"bystanders cannot be named: {reason}")
        watched = None if self.watched_index is None else self.names[self.watched_index]
        return Bystanders(self.names, watched, self.among[-1], level)

    def matching_bits(self, condition: Condition) -> float | None:
        """Return the mean evidence of 10 s of speech if templates matched the stream's conditions.

        In bits; None if calibration does not cover that length.
        """
        ratios, cell = self.joint.ratios, self._find_nearest_cell(MATCHING_SECONDS)
        if ratios is None or cell is None:
            return None
        (seconds, bits), effect = cell, ratios.rank_model.conditions
        if effect is None:
            return bits
        sound = degradation(condition)[None]
        shift, slope, support = (x[0, 0] for x in effect.evaluate_at(unlike(sound, sound)))
        point = ratios.rank_model.evaluate_at(np.array([seconds]))
        intercept = float(intercept_bits(point)[0])
        # the excess over the intercept is divided among features in proportion to their slopes
        weights = point.slopes[0, 0] / max(float(point.slopes[0, 0].sum()), 1e-9)
        bits = (bits + intercept) * float(weights @ slope) - intercept * (1.0 - float(shift))
        return min(bits, float(support))

    def compare_enrolled(self, population: Population) -> FloatArray | None:
        """Return the bits of each person's template as a stream under each template, (N, N).

        N are the people compared. None without ratios, or beyond `MOST_COMPARED` people.
        """
        ratios, model = self.joint.ratios, self.evidence_model
        if ratios is None or model is None or self.speakers > MOST_COMPARED:
            return None
        key = "enrolled", id(model), self.scoring.seconds, self.scoring.members.tobytes()
        compare = partial(ratios.compare_templates, population, model, self.scoring)
        join = lambda: (model, np.concatenate([bits for _, bits in compare()]))  # noqa: E731
        _, bits = share(population, key, join)
        return bits

    def contradiction(self, population: Population) -> tuple[float, float]:
        """Test whether the enrolled contradict the ratios: an e-value, and their mean ratio.

        Each person's template is a stream under the templates of later people. If the ratios are
        calibrated for these people, each mean is at most 1 on average, given the earlier ones. An
        e-value above 20 rejects the calibration at 5 % (docs/method.md section 10). Both are 1 if
        there is nothing to compare.
        """
        if (bits := self.compare_enrolled(population)) is None:
            return 1.0, 1.0
        means = np.array([np.exp2(row[i:]).mean() for i, row in enumerate(bits[:-1], 1)])
        return e_value(means), float(means.mean())

    def most_bits(self, field: str) -> float:
        """Return the largest possible value of a bits field of readings; infinity if unknown."""
        name, _, last = field.rpartition(".")
        if field == "evidence_bits" and self.support_bits is not None:
            return self.support_bits
        if name and name not in self.alone:
            return math.inf
        model = self.alone[name] if name else self.joint
        if last == "expected_bits":
            return model.expected.plateau_bits
        if last == "rank_bits":
            points = model.rank_model.at_each(model.rank_model.lengths)
            best = points.pmf(self.speakers, np.arange(model.rank_model.lengths.size), floor=True)
            return float(local_bits(best.max(), self.speakers))
        if last not in ("closed_set_bits", "local_bits", "gain_bits"):
            return math.inf
        used = [model] if name else self.models.values()
        # every person keeps at least e / N
        spread = min(posterior_model.rank_model.least_floor for posterior_model in used)
        best = np.full(self.speakers, spread / self.speakers)
        best[0] += 1.0 - spread
        if last == "gain_bits" or not self.watched:
            return float(confidence_bits(best))
        return float(local_bits(best[0], self.speakers))


@dataclass(frozen=True, slots=True)
class _PosteriorModels:
    """Maker of posterior models, which share their tables with those of other watched speakers."""

    population: Population
    rank_models: RankModels
    length: CommonLength

    def create(self, rank_model: RankModel) -> PosteriorModel:
        ratios, population, scoring = None, self.population, self.length.scoring
        evidence_model = choose_evidence_model(population, self.rank_models, rank_model)
        if evidence_model is not None and not self.length.withheld:
            ratios = LikelihoodRatioScorer(population, evidence_model, scoring)
        similarities = population.scorers(rank_model).values()
        additive = np.array([similarity.additive for similarity in similarities])
        speakers = int(scoring.members.sum())
        key = "posterior", id(rank_model), scoring.seconds
        _, unwatched = share(
            population,
            key,
            lambda: (rank_model, PosteriorModel(rank_model, scoring.seconds, speakers, additive)),
        )
        model = copy(unwatched)
        model.ratios = ratios
        return model


def _choose_alone(
    population: Population, rank_models: RankModels, joint: RankModel, session: str
) -> list[tuple[RankModel, bool]]:
    """Choose the rank model of each of several features, and whether it favours the attacker."""
    models = []
    for name, similarity in population.scorers(joint).items() if len(joint.features) > 1 else ():
        alone, _, is_biased = choose_rank_model(rank_models, (name,), session)
        if alone.similarities != (similarity.name,):
            raise StoreError(
                f"the rank model of {name} alone is for {alone.similarities[0]} scores, "
                f"the joint rank model for {similarity.name}: calibrate both together"
            )
        check_networks(population, alone)
        models.append((alone, is_biased))
    return models


def _list_parts(rank_models: RankModels, joint: RankModel, session: str) -> list[RankModel]:
    """List the rank models of some of the features, scored alike, from one kind of session."""
    parts = [
        rank_models[names, kind]
        for names, kind in rank_models.kinds
        if kind == session and len(names) > 1 and frozenset(names) < set(joint.features)
    ]
    return [model for model in parts if same_scores(model, joint)]
