"""Declarations of events: each field declares its key, unit, bounds and meaning.

Records, their JSON Schema, their parser and the tables of docs/records.md are derived from the
fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from functools import cache, partial
from itertools import groupby
from operator import attrgetter
from types import NoneType, UnionType
from typing import (
    Any,
    ClassVar,
    Literal,
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
"""JSON Schema of each unit; bits are null while they are withheld."""
_TYPES = {float: "number", int: "integer", bool: FLAG["type"], str: TEXT["type"]}
_PLAIN = (*_TYPES, NoneType, Any, object)
Declared = TypeVar("Declared")
_Convert: TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Key:
    """Declaration of one key in a type of record.

    Attributes:
        schema: JSON Schema (2020-12) of the value, limited to the keywords that `misfit` supports.
        meaning: its line in docs/records.md, in Markdown; empty for interval limits and parts.
        required: whether all runs contain it, including runs of earlier versions.
        sparse: whether a value of None or an empty text is omitted.
        only: function that selects the events with this key; None for all events.
        encode: function from the value to JSON; None if the value is JSON already.
        decode: function from JSON to the value; None if the value is JSON already.
    """

    name: str
    schema: Schema
    meaning: str
    required: bool
    sparse: bool
    only: Callable[[Any], bool] | None
    encode: _Convert | None
    decode: _Convert | None


def key(
    unit: str | Schema = "",
    meaning: str = "",
    *,
    sparse: bool | Callable[[Any], bool] = False,
    required: bool = True,
    default: Any = MISSING,
    kw_only: Any = MISSING,
    encode: _Convert | None = None,
    decode: _Convert | None = None,
    **words: Any,
) -> Any:
    """Declare the key of a field; other arguments are as in `Key` and `dataclasses.field`.

    ``unit`` is a name in `_UNITS`, or a whole JSON Schema. ``words`` are further keywords of the
    schema. ``sparse`` may be a function that selects the events with this key.
    """
    only = sparse if callable(sparse) else None
    required = required and not sparse
    declaration = Key("", words, meaning, required, sparse is True, only, encode, decode)
    return field(default=default, kw_only=kw_only, metadata={"unit": unit, "key": declaration})


def text_key(meaning: str, schema: Schema | None = None, **options: Any) -> Any:
    """Declare the key of a field without a unit."""
    return key("" if schema is None else schema, meaning, **options)


@dataclass_transform(frozen_default=True, field_specifiers=(key, text_key))
def declared(*, kw_only: bool = False) -> Callable[[type[Declared]], type[Declared]]:
    """Make a class a frozen dataclass of keys."""
    return dataclass(frozen=True, slots=True, kw_only=kw_only)


@dataclass(frozen=True, slots=True)
class Record:
    """One type of record: its ``type`` (title) and all other keys, in written order."""

    title: str
    keys: tuple[Key, ...]

    @property
    def schema(self) -> Schema:
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
    """Base class of a run's events, with fields that declare their keys."""

    __slots__ = ()
    type: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def code(self) -> str:
        """Stable name of the kind of event, more specific than ``type``."""
        return self.type

    def record(self) -> dict[str, Any]:
        """Return the event as a record of JSON values."""
        return {"type": self.type, **to_json(self)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Parse a record. Missing keys get the default of their field, or None."""
        return decode(cls, record)


_newest: tuple[Event, Mapping[str, Any]] | None = None


def encode(event: Event) -> Mapping[str, Any]:
    """Return the record of an event, made once for all sinks that write it."""
    global _newest
    newest = _newest  # read only once, since other threads have their own runs
    if newest is None or newest[0] is not event:
        newest = _newest = event, event.record()
    return newest[1]


def decode(kind: type[Declared], record: Mapping[str, Any]) -> Declared:
    """Parse a dataclass from a record. Missing keys get the default of their field, or None."""
    any_class: Any = kind  # mypy does not find its hash
    value: Declared = _decoder(any_class)(record)
    return value


def find_first(events: Iterable[Event], kind: type[Declared]) -> Declared | None:
    """Return the first event of a class, or None."""
    return next((event for event in events if isinstance(event, kind)), None)


@cache
def record_of(kind: Any) -> Record:
    """Return the record that a class of events declares."""
    return Record(kind.type, _keys(kind))


def to_json(value: Any) -> dict[str, Any]:
    """Encode a dataclass key by key, as its fields declare."""
    kind: Any = type(value)
    encoded: dict[str, Any] = _encoder(kind)(value)
    return encoded


def from_json(kind: type[Declared], record: Mapping[str, Any]) -> Declared:
    """Decode the output of `to_json`.

    KeyError for a required key that is missing, ValueError for a value that does not fit its key.
    """
    any_class: Any = kind  # mypy does not find its hash
    schema = schema_of(any_class)
    missing = [name for name in schema["required"] if name not in record]
    if missing:
        raise KeyError(missing[0])
    if (name := misfit(record, schema)) is not None:
        raise ValueError(f"{name} is invalid")
    return decode(kind, record)


@cache
def _keys(kind: Any) -> tuple[Key, ...]:
    hints = get_type_hints(kind)
    keys = []
    for attribute in fields(kind):
        name, declared = attribute.name, attribute.metadata.get("key")
        if declared is not None:
            hint, unit = hints[name], attribute.metadata["unit"]
            schema = _schema(hint, unit, declared.schema, sparse=declared.sparse)
            encode = declared.encode or _encoding(hint)
            decode = declared.decode or _decoding(hint)
            keys.append(replace(declared, name=name, schema=schema, encode=encode, decode=decode))
    return tuple(keys)


@cache
def schema_of(kind: Any) -> dict[str, Any]:
    """Return the JSON Schema of a dataclass with fields that declare keys."""
    return _object_schema(_keys(kind))


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _is_declared(hint: Any) -> bool:  # mypy would narrow the type after is_dataclass
    return is_dataclass(hint)


def _is_named_tuple(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields")


def _schema(
    hint: Any, unit: str | Schema, words: Schema = _UNITS[""], *, sparse: bool = False
) -> dict[str, Any]:
    if not isinstance(unit, str):
        return {**unit, **words}
    if "enum" in words:
        return dict(words)
    alternatives = _alternatives(hint)
    inner = partial(_schema, unit=unit)
    first = alternatives[0]
    origin, arguments = get_origin(first), get_args(first)
    if origin is Literal:
        return {"enum": list(arguments)}
    schema: dict[str, Any]
    if _is_declared(first):
        schema = schema_of(first)
    elif _is_named_tuple(first):
        parts = {name: inner(annotation) for name, annotation in get_type_hints(first).items()}
        schema = {"type": "object", "properties": parts, "required": list(parts)}
    elif origin is not None and issubclass(origin, Mapping):
        schema = {"type": "object"}
        if arguments[1] not in (Any, object):
            schema["additionalProperties"] = inner(arguments[1])
    elif origin is tuple and arguments[-1] is not Ellipsis:
        items = [inner(argument) for argument in arguments]
        schema = {"type": "array", "prefixItems": items}
        schema |= {"minItems": len(items), "maxItems": len(items)}
    elif origin is not None:
        schema = {"type": "array", "items": inner(arguments[0])}
    else:
        schema = (
            {**_UNITS[unit], "type": _TYPES[first]}
            if first in (int, float)
            else {"type": _TYPES[first]}
        )
    is_figure = first is float and unit == "bits"
    if is_figure or (NoneType in alternatives and not sparse):
        schema["type"] = [schema["type"], "null"]
    return {**schema, **words}


def _optional(convert: _Convert) -> _Convert:
    return lambda value: None if value is None else convert(value)


def _encoding(hint: Any) -> _Convert | None:
    """Return the function from a value of this type to JSON; None if the value is JSON already."""
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
        return _optional(lambda value: {name: inner(item) for name, item in value.items()})
    part_encoding = _encoding(arguments[0])
    if part_encoding is None:
        return _optional(list)
    return _optional(lambda value: [part_encoding(item) for item in value])


_Step: TypeAlias = tuple[tuple[str, ...], _Convert, Key | None]


def _steps(keys: Sequence[Key]) -> Iterator[_Step]:
    """Yield (names, getter of their values, key); the key is None if values need no conversion.

    Neighbouring plain keys share one getter for speed: a run of a day has 86 400 readings.
    """
    for is_plain, group in groupby(keys, key=lambda k: not (k.encode or k.sparse or k.only)):
        neighbours = list(group)
        if is_plain and neighbours[1:]:
            names = tuple(key.name for key in neighbours)
            yield names, attrgetter(*names), None
        else:
            yield from (((key.name,), attrgetter(key.name), key) for key in neighbours)


@cache
def _encoder(kind: Any) -> _Convert:
    steps = tuple(_steps(_keys(kind)))

    def encode(event: Any) -> dict[str, Any]:
        record: dict[str, Any] = {}
        for names, get, key in steps:
            value = get(event)
            if key is None:
                record.update(zip(names, value, strict=True))
                continue
            if key.encode is not None:
                value = key.encode(value)
            if key.sparse and (value is None or value == ""):
                continue
            if key.only is None or key.only(event):
                record[key.name] = value
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
        return lambda parts: {name: inner(item) for name, item in parts.items()}
    if origin is tuple and arguments[-1] is not Ellipsis:
        return tuple
    part_decoding = _decoding(arguments[0])
    if part_decoding is None:
        return tuple
    return lambda parts: tuple(map(part_decoding, parts))


@cache
def _decoder(kind: Any) -> _Convert:
    parameters = [attribute for attribute in fields(kind) if attribute.init]
    needed = [attribute.name for attribute in parameters if attribute.default is MISSING]
    converts = {key.name: key.decode for key in _keys(kind)}
    steps = [
        (attribute.name, converts[attribute.name])
        for attribute in parameters
        if attribute.name in converts
    ]

    def decode(record: Mapping[str, Any]) -> Any:
        arguments: dict[str, Any] = dict.fromkeys(needed)
        for name, convert in steps:
            if name in record:
                value = record[name]
                arguments[name] = value if value is None or convert is None else convert(value)
        return kind(**arguments)

    return decode
