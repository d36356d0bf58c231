"""JSON Schema of the values in a record, and the check of a value against it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import repeat
from typing import Annotated, Any, Literal, TypeAlias, TypedDict, Union

import msgspec
from msgspec import Meta

Schema: TypeAlias = Mapping[str, Any]  # JSON Schema with the keywords that `misfit` supports
MOST_BITS = 1e6  # far beyond any voice's disclosure, so larger figures cannot be measurements
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
"""Kinds of headline, each with the second key of the same figure."""
HEADLINE = {"enum": list(HEADLINES)}
CONDITIONS = {
    "type": ["object", "null"],
    "properties": {
        "bandwidth_hz": {**VALUE, "minimum": 0},
        "snr_db": VALUE,
        "reverberation_seconds": {**VALUE, "minimum": 0},
        "clipping": PROBABILITY,
        "level_db": VALUE,
        "lost": PROBABILITY,
    },
    "required": ["bandwidth_hz", "snr_db", "reverberation_seconds", "clipping", "level_db"],
}
"""Conditions of a recording, each null until there is enough audio."""
DIFFERS = {
    "type": "array",
    "items": {
        "enum": [
            "bandwidth_hz", "snr_db", "reverberation_seconds", "clipping", "level_db", "lost",
            "voiced_share",
        ]
    },
}  # fmt: skip


def object_of(**properties: Any) -> Schema:
    """Return the schema of an object that has all of these keys."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def list_of(items: Schema) -> Schema:
    """Return the schema of a list of such values."""
    return {"type": "array", "items": items}


def misfit(value: Any, schema: Schema, name: str = "") -> str | None:
    """Return the first key with a value that does not fit its schema, or None. Keys may be missing.

    ``value`` is parsed JSON, and ``name`` is the name of its key.

    Examples:
        >>> schema = {"properties": {"bits": {"type": ["number", "null"], "maximum": 64}}}
        >>> [misfit({"bits": bits}, schema) for bits in (3.0, None, "3", 1e30, True)]
        [None, None, 'bits', 'bits', 'bits']
    """
    cached = _TYPES.get(id(schema))
    if cached is None:  # keeps the schema, so that its id stays unique
        cached = _TYPES[id(schema)] = schema, _make_type(schema)
    try:
        msgspec.convert(value, cached[1], dec_hook=_check_open)
    except msgspec.ValidationError:
        inside = (misfit(member, kind, key) for key, member, kind in _parts(value, schema, name))
        return next((key for key in inside if key is not None), name)
    return None


def _parts(value: Any, schema: Schema, name: str) -> Iterator[tuple[str, Any, Schema]]:
    """Yield the name, value and schema of each part of a value; parts of a list have its name."""
    if isinstance(value, dict):
        named, further = schema.get("properties", {}), schema.get("additionalProperties", {})
        yield from ((key, member, named.get(key, further)) for key, member in value.items())
    elif isinstance(value, list):
        kinds = schema.get("prefixItems") or repeat(schema.get("items", {}))
        yield from ((name, member, kind) for member, kind in zip(value, kinds, strict=False))


_SCALARS = {"boolean": bool, "integer": int, "null": None, "number": float, "string": str}
_LIMITS = {
    "minimum": "ge", "exclusiveMinimum": "gt", "maximum": "le", "minItems": "min_length",
    "maxItems": "max_length",
}  # fmt: skip


def _make_type(schema: Schema) -> Any:
    """Make the type of msgspec for a schema."""
    if fixed := schema.get("enum", [schema["const"]] if "const" in schema else None):
        return Literal[tuple(fixed)]
    kinds = schema.get("type", "object" if "properties" in schema else None)
    if kinds is None:
        return Any
    kinds = [kinds] if isinstance(kinds, str) else kinds
    return Union[tuple(_make_kind(kind, schema) for kind in kinds)]  # noqa: UP007


def _make_kind(kind: str, schema: Schema) -> Any:
    limits = {limit: schema[word] for word, limit in _LIMITS.items() if word in schema}
    if "gt" in limits:
        limits.pop("ge", None)  # msgspec accepts only one of both
    if kind in ("number", "integer"):
        return Annotated[_SCALARS[kind], Meta(**limits)]
    if kind == "array" and "prefixItems" in schema:
        return tuple[tuple(map(_make_type, schema["prefixItems"]))]  # type: ignore[misc]
    if kind == "array":
        return Annotated[list[_make_type(schema.get("items", {}))], Meta(**limits)]  # type: ignore[misc]
    if kind != "object":
        return _SCALARS[kind]
    if "properties" not in schema:
        return dict[str, _make_type(schema.get("additionalProperties", {}))]  # type: ignore[misc]
    if "additionalProperties" in schema:
        return type("Open", (), {"schema": schema})
    parts = {key: _make_type(subschema) for key, subschema in schema["properties"].items()}
    return TypedDict("Keys", parts, total=False)  # type: ignore[operator]


def _check_open(kind: Any, value: Any) -> Any:
    """Check an object with named and further keys, for which msgspec has no type."""
    if not isinstance(value, dict):
        raise TypeError(value)
    for name, member, schema in _parts(value, kind.schema, ""):
        if misfit(member, schema, name) is not None:
            raise TypeError(name)
    return kind()


_TYPES: dict[int, tuple[Schema, Any]] = {}
