"""Typed events of a run, the schema of their records, and the reader of recorded runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.events.declaration import Event, Key, Record, key, to_json
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
    from monitor.events.schema import RECORDS, SCHEMA, event_of, read_run

__all__ = [
    "RECORDS",
    "SCHEMA",
    "SCHEMA_VERSION",
    "Alert",
    "Change",
    "Event",
    "GapEvent",
    "Key",
    "LevelReached",
    "NoticeEvent",
    "Reading",
    "Record",
    "RunEnd",
    "RunStart",
    "event_of",
    "key",
    "read_run",
    "to_json",
]

__getattr__, __dir__ = lazily(__name__)
