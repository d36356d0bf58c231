"""Reads files of scores, labels and groups: NumPy arrays, and rows of text."""

from __future__ import annotations

import csv
import re
import unicodedata
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import numpy as np

from monitor.contents import HEAD_BYTES, describe_foreign
from monitor.errors import StoreError, UsageError
from monitor.lab.evaluation.memory import count_lines, scratch
from monitor.npz import read_arrays
from monitor.phrases import plural
from monitor.safe_text import find_twin, is_empty_cell, is_number, printable
from monitor.types import AnyArray, FloatArray

_FOREIGN = {
    b"\x80": "is a pickle, which is never loaded; save it with numpy.save",
    b"\xff\xfe": "is UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "is UTF-16 text; save it as UTF-8",
}


@contextmanager
def opening(path: Path) -> Iterator[None]:
    """Convert errors of the system to a StoreError that names the file."""
    try:
        yield
    except FileNotFoundError:
        raise StoreError(f"cannot open {path.name}: no such file. Check the name") from None
    except IsADirectoryError:
        raise StoreError(f"{path.name} is a folder; give a file") from None
    except OSError as error:
        raise StoreError(f"cannot read {path.name}: {error.strerror or error}") from None


def kind_of(path: Path) -> str:
    """Return ``"npy"``, ``"npz"``, ``"parquet"`` or ``"text"``, by the first bytes."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise StoreError(f"{path.name} is a pipe or a device; save it to a file first")
    with opening(path), path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if not head:
        raise UsageError(f"{path.name} is empty")
    if head.startswith(b"\x93NUMPY"):
        return "npy"
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")) and _holds_arrays(path):
        return "npz"
    if reason := describe_foreign(head):
        raise StoreError(f"{path.name} {reason}")
    for magic, words in _FOREIGN.items():
        if head.startswith(magic):
            raise StoreError(f"{path.name} {words}")
    suffix = path.suffix.lower()
    if suffix in (".npy", ".npz"):
        raise StoreError(
            f"{path.name} contains no NumPy array. If it is text, name it .csv, .tsv or .txt"
        )
    if b"\0" in head:
        raise StoreError(f"{path.name} is neither text nor a NumPy file")
    return "text"


def _holds_arrays(path: Path) -> bool:
    """Return whether an archive may be an ``.npz``: a damaged one may, a spreadsheet may not."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (OSError, ValueError, zipfile.BadZipFile):
        return path.suffix.lower() == ".npz"
    return not names or any(name.endswith(".npy") for name in names)


def array_at(path: Path) -> AnyArray:
    """Map the array of a ``.npy``; nothing is unpickled."""
    try:
        try:
            return np.asanyarray(np.load(path, mmap_mode="r", allow_pickle=False))
        except ValueError:  # an empty array cannot be mapped
            return np.asanyarray(np.load(path, allow_pickle=False))
    except Exception as error:  # the header is parsed as Python, which may raise any error
        raise _broken(path, error) from None


def arrays_at(path: Path, only: str | None = None) -> Mapping[str, AnyArray]:
    """Read the arrays of an ``.npz`` by name, all or ``only`` one."""
    try:
        with path.open("rb") as file:
            return read_arrays(file, only)
    except Exception as error:
        raise _broken(path, error) from None


def _broken(path: Path, error: BaseException) -> StoreError:
    words = printable(" ".join(str(error).replace(str(path), path.name).split()))
    if "allow_pickle" in words or "Object arrays" in words or "Python objects" in words:
        return StoreError(
            f"{path.name} contains Python objects, which are never loaded: save plain numbers or "
            "text"
        )
    return StoreError(
        f"{path.name} is damaged or cut short ({words[:100] or type(error).__name__}); "
        "write it again"
    )


Progress: TypeAlias = Callable[[int, int], None]
"""Called with the amount done and the total amount."""
_CHUNK = 1 << 20
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069]")
_ASCII_CONTROL = bytes([*range(9), *range(14, 32), 127])
_DECIMAL_COMMA = re.compile(r"(?<![^\s;])-?\d+,\d+(?![^\s;])", re.ASCII)


