"""The files of an evaluation, brought together system by system."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from monitor.errors import UsageError
from monitor.phrases import plural

if TYPE_CHECKING:
    from monitor.evaluation.input.attributes import Attribute
    from monitor.evaluation.input.evaluation_input import EvaluationInput
    from monitor.evaluation.input.score_file import ScoreFile

__all__ = ["MOST_SYSTEMS", "NamedScores", "dev_of", "groups_within", "listed", "systems_of"]

MOST_SYSTEMS = 12
"""That one score file puts side by side."""


@dataclass(frozen=True, slots=True)
class NamedScores:
    """The scores of one system.

    Attributes:
        file: that holds them.
        name: of the system, unless --names gives another.
        choose: which of the file's matrices; empty where it holds one.
    """

    file: Path
    name: str
    choose: tuple[str, ...] = ()


def listed(files: Sequence[Path], choose: Sequence[str] | None) -> list[NamedScores]:
    """The systems in SCORES: one a file, or as many as are chosen of a score file.

    Raises:
        UsageError: nothing or too much is chosen, or there is nothing to choose from.
    """
    found: list[NamedScores] = []
    any_file = False
    for file, name in zip(files, _told_apart(files), strict=True):
        held = _score_file(file)
        if held is None:
            found.append(NamedScores(file, name))
            continue
        any_file = True
        entries = held.chosen(choose or ())
        if len(entries) > MOST_SYSTEMS:
            raise UsageError(
                f"{file.name} has {len(entries)} matrices, more than {MOST_SYSTEMS} side by side: "
                f"--choose some of {held.listed()}"
            )
        words = [entry.words for entry in entries]
        varied = [i for i in range(len(words[0])) if len({each[i] for each in words}) > 1]
        for each in words:
            own = [each[i] for i in varied]
            found.append(
                NamedScores(file, " ".join([name] * (len(files) > 1 or not own) + own), each)
            )
    if choose is not None and not any_file:
        raise UsageError("--choose goes with SCORES from monitor score")
    return found


def groups_within(files: Sequence[Path], name: str) -> Attribute:
    """The attribute of that name that score files hold.

    Raises:
        UsageError: none of them does, or two contradict each other.
    """
    from dataclasses import replace

    found: Attribute | None = None
    for held in filter(None, map(_score_file, files)):
        if held.groups is None or held.groups.name.lower() != name.lower():
            has = f"has {held.groups.name}" if held.groups is not None else "has no groups"
            raise UsageError(f"--group-by {name}: {held.path.name} {has}; give --groups FILE")
        if found is not None and any(found.of.get(k, v) != v for k, v in held.groups.of.items()):
            raise UsageError(
                f"--group-by {name}: {held.path.name} says otherwise than another file"
            )
        found = held.groups if found is None else replace(found, of={**found.of, **held.groups.of})
    if found is None:
        raise UsageError("--group-by goes with --groups, or with SCORES from monitor score")
    return found


def _score_file(file: Path) -> ScoreFile | None:
    """The file, where it is one of `monitor score`; what else is wrong is told when it is read."""
    from monitor.evaluation.input.files import kind_of
    from monitor.evaluation.input.score_file import ScoreFile

    if not file.is_file() or not file.stat().st_size:
        return None
    return ScoreFile.at(file) if kind_of(file) == "npz" else None


def systems_of(
    scores: Sequence[NamedScores],
    labels: Sequence[Path],
    trials: Sequence[Path],
    enrolment: Sequence[Path],
    enrolment_labels: Sequence[Path],
    scoring: str,
    names: Sequence[str],
    unmated: str,
) -> list[Callable[[], EvaluationInput]]:
    """How each system is read, one after the other."""
    from monitor.evaluation.input.embeddings import read_embeddings
    from monitor.evaluation.input.scores import read_scores

    if bool(scores) == bool(trials):
        raise UsageError("give SCORES, or embeddings with --trials and --enrolment")
    files = [each.file for each in scores] or trials
    if names and len(names) != len(files):
        raise UsageError(f"--names: {len(names)} names for {plural(len(files), 'system')}")
    called = tuple(names) or tuple(each.name for each in scores) or _told_apart(files)
    if len(set(called)) != len(called):
        raise UsageError("two systems have one name: give each its own with --names")
    if trials:
        if labels:
            raise UsageError("--labels goes with SCORES: embeddings come with their speakers")
        if enrolment_labels:
            raise UsageError("--enrolment-labels goes with SCORES: embeddings have speakers")
        if not enrolment:
            raise UsageError("--trials needs --enrolment: the speakers to compare with")
        beside = _for_each("--enrolment", enrolment, len(files))
        return [
            partial(read_embeddings, file, other, scoring, name=name, unmated=unmated)
            for file, other, name in zip(files, beside, called, strict=True)
            if other is not None
        ]
    if enrolment:
        raise UsageError("--enrolment goes with --trials")
    return [
        partial(
            read_scores,
            each.file,
            other,
            name=name,
            unmated=unmated,
            enrolment_labels=models,
            scoring=scoring,
            choose=each.choose,
        )
        for each, other, models, name in zip(
            scores,
            _for_each("--labels", labels, len(files)),
            _for_each("--enrolment-labels", enrolment_labels, len(files)),
            called,
            strict=True,
        )
    ]


def dev_of(
    systems: Sequence[tuple[str, ...]], dev: Sequence[Path], labels: Sequence[Path]
) -> list[Callable[[], EvaluationInput] | None]:
    """How the development scores of each system are read, if it has any.

    Args:
        systems: what each was chosen by, which holds for a score file of development scores too.
        dev: the files; none, one, or one for each.
        labels: likewise.
    """
    from monitor.evaluation.input.scores import read_scores

    if labels and not dev:
        raise UsageError("--dev-labels goes with --dev")
    files = _for_each("--dev", dev, len(systems))
    beside = _for_each("--dev-labels", labels, len(systems))
    return [
        None if file is None else partial(read_scores, file, other, choose=choose)
        for file, other, choose in zip(files, beside, systems, strict=True)
    ]


def _for_each(option: str, files: Sequence[Path], count: int) -> Sequence[Path | None]:
    if len(files) not in (0, 1, count):
        raise UsageError(f"{option}: give it once, or once for each of {count} systems")
    return list(files) * count if len(files) == 1 else list(files) or [None] * count


def _told_apart(files: Sequence[Path]) -> tuple[str, ...]:
    """Stems; where two are alike, with their folder."""
    stems = [file.stem for file in files]
    if len(set(stems)) == len(stems):
        return tuple(stems)
    return tuple(f"{file.parent.name}/{file.stem}" for file in files)
