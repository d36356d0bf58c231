"""Reads rows of a text: the one reader of labels, lists, tables, attributes and maps."""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from monitor.errors import StoreError, UsageError
from monitor.lab.evaluation.input.files import opening
from monitor.lab.evaluation.memory import scratch
from monitor.phrases import plural
from monitor.safe_text import describe_twin, find_decimal_twin, is_empty_cell, printable
from monitor.types import FloatArray

Progress: TypeAlias = Callable[[int, int], None]
"""Called with how much is done and how much there is."""

_CHUNK = 1 << 20
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069]")
_ASCII_CONTROL = bytes([*range(9), *range(14, 32), 127])
_DECIMAL_COMMA = re.compile(r"(?<![^\s;])-?\d+,\d+(?![^\s;])", re.ASCII)


@dataclass(frozen=True)
class Rows:
    """Rows of a text whose first line that is not blank is a row too, or a header.

    Attributes:
        first: that line, and `number` which one it is.
        separator: of columns: a tab, otherwise a comma, otherwise None for blanks.
        head: the columns of that line.
    """

    path: Path
    first: str
    number: int
    separator: str | None
    head: list[str]

    @classmethod
    def at(cls, path: Path, *, blanks: bool = False) -> Rows:
        """Open a text by its first line; with `blanks` no name holds one, and commas are letters.

        Raises:
            UsageError: it is empty, or its first line is not one of a table.
        """
        for number, line in text_lines(path):
            if reason := _find_fault(line):
                raise UsageError(f"{path.name} line {number}: {reason}")
            separator = None if blanks else next((mark for mark in "\t," if mark in line), None)
            return cls(path, line, number, separator, split_line(line, separator))
        raise UsageError(f"{path.name} is empty")

    def read(
        self,
        *,
        header: bool = False,
        width: int | None = None,
        shape: str = "",
        progress: Progress | None = None,
    ) -> Iterator[tuple[int, list[str]]]:
        """Yield the number and the columns of each line that is not blank, below a header.

        Rows are as wide as the first, or `width`; UsageError otherwise, which calls what a row
        should be `shape`.
        """
        separator, width = self.separator, len(self.head) if width is None else width
        for number, line in islice(text_lines(self.path, progress), header, None):
            row = split_line(line, separator)
            if len(row) != width:
                text = f"{printable(' '.join(row))[:80]!r} is not {shape}" if shape else ""
                raise self.refuse(number, text or _describe_width(row, width))
            yield number, row

    def read_matrix(
        self, columns: Sequence[int], names: Mapping[str, int], hint: str, *, header: bool,
        called: str = "", what: str = "score", progress: Progress | None = None,
    ) -> tuple[FloatArray, dict[str, tuple[str, ...]]]:  # fmt: skip
        """Read numbers, shape (rows, columns), and names: their columns by role.

        The names that a header gives to the numbers have a role too, `called`. The text is never
        held whole.

        Raises:
            UsageError: a cell is not a number, what it should be and a hint; a name makes no sense.
        """
        label = self.path.name
        numbers, done = scratch((count_lines(self.path), len(columns))), 0
        texts: dict[str, list[str]] = {role: [] for role in names}
        for number, row in self.read(header=header, progress=progress):
            cells = [row[i] for i in columns]
            try:
                numbers[done] = list(map(float, cells))
            except ValueError:
                raise self.refuse_number(number, cells, what, hint) from None
            for role, i in names.items():
                texts[role].append(row[i])
            done += 1
        if not done:
            raise UsageError(f"{label} has no line of data")
        every = {role: set(of_role) for role, of_role in texts.items()}
        if called:
            every[called] = {*every.get(called, ()), *(self.head[i] for i in columns)}
        check_names(label, every)
        return numbers[:done], {role: tuple(of_role) for role, of_role in texts.items()}

    def refuse(self, number: int, reason: str) -> UsageError:
        """Make the error of a line."""
        return UsageError(f"{self.path.name} line {number}: {reason}")

    @property
    def has_decimal_commas(self) -> bool:
        """Return True if numbers of the first line have a comma in place of a point."""
        return _DECIMAL_COMMA.search(self.first) is not None

    def refuse_number(self, number: int, cells: Sequence[str], what: str, hint: str) -> UsageError:
        """Make the error of the first of these cells that is not a number."""
        cell = next(cell for cell in cells if not is_number(cell))
        comma = ": use a decimal point" if _DECIMAL_COMMA.fullmatch(cell.strip()) else ""
        fault = f"the {what} {printable(cell)[:40]!r} is not a number"
        return self.refuse(number, f"{fault}{comma}; {hint}")


