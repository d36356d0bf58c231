"""Rows of a data set, each with a recording, its speaker and further columns about the speaker."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import orjson

from monitor.errors import CorpusError
from monitor.phrases import plural
from monitor.safe_text import escaped, is_empty_cell, is_printable, printable, spelled
from monitor.virtual_files import Readable

MOST_ROWS = 10_000_000  # a table with more rows is probably a mistake
MOST_PROBLEMS = 1000
_MOST_UNCLEAR = 10
_LONGEST = 40  # characters of a speaker's attribute; longer cells are read texts
_MOST_LISTED = 20  # columns in a message


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of a data set, chosen by the user; None for those of the format."""

    speaker: str | None = None
    session: str | None = None
    audio: str | None = None

    def __bool__(self) -> bool:
        return any((self.speaker, self.session, self.audio))


AS_STATED = Columns()  # no chosen columns, so that the format determines them


@dataclass(frozen=True, slots=True)
class Row:
    """A recording of one speaker; ``where`` begins messages about it."""

    speaker: str
    session: str
    path: Readable
    where: str = ""


class Problems:
    """Printable lines about unusable parts: the first thousand, and the number of the others."""

    def __init__(self) -> None:
        self._count = 0
        self._lines: list[str] = []

    def append(self, text: str) -> None:
        """Add a line; after `MOST_PROBLEMS` lines, only count it."""
        self._count += 1
        if self._count <= MOST_PROBLEMS:
            self._lines.append(escaped(text))

    def __iter__(self) -> Iterator[str]:
        yield from self._lines
        if self._count > MOST_PROBLEMS:
            yield f"and {plural(self._count - MOST_PROBLEMS, 'more problem')}"


@dataclass(slots=True)
class Listing:
    """Rows of a data set, their problems, and the speakers' attributes.

    Problems and attributes are complete once the rows have been read.
    """

    rows: Iterable[Row] = ()
    problems: Problems = field(default_factory=Problems)
    identified_by: str = ""
    attributes: SpeakerCells = field(default_factory=lambda: SpeakerCells())


class SpeakerCells:
    """Collector of the speakers' attributes in a table's columns."""

    def __init__(self) -> None:
        self._columns: dict[str, dict[str, str]] = {}
        self._ambiguous: dict[str, set[str]] = {}
        self._unprintable: set[str] = set()

    def add(self, speaker: str, cells: Mapping[str, str]) -> None:
        """Add the cells of a row, by column; empty cells are ignored."""
        speaker = spelled(speaker)  # as in a corpus
        for name, value in cells.items():
            if is_empty_cell(value) or name in self._unprintable:
                continue
            if len(value) > _LONGEST or not is_printable(f"{name} {value}"):
                self._unprintable.add(name)
                continue
            if self._columns.setdefault(name, {}).setdefault(speaker, value) != value:
                self._ambiguous.setdefault(name, set()).add(speaker)

    def collect(self) -> dict[str, dict[str, str]]:
        """Return columns with one value for nearly every speaker, by column and speaker.

        Speakers with two values in a column are left out. A column with more than one such speaker
        in ten does not describe speakers and is dropped.
        """
        return {
            name: {speaker: value for speaker, value in values.items() if speaker not in unclear}
            for name, values in self._columns.items()
            if name not in self._unprintable
            and _MOST_UNCLEAR * len(unclear := self._ambiguous.get(name, set())) <= len(values)
        }


def text_of(value: object) -> str | None:
    """Return the text of a cell that is a text or a whole number; None for anything else.

    Example:
        >>> [text_of(value) for value in ("ann", 1272, 1.5, None, True)]
        ['ann', '1272', None, None, None]
    """
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def cells_of(values: Mapping[str, object], without: Collection[str | None]) -> dict[str, str]:
    """Return the texts and whole numbers of a row, except in the columns ``without``."""
    texts = ((name, text_of(value)) for name, value in values.items() if name not in without)
    return {name: text.strip() for name, text in texts if text}


def refuse_column(table: str, columns: Iterable[str], name: str | None, option: str) -> NoReturn:
    """Refuse a missing or unnamed column, and list the columns of the data set."""
    names = [printable(column)[:_LONGEST] for column in columns]
    more = f" and {len(names) - _MOST_LISTED} more" if names[_MOST_LISTED:] else ""
    if name is None:
        problem = f"{table} has no known column for the {option}"
    else:
        problem = f"{table} has no column {printable(name)!r} for the {option}"
    if not names:
        raise CorpusError(f"{problem}, nor any other column: add one")
    listed = ", ".join(names[:_MOST_LISTED]) + more
    raise CorpusError(f"{problem}: choose one of {listed} with --columns {option}=NAME")


def read_json_rows(
    lines: Iterable[bytes], name: str, problems: Problems
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each object of a file of JSON lines, after the prefix for messages about it."""
    for number, line in enumerate(lines, 1):
        if number > MOST_ROWS:
            raise CorpusError(f"{name} has more than {MOST_ROWS} lines; split it")
        if not line.strip():
            continue
        where = f"{name} line {number}: "
        try:
            value = orjson.loads(line)
        except ValueError:
            problems.append(f"{where}is not JSON")
            continue
        if isinstance(value, dict):
            yield where, value
        else:
            problems.append(f"{where}is not a JSON object")
