"""Totals of a stream, and of any part of it that ends now."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from monitor.kinds import FeatureSpec
from monitor.stream.accumulator import AccumulatorState, FrameAccumulator
from monitor.stream.repeat_gate import Correction
from monitor.stream.totals import FeatureTotals
from monitor.types import TICKS_PER_SECOND, AnyArray

_SPACING = TICKS_PER_SECOND
"""Minimum ticks between marks."""
_MOST_MARKS = 48
_NEWEST = 24
"""Number of newest marks that are never thinned out."""


@dataclass(frozen=True, slots=True)
class Mark:
    """All totals up to a tick, including those of earlier streams."""

    tick: int
    totals: FeatureTotals


class PrefixSums:
    """Totals of a stream up to several ticks. The difference of two gives the totals of a part.

    Marks are at least a second apart, and sparser in the past, so memory is bounded.
    """

    def __init__(self) -> None:
        self.marks: list[Mark] = []

    def add(self, tick: int, get_totals: Callable[[], FeatureTotals]) -> None:
        """Store the totals up to a tick, if the previous mark is far enough away."""
        if self.marks and tick - self.marks[-1].tick < _SPACING:
            return
        self.marks.append(Mark(tick, get_totals()))
        if len(self.marks) > _MOST_MARKS:
            self.marks = self.marks[:-_NEWEST:2] + self.marks[-_NEWEST:]

    def drop(self, since: int) -> None:
        """Drop the marks from a tick on, since their totals were corrected."""
        self.marks = [mark for mark in self.marks if mark.tick < since]

    def find(self, tick: int) -> Mark | None:
        """Return the last mark up to a tick; None if the stream began later."""
        return next((mark for mark in reversed(self.marks) if mark.tick <= tick), None)


class Evidence(FrameAccumulator):
    """Totals of one stream: now, at coming readings, and at earlier ones."""

    def __init__(self, features: Mapping[str, FeatureSpec], followed: Collection[str] = ()) -> None:
        super().__init__(features, followed)
        self.past = PrefixSums()  # totals up to earlier readings

    def mark(self) -> None:
        """Store the totals up to now in ``past``."""
        self.past.add(self.tick, lambda: self.totals)

    def since(self, tick: int) -> FeatureTotals:
        """Return the totals of the part of the stream that begins at the mark before a tick."""
        mark = self.past.find(tick)
        return self.own_totals if mark is None else self.totals - mark.totals

    @property
    def own_totals(self) -> FeatureTotals:
        """Totals of this stream alone."""
        return self.without_carried(self.totals)

    def without_carried(self, totals: FeatureTotals) -> FeatureTotals:
        """Return totals without those of earlier streams."""
        return totals if self.carried is None else totals - self.carried

    def apply(self, correction: Correction) -> None:
        """Correct the totals, and drop marks that have become wrong."""
        super().apply(correction)
        self.past.drop(correction.since)

    def forget(self) -> None:
        """Reset all totals."""
        super().forget()
        self.past = PrefixSums()

    def state(self) -> tuple[AccumulatorState, dict[str, AnyArray]]:
        """Return the accumulated state: plain values and arrays."""
        plain, arrays = super().state()
        marks = pack_marks(self.past.marks, self.totals)
        return plain, arrays | {f"marks/{name}": array for name, array in marks.items()}

    def restore(self, plain: AccumulatorState, arrays: Mapping[str, AnyArray]) -> None:
        """Restore a ``state`` into an unused object; ValueError if it is invalid."""
        super().restore(plain, arrays)
        self.past.marks = unpack_marks("marks/", arrays, self.totals)
        if len(self.past.marks) > _MOST_MARKS:
            raise ValueError


def pack_marks(marks: Sequence[Mark], like: FeatureTotals) -> dict[str, AnyArray]:
    """Pack marks into arrays of ticks, counts and sums, with one row per mark."""
    counts = []
    for tick, totals in ((mark.tick, mark.totals) for mark in marks):
        by_feature = [
            counts_by_feature[name]
            for counts_by_feature in (totals.frames, totals.usable)
            for name in like.totals
        ]
        counts.append([tick, totals.speech, *by_feature])
    arrays: dict[str, AnyArray] = {
        "counts": np.array(counts, dtype=np.int64).reshape(-1, 2 + 2 * len(like.totals))
    }
    for name, total in like.totals.items():
        rows = [mark.totals.totals[name] for mark in marks]
        arrays[f"of {name}"] = np.array(rows, dtype=total.dtype).reshape(-1, total.size)
    return arrays


def unpack_marks(prefix: str, arrays: Mapping[str, AnyArray], like: FeatureTotals) -> list[Mark]:
    """Restore marks from arrays of `pack_marks`; KeyError or ValueError if they do not fit."""
    counts = arrays[f"{prefix}counts"]
    sums = {name: arrays[f"{prefix}of {name}"] for name in like.totals}
    if counts.shape[1:] != (2 + 2 * len(sums),) or counts.min(initial=0) < 0:
        raise ValueError
    if any(table.shape != (len(counts), like.totals[name].size) for name, table in sums.items()):
        raise ValueError
    rows: list[list[int]] = counts.tolist()
    return [
        Mark(
            tick,
            FeatureTotals(
                speech,
                {name: table[r].copy() for name, table in sums.items()},
                dict(zip(sums, by_feature[: len(sums)], strict=True)),
                dict(zip(sums, by_feature[len(sums) :], strict=True)),
            ),
        )
        for r, (tick, speech, *by_feature) in enumerate(rows)
    ]
