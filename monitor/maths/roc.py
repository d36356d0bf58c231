"""Counts of mated and non-mated scores, from which every figure of a ROC follows.

All non-mated scores between two neighbouring mated ones move a threshold's false accepts and
nothing else. So every figure of a ROC needs only counts: at each distinct mated score, and between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from monitor.errors import UsageError
from monitor.types import FloatArray, IntArray

__all__ = ["Counts", "cell_counts", "count_scores", "cuts_around", "scores_of"]

_Doubles: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Counts:
    """How many scores of each kind lie in each cell, cells in ascending order of score.

    Attributes:
        cuts: shape (G - 1,), where a new cell begins: cell g holds ``cuts[g - 1] <= s < cuts[g]``.
        mated: shape (..., G), whole numbers as float64; leading axes are resamples.
        non_mated: shape (..., G).
    """

    cuts: FloatArray
    mated: FloatArray
    non_mated: FloatArray

    @property
    def mated_total(self) -> _Doubles:
        """Shape (...)."""
        return np.asarray(self.mated.sum(axis=-1))

    @property
    def non_mated_total(self) -> _Doubles:
        """Shape (...)."""
        return np.asarray(self.non_mated.sum(axis=-1))


def cuts_around(levels: FloatArray) -> _Doubles:
    """Cuts that give each level a cell of its own, and one to each gap between them.

    Args:
        levels: shape (K,), different, ascending.

    Returns:
        shape (2 K,): cell 2 k + 1 holds exactly the scores equal to level k.
    """
    return np.stack([levels, np.nextafter(levels, np.inf)], axis=-1).ravel()


def cell_counts(ordered: FloatArray, cuts: FloatArray) -> IntArray:
    """How many scores lie in each cell.

    Args:
        ordered: shape (n,), ascending.
        cuts: shape (G - 1,), ascending.

    Returns:
        shape (G,).

    Example:
        >>> cell_counts(np.array([0.1, 0.2, 0.2, 0.9]), cuts_around(np.array([0.2]))).tolist()
        [1, 2, 1]
    """
    if len(ordered) < len(cuts):  # the fewer look themselves up among the more
        places = np.searchsorted(cuts, ordered, side="right")
        return np.asarray(np.bincount(places, minlength=len(cuts) + 1))
    return np.diff(np.searchsorted(ordered, cuts), prepend=0, append=len(ordered))


def count_scores(mated: ArrayLike, non_mated: ArrayLike) -> Counts:
    """Count non-mated scores at and between the mated ones.

    Args:
        mated: any shape, scores of the same speaker.
        non_mated: any shape, scores of different speakers.

    Raises:
        UsageError: one of the two is empty, or a score is not finite.

    Example:
        >>> counts = count_scores([0.5, 0.9], [0.1, 0.5, 0.6, 0.7])
        >>> counts.mated.tolist(), counts.non_mated.tolist()
        ([0.0, 1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 2.0, 0.0, 0.0])
    """
    own, others = scores_of(mated, non_mated)
    own, others = np.sort(own), np.sort(others)
    cuts = cuts_around(own[np.concatenate([[True], own[1:] > own[:-1]])])
    return Counts(
        cuts,
        cell_counts(own, cuts).astype(np.float64),
        cell_counts(others, cuts).astype(np.float64),
    )


def scores_of(mated: ArrayLike, non_mated: ArrayLike) -> tuple[_Doubles, _Doubles]:
    """Both kinds of scores, flat, as float64.

    Raises:
        UsageError: one of the two is empty, or a score is not finite.
    """
    own = np.asarray(mated, dtype=np.float64).ravel()
    others = np.asarray(non_mated, dtype=np.float64).ravel()
    if not own.size or not others.size:
        raise UsageError("give at least one mated and one non-mated score")
    if not (np.isfinite(own).all() and np.isfinite(others).all()):
        raise UsageError("a score is not finite: drop such trials")
    return own, others
