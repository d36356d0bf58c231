"""A list in which every pair stands once, as a matrix."""

from __future__ import annotations

import numpy as np

from monitor.errors import UsageError
from monitor.evaluation.reading.layout import natural
from monitor.evaluation.reading.pairs import Pairs
from monitor.evaluation.reading.scratch import scratch
from monitor.types import AnyArray, IntArray

__all__ = ["matrix_of"]


def matrix_of(pairs: Pairs) -> tuple[AnyArray, tuple[str, ...]]:
    """Scores, shape (T, N), and the speakers of their columns, in the order of their names.

    Raises:
        UsageError: a pair is missing or comes twice, or a score is not finite.
    """
    assert pairs.scores is not None
    order = sorted(range(len(pairs.speakers)), key=lambda i: natural(pairs.speakers[i]))
    column = np.empty(len(order), np.intp)
    column[order] = np.arange(len(order))
    speakers = tuple(pairs.speakers[i] for i in order)
    trials, count, lines = len(pairs.trials), len(speakers), len(pairs.scores)
    columns = column[pairs.speaker]

    def pair(row: int, at: int) -> str:
        return f"trial {pairs.trials[row]} with speaker {speakers[at]}"

    good = np.isfinite(pairs.scores)
    if not good.all():
        i = int(np.argmin(good))
        raise UsageError(
            f"{pairs.label}: the score of {pair(pairs.trial[i], columns[i])} is not a finite "
            "number: drop that trial"
        )
    # before any room is taken: two long columns of different names are no matrix
    if lines * 1000 < trials * count:
        raise UsageError(
            f"{pairs.label}: {lines} of {trials * count} pairs are there; score every trial "
            "with every enrolled speaker"
        )
    there = np.zeros((trials, count), bool)
    there[pairs.trial, columns] = True
    distinct = int(np.count_nonzero(there))
    if distinct < lines:
        i = _first_repeated(pairs.trial * count + columns)
        raise UsageError(
            f"{pairs.label}: {pair(pairs.trial[i], columns[i])} is listed twice "
            f"({lines - distinct} lines too many); keep one score for each pair"
        )
    if distinct < there.size:
        row, at = divmod(int(np.argmin(there)), count)
        raise UsageError(
            f"{pairs.label}: {there.size - distinct} of {there.size} pairs are missing (first: "
            f"{pair(row, at)}); score every trial with every speaker, each group by itself"
        )
    scores = scratch((trials, count))
    scores[pairs.trial, columns] = pairs.scores
    return scores, speakers


def _first_repeated(keys: IntArray) -> int:
    _, first = np.unique(keys, return_index=True)
    again = np.ones(len(keys), bool)
    again[first] = False
    return int(np.argmax(again))
