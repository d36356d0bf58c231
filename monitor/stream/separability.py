"""Separability of enrolled people, by comparing their templates.

Each session of a person serves as a stream under the template of each session of another person,
and the reverse. The result is the evidence, in bits, that both are one voice. Its usual range comes
from calibration speakers outside the fit. Between two sessions of one person, the evidence is below
`SpeakerRange.low` in 1 of 20 cases. Between two people, it is above `SpeakerRange.others` in 1 of
20 cases. So two people can be judged without their own calibration (docs/method.md section 10).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from monitor.errors import StoreError, UsageError
from monitor.kinds import comparable_features
from monitor.population.cohort import FeatureTemplates
from monitor.population.interpolation import EvidenceSpread
from monitor.population.people import Speaker
from monitor.population.population import Population
from monitor.population.rank_model import RankModel
from monitor.population.templates import SLICE_SECONDS
from monitor.stream.choice import (
    check_networks,
    choose_evidence_model,
    choose_features,
    choose_rank_model,
)
from monitor.stream.posterior import LikelihoodRatioScorer
from monitor.types import FloatArray, IntArray

MOST_COMPARED = 2_000
"""Maximum sessions to compare with each other. This takes a minute of one core, and 200 MB."""

_CHUNK = 256  # people with whom one person is compared at a time
APART_BITS = -2.0
"""Evidence below which two people are separable, since two voices are then four times as likely as
one. Taking one person for two is the worse mistake (benchmarks/results/separability.md)."""

LEAST_SECONDS = 30.0
"""Minimum seconds of speech of both people for the verdict inseparable, which would otherwise be
too frequent for people in one room."""


class Verdict(StrEnum):
    """Judgement of a pair of people, in error for about 1 in 20."""

    APART = "apart"  # less alike than 19 in 20 pairs of sessions of one person, by `APART_BITS`
    INSEPARABLE = "inseparable"  # as alike as those, and more so than 19 in 20 pairs of people
    UNKNOWN = "not known"  # in between, or one person's own sessions are no more alike


@dataclass(frozen=True, slots=True)
class Comparison:
    """Evidence that the speech of two people comes from one voice."""

    name: str  # the other person
    bits: float  # mean of both directions and of all sessions
    seconds: float  # compared speech of each person, in their longest sessions
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Separability:
    """Comparisons of one person with the others."""

    name: str  # the person
    own_bits: float | None  # evidence between the person's own sessions; None for one session
    # other people, most alike first, with only the first of the separable people. Empty if no one
    # could be compared.
    nearest: tuple[Comparison, ...]
    apart: int  # number of separable people
    not_compared: int  # number of people who could not be compared, because of too little speech

    def with_verdict(self, verdict: Verdict) -> tuple[Comparison, ...]:
        """Select the comparisons with this verdict."""
        return tuple(neighbour for neighbour in self.nearest if neighbour.verdict == verdict)


def compare_people(
    population: Population,
    name: str | None = None,
    progress: Callable[[str, float], None] = lambda _label, _share: None,
) -> list[Separability]:
    """Compare all enrolled people with each other; with a name, that person with the others.

    ``progress`` is called with a label and the fraction of the work done since the last call.

    UsageError for an unknown name, fewer than two people, or more sessions than `MOST_COMPARED`
    without a name. StoreError if these features have no calibration, not even the shipped one.
    """
    if len(population) < 2:
        raise UsageError("fewer than two people are enrolled: there is no one to compare with")
    places = np.arange(len(population))
    if name is None:
        sessions = list(_sessions_of(population, places))
        if len(sessions) > MOST_COMPARED:
            raise UsageError(
                f"{len(sessions):,} sessions are too many to compare all pairs (at most "
                f"{MOST_COMPARED:,} sessions): name one person with --speaker"
            )
        return _judge(sessions, *_choose_model(population), None, progress)
    index = population.index(name)
    name = population.names[index]
    others, parts = places[places != index], list[Separability]()
    calibrated, model = _choose_model(population)
    chunks = np.array_split(others, -(-others.size // _CHUNK))
    for chunk in chunks:
        sessions = list(_sessions_of(population, np.sort(np.append(chunk, index))))
        parts += _judge(
            sessions,
            calibrated,
            model,
            name,
            lambda label, fraction: progress(label, fraction / len(chunks)),
        )
    return [_merge(parts)]


def _merge(parts: Sequence[Separability]) -> Separability:
    every = sorted(
        (neighbour for separability in parts for neighbour in separability.nearest),
        key=lambda neighbour: -neighbour.bits,
    )
    nearest = [
        neighbour
        for i, neighbour in enumerate(every)
        if neighbour.verdict != Verdict.APART or not i
    ]
    apart, missing = sum(p.apart for p in parts), sum(p.not_compared for p in parts)
    return Separability(parts[0].name, parts[0].own_bits, tuple(nearest), apart, missing)


@dataclass(frozen=True, slots=True)
class _Session:
    """A session of one person, as rows of the population's slices."""

    person: int  # index in the population
    name: str
    rows: IntArray
    speaker: Speaker  # with the sound of this session alone


