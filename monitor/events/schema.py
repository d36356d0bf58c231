"""JSON Schema of all records, and the reader of recorded runs."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson

from monitor.errors import SchemaError, StoreError
from monitor.events.declaration import Event, record_of
from monitor.events.keys import misfit
from monitor.events.reading import Reading
from monitor.events.run import (
    SCHEMA_VERSION,
    Alert,
    Change,
    GapEvent,
    LevelReached,
    NoticeEvent,
    RunEnd,
    RunStart,
)
from monitor.safe_text import file_name, printable
from monitor.types import Record

EVENTS = (RunStart, Reading, GapEvent, NoticeEvent, Change, Alert, LevelReached, RunEnd)
RECORDS = tuple(map(record_of, EVENTS))
"""All types of records."""

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "One record of a run of the disclosure monitor",
    "oneOf": [record.schema for record in RECORDS],
}
"""JSON Schema of every record. Figures are in bits or seconds."""

_CLASSES = {kind.type: kind for kind in EVENTS}
_KINDS = {kind["title"]: kind for kind in SCHEMA["oneOf"]}
_MOST_LINE_BYTES = 50_000_000
"""Maximum size of a record in bytes, ten times that of a record with 100,000 people."""
_NEEDED = {
    "reading": ("seconds", "speech"),
    "gap": ("seconds",),
    "notice": ("seconds", "text"),
    "change": ("seconds", "since_seconds"),
    "alert": ("seconds", "rule", "field", "threshold", "state"),
    "crossing": ("seconds", "bits", "side", "since_seconds"),
}
"""Keys needed for every plot. Keys added by later versions may be missing in older runs."""


def event_of(record: Record) -> Event | None:
    """Return the event of a record; None for an unknown type, as from a later version."""
    kind = _CLASSES.get(record["type"])
    return None if kind is None else kind.from_record(record)


def compact(events: Iterable[Event]) -> list[Event]:
    """Reduce events to the content of their records, which omit most people's probabilities."""
    return [type(event).from_record(event.record()) for event in events]


def read_run(path: str | os.PathLike[str]) -> list[Event]:
    r"""Parse the events of a run.

    An incomplete last line is skipped, and so are unknown types from a later version.

    Raises:
        StoreError: the file is missing, or something other than a run.
        SchemaError: another version of the program wrote it.
    """
    return list(follow_run(path))


def follow_run(path: str | os.PathLike[str]) -> Iterator[Event]:
    """Yield the events of `read_run` one by one, in constant memory."""
    name = file_name(path)
    is_first = True
    try:
        with Path(path).open("rb") as file:
            for number in itertools.count(1):
                line = file.readline(_MOST_LINE_BYTES)
                if not line:
                    break
                if not line.strip():
                    continue
                record = _parse(name, number, line, first=is_first)
                if record is None:
                    break
                is_first = False
                if (event := event_of(record)) is not None:
                    yield event
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StoreError(f"cannot open {name} ({reason}): check the name") from None
    if is_first:
        raise StoreError(f"{name} does not begin with a start record: use a run's JSON lines")


def _parse(name: str, number: int, line: bytes, *, first: bool) -> Record | None:
    """Return the record of a line; None for an incomplete last line, or a first line of no run."""
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        record = None
    if record is None and not first and not line.endswith(b"\n") and len(line) < _MOST_LINE_BYTES:
        return None
    if not isinstance(record, dict) or not isinstance(record.get("type"), str):
        raise StoreError(f"{name} line {number} is not a record: use a run's JSON lines")
    if first:
        if record["type"] != "start":
            return None
        _check_version(name, record.get("schema"))
    wrong = wrong_in(record)
    if wrong is not None:
        raise StoreError(
            f"{name} line {number}: missing or invalid {printable(wrong)[:40]} of this "
            f"{record['type']}. Is the file damaged?"
        )
    return record


def wrong_in(record: Record) -> str | None:
    """Return the first key with an invalid value, or a required key that is missing."""
    kind = _KINDS.get(record["type"])
    if kind is None:
        return None
    missing = (key for key in _NEEDED.get(record["type"], ()) if key not in record)
    return next(missing, None) or misfit(record, kind)


def _check_version(name: str, schema: object) -> None:
    if type(schema) is not int or schema < 1:
        raise StoreError(f"{name} has no schema: use a run's JSON lines")
    if schema > SCHEMA_VERSION:
        raise SchemaError(f"{name} is of schema {schema}, newer than {SCHEMA_VERSION}; upgrade")
    if schema < SCHEMA_VERSION:
        raise SchemaError(
            f"{name} is of schema {schema}, in which `bits` was another figure than in "
            f"{SCHEMA_VERSION}; replay the recording again"
        )
