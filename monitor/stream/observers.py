"""The parts that look at a stream beside its sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from monitor.stream.conditions import StreamConditions
from monitor.stream.copies import CopyFinder
from monitor.stream.repeat_gate import RepeatGate
from monitor.stream.repeats import RepeatFinder
from monitor.stream.second_voice import SecondVoice
from monitor.stream.segments import SpeakerSegments
from monitor.stream.speaker_changes import Recordings, SpeakerChanges
from monitor.types import AnyArray


class Observer(Protocol):
    """Part that looks at a stream, and is saved and restored with it."""

    def state(self) -> tuple[Mapping[str, Any], dict[str, AnyArray]]:
        """Return what a replay of the stream would not restore: plain values and arrays."""

    def restore(self, plain: Any, arrays: Mapping[str, AnyArray]) -> None:
        """Restore a ``state``, fresh."""


@dataclass
class Observers:
    """The observers of one stream.

    Attributes:
        copies: of enrolled recordings.
        repeats, gate: of audio that the stream has had before, and what lets the rest count.
        conditions: its sound.
        recordings: those that it consists of.
        changes: of speaker or channel.
        segments: between them; None where all is weighed as one voice.
        second: another voice that takes turns; None where it is not looked for.
    """

    copies: CopyFinder
    repeats: RepeatFinder
    gate: RepeatGate
    conditions: StreamConditions
    recordings: Recordings
    changes: SpeakerChanges
    segments: SpeakerSegments | None
    second: SecondVoice | None = None

    def _kept(self) -> dict[str, Observer]:
        """Return those by name that a replay would not restore; it finds the others again."""
        observers: dict[str, Observer | None] = {
            "conditions": self.conditions,
            "recordings": self.recordings,
            "changes": self.changes,
            "segments": self.segments,
            "second": self.second,
        }
        return {name: observer for name, observer in observers.items() if observer is not None}

    def state(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """Return the states of all by name, plain values and arrays."""
        states = {name: observer.state() for name, observer in self._kept().items()}
        arrays = {
            f"{name}/{key}": array
            for name, (_, observer_arrays) in states.items()
            for key, array in observer_arrays.items()
        }
        return {name: plain for name, (plain, _) in states.items()}, arrays

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> None:
        """Restore a ``state``, fresh."""
        for name, observer in self._kept().items():
            observer.restore(plain[name], select_arrays(f"{name}/", arrays))


def select_arrays(prefix: str, arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Select arrays by the start of their names; the keys are the rest of the names."""
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