def _sessions_of(population: Population, indices: IntArray) -> Iterator[_Session]:
    for index in indices.tolist():
        first, last = population.offsets[index : index + 2].tolist()
        speaker = population.speakers[index]
        bounds = np.cumsum([first, *(speaker.sessions or (last - first,))])
        sounds = speaker.session_sounds
        for number in range(bounds.size - 1):
            sound = sounds[number] if len(sounds) == bounds.size - 1 else speaker.sound
            rows = np.arange(bounds[number], bounds[number + 1])
            yield _Session(index, speaker.name, rows, Speaker(speaker.name, sound=sound))


def _choose_model(population: Population) -> tuple[Population, RankModel]:
    """Choose the calibration across sessions: the population's, or else the shipped one."""
    for source in (population, None):
        calibration = Population.reference() if source is None else source
        try:
            same = comparable_features(population.specs, calibration.specs)
            features = choose_features(calibration.rank_models, same)
            model, _, biased = choose_rank_model(calibration.rank_models, features, "cross")
            calibrated = population.with_rank_models(calibration.rank_models, calibration.cohort)
            check_networks(calibrated, model)
        except StoreError:
            continue
        evidence = choose_evidence_model(calibrated, calibrated.rank_models, model)
        if evidence is None or biased:
            continue
        spread = EvidenceSpread.from_rows(evidence.rows, SLICE_SECONDS)
        if spread is not None and np.isfinite(spread.bits).any(axis=0).all():
            return calibrated, evidence
    raise StoreError(
        f"no cross-session calibration covers {'+'.join(population.features)} of these "
        "templates: enrol again with this version, or calibrate ten people (monitor calibrate)"
    )


