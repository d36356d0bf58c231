"""Sums of what was heard of one voice, without audio; those of several streams add up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from monitor.types import TICKS_PER_SECOND, AnyArray

__all__ = ["HeardTotals"]


@dataclass(frozen=True, slots=True)
class HeardTotals:
    """All that the bits of a voice are worked out from: sums, never audio; a commutative monoid.

    Attributes:
        speech: ticks of speech: T.
        totals: by feature the sketch's total, shape (M,): counts, or a sum of embeddings.
        frames: by feature, the frames behind it.
        usable: by feature, the ticks of audio behind these.
    """

    speech: int
    totals: Mapping[str, AnyArray]
    frames: Mapping[str, int]
    usable: Mapping[str, int]

    @property
    def speech_seconds(self) -> float:
        """Seconds of speech."""
        return self.speech / TICKS_PER_SECOND

    def plain(self) -> dict[str, Any]:
        """All but the totals, JSON-able: ``HeardTotals(totals=..., **plain)`` is the same again."""
        return {
            "speech": self.speech,
            "frames": dict(self.frames),
            "usable": dict(self.usable),
        }

    def __add__(self, other: HeardTotals) -> HeardTotals:
        return self._with(other, 1)

    def __sub__(self, other: HeardTotals) -> HeardTotals:
        """What was heard beyond ``other``, which is part of this."""
        return self._with(other, -1)

    def _with(self, other: HeardTotals, sign: int) -> HeardTotals:
        return HeardTotals(
            self.speech + sign * other.speech,
            {name: total + sign * other.totals[name] for name, total in self.totals.items()},
            {name: count + sign * other.frames[name] for name, count in self.frames.items()},
            {name: ticks + sign * other.usable[name] for name, ticks in self.usable.items()},
        )
