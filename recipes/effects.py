"""Streams under one condition against templates under another, and what conditions do to evidence.

`with_effects` learns from what `recipes.frames.hear_world` kept; `world` judges it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import orjson

from monitor.corpus import find
from monitor.maths.condition import Condition, degradation, unlike
from monitor.maths.likelihood_ratios import ConditionComparisons, fit_condition_effects
from monitor.population.cohort import CohortScoring
from monitor.population.population import Population
from monitor.population.rank_model import RankModel, RankModels
from monitor.training.voices import (
    UNITS_PER_SECOND,
    Plan,
    SessionFrames,
    SpeakerSpeech,
    collect,
    start_after,
)
from monitor.types import FloatArray, IntArray
from recipes.frames import CONDITIONS, pairs

TEMPLATE_SECONDS, OWN_SECONDS = 30.0, 5.0
_MOST_OTHERS = 6000
"""Comparisons of two people that are fitted on, of each pair of conditions."""

SHIFTS = 4
Known = Literal["nothing", "band", "all"]
Frames = dict[str, SessionFrames]


def with_effects(population: Population, frames: Path) -> Population:
    """The same population, its rank models with what conditions do to them.

    Learnt of what `hear_world` kept of readers and of those who calibrate.
    """
    rank_models = []
    for rank_model in population.rank_models:
        evidence = rank_model.evidence
        if rank_model.session == "cross" and evidence is not None:
            rows = list(_learnt_from(population, frames, rank_model))
            effects = fit_condition_effects(
                [row for row, known in rows if known == "all"],
                [row for row, known in rows if known != "all"],
            )
            rank_model = replace(rank_model, evidence=replace(evidence, conditions=effects))
        rank_models.append(rank_model)
    return population.with_rank_models(RankModels(rank_models), population.cohort)


def _learnt_from(
    population: Population, frames: Path, rank_model: RankModel
) -> Iterator[tuple[ConditionComparisons, Known]]:
    """Comparisons under every pair of conditions, at several lengths, and what is known of streams.

    Streams of 1 to 3 s are new: nothing but their band is known, and at 1 s not even that. Whatever
    they turn out to be, most templates are clean.
    """
    names = rank_model.features
    for group, template, tests in (
        ("readers", TEMPLATE_SECONDS, (5.0, 10.0, 20.0)),
        ("calibrate", OWN_SECONDS, (3.0, 5.0)),
    ):
        for first, second in pairs(group):
            enrolled = HeardGroup.read(frames, f"{group}-0", first, names)
            streams = HeardGroup.read(frames, f"{group}-1", second, names)
            lengths: list[tuple[float, Known]] = [(test, "all") for test in tests]
            if first == "clean":
                lengths += [(1.0, "nothing"), (2.0, "band"), (3.0, "band")]
            for test, known in lengths:
                both = template, test
                made = compare(group, population, enrolled, streams, names, both, known)
                yield made.flat(), known


@dataclass(frozen=True, slots=True)
class HeardGroup:
    """Frames of everybody of a group under a condition, and what each sounds like, by name."""

    frames: dict[str, Frames]
    conditions: dict[str, Condition]

    @classmethod
    def read(cls, frames: Path, group: str, name: str, features: Sequence[str]) -> HeardGroup:
        """What `hear_world` kept."""
        folder = frames / group / name.replace(" ", "-")
        voices, _, problems = collect(find(folder), features=features)
        for problem in problems:
            print(problem, file=sys.stderr)
        told = orjson.loads((folder / CONDITIONS).read_bytes())
        made = {each: Condition.parse(record) or Condition() for each, record in told.items()}
        return cls({voice.name: _whole(voice) for voice in voices}, made)


@dataclass(frozen=True, slots=True)
class Comparisons:
    """Streams against templates, weighed by rank models of clean speech.

    Attributes:
        title: which condition of the templates, and which of the streams.
        parts: what each feature adds to the log2 of a likelihood ratio, shape (n, F, N).
        intercept: of these ratios, bits.
        own: place of each stream's own template, shape (n,).
        tester, owner: whose stream, shape (n,); whose template, shape (N,).
        support: bits.
        unlike: how their conditions differ, shape (n, N, 11).
        template_seconds: D of the templates.
    """

    title: str
    parts: FloatArray
    intercept: float
    own: IntArray
    tester: IntArray
    owner: IntArray
    support: float
    unlike: FloatArray
    template_seconds: float

    def flat(self) -> ConditionComparisons:
        """All comparisons of two people, and those of one; every speaker and every pair alike."""
        people = np.broadcast_arrays(self.tester[:, None], self.owner[None])
        tester, owner = (np.char.add(self.title, each.astype(str)) for each in people)
        mated = np.zeros(people[0].shape, np.bool_)
        there = np.flatnonzero(self.own >= 0)
        mated[there, self.own[there]] = True
        some = np.flatnonzero(mated | (people[0] != people[1]))
        others = some[~mated.ravel()[some]]
        step = -(-others.size // _MOST_OTHERS)
        some = np.sort(np.concatenate([some[mated.ravel()[some]], others[::step]]))
        mated, tester, owner = mated.ravel()[some], tester.ravel()[some], owner.ravel()[some]
        keys = np.where(mated, tester, np.char.add(np.char.add(tester, " "), owner))
        _, place, counts = np.unique(keys, return_inverse=True, return_counts=True)
        weight = 1.0 / counts[place]
        for each in (mated, ~mated):
            weight[each] /= 2.0 * weight[each].sum()
        unlike_each = self.unlike.reshape(-1, self.unlike.shape[-1])[some]
        return ConditionComparisons(
            np.moveaxis(self.parts, 1, -1).reshape(-1, self.parts.shape[1])[some],
            *(self.intercept, mated, weight, unlike_each, tester, owner, self.template_seconds),
        )


def compare(
    title: str,
    population: Population,
    enrolled: HeardGroup,
    streams: HeardGroup,
    features: tuple[str, ...],
    lengths: tuple[float, float],
    known: Known = "all",
) -> Comparisons:
    """Templates and streams of these lengths, speech seconds, with what is known of the streams."""
    template, test = (round(each * UNITS_PER_SECOND) for each in lengths)
    names = sorted(name for name, each in enrolled.frames.items() if _length(each) >= template)
    tests = [streams.frames.get(name) for name in names]
    plan = across([enrolled.frames[name] for name in names], tests, test)
    rank_model = population.rank_models.find(features, "cross")
    assert rank_model is not None
    assert rank_model.evidence is not None
    assert population.cohort is not None
    scorers = {name: population.scorers(rank_model)[name] for name in features}
    against = {n: CohortScoring(population.cohort, n, each) for n, each in scorers.items()}
    made = plan.run(scorers, test, template, cohort=against).compared
    assert made is not None
    point = rank_model.evidence.at_template(lengths[0]).at(np.array([lengths[1]]))
    rows = made.has_frames.all(axis=1)
    z, tester = made.z[rows].astype(float), made.tester[rows]
    intercept = float(point.intercept[0, 0] / np.log(2.0))
    parts = z * point.slopes[0, 0, :, None] / np.log(2.0)
    sound = [
        np.stack([degradation(group.conditions[names[each]]) for each in whose])
        for group, whose in ((streams, tester), (enrolled, made.owner))
    ]
    sound[0][:, {"nothing": 0, "band": 1, "all": 3}[known] :] = np.nan
    own = made.mated[rows]
    return Comparisons(
        *(title, parts, intercept, own, tester, made.owner),
        *(float(point.support[0]), unlike(*sound, is_new=known != "all"), lengths[0]),
    )


def across(templates: Sequence[Frames], tests: Sequence[Frames | None], test: int) -> Plan:
    """Templates of one condition, tests of another session under another, evenly spread."""

    def locate_test(voice: int, shift: int) -> tuple[Frames, int]:
        frames = tests[voice]
        assert frames is not None
        return frames, start_after(frames, shift * (_length(frames) - test) // SHIFTS)

    return Plan(
        np.arange(len(templates)),
        np.flatnonzero([_length(each) >= test for each in tests]),
        SHIFTS,
        template=lambda voice, _: (templates[voice], 0),
        test=locate_test,
        heard=lambda _, shift: (0, shift),
    )


def _whole(voice: SpeakerSpeech) -> Frames:
    (session,) = voice.sessions
    return session


def _length(frames: Frames | None) -> int:
    return 0 if frames is None else next(iter(frames.values())).length