@dataclass(frozen=True)
class Rows:
    """Rows of a text, with or without a header."""

    path: Path
    # first, number: first line that is not blank, and its number
    first: str
    number: int
    separator: str | None  # of columns: a tab, a comma, or None for blanks
    head: list[str]  # columns of the first line

    @classmethod
    def from_file(cls, path: Path, *, blanks: bool = False) -> Rows:
        """Find the separator in the first line of a text; with `blanks`, it is blanks.

        Raises UsageError if the file is empty or not text, or the first line is not a table's.
        """
        if kind_of(path) != "text":
            raise UsageError(f"{path.name} is not text: save it as CSV")
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
        """Yield number and columns of each line below a header, without blank lines.

        Raises UsageError if a row is not as wide as the first, or `width`; `shape` describes a row.
        """
        separator, width = self.separator, len(self.head) if width is None else width
        for number, line in islice(text_lines(self.path, progress), header, None):
            row = split_line(line, separator)
            if len(row) != width:
                text = f"has {plural(len(row), 'column')}, not {width}"
                if shape:
                    text = f"{printable(' '.join(row))[:80]!r} is not {shape}"
                elif len(row) == width + 1 and not row[-1]:
                    text += ": remove the separator at the end of the line"
                raise self.refuse(number, text)
            yield number, row

    def read_matrix(
        self, columns: Sequence[int], names: Mapping[str, int], hint: str, *, header: bool,
        called: str = "", what: str = "score", progress: Progress | None = None,
    ) -> tuple[FloatArray, dict[str, tuple[str, ...]]]:  # fmt: skip
        """Read numbers, shape (rows, columns), and columns of names by role, as a stream.

        `called` is the role of the names of number columns in the header. Raises UsageError if a
        cell is not a number, with a hint, or if a name is invalid.
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
            raise UsageError(f"{label} has no data")
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
        """True if numbers of the first line have decimal commas."""
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
                        raise StoreError(f"{path.name} contains control characters: is it text?")
                    lines = unicodedata.normalize("NFC", block).removesuffix("\n").split("\n")
                    for number, line in enumerate(lines, before + 1):
                        if line.strip():
                            yield number, line
                    before, done = before + len(lines), done + len(block)
                    if progress is not None:
                        progress(min(done, size), size)
        except UnicodeDecodeError:
            raise StoreError(f"{path.name} is not UTF-8 text; save it as UTF-8") from None


def split_line(line: str, separator: str | None) -> list[str]:
    """Split a line; names that contain the separator are quoted.

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
        raise UsageError(f"{line[:40].strip()!r} ... is not a line of a table ({error})") from None
    return [cell.strip() for cell in row]


def _find_fault(line: str) -> str:
    """Describe why a first line is not a table's, and the remedy."""
    if line.lstrip().startswith("#"):
        return "is a comment (#): remove it, or write the names of the columns without #"
    if ";" not in line or len(line.split()) > 1:
        return ""
    if _DECIMAL_COMMA.search(line):
        return "has decimal commas and semicolons: use decimal points, and commas between columns"
    return "" if "," in line else "has semicolons between columns: use commas, tabs or blanks"


def check_names(label: str, names: Mapping[str, Collection[str]]) -> None:
    """Refuse (UsageError) empty cells, and a name written in two ways; names are by role."""
    for role, of_role in names.items():
        if empty := next((name for name in of_role if name and is_empty_cell(name)), None):
            raise UsageError(
                f"{label} has a {role} called {empty!r}, which usually marks an empty cell: "
                "write the name, or remove the line"
            )
        decimals = [name for name in of_role if name.endswith(".0")]
        check_spelling(label, role, of_role, of_role if role == "speaker" else decimals)


def check_spelling(label: str, role: str, names: Collection[str], strange: Collection[str]) -> None:
    """Refuse (UsageError) a strange name that other names have in another spelling."""
    if twin := find_twin(names, strange):
        raise UsageError(f"{label}: {role} {twin}")


def read_map(path: Path) -> dict[str, str]:
    """Read lines of a name and a word, such as ``utt2spk``."""
    words_by_name: dict[str, str] = {}
    rows = Rows.from_file(path, blanks=True)
    for number, (name, word) in rows.read(width=2, shape="a name and a word"):
        if words_by_name.setdefault(name, word) != word:
            raise rows.refuse(number, f"{name} is listed twice")
    return words_by_name
