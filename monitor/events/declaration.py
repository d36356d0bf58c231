"""Events declared once: a field states key, unit, bounds and meaning; everything else follows.

Record, JSON Schema, the tables of docs/records.md and reading back are made of the fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import cache, partial
from operator import attrgetter
from types import NoneType, UnionType
from typing import (
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Self,
    TypeAlias,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from monitor.events.keys import (
    CEILING,
    COUNT,
    FIGURE,
    FLAG,
    NUMBER,
    PEOPLE,
    PROBABILITY,
    SECONDS,
    TEXT,
    Schema,
    misfit,
)

_UNITS: Mapping[str, Schema] = {
    "bits": FIGURE,
    "seconds": SECONDS,
    "probability": PROBABILITY,
    "count": COUNT,
    "number": NUMBER,
    "magnitude": {**NUMBER, "minimum": 0},
    "people": PEOPLE,
    "ceiling": CEILING,
    "": {},
}
"""Range of each unit; bits are null while they are withheld."""
_TYPES = {float: "number", int: "integer", bool: FLAG["type"], str: TEXT["type"]}
_PLAIN = (*_TYPES, NoneType, Any)
Declared = TypeVar("Declared")
_Convert: TypeAlias = Callable[[Any], Any]


class _Declaration(NamedTuple):
    """Declaration of the key of a field."""

    unit: str
    meaning: str
    sparse: bool
    required: bool
    schema: Schema | None
    encode: _Convert | None
    decode: _Convert | None
    words: Schema


def key(
    unit: str = "",
    meaning: str = "",
    *,
    sparse: bool = False,
    required: bool = True,
    default: Any = MISSING,
    init: bool = True,
    kw_only: Any = MISSING,
    schema: Schema | None = None,
    encode: _Convert | None = None,
    decode: _Convert | None = None,
    **words: Any,
) -> Any:
    """Declare the key of a field.

    Args:
        unit: a range: bits (nullable), seconds, probability, count, number, magnitude, people,
            ceiling.
        meaning: a line of docs/records.md, in Markdown; empty for limits and parts.
        sparse: whether it is left out where it is None or an empty text.
        required: whether every run ever written holds it; a key that is added later is not.
        default: as of `dataclasses.field`.
        init: as of `dataclasses.field`.
        kw_only: as of `dataclasses.field`.
        schema: JSON Schema in the place of what follows from type and unit.
        encode: from the value to its JSON, where the type does not say it.
        decode: from its JSON to the value.
        words: of JSON Schema, besides.
    """
    declaration = _Declaration(
        unit, meaning, sparse, required and not sparse, schema, encode, decode, words
    )
    return field(default=default, init=init, kw_only=kw_only, metadata={"key": declaration})


@dataclass_transform(frozen_default=True, field_specifiers=(key,))
def declared(*, kw_only: bool = False) -> Callable[[type[Declared]], type[Declared]]:
    """Make a class a frozen dataclass of keys."""
    return dataclass(frozen=True, slots=True, kw_only=kw_only)


@dataclass(frozen=True, slots=True)
class Key:
    """One key of one type of record.

    Attributes:
        name: as it is written.
        schema: JSON Schema (2020-12) of its value; of the words of it that `misfit` knows.
        meaning: a line of docs/records.md, in Markdown; empty for limits.
        required: whether every run ever written holds it.
        sparse: whether it is left out where it is None or an empty text.
        encode: JSON of the attribute of that name; None where it is JSON already.
    """

    name: str
    schema: Schema
    meaning: str
    required: bool = True
    sparse: bool = False
    encode: _Convert | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """One type of record: its ``type`` (title) and all other keys, in the order of writing."""

    title: str
    keys: tuple[Key, ...]

    @property
    def schema(self) -> dict[str, Any]:
        """JSON Schema; further keys may be added."""
        schema = _object_schema(self.keys)
        return {
            "title": self.title,
            "type": "object",
            "properties": {"type": {"const": self.title}, **schema["properties"]},
            "required": ["type", *schema["required"]],
        }

    @property
    def table(self) -> str:
        """Rows of docs/records.md."""
        rows = [f"| `{key.name}` | {key.meaning} |" for key in self.keys if key.meaning]
        return "\n".join(
            ["| key | meaning |", "| --- | --- |", f'| `type` | `"{self.title}"` |', *rows]
        )


def _object_schema(keys: Sequence[Key]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {key.name: key.schema for key in keys},
        "required": [key.name for key in keys if key.required],
    }


class Event:
    """Something that happens in a run; a dataclass whose fields declare their keys."""

    __slots__ = ()
    type: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def record(self) -> dict[str, Any]:
        """Return it as a JSON-able record."""
        return {"type": self.type, **to_json(self)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Read it back; what the record lacks is the default of its field, or None.

        Example:
            >>> from monitor.events.occurrences import Change
            >>> Change.from_record({"since_seconds": 7.0, "features": ["f0"]}).features
            ('f0',)
        """
        event: Self = _decode(cls, record)
        return event


