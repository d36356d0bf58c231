"""One key of a record, declared once: name, JSON Schema, meaning, where it comes from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, TypeAlias

# --- The schema, `Reading.record` and the tables of docs/records.md are made of these declarations.

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
TOP = {
    "type": "array",
    "items": {"type": "array", "prefixItems": [TEXT, FIGURE], "minItems": 2, "maxItems": 2},
}
HEADLINES = {"evidence": "evidence_bits", "closed-set": "closed_set_bits"}
"""What the headline may be, and under which key the same figure stands besides."""
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
    "items": {"enum": ["bandwidth_hz", "snr_db", "reverberation_seconds", "clipping", "level_db"]},
}
_LIMITS = ("", "_low", "_high")


def object_of(optional: Sequence[str] = (), **properties: Any) -> dict[str, Any]:
    """The schema of an object, all of whose keys are there but the optional ones.

    Example:
        >>> object_of(["note"], bits=FIGURE, note=TEXT)["required"]
        ['bits']
    """
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required}


def list_of(items: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a list of such values."""
    return {"type": "array", "items": items}


def limits(*names: str) -> dict[str, Any]:
    """The schema of figures in bits, each with its lower and upper limit.

    Example:
        >>> list(limits("bits"))
        ['bits', 'bits_low', 'bits_high']
    """
    return {name + end: FIGURE for name in names for end in _LIMITS}


def with_limits(name: str, figure: Sequence[float] | None) -> dict[str, Any]:
    """A figure (value, low, high) as three keys; all null where there is none.

    Example:
        >>> with_limits("bits", (2.0, 1.5, 2.5))
        {'bits': 2.0, 'bits_low': 1.5, 'bits_high': 2.5}
    """
    value, low, high = figure or (None,) * 3
    return {name: value, name + "_low": low, name + "_high": high}


@dataclass(frozen=True, slots=True)
class Key:
    """One key of one type of record.

    Attributes:
        name: as it is written.
        schema: JSON Schema (2020-12) of its value; of the words of it that `misfit` knows.
        meaning: a line of docs/records.md, in Markdown.
        value: takes it from the object that the record is of; None: the attribute of that name.
        limits: whether ``name_low`` and ``name_high`` stand beside it, each an attribute as well.
        required: whether every run ever written holds it; a key that is added later is not, nor
            one that is ``sparse``: left out where it is None or an empty text.

    Example:
        >>> from types import SimpleNamespace
        >>> key = Key("lag", SECONDS, "wall seconds until it was said", sparse=True)
        >>> key.of(SimpleNamespace(lag=0.2)), key.of(SimpleNamespace(lag=None))
        ({'lag': 0.2}, {})
    """

    name: str
    schema: Mapping[str, Any]
    meaning: str
    value: Callable[[Any], Any] | None = None
    limits: bool = False
    required: bool = True
    sparse: bool = False

    def of(self, thing: Any) -> dict[str, Any]:
        """What a record of ``thing`` holds under this key: one item, three, or none."""
        if self.limits:
            return {name: getattr(thing, name) for name in self.properties}
        value = (self.value or attrgetter(self.name))(thing)
        return {} if self.sparse and (value is None or value == "") else {self.name: value}

    @property
    def properties(self) -> dict[str, Any]:
        """Its part of the record's schema."""
        return {self.name + end: self.schema for end in (_LIMITS if self.limits else ("",))}


@dataclass(frozen=True, slots=True)
class Record:
    """One type of record.

    Attributes:
        title: its ``type``.
        keys: all others, in the order in which they are written.
    """

    title: str
    keys: tuple[Key, ...]
    _steps: tuple[_Step, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_steps", tuple(_steps(self.keys)))

    @property
    def schema(self) -> dict[str, Any]:
        """Its JSON Schema; further keys may be added."""
        properties = {name: kind for key in self.keys for name, kind in key.properties.items()}
        required = [
            name for key in self.keys if key.required and not key.sparse for name in key.properties
        ]
        return {
            "title": self.title,
            "type": "object",
            "properties": {"type": {"const": self.title}, **properties},
            "required": ["type", *required],
        }

    @property
    def table(self) -> str:
        """The rows of docs/records.md."""
        rows = [f'| `type` | `"{self.title}"` |']
        rows += [f"| `{key.name}` | {key.meaning} |" for key in self.keys]
        return "\n".join(["| key | meaning |", "| --- | --- |", *rows])

    def of(self, thing: Any) -> dict[str, Any]:
        """The record of an object that has every key's value."""
        record: dict[str, Any] = {"type": self.title}
        for names, values, sparse in self._steps:
            if sparse is None:
                record.update(zip(names, values(thing), strict=True))
                continue
            value = values(thing)
            if not sparse or (value is not None and value != ""):
                record[names[0]] = value
        return record


_Step: TypeAlias = tuple[tuple[str, ...], Callable[[Any], Any], bool | None]


def _steps(keys: Sequence[Key]) -> Iterator[_Step]:
    """How a record is made of them: attributes on end at once, and each other key by itself.

    Names, what takes their values, and whether the one is sparse; None of several values.
    """
    plain: list[str] = []

    def together() -> Iterator[_Step]:
        if plain:
            one = attrgetter(*plain)
            yield tuple(plain), one if len(plain) > 1 else lambda thing: (one(thing),), None
            plain.clear()

    for key in keys:
        if key.limits or (key.value is None and not key.sparse):
            plain += key.properties
            continue
        yield from together()
        yield (key.name,), key.value or attrgetter(key.name), key.sparse
    yield from together()


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
