"""The modelled attacker, which turns running sketches into ranks, posteriors and bits.

Sources: docs/method.md sections 4 (lengths), 5 (posteriors, expected bits) and 10 (likelihood
ratios). ``benchmarks/scale.py`` measures the cost.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from monitor.maths.condition import Condition
from monitor.maths.scores import AnySketch
from monitor.population.population import Population
from monitor.population.rank_model import RankModels
from monitor.stream.assessment import Assessment, Assessor
from monitor.stream.attacker_model import AttackerModel, AttackerSettings
from monitor.stream.totals import RunningTotals
from monitor.stream.weigher import Scorer, WatchedMoments, Weigher
from monitor.types import AnyArray, FloatArray, IntArray

_BATCH = 1 << 22
"""Maximum candidates, of all moments together, weighed at once."""
_DEFAULTS = AttackerSettings()


class Question(NamedTuple):
    """Moments to be assessed by an attacker: arguments of `Attacker.assess_each`."""

    attacker: Attacker
    totals: Mapping[str, RunningTotals]
    speech_seconds: FloatArray
    conditions: Sequence[Condition | None] | None = None

    def select_new(self) -> tuple[WatchedMoments, IntArray]:
        """Select moments that differ from the one before; return them, and each moment's index."""
        attacker, totals, seconds, conditions = self
        every = attacker.watch_moments(totals, seconds, conditions)
        columns: list[AnyArray] = [every.seconds]
        for running in every.totals.values():
            columns += [running.frames, running.usable_seconds]
            columns += [] if running.early_seconds is None else [running.early_seconds]
        new = np.ones(every.seconds.size, np.bool_)  # a pause adds nothing new
        new[1:] = [a != b for a, b in pairwise(every.sounds)]
        new[1:] |= np.any([column[1:] != column[:-1] for column in columns], axis=0)
        return every.select(np.flatnonzero(new)), np.cumsum(new) - 1


def assess_together(questions: Sequence[Question]) -> list[list[Assessment]]:
    """Assess the moments of each question, together if attackers differ only in who is watched."""
    groups: dict[Hashable, list[int]] = {}
    for number, question in enumerate(questions):
        groups.setdefault(question.attacker.sharing_key, []).append(number)
    answers: dict[int, list[Assessment]] = {}
    for indices in groups.values():
        attacker = questions[indices[0]].attacker
        selected = [questions[number].select_new() for number in indices]
        moments = WatchedMoments.joined([new for new, _ in selected])
        count, step = moments.seconds.size, max(1, _BATCH // attacker.speakers)
        batches = [moments]
        if count > step:
            ends = [*range(step, count, step)]
            batches = [moments.select(rows) for rows in np.split(np.arange(count), ends)]
        assessed = [row for batch in batches for row in attacker.assess_moments(batch)]
        for number, (new, index) in zip(indices, selected, strict=True):
            answers[number] = [assessed[i] for i in index.tolist()]
            assessed = assessed[new.seconds.size :]
    return [answers[number] for number in range(len(questions))]


class Attacker(AttackerModel):
    """Attacker that scores a stream against N templates and turns scores into bits.

    UsageError for an unknown feature or speaker, or an invalid crowd; StoreError without a rank
    model for these features.
    """

    def __init__(
        self,
        population: Population,  # templates, and rank models unless they are given
        features: Sequence[str],  # in any order; the rank model determines the order used
        watch: str | None = None,
        *,
        # ``"cross"`` or ``"same"``, to select the rank model. Without one across sessions, that of
        # the same session is used, and ``same_session_biased`` is True
        session: str = "cross",
        rank_models: RankModels | None = None,  # as in `MonitorSettings`
        template_seconds: float | None = None,
        settings: AttackerSettings = _DEFAULTS,
    ) -> None:
        rank_models = rank_models if rank_models is not None else population.rank_models
        chosen = features, watch, session, rank_models, template_seconds, settings
        model = AttackerModel.choose(population, *chosen)
        super().__init__(**vars(model))
        self.scorer = Scorer(self, population)
        templates = id(population), self.scoring.seconds, self.scoring.members.tobytes()
        models = id(rank_models), self.features, self.session
        figures = self.watched, self.among, self.enrolled_prior, self.top
        self._made_of = population, rank_models  # kept alive, so that their ids stay unique
        # equal for attackers that differ only in the watched speaker
        self.sharing_key: Hashable = (templates, models, figures)
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
        return assess_together([Question(self, totals, speech_seconds, conditions)])[0]

    def assess_moments(self, moments: WatchedMoments) -> list[Assessment]:
        """Assess moments, each by the speaker who is watched there."""
        waits = self._weigher.list_waiting(moments)
        return self._assessor.assess(*self._weigher.weigh(moments, waits, {}), moments, waits)

    def watch_moments(
        self,
        totals: Mapping[str, RunningTotals],
        speech_seconds: FloatArray,
        conditions: Sequence[Condition | None] | None = None,
    ) -> WatchedMoments:
        """Return moments with their early frames, all with this attacker's watched speaker."""
        count = speech_seconds.size
        sounds = [None] * count if conditions is None else conditions
        totals = self.add_early_frames(totals)
        return WatchedMoments(totals, speech_seconds, sounds, self.watch_each(count))

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
        moments = self.watch_moments(totals, speech_seconds, conditions)
        return self._weigher.figures(moments, cache)

    def evidence(
        self, totals: Mapping[str, RunningTotals], speech_seconds: FloatArray
    ) -> FloatArray:
        """Compute ``evidence_bits`` of ``figures`` alone, (R,), whatever the conditions."""
        return self._weigher.evidence(self.watch_moments(totals, speech_seconds))

    def scores(
        self, totals: Mapping[str, AnyArray], speech_seconds: FloatArray
    ) -> dict[str, FloatArray]:
        """Score R stretches of speech against every template, by totals (R, M) and T, (R,).

        Returns raw scores of each feature, (R, N). With several features, ``"joint"`` is their sum
        with the rank model's weights at T, which determines the posterior's order.
        """
        return self._weigher.scores(totals, speech_seconds)
