"""Trials x speakers: the similarity of every trial with every enrolled speaker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from monitor.errors import UsageError
from monitor.evaluation.input.layout import natural
from monitor.maths.ranks import rank_bounds
from monitor.phrases import plural
from monitor.types import AnyArray, BoolArray, FloatArray, IntArray

__all__ = ["ScoreMatrix"]

_BLOCK = 1 << 20
"""Scores taken at a time: a matrix on disk never enters memory whole."""


@dataclass(frozen=True)
class ScoreMatrix:
    """Scores of T trials against N speakers, and who really spoke.

    The score of a trial with its own speaker is mated, all others of its row are non-mated. Trials
    of one speaker belong together in their order: the stream order of longitudinal figures.

    Attributes:
        scores: shape (T, N), real numbers or a memory map of them; higher is more alike.
        target: shape (T,), the column of each trial's speaker.
        speakers: the N names of the columns.
        name: of the system that gave the scores.
        trial_names: of the T rows, all different; empty where they have none.

    Raises:
        UsageError: shapes that do not fit, fewer than two speakers, no trial, a repeated name, or a
            target outside the columns. That scores are finite is checked as they are read.

    Example:
        >>> matrix = ScoreMatrix(np.array([[0.9, 0.1], [0.4, 0.6]]), np.array([0, 1]))
        >>> matrix.mated.tolist(), matrix.better.tolist()
        ([0.9, 0.6], [0, 0])
    """

    scores: AnyArray
    target: IntArray
    speakers: tuple[str, ...] = ()
    name: str = "scores"
    trial_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.scores.ndim != 2 or self.scores.dtype.kind not in "fiu":
            raise UsageError(f"{self.name}: scores are a matrix of numbers, trials x speakers")
        trials, count = self.scores.shape
        if count < 2:
            raise UsageError(
                f"{self.name}: {plural(count, 'speaker')}; a comparison needs at least two"
            )
        if trials == 0:
            raise UsageError(f"{self.name}: there is no trial in it")
        target = np.asarray(self.target)
        if target.shape != (trials,) or target.dtype.kind not in "iu":
            raise UsageError(f"{self.name}: give one target column for each of {trials} trials")
        if target.min() < 0 or target.max() >= count:
            raise UsageError(f"{self.name}: a target lies outside the {plural(count, 'column')}")
        names = self.speakers or tuple(str(column) for column in range(count))
        if len(names) != count or len(set(names)) != count:
            raise UsageError(f"{self.name}: give {count} different names, one for each column")
        if self.trial_names and len(set(self.trial_names)) != trials:
            raise UsageError(f"{self.name}: give {trials} different names, one for each trial")
        object.__setattr__(self, "target", target.astype(np.intp))
        object.__setattr__(self, "speakers", names)

    @property
    def trials(self) -> int:
        """T: how many trials there are, each with one mated score."""
        return len(self.target)

    @property
    def population(self) -> int:
        """N: how many speakers each trial is compared with."""
        return int(self.scores.shape[1])

    @property
    def ceiling_bits(self) -> float:
        """``log2 N``: the most that any trial can disclose."""
        return float(np.log2(self.population))

    @cached_property
    def tested(self) -> IntArray:
        """Columns of the speakers that have at least one trial, ascending: shape (S,)."""
        return np.unique(self.target)

    @cached_property
    def owner(self) -> IntArray:
        """Index of each trial's speaker into `tested`: shape (T,)."""
        return np.searchsorted(self.tested, self.target)

    @cached_property
    def by_name(self) -> IntArray:
        """All columns in the order of their names, numbers by their size: shape (N,)."""
        names = self.speakers
        return np.array(sorted(range(len(names)), key=lambda i: natural(names[i])), dtype=np.intp)

    @property
    def named_trials(self) -> frozenset[tuple[str, str]]:
        """Speaker and name of each trial; empty where trials have no names."""
        spoken = (self.speakers[column] for column in self.target.tolist())
        return frozenset(zip(spoken, self.trial_names, strict=False))

    def blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        """Rows in order, some megabytes at a time, as float64.

        Raises:
            UsageError: a score is not finite; its trial is named.
        """
        rows = max(1, _BLOCK // self.population)
        for first in range(0, self.trials, rows):
            part = slice(first, min(first + rows, self.trials))
            scores = np.asarray(self.scores[part], dtype=np.float64)
            if not np.isfinite(scores).all():
                row, column = np.argwhere(~np.isfinite(scores))[0].tolist()
                raise UsageError(
                    f"{self.name}: the score of trial {first + row + 1} with speaker "
                    f"{self.speakers[column]} is not a finite number: drop that trial"
                )
            yield part, scores

    @cached_property
    def non_mated_counts(self) -> IntArray:
        """How many non-mated scores each tested speaker's trials have: shape (S,)."""
        return np.bincount(self.owner) * (self.population - 1)

    def non_mated_blocks(self) -> Iterator[tuple[IntArray, FloatArray]]:
        """As `blocks`, without the mated score of each row.

        Yields:
            index into `tested` of each row's speaker, shape (rows,), and scores (rows, N - 1).
        """
        for part, scores in self.blocks():
            others = self.others(part)
            yield self.owner[part], scores[others].reshape(len(scores), -1)

    def others(self, part: slice) -> BoolArray:
        """Where the non-mated scores of these rows stand: shape (rows, N)."""
        target = self.target[part]
        others = np.ones((len(target), self.population), dtype=bool)
        others[np.arange(len(target)), target] = False
        return others

    @cached_property
    def mated(self) -> FloatArray:
        """Score of each trial with its own speaker: shape (T,), float64."""
        return self._first_pass[0]

    @cached_property
    def better(self) -> IntArray:
        """How many speakers score strictly higher than the trial's own: shape (T,)."""
        return self._first_pass[1]

    @cached_property
    def tied(self) -> IntArray:
        """How many share its score, itself included: shape (T,)."""
        return self._first_pass[2]

    @cached_property
    def _first_pass(self) -> tuple[FloatArray, IntArray, IntArray]:
        mated = np.empty(self.trials)
        better, tied = np.empty((2, self.trials), dtype=np.intp)
        for part, scores in self.blocks():
            target = self.target[part]
            mated[part] = scores[np.arange(len(scores)), target]
            better[part], tied[part] = rank_bounds(scores, target)
        return mated, better, tied
