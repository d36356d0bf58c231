"""Events of a run, typed: each key of their records declared once, and reading a run back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.events.declaration import Event, Key, Record, key, to_json
    from monitor.events.run import SCHEMA_VERSION
    from monitor.events.schema import RECORDS, SCHEMA, read_run

__all__ = [
    "RECORDS",
    "SCHEMA",
    "SCHEMA_VERSION",
    "Event",
    "Key",
    "Record",
    "key",
    "read_run",
    "to_json",
]

_HOMES = {
    "declaration": "Event Key Record key to_json",
    "run": "SCHEMA_VERSION",
    "schema": "RECORDS SCHEMA read_run",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
