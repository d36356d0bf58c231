"""Matches labels with the columns of a score matrix: the column of each trial's speaker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from monitor.errors import UsageError
from monitor.evaluation.input.labels import Labels
from monitor.evaluation.input.layout import natural
from monitor.phrases import plural
from monitor.types import AnyArray, IntArray

__all__ = ["RawScores", "targets"]


@dataclass(frozen=True)
class RawScores:
    """What a file of scores says, before anything fits together.

    Attributes:
        scores: shape (T, N).
        speakers: names of the columns, empty where they have none.
        trials: names of the rows, empty where they have none.
        labels: who spoke, None where nobody says.
    """

    scores: AnyArray
    speakers: tuple[str, ...] = ()
    trials: tuple[str, ...] = ()
    labels: Labels | None = None


def targets(
    raw: RawScores, labels: Labels, label: str, notes: list[str]
) -> tuple[IntArray, tuple[str, ...], Sequence[str]]:
    """The column of each trial, the names of the columns, and who spoke.

    Args:
        raw: scores of shape (T, N).
        labels: who spoke.
        label: how messages call the scores.
        notes: what a person should know is added to them.

    Returns:
        shape (T,), -1 where the speaker is not among the columns; N names, or none; the name of
        each trial's speaker, empty where nobody says, or no names at all.

    Raises:
        UsageError: labels and scores do not fit together.
    """
    trials, count = raw.scores.shape
    if raw.speakers and len(raw.speakers) != count:
        raise UsageError(f"{label}: {len(raw.speakers)} names for {plural(count, 'column')}")
    if labels.several:
        raise UsageError(
            f"{labels.label}: {labels.several}; say whose enrolments they are, or give the scores "
            "as a list of pairs"
        )
    names = _in_order(raw, labels, label, notes)
    said = trials if names and raw.trials and labels.trials else len(names)
    if labels.columns is not None:
        said = len(labels.columns)
    if said != trials:
        turned = f"; {label} may be turned, trials are its rows" if said == count else ""
        raise UsageError(
            f"{labels.label} has {plural(said, 'label')} for the {plural(trials, 'trial')} "
            f"of {label}{turned}"
        )
    columns, speakers = labels.columns, raw.speakers
    if columns is None and not speakers:
        columns, speakers = _numbered(names, count, label, labels.label, notes)
    if columns is not None:
        outside = np.flatnonzero((columns < 0) | (columns >= count))
        if outside.size:
            i = int(outside[0])
            raise UsageError(
                f"{labels.label}: label {columns[i]} of trial {i + 1} is no column; they go from "
                f"0 to {count - 1}"
            )
        return columns, speakers, ()
    index = {name: i for i, name in enumerate(speakers)}
    if len(index) < count:
        again = next(name for i, name in enumerate(speakers) if index[name] != i)
        raise UsageError(f"{label}: speaker {again} has two columns; merge them")
    return np.fromiter((index.get(n, -1) for n in names), np.intp, len(names)), speakers, names


def _in_order(raw: RawScores, labels: Labels, label: str, notes: list[str]) -> Sequence[str]:
    """The speaker of each trial, in the order of the trials; empty where nobody is enrolled."""
    if labels.known and not raw.trials:
        raise UsageError(
            f"{label} names no trial, so {labels.label} cannot be matched with its rows: give one "
            "speaker for each row, in their order"
        )
    if labels.trials and not raw.trials:
        notes.append(f"rows have no names: labels are taken in the order of {labels.label}")
    if not (raw.trials and labels.trials):
        return labels.names
    found = labels.by_trial()
    known = labels.known or found.keys()
    missing = [name for name in raw.trials if name not in known]
    if missing:
        raise UsageError(
            f"{labels.label} does not say who spoke in {len(missing)} of {len(raw.trials)} trials "
            f"(first: {missing[0]}); add them"
        )
    if len(set(raw.trials)) < len(raw.trials):
        seen = sorted(raw.trials)
        again = next(a for a, b in pairwise(seen) if a == b)
        raise UsageError(f"trial {again} has two rows of scores; keep one")
    spare = len(known) - len(raw.trials)
    if spare:
        notes.append(f"{labels.label} speaks of {plural(spare, 'trial')} without a score")
    return [found.get(name, "") for name in raw.trials]


def _numbered(
    names: Sequence[str], count: int, label: str, source: str, notes: list[str]
) -> tuple[IntArray, tuple[str, ...]]:
    """Columns without names: numbers of columns, or exactly as many names in their order."""
    if all(name.isdecimal() and len(name) < len(str(count)) + 1 for name in names):
        columns = np.array([int(name) for name in names], np.int64)
        if columns.max(initial=0) < count:
            return columns, ()
    order = sorted(set(names))
    if len(order) != count:
        raise UsageError(
            f"{label} names no column and {source} has {plural(len(order), 'speaker')} for "
            f"its {count} "
            "columns: give column numbers from 0, or a table with a header"
        )
    if order != sorted(order, key=natural):
        raise UsageError(
            f"{label} names no column, and the speakers of {source} sort differently as numbers "
            "and as words: give column numbers from 0, or a table with a header"
        )
    notes.append(f"columns have no names: taken for {order[0]} to {order[-1]}, in this order")
    index = {name: i for i, name in enumerate(order)}
    return np.fromiter((index[name] for name in names), np.int64, len(names)), tuple(order)
