"""The recordings that a stream is made of: who falls silent in which, and who does not fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from monitor.stream.heard import HeardTotals
from monitor.types import TICKS_PER_SECOND, AnyArray

__all__ = ["Recordings"]

LEAST_SECONDS = 25.0
"""Of speech, on both sides: with less, nothing is said of whether two voices are one."""


class Recordings:
    """Follows a stream from recording to recording.

    Args:
        unlike: whether two voices sound like two people; None where that is not asked.

    Attributes:
        number: of the recording that is being heard.
        silent: those before it in which nobody spoke.
        strange: those before it that sound like another person than all before them.
    """

    def __init__(self, unlike: Callable[[HeardTotals, HeardTotals], bool] | None) -> None:
        self._unlike = unlike
        self.number = 0
        self.silent: list[int] = []
        self.strange: list[int] = []
        self._speech = 0  # ticks of this one
        self._begun = self._judged = 0
        self._start: HeardTotals | None = None  # of this one: all that was heard before it
        self._voice: HeardTotals | None = None  # what the earlier ones brought, but the strange

    def hear(self, speech: int) -> None:
        """Take note of so many further ticks of speech."""
        self._speech += speech

    def turn(self, number: int, heard: Callable[[], HeardTotals]) -> None:
        """The next recording begins, on top of what was heard so far; nothing where it goes on."""
        if self._begun and number == self.number:
            return
        if self._begun:
            self.silent += self.silent_now
            if self._begun > self._judged:  # not one that was over when the run was stopped
                self._judged = self._begun
                self._add(heard())
        self.number, self._speech = number, 0
        self._begun += 1

    @property
    def silent_now(self) -> list[int]:
        """The recording that is being heard, if nobody has spoken in it."""
        return [] if self._speech else [self.number]

    def strange_now(self, heard: HeardTotals) -> list[int]:
        """It again, if it sounds like somebody else, by all that was heard by now."""
        if self._unlike is None or self._voice is None:
            return []
        mine = self._mine(heard)
        short = min(mine.speech, self._voice.speech) < LEAST_SECONDS * TICKS_PER_SECOND
        return [] if short or not self._unlike(self._voice, mine) else [self.number]

    def state(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """What hearing the stream again would not bring back: plain values and arrays."""
        plain: dict[str, Any] = {"judged": self._judged, "strange": self.strange}
        arrays: dict[str, AnyArray] = {}
        for part, heard in (("start", self._start), ("voice", self._voice)):
            if heard is not None:
                plain[part] = heard.plain()
                arrays |= {f"{part}/{name}": total for name, total in heard.totals.items()}
        return plain, arrays

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> None:
        """Take up a ``state``, fresh."""
        self._judged, self.strange = int(plain["judged"]), list(plain["strange"])

        def part(called: str) -> HeardTotals | None:
            if called not in plain:
                return None
            totals = {name: arrays[f"{called}/{name}"] for name in plain[called]["frames"]}
            return HeardTotals(totals=totals, **plain[called])

        self._start, self._voice = part("start"), part("voice")

    def _add(self, now: HeardTotals) -> None:
        """The recording is over: it is strange, or more of the voice."""
        if self._unlike is None:
            return
        strange, mine = self.strange_now(now), self._mine(now)
        self.strange += strange
        if not strange:
            self._voice = mine if self._voice is None else self._voice + mine
        self._start = now

    def _mine(self, now: HeardTotals) -> HeardTotals:
        return now if self._start is None else now - self._start
