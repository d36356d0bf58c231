"""Counts of mated and non-mated scores, from which every figure of a ROC follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from monitor.errors import UsageError
from monitor.types import FloatArray, IntArray

# --------------------------------------------------------------------------------------------- roc
# All non-mated scores between two neighbouring mated ones move a threshold's false accepts and
# nothing else. So every figure of a ROC needs only counts: at each distinct mated score, and
# between.

_Doubles: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Counts:
    """How many scores of each kind lie in each of G cells, in ascending order of score.

    Cell g holds ``cuts[g - 1] <= s < cuts[g]``. Counts are whole numbers as float64, shape (...,
    G); leading axes are resamples.
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
    """Cuts that give each of K ascending levels a cell of its own, and one to each gap between.

    Shape (2 K,): cell 2 k + 1 holds exactly the scores equal to level k.
    """
    return np.stack([levels, np.nextafter(levels, np.inf)], axis=-1).ravel()


def cell_counts(ordered: FloatArray, cuts: FloatArray) -> IntArray:
    """How many of the ordered scores lie in each cell between ascending cuts, shape (G,).

    Example:
        >>> cell_counts(np.array([0.1, 0.2, 0.2, 0.9]), cuts_around(np.array([0.2]))).tolist()
        [1, 2, 1]
    """
    if len(ordered) < len(cuts):  # the fewer look themselves up among the more
        places = np.searchsorted(cuts, ordered, side="right")
        return np.asarray(np.bincount(places, minlength=len(cuts) + 1))
    return np.diff(np.searchsorted(ordered, cuts), prepend=0, append=len(ordered))


