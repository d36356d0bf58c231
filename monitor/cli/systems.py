"""The files of an evaluation, brought together system by system."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from monitor.errors import UsageError
from monitor.phrases import plural

if TYPE_CHECKING:
    from monitor.evaluation.input.evaluation_input import EvaluationInput

__all__ = ["dev_of", "systems_of"]


def systems_of(
    scores: Sequence[Path],
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
    files = scores or trials
    if names and len(names) != len(files):
        raise UsageError(f"--names: {len(names)} names for {plural(len(files), 'system')}")
    called = tuple(names) or _told_apart(files)
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
            file,
            other,
            name=name,
            unmated=unmated,
            enrolment_labels=models,
            scoring=scoring,
        )
        for file, other, models, name in zip(
            files,
            _for_each("--labels", labels, len(files)),
            _for_each("--enrolment-labels", enrolment_labels, len(files)),
            called,
            strict=True,
        )
    ]


def dev_of(
    count: int, dev: Sequence[Path], labels: Sequence[Path]
) -> list[Callable[[], EvaluationInput] | None]:
    """How the development scores of each system are read, if it has any."""
    from monitor.evaluation.input.scores import read_scores

    if labels and not dev:
        raise UsageError("--dev-labels goes with --dev")
    files = _for_each("--dev", dev, count)
    beside = _for_each("--dev-labels", labels, count)
    return [
        None if file is None else partial(read_scores, file, other)
        for file, other in zip(files, beside, strict=True)
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
