"""What a run writes down: every key of every record, and reading a run back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.records.keys import Key, Record
    from monitor.records.reading import SCHEMA_VERSION
    from monitor.records.schema import RECORDS, SCHEMA, read_run

__all__ = ["RECORDS", "SCHEMA", "SCHEMA_VERSION", "Key", "Record", "read_run"]

_HOMES = {
    "keys": "Key Record",
    "reading": "SCHEMA_VERSION",
    "schema": "RECORDS SCHEMA read_run",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
