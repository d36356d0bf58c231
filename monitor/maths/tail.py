"""Collects the highest scores of a sample too large to keep, to resample and count among them.

An error rate at a low false acceptance depends on few non-mated scores; each has an owner, a
speaker, whose weight in a bootstrap replicate is the score's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from monitor.types import FloatArray, IntArray

__all__ = ["Highest", "RunningWeights", "Tail"]


@dataclass(frozen=True, slots=True)
class Tail:
    """The highest scores in descending order; all others lie below the last.

    Attributes:
        values: shape (K,), descending.
        owner: shape (K,), whose score each is.
        counts: shape (K,), for how many equal scores of that owner it stands.
        total: n, how many scores there were in all.
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
    """Collects the highest scores out of blocks, in memory for about twice that many.

    Args:
        keep: how many at least; what equals the last value is all counted.
        owners: S, of how many owners.

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
    """Running sums of B weightings along K ordered entries, without B x K numbers.

    The entries are cut into about sqrt(K) stretches, whose sums are one matrix product; only the
    stretch that is asked about is added up entry by entry.

    Args:
        owner: shape (K,).
        counts: shape (K,), for how many each entry stands.
        weights: shape (B, S), how often each owner counts.

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
