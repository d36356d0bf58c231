"""Rows of a ledger, checked as they are read, because the file may come from anywhere."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import orjson

from monitor.errors import StoreError
from monitor.events.declaration import Event, declared, decode, key, record_of, schema_of
from monitor.events.keys import (
    COUNT,
    HEADLINE,
    MAYBE_SECONDS,
    MAYBE_TEXT,
    MOST,
    SECONDS,
    TEXT,
    TEXTS,
    misfit,
)
from monitor.events.reading import Reading
from monitor.events.run import Alert
from monitor.events.schema import wrong_in
from monitor.kinds import KINDS
from monitor.safe_text import is_name
from monitor.types import AnyArray, Record

ANYONE = "anyone"
"""Listener of sessions without a named listener."""
_KINDS = {name: kind for name, kind in KINDS.items() if kind.enrolled}


class ProcessedInterval(NamedTuple):
    """Part of a recording in a session, with the recording's label and fingerprints."""

    label: str
    hashes: Sequence[str]
    start_seconds: float
    end_seconds: float | None


@declared()
class SessionStart:
    """Start of a session's run, as stored."""

    version: str = key()
    features: tuple[str, ...] = key()
    speakers: int = key("count")
    ceiling: float = key("ceiling")
    fingerprint: Mapping[str, str] = key()
    headline: str | None = key({})


@declared()
class SessionRow:
    """Row of ``sessions``. ``speech`` is in ticks, of this session only."""

    id: int = key("count")
    started: str = key()
    ended: str | None = key()
    recordings: tuple[str, ...] = key()
    heard: tuple[ProcessedInterval, ...] = key(
        {
            "type": "array",
            "items": {
                "type": "array",
                "minItems": 4,
                "maxItems": 4,
                "prefixItems": [TEXT, TEXTS, SECONDS, MAYBE_SECONDS],
            },
        },
        decode=lambda parts: tuple(ProcessedInterval(*part) for part in parts),
    )
    start: SessionStart = key({"type": "object", "properties": {"features": TEXTS}})
    seconds: float = key("seconds")
    speech: int = key("count")
    bits: float | None = key("bits")
    bits_low: float | None = key("bits")
    bits_high: float | None = key("bits")
    peak_bits: float | None = key("bits")
    name: str = key()
    readings: int = key("count", required=False, default=0)
    alerts: int = key("count", required=False, default=0)
    listener: str = key(required=False, default=ANYONE)


@declared(kw_only=True)
class KeptReading(Event):
    """Stored reading, with the time of day."""

    type: ClassVar[Literal["reading"]] = "reading"
    seconds: float = key("seconds")
    speech: float = key("seconds")
    bits: float | None = key("bits")
    bits_low: float | None = key("bits")
    bits_high: float | None = key("bits")
    sum_bits: float | None = key("bits")
    gain_bits: float = key("bits")
    peak_bits: float | None = key("bits")
    expected_bits: float = key("bits")
    ceiling: float = key("ceiling")
    headline: str = key(HEADLINE)
    closed_set_bits: float | None = key("bits")
    closed_set_bits_low: float | None = key("bits")
    closed_set_bits_high: float | None = key("bits")
    evidence_bits: float | None = key("bits", sparse=True, default=None)
    evidence_bits_low: float | None = key("bits", sparse=True, default=None)
    evidence_bits_high: float | None = key("bits", sparse=True, default=None)
    at_least: bool | None = key(sparse=True, default=None)
    time: str = key(sparse=True, default="")

    @classmethod
    def from_reading(cls, reading: Reading) -> KeptReading:
        """Select the stored figures of a reading."""
        return cls(**{name: getattr(reading, name) for name in FIGURES})

    @classmethod
    def from_record(cls, record: Record) -> KeptReading:
        """Parse a record, also from a version in which ``bits`` was the closed-set figure."""
        if "headline" in record:
            return decode(cls, record)
        ends = ("bits", "bits_low", "bits_high")
        closed = {f"closed_set_{end}": record.get(end) for end in ends}
        has_evidence = record.get("evidence_bits") is not None
        bits = {end: record.get(f"evidence_{end}") for end in ends} if has_evidence else {}
        headline = "evidence" if has_evidence else "closed-set"
        return decode(cls, {**record, **closed, **bits, "headline": headline})


FIGURES = tuple(key.name for key in record_of(KeptReading).keys if key.name != "time")

_SKETCH: Mapping[str, object] = {
    "properties": {
        "feature": TEXT,
        "kind": {"enum": list(_KINDS)},
        "size": COUNT,
        "frame_seconds": {**SECONDS, "exclusiveMinimum": 0},
        "frames": COUNT,
        "usable": COUNT,
        "network": MAYBE_TEXT,
    }
}


def session_of_row(file: str, row: sqlite3.Row) -> SessionRow:
    """Parse a row of ``sessions`` with its speaker's ``name``."""
    session = {name: row[name] for name in row.keys()}  # noqa: SIM118
    number = session["id"] if isinstance(session["id"], int) else 0
    for name in ("recordings", "heard", "start"):
        session[name] = _json(session[name])
    if (wrong := misfit(session, schema_of(SessionRow))) is None:
        if not is_name(session["name"]):
            wrong = "the speaker's name"
        elif not is_name(session.get("listener", ANYONE)):
            wrong = "the listener"
        elif "features" not in session["start"]:
            wrong = "start"
    if wrong is not None:
        raise _damaged(file, number, wrong)
    return decode(SessionRow, session)


def total_of(file: str, row: sqlite3.Row) -> AnyArray:
    """Parse the sum of a sketch, shape (size,), int64 or float64."""
    sketch = {name: row[name] for name in row.keys()}  # noqa: SIM118
    wrong, total = misfit(sketch, _SKETCH), sketch["total"]
    if wrong is None:
        kind = _KINDS[sketch["kind"]]
        stored = np.dtype(kind.stored)
        if isinstance(total, bytes) and len(total) == sketch["size"] * stored.itemsize:
            array = np.frombuffer(total, stored)
            if array.size and kind.minimum_total <= array.min() and array.max() <= MOST:
                return array.astype(stored.newbyteorder("="))
        wrong = "a sketch"
    raise _damaged(file, sketch["session"], wrong)


def event_of_row(file: str, session: int, text: object) -> KeptReading | Alert:
    """Parse a stored reading or alert."""
    record = _json(text)
    if not isinstance(record, dict) or record.get("type") not in ("reading", "alert"):
        raise _damaged(file, session, "a record")
    wrong = wrong_in(record)
    if wrong is not None or not isinstance(record.get("time"), str):
        raise _damaged(file, session, wrong or "time")
    if record["type"] == "alert":
        return Alert.from_record(record)
    return KeptReading.from_record(record)


def _json(text: object) -> Any:
    if not isinstance(text, str):
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _damaged(file: str, session: int, what: str) -> StoreError:
    return StoreError(
        f"{file} is damaged, since {what} of session {session} is invalid. Restore a copy"
    )
