"""A reading: the figures of one moment (docs/method.md section 5)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, cast

import numpy as np

from monitor.crowds import people, sizes
from monitor.crowds import people as in_words
from monitor.errors import UsageError
from monitor.maths.condition import Condition
from monitor.maths.evidence import bits_among, crowd_bits, posterior_among, total_bits
from monitor.phrases import one_in
from monitor.records.keys import HEADLINES, with_limits
from monitor.records.reading import READING
from monitor.types import AnyArray, FloatArray, IntArray

if TYPE_CHECKING:
    from monitor.records.typed import (
        AmongRecord,
        BystanderRecord,
        OpenChangeRecord,
        ReadingRecord,
    )


@dataclass(frozen=True, slots=True)
class Bystander:
    """An enrolled person who is not watched, with the probability that the voice is theirs."""

    name: str
    probability: float
    people: int

    def record(self) -> BystanderRecord:
        """Return JSON-able values."""
        return {"name": self.name, "probability": self.probability, "people": self.people}


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


@dataclass(frozen=True, slots=True)
class Change:
    """A change of speaker or channel.

    Attributes:
        seconds, since_seconds: when it was noticed, and where the new voice seems to have begun.
        features: those whose margin fell.
        margin_before, margin_after: mean margin of the first of them up to there, and since: nats a
            frame (histograms), a difference of cosines (embeddings) or bels (levels).
        back: the voice that was left speaks again; the margins are then those under it.
        label: in whose voice, of several people side by side.
    """

    type: ClassVar[Literal["change"]] = "change"
    seconds: float
    since_seconds: float
    features: tuple[str, ...]
    margin_before: float
    margin_after: float
    back: bool = False
    action: str = "note"
    label: str | None = None

    @property
    def code(self) -> str:
        """``change.note``, ``change.reset``, ``change.split``; ``change.back``: the first voice."""
        return f"change.{'back' if self.back else self.action}"

    def record(self) -> dict[str, Any]:
        """Return JSON-able values."""
        record = {"type": self.type, **asdict(self), "features": list(self.features)}
        if not self.back:
            del record["back"]
        if self.label is None:
            del record["label"]
        return record


@dataclass(frozen=True, slots=True)
class OpenChange:
    """A change that began nothing afresh: the evidence may be of two people now."""

    since_seconds: float
    features: tuple[str, ...]

    def record(self) -> OpenChangeRecord:
        """Return JSON-able values."""
        return {"since_seconds": self.since_seconds, "features": list(self.features)}


class Bits(NamedTuple):
    """A figure in bits with its limits: 2.5 and 97.5 percentiles of calibration uncertainty."""

    value: float
    low: float
    high: float


ZERO = Bits(0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class FeatureReading:
    """One feature at one moment; each figure in bits has its limits beside it.

    Attributes:
        usable: seconds of the audio that the feature could use (voiced seconds for f0).
        rank: the watched speaker's, 1 the most similar, the mean of tied ranks; or None.
        expected_bits: what a voice of this length discloses on average.
        rank_bits: ``log2(N gamma_rank)``, or None.
        local_bits: ``log2(N p)`` of the watched speaker, or None.
        gain_bits: the attacker's confidence, assuming that the speaker is enrolled.
    """

    usable: float
    rank: float | None
    expected_bits: float
    expected_bits_low: float
    expected_bits_high: float
    rank_bits: float | None
    rank_bits_low: float | None
    rank_bits_high: float | None
    local_bits: float | None
    local_bits_low: float | None
    local_bits_high: float | None
    gain_bits: float
    gain_bits_low: float
    gain_bits_high: float

    @classmethod
    def of(cls, usable: float, rank: float | None, **figures: Bits | None) -> FeatureReading:
        """Create one from figures with limits."""
        pairs = [with_limits(name, figure) for name, figure in figures.items()]
        return cls(
            usable,
            rank,
            **{key: value for figure_limits in pairs for key, value in figure_limits.items()},
        )


@dataclass(frozen=True, slots=True)
class Reading:
    """All figures at one moment of a stream.

    Attributes are named as the keys of its record, where docs/records.md says what each one means;
    each figure in bits has its limits beside it, as ``bits_low`` and ``bits_high``. These are no
    keys, or hold more:

    Attributes:
        features: by name.
        guides: basic (``linear``) and advanced (``sqrt``) composition scaling, capped at the
            ceiling.
        evidence_guides: the same of the evidence, from its mean at the first calibrated length,
            capped at what calibration supports; None where the headline is no evidence.
        names: the N candidates.
        posterior: the joint score posterior, shape (N,).
        ratios: bits of everybody's likelihood ratio, lowered alike to what can be supported, shape
            (N,), or None.
        recording: which recording of the stream it ends in.
        protected: what the same voice discloses through an anonymiser; None where there is none.
        label: whose voice it is, of several people side by side; None of one stream.
        watch: the watched speaker, where several are watched.
    """

    type: ClassVar[Literal["reading"]] = "reading"
    code: ClassVar[str] = "reading"
    seconds: float
    speech: float
    bits: float | None
    bits_low: float | None
    bits_high: float | None
    headline: str
    closed_set_bits: float | None
    closed_set_bits_low: float | None
    closed_set_bits_high: float | None
    gain_bits: float
    gain_bits_low: float
    gain_bits_high: float
    expected_bits: float
    expected_bits_low: float
    expected_bits_high: float
    sum_bits: float | None
    peak_bits: float | None
    ceiling: float
    plateau: float
    guides: tuple[float, float]
    session: str
    assumes_enrolled: bool
    beyond_grid: bool
    features: Mapping[str, FeatureReading]
    names: tuple[str, ...]
    posterior: FloatArray
    top: Sequence[tuple[str, float]]
    evidence_bits: float | None = None
    evidence_bits_low: float | None = None
    evidence_bits_high: float | None = None
    evidence_guides: tuple[float, float] | None = None
    support_bits: float | None = None
    at_least: bool | None = None
    among: Sequence[Among] | None = None
    ratios: FloatArray | None = None
    bystanders: Sequence[Bystander] | None = None
    enrolled: float | None = None
    enrolled_withheld: tuple[str, ...] = ()
    withheld: str = ""
    spread_low: float | None = None
    spread_high: float | None = None
    spread_others: float | None = None
    excluded_seconds: float | None = None
    stream: int = 1
    change: OpenChange | None = None
    recording: int = 0
    protected: ProtectedReading | None = None
    conditions: Condition | None = None
    differs: Sequence[str] = ()
    lag: float | None = None
    declared: Mapping[str, Any] | None = None
    label: str | None = None
    watch: str | None = None

    def record(self) -> ReadingRecord:
        """The reading as a JSON-able record, key by key as `monitor.records.reading` declares."""
        return cast("ReadingRecord", READING.of(self))


@dataclass(frozen=True, slots=True)
class ProtectedReading:
    """Disclosure of the same seconds through an anonymiser, to each attacker tried.

    Its figure is that of the strongest, in the unit of the clear headline; who that is may change
    from reading to reading. An anonymiser is worth no more than that.

    Attributes:
        attackers: by what the attacker knows of the anonymiser, what this one would read.
        headline: what the clear side's headline is, ``"evidence"`` or ``"closed-set"``.
    """

    attackers: Mapping[str, Reading]
    headline: str

    @property
    def speech(self) -> float:
        """Seconds of speech in the protected audio."""
        return next(iter(self.attackers.values())).speech

    @property
    def by(self) -> str | None:
        """The attacker who reads the most; None where one of them has no figure."""
        field = HEADLINES[self.headline]
        figures = {name: getattr(reading, field) for name, reading in self.attackers.items()}
        if not figures or None in figures.values():
            return None  # the others' might be less than that one's
        return max(figures, key=lambda name: float(figures[name] or 0.0))

    @property
    def bits(self) -> float | None:
        """The highest figure of the attackers."""
        return self._figure("")

    @property
    def bits_low(self) -> float | None:
        """The lower limit."""
        return self._figure("_low")

    @property
    def bits_high(self) -> float | None:
        """The upper limit."""
        return self._figure("_high")

    @property
    def at_least(self) -> bool:
        """True if it is evidence, and somebody's was cut to what calibration supports."""
        if self.headline != "evidence":
            return False
        return any(bool(reading.at_least) for reading in self.attackers.values())

    def _figure(self, end: str) -> float | None:
        if self.by is None:
            return None
        value: float | None = getattr(self.attackers[self.by], HEADLINES[self.headline] + end)
        return value


CITY = 1_000_000
_MOST = 1e15


@dataclass(frozen=True, slots=True)
class Among:
    """A voice among M people, N of them enrolled, of whom each was as likely before.

    Attributes:
        bits: ``log2(M p)``, p being the watched speaker's probability among them; where nobody is
            watched, the relative entropy of everybody's probabilities to even ones.
        bits_low, bits_high: limits, from those of the watched speaker's evidence, or None.
        probability: p, or None.
        favourite: where nobody is watched, the most probable of the enrolled, with the probability.
    """

    people: int
    bits: float
    bits_low: float | None = None
    bits_high: float | None = None
    probability: float | None = None
    favourite: tuple[str, float] | None = None

    def record(self) -> AmongRecord:
        """Return JSON-able values."""
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
            # a small probability outlives six decimals so
            "favourite_one_in": (
                None
                if self.favourite is None
                else min(1.0 / max(self.favourite[1], 1.0 / _MOST), _MOST)
            ),
        }


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
