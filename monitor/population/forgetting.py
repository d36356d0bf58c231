"""Remove a person's name and voice from a population, or from a file of rank models.

Data of one person are deleted. A rank model combines many people and cannot be separated again. It
is marked, and `monitor calibrate` replaces it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from monitor.errors import UsageError
from monitor.phrases import plural
from monitor.population.cohort import Cohort
from monitor.population.people import nearest_spelling
from monitor.population.population import Population, load_rank_models, save_rank_models
from monitor.population.rank_model import RankModels
from monitor.population.store import store_kind
from monitor.safe_text import spelled_all


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Record of the data removed from a file and of the invalidated models."""

    template_seconds: float = 0.0  # 0 if the person was not enrolled
    recordings: int = 0
    maxima: int = 0  # rank models with maxima of the person's stream
    background: bool = False  # whether the cohort had the person
    marked: int = 0  # rank models partly calibrated on the person
    mute: int = 0  # models without evidence from now on, since their cohort changed
    remaining: int | None = None  # people still enrolled; None for a file of rank models

    def in_words(self, name: str) -> list[str]:
        """Format lines with the deleted data, the invalidated models and the remedy."""
        gone = []
        if self.recordings or self.template_seconds:
            gone.append(
                f"a template of {self.template_seconds:g} s and the fingerprints of "
                f"{plural(self.recordings, 'recording')}"
            )
        if self.background:
            gone.append("a sketch in the cohort")
        if self.maxima:
            gone.append(f"the maxima of a stream in {plural(self.maxima, 'rank model')}")
        remaining = "" if self.remaining is None else f"; {plural(self.remaining, 'speaker')} left"
        lines = [f"{name} is forgotten: {', '.join([*gone, 'the name'])}{remaining}"]
        if self.marked:
            lines.append(
                f"monitor: note: {name} still affects {plural(self.marked, 'rank model')}, since "
                "one person cannot be removed from an average. Runs will report this. Calibrate "
                "again without those recordings"
            )
        if self.mute:
            lines.append(
                "monitor: note: evidence is no longer available, since its cohort has changed. "
                "Calibrate again"
            )
        return lines


def forget_people(
    path: Path, names: Sequence[str], output: Path | None = None
) -> dict[str, Forgotten]:
    """Remove people from a population, or from a file of rank models, either all or none.

    UsageError for a name that is unknown, or for all who are enrolled. StoreError where the file
    cannot be read or written; it is then unchanged.
    """
    target = path if output is None else output
    names = spelled_all(names)
    forgotten: dict[str, Forgotten] = {}
    if store_kind(path) == "rank_model":
        rank_models, cohort = load_rank_models(path)
        _check_stored(names, _list_names(rank_models, cohort), path)
        for name in names:
            rank_models, cohort, forgotten[name] = _remove(rank_models, cohort, name)
        save_rank_models(target, rank_models, cohort)
        return forgotten
    population = Population.load(path)
    others = _list_names(population.rank_models, population.cohort)
    _check_stored(names, others.union(population.names), path)
    if set(names).issuperset(population.names):
        who = f"{names[0]} is the only one" if len(names) == 1 else "no other person is enrolled"
        raise UsageError(f"{who} in {path}: delete the file instead")
    for name in names:
        seconds, recordings = 0.0, 0
        if name in population.names:
            index = population.index(name)
            seconds = float(population.template_seconds[index])
            recordings = len(population.speakers[index].sources)
            population = population.without(name)
        rank_models, cohort, removed = _remove(population.rank_models, population.cohort, name)
        changes = {"rank_models": rank_models, "cohort": cohort}
        population = population._with(mismatched=population.mismatched, **changes)
        forgotten[name] = replace(
            removed, template_seconds=seconds, recordings=recordings, remaining=len(population)
        )
    population.save(target)
    return forgotten


def _check_stored(names: Sequence[str], stored: set[str], path: Path) -> None:
    """Refuse a name that is not in a file; suggest the nearest spelling."""
    for name in names:
        if name not in stored:
            count = f"it names {plural(len(stored), 'person')}"
            hint = nearest_spelling(name, sorted(stored)) or count
            raise UsageError(f"no {name!r} in {path}; {hint}")


def _list_names(rank_models: RankModels, cohort: Cohort | None) -> set[str]:
    names = set() if cohort is None else set(cohort.names)
    for rank_model in rank_models:
        names.update(rank_model.left_out, rank_model.learnt_from)
        names.update(() if rank_model.maxima is None else rank_model.maxima.speakers)
    return names


def _remove(
    rank_models: RankModels, cohort: Cohort | None, name: str
) -> tuple[RankModels, Cohort | None, Forgotten]:
    background = cohort is not None and name in cohort.names
    others = cohort.without(name) if cohort is not None and background else cohort
    models = [
        replace(
            rank_model,
            maxima=maxima.without(name)
            if (maxima := rank_model.maxima) and name in maxima.speakers
            else maxima,
            left_out=tuple(person for person in rank_model.left_out if person != name),
            learnt_from=tuple(person for person in rank_model.learnt_from if person != name),
            forgotten=rank_model.forgotten + (name in rank_model.learnt_from),
        )
        for rank_model in rank_models
    ]
    mute = sum(rank_model.evidence is not None for rank_model in models) if background else 0
    if background:  # a ratio is calibrated against one cohort, and is invalid with another
        models = [replace(rank_model, evidence=None) for rank_model in models]
    pairs = list(zip(rank_models, models, strict=True))
    forgotten = Forgotten(
        maxima=sum(old.maxima is not new.maxima for old, new in pairs),
        background=background,
        marked=sum(old.forgotten < new.forgotten for old, new in pairs),
        mute=mute,
    )
    return RankModels(models), others, forgotten
