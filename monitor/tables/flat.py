"""A reading as one row: what is nested in its record becomes columns named with dots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from monitor.records.keys import Key
from monitor.records.reading import READING
from monitor.tables.columns import Column, Kind

__all__ = ["OF_THE_RUN", "columns_of", "flat"]

OF_THE_RUN = (
    Column("run", "text", "the file of the run"),
    Column("watch", "text", "the speaker followed; empty without one"),
)
"""Columns before those of the readings, where these were read from runs."""

_KINDS: Mapping[str, Kind] = {
    "number": "number",
    "integer": "integer",
    "boolean": "boolean",
    "string": "text",
}
_ENDS = {"_low": ", lower limit", "_high": ", upper limit"}


def crowd(people: float) -> str:
    """The size of a crowd as fields of alerts write it.

    Example:
        >>> crowd(50), crowd(12_500), crowd(1_000_000)
        ('50', '12500', '1e6')
    """
    plain, (digits, power) = f"{people:.0f}", f"{people:e}".split("e")
    short = f"{digits.rstrip('0').rstrip('.')}e{int(power)}"
    return short if len(short) < len(plain) else plain


def flat(reading: Mapping[str, Any]) -> dict[str, Any]:
    """The record of a reading as one row.

    Example:
        >>> flat({"type": "reading", "bits": 2.0, "features": {"f0": {"rank": 3}},
        ...       "among": [{"people": 1000000, "bits": 7.5}], "top": [["ann", 0.25]]})
        {'bits': 2.0, 'f0.rank': 3, 'among.1e6.bits': 7.5, 'posterior.ann': 0.25}
    """
    row: dict[str, Any] = {}
    for name, value in reading.items():
        if name == "features":
            for feature, figures in value.items():
                row |= {f"{feature}.{part}": each for part, each in figures.items()}
        elif name == "among":
            for each in _with("people", value):
                row |= _of_crowd(each)
        elif name == "top":
            row |= {f"posterior.{who}": each for who, each in value}
        elif name == "bystanders":
            named = _with("name", value)
            row |= {f"bystander.{each['name']}": each.get("probability") for each in named}
        elif isinstance(value, Mapping):
            row |= _under(name, value)
        elif name != "type":
            row[name] = "+".join(value) if isinstance(value, list) else value
    return row


def _under(name: str, value: Mapping[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for part, each in value.items():
        if part == "attackers":
            for who, figures in each.items():
                row |= _under(f"{name}.{who}", figures)
        else:
            row[f"{name}.{part}"] = "+".join(each) if isinstance(each, list) else each
    return row


def _of_crowd(among: Mapping[str, Any]) -> dict[str, Any]:
    under = f"among.{crowd(among['people'])}."
    row = {under + part: each for part, each in among.items() if part != "people"}
    favourite = row.pop(f"{under}favourite", None)
    if favourite is not None:
        row[f"{under}favourite"], row[f"{under}favourite_probability"] = favourite
    return row


def columns_of(
    readings: Sequence[Mapping[str, Any]], *, posterior: bool = False
) -> tuple[Column, ...]:
    """The columns of a table of readings, in the order of docs/records.md.

    Those of a run are the same whatever happened in it, but for its features and crowds.

    Args:
        readings: records.
        posterior: with a column for everybody whom a reading names, enrolled speakers that the
            attacker holds for the most probable.
    """
    features = _each(name for reading in readings for name in reading.get("features", ()))
    among = (each for reading in readings for each in _with("people", reading.get("among")))
    crowds = sorted({each["people"] for each in among})
    named = _each(who for reading in readings for who, _ in reading.get("top", ()))
    sides = [reading["protected"] for reading in readings if "protected" in reading]
    attackers = _each(who for side in sides for who in side.get("attackers", ()))
    beside = (each for reading in readings for each in _with("name", reading.get("bystanders")))
    others = _each(each["name"] for each in beside)
    found: list[Column] = []
    for key in READING.keys:
        schema = next(iter(key.properties.values()))
        if key.name == "features":
            parts = schema["additionalProperties"]["properties"]
            found += [c for name in features for c in _columns(key, parts, f"{name}.")]
        elif key.name == "among":
            parts = dict(schema["items"]["properties"])
            del parts["people"], parts["favourite"]
            for people in crowds:
                found += _columns(key, parts, f"among.{crowd(people)}.")
                if posterior:
                    found += _favourite(key, f"among.{crowd(people)}.")
        elif key.name in ("top", "bystanders"):
            under, who = ("posterior", named) if key.name == "top" else ("bystander", others)
            if posterior:
                found += [Column(f"{under}.{name}", "number", key.meaning) for name in who]
        elif key.name == "protected":
            parts = dict(schema["properties"])
            of_attacker = parts.pop("attackers")["additionalProperties"]["properties"]
            if sides:
                found += _columns(key, parts, "protected.")
            for attacker in attackers:
                found += _columns(key, of_attacker, f"protected.{attacker}.")
        elif key.name == "declared" and not any("declared" in each for each in readings):
            continue
        elif "properties" in schema:
            found += _columns(key, schema["properties"], f"{key.name}.")
        else:
            found += _columns(key, key.properties, "")
    return tuple(found)


def _with(name: str, objects: Iterable[Any] | None) -> list[Mapping[str, Any]]:
    """Those that have it; a run that somebody has edited may lack what it is called by."""
    return [each for each in objects or () if name in each]


def _columns(key: Key, parts: Mapping[str, Any], under: str) -> Iterator[Column]:
    for name, schema in parts.items():
        end = next((said for end, said in _ENDS.items() if name.endswith(end)), "")
        yield Column(under + name, _kind(schema), key.meaning + end)


def _favourite(key: Key, under: str) -> Iterator[Column]:
    yield Column(f"{under}favourite", "text", key.meaning)
    yield Column(f"{under}favourite_probability", "number", key.meaning)


def _kind(schema: Mapping[str, Any]) -> Kind:
    kinds = schema.get("type", "string")  # one of a few words
    first = kinds if isinstance(kinds, str) else kinds[0]
    return _KINDS.get(first, "text")  # a list of names is joined


def _each(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
