"""A reproducible random order of a score matrix's trials, whatever the order of its rows."""

from __future__ import annotations

import zlib

import numpy as np

from monitor.evaluation.scores.matrix import ScoreMatrix
from monitor.types import IntArray

__all__ = ["settled_order"]


def settled_order(matrix: ScoreMatrix) -> IntArray:
    """Rows speaker by speaker, the trials of each in an order drawn at random.

    What is drawn depends on the name of the speaker and on the names of its trials alone, so that
    systems go through the same trials; where trials have no names, on their scores.

    Args:
        matrix: the trials.

    Returns:
        shape (T,): rows, those of a speaker together, speakers in the order of their names.

    Example:
        >>> matrix = ScoreMatrix(np.eye(2)[[0, 1, 0, 1]], np.array([0, 1, 0, 1]))
        >>> matrix.target[settled_order(matrix)].tolist()
        [0, 0, 1, 1]
    """
    place = np.argsort(matrix.by_name)[matrix.target]
    order = _by_trial_name(matrix, place) if matrix.trial_names else _by_scores(matrix, place)
    ends = np.flatnonzero(np.diff(place[order], append=-1)) + 1
    for rows in np.split(order, ends[:-1]):
        name = matrix.speakers[matrix.target[rows[0]]]
        np.random.default_rng(zlib.crc32(name.encode())).shuffle(rows)
    return order


def _by_trial_name(matrix: ScoreMatrix, place: IntArray) -> IntArray:
    names = np.unique(np.array(matrix.trial_names), return_inverse=True)[1]
    return np.lexsort((names, place))


def _by_scores(matrix: ScoreMatrix, place: IntArray) -> IntArray:
    """By what the order of columns does not change; equal ones by all of their scores."""
    order = np.lexsort((matrix.tied, matrix.better, matrix.mated, place))
    keys = np.stack([key[order] for key in (place, matrix.mated, matrix.better, matrix.tied)])
    apart = (keys[:, 1:] != keys[:, :-1]).any(axis=0)
    for start, stop in _runs(apart):
        rows = order[start:stop]
        scores = np.asarray(matrix.scores[np.sort(rows)])[:, matrix.by_name]
        order[start:stop] = np.sort(rows)[np.lexsort(scores.T[::-1])]
    return order


def _runs(apart: IntArray) -> list[tuple[int, int]]:
    """First and one past the last place of every run of equal keys."""
    edges = np.concatenate([[0], np.flatnonzero(apart) + 1, [apart.size + 1]])
    long = np.flatnonzero(np.diff(edges) > 1)
    return [(int(edges[i]), int(edges[i + 1])) for i in long]
