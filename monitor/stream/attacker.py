"""The modelled attacker, which turns running sketches into ranks, posteriors and bits.

Sources: docs/method.md sections 4 (lengths), 5 (posteriors, expected bits) and 10 (likelihood
ratios). ``benchmarks/scale.py`` measures the cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from monitor.maths.condition import Condition
from monitor.maths.scores import AnySketch
from monitor.population.population import Population
from monitor.population.rank_model import RankModels
from monitor.stream.assessment import Assessment, Assessor
from monitor.stream.attacker_model import AttackerModel, AttackerSettings
from monitor.stream.scorer import Scorer
from monitor.stream.totals import RunningTotals
from monitor.stream.weigher import Weigher
from monitor.types import AnyArray, FloatArray

_BATCH = 1 << 22
"""Maximum candidates, of all moments together, weighed at once."""
_DEFAULTS = AttackerSettings()


class Attacker(AttackerModel):
    """Attacker that scores a stream against N templates and turns scores into bits.

    Args:
        population: templates, and rank models unless ``rank_models`` are given.
        features: names in any order. The rank model determines the order used.
        watch: the watched speaker, or None.
        session: ``"cross"`` or ``"same"``, to select the rank model. Without a cross-session rank
            model, the same-session one is used, and ``same_session_biased`` is True.
        rank_models, template_seconds: as in `MonitorSettings`.

    Raises:
        UsageError: an unknown feature or speaker, or an invalid crowd.
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
        chosen = features, watch, session, rank_models, template_seconds, settings
        model = AttackerModel.choose(population, *chosen)
        super().__init__(**vars(model))
        self.scorer = Scorer(self, population)
        self._weigher, self._assessor = Weigher(self, self.scorer), Assessor(self)

    def assess(self, sketches: Mapping[str, AnySketch], speech_seconds: float) -> Assessment:
        """Assess one sketch per feature at T speech seconds; bits are 0 before any frame."""
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
        totals = self._weigher.add_early_frames(totals)
        sounds = [None] * speech_seconds.size if conditions is None else conditions
        columns: list[AnyArray] = [speech_seconds]
        for running in totals.values():
            columns += [running.frames, running.usable_seconds]
            columns += [] if running.early_seconds is None else [running.early_seconds]
        new = np.ones(speech_seconds.size, np.bool_)  # a pause adds nothing new
        new[1:] = [a != b for a, b in pairwise(sounds)]
        new[1:] |= np.any([column[1:] != column[:-1] for column in columns], axis=0)
        rows, step = np.flatnonzero(new), max(1, _BATCH // self.speakers)
        assessments: list[Assessment] = []
        for start in range(0, rows.size, step):
            batch = rows[start : start + step]
            batch_totals = {name: running.select(batch) for name, running in totals.items()}
            conditions = [sounds[i] for i in batch.tolist()]
            assessments += self._assess(batch_totals, speech_seconds[batch], conditions)
        return [assessments[i] for i in (np.cumsum(new) - 1).tolist()]

    def _assess(
        self,
        totals: Mapping[str, RunningTotals],
        speech_seconds: FloatArray,
        sounds: Sequence[Condition | None],
    ) -> list[Assessment]:
        waits = self._weigher.list_waiting(totals, speech_seconds)
        alone, parts = self._weigher.weigh(totals, speech_seconds, sounds, {}, waits)
        return self._assessor.assess(alone, parts, totals, speech_seconds, waits)

    def figures(
        self,
        totals: Mapping[str, RunningTotals],
        speech_seconds: FloatArray,
        cache: dict[tuple[str, str, bytes], Any],
        conditions: Sequence[Condition | None] | None = None,
    ) -> dict[str, FloatArray]:
        """Compute the figures of `assess_each` without limits, named as in a reading: (R,) each.

        Missing figures are NaN. ``rank_bits`` needs a rank model of one feature. The cache serves
        attackers with the same templates and the same R moments.
        """
        return self._weigher.figures(totals, speech_seconds, cache, conditions)

    def scores(
        self, totals: Mapping[str, AnyArray], speech_seconds: FloatArray
    ) -> dict[str, FloatArray]:
        """Score R stretches of speech against every template, by totals (R, M) and T, (R,).

        Returns:
            raw scores of each feature, shape (R, N). With several features, ``"joint"`` is their
                sum with the rank model's weights at T, which determines the posterior's order.
        """
        return self._weigher.scores(totals, speech_seconds)

    def rank_posterior(self, sketch: AnySketch, feature: str, speech_seconds: float) -> FloatArray:
        """Compute ``gamma_{r_j}`` of every candidate, by the rank alone: shape (N,).

        Tied candidates get the mean over their ranks. The rank model's floor e is mixed in.
        """
        scores = self.scorer.score_first_sessions(feature, sketch)
        point = self.alone[feature].rank_model.evaluate_at(speech_seconds)
        pmf = point.pmf(self.speakers, slice(0, 1), floor=True)[0]
        _, level, counts = np.unique(-scores, return_inverse=True, return_counts=True)
        ends = np.cumsum(counts)
        sums = np.concatenate([[0.0], np.cumsum(pmf)])
        return np.asarray(((sums[ends] - sums[ends - counts]) / counts)[level])
