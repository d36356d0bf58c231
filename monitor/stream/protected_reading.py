"""What a voice discloses through a protector, to each attacker who was tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from monitor.records.keys import HEADLINES
from monitor.stream.reading import Reading

__all__ = ["ProtectedReading"]


@dataclass(frozen=True, slots=True)
class ProtectedReading:
    """The protected side of a reading, of the same seconds of the same voice.

    Its figure is that of the strongest attacker who was tried, in the unit of the clear headline.
    Who that is may change from reading to reading. An anonymiser is worth no more than that: an
    attacker who does not know of it says little.

    Attributes:
        attackers: by what the attacker knows of the protector, what this one would read.
        headline: what the clear side's headline is, ``"evidence"`` or ``"closed-set"``.
    """

    attackers: Mapping[str, Reading]
    headline: str

    @property
    def speech(self) -> float:
        """Seconds of speech that voice activity hears in the protected audio."""
        return next(iter(self.attackers.values())).speech

    @property
    def by(self) -> str | None:
        """Who reads the most; None where one of those who were tried has no figure."""
        field = HEADLINES[self.headline]
        found = {name: getattr(each, field) for name, each in self.attackers.items()}
        if not found or None in found.values():
            return None  # the others' might be less than that one's
        return max(found, key=lambda name: float(found[name] or 0.0))

    @property
    def bits(self) -> float | None:
        """The most that anybody reads."""
        return self._figure("")

    @property
    def bits_low(self) -> float | None:
        """Its lower limit."""
        return self._figure("_low")

    @property
    def bits_high(self) -> float | None:
        """Its upper limit."""
        return self._figure("_high")

    @property
    def at_least(self) -> bool:
        """Whether it is evidence, and anybody's was cut to what can be supported."""
        if self.headline != "evidence":
            return False
        return any(bool(each.at_least) for each in self.attackers.values())

    def _figure(self, end: str) -> float | None:
        if self.by is None:
            return None
        value: float | None = getattr(self.attackers[self.by], HEADLINES[self.headline] + end)
        return value
