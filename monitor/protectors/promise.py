"""What an epsilon for each frame comes to over all frames of a speaker."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from monitor.evaluation.accounting.account import Spent
from monitor.maths.composition import advanced, basic, optimal
from monitor.maths.privacyloss import DELTA

__all__ = ["EVERYBODY_BITS", "Promise", "empty_after", "promises", "spent_on"]

EVERYBODY_BITS = 33.0
"""Enough to tell one person from all others alive: 2 ** 33 is more than 8 billion."""


@dataclass(frozen=True, slots=True)
class Promise:
    """How much all frames of one speaker can give away together.

    Attributes:
        speaker: who.
        epsilon: of one frame, nats.
        delta: with which probability the advanced and the optimal bound may fail.
        seconds: of speech that the frames stand for.
        spent: frames, and the bounds of the three compositions, in nats (docs/method.md section 6).
    """

    speaker: str
    epsilon: float
    delta: float
    seconds: float
    spent: Spent

    @property
    def most_bits(self) -> float:
        """Evidence in bits that no attacker exceeds who sees all of it: k epsilon / ln 2."""
        return self.spent.basic_nats / math.log(2)

    @property
    def empty(self) -> bool:
        """Whether as much is allowed as tells one person from all others alive."""
        return self.most_bits >= EVERYBODY_BITS


def promises(
    frames: Mapping[str, tuple[int, float]], epsilon: float, delta: float = DELTA
) -> list[Promise]:
    """One for each speaker, over all recordings and features: an attacker has them all.

    Args:
        frames: of each speaker how many, and seconds of speech.
        epsilon: of one frame, nats.
        delta: of the advanced and the optimal composition.

    Example:
        >>> (ann,) = promises({"ann": (10, 30.0)}, 0.5)
        >>> ann.spent.basic_nats, round(ann.most_bits, 1), ann.empty
        (5.0, 7.2, False)
    """
    return [
        Promise(speaker, epsilon, delta, seconds, spent_on(epsilon, count, delta))
        for speaker, (count, seconds) in frames.items()
    ]


def spent_on(epsilon: float, count: int, delta: float, *, optimal_of: int | None = None) -> Spent:
    """What so many frames spend, by each composition.

    Args:
        epsilon: of one frame, nats.
        count: of frames.
        delta: of the advanced and the optimal composition.
        optimal_of: as many frames or more, whose optimal composition is a bound for fewer, too.

    Example:
        >>> spent_on(0.5, 10, 1e-4, optimal_of=12).optimal_nats
        5.0
    """
    least = optimal(epsilon, count if optimal_of is None else optimal_of, delta)
    whole = basic(epsilon, count)
    return Spent(count, whole, advanced(epsilon, count, delta), min(whole, least))


def empty_after(epsilon: float) -> int:
    """Frames after which the promise is empty.

    Example:
        >>> empty_after(15.0), empty_after(0.1)
        (2, 229)
    """
    return math.ceil(EVERYBODY_BITS * math.log(2) / epsilon)
