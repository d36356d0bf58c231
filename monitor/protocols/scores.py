"""What metrics of pooled comparisons need of scores: `ScoredComparisons`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from monitor.types import FloatArray, IntArray

__all__ = ["ScoredComparisons"]


class ScoredComparisons(Protocol):
    """Mated and non-mated scores, and whose trials they are: S people, 0 to S - 1.

    Mated are comparisons of one speaker with himself, non-mated those of two. The mated scores lie
    in memory; the non-mated ones, which may be many more, come in blocks.
    """

    @property
    def name(self) -> str:
        """Of the system that made the scores."""

    @property
    def mated(self) -> FloatArray:
        """Scores of equal speakers: shape (M,), float64."""

    @property
    def owner(self) -> IntArray:
        """Whose trial each of them is: shape (M,), 0 to S - 1."""

    @property
    def non_mated_counts(self) -> IntArray:
        """How many scores of different speakers each person's trials have: shape (S,)."""

    def non_mated_blocks(self) -> Iterator[tuple[IntArray, FloatArray]]:
        """Those scores, some megabytes at a time: owners, shape (rows,), scores (rows, n)."""
