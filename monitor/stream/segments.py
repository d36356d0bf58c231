"""Segments of a stream between changes of speaker, and the choice of the watched speaker's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from monitor.stream.evidence import Mark, pack_marks, unpack_marks
from monitor.stream.totals import FeatureTotals, Moments, RunningTotals, stack_totals
from monitor.types import TICKS_PER_SECOND, AnyArray, BoolArray, IntArray

LEAST_SPEECH = 5 * TICKS_PER_SECOND
"""Minimum ticks of speech in a selection. With less, a few words without evidence would outrank
evidence against the watched speaker."""
_GROUPS = ("kept", "begun")


@dataclass(frozen=True, slots=True)
class SegmentSelection:
    """Selection of segments at each of R moments, with ticks of speech in them, shape (R,).

    ``enough``, shape (R,), is true if there is enough speech to choose the selection. ``noticed``,
    shape (R,), is true once a notice announced it; None if there are no such notices.
    """

    totals: Mapping[str, RunningTotals]
    speech: IntArray
    enough: BoolArray
    noticed: BoolArray | None = None

    @classmethod
    def whole(cls, moments: Moments) -> SegmentSelection:
        """Select the whole stream."""
        return cls(moments.totals, moments.speech, np.ones(len(moments.ticks), np.bool_))

    def only(self, r: int) -> SegmentSelection:
        """Select moment r."""
        rows = slice(r, r + 1)
        totals = {name: running.select(rows) for name, running in self.totals.items()}
        noticed = None if self.noticed is None else self.noticed[rows]
        return SegmentSelection(totals, self.speech[rows], self.enough[rows], noticed)


class SegmentsState(TypedDict):
    """Plain values of `SpeakerSegments`, in a checkpoint."""

    whole: bool
    chosen: int


class SpeakerSegments:
    """Segments weighed for a watched speaker when another person may have spoken too.

    An attacker who detects a change of speaker can cut the stream there. So totals can be cut where
    each voice seems to have begun. The segment, or sum of segments, with the most evidence of the
    watched speaker is used. Neither another voice nor a false change lowers the figure. The best
    sum of closed segments is stored. When a segment ends, it is omitted, added to this sum, or
    replaces it.
    """

    def __init__(self, nothing: FeatureTotals) -> None:
        # before: totals of earlier streams of the watched voice, which are part of every selection
        self._nothing = self.before = nothing
        self._kept: Mark | None = None  # the best sum of closed segments
        self._begun: Mark | None = None  # start of the open segment
        self._whole = True  # whether the kept sum leaves nothing out
        self.chosen = 0  # index into `parts` that the last reading used, 0 for the whole stream

    def parts(self, moments: Moments) -> list[SegmentSelection]:
        """List the selections at these moments: the whole stream, then closed and open segments."""
        selections = [SegmentSelection.whole(moments)]
        closed, begun = self._kept, self._begun
        if closed is None or begun is None:
            return selections
        if not self._whole:
            selections.append(self._select_since(moments, begun.totals, closed.totals))
        selections.append(self._select_since(moments, begun.totals, self.before))
        running, speech = stack_totals([closed.totals] * len(moments.ticks))
        selections.append(SegmentSelection(running, speech, self._is_enough(speech)))
        return selections

    def _select_since(
        self, moments: Moments, begun: FeatureTotals, base: FeatureTotals
    ) -> SegmentSelection:
        """Select the frames since ``begun``, added to ``base``."""
        totals = {}
        for name, running in moments.totals.items():
            usable = running.usable_seconds + (base.usable[name] - begun.usable[name]) / (
                TICKS_PER_SECOND
            )
            totals[name] = RunningTotals(
                running.totals - begun.totals[name] + base.totals[name],
                running.frames + (base.frames[name] - begun.frames[name]),
                np.maximum(usable, 0.0),  # ticks were rounded
            )
        speech = moments.speech + (base.speech - begun.speech)
        return SegmentSelection(totals, speech, self._is_enough(speech))

    def _is_enough(self, speech: IntArray) -> BoolArray:
        return np.asarray(speech - self.before.speech >= LEAST_SPEECH)

    def get_totals(self, totals: FeatureTotals) -> FeatureTotals:
        """Return the totals that the last reading used, from all totals up to it."""
        closed, begun = self._kept, self._begun
        if closed is None or begun is None or not self.chosen:
            return totals
        open_now = totals - begun.totals
        choices = [] if self._whole else [closed.totals + open_now]
        return [*choices, self.before + open_now, closed.totals][self.chosen - 1]

    def change(self, end: Mark | None, best: Callable[[Sequence[FeatureTotals]], int]) -> None:
        """Close the open segment at a mark of the stream, None for its start, and open a new one.

        ``best`` returns the index of the sum with the watched speaker's highest figure.
        """
        end = end or Mark(0, self.before)
        closed, begun = self._kept, self._begun
        if closed is None or begun is None:
            self._kept = end
        else:
            end = max(begun, end, key=lambda mark: mark.tick)
            stretch = end.totals - begun.totals
            both = closed.totals + stretch
            parts = [closed.totals, self.before + stretch]
            speech = np.array([candidate.speech for candidate in parts])
            able = [
                candidate
                for candidate, enough in zip(parts, self._is_enough(speech), strict=True)
                if enough
            ]
            choice = best([both, *able]) if able else 0
            self._kept = Mark(end.tick, [both, *able][choice])
            self._whole = self._whole and choice == 0
        self._begun = end

    def state(self) -> tuple[SegmentsState, dict[str, AnyArray]]:
        """Return the state for a checkpoint: plain values and arrays."""
        ends = zip(_GROUPS, (self._kept, self._begun), strict=True)
        arrays = {
            f"{group}/{name}": array
            for group, end in ends
            for name, array in pack_marks([end] if end else [], self._nothing).items()
        }
        return {"whole": self._whole, "chosen": self.chosen}, arrays

    def restore(self, plain: SegmentsState, arrays: Mapping[str, AnyArray]) -> None:
        """Restore a ``state``; KeyError or ValueError if it is invalid."""
        closed, begun = (unpack_marks(f"{group}/", arrays, self._nothing) for group in _GROUPS)
        if not len(closed) == len(begun) <= 1:
            raise ValueError
        self._kept, self._begun = (ends[0] if ends else None for ends in (closed, begun))
        self._whole, self.chosen = bool(plain["whole"]), int(plain["chosen"])
        if not 0 <= self.chosen < (4 - self._whole if self._begun else 1):
            raise ValueError
