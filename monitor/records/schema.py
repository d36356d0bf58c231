"""What every record holds, and reading a run back."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from monitor.errors import SchemaError, StoreError
from monitor.phrases import file_name, printable
from monitor.records.fitting import misfit

__all__ = ["SCHEMA", "SCHEMA_VERSION", "read_run", "wrong_in"]

SCHEMA_VERSION = 1

MOST_BITS = 1e6
"""Far beyond what any voice discloses: a figure outside of it was never measured."""
MOST_SECONDS = 1e10
MOST = 1e15

_NUMBER = {"type": "number", "minimum": -MOST, "maximum": MOST}
_FIGURE = {"type": ["number", "null"], "minimum": -MOST_BITS, "maximum": MOST_BITS}
_VALUE = {**_NUMBER, "type": ["number", "null"]}
_CEILING = {"type": "number", "minimum": 0, "maximum": 64}
_TEXT = {"type": "string"}
_MAYBE_TEXT = {"type": ["string", "null"]}
_FLAG = {"type": "boolean"}
_COUNT = {"type": "integer", "minimum": 0, "maximum": 1 << 53}
_SECONDS = {"type": "number", "minimum": 0, "maximum": MOST_SECONDS}
_MAYBE_SECONDS = {**_SECONDS, "type": ["number", "null"]}
_SESSION = {"enum": ["cross", "same"]}
_TOP = {
    "type": "array",
    "items": {"type": "array", "prefixItems": [_TEXT, _FIGURE], "minItems": 2, "maxItems": 2},
}
_TEXTS = {"type": "array", "items": _TEXT}
_PROBABILITY = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
_PEOPLE = {"type": "number", "minimum": 2, "maximum": 1e10}
_MAYBE_FLAG = {"type": ["boolean", "null"]}
_MAYBE_COUNT = {"type": ["number", "null"], "minimum": 0, "maximum": MOST}


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
                    **_limits("bits", "evidence_bits"),
                },
                "required": ["session", "time", "seconds", "speech", "bits"],
            },
        },
    },
    "required": ["sessions", "speech", "history"],
}

_BYSTANDERS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "name": _TEXT,
            "probability": {"type": "number", "minimum": 0, "maximum": 1},
            "people": _COUNT,
        },
        "required": ["name", "probability", "people"],
    },
}
_LEVEL = {
    "type": "object",
    "properties": {
        "above": {"type": "number", "minimum": 0, "maximum": 1},
        "people": _COUNT,
    },
    "required": ["above", "people"],
}
_OTHERS = {
    "type": "object",
    "properties": {
        "share": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        "horizon_seconds": _SECONDS,
        "speakers": _COUNT,
        "repeated": _COUNT,
        "session": _SESSION,
        "beyond": _FLAG,
    },
    "required": ["share", "horizon_seconds", "speakers", "session"],
}
_ALARMS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "rule": _TEXT,
            "field": _TEXT,
            "threshold": _NUMBER,
            "false_alarms": _OTHERS,
        },
        "required": ["rule", "field", "threshold", "false_alarms"],
    },
}

_AMONG = {
    "type": ["array", "null"],
    "items": {
        "type": "object",
        "properties": {
            "people": _PEOPLE,
            **_limits("bits"),
            "one_in": _MAYBE_COUNT,
            "fitting": _MAYBE_COUNT,
            "probability": _PROBABILITY,
            "favourite": {
                "type": ["array", "null"],
                "prefixItems": [_TEXT, {**_PROBABILITY, "type": "number"}],
                "minItems": 2,
                "maxItems": 2,
            },
            "favourite_one_in": _MAYBE_COUNT,
        },
        "required": ["people", "bits"],
    },
}

_START = _record(
    "start",
    {
        "schema": {"const": SCHEMA_VERSION},
        "version": _TEXT,
        "time": _TEXT,
        "features": {**_TEXTS, "minItems": 1},
        "speakers": {**_COUNT, "minimum": 2},
        "ceiling": _CEILING,
        "watch": _MAYBE_TEXT,
        "headline": {"enum": ["local", "gain"]},
        "assumes_enrolled": _FLAG,
        "step_seconds": {**_SECONDS, "exclusiveMinimum": 0},
        "template_seconds": _MAYBE_SECONDS,
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
    {
        "carried": _CARRIED,
        "alarms": _ALARMS,
        "bystanders": _LEVEL,
        "law_prior": {"type": "number", "minimum": 0, "maximum": 1},
        "among": {"type": "array", "items": _PEOPLE},
        "enrolled_prior": {"type": "number", "minimum": 0, "maximum": 1},
        "support_bits": _FIGURE,
    },
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
        "rank": {**_VALUE, "minimum": 1},
        **_limits("expected_bits", "rank_bits", "local_bits", "gain_bits"),
    },
    "required": ["usable", "rank", "expected_bits", "rank_bits", "local_bits", "gain_bits"],
}

_READING = _record(
    "reading",
    {
        "seconds": _SECONDS,
        "speech": _SECONDS,
        "stream": {**_COUNT, "minimum": 1},
        **_limits("bits"),
        "sum_bits": _FIGURE,
        **_limits("gain_bits"),
        "peak_bits": _FIGURE,
        **_limits("expected_bits"),
        "ceiling": _CEILING,
        "plateau": _FIGURE,
        "guides": {
            "type": "object",
            "properties": {"linear": _FIGURE, "sqrt": _FIGURE},
            "required": ["linear", "sqrt"],
        },
        "session": _SESSION,
        "assumes_enrolled": _FLAG,
        "enrolled": _PROBABILITY,
        "beyond_grid": _FLAG,
        "features": {"type": "object", "additionalProperties": _FEATURE},
        "top": _TOP,
    },
    {
        **_limits("evidence_bits"),
        "support_bits": _FIGURE,
        "at_least": _MAYBE_FLAG,
        "among": _AMONG,
        "bystanders": _BYSTANDERS,
        "change": _OPEN,
        "enrolled_withheld": _TEXT,
        "withheld": _TEXT,
        "lag": _SECONDS,
    },
)

_GAP = _record(
    "gap",
    {
        "seconds": _SECONDS,
        "reason": _TEXT,
        "lost_seconds": _MAYBE_SECONDS,
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
        "value": _VALUE,
    },
    {
        "seconds_left": _MAYBE_SECONDS,
        "change": _OPEN,
        "recording": _TEXT,
        "false_alarms": _OTHERS,
    },
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
        "lost_seconds": _MAYBE_SECONDS,
        "alerts": _COUNT,
        "warnings": _COUNT,
        "failures": _TEXTS,
        "stopped": _MAYBE_TEXT,
        "complete": _FLAG,
        "watch": _MAYBE_TEXT,
        "top": _TOP,
    },
    {"recordings": _TEXTS, "notices": _TEXTS, "bystanders": _BYSTANDERS},
)

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "One record of a run of the disclosure monitor",
    "oneOf": [_START, _READING, _GAP, _CHANGE, _ALERT, _END],
}
"""JSON Schema of every record. Keys are added, never renamed; figures are in bits or seconds."""

_KINDS = {kind["title"]: kind for kind in SCHEMA["oneOf"]}
_NEEDED = {
    "reading": ("seconds", "speech"),
    "gap": ("seconds",),
    "change": ("seconds", "since_seconds"),
    "alert": ("seconds", "rule", "field", "threshold", "state"),
}
"""What nothing can be drawn without; a key of a later version may be missing in an older run."""


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
    name = file_name(path)
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
            record = orjson.loads(line)
        except orjson.JSONDecodeError:
            record = None
        if number == len(lines) and records and record is None:
            break
        if not isinstance(record, dict) or not isinstance(record.get("type"), str):
            raise StoreError(f"{name} line {number} is no record; give a run's JSON lines")
        if not records:
            if record["type"] != "start":
                break
            _check_version(name, record.get("schema"))
        wrong = wrong_in(record)
        if wrong is not None:
            raise StoreError(
                f"{name} line {number}: {printable(wrong)[:40]} of this {record['type']} is "
                "missing or makes no sense; is the file damaged?"
            )
        records.append(record)
    if not records:
        raise StoreError(f"{name} does not begin with a start record; give a run's JSON lines")
    return records


def wrong_in(record: Mapping[str, Any]) -> str | None:
    """The first key that no run holds so, or that is missing and nothing is drawn without.

    Examples:
        >>> wrong_in({"type": "gap", "seconds": 1.0}), wrong_in({"type": "gap", "seconds": -1})
        (None, 'seconds')
        >>> wrong_in({"type": "of a later version"})
    """
    kind = _KINDS.get(record["type"])
    if kind is None:
        return None
    missing = (key for key in _NEEDED.get(record["type"], ()) if key not in record)
    return next(missing, None) or misfit(record, kind)


def _check_version(name: str, schema: Any) -> None:
    if type(schema) is not int or schema < 1:
        raise StoreError(f"{name} does not say its schema; give a run's JSON lines")
    if schema > SCHEMA_VERSION:
        raise SchemaError(f"{name} is of schema {schema}, newer than {SCHEMA_VERSION}; upgrade")
