"""Effects of conditions on evidence, when streams and templates have different conditions.

`with_effects` fits them to the frames that `recipes.frames.extract_groups` stores. The benchmark
``world`` judges the fit.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import orjson
from scipy.special import expit

from monitor.corpus import find
from monitor.maths.condition import NEW, UNLIKE, Condition, degradation, unlike
from monitor.maths.evidence import UNBOUNDED, ConditionEffect, ConditionEffects, with_misses
from monitor.maths.ratio_checks import supported_bits
from monitor.population.cohort import CohortScoring
from monitor.population.population import Population
from monitor.population.rank_model import RankModel, RankModels
from monitor.training.grid import Plan, start_after
from monitor.training.voices import UNITS_PER_SECOND, SessionFrames, SpeakerSpeech, collect
from monitor.types import AnyArray, BoolArray, FloatArray, IntArray
from recipes.frames import CONDITIONS, pairs

TEMPLATE_SECONDS, OWN_SECONDS = 30.0, 5.0
_MOST_OTHERS = 6000  # comparisons of two people in the fit, per pair of conditions

SHIFTS = 4
Known = Literal["nothing", "band", "all"]
Frames = dict[str, SessionFrames]


def with_effects(population: Population, frames: Path) -> Population:
    """Return the population with effects of conditions in its cross-session rank models.

    The effects are fitted to `extract_groups`'s ``frames`` of readers and of calibration speakers.
    """
    rank_models = []
    for rank_model in population.rank_models:
        evidence = rank_model.evidence
        if rank_model.session == "cross" and evidence is not None:
            rows = list(_collect_comparisons(population, frames, rank_model))
            effects = fit_condition_effects(
                [row for row, known in rows if known == "all"],
                [row for row, known in rows if known != "all"],
            )
            rank_model = replace(rank_model, evidence=replace(evidence, conditions=effects))
        rank_models.append(rank_model)
    return population.with_rank_models(RankModels(rank_models), population.cohort)


def _collect_comparisons(
    population: Population, frames: Path, rank_model: RankModel
) -> Iterator[tuple[ConditionComparisons, Known]]:
    """Yield comparisons by pair of conditions and length, and the known conditions of streams.

    Against clean templates, streams of 1 to 3 s are also compared as new ones: only their band is
    known, and at 1 s not even that. Most templates are clean, whatever the stream's condition.
    """
    names = rank_model.features
    for group, template, tests in (
        ("readers", TEMPLATE_SECONDS, (5.0, 10.0, 20.0)),
        ("calibrate", OWN_SECONDS, (3.0, 5.0)),
    ):
        for first, second in pairs(group):
            enrolled = ExtractedGroup.read(frames, f"{group}-0", first, names)
            streams = ExtractedGroup.read(frames, f"{group}-1", second, names)
            lengths: list[tuple[float, Known]] = [(test, "all") for test in tests]
            if first == "clean":
                lengths += [(1.0, "nothing"), (2.0, "band"), (3.0, "band")]
            for test, known in lengths:
                both = template, test
                made = compare(group, population, enrolled, streams, names, both, known)
                yield made.flatten(), known


@dataclass(frozen=True, slots=True)
class ExtractedGroup:
    """Frames and measured conditions of a group's people under one condition, by name."""

    frames: dict[str, Frames]
    conditions: dict[str, Condition]

    @classmethod
    def read(cls, frames: Path, group: str, name: str, features: Sequence[str]) -> ExtractedGroup:
        """Read the files of `extract_groups`, and print problems."""
        folder = frames / group / name.replace(" ", "-")
        voices, _, problems = collect(find(folder), features=features)
        for problem in problems:
            print(problem, file=sys.stderr)
        records = orjson.loads((folder / CONDITIONS).read_bytes())
        conditions = {
            each: Condition.parse(record) or Condition() for each, record in records.items()
        }
        return cls({voice.name: _get_only_session(voice) for voice in voices}, conditions)


