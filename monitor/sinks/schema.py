"""What every record holds, and reading a run back."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from monitor.errors import SchemaError, StoreError

__all__ = ["SCHEMA", "SCHEMA_VERSION", "read_run"]

SCHEMA_VERSION = 1

_NUMBER = {"type": "number"}
_FIGURE = {"type": ["number", "null"]}
_TEXT = {"type": "string"}
_MAYBE_TEXT = {"type": ["string", "null"]}
_FLAG = {"type": "boolean"}
_COUNT = {"type": "integer", "minimum": 0}
_SECONDS = {"type": "number", "minimum": 0}
_SESSION = {"enum": ["cross", "same"]}
_TOP = {
    "type": "array",
    "items": {"type": "array", "prefixItems": [_TEXT, _FIGURE], "minItems": 2, "maxItems": 2},
}
_TEXTS = {"type": "array", "items": _TEXT}


def _limits(*names: str) -> dict[str, Any]:
    """Figures in bits, each with its lower and upper limit; null while withheld."""
    return {name + end: _FIGURE for name in names for end in ("", "_low", "_high")}


def _record(kind: str, required: dict[str, Any], optional: dict[str, Any]) -> dict[str, Any]:
    """The schema of one type of record; further keys may be added."""
    return {
        "title": kind,
        "type": "object",
        "properties": {"type": {"const": kind}, **required, **optional},
        "required": ["type", *required],
    }


_CARRIED = {
    "type": "object",
    "properties": {
        "sessions": _COUNT,
        "speech": _SECONDS,
        "history": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "session": _COUNT,
                    "time": _TEXT,
                    "seconds": _SECONDS,
                    "speech": _SECONDS,
                    **_limits("bits"),
                },
                "required": ["session", "time", "seconds", "speech", "bits"],
            },
        },
    },
    "required": ["sessions", "speech", "history"],
}

_START = _record(
    "start",
    {
        "schema": {"const": SCHEMA_VERSION},
        "version": _TEXT,
        "time": _TEXT,
        "features": {**_TEXTS, "minItems": 1},
        "speakers": {"type": "integer", "minimum": 2},
        "ceiling": _SECONDS,
        "watch": _MAYBE_TEXT,
        "headline": {"enum": ["local", "gain"]},
        "assumes_enrolled": _FLAG,
        "step_seconds": {"type": "number", "exclusiveMinimum": 0},
        "template_seconds": _FIGURE,
        "similarity": {"type": "object", "additionalProperties": _TEXT},
        "ties": {"enum": ["spread", "optimistic", "pessimistic", "mid"]},
        "law": {"enum": ["own", "borrowed"]},
        "law_session": _SESSION,
        "law_speakers": _COUNT,
        "plateau": _FIGURE,
        "on_change": {"enum": ["ignore", "note", "reset", "split"]},
        "recordings": _TEXTS,
        "fingerprint": {"type": "object", "additionalProperties": _TEXT},
        "notices": _TEXTS,
    },
    {"carried": _CARRIED, "law_prior": {"type": "number", "minimum": 0, "maximum": 1}},
)

_OPEN = {
    "type": "object",
    "properties": {"since_seconds": _SECONDS, "features": _TEXTS},
    "required": ["since_seconds", "features"],
}

_FEATURE = {
    "type": "object",
    "properties": {
        "usable": _SECONDS,
        "rank": {"type": ["number", "null"], "minimum": 1},
        **_limits("expected_bits", "rank_bits", "local_bits", "gain_bits"),
    },
    "required": ["usable", "rank", "expected_bits", "rank_bits", "local_bits", "gain_bits"],
}

_READING = _record(
    "reading",
    {
        "seconds": _SECONDS,
        "speech": _SECONDS,
        "stream": {"type": "integer", "minimum": 1},
        **_limits("bits"),
        "sum_bits": _FIGURE,
        **_limits("gain_bits"),
        "peak_bits": _FIGURE,
        **_limits("expected_bits"),
        "ceiling": _SECONDS,
        "plateau": _FIGURE,
        "guides": {
            "type": "object",
            "properties": {"linear": _FIGURE, "sqrt": _FIGURE},
            "required": ["linear", "sqrt"],
        },
        "session": _SESSION,
        "assumes_enrolled": _FLAG,
        "enrolled": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
        "beyond_grid": _FLAG,
        "features": {"type": "object", "additionalProperties": _FEATURE},
        "top": _TOP,
    },
    {"change": _OPEN, "enrolled_withheld": _TEXT, "withheld": _TEXT, "lag": _SECONDS},
)

_GAP = _record(
    "gap",
    {
        "seconds": _SECONDS,
        "reason": _TEXT,
        "lost_seconds": {"type": ["number", "null"], "minimum": 0},
        "recording": _TEXT,
        "detail": _TEXT,
    },
    {},
)

_CHANGE = _record(
    "change",
    {
        "seconds": _SECONDS,
        "since_seconds": _SECONDS,
        "features": _TEXTS,
        "margin_before": _NUMBER,
        "margin_after": _NUMBER,
        "action": {"enum": ["note", "reset", "split"]},
    },
    {"back": _FLAG},
)

_ALERT = _record(
    "alert",
    {
        "seconds": _SECONDS,
        "speech": _SECONDS,
        "rule": _TEXT,
        "field": _TEXT,
        "threshold": _NUMBER,
        "level": {"enum": ["alert", "warning"]},
        "state": {"enum": ["raised", "cleared"]},
        "value": _FIGURE,
    },
    {"seconds_left": _FIGURE, "change": _OPEN, "recording": _TEXT},
)

_END = _record(
    "end",
    {
        "time": _TEXT,
        "seconds": _SECONDS,
        "speech": _SECONDS,
        "readings": _COUNT,
        "bits": _FIGURE,
        "peak_bits": _FIGURE,
        "gaps": _COUNT,
        "changes": _COUNT,
        "lost_seconds": _FIGURE,
        "alerts": _COUNT,
        "warnings": _COUNT,
        "failures": _TEXTS,
        "stopped": _MAYBE_TEXT,
        "complete": _FLAG,
        "watch": _MAYBE_TEXT,
        "top": _TOP,
    },
    {"recordings": _TEXTS, "notices": _TEXTS},
)

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "One record of a run of the disclosure monitor",
    "oneOf": [_START, _READING, _GAP, _CHANGE, _ALERT, _END],
}
"""JSON Schema of every record. Keys are added, never renamed; figures are in bits or seconds."""


def read_run(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    r"""Read back the records of a run; a last line that was torn off in writing is left out.

    Raises:
        StoreError: the file is missing, or something other than a run.
        SchemaError: a newer version wrote it.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "run.jsonl")
        ...     _ = path.write_text('{"type":"start","schema":1}\n{"type":"rea')
        ...     read_run(path)
        [{'type': 'start', 'schema': 1}]
    """
    name = Path(path).name
    try:
        lines = Path(path).read_bytes().split(b"\n")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StoreError(f"cannot open {name}: {reason}; check the name") from None
    records: list[dict[str, Any]] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if number == len(lines) and records and record is None:
            break
        if not isinstance(record, dict) or "type" not in record:
            raise StoreError(f"{name} line {number} is no record; give a run's JSON lines")
        records.append(record)
    if not records or records[0]["type"] != "start":
        raise StoreError(f"{name} does not begin with a start record; give a run's JSON lines")
    _check_version(name, records[0].get("schema"))
    return records


def _check_version(name: str, schema: Any) -> None:
    if type(schema) is not int or schema < 1:
        raise StoreError(f"{name} does not say its schema; give a run's JSON lines")
    if schema > SCHEMA_VERSION:
        raise SchemaError(f"{name} is of schema {schema}, newer than {SCHEMA_VERSION}; upgrade")
