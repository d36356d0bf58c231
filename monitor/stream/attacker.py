"""The modelled attacker: from running sketches to ranks, posteriors and bits.

Sources: docs/method.md sections 4 (lengths), 5 (posteriors, expected bits) and 10 (likelihood
ratios). ``benchmarks/scale.py`` shows what bounds the work at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from monitor.errors import StoreError, UsageError
from monitor.events.reading import Bits, FeatureReading
from monitor.features.registry import get_least_share
from monitor.maths.condition import Condition, degradation, unlike
from monitor.maths.evidence import e_value, enrolled_share
from monitor.maths.posterior import confidence_bits, local_bits, weighted_evidence
from monitor.maths.ranks import rank_now
from monitor.maths.scores import AnySketch, SessionMixture, Similarity
from monitor.population.cohort import CohortScoring
from monitor.population.interpolation import GOOD_AREA, EvidenceSpread
from monitor.population.population import Population, Scoring
from monitor.population.rank_model import RankModel, RankModels
from monitor.stream.choice import (
    check_features,
    check_networks,
    choose_evidence_model,
    choose_length,
    choose_rank_model,
    explain_missing_ratios,
    group_rows,
    same_scores,
)
from monitor.stream.posterior import (
    ZERO,
    Assessment,
    Bystanders,
    CrowdEvidence,
    LikelihoodRatioScorer,
    Posterior,
    PosteriorModel,
    RatioBits,
    choose_crowds,
    compute_crowds,
    intercept_bits,
)
from monitor.stream.totals import RunningTotals
from monitor.types import AnyArray, BoolArray, FloatArray, IntArray

MOST_COMPARED = 300
"""Most enrolled people for whom `Attacker.contradiction` compares everybody."""
_FIRST_SECONDS = 0.1
"""Shorter than any length that is calibrated."""
MATCHING_SECONDS = 10.0
"""Seconds of speech at which a notice states the evidence of matching templates."""
_BATCH = 1 << 22
"""Most candidates, of all moments together, weighed at a time."""
_EXACT_BATCH = 4096
"""Templates rescored at a time."""


def most_probable(
    posterior: FloatArray, names: Sequence[str], most: int
) -> list[list[tuple[str, float]]]:
    """Return the most probable speakers of each row, best first; of equals, the first enrolled.

    Example:
        >>> most_probable(np.array([[0.2, 0.5, 0.3]]), ["ann", "bob", "eve"], 2)
        [[('bob', 0.5), ('eve', 0.3)]]
    """
    favourites = []
    least = np.partition(posterior, len(names) - most, axis=1)[:, len(names) - most]
    for row, edge in zip(posterior, least, strict=True):
        places = np.flatnonzero(row >= edge)
        places = places[np.argsort(-row[places], kind="stable")[:most]]
        favourites.append([(names[j], float(row[j])) for j in places.tolist()])
    return favourites


@dataclass(frozen=True, slots=True)
class AttackerSettings:
    """Settings of an `Attacker`, named as in `Monitor`; UsageError where they make no sense."""

    top: int = 5
    among: Sequence[float] | None = None
    enrolled_prior: float = 0.5

    def __post_init__(self) -> None:
        if self.top < 1:
            raise UsageError(f"top={self.top} must be 1 or more")
        if not 0.0 < self.enrolled_prior < 1.0:
            raise UsageError(f"enrolled_prior={self.enrolled_prior:g} must lie between 0 and 1")


_DEFAULTS = AttackerSettings()


class TemplateScorer:
    """Scorer of one feature's totals against all templates: first sessions, then further ones."""

    def __init__(
        self, population: Population, name: str, scoring: Scoring, similarity: Similarity
    ) -> None:
        self.similarity = similarity
        self.templates = population.prepared(name, scoring, similarity)
        if population.sessions_apart(scoring) is not None:
            further = population.prepared_apart(name, scoring, similarity)
            self.templates = np.concatenate([self.templates, further])
        self._name, self._exact = name, partial(population.exact, name, scoring, similarity)

    def score(self, totals: AnyArray, watched: int | None, most: int) -> FloatArray:
        """Score totals, (R, M).

        The ranks of the watched speaker and the order of the ``most`` best are exact: templates in
        single precision that lie within its error of either are rescored in double precision.
        """
        scores = self.similarity.score_each(self.templates, totals)
        if self.templates.dtype != np.float32:
            return scores
        assert self.similarity.bound is not None
        margin = 2.0 * self.similarity.bound(totals.shape[1])
        for row, total in zip(scores, totals, strict=True):
            if not total.any():
                continue  # everybody scores zero
            if not (np.isfinite(row).all() and row.any()):
                raise StoreError(
                    f"templates of {self._name} are no numbers any more: the store was changed, or "
                    "somebody was forgotten, while it was in use; start again"
                )
            near = row >= np.partition(row, row.size - most)[row.size - most] - margin
            if watched is not None:
                near |= np.abs(row - row[watched]) <= margin
            places = np.flatnonzero(near)
            for start in range(0, places.size, _EXACT_BATCH):
                batch = places[start : start + _EXACT_BATCH]
                row[batch] = self.similarity.score(self._exact(batch), total)
        return scores