@dataclass(frozen=True, slots=True)
class Comparisons:
    """Comparisons of n streams with N templates, scored by rank models of clean speech.

    Attributes:
        title: name of the group, or of the conditions.
        parts: each feature's contribution to the log2 likelihood ratio, shape (n, F, N).
        intercept: intercept of these ratios, in bits.
        own: index of each stream's own template, shape (n,); negative if absent.
        tester, owner: speakers of the streams, shape (n,), and of the templates, shape (N,).
        support: supported bits.
        unlike: differences of their conditions, shape (n, N, 11).
        template_seconds: speech seconds D of the templates.
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

    def flatten(self) -> ConditionComparisons:
        """Flatten the comparisons, with equal weight for each speaker and for each pair of two."""
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
    enrolled: ExtractedGroup,
    streams: ExtractedGroup,
    features: tuple[str, ...],
    lengths: tuple[float, float],
    known: Known = "all",
) -> Comparisons:
    """Compare templates and streams of these lengths, in speech seconds.

    ``known`` states which conditions of the streams are known.
    """
    template, test = (round(each * UNITS_PER_SECOND) for each in lengths)
    names = sorted(name for name, each in enrolled.frames.items() if _count_units(each) >= template)
    tests = [streams.frames.get(name) for name in names]
    plan = plan_trials([enrolled.frames[name] for name in names], tests, test)
    rank_model = population.rank_models.find(features, "cross")
    assert rank_model is not None
    assert rank_model.evidence is not None
    assert population.cohort is not None
    scorers = {name: population.scorers(rank_model)[name] for name in features}
    against = {n: CohortScoring(population.cohort, n, each) for n, each in scorers.items()}
    made = plan.run(scorers, test, template, cohort=against).compared
    assert made is not None
    point = rank_model.evidence.at_template(lengths[0]).evaluate_at(np.array([lengths[1]]))
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


def plan_trials(templates: Sequence[Frames], tests: Sequence[Frames | None], test: int) -> Plan:
    """Plan trials of evenly spaced tests, of another session and condition than the templates."""

    def locate_test(voice: int, shift: int) -> tuple[Frames, int]:
        frames = tests[voice]
        assert frames is not None
        return frames, start_after(frames, shift * (_count_units(frames) - test) // SHIFTS)

    return Plan(
        np.arange(len(templates)),
        np.flatnonzero([_count_units(each) >= test for each in tests]),
        SHIFTS,
        template=lambda voice, _: (templates[voice], 0),
        test=locate_test,
        locate_session=lambda _, shift: (0, shift),
    )


def _get_only_session(voice: SpeakerSpeech) -> Frames:
    (session,) = voice.sessions
    return session


def _count_units(frames: Frames | None) -> int:
    return 0 if frames is None else next(iter(frames.values())).length


# Effects of conditions on likelihood ratios fitted on clean speech (docs/method.md section 10). The
# same people are compared under every pair of conditions, so differences between people cancel.
_CONDITION_RIDGE = 5e-5
_TOO_LARGE = 0.02
"""Penalty in bits of Cllr if other people's mean ratio is twice the allowed one. Effects were
fitted on half of the people. Penalty and ridge were chosen on the other half, for the most evidence
with other people's mean ratio below 1 on average.
"""
_ODDS = (0.0, 5.0)
"""Log2 of the odds against the right person at which costs are computed: Cllr's own, and 1 to 32.
At even odds only, misleading features would keep their weight, since ratios of 100 and 1000 cost
the same.
"""
_SCALE = 8.0  # typical size of a ratio in bits, to which the ridge is relative
_FEWEST_MATED = 20  # minimum number of people under a condition to estimate its support


@dataclass(frozen=True, slots=True)
class ConditionComparisons:
    """n comparisons under one pair of conditions, with templates of one length.

    ``parts`` are each feature's contribution to the log2 ratio, ``b_f z_f`` as fitted on clean
    speech, (n, F). Weights of mated and of other comparisons sum to 1/2 each. ``unlike``, (n, 11),
    compares the conditions (`monitor.maths.condition.unlike`). Equal names mean the same person
    throughout.
    """

    parts: FloatArray
    intercept: float
    mated: BoolArray
    weight: FloatArray
    unlike: FloatArray
    test_speaker: AnyArray
    template_speaker: AnyArray
    template_seconds: float

    def bits(self, effect: ConditionEffect) -> FloatArray:
        """Compute bits under an effect, shape (n,), before the bound by misses."""
        shift, slope, _ = effect.evaluate_at(self.unlike)
        bits = self.intercept + (self.parts * slope).sum(axis=1)
        return np.asarray(bits + max(-self.intercept, 0.0) * shift)


def fit_condition_effects(
    rows: Sequence[ConditionComparisons], new: Sequence[ConditionComparisons] = ()
) -> ConditionEffects:
    """Fit the effects of conditions that minimise Cllr, and the support of each condition.

    Each pair of conditions has the same weight. Its cost is the mean Cllr at even odds and at 1 to
    32 (`_ODDS`). A ridge applies to the first effect and to the step from each to the next. A
    penalty applies if other people's mean ratio exceeds 1. The support, at all lengths, is the ELUB
    of comparisons with much of that condition alone. With too few people it is the smallest of the
    others. The effect on ``new`` streams is fitted last, with all other effects fixed. It adds no
    bound, because an ELUB of short streams would bound longer templates too.
    """
    lengths = np.unique([row.template_seconds for row in rows])
    known = np.arange(UNLIKE) < NEW
    clean_bits = [row.intercept + row.parts.sum(axis=1) for row in rows]
    fitted = _fit_steps(rows, clean_bits, lengths, known)
    effects = _assemble(lengths, fitted, np.zeros(UNLIKE))
    ratios = [with_misses(row.bits(effects.at_template(row.template_seconds))) for row in rows]
    support = np.array([_compute_support(rows, ratios, k) for k in range(NEW)])
    minimum = float(np.nanmin(support)) if np.isfinite(support).any() else 0.0
    support = np.append(np.where(np.isnan(support), minimum, support), UNBOUNDED)
    if new:
        before = [row.bits(effects.at_template(row.template_seconds)) for row in new]
        fitted += _fit_steps(new, before, lengths, ~known)
    return _assemble(lengths, fitted, support)


def _assemble(lengths: FloatArray, fitted: FloatArray, support: FloatArray) -> ConditionEffects:
    """Assemble effects from shift and slopes at each length, (K, 1 + F, 11)."""
    effects = (ConditionEffect(each[0], each[1:], support) for each in fitted)
    return ConditionEffects(lengths, tuple(effects))


def _fit_steps(
    rows: Sequence[ConditionComparisons],
    bits_before: Sequence[FloatArray],
    lengths: FloatArray,
    columns: BoolArray,
) -> FloatArray:
    """Fit shift and slopes of some columns of q at each length: (K, 1 + F, 11), 0 elsewhere.

    ``bits_before`` are each row's bits, (n,), without these columns.
    """
    from scipy.optimize import minimize

    features = rows[0].parts.shape[1]
    length_indices = np.searchsorted(lengths, [row.template_seconds for row in rows]).tolist()
    tables = []
    for row in rows:
        q = row.unlike[:, columns]
        slopes = [q * row.parts[:, f, None] for f in range(features)]
        tables.append(np.hstack([max(-row.intercept, 0.0) * q, *slopes]) / _SCALE)
    signs = [np.where(row.mated, -1.0, 1.0) for row in rows]
    weights = [[row.weight * scale for scale in _scales(row.mated)] for row in rows]

    def objective(steps: FloatArray) -> tuple[float, FloatArray]:
        steps = steps.reshape(lengths.size, -1)
        cumulative = np.cumsum(steps, axis=0)
        total = _CONDITION_RIDGE * float((steps**2).sum())
        gradients = np.zeros_like(cumulative)
        terms = zip(rows, tables, length_indices, bits_before, signs, weights, strict=True)
        for row, table, index, before, sign, weight_at in terms:
            bits = before + table @ cumulative[index]
            cost, gradient = 0.0, np.zeros_like(bits)
            for odds, weight in zip(_ODDS, weight_at, strict=True):
                margin = sign * (bits - odds)
                cost += weight @ np.logaddexp2(0.0, margin)
                gradient += weight * sign * expit(margin * np.log(2.0))
            others = 2.0 * row.weight[~row.mated] * np.exp2(np.minimum(bits[~row.mated], 30.0))
            excess = max(float(np.log2(others.sum())), 0.0)
            total += (cost + _TOO_LARGE * excess**2) / len(rows)
            gradients[index] += table.T @ gradient / len(rows)
            if excess:
                excess_gradient = table[~row.mated].T @ (others / others.sum())
                gradients[index] += 2.0 * _TOO_LARGE * excess * excess_gradient / len(rows)
        # a step applies at its own length and at all longer ones
        step_gradients = np.cumsum(gradients[::-1], axis=0)[::-1] + 2.0 * _CONDITION_RIDGE * steps
        return total, step_gradients.ravel()

    start = np.zeros((lengths.size, 1 + features, int(columns.sum())))
    steps = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B").x / _SCALE
    fitted = np.zeros((lengths.size, 1 + features, UNLIKE))
    fitted[..., columns] = np.cumsum(steps.reshape(start.shape), axis=0)
    return fitted


def _scales(mated: BoolArray) -> list[FloatArray]:
    """Return the weight of each comparison, (n,), in the cost at each of `_ODDS`."""
    scales = []
    for odds in _ODDS:
        uninformed = np.logaddexp2(0.0, odds) + 2.0**odds * np.logaddexp2(0.0, -odds)
        scales.append(np.where(mated, 1.0, 2.0**odds) * 2.0 / (uninformed * len(_ODDS)))
    return scales


def _compute_support(
    rows: Sequence[ConditionComparisons], ratios_by_row: Sequence[FloatArray], k: int
) -> float:
    """Compute the support of comparisons in which column k of q, and no other, is at least 0.5.

    The column of combined degradations may occur with others. NaN if there are too few people.
    """
    parts: list[tuple[FloatArray, FloatArray, FloatArray, FloatArray]] = []
    people: set[str] = set()
    pairs: set[frozenset[str]] = set()
    for row, ratios in zip(rows, ratios_by_row, strict=True):
        large = row.unlike >= 0.5
        chosen = large[:, k] & ((large.sum(axis=1) == 1) | (k == NEW - 1))
        if not (chosen & row.mated).any() or not (chosen & ~row.mated).any():
            continue
        bits = ratios[chosen]
        is_mated, weight = row.mated[chosen], row.weight[chosen]
        mated_weight, other_weight = weight[is_mated], weight[~is_mated]
        shares = mated_weight / mated_weight.sum(), other_weight / other_weight.sum()
        parts.append((bits[is_mated], bits[~is_mated], *shares))
        tests, templates = row.test_speaker[chosen], row.template_speaker[chosen]
        people.update(tests[is_mated].tolist())
        names = zip(tests[~is_mated].tolist(), templates[~is_mated].tolist(), strict=True)
        pairs.update(map(frozenset, names))
    if len(people) < _FEWEST_MATED:
        return float("nan")
    mated, others, mated_weight, other_weight = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    return supported_bits(mated, others, mated_weight, other_weight, len(people), len(pairs))[0]
