"""Checks the rows of a ledger as they are read: anybody may have written the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

import numpy as np
import orjson

from monitor.errors import StoreError
from monitor.kinds import KINDS
from monitor.population.checking import is_name
from monitor.records.fitting import misfit
from monitor.records.schema import wrong_in
from monitor.types import AnyArray

__all__ = ["record_of_row", "session_of_row", "total_of"]

_KINDS = {name: kind for name, kind in KINDS.items() if kind.enrolled}
_MOST = 1e15
_TEXT = {"type": "string"}
_COUNT = {"type": "integer", "minimum": 0, "maximum": 1 << 53}
_SECONDS = {"type": "number", "minimum": 0, "maximum": 1e10}
_MAYBE_SECONDS = {**_SECONDS, "type": ["number", "null"]}
_BITS = {"type": ["number", "null"], "minimum": -1e6, "maximum": 1e6}
_TEXTS = {"type": "array", "items": _TEXT}
_SESSION: Mapping[str, Any] = {
    "properties": {
        "id": _COUNT,
        "started": _TEXT,
        "ended": {"type": ["string", "null"]},
        "recordings": _TEXTS,
        "heard": {
            "type": "array",
            "items": {
                "type": "array",
                "minItems": 4,
                "maxItems": 4,
                "prefixItems": [_TEXT, _TEXTS, _SECONDS, _MAYBE_SECONDS],
            },
        },
        "start": {"type": "object", "properties": {"features": _TEXTS}},
        "seconds": _SECONDS,
        "speech": _COUNT,
        **dict.fromkeys(("bits", "bits_low", "bits_high", "peak_bits"), _BITS),
    },
}
_SKETCH: Mapping[str, Any] = {
    "properties": {
        "feature": _TEXT,
        "kind": {"enum": list(_KINDS)},
        "size": _COUNT,
        "frame_seconds": {**_SECONDS, "exclusiveMinimum": 0},
        "frames": _COUNT,
        "usable": _COUNT,
        "network": {"type": ["string", "null"]},
    },
}


def session_of_row(file: str, row: sqlite3.Row) -> dict[str, Any]:
    """A row of ``sessions`` with its speaker's ``name``; lists and objects as such.

    Raises:
        StoreError: it is damaged.
    """
    found = {key: row[key] for key in row.keys()}  # noqa: SIM118
    number = found["id"] if isinstance(found["id"], int) else 0
    for key in ("recordings", "heard", "start"):
        found[key] = _json(found[key])
    wrong = misfit(found, _SESSION)
    if wrong is None and not is_name(found["name"]):
        wrong = "the speaker's name"
    if wrong is None and "features" not in found["start"]:
        wrong = "start"
    if wrong is not None:
        raise _damaged(file, number, wrong)
    return found


def total_of(file: str, row: sqlite3.Row) -> AnyArray:
    """The sum of a sketch, shape (size,), int64 or float64.

    Raises:
        StoreError: the row is damaged.
    """
    found = {key: row[key] for key in row.keys()}  # noqa: SIM118
    wrong, total = misfit(found, _SKETCH), found["total"]
    if wrong is None:
        kind = _KINDS[found["kind"]]
        stored = np.dtype(kind.stored)
        if isinstance(total, bytes) and len(total) == found["size"] * stored.itemsize:
            array = np.frombuffer(total, stored)
            if array.size and kind.least <= array.min() and array.max() <= _MOST:
                return array.astype(stored.newbyteorder("="))
        wrong = "a sketch"
    raise _damaged(file, found["session"], wrong)


def record_of_row(file: str, session: int, text: object) -> dict[str, Any]:
    """The record of a reading or an alert.

    Raises:
        StoreError: it is damaged.
    """
    record = _json(text)
    if not isinstance(record, dict) or record.get("type") not in ("reading", "alert"):
        raise _damaged(file, session, "a record")
    wrong = wrong_in(record)
    if wrong is not None or not isinstance(record.get("time"), str):
        raise _damaged(file, session, wrong or "time")
    return _as_now(record) if record["type"] == "reading" else record


def _as_now(record: dict[str, Any]) -> dict[str, Any]:
    """A reading of a time when ``bits`` was the closed-set figure, in today's words."""
    if "headline" in record:
        return record
    ends = ("bits", "bits_low", "bits_high")
    closed = {f"closed_set_{end}": record.get(end) for end in ends}
    told = record.get("evidence_bits") is not None
    bits = {end: record.get(f"evidence_{end}") for end in ends} if told else {}
    return {**record, **closed, **bits, "headline": "evidence" if told else "closed-set"}


def _json(text: object) -> Any:
    """What is written there; None where it is none."""
    if not isinstance(text, str):
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _damaged(file: str, session: int, what: str) -> StoreError:
    return StoreError(
        f"{file}: is damaged: {what} of session {session} makes no sense; restore a copy"
    )