@cache
def record_of(kind: Any) -> Record:
    """Return the record that a class of events declares."""
    return Record(kind.type, _keys(kind))


@cache
def schema_of(kind: Any) -> dict[str, Any]:
    """Return the JSON Schema of a dataclass whose fields declare keys.

    Example:
        >>> from monitor.events.reading import OpenChange
        >>> schema_of(OpenChange)["required"]
        ['since_seconds', 'features']
    """
    return _object_schema(_keys(kind))


def to_json(value: Any) -> dict[str, Any]:
    """Encode a dataclass key by key, as its fields declare.

    Example:
        >>> from monitor.events.reading import Bystander
        >>> to_json(Bystander("ann", 0.2, 50))
        {'name': 'ann', 'probability': 0.2, 'people': 50}
    """
    kind: Any = type(value)
    encoded: dict[str, Any] = _encoder(kind)(value)
    return encoded


def from_json(kind: type[Declared], record: Mapping[str, Any]) -> Declared:
    """Decode what `to_json` made of such a dataclass.

    Raises:
        KeyError: a required key is missing.
        ValueError: a value is not what its key declares.
    """
    any_class: Any = kind  # whose hash mypy does not find
    schema = schema_of(any_class)
    missing = [name for name in schema["required"] if name not in record]
    if missing:
        raise KeyError(missing[0])
    if (name := misfit(record, schema)) is not None:
        raise ValueError(f"{name} makes no sense")
    value: Declared = _decode(kind, record)
    return value


def _decode(kind: Any, record: Mapping[str, Any]) -> Any:
    return _decoder(kind)(record)


# --- From a field to its schema, and between value and JSON.


@cache
def _declarations(kind: Any) -> tuple[tuple[Field[Any], _Declaration, Any], ...]:
    hints = get_type_hints(kind)
    return tuple(
        (attribute, attribute.metadata["key"], hints[attribute.name])
        for attribute in fields(kind)
        if "key" in attribute.metadata
    )


@cache
def _keys(kind: Any) -> tuple[Key, ...]:
    return tuple(
        Key(
            attribute.name,
            _schema(hint, declared),
            declared.meaning,
            declared.required,
            declared.sparse,
            declared.encode or _encoding(hint),
        )
        for attribute, declared, hint in _declarations(kind)
    )


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _is_declared(hint: Any) -> bool:
    return is_dataclass(hint)


