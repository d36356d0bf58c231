"""Reads a file that gives every speaker an attribute: gender, accent, age group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from monitor.errors import UsageError
from monitor.evaluation.input.files import fields, kind_of, separator_of, text_chunks
from monitor.evaluation.input.layout import SPEAKER, TRIAL, role_of
from monitor.phrases import plural
from monitor.safe_text import printable

__all__ = ["Attribute", "read_attribute"]

_KEYS = SPEAKER | TRIAL | {"id", "name", "reader"}
_MOST = 20


@dataclass(frozen=True)
class Attribute:
    """What is said of speakers.

    Attributes:
        label: how messages call the file.
        name: of the attribute, where a header has one.
        of: by name of the speaker (or of a trial, where nobody names its speaker).
    """

    label: str
    name: str
    of: Mapping[str, str]

    @property
    def values(self) -> tuple[str, ...]:
        """The groups, in the order of their names."""
        return tuple(sorted(set(self.of.values())))


def read_attribute(path: Path, column: str | None = None) -> Attribute:
    r"""Read ``speaker attribute`` lines (Kaldi's spk2gender), or a table with a header.

    Args:
        path: the file; blanks, commas or tabs between its columns.
        column: of a table, which one; not needed where there is one beside the speaker's.

    Raises:
        UsageError: no such column, several to choose from, a speaker with two values, or more
            than 20 groups.
        StoreError: it cannot be read.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "spk2gender")
        ...     _ = path.write_text("ann f\nbob m\n")
        ...     found = read_attribute(path)
        >>> found.of, found.values
        ({'ann': 'f', 'bob': 'm'}, ('f', 'm'))
    """
    if kind_of(path) != "text":
        raise UsageError(f"{path.name}: groups are text, a speaker and its group a line")
    lines = [line for chunk in text_chunks(path) for line in chunk if line.strip()]
    if not lines:
        raise UsageError(f"{path.name} is empty")
    separator = separator_of(lines[0])
    head = fields(lines[0], separator)
    header = column is not None or len(head) > 2 or head[0].lower() in _KEYS
    key, value = _columns(path, head, column) if header else (0, 1)
    found: dict[str, str] = {}
    for number, line in enumerate(lines[header:], 1 + header):
        row = fields(line, separator)
        if len(row) != len(head) or len(row) < 2:
            raise UsageError(
                f"{path.name} line {number}: has {plural(len(row), 'column')}, not {len(head)}"
            )
        if row[value] and found.setdefault(row[key], row[value]) != row[value]:
            raise UsageError(
                f"{path.name}: {row[key]} is {found[row[key]]} on one line and {row[value]} on "
                "another; keep one"
            )
    made = Attribute(path.name, head[value] if header else "", found)
    if len(made.values) > _MOST:
        raise UsageError(
            f"{path.name} has {len(made.values)} groups, more than {_MOST}: give ranges instead "
            "of numbers, or choose another column"
        )
    return made


def _columns(path: Path, head: list[str], column: str | None) -> tuple[int, int]:
    """Which column names the speaker, and which is the attribute."""
    key = role_of(head, frozenset(_KEYS))
    key = 0 if key is None else key
    others = [name for i, name in enumerate(head) if i != key]
    if column is None and len(others) == 1:
        return key, 1 - key
    if column is None:
        raise UsageError(
            f"{path.name} has {printable(', '.join(others))}: choose one with --group-by"
        )
    if column not in others:
        raise UsageError(
            f"{path.name} has no column {column!r}, but {printable(', '.join(others))}"
        )
    return key, head.index(column)