def count_scores(mated: ArrayLike, non_mated: ArrayLike) -> Counts:
    """Count non-mated scores at and between the mated ones, both of any shape.

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
    return Counts(cuts, *(cell_counts(each, cuts).astype(np.float64) for each in (own, others)))


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


# --------------------------------------------------------------------------------------------- pav
# Pool adjacent violators: isotonic regression of the share of mated scores on the score.
#
# Ayer et al., 1955. Equal scores are one cell, so ties are pooled: tools that put the mated ones of
# a tie last read perfect separation where all scores are equal. The blocks are also the edges of
# the ROC's convex hull, and what an ideal calibration would say (Brummer and du Preez, 2013).

_PASSES = 64
"""Passes over all cells at once before the stack: noise is gone after a few."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks of cells that share one calibrated value, of all replicates one after the other.

    Shape (K,): how many mated and non-mated scores are in each, and which of so many replicates it
    belongs to, ascending; blocks of one are in ascending order of score.
    """

    mated: FloatArray
    non_mated: FloatArray
    replicate: IntArray
    replicates: int

    def sums(self, values: FloatArray) -> _Doubles:
        """Sum of one number for each block, by replicate: shape (replicates,)."""
        return np.asarray(np.bincount(self.replicate, values, self.replicates), dtype=np.float64)

    @property
    def odds(self) -> _Doubles:
        """Mated to non-mated of each block, ascending within a replicate: 0 to infinity."""
        with np.errstate(divide="ignore"):
            return np.asarray(self.mated / self.non_mated)


def pool(mated: FloatArray, non_mated: FloatArray) -> Blocks:
    """Pool neighbouring cells until the share of mated scores rises from block to block.

    Of counts (..., G) in ascending order of score; leading axes are replicates. Whole numbers are
    compared exactly; cells in which both are zero are left out.

    Example:
        >>> blocks = pool(np.array([0.0, 2.0, 1.0, 5.0]), np.array([9.0, 1.0, 3.0, 0.0]))
        >>> blocks.mated.tolist(), blocks.non_mated.tolist()
        ([0.0, 3.0, 5.0], [9.0, 4.0, 0.0])
    """
    mated, non_mated = np.atleast_2d(mated), np.atleast_2d(non_mated)
    mated, non_mated = (x.reshape(-1, x.shape[-1]) for x in (mated, non_mated))
    replicates = len(mated)
    owner, column = np.nonzero((mated > 0) | (non_mated > 0))
    hits, misses = (np.asarray(x[owner, column], np.float64) for x in (mated, non_mated))
    for _ in range(_PASSES):
        # share i >= share i + 1, without the rounding of a division
        starts = np.ones(len(hits), dtype=bool)
        starts[1:] = (hits[:-1] * misses[1:] < hits[1:] * misses[:-1]) | (owner[:-1] != owner[1:])
        first = np.flatnonzero(starts)
        if len(first) == len(hits):
            return Blocks(hits, misses, owner, replicates)
        hits, misses = np.add.reduceat(hits, first), np.add.reduceat(misses, first)
        owner = owner[first]
    return _stacked(hits, misses, owner, replicates)


def _stacked(hits: _Doubles, misses: _Doubles, owner: IntArray, replicates: int) -> Blocks:
    """One cell after the other: where every pass pools only a few."""
    stack: list[tuple[float, float, int]] = []
    for hit, miss, number in zip(hits.tolist(), misses.tolist(), owner.tolist(), strict=True):
        while stack and stack[-1][2] == number and stack[-1][0] * miss >= hit * stack[-1][1]:
            last = stack.pop()
            hit, miss = hit + last[0], miss + last[1]
        stack.append((hit, miss, number))
    done = np.array(stack)
    return Blocks(done[:, 0], done[:, 1], done[:, 2].astype(np.intp), replicates)


# -------------------------------------------------------------------------------------------- tail
# Collects the highest scores of a sample too large to keep, to resample and count among them.
#
# An error rate at a low false acceptance depends on few non-mated scores; each has an owner, a
# speaker, whose weight in a bootstrap replicate is the score's.


@dataclass(frozen=True, slots=True)
class Tail:
    """The highest of `total` scores in descending order; all others lie below the last.

    Shape (K,): whose score each is, and for how many equal ones of that owner it stands.
    """

    values: FloatArray
    owner: IntArray
    counts: IntArray
    total: int

    @property
    def whole(self) -> bool:
        """Whether no score was left out."""
        return int(self.counts.sum()) == self.total

    def first_of(self, values: FloatArray) -> IntArray:
        """Index of the first entry that is not strictly above each value."""
        return np.searchsorted(-self.values, -np.asarray(values), side="left")


class Highest:
    """Collects at least so many of the highest scores of S owners, in memory for about twice that.

    What equals the last value is all counted.

    Example:
        >>> highest = Highest(keep=2, owners=2)
        >>> highest.add(np.array([[0.1, 0.9], [0.5, 0.5]]), np.array([0, 1]))
        >>> tail = highest.tail()
        >>> tail.values.tolist(), tail.owner.tolist(), tail.counts.tolist(), tail.total
        ([0.9, 0.5], [0, 1], [1, 2], 4)
    """

    def __init__(self, keep: int, owners: int = 1) -> None:
        self._keep = max(1, keep)
        self._cut = -np.inf
        self._at_cut = np.zeros(owners, dtype=np.intp)
        self._values: list[FloatArray] = []
        self._owner: list[IntArray] = []
        self._held = self._total = 0

    def add(self, scores: FloatArray, owner: IntArray) -> None:
        """Take the scores of some rows, shape (rows, n), each row with its owner."""
        self._total += scores.size
        above = scores > self._cut
        if self._cut > -np.inf:
            same = (scores == self._cut).sum(axis=1)
            self._at_cut += np.bincount(owner, same, self._at_cut.size).astype(np.intp)
        self._values.append(scores[above])
        self._owner.append(np.repeat(owner, above.sum(axis=1)))
        self._held += self._values[-1].size
        if self._held > 2 * self._keep:
            self._trim()

    def _trim(self) -> None:
        values, owner = np.concatenate(self._values), np.concatenate(self._owner)
        if values.size > self._keep:
            place = values.size - self._keep
            self._cut = float(np.partition(values, place)[place])
            above = values > self._cut
            self._at_cut = np.bincount(owner[values == self._cut], minlength=self._at_cut.size)
            values, owner = values[above], owner[above]
        self._values, self._owner, self._held = [values], [owner], values.size

    def tail(self) -> Tail:
        """What was collected."""
        self._trim()
        values, owner = self._values[0], self._owner[0]
        order = np.argsort(-values, kind="stable")
        tied = np.flatnonzero(self._at_cut)
        return Tail(
            np.concatenate([values[order], np.full(tied.size, self._cut)]),
            np.concatenate([owner[order], tied]),
            np.concatenate([np.ones(values.size, dtype=np.intp), self._at_cut[tied]]),
            self._total,
        )


class RunningWeights:
    """Running sums of B weightings (B, S) of owners along K ordered entries, without B x K numbers.

    Each entry stands for a count. They are cut into about sqrt(K) stretches, whose sums are one
    matrix product; only the stretch that is asked about is added up entry by entry.

    Example:
        >>> running = RunningWeights(np.array([0, 1, 0]), np.ones(3), np.array([[1.0, 2.0]]))
        >>> running.before(np.array([2])).tolist(), running.place(np.array([3.0])).tolist()
        ([3.0], [2])
    """

    def __init__(self, owner: IntArray, counts: IntArray | FloatArray, weights: FloatArray) -> None:
        self._entries = owner.size
        self._size = max(1, int(np.ceil(np.sqrt(owner.size))))
        stretches = -(-owner.size // self._size)
        self._weights = weights
        room = (stretches + 1) * self._size  # one empty stretch: an end may lie behind the last
        self._owner = np.zeros(room, dtype=np.intp)
        self._counts = np.zeros(room)
        self._owner[: owner.size], self._counts[: owner.size] = owner, counts
        owners = weights.shape[1]
        cell = np.arange(room) // self._size * owners + self._owner
        table = np.bincount(cell, self._counts, (stretches + 1) * owners).reshape(-1, owners)
        self._sums = np.zeros((len(weights), stretches + 1))
        np.cumsum(weights @ table[:stretches].T, axis=1, out=self._sums[:, 1:])

    def before(self, ends: IntArray) -> FloatArray:
        """Weight of the entries before each end: shape (B,) to shape (B,)."""
        stretch = ends // self._size
        entries, weights = self._stretch(stretch)
        inside = np.where(entries < ends[:, None], weights, 0.0).sum(axis=1)
        return np.asarray(self._sums[np.arange(len(ends)), stretch] + inside)

    def place(self, mass: FloatArray) -> IntArray:
        """First entry with which the running weight exceeds each mass; K where none does."""
        stretch = (self._sums[:, 1:] <= mass[:, None]).sum(axis=1)
        _, weights = self._stretch(stretch)
        running = self._sums[np.arange(len(mass)), stretch][:, None] + np.cumsum(weights, axis=1)
        found = stretch * self._size + (running <= mass[:, None]).sum(axis=1)
        return np.asarray(np.minimum(found, self._entries))

    def _stretch(self, stretch: IntArray) -> tuple[IntArray, FloatArray]:
        entries = stretch[:, None] * self._size + np.arange(self._size)
        drawn = np.take_along_axis(self._weights, self._owner[entries], axis=1)
        return entries, drawn * self._counts[entries]
