"""A reading: the figures of one moment (docs/method.md section 5)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from monitor.crowds import people, sizes
from monitor.crowds import people as in_words
from monitor.errors import UsageError
from monitor.events.reading import Among, Bits, Bystander, FeatureReading
from monitor.maths.evidence import bits_among, crowd_bits, posterior_among, total_bits
from monitor.phrases import one_in
from monitor.types import AnyArray, FloatArray, IntArray


class Bystanders:
    """Finder of other enrolled people whose probability among M people exceeds a level.

    Everybody enrolled loses when anybody speaks (docs/method.md section 10). ``people`` is M, at
    least N; ``watched`` is no bystander.

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

    def find(self, ratios: Sequence[FloatArray | None]) -> list[tuple[Bystander, ...] | None]:
        """List them at each of R moments, the most probable first, by everybody's bits, (N,)."""
        bystanders: list[tuple[Bystander, ...] | None] = [None] * len(ratios)
        rows = [r for r, row in enumerate(ratios) if row is not None]
        if not rows:
            return bystanders
        table = posterior_among(np.stack([ratios[r] for r in rows]), self.people)  # type: ignore[misc]
        if self._watched is not None:
            table[:, self._watched] = 0.0
        for r, row, above in zip(rows, table, table > self.level, strict=True):
            places = np.flatnonzero(above)
            order = places[np.argsort(-row[places], kind="stable")].tolist()
            bystanders[r] = tuple(
                Bystander(self._names[j], float(row[j]), self.people) for j in order
            )
        return bystanders

    def notice(self, support_bits: float) -> str:
        """Explain why calibration supports no such level; empty where it does."""
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


ZERO = Bits(0.0, 0.0, 0.0)


CITY = 1_000_000


class CrowdEvidence(NamedTuple):
    """Evidence of one moment in any crowd, named as in a `Reading`."""

    evidence: Bits | None = None
    support_bits: float | None = None
    at_least: bool | None = None
    among: tuple[Among, ...] | None = None
    ratios: FloatArray | None = None


def choose_crowds(asked: Sequence[float] | None, speakers: int) -> tuple[int, ...]:
    """Return the sizes of crowds, smallest first; by default the N enrolled and a million.

    Raises:
        UsageError: one is no size of a crowd, or smaller than N.

    Example:
        >>> choose_crowds(None, 50), choose_crowds([1e4], 50)
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


def compute_crowds(
    bits: FloatArray,
    watched: Sequence[Bits | None],
    place: int | None,
    crowds: Sequence[int],
    names: Sequence[str],
) -> list[tuple[Among, ...]]:
    """Compute the figures of R moments in each crowd, by everybody's evidence, shape (R, N).

    ``watched`` is the watched speaker's with its limits at each moment, whose ``place`` is given.
    """
    if place is None:
        series = [_compute_gains(bits, m, names) for m in crowds]
        return list(zip(*series, strict=True))
    # the limits of a figure that is held to the support, about one that keeps everybody's odds
    own = np.array([[0.0, b.low - b.value, b.high - b.value] for b in watched if b is not None])
    own += bits[:, place, None]
    # rows as they lie alone: a sum depends on the order in memory
    rest = total_bits(np.ascontiguousarray(bits[:, np.arange(len(names)) != place]))
    figures = crowd_bits(own[:, None], rest[:, None, None], len(names), np.array(crowds)[:, None])
    return [
        tuple(
            Among(m, value, low, high, min(2.0**value / m, 1.0))
            for m, (value, low, high) in zip(crowds, row, strict=True)
        )
        for row in figures.tolist()
    ]


def _compute_gains(bits: FloatArray, m: int, names: Sequence[str]) -> list[Among]:
    posterior = posterior_among(bits, m)
    best = posterior.argmax(axis=1)
    favourites = [
        (names[j], row[j]) for j, row in zip(best.tolist(), posterior.tolist(), strict=True)
    ]
    gains = bits_among(bits, m, None).tolist()
    return [
        Among(m, b, favourite=favourite) for b, favourite in zip(gains, favourites, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class RunningTotals:
    """Totals of one feature by each of R moments.

    Attributes:
        totals: shape (R, M), of its sketch.
        frames, usable_seconds: shape (R,), behind them.
        early: shape (R, M), what an early frame adds to the totals where there is one frame at
            most; None where none ever does.
        early_seconds: shape (R,), of speech that both were made of; 0 where there is none.
    """

    totals: AnyArray
    frames: IntArray
    usable_seconds: FloatArray
    early: AnyArray | None = None
    early_seconds: IntArray | None = None

    def with_early(self, first_seconds: float) -> RunningTotals:
        """Add the early frame where it is of so much speech at least."""
        if self.early is None or self.early_seconds is None:
            return self
        is_covered = self.early_seconds >= first_seconds
        return RunningTotals(
            self.totals + self.early * is_covered[:, None],
            self.frames + is_covered,
            np.where(is_covered, self.early_seconds, self.usable_seconds),
            early_seconds=self.early_seconds * is_covered,
        )

    def length(self, seconds: FloatArray) -> FloatArray:
        """Return T of R moments, that of an early frame where there is more speech since."""
        if self.early_seconds is None:
            return seconds
        return np.minimum(seconds, np.where(self.early_seconds > 0, self.early_seconds, np.inf))

    def select(self, rows: AnyArray | slice) -> RunningTotals:
        """Select some of the moments."""
        early = None if self.early is None else self.early[rows]
        seconds = None if self.early_seconds is None else self.early_seconds[rows]
        return RunningTotals(
            self.totals[rows], self.frames[rows], self.usable_seconds[rows], early, seconds
        )


@dataclass(frozen=True, slots=True)
class Assessment:
    """The attacker's assessment of a stream; bits are of the joint posterior, shape (N,).

    ``crowd_evidence`` is the evidence in any crowd; the rest is named as in a `Reading`.
    """

    features: Mapping[str, FeatureReading]
    local: Bits | None
    gain: Bits
    expected: Bits
    posterior: FloatArray
    top: Sequence[tuple[str, float]]
    crowd_evidence: CrowdEvidence
    enrolled: float | None
    enrolled_withheld: tuple[str, ...]
    beyond_grid: bool