class _Feature(NamedTuple):
    """One feature at the moments (rows) from its first frame on."""

    rows: IntArray
    seconds: FloatArray
    posterior: Posterior
    ranks: tuple[IntArray, IntArray] | None  # who is better than the watched, and as good: (R,)


class _Joint(NamedTuple):
    """All features that some moments (rows) have frames of, by the rank model of just these."""

    model: PosteriorModel
    rows: IntArray
    seconds: FloatArray
    frames: IntArray
    posterior: Posterior
    ratios: RatioBits | None


class Attacker:
    """Model of the attacker: scores a stream against N templates and turns scores into bits.

    Args:
        population: templates, and rank models unless ``rank_models`` are given.
        features: names, in any order: that of the rank model counts.
        watch: the speaker to follow, or None.
        session: ``"cross"`` or ``"same"``: which rank model to use. Where there is no cross-session
            rank model the same-session one stands in, and ``same_session_biased`` is True.
        rank_models, template_seconds: as of `MonitorSettings`.

    Attributes:
        evidence_model: the rank model of the likelihood ratios, without features of words where
            those have none; None without ratios.
        no_evidence_reason: why the rank model of all features has no ratios; empty if it has.

    Raises:
        UsageError: an unknown feature or speaker, or a crowd that makes no sense.
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
        settings: AttackerSettings = _DEFAULTS,
    ) -> None:
        rank_models = rank_models if rank_models is not None else population.rank_models
        check_features(population, features)
        position = None if watch is None else population.index(watch)
        self.rank_model, self.session, self.same_session_biased = choose_rank_model(
            rank_models, tuple(features), session
        )
        check_networks(population, self.rank_model)
        length = choose_length(population, self.rank_model, watch, template_seconds)
        self.scoring, self.withheld, self.length_notice = (
            length.scoring, length.withheld, length.notice,
        )  # fmt: skip
        members = self.scoring.members
        self.names = tuple(population.names[i] for i in np.flatnonzero(members))
        self.left_out = tuple(population.names[i] for i in np.flatnonzero(~members))
        self._watched: int | None = None
        if position is not None and not self.withheld:
            self._watched = int(members[:position].sum())
        self.speakers = len(self.names)
        self.ceiling = float(np.log2(self.speakers))
        self.among = choose_crowds(settings.among, self.speakers)
        self.enrolled_prior = settings.enrolled_prior
        self._top = min(settings.top, self.speakers)
        self.features = self.rank_model.features
        self.evidence_model = choose_evidence_model(population, rank_models, self.rank_model)
        self.no_evidence_reason = explain_missing_ratios(population, self.rank_model)
        self.spread: EvidenceSpread | None = None
        if self.evidence_model is not None:
            self.spread = EvidenceSpread.of(self.evidence_model.rows, self.scoring.seconds)
        self.frame_seconds = {f: population.specs[f].frame_seconds for f in self.features}
        self._least_shares = np.array([get_least_share(f) for f in self.features])
        self._discerning = {f for f in self.features if population.specs[f].kind.discerning}
        self._prepare(population, rank_models, session)

    def _prepare(self, population: Population, rank_models: RankModels, session: str) -> None:
        """Prepare templates, and a posterior model of every set of features that has one."""
        self._cohort: dict[str, CohortScoring] = {}
        self._sessions: SessionMixture | None = population.sessions_apart(self.scoring)
        make = partial(self._create_posterior_model, population, rank_models)
        self.joint = make(self.rank_model)
        self._scorers: dict[str, TemplateScorer] = {}
        self._alone: dict[str, PosteriorModel] = {}
        for name, similarity in population.scorers(self.rank_model).items():
            self._alone[name] = self.joint
            if len(self.features) > 1:
                alone, _, biased = choose_rank_model(rank_models, (name,), session)
                if alone.similarities != (similarity.name,):
                    raise StoreError(
                        f"the rank model of {name} alone is for {alone.similarities[0]} scores, "
                        f"the joint rank model for {similarity.name}: calibrate both together"
                    )
                check_networks(population, alone)
                self.same_session_biased |= biased
                self._alone[name] = make(alone)
            self._scorers[name] = TemplateScorer(population, name, self.scoring, similarity)
        self._models = {frozenset([name]): model for name, model in self._alone.items()}
        self._models[frozenset(self.features)] = self.joint
        for names, kind in rank_models.kinds:
            part = frozenset(names)
            if kind == self.session and part < set(self.features) and part not in self._models:
                other = rank_models[names, kind]
                if same_scores(other, self.rank_model):
                    self._models[part] = make(other)
        self._silence = self._create_silence()

    def _create_posterior_model(
        self, population: Population, rank_models: RankModels, rank_model: RankModel
    ) -> PosteriorModel:
        ratios, evidence_model = None, choose_evidence_model(population, rank_models, rank_model)
        if evidence_model is not None and not self.withheld:
            ratios = LikelihoodRatioScorer(
                population, evidence_model, self.scoring, self._watched, self._cohort
            )
        similarities = population.scorers(rank_model).values()
        additive = np.array([similarity.additive for similarity in similarities])
        return PosteriorModel(rank_model, self.scoring.seconds, self.speakers, additive, ratios)

    @property
    def watched(self) -> bool:
        """True where local bits are measured."""
        return self._watched is not None

    @property
    def reachable_bits(self) -> float:
        """The most closed-set bits of a reading: some probability is held back for a mistake."""
        return self.most_bits("closed_set_bits")

    @property
    def support_bits(self) -> float | None:
        """The most bits of evidence that calibration can support; None where there is none."""
        ratios = self.joint.ratios
        return None if ratios is None else float(ratios.rank_model.support.max())

    def _find_nearest_cell(self, seconds: float) -> tuple[float, float] | None:
        """Return T and mean evidence of the calibrated cell of the nearest T, then nearest D."""
        rows = () if self.evidence_model is None else self.evidence_model.rows
        cells = [row for row in rows if row.get("evidence_bits") is not None]
        if not cells:
            return None
        lengths = np.log([(row["T"] / seconds, row["D"] / self.scoring.seconds) for row in cells])
        row = cells[np.lexsort(np.abs(lengths).T[::-1])[0]]
        return float(row["T"]), float(row["evidence_bits"])

    @cached_property
    def first_evidence(self) -> tuple[float, float] | None:
        """The first calibrated T and mean evidence there, or None: the guides begin there."""
        cell = self._find_nearest_cell(_FIRST_SECONDS)
        if self.joint.ratios is None or cell is None:
            return None
        return cell[0], max(cell[1], 0.0)

    def create_bystanders(self, level: float) -> Bystanders:
        """Create the finder of bystanders in the largest crowd; UsageError without evidence."""
        if self.support_bits is None:
            reason = self.withheld or self.no_evidence_reason
            raise UsageError(f"bystanders cannot be told: {reason}")
        watched = None if self._watched is None else self.names[self._watched]
        return Bystanders(self.names, watched, self.among[-1], level)

    def matching_bits(self, condition: Condition) -> float | None:
        """Return the mean evidence of a voice's first 10 s if templates sounded as the stream does.

        Bits; None where calibration says nothing of that length.
        """
        ratios, cell = self.joint.ratios, self._find_nearest_cell(MATCHING_SECONDS)
        if ratios is None or cell is None:
            return None
        (seconds, bits), effect = cell, ratios.rank_model.conditions
        if effect is None:
            return bits
        sound = degradation(condition)[None]
        shift, slope, support = (x[0, 0] for x in effect.at(unlike(sound, sound)))
        point = ratios.rank_model.at(np.array([seconds]))
        intercept = float(intercept_bits(point)[0])
        # features share what a mean ratio exceeds the intercept by as they share the slopes
        share = point.slopes[0, 0] / max(float(point.slopes[0, 0].sum()), 1e-9)
        bits = (bits + intercept) * float(share @ slope) - intercept * (1.0 - float(shift))
        return min(bits, float(support))

    def contradiction(self, population: Population) -> tuple[float, float]:
        """Test whether the enrolled contradict the ratios: an e-value, and their mean ratio.

        Above 20 the calibration is rejected at 5 % (docs/method.md section 10). 1 and 1 without
        ratios, or where more are enrolled than `MOST_COMPARED`.
        """
        ratios, model = self.joint.ratios, self.evidence_model
        if ratios is None or model is None or self.speakers > MOST_COMPARED:
            return 1.0, 1.0
        means = ratios.compare_enrolled(population, model, self.scoring)
        return e_value(means), float(means.mean())

    def assess(self, sketches: Mapping[str, AnySketch], speech_seconds: float) -> Assessment:
        """Assess a sketch of each feature at T speech seconds; exact zeros before any frame."""
        totals = {}
        for name in self.features:
            frames = np.array([sketches[name].frames])
            usable = frames * self.frame_seconds[name]
            totals[name] = RunningTotals(sketches[name].total[None], frames, usable)
        return self.assess_each(totals, np.array([speech_seconds]))[0]

    def assess_each(
        self,
        totals: Mapping[str, RunningTotals],
        speech_seconds: FloatArray,
        conditions: Sequence[Condition | None] | None = None,
    ) -> list[Assessment]:
        """Assess R moments at T, (R,), in these conditions, each independently of the others."""
        totals = self._add_early_frames(totals)
        sounds = [None] * speech_seconds.size if conditions is None else conditions
        columns: list[AnyArray] = [speech_seconds]
        for running in totals.values():
            columns += [running.frames, running.usable_seconds]
            columns += [] if running.early_seconds is None else [running.early_seconds]
        new = np.ones(speech_seconds.size, np.bool_)  # a pause says nothing new
        new[1:] = [a != b for a, b in pairwise(sounds)]
        new[1:] |= np.any([column[1:] != column[:-1] for column in columns], axis=0)
        rows, step = np.flatnonzero(new), max(1, _BATCH // self.speakers)
        assessments: list[Assessment] = []
        for start in range(0, rows.size, step):
            batch = rows[start : start + step]
            part = {name: running.select(batch) for name, running in totals.items()}
            conditions = [sounds[i] for i in batch.tolist()]
            assessments += self._assess(part, speech_seconds[batch], conditions)
        return [assessments[i] for i in (np.cumsum(new) - 1).tolist()]

    def _add_early_frames(self, totals: Mapping[str, RunningTotals]) -> dict[str, RunningTotals]:
        """Add early frames where the rank model covers so short speech."""
        first = {name: self._alone[name].rank_model.lengths[0] for name in self.features}
        return {name: totals[name].with_early(first[name]) for name in self.features}

    def _assess(
        self,
        totals: Mapping[str, RunningTotals],
        speech_seconds: FloatArray,
        sounds: Sequence[Condition | None],
    ) -> list[Assessment]:
        moments = speech_seconds.size
        waits = self._list_waiting(totals, speech_seconds)
        alone, parts = self._weigh(totals, speech_seconds, sounds, {}, waits)
        readings = {
            name: self._compute_readings(name, alone.get(name), totals[name].usable_seconds)
            for name in self.features
        }
        posterior = np.full((moments, self.speakers), 1.0 / self.speakers)
        local, gain, expected = np.zeros((3, moments, 3))
        nothing = CrowdEvidence(ratios=self._silence.ratios)
        evidence = [nothing if wait else self._silence for wait in waits.tolist()]
        reason = f"{', '.join(sorted(self._discerning))} needs more speech"
        enrolled: list[tuple[float | None, tuple[str, ...]]] = [
            (None, (reason,) if wait else ()) for wait in waits.tolist()
        ]
        for part in parts:
            posterior[part.rows] = part.posterior.posterior
            local[part.rows], gain[part.rows] = part.posterior.local, part.posterior.gain
            expected[part.rows] = [self.joint.expected.at(t) for t in part.seconds.tolist()]
            rows = part.rows.tolist()
            for row, share, crowd in zip(
                rows, self._compute_enrolled(part), self._compute_crowd_evidence(part), strict=True
            ):
                enrolled[row], evidence[row] = share, crowd
        spoken = np.any([totals[name].frames > 0 for name in self.features], axis=0)
        beyond = (speech_seconds > self.joint.rank_model.lengths[-1]) & spoken
        top = most_probable(posterior, self.names, self._top)
        return [
            Assessment(
                {name: series[r] for name, series in readings.items()},
                Bits(*local[r].tolist()) if self.watched else None,
                Bits(*gain[r].tolist()),
                Bits(*expected[r].tolist()),
                posterior[r].copy(),  # none keeps the others alive
                top[r],
                evidence[r],
                *enrolled[r],
                bool(beyond[r]),
                bool(waits[r]),
            )
            for r in range(moments)
        ]

    def _compute_readings(
        self, name: str, feature: _Feature | None, usable_seconds: FloatArray
    ) -> list[FeatureReading]:
        """Compute readings of one feature at every moment; zeros before it has frames enough."""
        zero = ZERO if self.watched else None
        readings = [
            FeatureReading.of(
                usable, None, expected_bits=ZERO, rank_bits=zero, local_bits=zero, gain_bits=ZERO
            )
            for usable in usable_seconds.tolist()
        ]
        if feature is None:
            return readings
        model, ranks = self._alone[name], None
        if feature.ranks is not None:
            ranks = list(zip(*(counts.tolist() for counts in feature.ranks), strict=True))
        figures = zip(
            feature.rows.tolist(),
            feature.seconds.tolist(),
            feature.posterior.local.tolist(),
            feature.posterior.gain.tolist(),
            strict=True,
        )
        for i, (row, seconds, local, gain) in enumerate(figures):
            rank, rank_bits = None, None
            if ranks is not None:
                better, tied = ranks[i]
                rank, rank_bits = better + (tied + 1) / 2, model.rank_bits(seconds, better, tied)
            readings[row] = FeatureReading.of(
                float(usable_seconds[row]),
                rank,
                expected_bits=model.expected.at(seconds),
                rank_bits=rank_bits,
                local_bits=Bits(*local) if self.watched else None,
                gain_bits=Bits(*gain),
            )
        return readings

    def _compute_enrolled(self, part: _Joint) -> list[tuple[float | None, tuple[str, ...]]]:
        """Compute the probability at each moment that the speaker is enrolled, or None and why."""
        if part.ratios is None:
            odds, area = part.model.enrolled(part.seconds, part.frames, part.posterior)
            if (prior := self.enrolled_prior) != 0.5:  # the rank model's
                odds = prior / (1.0 - prior) * odds / (1.0 - odds)
                odds = odds / (1.0 + odds)
        else:
            area = part.ratios.area
            odds = enrolled_share(part.ratios.bits, self.enrolled_prior)
            odds = np.where(area >= GOOD_AREA, odds, np.nan)
        return [
            (None, self._explain_enrolled(part.model, a)) if math.isnan(p) else (p, ())
            for p, a in zip(odds.tolist(), area.tolist(), strict=True)
        ]

    def _explain_enrolled(self, model: PosteriorModel, area: float) -> tuple[str, ...]:
        """Explain why these features cannot tell whether the speaker is enrolled."""
        measured = "not measured" if math.isnan(area) else f"{area:.2f}"
        reason = (
            f"{'+'.join(model.features)} cannot tell impostors from enrolled speakers (area under "
            f"the ROC curve {measured}, {GOOD_AREA:g} is needed)"
        )
        if silent := self._discerning.difference(model.features):
            return reason, f"{', '.join(sorted(silent))} has not said anything yet"
        if not self._discerning:
            return reason, "it takes a speaker embedding (voice)"
        return (reason,)

    def _compute_crowd_evidence(self, part: _Joint) -> list[CrowdEvidence]:
        """Compute what the evidence of each moment says in any crowd."""
        if part.ratios is None:
            return [CrowdEvidence()] * part.rows.size
        bits, watched, support, at_least, _ = part.ratios
        evidence = [Bits(*row) if self.watched else None for row in watched.tolist()]
        among = compute_crowds(bits, evidence, self._watched, self.among, self.names)
        rows = [row.copy() for row in bits]  # none keeps the others alive
        columns = evidence, support.tolist(), at_least.tolist(), among, rows
        return [CrowdEvidence(*moment) for moment in zip(*columns, strict=True)]

    def _create_silence(self) -> CrowdEvidence:
        """Return the evidence before any speech: everybody is as likely, in any crowd."""
        if self.joint.ratios is None:
            return CrowdEvidence()
        own, even = ZERO if self.watched else None, np.zeros((1, self.speakers))
        (among,) = compute_crowds(even, [own], self._watched, self.among, self.names)
        return CrowdEvidence(own, 0.0, False, among, even[0])

    def _weigh(
        self,
        totals: Mapping[str, RunningTotals],
        speech_seconds: FloatArray,
        sounds: Sequence[Condition | None],
        cache: dict[tuple[str, str, bytes], Any],
        waits: BoolArray,
        *,
        limits: bool = True,
    ) -> tuple[dict[str, _Feature], list[_Joint]]:
        """Weigh each feature that has frames, and all of them together; scores are cached."""
        present = self._list_present(totals, speech_seconds) & ~waits[:, None]
        scorers = {name: partial(self._scores, name) for name in self.features}
        scores = np.stack(
            [
                _compute_once(cache, "scores", name, totals[name], scorers[name])
                for name in self.features
            ],
            axis=1,
        )
        weigh = partial(PosteriorModel.weigh, watched=self._watched, sessions=self._sessions)
        alone: dict[str, _Feature] = {}
        for f, name in enumerate(self.features):
            if present[:, f].any():
                rows: IntArray = np.flatnonzero(present[:, f])
                seconds = totals[name].length(speech_seconds)[rows]
                own = scores[rows, f : f + 1]
                posterior = weigh(self._alone[name], seconds, own, limits=limits)
                ranks = None
                if self._watched is not None:
                    ranks = rank_now(self._select_best_session(own[:, 0]), self._watched)
                alone[name] = _Feature(rows, seconds, posterior, ranks)
        lengths, parts = speech_seconds, []
        for name in self.features:
            lengths = totals[name].length(lengths)
        for model, rows, axis in self._choose_models(present):
            seconds, own = lengths[rows], scores[np.ix_(rows, axis)]
            if len(self.features) == 1:
                posterior = alone[self.features[0]].posterior
            else:
                posterior = weigh(model, seconds, own, limits=limits)
            frames = np.stack([totals[name].frames[rows] for name in model.features], axis=1)
            ratios = None
            if model.ratios is not None and frames.all():
                levels = [
                    _compute_once(
                        cache, "levels", name, totals[name], self._cohort[name].compute_score_stats
                    )
                    for name in model.ratios.features
                ]
                ratios = model.ratios.at(
                    seconds,
                    [(mean[rows], spread[rows]) for mean, spread in levels],
                    own[:, [model.features.index(name) for name in model.ratios.features]],
                    [sounds[i] for i in rows.tolist()],
                    limits=limits,
                )
            parts.append(_Joint(model, rows, seconds, frames, posterior, ratios))
        return alone, parts

    def _list_present(
        self, totals: Mapping[str, RunningTotals], speech_seconds: FloatArray
    ) -> BoolArray:
        """Return which features have as many frames as speech brings, shape (R, F)."""
        feature_totals = [totals[name] for name in self.features]
        usable = np.stack([running.usable_seconds for running in feature_totals], axis=1)
        is_enough = usable >= self._least_shares * speech_seconds[:, None]
        return np.stack([running.frames > 0 for running in feature_totals], axis=1) & is_enough

    def _list_waiting(
        self, totals: Mapping[str, RunningTotals], speech_seconds: FloatArray
    ) -> BoolArray:
        """Return at which moments, (R,), the first frame of an embedding is still to come.

        Pitch and phones alone would say that a voice is harmless which the embedding knows.
        """
        waits = np.zeros(speech_seconds.size, np.bool_)
        for name in self._discerning:
            is_short = (speech_seconds > 0) & (speech_seconds < self.frame_seconds[name])
            waits |= (totals[name].frames == 0) & is_short
        return waits

    def _choose_models(
        self, present: BoolArray
    ) -> Iterator[tuple[PosteriorModel, IntArray, IntArray]]:
        """Yield for rows of (R, F) frames the model of the features they have, or the joint one."""
        for names, rows in group_rows(self.features, present):
            model = self._models.get(names, self.joint)
            yield model, rows, np.array([self.features.index(name) for name in model.features])

    def _scores(self, name: str, totals: AnyArray) -> FloatArray:
        return self._scorers[name].score(totals, self._watched, self._top)

    def _select_best_session(self, scores: FloatArray) -> FloatArray:
        """Select everybody's best session, (R, N), from scores of every template, (R, N + K)."""
        if self._sessions is None:
            return scores
        return np.take_along_axis(scores, self._sessions.mix(scores)[1], axis=1)

    def figures(
        self,
        totals: Mapping[str, RunningTotals],
        speech_seconds: FloatArray,
        cache: dict[tuple[str, str, bytes], Any],
        conditions: Sequence[Condition | None] | None = None,
    ) -> dict[str, FloatArray]:
        """Compute figures of ``assess_each``, named as in a reading, without limits: (R,) each.

        NaN where there is none. ``rank_bits`` needs a rank model of one feature. The cache serves
        attackers with the same templates and the same R moments.
        """
        moments, only = speech_seconds.size, len(self.features) == 1
        sounds = [None] * moments if conditions is None else conditions
        totals = self._add_early_frames(totals)
        waits = self._list_waiting(totals, speech_seconds)
        alone, parts = self._weigh(totals, speech_seconds, sounds, cache, waits, limits=False)
        local = 0.0 if self.watched else np.nan
        before = {
            "closed_set_bits": local,
            "gain_bits": 0.0,
            "sum_bits": local,
            "rank_bits": local if only else np.nan,
            "evidence_bits": np.nan if self._silence.evidence is None else 0.0,
        }
        figures = {name: np.full(moments, bits) for name, bits in before.items()}
        for name, feature in alone.items():
            figures["sum_bits"][feature.rows] += feature.posterior.local[:, 0]
            if feature.ranks is not None and only:
                point = self._alone[name].rank_model.at_each(feature.seconds)
                figures["rank_bits"][feature.rows] = point.rank_bits(self.speakers, *feature.ranks)
        for part in parts:
            figures["closed_set_bits"][part.rows] = part.posterior.local[:, 0]
            figures["gain_bits"][part.rows] = part.posterior.gain[:, 0]
            evidence = np.nan if part.ratios is None else part.ratios.watched[:, 0]
            figures["evidence_bits"][part.rows] = evidence
        return figures

    def scores(
        self, totals: Mapping[str, AnyArray], speech_seconds: FloatArray
    ) -> dict[str, FloatArray]:
        """Score R stretches of speech against every template, by totals (R, M) and T, (R,).

        Returns:
            raw scores of each feature and, of several, ``"joint"``: their sum as the rank model
            weighs them at T, by which the posterior ranks. Each of shape (R, N).
        """
        every = {name: self._scores(name, totals[name]) for name in self.features}
        best = {name: self._select_best_session(scores) for name, scores in every.items()}
        if len(self.features) == 1:
            return best
        stacked = np.stack(list(every.values()), axis=1)
        present = np.stack([totals[name].any(axis=1) for name in self.features], axis=1)
        best["joint"] = np.zeros((speech_seconds.size, self.speakers))
        for model, rows, axis in self._choose_models(present):
            weights, _ = model.rank_model.weighing(speech_seconds[rows])
            joint = weighted_evidence(stacked[np.ix_(rows, axis)], weights[:, 0])
            if self._sessions is not None:
                joint = self._sessions.mix(joint)[0]
            best["joint"][rows] = joint
        return best

    def expected_alone(self, feature: str | None, speech_seconds: float) -> float:
        """Return what a voice discloses on average by one feature, or by all (None), bits."""
        model = self.joint if feature is None else self._alone[feature]
        return model.expected.at(speech_seconds).value

    def most_bits(self, field: str) -> float:
        """Return a bound on a field of readings, from its rank models; infinity where unknown."""
        name, _, last = field.rpartition(".")
        if field == "evidence_bits" and self.support_bits is not None:
            return self.support_bits
        if name and name not in self._alone:
            return math.inf
        model = self._alone[name] if name else self.joint
        if last == "expected_bits":
            return model.expected.plateau_bits
        if last == "rank_bits":
            points = model.rank_model.at_each(model.rank_model.lengths)
            best = points.pmf(self.speakers, np.arange(model.rank_model.lengths.size), floor=True)
            return float(local_bits(best.max(), self.speakers))
        if last not in ("closed_set_bits", "local_bits", "gain_bits"):
            return math.inf
        used = [model] if name else self._models.values()
        spread = min(each.rank_model.least_floor for each in used)  # everybody keeps a share e
        best = np.full(self.speakers, spread / self.speakers)
        best[0] += 1.0 - spread
        if last == "gain_bits" or not self.watched:
            return float(confidence_bits(best))
        return float(local_bits(best[0], self.speakers))

    def rank_posterior(self, sketch: AnySketch, feature: str, speech_seconds: float) -> FloatArray:
        """Compute ``gamma_{r_j}`` of every candidate, by the rank alone: shape (N,).

        Tied candidates share their ranks' mean; the floor e of the live rank model is mixed in.
        """
        scorer = self._scorers[feature]
        scores = scorer.similarity.score(scorer.templates[: self.speakers], sketch.total)
        point = self._alone[feature].rank_model.at(speech_seconds)
        pmf = point.pmf(self.speakers, slice(0, 1), floor=True)[0]
        _, place, counts = np.unique(-scores, return_inverse=True, return_counts=True)
        ends = np.cumsum(counts)
        sums = np.concatenate([[0.0], np.cumsum(pmf)])
        return np.asarray(((sums[ends] - sums[ends - counts]) / counts)[place])


def _compute_once(
    cache: dict[tuple[str, str, bytes], Any],
    quantity: str,
    name: str,
    running: RunningTotals,
    compute: Callable[[AnyArray], Any],
) -> Any:
    """Compute a quantity of a feature's totals once; early frames change them and the key."""
    key = quantity, name, (running.frames > 0).tobytes()
    if key not in cache:
        cache[key] = compute(running.totals)
    return cache[key]
