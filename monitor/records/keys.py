"""One key of a record, declared once: its name, its JSON Schema, its meaning, where it comes from.

The schema of a run, the record of a `Reading` and the tables of docs/records.md are all made from
these declarations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

__all__ = ["CONDITIONS", "COUNT", "DIFFERS", "FIGURE", "FLAG", "HEADLINES", "MAYBE_SECONDS",
           "MAYBE_TEXT", "MOST", "MOST_BITS", "NUMBER", "PROBABILITY", "SECONDS", "SESSION",
           "TEXT", "TEXTS", "TOP", "VALUE", "Key", "Record", "limits",
           "with_limits"]  # fmt: skip

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
    "items": {"enum": ["bandwidth_hz", "snr_db", "reverberation_seconds", "clipping"]},
}
_LIMITS = ("", "_low", "_high")


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
    return dict(zip((name + end for end in _LIMITS), figure or (None,) * 3, strict=True))


@dataclass(frozen=True, slots=True)
class Key:
    """One key of one type of record.

    Attributes:
        name: as it is written.
        schema: JSON Schema (2020-12) of its value; of the words of it that `misfit` knows.
        meaning: a line of docs/records.md, in Markdown.
        value: takes it from the object that the record is of; None: the attribute of that name.
        limits: whether ``name_low`` and ``name_high`` stand beside it, each an attribute as well.
        required: whether every run ever written holds it; a key that is added later is not.
        sparse: whether it is left out where it is None or an empty text.

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

    @property
    def schema(self) -> dict[str, Any]:
        """Its JSON Schema; further keys may be added."""
        properties = {name: kind for key in self.keys for name, kind in key.properties.items()}
        required = [name for key in self.keys if key.required for name in key.properties]
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
        for key in self.keys:
            record |= key.of(thing)
        return record
