"""Whether a value that was read is what a JSON Schema promises.

Of JSON Schema 2020-12 the few words that our own schema uses; a run of a day holds 86 400 readings,
which a general validator would take minutes for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

__all__ = ["misfit"]

_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "array": list,
    "boolean": bool,
    "integer": int,
    "null": type(None),
    "number": (int, float),
    "object": dict,
    "string": str,
}


def misfit(value: Any, schema: Mapping[str, Any], name: str = "") -> str | None:
    """Where a value is not as promised; None where it is. Keys that are not there are no matter.

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
    if not _fits(value, schema):
        return name
    if isinstance(value, list):
        firsts = schema.get("prefixItems", ())
        kinds = [*firsts, *[schema.get("items")] * (len(value) - len(firsts))]
        for each, kind in zip(value, kinds, strict=False):
            if kind is not None and (inside := misfit(each, kind, name)) is not None:
                return inside
    elif isinstance(value, dict):
        properties, others = schema.get("properties", {}), schema.get("additionalProperties")
        for key, each in value.items():
            kind = properties.get(key, others)
            if kind is not None and (inside := misfit(each, kind, key)) is not None:
                return inside
    return None


def _fits(value: Any, schema: Mapping[str, Any]) -> bool:
    """The value itself, without what is inside it."""
    kinds = schema.get("type")
    if kinds is not None and not any(
        isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))
        for kind in ([kinds] if isinstance(kinds, str) else kinds)
    ):
        return False
    if "const" in schema and value != schema["const"]:
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if isinstance(value, int | float) and not isinstance(value, bool):
        low, high = schema.get("minimum", value), schema.get("maximum", value)
        above: float = schema.get("exclusiveMinimum", -math.inf)
        return bool(low <= value <= high and value > above)
    if isinstance(value, list):
        return bool(schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)))
    return True
