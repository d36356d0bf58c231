"""Reads groups: an attribute of speakers, or the conditions of trials."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from monitor.errors import UsageError
from monitor.lab.evaluation.input.files import Rows, check_spelling
from monitor.lab.evaluation.input.lists import SPEAKER, TRIAL, role_of
from monitor.safe_text import is_empty_cell, is_number, printable

_KEYS = SPEAKER | TRIAL | {"id", "name", "reader"}
_ATTRIBUTES_MOST = 20
_LENGTHS = frozenset({"seconds", "length", "duration"})
_EDGES = (1, 2, 5, 10, 20, 40)


@dataclass(frozen=True)
class Attribute:
    """An attribute of speakers by name, or of trials, and the label of its file."""

    label: str
    name: str
    of: Mapping[str, str]

    @property
    def values(self) -> tuple[str, ...]:
        """The groups, in the order of their names."""
        return tuple(sorted(set(self.of.values())))


def read_attribute(path: Path, column: str | None = None) -> Attribute:
    """Read ``speaker attribute`` lines (Kaldi's spk2gender), or a column of a table."""
    rows = Rows.from_file(path)
    header = column is not None or len(rows.head) > 2 or rows.head[0].lower() in _KEYS
    return _read_column(rows, *_find_columns(rows, column), True) if header else _read_column(rows)


def read_conditions(path: Path) -> tuple[Attribute, ...]:
    """Read ``trial condition`` lines, or a table with a column per condition.

    A column called seconds, length or duration is grouped into ranges.
    """
    rows = Rows.from_file(path)
    if len(rows.head) < 2:
        raise UsageError(f"{path.name}: give one trial and its condition per line")
    if len(rows.head) == 2 and rows.head[0].lower() not in _KEYS:
        return (replace(_read_column(rows), name="condition"),)
    key = role_of(rows.head, _KEYS) or 0
    names = {name: i for i, name in enumerate(rows.head) if i != key}
    if len(names) < len(rows.head) - 1:
        raise UsageError(f"{path.name}: two columns have the same name. Rename one")
    return tuple(
        _read_column(rows, key, i, True, _length_range if name.lower() in _LENGTHS else str)
        for name, i in names.items()
    )


def _read_column(
    rows: Rows, key: int = 0, value: int = 1, header: bool = False, of: Callable[[str], str] = str
) -> Attribute:
    """Read one column of groups, converted by `of`."""
    groups: dict[str, str] = {}
    for number, row in rows.read(header=header, width=max(len(rows.head), 2)):
        try:
            group = "" if is_empty_cell(row[value]) else of(row[value])
        except UsageError as error:
            raise rows.refuse(number, str(error)) from None
        if group and (earlier := groups.setdefault(row[key], group)) != group:
            raise rows.refuse(
                number, f"{row[key]} is {earlier} on one line and {group} on another; keep one"
            )
    label = rows.path.name
    attribute = Attribute(label, rows.head[value] if header else "", groups)
    check_spelling(label, "group", attribute.values, attribute.values)
    if len(attribute.values) > _ATTRIBUTES_MOST:
        raise UsageError(
            f"{label} has {len(attribute.values)} groups, more than {_ATTRIBUTES_MOST}: give "
            "ranges instead of numbers, or choose another column"
        )
    return attribute


def _find_columns(rows: Rows, column: str | None) -> tuple[int, int]:
    """Find the column of names and that of the attribute, below a header."""
    key = role_of(rows.head, _KEYS) or 0
    others = [name for i, name in enumerate(rows.head) if i != key]
    if column is None and len(others) == 1:
        return key, 1 - key
    listed = printable(", ".join(others))
    if column is None:
        raise UsageError(f"{rows.path.name} has {listed}: choose one with --group-by")
    if column not in others:
        raise UsageError(f"{rows.path.name} has no column {column!r}, but {listed}")
    return key, rows.head.index(column)


def _length_range(text: str) -> str:
    seconds = float(text) if is_number(text) else -1.0
    if not 0 <= seconds < float("inf"):
        raise UsageError(f"invalid length {text!r}: use seconds")
    above = sum(seconds >= edge for edge in _EDGES)
    if above == 0:
        return f"below {_EDGES[0]} s"
    if above == len(_EDGES):
        return f"{_EDGES[-1]} s and more"
    return f"{_EDGES[above - 1]} to {_EDGES[above]} s"
