"""What is weighed for a watched speaker of a stream in which somebody else may have spoken as well.

An attacker who hears that the speaker changes knows where to cut. So the sums of what was heard can
be cut where each voice seems to have begun, and what is weighed is the stretch, or the sum of
stretches, that says most of the watched speaker: another voice does not lower the figure, whoever
spoke first, and neither does a change that was none.

Of the stretches that are over the best sum is kept: each that ends is left out, added or takes its
place. With it go the stretch that is still open, and all that was heard. Memory is bounded: where a
voice began is known afterwards only, so that sums are remembered at marks a second or more apart,
the finer the later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from monitor.stream.assessment import RunningTotals
from monitor.stream.heard import HeardTotals
from monitor.stream.intake import Moments
from monitor.types import TICKS_PER_SECOND, AnyArray, BoolArray, IntArray

__all__ = ["Part", "VoiceStretches", "as_moments"]

_SPACING = TICKS_PER_SECOND
"""Ticks between marks, at least."""
_MOST_MARKS = 48
_NEWEST = 24
"""Marks that are never thinned out."""
LEAST_SPEECH = 5 * TICKS_PER_SECOND
"""Ticks of speech of a choice that leaves something out: with less, nothing said of anybody would
count for more than what was heard against it."""
_GROUPS = ("marks", "kept", "begun")


@dataclass(frozen=True, slots=True)
class Mark:
    """All that was heard up to a tick of the stream, that of earlier streams included."""

    tick: int
    heard: HeardTotals


@dataclass(frozen=True, slots=True)
class Part:
    """A choice of stretches, at each of R moments.

    Attributes:
        heard: by feature.
        speech: shape (R,), ticks of speech in them.
        enough: shape (R,), whether that is enough for it to be chosen.
        constant: whether it is the same at all of them.
    """

    heard: Mapping[str, RunningTotals]
    speech: IntArray
    enough: BoolArray
    constant: bool = False

    @classmethod
    def whole(cls, moments: Moments) -> Part:
        """All that was heard."""
        return cls(moments.heard, moments.speech, np.ones(len(moments.ticks), np.bool_))


class VoiceStretches:
    """Cuts what is heard of a stream where voices change.

    Args:
        nothing: what is heard of no speech at all, for names and sizes.

    Attributes:
        before: what earlier streams of the watched voice brought, which is part of every choice.
        chosen: which of `parts` the last reading was of, 0 for all that was heard.
    """

    def __init__(self, nothing: HeardTotals) -> None:
        self._nothing = self.before = nothing
        self._marks: list[Mark] = []
        self._kept: Mark | None = None  # the best sum of those that are over
        self._begun: Mark | None = None  # where the open one began
        self._whole = True  # whether the kept sum leaves nothing out
        self.chosen = 0

    @property
    def cut(self) -> bool:
        """Whether there has been a change at all."""
        return self._begun is not None

    def mark(self, tick: int, heard: Callable[[], HeardTotals]) -> None:
        """Remember what was heard up to a reading."""
        if self._marks and tick - self._marks[-1].tick < _SPACING:
            return
        self._marks.append(Mark(tick, heard()))
        if len(self._marks) > _MOST_MARKS:
            self._marks = self._marks[:-_NEWEST:2] + self._marks[-_NEWEST:]

    def parts(self, moments: Moments) -> list[Part]:
        """What may be weighed at these moments: all, then the kept and the open stretches."""
        made = [Part.whole(moments)]
        kept, begun = self._kept, self._begun
        if kept is None or begun is None:
            return made
        if not self._whole:
            made.append(self._since(moments, begun.heard, kept.heard))
        made.append(self._since(moments, begun.heard, self.before))
        heard, speech = as_moments([kept.heard] * len(moments.ticks))
        made.append(Part(heard, speech, self._enough(speech), constant=True))
        return made

    def _since(self, moments: Moments, begun: HeardTotals, beside: HeardTotals) -> Part:
        """What was heard since then, and another sum beside it."""
        heard = {}
        for name, running in moments.heard.items():
            usable = running.usable_seconds + (beside.usable[name] - begun.usable[name]) / (
                TICKS_PER_SECOND
            )
            heard[name] = RunningTotals(
                running.totals - begun.totals[name] + beside.totals[name],
                running.frames + (beside.frames[name] - begun.frames[name]),
                np.maximum(usable, 0.0),  # whose halves of a tick were rounded
            )
        speech = moments.speech + (beside.speech - begun.speech)
        return Part(heard, speech, self._enough(speech))

    def _enough(self, speech: IntArray) -> BoolArray:
        return np.asarray(speech - self.before.speech >= LEAST_SPEECH)

    def weighed(self, heard: HeardTotals) -> HeardTotals:
        """The sums behind the last reading, of all that was heard up to it."""
        kept, begun = self._kept, self._begun
        if kept is None or begun is None or not self.chosen:
            return heard
        open_now = heard - begun.heard
        choices = [] if self._whole else [kept.heard + open_now]
        return [*choices, self.before + open_now, kept.heard][self.chosen - 1]

    def change(self, since_ticks: int, best: Callable[[Sequence[HeardTotals]], int]) -> None:
        """Another voice began: the open stretch is over, and a new one open.

        Args:
            since_ticks: where it seems to have begun.
            best: which of several sums says most of the watched speaker.
        """
        ends = [mark for mark in self._marks if mark.tick <= since_ticks]
        end = ends[-1] if ends else Mark(0, self.before)
        kept, begun = self._kept, self._begun
        if kept is None or begun is None:
            self._kept = end
        else:
            end = max(begun, end, key=lambda mark: mark.tick)
            stretch = end.heard - begun.heard
            both = kept.heard + stretch
            apart = [kept.heard, self.before + stretch]
            speech = np.array([each.speech for each in apart])
            able = [
                each for each, enough in zip(apart, self._enough(speech), strict=True) if enough
            ]
            found = best([both, *able]) if able else 0
            self._kept = Mark(end.tick, [both, *able][found])
            self._whole = self._whole and found == 0
        self._begun = end

    def state(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """What a checkpoint must keep: plain values, and arrays."""
        of_marks: tuple[Sequence[Mark | None], ...] = (self._marks, [self._kept], [self._begun])
        arrays = {
            f"{group}/{name}": array
            for group, marks in zip(_GROUPS, of_marks, strict=True)
            for name, array in self._packed([mark for mark in marks if mark]).items()
        }
        return {"whole": self._whole, "chosen": self.chosen}, arrays

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> None:
        """Take up a ``state``.

        Raises:
            KeyError, ValueError: no stream has been cut so.
        """
        marks, kept, begun = (self._unpacked(f"{group}/", arrays) for group in _GROUPS)
        if len(marks) > _MOST_MARKS or not len(kept) == len(begun) <= 1:
            raise ValueError
        self._marks = marks
        self._kept, self._begun = (each[0] if each else None for each in (kept, begun))
        self._whole, self.chosen = bool(plain["whole"]), int(plain["chosen"])
        if not 0 <= self.chosen < (4 - self._whole if self.cut else 1):
            raise ValueError

    def _packed(self, marks: Sequence[Mark]) -> dict[str, AnyArray]:
        """One row a mark: its tick and counts, and the total of each feature."""
        names = list(self._nothing.totals)
        counts = [
            [
                *(mark.tick, mark.heard.speech),
                *(mark.heard.frames[name] for name in names),
                *(mark.heard.usable[name] for name in names),
            ]
            for mark in marks
        ]
        arrays: dict[str, AnyArray] = {
            "counts": np.array(counts, dtype=np.int64).reshape(-1, 2 + 2 * len(names))
        }
        for name, total in self._nothing.totals.items():
            each = [mark.heard.totals[name] for mark in marks]
            arrays[f"of {name}"] = np.array(each, dtype=total.dtype).reshape(-1, total.size)
        return arrays

    def _unpacked(self, start: str, arrays: Mapping[str, AnyArray]) -> list[Mark]:
        names, counts = list(self._nothing.totals), arrays[f"{start}counts"]
        totals = {name: arrays[f"{start}of {name}"] for name in names}
        if counts.shape[1:] != (2 + 2 * len(names),) or counts.min(initial=0) < 0:
            raise ValueError
        for name, each in totals.items():
            if each.shape != (len(counts), self._nothing.totals[name].size):
                raise ValueError
        rows: list[list[int]] = counts.tolist()
        return [
            Mark(
                tick,
                HeardTotals(
                    speech,
                    {name: totals[name][r].copy() for name in names},
                    dict(zip(names, rest[: len(names)], strict=True)),
                    dict(zip(names, rest[len(names) :], strict=True)),
                ),
            )
            for r, (tick, speech, *rest) in enumerate(rows)
        ]


def as_moments(sums: Sequence[HeardTotals]) -> tuple[dict[str, RunningTotals], IntArray]:
    """Several sums as the attacker takes moments, and ticks of speech in each."""
    made = {
        name: RunningTotals(
            np.stack([each.totals[name] for each in sums]),
            np.array([each.frames[name] for each in sums]),
            np.array([each.usable[name] for each in sums]) / TICKS_PER_SECOND,
        )
        for name in sums[0].totals
    }
    return made, np.array([each.speech for each in sums])
