"""The fields of one row of a recogniser's JSON, a segment, a word or a token, in any dialect."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

__all__ = ["rows_in", "speaker_of", "text_of", "times_of"]

_NOBODY = ("", "?", "None", "UNKNOWN")


def rows_in(found: object) -> list[dict[str, Any]]:
    """The rows of what ought to be a list of them; what is none is passed over.

    Example:
        >>> rows_in([{"word": "so"}, 3]), rows_in(None)
        ([{'word': 'so'}], [])
    """
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def times_of(row: Mapping[str, Any]) -> tuple[float, float]:
    """When a row begins and ends, in seconds; NaN for what is missing.

    Example:
        >>> times_of({"offsets": {"from": 100, "to": 250}}), times_of({"timestamp": [0.1, None]})
        ((0.1, 0.25), (0.1, nan))
    """
    offsets, stamp = row.get("offsets"), row.get("timestamp")
    if isinstance(offsets, dict):  # of whisper.cpp, in milliseconds
        return _number(offsets.get("from")) / 1000, _number(offsets.get("to")) / 1000
    if isinstance(stamp, list) and len(stamp) == 2:
        return _number(stamp[0]), _number(stamp[1])
    return _number(row.get("start")), _number(row.get("end"))


def text_of(row: Mapping[str, Any]) -> str:
    """What was said, with the space before it where the program left it there."""
    text = row.get("word", row.get("text"))
    return text if isinstance(text, str) else ""


def speaker_of(row: Mapping[str, Any]) -> str:
    """Who said it; empty where the program does not know."""
    named = row.get("speaker")
    text = str(named).strip() if isinstance(named, str | int) else ""
    return "" if text in _NOBODY else text


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not -1e9 < value < 1e9:
        return math.nan
    return float(value)
