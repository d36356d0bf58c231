"""Takes the comparisons within one group of speakers out of all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from monitor.errors import UsageError
from monitor.evaluation.scores.comparisons import Comparisons
from monitor.evaluation.scores.matrix import ScoreMatrix
from monitor.evaluation.scores.score_list import ScoreList
from monitor.evaluation.scores.scratch import scratch
from monitor.phrases import plural
from monitor.types import IntArray

__all__ = ["as_list", "within"]

_BLOCK = 1 << 20


def within(every: Comparisons, group_of: Mapping[str, str], group: str) -> Comparisons:
    """The comparisons of a group's trials with its own enrolled speakers.

    Args:
        every: of all.
        group_of: by name of the speaker, enrolled or not. An impostor whom nobody names goes with
            the enrolled speakers that it was compared with, where they are of one group.
        group: which.

    Raises:
        UsageError: fewer than two of its speakers are enrolled, or one kind of comparison is
            missing.

    Example:
        >>> scores = np.arange(16.0).reshape(4, 4)
        >>> matrix = ScoreMatrix(scores, np.arange(4), ("ann", "bob", "cid", "dot"))
        >>> gender = {"ann": "f", "bob": "m", "cid": "m", "dot": "f"}
        >>> within(Comparisons.all_of(matrix), gender, "f").matrix.scores.tolist()
        [[0.0, 3.0], [12.0, 15.0]]
    """
    columns = np.flatnonzero([group_of.get(name) == group for name in every.speakers])
    if columns.size < 2:
        raise UsageError(f"{plural(columns.size, 'enrolled speaker')}; two are needed")
    name = f"{every.name} {group}"
    matrix = None
    if every.matrix is not None:
        rows = np.flatnonzero(np.isin(every.matrix.target, columns))
        matrix = _part(every.matrix, rows, columns, name) if rows.size else None
    rest = None if every.rest is None else _rest(every.rest, group_of, group, columns)
    if rest is None:
        if matrix is None:
            raise UsageError("no trial is of its speakers")
        return Comparisons.all_of(matrix)
    listed = rest if matrix is None else _joined(as_list(matrix), rest)
    return Comparisons.of(listed, name)


def _part(matrix: ScoreMatrix, rows: IntArray, columns: IntArray, name: str) -> ScoreMatrix:
    scores = scratch((len(rows), len(columns)), matrix.scores.dtype)
    step = max(1, _BLOCK // matrix.population)
    for first in range(0, len(rows), step):
        scores[first : first + step] = matrix.scores[rows[first : first + step]][:, columns]
    names = tuple(matrix.speakers[column] for column in columns.tolist())
    trials = tuple(matrix.trial_names[row] for row in rows.tolist()) if matrix.trial_names else ()
    return ScoreMatrix(scores, np.searchsorted(columns, matrix.target[rows]), names, name, trials)


def _rest(
    rest: ScoreList, group_of: Mapping[str, str], group: str, columns: IntArray
) -> ScoreList | None:
    """Those of a list, their enrolled speakers numbered within the group."""
    met = np.isin(rest.speaker, columns)
    apart = np.zeros(len(rest.spoken), bool)
    apart[rest.trial[~met]] = True  # trials that met somebody of another group, or of none
    said = np.array([group_of.get(name, "") for name in rest.people], dtype=object)[rest.spoken]
    mine = (said == group) | ((said == "") & ~apart & (rest.hits == 0))
    which = met & mine[rest.trial]
    if not which.any():
        return None
    kept = rest.chosen(which)
    names = tuple(rest.speakers[column] for column in columns.tolist())
    return replace(kept, speaker=np.searchsorted(columns, kept.speaker), speakers=names)


def as_list(matrix: ScoreMatrix) -> ScoreList:
    """Every score of a matrix as a labelled comparison."""
    trials, count = matrix.scores.shape
    column = np.tile(np.arange(count), trials)
    return ScoreList(
        np.asarray(matrix.scores, np.float64).reshape(-1),
        column == np.repeat(matrix.target, count),
        np.repeat(np.arange(trials), count),
        column,
        matrix.owner,
        matrix.speakers,
        tuple(matrix.speakers[each] for each in matrix.tested.tolist()),
        matrix.trial_names,
    )


def _joined(one: ScoreList, other: ScoreList) -> ScoreList:
    people = tuple(dict.fromkeys((*one.people, *other.people)))
    place = {name: i for i, name in enumerate(people)}
    moved = np.array([place[name] for name in other.people], dtype=np.intp)
    return ScoreList(
        np.concatenate([one.scores, other.scores]),
        np.concatenate([one.mated, other.mated]),
        np.concatenate([one.trial, other.trial + len(one.spoken)]),
        np.concatenate([one.speaker, other.speaker]),
        np.concatenate([one.spoken, moved[other.spoken]]),
        one.speakers,
        people,
        (*one.trials, *other.trials) if one.trials and other.trials else (),
    )