def _is_named_tuple(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields")


def _schema(hint: Any, declared: _Declaration) -> dict[str, Any]:
    if declared.schema is not None:
        return {**declared.schema, **declared.words}
    if "enum" in declared.words:
        return dict(declared.words)
    alternatives = _alternatives(hint)
    unit = _UNITS[declared.unit]
    inner = partial(_schema, declared=declared._replace(sparse=False, words={}))
    first = alternatives[0]
    origin, arguments = get_origin(first), get_args(first)
    if origin is Literal:
        return {"enum": list(arguments)}
    schema: dict[str, Any]
    if _is_declared(first):
        schema = _object_schema(_keys(first))
    elif _is_named_tuple(first):
        parts = {name: inner(part) for name, part in get_type_hints(first).items()}
        schema = {"type": "object", "properties": parts, "required": list(parts)}
    elif origin is not None and issubclass(origin, Mapping):
        schema = {"type": "object"}
        if arguments[1] is not Any:
            schema["additionalProperties"] = inner(arguments[1])
    elif origin is tuple and arguments[-1] is not Ellipsis:
        items = [inner(argument) for argument in arguments]
        schema = {"type": "array", "prefixItems": items}
        schema |= {"minItems": len(items), "maxItems": len(items)}
    elif origin is not None:
        schema = {"type": "array", "items": inner(arguments[0])}
    else:
        schema = (
            {**unit, "type": _TYPES[first]} if first in (int, float) else {"type": _TYPES[first]}
        )
    is_figure = first is float and declared.unit == "bits"
    if is_figure or (NoneType in alternatives and not declared.sparse):
        schema["type"] = [schema["type"], "null"]
    return {**schema, **declared.words}


def _optional(convert: _Convert) -> _Convert:
    return lambda value: None if value is None else convert(value)


def _encoding(hint: Any) -> _Convert | None:
    """Return what makes JSON of a value of this type; None where it is JSON already."""
    first = _alternatives(hint)[0]
    origin, arguments = get_origin(first), get_args(first)
    if first in _PLAIN or origin is Literal:
        return None
    if _is_declared(first):
        return _optional(lambda value: _encoder(first)(value))
    if _is_named_tuple(first):
        return _optional(lambda value: value._asdict())
    if issubclass(origin, Mapping):
        inner = _encoding(arguments[1])
        if inner is None:
            return _optional(dict)
        return _optional(lambda value: {name: inner(part) for name, part in value.items()})
    part_encoding = _encoding(arguments[0])
    if part_encoding is None:
        return _optional(list)
    return _optional(lambda value: [part_encoding(part) for part in value])


_Step: TypeAlias = tuple[tuple[str, ...], _Convert, _Convert | None, bool]


def _steps(keys: Sequence[Key]) -> Iterator[_Step]:
    """Yield names, what gets their values, what encodes one, and whether that one is sparse.

    Neighbours that need nothing are taken together: a run of a day has 86 400 readings.
    """
    plain: list[str] = []
    for neighbour in (*keys, None):
        if neighbour is not None and neighbour.encode is None and not neighbour.sparse:
            plain.append(neighbour.name)
            continue
        if len(plain) == 1:
            yield (plain[0],), attrgetter(plain[0]), None, False
        elif plain:
            yield tuple(plain), attrgetter(*plain), None, False
        plain = []
        if neighbour is not None:
            yield (neighbour.name,), attrgetter(neighbour.name), neighbour.encode, neighbour.sparse


@cache
def _encoder(kind: Any) -> _Convert:
    steps = tuple(_steps(_keys(kind)))

    def encode(event: Any) -> dict[str, Any]:
        record: dict[str, Any] = {}
        for names, get, convert, sparse in steps:
            value = get(event)
            if len(names) > 1:
                record.update(zip(names, value, strict=True))
                continue
            if convert is not None:
                value = convert(value)
            if not sparse or (value is not None and value != ""):
                record[names[0]] = value
        return record

    return encode


def _decoding(hint: Any) -> _Convert | None:
    first = _alternatives(hint)[0]
    origin, arguments = get_origin(first), get_args(first)
    if first in _PLAIN or origin is Literal:
        return None
    if _is_declared(first):
        return lambda record: _decoder(first)(record)
    if _is_named_tuple(first):
        return lambda parts: first(*map(parts.get, first._fields))
    if origin is not None and issubclass(origin, Mapping):
        inner = _decoding(arguments[1])
        if inner is None:
            return dict
        return lambda parts: {name: inner(part) for name, part in parts.items()}
    if origin is tuple and arguments[-1] is not Ellipsis:
        return tuple
    part_decoding = _decoding(arguments[0])
    if part_decoding is None:
        return tuple
    return lambda parts: tuple(map(part_decoding, parts))


@cache
def _decoder(kind: Any) -> _Convert:
    steps = [
        (attribute.name, declared.decode or _decoding(hint), attribute.default is MISSING)
        for attribute, declared, hint in _declarations(kind)
        if attribute.init
    ]
    further = [
        attribute.name
        for attribute in fields(kind)
        if attribute.init and "key" not in attribute.metadata and attribute.default is MISSING
    ]

    def decode(record: Mapping[str, Any]) -> Any:
        arguments: dict[str, Any] = dict.fromkeys(further)
        for name, convert, is_needed in steps:
            value = record.get(name)
            if value is not None:
                arguments[name] = value if convert is None else convert(value)
            elif is_needed or name in record:
                arguments[name] = None
        return kind(**arguments)

    return decode
