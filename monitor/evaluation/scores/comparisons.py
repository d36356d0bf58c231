"""Comparisons of trials with enrolled speakers, whether every trial met every speaker or not.

Two needs: ranks want trials that were compared with every enrolled speaker, their own among them (a
`ScoreMatrix`); figures of pooled scores (EER, Cllr, ZEBRA, D_sys, rates at few false positives)
want any `ScoredComparisons`, which say whether they are of one speaker: a `ScoreMatrix`, or a
`Comparisons` of a matrix, of a `ScoreList` or of both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from monitor.errors import UsageError
from monitor.evaluation.scores.matrix import ScoreMatrix
from monitor.evaluation.scores.score_list import ScoreList
from monitor.evaluation.scores.scratch import scratch
from monitor.evaluation.scores.speaker_bootstrap import drawn_by_name, leaving_out, resamples
from monitor.maths.bootstrap import REPLICATES
from monitor.types import FloatArray, IntArray

__all__ = ["Comparisons", "Usage", "pooled_leaving_out", "pooled_resamples"]

_BLOCK = 1 << 20


@dataclass(frozen=True)
class Usage:
    """Which comparisons there are, and which of them ranks can stand on.

    Attributes:
        target: comparisons of equal speakers.
        nontarget: of different speakers, those of impostor trials among them.
        impostor: comparisons of impostor trials.
        trials: how many recordings were compared.
        impostor_trials: those without a target: their speaker is not enrolled, or was not compared.
        ranked_trials: those that met every enrolled speaker, one of them their own.
    """

    target: int
    nontarget: int
    impostor: int
    trials: int
    impostor_trials: int
    ranked_trials: int


@dataclass(frozen=True)
class Comparisons:
    """Everything that was compared: what ranks stand on, and what is beside it.

    Attributes:
        speakers: the N enrolled speakers.
        matrix: trials that met all of them, one of them their own; None where there is none.
        rest: all other comparisons, or None.
        name: of the system.

    Raises:
        UsageError: no comparison of equal speakers, or none of different ones.

    Example:
        >>> one = np.array([True, False, False])
        >>> row = np.array([0, 0, 1])
        >>> listed = ScoreList(np.array([0.9, 0.2, 0.4]), one, row, np.array([0, 1, 0]),
        ...                    np.array([0, 1]), ("ann", "bob"), ("ann", "eve"))
        >>> found = Comparisons.of(listed, "mine")
        >>> found.matrix.scores.tolist(), found.rest.scores.tolist()
        ([[0.9, 0.2]], [0.4])
        >>> found.usage.impostor_trials, found.people
        (1, ('ann', 'eve'))
    """

    speakers: tuple[str, ...]
    matrix: ScoreMatrix | None
    rest: ScoreList | None = None
    name: str = "scores"

    def __post_init__(self) -> None:
        if not self.mated.size:
            raise UsageError(f"{self.name}: no comparison is of one speaker: check the names")
        if not self.non_mated_counts.sum():
            raise UsageError(
                f"{self.name}: no comparison is of two speakers: nothing to tell apart"
            )

    @classmethod
    def of(cls, listed: ScoreList, name: str = "scores") -> Comparisons:
        """Take the trials that ranks can stand on out of a list."""
        whole = listed.complete & (len(listed.speakers) > 1)
        if not whole.any():
            return cls(listed.speakers, None, listed, name)
        inside = whole[listed.trial]
        row = (np.cumsum(whole) - 1)[listed.trial[inside]]
        column, mated = listed.speaker[inside], listed.mated[inside]
        scores = scratch((int(whole.sum()), len(listed.speakers)))
        scores[row, column] = listed.scores[inside]
        target = np.empty(len(scores), dtype=np.intp)
        target[row[mated]] = column[mated]
        called = tuple(each for each, ranked in zip(listed.trials, whole, strict=False) if ranked)
        matrix = ScoreMatrix(scores, target, listed.speakers, name, called)
        return cls(listed.speakers, matrix, None if inside.all() else listed.chosen(~inside), name)

    @classmethod
    def all_of(cls, matrix: ScoreMatrix) -> Comparisons:
        """A matrix, with nothing beside it."""
        return cls(matrix.speakers, matrix, None, matrix.name)

    @cached_property
    def people(self) -> tuple[str, ...]:
        """Whose trials there are: S names, those of `ScoreMatrix.tested` first."""
        ranked = () if self.matrix is None else self.matrix.tested.tolist()
        first = [self.speakers[column] for column in ranked]
        return tuple(dict.fromkeys([*first, *(self.rest.people if self.rest else ())]))

    @cached_property
    def _whose(self) -> IntArray:
        """Of each comparison beside the matrix."""
        if self.rest is None:
            return np.zeros(0, dtype=np.intp)
        place = {name: i for i, name in enumerate(self.people)}
        owner = np.array([place[name] for name in self.rest.people], dtype=np.intp)
        return owner[self.rest.spoken[self.rest.trial]]

    @cached_property
    def mated(self) -> FloatArray:
        """As `ScoredComparisons`."""
        ranked = np.zeros(0) if self.matrix is None else self.matrix.mated
        if self.rest is None:
            return ranked
        return np.concatenate([ranked, np.asarray(self.rest.scores[self.rest.mated], np.float64)])

    @cached_property
    def owner(self) -> IntArray:
        """As `ScoredComparisons`."""
        ranked = np.zeros(0, dtype=np.intp) if self.matrix is None else self.matrix.owner
        if self.rest is None:
            return ranked
        return np.concatenate([ranked, self._whose[self.rest.mated]])

    @cached_property
    def non_mated_counts(self) -> IntArray:
        """As `ScoredComparisons`."""
        counts = np.zeros(len(self.people), dtype=np.intp)
        if self.matrix is not None:
            counts[: len(self.matrix.tested)] = self.matrix.non_mated_counts
        if self.rest is not None:
            counts += np.bincount(self._whose[~self.rest.mated], minlength=len(counts))
        return counts

    def non_mated_blocks(self) -> Iterator[tuple[IntArray, FloatArray]]:
        """As `ScoredComparisons`."""
        if self.matrix is not None:
            yield from self.matrix.non_mated_blocks()
        if self.rest is None:
            return
        others = np.flatnonzero(~self.rest.mated)
        for first in range(0, len(others), _BLOCK):
            part = others[first : first + _BLOCK]
            yield self._whose[part], np.asarray(self.rest.scores[part], np.float64)[:, None]

    @cached_property
    def usage(self) -> Usage:
        """How many comparisons there are of each kind."""
        ranked = 0 if self.matrix is None else self.matrix.trials
        lost = strange = more = 0
        if self.rest is not None:
            lone = self.rest.hits == 0
            lost, more = int(lone.sum()), len(self.rest.spoken)
            strange = int(lone[self.rest.trial].sum())
        target, others = self.mated.size, int(self.non_mated_counts.sum())
        return Usage(target, others, strange, ranked + more, lost, ranked)


def pooled_resamples(
    pool: Comparisons | ScoreMatrix, replicates: int = REPLICATES, seed: int = 0
) -> FloatArray:
    """How often each person counts in each resample of a pool: as `resamples`.

    People with a mated comparison are drawn among themselves and impostors among themselves, so
    that every resample has as many of both. A resample without any non-mated comparison, as a list
    of few can have, is the whole list instead.

    Returns:
        shape (B, S).
    """
    if isinstance(pool, ScoreMatrix):
        return resamples(pool, replicates, seed)
    weights = np.zeros((replicates, len(pool.people)))
    known = np.unique(pool.owner)
    others = np.setdiff1d(np.arange(len(pool.people)), known)
    for start, group in enumerate((known, others)):
        if group.size:
            names = [pool.people[i] for i in group.tolist()]
            weights[:, group] = drawn_by_name(names, replicates, seed + start)
    weights[weights @ pool.non_mated_counts == 0] = 1.0
    return weights


def pooled_leaving_out(pool: Comparisons | ScoreMatrix) -> FloatArray:
    """`leaving_out` of the people of a pool, where comparisons of both kinds are left without them.

    Returns:
        shape (J, S).
    """
    if isinstance(pool, ScoreMatrix):
        return leaving_out([pool.speakers[column] for column in pool.tested.tolist()])
    weights = leaving_out(pool.people)
    mated = np.bincount(pool.owner, minlength=len(pool.people))
    return np.asarray(weights[(weights @ mated > 0) & (weights @ pool.non_mated_counts > 0)])
