"""Observers of a stream, such as detectors of copies, repeats and speaker changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from monitor.stream.conditions import StreamConditions
from monitor.stream.copies import CopyFinder
from monitor.stream.repeat_gate import RepeatFinder, RepeatGate
from monitor.stream.second_voice import SecondVoice
from monitor.stream.segments import SpeakerSegments
from monitor.stream.speaker_changes import Recordings, SpeakerChanges
from monitor.types import AnyArray


class Observer(Protocol):
    """An observer of a stream, which is saved and restored with it."""

    def state(self) -> tuple[Mapping[str, Any], dict[str, AnyArray]]:
        """Return the state that a replay would not restore, as plain values and arrays."""

    def restore(self, plain: Any, arrays: Mapping[str, AnyArray]) -> None:
        """Restore a ``state``, fresh."""


@dataclass
class Observers:
    """The observers of one stream."""

    copies: CopyFinder  # detector of copies of enrolled recordings
    # repeats, gate: detector of audio that repeats earlier audio, and the gate that excludes it
    repeats: RepeatFinder
    gate: RepeatGate
    conditions: StreamConditions  # sound conditions
    recordings: Recordings  # recordings of the stream
    changes: SpeakerChanges  # detector of changes of speaker or channel
    # segments between changes; None if all speech is weighed as one voice
    segments: SpeakerSegments | None
    # search for another voice that takes turns; None without a search
    second: SecondVoice | None = None

    def _kept(self) -> dict[str, Observer]:
        observers: dict[str, Observer | None] = {
            "conditions": self.conditions,
            "recordings": self.recordings,
            "changes": self.changes,
            "segments": self.segments,
            "second": self.second,
        }
        return {name: observer for name, observer in observers.items() if observer is not None}

    def state(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """Return the states of all observers by name, as plain values and arrays."""
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
