"""The records of a reading as types: what ``record()`` returns, key by key as the schema has it.

A figure is None while it is withheld; a key that is not required is missing in older runs, or where
nothing was asked of it. `monitor.records.reading` says what each means.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypeAlias, TypedDict

Figure: TypeAlias = float | None
Session: TypeAlias = Literal["cross", "same"]
Headline: TypeAlias = Literal["evidence", "closed-set"]


class GuidesRecord(TypedDict):
    """What the headline would have come to had it grown with T, or with its root."""

    linear: Figure
    sqrt: Figure


class FeatureRecord(TypedDict):
    """One feature of a reading."""

    usable: float
    rank: Figure
    expected_bits: Figure
    expected_bits_low: NotRequired[Figure]
    expected_bits_high: NotRequired[Figure]
    rank_bits: Figure
    rank_bits_low: NotRequired[Figure]
    rank_bits_high: NotRequired[Figure]
    local_bits: Figure
    local_bits_low: NotRequired[Figure]
    local_bits_high: NotRequired[Figure]
    gain_bits: Figure
    gain_bits_low: NotRequired[Figure]
    gain_bits_high: NotRequired[Figure]


class AmongRecord(TypedDict):
    """A voice in a crowd."""

    people: float
    bits: Figure
    bits_low: NotRequired[Figure]
    bits_high: NotRequired[Figure]
    one_in: NotRequired[Figure]
    fitting: NotRequired[Figure]
    probability: NotRequired[Figure]
    favourite: NotRequired[list[str | float] | None]
    favourite_one_in: NotRequired[Figure]


class BystanderRecord(TypedDict):
    """Somebody enrolled who is not followed, and how probable the voice is theirs."""

    name: str
    probability: float
    people: int


class OpenChangeRecord(TypedDict):
    """A change that was noted and did not begin the evidence afresh."""

    since_seconds: float
    features: list[str]


class ConditionsRecord(TypedDict):
    """What speech sounds like."""

    bandwidth_hz: Figure
    snr_db: Figure
    reverberation_seconds: Figure
    clipping: Figure
    level_db: Figure


class AttackerRecord(TypedDict):
    """What a protected voice discloses to one attacker."""

    bits: Figure
    bits_low: NotRequired[Figure]
    bits_high: NotRequired[Figure]
    evidence_bits: Figure
    evidence_bits_low: NotRequired[Figure]
    evidence_bits_high: NotRequired[Figure]
    closed_set_bits: Figure
    closed_set_bits_low: NotRequired[Figure]
    closed_set_bits_high: NotRequired[Figure]
    gain_bits: Figure
    gain_bits_low: NotRequired[Figure]
    gain_bits_high: NotRequired[Figure]
    at_least: NotRequired[bool | None]
    support_bits: NotRequired[Figure]


class ProtectedRecord(TypedDict):
    """What a voice discloses through an anonymiser."""

    speech: NotRequired[float]
    bits: Figure
    bits_low: NotRequired[Figure]
    bits_high: NotRequired[Figure]
    by: str | None
    at_least: NotRequired[bool]
    attackers: dict[str, AttackerRecord]


class DeclaredRecord(TypedDict):
    """What a mechanism promises by then."""

    windows: int
    basic_nats: float
    advanced_nats: NotRequired[Figure]
    optimal_nats: float
    most_bits: float
    empty: bool


class ReadingRecord(TypedDict):
    """A reading."""

    type: Literal["reading"]
    seconds: float
    speech: float
    stream: int
    bits: Figure
    bits_low: Figure
    bits_high: Figure
    headline: Headline
    closed_set_bits: Figure
    closed_set_bits_low: Figure
    closed_set_bits_high: Figure
    sum_bits: Figure
    gain_bits: Figure
    gain_bits_low: Figure
    gain_bits_high: Figure
    peak_bits: Figure
    expected_bits: Figure
    expected_bits_low: Figure
    expected_bits_high: Figure
    ceiling: float
    plateau: Figure
    guides: GuidesRecord
    session: Session
    assumes_enrolled: bool
    evidence_bits: NotRequired[Figure]
    evidence_bits_low: NotRequired[Figure]
    evidence_bits_high: NotRequired[Figure]
    evidence_guides: NotRequired[GuidesRecord | None]
    support_bits: NotRequired[Figure]
    at_least: NotRequired[bool | None]
    spread_low: NotRequired[Figure]
    spread_high: NotRequired[Figure]
    spread_others: NotRequired[Figure]
    among: NotRequired[list[AmongRecord] | None]
    enrolled: Figure
    beyond_grid: bool
    features: dict[str, FeatureRecord]
    top: list[list[str | float]]
    bystanders: NotRequired[list[BystanderRecord]]
    excluded_seconds: NotRequired[float]
    change: NotRequired[OpenChangeRecord]
    protected: NotRequired[ProtectedRecord]
    enrolled_withheld: NotRequired[str]
    withheld: NotRequired[str]
    conditions: NotRequired[ConditionsRecord | None]
    differs: NotRequired[list[str]]
    lag: NotRequired[float]
    declared: NotRequired[DeclaredRecord]
    label: NotRequired[str]
    watch: NotRequired[str]
