"""Whether a value that was read is what a JSON Schema promises.

Of JSON Schema 2020-12 the few words that our own schema uses; a run of a day holds 86 400 readings,
which a general validator would take minutes for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

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
    return _check_of(schema)(value, name)


def _check_of(schema: Mapping[str, Any]) -> _Check:
    """The check of a schema, made once: a run of days has millions of values."""
    known = _CHECKS.get(id(schema))
    if known is None:  # the schema is kept with it, so that its id stays its own
        known = _CHECKS[id(schema)] = schema, _made(schema)
    return known[1]


def _made(schema: Mapping[str, Any]) -> _Check:
    fits = _fitting(schema)
    firsts = [_check_of(kind) for kind in schema.get("prefixItems", ())]
    items = _check_of(schema["items"]) if "items" in schema else None
    properties = {key: _check_of(kind) for key, kind in schema.get("properties", {}).items()}
    further = schema.get("additionalProperties")
    others = _check_of(further) if isinstance(further, Mapping) else None

    def check(value: Any, name: str) -> str | None:
        if not fits(value):
            return name
        if isinstance(value, list):
            for each, kind in zip(value, firsts, strict=False):
                if (inside := kind(each, name)) is not None:
                    return inside
            if items is not None:
                for each in value[len(firsts) :]:
                    if (inside := items(each, name)) is not None:
                        return inside
        elif isinstance(value, dict):
            for key, each in value.items():
                named = properties.get(key, others)
                if named is not None and (inside := named(each, key)) is not None:
                    return inside
        return None

    return check


def _fitting(schema: Mapping[str, Any]) -> Callable[[Any], bool]:
    """Whether the value itself fits, without what is inside it."""
    kinds = schema.get("type")
    names = [kinds] if isinstance(kinds, str) else kinds
    allowed = None if names is None else tuple(_TYPES[kind] for kind in names)
    flat = _flat(allowed or ())
    flags = names is None or "boolean" in names
    least, most = schema.get("minimum"), schema.get("maximum")
    above: float = schema.get("exclusiveMinimum", -math.inf)
    fewest, longest = schema.get("minItems", 0), schema.get("maxItems", math.inf)
    told = [each for each in ("const", "enum") if each in schema]
    bounded = least is not None or most is not None or above > -math.inf

    def fits(value: Any) -> bool:
        if allowed is not None and (
            not isinstance(value, flat) or (isinstance(value, bool) and not flags)
        ):
            return False
        if told and not (
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


def _flat(kinds: tuple[Any, ...]) -> tuple[type, ...]:
    return tuple(each for kind in kinds for each in (kind if isinstance(kind, tuple) else (kind,)))


_Check: TypeAlias = Callable[[Any, str], "str | None"]
_CHECKS: dict[int, tuple[Mapping[str, Any], _Check]] = {}