def _judge(
    sessions: Sequence[_Session],
    calibrated: Population,
    model: RankModel,
    name: str | None,
    progress: Callable[[str, float], None],
) -> list[Separability]:
    people, owner = np.unique([session.person for session in sessions], return_inverse=True)
    names = [calibrated.names[index] for index in people.tolist()]
    seconds = np.array([session.rows.size * SLICE_SECONDS for session in sessions])
    # sums over pairs of sessions, both directions: bits, bits above `low`, above `others`, count
    sums = np.zeros((4, people.size, people.size))
    reached = np.zeros(sums.shape[1:])  # seconds of the longest comparison
    grid = model.template_lengths
    length = np.searchsorted(grid, seconds, side="right") - 1  # -1: shorter than any calibrated
    numbers = np.unique(length[length >= 0]).tolist()
    work = sum(np.count_nonzero(length >= number) for number in numbers)
    for number in numbers:
        template_seconds = float(grid[number])
        spread = EvidenceSpread.from_rows(model.rows, template_seconds)
        ratios = None if spread is None else spread.evaluate_at(template_seconds)
        members = np.flatnonzero(length >= number)
        if ratios is None or ratios.others is None or members.size < 2:
            continue
        exact = length[members] == number  # pairs of which the shorter one has this length
        whose = owner[members]
        blocks = _compare([sessions[i] for i in members.tolist()], calibrated, model,
                          template_seconds)  # fmt: skip
        for first, bits in blocks:
            rows = slice(first, first + len(bits))
            counts = exact[rows, None] | exact
            counts[np.arange(len(bits)), np.arange(first, first + len(bits))] = False
            places = np.nonzero(counts)
            pairs = whose[rows][places[0]], whose[places[1]]
            values = bits[places]
            parts = values, values - ratios.low, values - ratios.others, np.ones_like(values)
            for total, figure in zip(sums, parts, strict=True):
                np.add.at(total, pairs, figure)
            reached[pairs] = template_seconds  # lengths are increasing
            progress(f"{template_seconds:g} s", len(bits) / work)
    sums += sums.transpose(0, 2, 1)
    with np.errstate(invalid="ignore"):
        bits, above_low, above_others = sums[:3] / sums[3]
    chosen = range(len(names)) if name is None else [names.index(name)]
    reached = np.maximum(reached, reached.T)
    own_bits = bits.diagonal()
    figures = bits, above_low, above_others, reached
    return [
        _summarise(index, names, own_bits, *(row[index] for row in figures)) for index in chosen
    ]


def _compare(
    sessions: Sequence[_Session], calibrated: Population, model: RankModel, seconds: float
) -> Iterator[tuple[int, FloatArray]]:
    """Yield evidence of sessions as streams under all sessions, each cut to ``seconds``."""
    size = round(seconds / SLICE_SECONDS)
    rows = np.concatenate([session.rows[:size] for session in sessions])
    speakers = [Speaker(str(i), sound=session.speaker.sound) for i, session in enumerate(sessions)]
    features = {
        name: FeatureTemplates(templates.spec, templates.slices[rows])
        for name, templates in calibrated.features.items()
        if name in model.features
    }
    offsets = np.arange(len(sessions) + 1) * size
    cut = Population(speakers, offsets, features, cohort=calibrated.cohort)
    scoring = cut.scoring(seconds)
    yield from LikelihoodRatioScorer(cut, model, scoring).compare_templates(cut, model, scoring)


def _summarise(
    index: int,
    names: Sequence[str],
    own_evidence: FloatArray,
    bits: FloatArray,
    above_low: FloatArray,
    above_others: FloatArray,
    seconds: FloatArray,
) -> Separability:
    """Judge one person's pairs, (N,) each."""
    others = np.flatnonzero(np.isfinite(bits) & (np.arange(len(names)) != index))
    order = others[np.argsort(-bits[others], kind="stable")].tolist()
    comparisons: list[Comparison] = []
    apart = 0
    for other in order:
        verdict = Verdict.UNKNOWN
        if above_low[other] < 0:
            # no verdict if a person's own sessions are no more alike
            sessions = [own_evidence[i] for i in (index, other) if np.isfinite(own_evidence[i])]
            if bits[other] < min([APART_BITS, *sessions]):
                verdict = Verdict.APART
        elif above_others[other] > 0 and seconds[other] >= LEAST_SECONDS:
            verdict = Verdict.INSEPARABLE
        apart += verdict == Verdict.APART
        if verdict != Verdict.APART or not comparisons:
            figures = float(bits[other]), float(seconds[other])
            comparisons.append(Comparison(names[other], *figures, verdict))
    own_bits = float(own_evidence[index]) if np.isfinite(own_evidence[index]) else None
    return Separability(
        names[index], own_bits, tuple(comparisons), apart, len(names) - 1 - others.size
    )
