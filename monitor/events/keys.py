"""JSON Schema of the values in a record, and the check of a value against it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

Schema: TypeAlias = Mapping[str, Any]
"""A JSON Schema, of the words that `misfit` knows."""
MOST_BITS = 1e6
"""Far beyond what any voice discloses: a figure outside of it was never measured."""
MOST_SECONDS = 1e10
MOST = 1e15

NUMBER = {"type": "number", "minimum": -MOST, "maximum": MOST}
VALUE = {**NUMBER, "type": ["number", "null"]}
FIGURE = {"type": ["number", "null"], "minimum": -MOST_BITS, "maximum": MOST_BITS}
"""Bits; null while withheld."""
TEXT = {"type": "string"}
MAYBE_TEXT = {"type": ["string", "null"]}
TEXTS = {"type": "array", "items": TEXT}
FLAG = {"type": "boolean"}
COUNT = {"type": "integer", "minimum": 0, "maximum": 1 << 53}
SECONDS = {"type": "number", "minimum": 0, "maximum": MOST_SECONDS}
MAYBE_SECONDS = {**SECONDS, "type": ["number", "null"]}
PROBABILITY = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
SESSION = {"enum": ["cross", "same"]}
CEILING = {"type": "number", "minimum": 0, "maximum": 64}
PEOPLE = {"type": "number", "minimum": 2, "maximum": 1e10}
HEADLINES = {"evidence": "evidence_bits", "closed-set": "closed_set_bits"}
"""What the headline may be, and under which key the same figure stands besides."""
HEADLINE = {"enum": list(HEADLINES)}
CONDITIONS = {
    "type": ["object", "null"],
    "properties": {
        "bandwidth_hz": {**VALUE, "minimum": 0},
        "snr_db": VALUE,
        "reverberation_seconds": {**VALUE, "minimum": 0},
        "clipping": PROBABILITY,
        "level_db": VALUE,
    },
    "required": ["bandwidth_hz", "snr_db", "reverberation_seconds", "clipping", "level_db"],
}
"""What a sound is like; each null while too little was heard."""
DIFFERS = {
    "type": "array",
    "items": {
        "enum": [
            "bandwidth_hz", "snr_db", "reverberation_seconds", "clipping", "level_db",
            "voiced_share",
        ]
    },
}  # fmt: skip


def object_of(optional: Sequence[str] = (), **properties: Any) -> Schema:
    """Return the schema of an object; all of its keys are there but the optional ones."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required}


def list_of(items: Schema) -> Schema:
    """Return the schema of a list of such values."""
    return {"type": "array", "items": items}


# --- Whether a value that was read is what a JSON Schema promises.
#
# Of JSON Schema 2020-12 the few words that our own schema uses; a run of a day holds 86 400
# readings, which a general validator would take minutes for.

_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "array": list,
    "boolean": bool,
    "integer": int,
    "null": type(None),
    "number": (int, float),
    "object": dict,
    "string": str,
}


def misfit(value: Any, schema: Schema, name: str = "") -> str | None:
    """Return the first key that does not fit its schema, or None; missing keys do not matter.

    Args:
        value: as JSON gives it.
        schema: of types, ranges, lists and objects.
        name: of the value itself.

    Returns:
        the name of the first key that does not fit.

    Examples:
        >>> schema = {"properties": {"bits": {"type": ["number", "null"], "maximum": 64}}}
        >>> [misfit({"bits": bits}, schema) for bits in (3.0, None, "3", 1e30, True)]
        [None, None, 'bits', 'bits', 'bits']
    """
    return _get_check(schema)(value, name)


def _get_check(schema: Schema) -> _Check:
    """Return the check of a schema, made once: a run of days has millions of values."""
    cached = _CHECKS.get(id(schema))
    if cached is None:  # the schema is kept with it, so that its id stays its own
        cached = _CHECKS[id(schema)] = schema, _make_check(schema)
    return cached[1]


def _make_check(schema: Schema) -> _Check:
    fits = _make_fit(schema)
    firsts = [_get_check(kind) for kind in schema.get("prefixItems", ())]
    items = _get_check(schema["items"]) if "items" in schema else None
    properties = {key: _get_check(kind) for key, kind in schema.get("properties", {}).items()}
    further = schema.get("additionalProperties")
    others = _get_check(further) if isinstance(further, Mapping) else None

    def check(value: Any, name: str) -> str | None:
        if not fits(value):
            return name
        if isinstance(value, list):
            for part, kind in zip(value, firsts, strict=False):
                if (inside := kind(part, name)) is not None:
                    return inside
            if items is not None:
                for part in value[len(firsts) :]:
                    if (inside := items(part, name)) is not None:
                        return inside
        elif isinstance(value, dict):
            for key, part in value.items():
                named = properties.get(key, others)
                if named is not None and (inside := named(part, key)) is not None:
                    return inside
        return None

    return check


def _make_fit(schema: Schema) -> Callable[[Any], bool]:
    """Return whether the value itself fits, without its parts."""
    kinds = schema.get("type")
    names = [kinds] if isinstance(kinds, str) else kinds
    allowed = None if names is None else tuple(_TYPES[kind] for kind in names)
    flat = _flatten(allowed or ())
    flags = names is None or "boolean" in names
    least, most = schema.get("minimum"), schema.get("maximum")
    above: float = schema.get("exclusiveMinimum", -math.inf)
    fewest, longest = schema.get("minItems", 0), schema.get("maxItems", math.inf)
    fixed = [word for word in ("const", "enum") if word in schema]
    bounded = least is not None or most is not None or above > -math.inf

    def fits(value: Any) -> bool:
        if allowed is not None and (
            not isinstance(value, flat) or (isinstance(value, bool) and not flags)
        ):
            return False
        if fixed and not (
            ("const" not in schema or value == schema["const"])
            and ("enum" not in schema or value in schema["enum"])
        ):
            return False
        if isinstance(value, list):
            return bool(fewest <= len(value) <= longest)
        if bounded and isinstance(value, int | float) and not isinstance(value, bool):
            low = value if least is None else least
            high = value if most is None else most
            return bool(low <= value <= high and value > above)
        return not isinstance(value, float) or not math.isnan(value)

    return fits


def _flatten(kinds: tuple[Any, ...]) -> tuple[type, ...]:
    return tuple(part for kind in kinds for part in (kind if isinstance(kind, tuple) else (kind,)))


_Check: TypeAlias = Callable[[Any, str], "str | None"]
_CHECKS: dict[int, tuple[Schema, _Check]] = {}
