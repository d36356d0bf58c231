"""Follows who speaks: from one reading to the next, has another speaker or channel taken over?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from monitor.kinds.following import Sensitivity
from monitor.population.population import Population
from monitor.stream.attacker import Attacker
from monitor.stream.background import background
from monitor.stream.change import Change, ChangeDetector, Followed, Open
from monitor.stream.intake import Moments
from monitor.types import AnyArray

__all__ = ["ON_CHANGE", "SpeakerTurns", "ToldTurns", "change_detector"]

ON_CHANGE = ("ignore", "note", "reset", "split")
"""What a monitor can do at a change: not look, say so, forget the evidence, begin a new stream."""


class SpeakerTurns:
    """Hands the frames between two readings to the detector of changes, and keeps what it found.

    Args:
        detector: None looks for nothing.
        on_change: one of `ON_CHANGE`.

    Attributes:
        open: the change since which it is not known whose evidence this is; None where it is.
    """

    def __init__(self, detector: ChangeDetector | None, on_change: str) -> None:
        self._detector, self._on_change = detector, on_change
        self._step: list[dict[str, AnyArray]] = []  # frames since the last reading
        self.open: Open | None = None

    @property
    def looks(self) -> bool:
        """Whether changes are looked for at all."""
        return self._detector is not None

    @property
    def afresh(self) -> bool:
        """Whether the evidence begins afresh at a change."""
        return self._on_change in ("reset", "split")

    def rest(self) -> None:
        """Look for no changes any more."""
        self._detector = None
        self._step = []

    def follow(self, moments: Moments, r: int) -> None:
        """Keep the frames that moment r brings, for the next reading."""
        if self._detector is not None:
            self._step.append(moments.step(r))

    def changed(self, tick: int) -> Change | None:
        """Whether somebody else speaks, as far as the reading at this tick tells."""
        if self._detector is None:
            return None
        step = {
            name: np.concatenate([part[name] for part in self._step]) for name in self._step[-1]
        }
        self._step = []
        change = self._detector.update(step, tick)
        if change is not None:
            self._note(change)
        return change

    def _note(self, change: Change) -> None:
        """A change opens, or closes, what is not known of the voice."""
        if change.back:
            self.open = None
        elif not self.afresh and self.open is None:
            self.open = Open(change.since_seconds, change.features)

    def state(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """What a monitor must keep of it: plain values, and arrays."""
        plain: dict[str, Any] = {"open": None if self.open is None else self.open.record()}
        arrays: dict[str, AnyArray] = {}
        if self._detector is not None:
            plain["change"], arrays = self._detector.state()
        return plain, arrays

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> None:
        """Take up a ``state``."""
        if self._detector is not None:
            self._detector.restore(plain["change"], arrays)
        opened = plain["open"]
        self.open = (
            None if opened is None else Open(opened["since_seconds"], tuple(opened["features"]))
        )


class ToldTurns(SpeakerTurns):
    """Looks for no changes itself: those of another monitor of the same voice hold here as well.

    Args:
        on_change: one of `ON_CHANGE`.
    """

    def __init__(self, on_change: str) -> None:
        super().__init__(None, on_change)
        self._told: tuple[int, Change] | None = None

    def tell(self, tick: int, change: Change) -> None:
        """The reading at this tick comes with a change."""
        self._told = tick, change

    def changed(self, tick: int) -> Change | None:
        """What was told of this tick."""
        if self._told is None or self._told[0] != tick:
            return None
        _, change = self._told
        self._told = None
        self._note(change)
        return change


def change_detector(
    population: Population, attacker: Attacker, on_change: str, follow: Mapping[str, Sensitivity]
) -> ChangeDetector:
    """What looks for changes in features of an attacker, and in the channel.

    Args:
        population: what the attacker knows.
        attacker: whose features.
        on_change: as of `Monitor`.
        follow: settings of the features that are followed; the others are not.
    """
    from monitor.features.channel import Channel  # brings the Fourier transform

    nobody = np.empty((0, Channel.spec.size))  # needed to compare with
    voices = {"channel": Followed(Channel.spec.kind, nobody, Channel.follow)}
    for name, others in background(population, attacker.scoring, follow).items():
        voices[name] = Followed(population.features[name].spec.kind, others, follow[name])
    returns = on_change == "note"  # fresh evidence needs nobody to be back
    return ChangeDetector(voices, returns=returns)
