"""What a voice discloses through a protector, to each attacker who was asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from monitor.stream.reading import Bits, Reading

__all__ = ["ProtectedReading"]


@dataclass(frozen=True, slots=True)
class ProtectedReading:
    """The protected side of a reading, of the same seconds of the same voice.

    A figure is that of the attacker who learns most: who does may change from reading to reading,
    and from figure to figure.

    Attributes:
        attackers: by what the attacker knows of the protector, what this one would read.
    """

    attackers: Mapping[str, Reading]

    @property
    def speech(self) -> float:
        """Seconds of speech that voice activity hears in the protected audio."""
        return next(iter(self.attackers.values())).speech

    @property
    def bits_by(self) -> str | None:
        """Whose headline is the largest; None where all are withheld."""
        told = {n: r.bits for n, r in self.attackers.items() if r.bits is not None}
        return max(told, key=lambda name: told[name]) if told else None

    @property
    def bits(self) -> Bits | None:
        """The largest headline, with its limits."""
        name = self.bits_by
        if name is None:
            return None
        reading = self.attackers[name]
        value, low, high = reading.bits, reading.bits_low, reading.bits_high
        if value is None or low is None or high is None:
            return None
        return Bits(value, low, high)

    @property
    def evidence_by(self) -> str | None:
        """Whose evidence is the strongest; None where there is none."""
        told = {n: r.evidence.value for n, r in self.attackers.items() if r.evidence is not None}
        return max(told, key=lambda name: told[name]) if told else None

    @property
    def evidence(self) -> Bits | None:
        """The strongest evidence, with its limits."""
        name = self.evidence_by
        return None if name is None else self.attackers[name].evidence

    @property
    def at_least(self) -> bool | None:
        """Whether anybody's evidence was cut to what can be supported; None where there is none."""
        told = [r.at_least for r in self.attackers.values() if r.at_least is not None]
        return any(told) if told else None
