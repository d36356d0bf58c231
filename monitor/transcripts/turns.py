"""Speaker turns of a recording, as written by a diariser, a transcript or a person."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from monitor.errors import SourceError
from monitor.phrases import clock_time, format_names, plural
from monitor.transcripts.transcript import LATEST_SECONDS

MOST_LABELS = 256  # people in one recording; each of them costs memory
MOST_TURNS = 300_000  # a day and a half of words, each a turn of its own
_TOLERATED_SECONDS = 0.5  # a diariser's last window may end after the recording


@dataclass(frozen=True, slots=True, order=True)
class Turn:
    """A stretch of a recording in which one person speaks."""

    start_seconds: float  # from the start of the recording
    end_seconds: float  # after ``start_seconds``
    label: str  # the file's name of the speaker, such as "SPEAKER_00"

    def __post_init__(self) -> None:
        if not (0 <= self.start_seconds < LATEST_SECONDS and self.end_seconds < LATEST_SECONDS):
            raise SourceError(
                f"invalid turn from {self.start_seconds:g} to {self.end_seconds:g} s: use seconds "
                "from the start of the recording"
            )
        if not self.end_seconds > self.start_seconds:
            raise SourceError(
                f"a turn that starts at {self.start_seconds:g} s ends at {self.end_seconds:g} s: "
                "it must end after it starts"
            )
        if not self.label:
            raise SourceError(f"the turn at {self.start_seconds:g} s has no label")

    @property
    def seconds(self) -> float:
        """Length of the turn."""
        return self.end_seconds - self.start_seconds


@dataclass(frozen=True, slots=True)
class Turns:
    """Speaker turns of one recording.

    Example:
        >>> turns = Turns.from_turns([Turn(0, 4, "ann"), Turn(3, 6, "bob"), Turn(5, 9, "bob")])
        >>> [(turn.start_seconds, turn.end_seconds, turn.label) for turn in turns.alone]
        [(0, 3, 'ann'), (4, 9, 'bob')]
        >>> turns.labels, turns.overlap_seconds, turns.overlap_of
        (('ann', 'bob'), 1.0, {'ann': 1.0, 'bob': 1.0})
    """

    turns: tuple[Turn, ...]  # as they were written, in order; turns of several labels may overlap
    label: str = "turns"  # the file that they are from, for people
    notices: tuple[str, ...] = ()  # a line each, for people

    @classmethod
    def from_turns(
        cls, turns: Iterable[Turn], label: str = "turns", notices: Sequence[str] = ()
    ) -> Turns:
        """Sort turns; SourceError for no turns, too many turns, or too many labels."""
        ordered = tuple(sorted(turns))
        if not ordered:
            raise SourceError(f"{label} has no speaker turns")
        if len(ordered) > MOST_TURNS:
            raise SourceError(f"{label} has more than {MOST_TURNS} turns: split it")
        names = {turn.label for turn in ordered}
        if len(names) > MOST_LABELS:
            raise SourceError(
                f"{label} has {plural(len(names), 'label')}, more than the maximum of "
                f"{MOST_LABELS}: does each turn have its own label?"
            )
        return cls(ordered, label, tuple(notices))

    @property
    def labels(self) -> tuple[str, ...]:
        """Every label once, in the order in which they begin to speak."""
        return tuple(dict.fromkeys(turn.label for turn in self.turns))

    @property
    def alone(self) -> tuple[Turn, ...]:
        """Stretches in which only one label speaks, in order; adjacent stretches are merged."""
        return tuple(self._sweep()[0])

    @property
    def overlap_of(self) -> dict[str, float]:
        """By label, the seconds of its turns in which another label speaks too."""
        return self._sweep()[1]

    @property
    def overlap_seconds(self) -> float:
        """Seconds with at least two labels, which are excluded."""
        return self._sweep()[2]

    def cut(self, seconds: float, start_seconds: float = 0.0, *, warns: bool = True) -> Turns:
        """Cut out the turns of an excerpt of the recording, on the excerpt's clock.

        ``warns`` adds a notice about turns after its end. Raises SourceError if no turn is within
        it.
        """
        end = start_seconds + seconds
        inside, beyond, lost = [], 0, 0.0
        for turn in self.turns:
            first, last = max(turn.start_seconds, start_seconds), min(turn.end_seconds, end)
            beyond += turn.end_seconds > end + _TOLERATED_SECONDS
            lost += max(turn.end_seconds - max(end, turn.start_seconds), 0.0)
            if last > first:
                inside.append(Turn(first - start_seconds, last - start_seconds, turn.label))
        if not inside:
            ends = "" if math.isinf(end) else f", which ends at {clock_time(end)}"
            raise SourceError(
                f"{self.label}: no turn is within the recording{ends}. Does it belong to another "
                "one?"
            )
        notices = self.notices
        twice, until = dict.fromkeys(self.labels, 0.0), dict.fromkeys(self.labels, 0.0)
        for turn in sorted(inside):
            last = until[turn.label]
            twice[turn.label] += min(turn.seconds, max(last - turn.start_seconds, 0.0))
            until[turn.label] = max(turn.end_seconds, last)
        labels = [label for label, seconds in twice.items() if seconds > _TOLERATED_SECONDS]
        if labels:
            notices += (
                f"{self.label}: overlapping turns of one label were merged for "
                f"{format_names(labels)} ({sum(twice[label] for label in labels):.1f} s)",
            )
        if warns and beyond:
            what = "1 turn extends" if beyond == 1 else f"{beyond} turns extend"
            notices += (
                f"{self.label}: {what} beyond the end of the recording ({clock_time(end)}), and "
                f"{lost:.1f} s were cut off",
            )
        return Turns(tuple(inside), self.label, notices)

    def _sweep(self) -> tuple[list[Turn], dict[str, float], float]:
        times = sorted(
            [(turn.start_seconds, 1, turn.label) for turn in self.turns]
            + [(turn.end_seconds, -1, turn.label) for turn in self.turns],
            key=lambda time: time[0],
        )
        active: dict[str, int] = {}
        alone: list[Turn] = []
        together = 0.0  # seconds with two labels or more, up to now
        entered: dict[str, float] = {}
        overlap = dict.fromkeys(self.labels, 0.0)
        before = 0.0
        for now, step, label in times:
            if now > before and len(active) == 1:
                (only,) = active
                if alone and alone[-1].label == only and alone[-1].end_seconds == before:
                    alone[-1] = replace(alone[-1], end_seconds=now)
                else:
                    alone.append(Turn(before, now, only))
            elif len(active) > 1:
                together += now - before
            before = now
            count = active.get(label, 0) + step
            if count == step == 1:
                entered[label] = together
            if count:
                active[label] = count
            elif active.pop(label, None) is not None:
                overlap[label] += together - entered[label]
        return alone, overlap, together
