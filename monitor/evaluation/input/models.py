"""Merges several enrolments of one speaker into one score: mean, maximum or their own columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from monitor.errors import UsageError
from monitor.evaluation.input.labels import Labels
from monitor.evaluation.input.layout import natural
from monitor.evaluation.scores.scratch import scratch
from monitor.phrases import plural
from monitor.types import AnyArray

__all__ = ["SCORINGS", "merged_columns", "merged_note", "owners_of"]

SCORINGS = ("average", "max")
"""How several enrolments of one speaker are compared with a trial."""

_BLOCK = 1 << 20


def owners_of(models: Sequence[str], labels: Labels, given: Labels | None) -> tuple[str, ...]:
    """The speaker of each enrolled model.

    Args:
        models: their names.
        labels: of the trials; an utt2spk may speak of the enrolments as well.
        given: of the models, where it is said apart.

    Raises:
        UsageError: one is not among those given.
    """
    if given is not None and given.trials:
        known = given.by_trial()
        missing = [name for name in models if name not in known]
        if missing:
            raise UsageError(
                f"{given.label} does not say whose {len(missing)} of {len(models)} enrolments are "
                f"(first: {missing[0]}); add them"
            )
        return tuple(known[name] for name in models)
    if given is not None:
        if len(given.names) != len(models):
            raise UsageError(
                f"{given.label} names {plural(len(given.names), 'speaker')} for "
                f"{len(models)} enrolments"
            )
        return given.names
    if labels.known or not labels.trials:  # a trial list, or no names of trials
        return tuple(models)
    said = dict(zip(labels.trials, labels.names, strict=True))
    utterances = said.keys() - set(labels.names)
    return tuple(said[name] for name in models) if utterances >= set(models) else tuple(models)


def merged_note(models: int, speakers: int, scoring: str) -> str:
    """What was done with several enrolments."""
    how = "the mean of" if scoring == "average" else "the largest of"
    return f"{models} enrolments of {speakers} speakers: a speaker's score is {how} theirs"


def merged_columns(
    scores: AnyArray, owners: Sequence[str], scoring: str
) -> tuple[AnyArray, tuple[str, ...]]:
    """A matrix of trials x enrolments as one of trials x speakers.

    Args:
        scores: shape (T, M).
        owners: the speaker of each column.
        scoring: ``"average"`` or ``"max"``.

    Returns:
        shape (T, N), and the names of the N speakers in their order.

    Example:
        >>> made, names = merged_columns(np.array([[0.25, 0.75, 0.5]]), ["a", "a", "b"], "max")
        >>> made.tolist(), names
        ([[0.75, 0.5]], ('a', 'b'))
    """
    speakers = tuple(sorted(set(owners), key=natural))
    place = {name: i for i, name in enumerate(speakers)}
    owner = np.array([place[name] for name in owners])
    order = np.argsort(owner, kind="stable")
    starts = np.searchsorted(owner[order], np.arange(len(speakers)))
    many = np.diff(starts, append=len(owner))
    made = scratch((len(scores), len(speakers)))
    step = max(1, _BLOCK // len(owner))
    for first in range(0, len(scores), step):
        block = np.asarray(scores[first : first + step], dtype=np.float64)[:, order]
        made[first : first + step] = (
            np.maximum.reduceat(block, starts, axis=1)
            if scoring == "max"
            else np.add.reduceat(block, starts, axis=1) / many
        )
    return made, speakers