def text_lines(path: Path, progress: Progress | None = None) -> Iterator[tuple[int, str]]:
    """Yield the number and text of each line that is not blank, in NFC, as names are compared."""
    before = done = 0
    with opening(path):
        size = path.stat().st_size
        try:
            with path.open(encoding="utf-8-sig") as file:
                while block := file.read(_CHUNK):
                    block += file.readline()
                    plain = block.isascii() and len(block) == len(
                        block.encode().translate(None, _ASCII_CONTROL)
                    )
                    if not plain and _CONTROL.search(block):
                        raise StoreError(f"{path.name} holds control characters: is it text?")
                    lines = unicodedata.normalize("NFC", block).removesuffix("\n").split("\n")
                    for number, line in enumerate(lines, before + 1):
                        if line.strip():
                            yield number, line
                    before, done = before + len(lines), done + len(block)
                    if progress is not None:
                        progress(min(done, size), size)
        except UnicodeDecodeError:
            raise StoreError(f"{path.name} is not UTF-8 text; save it as UTF-8") from None


def count_lines(path: Path) -> int:
    """Count lines, a last one without an end too."""
    count, end = 0, b"\n"
    with path.open("rb") as file:
        while block := file.read(_CHUNK):
            count += block.count(b"\n") + block.count(b"\r") - block.count(b"\r\n")
            end = block[-1:]
    return count + (end not in b"\r\n")


def split_line(line: str, separator: str | None) -> list[str]:
    """Split a line; quotes are for names that hold the separator.

    Example:
        >>> split_line('u1, "Lee, Ann" ,0.5', ",")
        ['u1', 'Lee, Ann', '0.5']
    """
    if separator is None:
        return line.split()
    if '"' not in line:
        return [cell.strip() for cell in line.split(separator)]
    try:
        row = next(csv.reader([line], delimiter=separator, skipinitialspace=True))
    except csv.Error as error:
        raise UsageError(f"{line[:40].strip()!r} ... is no line of a table ({error})") from None
    return [cell.strip() for cell in row]


def _find_fault(line: str) -> str:
    """Return what keeps the first line from being one of a table, and what to do."""
    if line.lstrip().startswith("#"):
        return "is a comment (#): remove it, or write the names of the columns without #"
    if ";" not in line or len(line.split()) > 1:
        return ""
    if _DECIMAL_COMMA.search(line):
        return "has decimal commas and semicolons: use decimal points, and commas between columns"
    return "" if "," in line else "has semicolons between columns: use commas, tabs or blanks"


def _describe_width(row: Sequence[str], width: int) -> str:
    """Describe a row that has not this many columns."""
    text = f"has {plural(len(row), 'column')} and not {width}"
    is_open = len(row) == width + 1 and not row[-1]
    return f"{text}: remove the separator at the end of the line" if is_open else text


def is_number(text: str) -> bool:
    """Return whether a cell is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def check_names(label: str, names: Mapping[str, Collection[str]]) -> None:
    """Refuse (UsageError) cells without a name, and one name that is written in two ways.

    Names are by their role: of speakers, of trials.
    """
    for role, of_role in names.items():
        if empty := next((name for name in of_role if name and is_empty_cell(name)), None):
            raise UsageError(
                f"a {role} of {label} is called {empty!r}, as empty cells are written: write its "
                "name, or remove the line"
            )
        if twin := find_decimal_twin(of_role):
            raise UsageError(f"{label}: {describe_twin(twin, role)}")
