"""What a checkpoint must be before a run is taken up from it: anybody may have written the file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from monitor.errors import StoreError
from monitor.records.fitting import misfit
from monitor.records.keys import HEADLINES
from monitor.safe_text import printable
from monitor.types import AnyArray

__all__ = ["check_state"]

_MOST = 1e15
_FLAG = {"type": "boolean"}
_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_COUNT = {"type": "integer", "minimum": 0, "maximum": 1 << 53}
_COUNTS = {"type": "object", "additionalProperties": _COUNT}
_NUMBER = {"type": "number", "minimum": -_MOST, "maximum": _MOST}
_FIGURE = {**_NUMBER, "type": ["number", "null"]}
_OPEN = {
    "type": ["object", "null"],
    "properties": {"since_seconds": _NUMBER, "features": _TEXTS},
}
_EVIDENCE = {
    "type": "object",
    "properties": {"speech": _COUNT, **dict.fromkeys(("frames", "usable"), _COUNTS)},
}
_NOTICE = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("kind", "text"), _TEXT),
        "recording": _COUNT,
        "level": {"enum": ["warning", "info"]},
        "fields": {"type": "object"},
        "seconds": _NUMBER,
    },
}
_TOP = {
    "type": "array",
    "items": {"type": "array", "prefixItems": [_TEXT, _FIGURE], "minItems": 2, "maxItems": 2},
}
_HEADLINE = {"enum": list(HEADLINES)}
_LAST = {
    "type": ["object", "null"],
    "properties": {"top": _TOP, "at_least": {"type": ["boolean", "null"]}, "headline": _HEADLINE},
    "additionalProperties": _FIGURE,
}
_MONITOR: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("tick", "speech", "read", "stream", "losses"), _COUNT),
        **dict.fromkeys(("frames", "usable"), _COUNTS),
        "carried": _EVIDENCE,
        "peak": _NUMBER,
        "conditions": {
            "type": "object",
            "properties": {
                **dict.fromkeys(("seconds", "due"), _COUNT),
                "now": {"type": ["object", "null"], "additionalProperties": _FIGURE},
                "times": _COUNTS,
                "noticed": _TEXTS,
            },
        },
        "open": _OPEN,
        "stretches": {"type": "object", "properties": {"whole": _FLAG, "chosen": _COUNT}},
        "noticed": {"type": "array", "items": _NOTICE},
        "change": {
            "type": "object",
            "properties": {"tick": _COUNT, "asked": _TEXTS, "one_is_enough": _FLAG},
        },
        "recordings": {
            "type": "object",
            "properties": {
                "judged": _COUNT,
                "strange": {"type": "array", "items": _COUNT},
                "start": _EVIDENCE,
                "voice": _EVIDENCE,
            },
        },
    },
}
_HEADER: Mapping[str, Any] = {
    "properties": {
        "configuration": {"type": "object"},
        "offset": _COUNT,
        "tally": _TEXT,
        "monitor": {
            **_MONITOR,
            "properties": {
                **_MONITOR["properties"],
                "protected": {"type": "object", "additionalProperties": _MONITOR},
            },
        },
        "rules": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "rule": _TEXT,
                    "raised": _FLAG,
                    "was_raised": _FLAG,
                    "since": _FIGURE,
                    **dict.fromkeys(("speech", "held"), _NUMBER),
                    "change": _OPEN,
                    "points": {
                        "type": "array",
                        "items": {"type": "array", "items": _NUMBER, "minItems": 3, "maxItems": 3},
                    },
                    "session": {**_COUNT, "type": ["integer", "null"]},
                    "seed": _TEXT,
                    "over": _FLAG,
                    "crossings": {
                        "type": "array",
                        "items": {"type": "array", "items": _FIGURE, "minItems": 3, "maxItems": 3},
                    },
                    "due": _NUMBER,
                    "last": _LAST,
                    "written": _COUNTS,
                    "waiting": {
                        "type": "array",
                        "items": {
                            "type": "array",
                            "prefixItems": [{"enum": ["readings", "alerts"]}, _NUMBER, _TEXT],
                            "minItems": 3,
                            "maxItems": 3,
                        },
                    },
                },
            },
        },
    },
}
_TALLY: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("readings", "gaps", "changes", "alerts", "warnings"), _COUNT),
        **dict.fromkeys(("failures", "lost", "silent", "notices", "noticed", "undecided"), _TEXTS),
        "lost_seconds": _NUMBER,
        "last": {**_LAST, "type": "object"},
    },
}


def check_state(
    header: Mapping[str, Any],
    arrays: Mapping[str, AnyArray],
    fresh: Mapping[str, AnyArray],
    tally: Mapping[str, Any],
) -> None:
    """Refuse what no run remembers.

    Args:
        header: as it was read.
        arrays: likewise.
        fresh: the arrays of a monitor that has heard nothing.
        tally: what a tally holds, to name its keys.

    Raises:
        StoreError: a number that is none, or of another type or range.
        KeyError, TypeError, ValueError: something is missing.
    """
    wrong = misfit(header, _HEADER) or misfit(counted := orjson.loads(header["tally"]), _TALLY)
    if wrong is None and set(counted) != set(tally):
        wrong = "tally"
    for monitor in (header["monitor"], *header["monitor"].get("protected", {}).values()):
        features = set(monitor["frames"])
        if not set(monitor["usable"]) <= features:
            wrong = "usable"
        for part in _heard(monitor):
            if not set(part["frames"]) == set(part["usable"]) == features:
                wrong = "what was heard"
    for rule in header["rules"]:
        if (
            "last" in rule
            and rule["last"] is not None
            and None in map(rule["last"].get, ("seconds", "speech"))
        ):
            wrong = "last"
    for name, array in arrays.items():
        alike = fresh.get(name, fresh.get(f"sketch/{name.rpartition('/')[2]}"))
        if alike is None or (array.dtype, array.ndim) != (alike.dtype, alike.ndim):
            wrong = "an array"
        elif array.size and not (array.min() >= -_MOST and array.max() <= _MOST):
            wrong = "a sum"
    if wrong is not None:
        raise StoreError(f"the checkpoint does not fit: its {printable(wrong)[:40]} makes no sense")


def _heard(monitor: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    told = (monitor.get("carried"), *map(monitor["recordings"].get, ("start", "voice")))
    return [each for each in told if each is not None]
