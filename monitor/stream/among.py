"""What the evidence of a moment means among people (docs/method.md section 10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from monitor.crowds import people, sizes
from monitor.errors import UsageError
from monitor.maths.evidence import bits_among, crowd_bits, posterior_among, total_bits
from monitor.stream.reading import Bits
from monitor.types import FloatArray

__all__ = ["CITY", "Among", "CrowdEvidence", "among_each", "crowds_for"]

CITY = 1_000_000
_MOST = 1e15


@dataclass(frozen=True, slots=True)
class Among:
    """A voice among so many people, N of them enrolled, of whom each was as likely before.

    Attributes:
        people: M.
        bits: ``log2(M p)``, p being the watched speaker's probability among them; where nobody is
            watched, the relative entropy of everybody's probabilities to even ones.
        bits_low, bits_high: limits, from those of the watched speaker's evidence; None where nobody
            is.
        probability: p, or None.
        favourite: where nobody is watched, the most probable of the enrolled, with the probability.
    """

    people: int
    bits: float
    bits_low: float | None = None
    bits_high: float | None = None
    probability: float | None = None
    favourite: tuple[str, float] | None = None

    def record(self) -> dict[str, Any]:
        """As JSON-able values."""
        one_in = 2.0 ** min(max(self.bits, -1000.0), 1000.0)
        return {
            "people": self.people,
            "bits": self.bits,
            "bits_low": self.bits_low,
            "bits_high": self.bits_high,
            "one_in": min(one_in, _MOST),
            "fitting": min(self.people / one_in, _MOST),
            "probability": self.probability,
            "favourite": None if self.favourite is None else list(self.favourite),
            "favourite_one_in": self._favourite_one_in(),
        }

    def _favourite_one_in(self) -> float | None:
        """A small probability outlives six decimals so."""
        if self.favourite is None:
            return None
        return min(1.0 / max(self.favourite[1], 1.0 / _MOST), _MOST)


class CrowdEvidence(NamedTuple):
    """What the evidence of one moment says in any crowd; None where nothing was learnt to tell it.

    Attributes:
        evidence: of the watched speaker, with its limits.
        support_bits, at_least, among: as in a `Reading`.
        ratios: bits of everybody enrolled, shape (N,).
    """

    evidence: Bits | None = None
    support_bits: float | None = None
    at_least: bool | None = None
    among: tuple[Among, ...] | None = None
    ratios: FloatArray | None = None


def crowds_for(asked: Sequence[float] | None, speakers: int) -> tuple[int, ...]:
    """The crowds to speak of, smallest first; unless asked, the N enrolled and a million.

    Raises:
        UsageError: one is no size of a crowd, or smaller than N.

    Example:
        >>> crowds_for(None, 50), crowds_for([1e4], 50)
        ((50, 1000000), (10000,))
    """
    if asked is None:
        return tuple(sorted({speakers, max(speakers, CITY)}))
    crowds = sizes(asked)
    if crowds[0] < speakers:
        raise UsageError(
            f"among {people(crowds[0])} people there is no room for the {speakers} enrolled; ask "
            f"for {speakers} or more"
        )
    return crowds


def among_each(
    bits: FloatArray,
    watched: Sequence[Bits | None],
    place: int | None,
    crowds: Sequence[int],
    names: Sequence[str],
) -> list[tuple[Among, ...]]:
    """What R moments say among each crowd.

    Args:
        bits: evidence of every candidate, shape (R, N).
        watched: that of the watched speaker with its limits, of each moment; None of nobody.
        place: of the watched speaker, or None.
        crowds: sizes M.
        names: of the candidates.
    """
    if place is None:
        each = [_nobody_watched(bits, m, names) for m in crowds]
        return list(zip(*each, strict=True))
    # the limits of a figure that is held to the support, about one that keeps everybody's odds
    own = np.array([[0.0, b.low - b.value, b.high - b.value] for b in watched if b is not None])
    own += bits[:, place, None]
    # rows as they lie alone: a sum depends on the order in memory
    rest = total_bits(np.ascontiguousarray(bits[:, np.arange(len(names)) != place]))
    found = crowd_bits(own[:, None], rest[:, None, None], len(names), np.array(crowds)[:, None])
    return [
        tuple(
            Among(m, value, low, high, min(2.0**value / m, 1.0))
            for m, (value, low, high) in zip(crowds, row, strict=True)
        )
        for row in found.tolist()
    ]


def _nobody_watched(bits: FloatArray, m: int, names: Sequence[str]) -> list[Among]:
    posterior = posterior_among(bits, m)
    best = posterior.argmax(axis=1)
    favourites = [
        (names[j], row[j]) for j, row in zip(best.tolist(), posterior.tolist(), strict=True)
    ]
    told = bits_among(bits, m, None).tolist()
    return [Among(m, b, favourite=each) for b, each in zip(told, favourites, strict=True)]
