"""Some of the trials of a score matrix, or some of its speakers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from monitor.evaluation.scores.matrix import ScoreMatrix
from monitor.types import BoolArray

__all__ = ["among", "of_rows", "without"]


def of_rows(matrix: ScoreMatrix, rows: BoolArray) -> ScoreMatrix:
    """The trials where ``rows``, shape (T,), is true."""
    if rows.all():
        return matrix
    names = tuple(np.array(matrix.trial_names)[rows].tolist()) if matrix.trial_names else ()
    scores, target = matrix.scores[rows], matrix.target[rows]
    return ScoreMatrix(scores, target, matrix.speakers, matrix.name, names)


def without(matrix: ScoreMatrix, names: frozenset[str]) -> ScoreMatrix | None:
    """The trials of everybody but these, who stay candidates; None where nobody else is."""
    rows = np.array([matrix.speakers[column] not in names for column in matrix.target])
    return of_rows(matrix, rows) if rows.any() else None


def among(matrix: ScoreMatrix, speakers: Sequence[str], tested: Sequence[str]) -> ScoreMatrix:
    """The trials of those who are tested, compared with these speakers alone, in this order.

    Example:
        >>> matrix = ScoreMatrix(np.eye(3), np.arange(3), ("a", "b", "c"))
        >>> among(matrix, ("c", "a"), ("a",)).scores.tolist()
        [[0.0, 1.0]]
    """
    column = {name: i for i, name in enumerate(matrix.speakers)}
    chosen, asked = [column[name] for name in speakers], {column[name] for name in tested}
    some = of_rows(matrix, np.isin(matrix.target, sorted(asked)))
    place = np.full(matrix.population, -1)
    place[chosen] = np.arange(len(chosen))
    return ScoreMatrix(
        np.asarray(some.scores)[:, chosen], place[some.target], tuple(speakers), some.name,
        some.trial_names,
    )  # fmt: skip
