"""The rank of every candidate in a row of scores, not only that of the true speaker."""

from __future__ import annotations

import numpy as np

from monitor.errors import UsageError
from monitor.types import FloatArray, IntArray

__all__ = ["all_rank_bounds"]


def all_rank_bounds(scores: FloatArray) -> tuple[IntArray, IntArray]:
    """`rank_bounds` of every column at once, by one sort of each row.

    Args:
        scores: shape (n, N), higher is more alike.

    Returns:
        ``better`` and ``tied``, each of shape (n, N): how many candidates score strictly higher
        than this one, and how many share its score, itself included.

    Raises:
        UsageError: not a matrix, or a score is not a number.

    Example:
        >>> better, tied = all_rank_bounds(np.array([[0.9, 0.4, 0.4]]))
        >>> better.tolist(), tied.tolist()
        ([[0, 1, 1]], [[1, 2, 2]])
    """
    scores = np.asarray(scores)
    if scores.ndim != 2 or np.isnan(scores).any():
        raise UsageError("ranks need a matrix of scores, trials x speakers, without gaps")
    order = np.argsort(scores, axis=1)
    rows, columns = scores.shape
    better, tied = np.empty((2, rows, columns), dtype=np.intp)
    place = np.arange(columns)
    ordered = np.take_along_axis(scores, order, axis=1)
    apart = ordered[:, 1:] != ordered[:, :-1]
    if apart.all():
        np.put_along_axis(better, order, columns - 1 - place[None], axis=1)
        tied[:] = 1
        return better, tied
    edge = np.ones((rows, 1), dtype=bool)
    first = np.where(np.hstack([edge, apart]), place, 0)
    last = np.where(np.hstack([apart, edge]), place, columns - 1)
    first = np.maximum.accumulate(first, axis=1)
    last = np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]
    np.put_along_axis(better, order, columns - 1 - last, axis=1)
    np.put_along_axis(tied, order, last - first + 1, axis=1)
    return better, tied
