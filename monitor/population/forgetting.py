"""Take a person out of a population, or out of rank models in a file of their own: name and voice.

What belongs to one person goes: template, notes and fingerprints of the recordings, the sketch in
the cohort, the maxima of the person's stream, the name wherever it stands. What was learnt from
many together, as a rank model, cannot be parted again; it is marked, and is learnt anew by
`monitor calibrate`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from monitor.errors import UsageError
from monitor.phrases import plural
from monitor.population.cohort import Cohort
from monitor.population.population import (
    Population,
    load_rank_models,
    nearest_spelling,
    save_rank_models,
)
from monitor.population.rank_model import RankModel, RankModels
from monitor.population.store import store_kind


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was taken out of a file, and what in it still owes something to the person.

    Attributes:
        template_seconds: speech seconds of the template; 0 where the person was not enrolled.
        maxima: rank models that knew how high the person's stream got.
        marked: rank models that were learnt from the person among others.
        mute: models that say nothing of evidence any more, since their cohort changed.
        left: how many are still enrolled; None of rank models without a population.
    """

    template_seconds: float = 0.0
    recordings: int = 0
    maxima: int = 0
    background: bool = False
    marked: int = 0
    mute: int = 0
    left: int | None = None

    def in_words(self, name: str) -> list[str]:
        """A line each: what has gone, then what it invalidates and what to do about it."""
        gone = []
        if self.recordings or self.template_seconds:
            gone.append(
                f"a template of {self.template_seconds:g} s and the fingerprints of "
                f"{plural(self.recordings, 'recording')}"
            )
        if self.background:
            gone.append("a sketch in the cohort")
        if self.maxima:
            gone.append(f"the maxima of a stream in {plural(self.maxima, 'rank_model')}")
        left = "" if self.left is None else f"; {plural(self.left, 'speaker')} left"
        lines = [f"{name} is forgotten: {', '.join([*gone, 'the name'])}{left}"]
        if self.marked:
            lines.append(
                f"monitor: note: {plural(self.marked, 'rank_model')} had been learnt from {name} "
                f"among "
                "others; that cannot be taken out of an average, and runs say so: calibrate again "
                "without those recordings"
            )
        if self.mute:
            lines.append(
                "monitor: note: no evidence in bits any more: the cohort that it was learnt "
                "against is another one now; calibrate again"
            )
        return lines


def named_in(population: Population) -> set[str]:
    """Everybody whom a population names, enrolled or not."""
    return set(population.names) | _named(population.rank_models, population.cohort)


def forget(path: Path, name: str, output: Path | None = None) -> Forgotten:
    """Take a person out of a population, or of rank models in a file of their own.

    Raises:
        UsageError: nobody in it is called so, or nobody would be left.
        StoreError: the file cannot be read or written; it is as it was.
    """
    target = path if output is None else output
    if store_kind(path) == "rank_model":
        rank_models, cohort = load_rank_models(path)
        _check_known(name, _named(rank_models, cohort), path)
        rank_models, cohort, found = _without(rank_models, cohort, name)
        save_rank_models(target, rank_models, cohort)
        return found
    population = Population.load(path)
    _check_known(name, named_in(population), path)
    seconds, recordings = 0.0, 0
    if name in population.names:
        if len(population) == 1:
            raise UsageError(f"{name} is the only one in {path}: delete the file instead")
        place = population.index(name)
        seconds = float(population.template_seconds[place])
        recordings = len(population.speakers[place].sources)
        population = population.without(name)
    rank_models, cohort, found = _without(population.rank_models, population.cohort, name)
    Population(
        population.speakers,
        population.offsets,
        population.features,
        rank_models,
        mismatched=population.mismatched,
        about=population.about,
        cohort=cohort,
    ).save(target)
    return replace(found, template_seconds=seconds, recordings=recordings, left=len(population))


def _check_known(name: str, known: set[str], path: Path) -> None:
    """Refuse a name that is nowhere in a file; the nearest spelling is told."""
    if name not in known:
        names = f"it names {plural(len(known), 'person')}"
        hint = nearest_spelling(name, sorted(known)) or names
        raise UsageError(f"nobody called {name!r} is in {path}; {hint}")


def _named(rank_models: RankModels, cohort: Cohort | None) -> set[str]:
    names = set() if cohort is None else set(cohort.names)
    for rank_model in rank_models:
        names.update(rank_model.left_out, rank_model.learnt_from)
        names.update(() if rank_model.maxima is None else rank_model.maxima.speakers)
    return names


def _without(
    rank_models: RankModels, cohort: Cohort | None, name: str
) -> tuple[RankModels, Cohort | None, Forgotten]:
    """Rank models and cohort without somebody, and what that took."""
    background = cohort is not None and name in cohort.names
    others = cohort.without(name) if cohort is not None and background else cohort
    made = [_rank_model_without(rank_model, name) for rank_model in rank_models]
    mute = sum(rank_model.evidence is not None for rank_model in made) if background else 0
    if background:  # a ratio is learnt against one cohort, and means nothing against another
        made = [replace(rank_model, evidence=None) for rank_model in made]
    pairs = list(zip(rank_models, made, strict=True))
    found = Forgotten(
        maxima=sum(old.maxima is not new.maxima for old, new in pairs),
        background=background,
        marked=sum(old.forgotten < new.forgotten for old, new in pairs),
        mute=mute,
    )
    return RankModels(made), others, found


def _rank_model_without(rank_model: RankModel, name: str) -> RankModel:
    """A rank model that does not name somebody."""
    changes: dict[str, Any] = {}
    maxima = rank_model.maxima
    if maxima is not None and name in maxima.speakers:
        changes["maxima"] = maxima.without(name)
    if name in rank_model.left_out:
        changes["left_out"] = tuple(each for each in rank_model.left_out if each != name)
    if name in rank_model.learnt_from:
        changes["learnt_from"] = tuple(each for each in rank_model.learnt_from if each != name)
        changes["forgotten"] = rank_model.forgotten + 1
    return replace(rank_model, **changes)
