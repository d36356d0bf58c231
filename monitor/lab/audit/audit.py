"""Findings of an audit: of a corpus, of recorded runs or of an attack.

Singling out, linkability and inference are separated, as in the Article 29 Working Party's opinion
05/2014 (WP216). An audit says what the attackers who were tried learn, and who was not tried; never
whether data are anonymous, which is a question of law.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup, defaults, superseded
from monitor.jobs import Jobs
from monitor.kinds import FeatureSpec
from monitor.lab.attacks.context import BITS
from monitor.lab.attributes import AttributeRow
from monitor.lab.audit.exposure import (
    HEADLINE_PEOPLE,
    LEAST_PEOPLE,
    LENGTHS,
    Exposures,
    LengthRow,
    Retention,
    find_retention,
    summarise_lengths,
)
from monitor.lab.evaluation.family import Figure
from monitor.maths.condition import Condition
from monitor.maths.statistics import REPLICATES

STRONGER = (
    "Stronger networks than those named, and attackers who train on speech of this very product."
)
UNTRIED = (
    "Listeners who know the person, and people who are good at voices.",
    STRONGER,
    "What is said: names, places, topics; and the words themselves, unless style is among the "
    "features.",
    "What comes with the audio: file names, times, accounts, devices, background sounds.",
    "Combination with other data about the same people.",
    "Other languages, channels, rooms, illness, emotion and age than these recordings have.",
)

SESSIONS = {"cross": "another session", "same": "the same session"}


CONDITION_NAMES = {
    "bandwidth_hz": ("band", "Hz"),
    "snr_db": ("speech above noise", "dB"),
    "reverberation_seconds": ("reverberation (RT60)", "s"),
    "clipping": ("clipped samples", "share"),
    "level_db": ("level", "dB"),
}


@dataclass(frozen=True, slots=True)
class TestRow:
    """Result of one attacker in one test.

    Attributes:
        method: of protection; empty where nothing was protected.
        attacker: what it knows, or empty.
        feature: by what it recognises voices; ``"joint"`` by all of them.
        seconds, template_seconds: T and D, speech seconds.
        session: ``"cross"`` or ``"same"``.
        speakers: N, whom each trial was compared with.
        trials, tested: how many trials there are, and of how many speakers.
        figures: by key, as ``monitor evaluate`` calls them.
    """

    method: str
    attacker: str
    feature: str
    seconds: float
    template_seconds: float
    session: str
    speakers: int
    trials: int
    tested: int
    figures: Mapping[str, Figure]

    @property
    def bits(self) -> float:
        """Bits by which attackers are compared."""
        figure = self.figures.get(BITS)
        return 0.0 if figure is None or figure.value is None else figure.value


@dataclass(frozen=True, slots=True)
class ConditionRow:
    """One figure of how the sessions sound: its middle, and where four in five lie."""

    name: str
    sessions: int
    middle: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class SoundDifference:
    """Shares of session pairs that sound different, by speakers.

    Attributes:
        same, different: share of pairs of sessions of one speaker, and of two; None without pairs.
    """

    same: float | None
    different: float | None


@dataclass(frozen=True)
class Audit:
    """Findings of an audit.

    Attributes:
        name: of what was tested.
        kind: ``"corpus"``, ``"runs"`` or ``"attack"``.
        facts: what was tested, by what it is of.
        among: M, the crowd that people are singled out of.
        budget: bits.
        exposures: of stretches of speech; None of an attack.
        rows: by length of them, of however few people.
        tests: of ranks and links.
        attributes: rows by name.
        conditions: how the sessions sound.
        apart: whether speakers sound apart by their recordings alone.
        not_tested: who and what was not tried, a sentence each.
        notes: what a reader has to know.
        problems: what could not be used.
        commands: that give the same figures.
        skipped: files that could not be used, or not whole.
        replicates, seed: of the resamples of speakers behind limits.
    """

    name: str
    kind: str
    facts: Mapping[str, str]
    among: int
    budget: float
    exposures: Exposures | None = None
    rows: tuple[LengthRow, ...] = ()
    tests: tuple[TestRow, ...] = ()
    attributes: Mapping[str, Sequence[AttributeRow]] = field(default_factory=dict)
    conditions: tuple[ConditionRow, ...] = ()
    apart: SoundDifference | None = None
    not_tested: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    skipped: int = 0
    replicates: int = REPLICATES
    seed: int = 0

    @property
    def least_people(self) -> int:
        """Fewest people of whom figures are stated: all where no more were tested."""
        people = 0 if self.exposures is None else len(self.exposures.speakers)
        return min(LEAST_PEOPLE, people)

    @property
    def retention(self) -> Retention | None:
        """Longest speech that may be retained; None where no lengths were tested."""
        return find_retention(self.rows, self.budget, self.least_people) if self.rows else None

    @property
    def shown(self) -> tuple[LengthRow, ...]:
        """Rows of lengths that enough people reached for something to be said of them."""
        return tuple(row for row in self.rows if row.speakers >= self.least_people)

    @property
    def _enough(self) -> Sequence[LengthRow]:
        """Rows of lengths that ten people reach; those shown where no length has so many."""
        return [row for row in self.shown if row.speakers >= HEADLINE_PEOPLE] or self.shown

    @property
    def headline(self) -> LengthRow | None:
        """The length at which most is disclosed on average, by ten people where so many reach it.

        Of longer stretches there are often few, and of other people.
        """
        return max(self._enough, key=lambda row: (row.mean.value or 0.0, row.seconds), default=None)

    @cached_property
    def same_people(self) -> tuple[LengthRow, ...]:
        """Rows by which lengths compare: of those who reach each of them, everybody counted once.

        Up to the longest length that ten people reach, or all that there are of fewer.
        """
        rows = self._enough
        if self.exposures is None or not rows:
            return ()
        common = self.exposures.select_common([row.seconds for row in rows])
        if len(set(common.owner.tolist())) < self.least_people:
            return ()
        return summarise_lengths(common.by_person(), replicates=self.replicates, seed=self.seed)

    def strongest(self, session: str | None = None, method: str | None = None) -> TestRow | None:
        """Return the test that discloses most, of one kind of session or method if given."""
        rows = [
            row
            for row in self.tests
            if session in (None, row.session) and method in (None, row.method)
        ]
        return max(rows, key=lambda row: row.bits, default=None)

    @property
    def methods(self) -> tuple[str, ...]:
        """Methods of protection of the tests."""
        return tuple(dict.fromkeys(row.method for row in self.tests))


def hash_speaker(speaker: str, salt: str = "") -> str:
    """Return twelve hexadecimal digits that stand for a speaker's name.

    Whoever has the list of names and the salt can find out whose it is.

    Example:
        >>> hash_speaker("ann"), hash_speaker("ann", "x") != hash_speaker("ann")
        ('49915e0d7d4b', True)
    """
    return hashlib.sha256(f"{salt}{speaker}".encode()).hexdigest()[:12]


@dataclass(frozen=True)
class AuditConfig:
    """Settings of an audit.

    Attributes:
        budget: bits that one person's speech may disclose.
        among: M, the crowd that people are singled out of.
        lengths: T, of stretches.
        template_seconds: D; None for a minute, or what half of the speakers have.
        features: names; None for those that are ready.
        attributes: columns of the speakers' table, ``COLUMN<NUMBER``; None for usual ones.
        attribute_table: that says them; None for that of the corpus.
        rank_model: file of rank models, with their cohort; None for the shipped ones.
        replicates, seed: of the resamples of speakers.
        jobs: processes that listen.
        setup: from where features are made.
    """

    budget: float = 6.0
    among: int = 1_000_000
    lengths: tuple[float, ...] = LENGTHS
    template_seconds: float | None = None
    features: tuple[str, ...] | None = None
    attributes: tuple[str, ...] | None = None
    attribute_table: Path | None = None
    rank_model: Path | None = None
    replicates: int = REPLICATES
    seed: int = 0
    jobs: Jobs = 1
    setup: FeatureSetup = AS_ENVIRONMENT


DEFAULTS = AuditConfig()


def report_short_lengths(rows: Sequence[LengthRow], least_people: int) -> list[str]:
    """Report lengths with too few people."""
    lengths = [f"{row.seconds:g}" for row in rows if row.speakers < least_people]
    return [f"Lengths that fewer than {least_people} people reach are left out: "
            f"{', '.join(lengths)} s."] * bool(lengths)  # fmt: skip


def get_shortest_seconds(specs: Mapping[str, FeatureSpec]) -> float:
    """Return the speech seconds below which a feature has no frame, and an attacker is too weak.

    A stretch that is shorter would read low for want of an attacker, not of disclosure.
    """
    return max((spec.kind.span_seconds(spec.frame_seconds) for spec in specs.values()), default=0.0)


def summarise_conditions(conditions: Iterable[Condition | None]) -> tuple[ConditionRow, ...]:
    """Summarise how sessions sound; those without a condition are left out."""
    sounds = [condition for condition in conditions if condition is not None]
    rows = []
    for name in CONDITION_NAMES:
        figures = [value for sound in sounds if (value := getattr(sound, name)) is not None]
        if figures:
            low, middle, high = np.quantile(figures, (0.1, 0.5, 0.9)).tolist()
            rows.append(ConditionRow(name, len(figures), middle, low, high))
    return tuple(rows)


def report_unused_features(used: Collection[str], setup: FeatureSetup) -> Iterator[str]:
    """Report features that were not used: without them figures may be far too low."""
    more = [name for name in defaults(setup=setup) if not (name in used or superseded(name, used))]
    if more:
        yield (
            f"Recognition by {' and '.join(more)}, which this program can hear in audio: whoever "
            f"uses more than {', '.join(used)} learns more, by an embedding far more."
        )
