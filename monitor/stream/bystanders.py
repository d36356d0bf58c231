"""Who else became more probable: everybody enrolled loses when anybody speaks.

Source: docs/method.md section 10.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from monitor.crowds import people as in_words
from monitor.errors import UsageError
from monitor.maths.evidence import posterior_among
from monitor.phrases import one_in
from monitor.types import FloatArray

if TYPE_CHECKING:
    from monitor.stream.attacker import Attacker

__all__ = ["Bystander", "Bystanders", "bystanders_of"]


@dataclass(frozen=True, slots=True)
class Bystander:
    """Somebody enrolled who is not followed, and how probable the voice is theirs.

    Attributes:
        name: of the template.
        probability: among ``people``, N of them enrolled, of whom each was as likely before.
        people: M.
    """

    name: str
    probability: float
    people: int

    def record(self) -> dict[str, Any]:
        """As JSON-able values."""
        return {"name": self.name, "probability": self.probability, "people": self.people}


class Bystanders:
    """Those whose probability among M people lies above a level.

    Args:
        names: the N candidates.
        watched: who is followed and no bystander; None where nobody is.
        people: M, at least N.
        level: a probability, over 1/M.

    Raises:
        UsageError: the level is no probability, or one that everybody begins with.
    """

    def __init__(
        self, names: Sequence[str], watched: str | None, people: int, level: float
    ) -> None:
        if not 1.0 / people < level < 1.0:
            raise UsageError(
                f"bystanders={level:g} must be a probability under 1 and over 1 in "
                f"{people:,}, which everybody begins with"
            )
        self.people, self.level = people, level
        self._names = tuple(names)
        self._watched = None if watched is None else self._names.index(watched)

    def each(self, ratios: Sequence[FloatArray | None]) -> list[tuple[Bystander, ...] | None]:
        """Those at each of R moments, the most probable first.

        Args:
            ratios: bits of everybody's likelihood ratio, shape (N,) each; None where nothing was
                learnt to tell it by.
        """
        made: list[tuple[Bystander, ...] | None] = [None] * len(ratios)
        some = [r for r, row in enumerate(ratios) if row is not None]
        if not some:
            return made
        table = posterior_among(np.stack([ratios[r] for r in some]), self.people)  # type: ignore[misc]
        if self._watched is not None:
            table[:, self._watched] = 0.0
        for r, row, above in zip(some, table, table > self.level, strict=True):
            places = np.flatnonzero(above)
            order = places[np.argsort(-row[places], kind="stable")].tolist()
            made[r] = tuple(Bystander(self._names[j], float(row[j]), self.people) for j in order)
        return made

    def notice(self, support_bits: float) -> str:
        """That nobody can come to the level, where calibration supports too little; else empty."""
        ratio = 2.0**support_bits
        most = ratio / (ratio + self.people - 1)
        if most > self.level:
            return ""
        enough = ratio * (1.0 / self.level - 1.0)
        size = 10.0 ** math.floor(math.log10(max(enough, 10.0)))
        return (
            f"no bystander can come to a probability of {one_in(self.level)} among "
            f"{in_words(self.people)}: calibration supports {support_bits:.1f} bits of evidence, "
            f"{one_in(most)} there; state a smaller crowd (--among {size:g}) or level"
        )


def bystanders_of(attacker: Attacker, watch: str | None, level: float) -> Bystanders:
    """What names the bystanders of a stream, in the largest crowd of its attacker.

    Raises:
        UsageError: the level is no probability, or nothing was learnt to tell it by.
    """
    if attacker.support_bits is None:
        why = attacker.withheld or attacker.evidence_lacks
        raise UsageError(f"bystanders cannot be told: {why}")
    watched = watch if attacker.watched else None
    return Bystanders(attacker.names, watched, attacker.among[-1], level)
