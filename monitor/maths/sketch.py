"""Running, mergeable summaries of one feature over a stream (docs/method.md section 1)."""

from __future__ import annotations

from typing import Any, Self, TypeAlias

import numpy as np

from monitor.errors import UsageError
from monitor.types import AnyArray, BoolArray, IntArray

LONGEST = 1e24
"""An embedding of this length or more is damaged: beside it no other would count."""


def are_countable(embeddings: AnyArray) -> BoolArray:
    """Return which embeddings, shape (k, d), have a direction and a weight: shape (k,)."""
    lengths = np.hypot.reduce(embeddings, axis=1, dtype=np.float64)
    countable: BoolArray = (lengths > 0) & (lengths < LONGEST)
    return countable


class _Sum:
    """Base of the sketches: a total that adds up."""

    __slots__ = ("frames", "total")
    _type: type[np.int64 | np.float64]

    def __init__(self, size: int) -> None:
        if size < 1:
            raise UsageError(f"size={size} must be a positive number of bins or dimensions")
        self.total: AnyArray = np.zeros(size, dtype=self._type)
        self.frames = 0

    def __add__(self, other: Self) -> Self:
        if type(self) is not type(other) or self.total.shape != other.total.shape:
            raise UsageError("only sketches of one kind and size can be added")
        merged = type(self)(self.total.size)
        np.add(self.total, other.total, out=merged.total)
        merged.frames = self.frames + other.frames
        return merged


class Histogram(_Sum):
    """Counts, shape (M,), of the bins so far.

    Example:
        >>> first, second = Histogram(4), Histogram(4)
        >>> first.learn_many(np.array([0, 2, 2]))
        >>> second.learn_one(3)
        >>> (first + second).total
        array([1, 0, 2, 1])
    """

    __slots__ = ()
    _type = np.int64

    def learn_one(self, value: Any) -> None:
        """Count one bin, 0 <= value < M."""
        self.learn_many(np.asarray([value]))

    def learn_many(self, values: AnyArray) -> None:
        """Count bins, shape (k,); anything outside 0..M-1 is a UsageError and counts nothing."""
        if values.shape[0] == 0:
            return
        self._check(values)
        self.total += np.bincount(values.astype(np.intp, copy=False), minlength=self.total.size)
        self.frames += int(values.shape[0])

    def after(self, values: AnyArray, ends: IntArray) -> tuple[AnyArray, IntArray]:
        """Compute the totals after the first ``ends[r]`` of these values, without learning them.

        Values (k,) and R ascending ends to totals (R, M) and frames (R,).
        """
        if values.shape[0]:
            self._check(values)
        size, steps = self.total.size, ends.shape[0]
        step = np.repeat(np.arange(steps), np.diff(ends, prepend=0))
        places = step * size + values[: step.shape[0]].astype(np.intp, copy=False)
        totals = np.bincount(places, minlength=steps * size).reshape(steps, size)
        np.cumsum(totals, axis=0, out=totals)
        totals += self.total
        return totals, self.frames + ends

    def _check(self, values: AnyArray) -> None:
        size = self.total.size
        if values.ndim != 1 or values.dtype.kind not in "iu":
            raise UsageError(f"bins must be whole numbers, shape (k,), in 0..{size - 1}")
        if values.min() < 0 or values.max() >= size:
            raise UsageError(f"bins must lie in 0..{size - 1}")


class EmbeddingSum(_Sum):
    """Sum (d,) of the embeddings so far, of which only the direction counts.

    The length of each says how much it counts beside the others.

    Example:
        >>> total = EmbeddingSum(2)
        >>> total.learn_many(np.array([[2.0, 0.0], [0.0, 0.5], [np.nan, 1.0]]))
        >>> total.total, total.frames
        (array([2. , 0.5]), 2)
    """

    __slots__ = ()
    _type = np.float64

    def learn_one(self, value: Any) -> None:
        """Add one embedding, shape (d,)."""
        self.learn_many(np.asarray(value)[None])

    def learn_many(self, values: AnyArray) -> None:
        """Add embeddings, shape (k, d), one after the other so that batching leaves no trace.

        An embedding of length zero, or with a number that is not finite, has no direction and is
        not counted; nor is one of length `LONGEST` or more.
        """
        if values.ndim != 2 or values.shape[1] != self.total.size:
            raise UsageError(f"embeddings must have shape (k, {self.total.size})")
        values = values.astype(np.float64)
        for row in values[are_countable(values)]:
            self.total += row
            self.frames += 1

    def after(self, values: AnyArray, ends: IntArray) -> tuple[AnyArray, IntArray]:
        """Compute, as ``Histogram.after``, totals, shape (R, d), and frames, shape (R,)."""
        trial = self + type(self)(self.total.size)
        totals, frames = np.empty((ends.shape[0], self.total.size)), np.empty_like(ends)
        start = 0
        for r, end in enumerate(ends.tolist()):
            if end > start:
                trial.learn_many(values[start:end])
            totals[r], frames[r], start = trial.total, trial.frames, end
        return totals, frames


AnySketch: TypeAlias = Histogram | EmbeddingSum


# ----------------------------------------------------------------------------------------- windows
# How a recording is cut into test and template windows: SRD eq. (6), its offset corrected.


def window_starts(start: int, test: int, template: int, available: int) -> tuple[int, int]:
    """Place the test and the template, in units of speech, circular in ``available``.

    The test is ``start + [0, test)`` and the template ``start + test + gap + [0, template)`` modulo
    ``available`` with ``gap = floor((available - test - template) / 2)``: the two never overlap and
    lie as far apart as they can (docs/method.md section 4; the printed offset overlaps).

    Example:
        >>> window_starts(3, test=2, template=4, available=10)
        (3, 7)

    Raises:
        UsageError: the two do not fit into what is available.
    """
    if test + template > available or min(test, template) < 1:
        raise UsageError(f"test {test} and template {template} do not fit into {available} units")
    gap = (available - test - template) // 2
    return start % available, (start + test + gap) % available
