"""Reads files by their content: arrays, columns of text, tables; errors name lines."""

from __future__ import annotations

import csv
import io
import mmap
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from monitor.errors import StoreError, UsageError
from monitor.files import read_arrays, watch_mapped
from monitor.phrases import plural
from monitor.safe_text import printable
from monitor.types import AnyArray, BoolArray, IntArray

_MOST = 1 << 28
"""Bytes that are simply held in memory."""


def scratch(shape: tuple[int, ...], dtype: DTypeLike = np.float64) -> AnyArray:
    """Make an array of zeros: in memory where small, else a map of a temporary file.

    The file is private (0600) and has no name (POSIX) or goes when the program ends: nothing is
    left behind, whatever happens.
    """
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    if size <= _MOST:
        return np.zeros(shape, dtype)
    try:
        with tempfile.TemporaryFile() as file:
            if hasattr(os, "posix_fallocate"):  # else a full disk kills the program at some write
                os.posix_fallocate(file.fileno(), 0, size)
            return np.memmap(file, dtype, "w+", shape=shape)  # keeps the file open
    except OSError as error:
        raise StoreError(
            f"no room for {size / 1e9:.1f} GB of scores: {error.strerror}; "
            "free some, or point TMPDIR elsewhere"
        ) from None


def release(*columns: AnyArray) -> None:
    """Give the pages of mapped arrays, or of slices of them, back to the system.

    They stay in its cache, but no longer count as memory of this process. What is not mapped, or
    is a private copy, stays as it is.
    """
    for part in columns:
        held = getattr(part, "_mmap", None)
        if held is None or not part.size or part.mode == "c" or not hasattr(held, "madvise"):  # type: ignore[attr-defined]
            continue
        first = part.ctypes.data - np.frombuffer(held, np.uint8).ctypes.data
        start = first // mmap.PAGESIZE * mmap.PAGESIZE
        end = (
            first
            + part.itemsize
            + sum((size - 1) * step for size, step in zip(part.shape, part.strides, strict=True))
        )
        held.madvise(mmap.MADV_DONTNEED, start, end - start)


# ----------------------------------------------------------------------------------------- columns
# Columns of a list, shape (n,), may be as long as the disk: they are gone through in parts.

PART = 1 << 20
"""Entries of a column that are taken at a time."""


def parts(*columns: AnyArray | None) -> Iterator[slice]:
    """Yield slices of columns of one length, whose pages are given back after each."""
    present = [column for column in columns if column is not None]
    for first in range(0, len(present[0]), PART):
        yield slice(first, min(first + PART, len(present[0])))
        release(*present)


def tally(numbers: IntArray, size: int, which: BoolArray | None = None) -> IntArray:
    """Count each number below size in a column, where `which` says so: shape (size,)."""
    counts = np.zeros(size, dtype=np.intp)
    for part in parts(numbers, which):
        numbers_chosen = numbers[part] if which is None else numbers[part][which[part]]
        counts += np.bincount(numbers_chosen, minlength=size)
    return counts


def renumber(numbers: IntArray, places: IntArray) -> IntArray:
    """Return the place of each number: a column again, of 32 bits."""
    column = scratch((len(numbers),), np.int32)
    for part in parts(numbers, column):
        column[part] = places[numbers[part]]
    return column


def count_true(which: BoolArray) -> int:
    """Count the true entries of a column."""
    return sum(int(np.count_nonzero(which[part])) for part in parts(which))


def take_where(
    which: Callable[[slice], BoolArray], count: int, *columns: AnyArray
) -> tuple[AnyArray, ...]:
    """Copy the `count` entries of columns that `which` selects of each part."""
    outputs = tuple(scratch((count,), column.dtype) for column in columns)
    done = 0
    for part in parts(*columns):
        chosen = which(part)
        last = done + int(np.count_nonzero(chosen))
        for into, column in zip(outputs, columns, strict=True):
            into[done:last] = column[part][chosen]
        release(*outputs)
        done = last
    return outputs


# ------------------------------------------------------------------------------------------- files

Progress: TypeAlias = Callable[[int, int], None]
"""Called with how much is done and how much there is."""

_CHUNK = 1 << 20
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069]")
_ASCII_CONTROL = bytes([*range(9), *range(14, 32), 127])
_MAGIC = {b"\x93NUMPY": "npy", b"PK\x03\x04": "npz", b"PK\x05\x06": "npz"}
_FOREIGN = {
    b"\x1f\x8b": "is compressed; unpack it",
    b"\x80": "is a pickle, which is never loaded; save it with numpy.save",
    b"\xff\xfe": "is UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "is UTF-16 text; save it as UTF-8",
}


@contextmanager
def _opening(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise StoreError(f"cannot open {path.name}: no such file; check the name") from None
    except IsADirectoryError:
        raise StoreError(f"{path.name} is a folder; give a file") from None
    except OSError as error:
        raise StoreError(f"cannot read {path.name}: {error.strerror or error}") from None


def kind_of(path: Path) -> str:
    """``"npy"``, ``"npz"`` or ``"text"``, by the first bytes."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise StoreError(f"{path.name} is a pipe or a device; save it to a file first")
    with _opening(path), path.open("rb") as file:
        head = file.read(4096)
    if not head:
        raise UsageError(f"{path.name} is empty")
    for magic, kind in _MAGIC.items():
        if head.startswith(magic):
            return kind
    for magic, words in _FOREIGN.items():
        if head.startswith(magic):
            raise StoreError(f"{path.name} {words}")
    suffix = path.suffix.lower()
    if suffix in (".npy", ".npz"):
        raise StoreError(
            f"{path.name} holds no NumPy array; if it is text, name it .csv, .tsv or .txt"
        )
    if b"\0" in head:
        raise StoreError(f"{path.name} is neither text nor a NumPy file")
    return "text"


def array_at(path: Path) -> AnyArray:
    """Map the array of a ``.npy``; nothing is unpickled."""
    try:
        try:
            array: AnyArray = np.asanyarray(np.load(path, mmap_mode="r", allow_pickle=False))
            watch_mapped(path)
            return array
        except ValueError:  # an array without any number cannot be mapped
            return np.asanyarray(np.load(path, allow_pickle=False))
    except Exception as error:  # the header is parsed as Python: anything may come of it
        raise _broken(path, error) from None


def arrays_at(path: Path, only: str | None = None) -> Mapping[str, AnyArray]:
    """Read the arrays of an ``.npz`` by name, or the one that is wanted."""
    try:
        with path.open("rb") as file:
            return read_arrays(file, only)
    except Exception as error:
        raise _broken(path, error) from None


def _broken(path: Path, error: BaseException) -> StoreError:
    words = " ".join(str(error).replace(str(path), path.name).split())
    if "allow_pickle" in words or "Object arrays" in words or "Python objects" in words:
        return StoreError(
            f"{path.name} holds Python objects, which are never loaded; save plain numbers or text"
        )
    return StoreError(
        f"{path.name} is damaged or cut short ({words[:100] or type(error).__name__}); "
        "write it again"
    )


def first_line(path: Path) -> str:
    """Read the first line that is not blank."""
    for lines in text_chunks(path):
        for line in lines:
            if line.strip():
                return line
    raise UsageError(f"{path.name} is empty")


def text_blocks(path: Path, progress: Progress | None = None) -> Iterator[str]:
    """Yield a text, a megabyte of whole lines at a time."""
    with _opening(path):
        size = path.stat().st_size
        try:
            with path.open(encoding="utf-8-sig") as file:
                done = 0
                while block := file.read(_CHUNK):
                    block += file.readline()
                    plain = block.isascii() and len(block) == len(
                        block.encode().translate(None, _ASCII_CONTROL)
                    )
                    if not plain and _CONTROL.search(block):
                        raise StoreError(f"{path.name} holds control characters: is it text?")
                    yield block
                    done += len(block)
                    if progress is not None:
                        progress(min(done, size), size)
        except UnicodeDecodeError:
            raise StoreError(f"{path.name} is not UTF-8 text; save it as UTF-8") from None


def text_chunks(path: Path, progress: Progress | None = None) -> Iterator[list[str]]:
    """Yield the lines of `text_blocks`."""
    for block in text_blocks(path, progress):
        yield io.StringIO(block).readlines()


def separator_of(line: str) -> str | None:
    r"""Find what separates columns: a tab, else a comma, else None for blanks.

    Example:
        >>> [separator_of(line) for line in ("a b\tc,d", "a b,c", "a b")]
        ['\t', ',', None]
    """
    return next((mark for mark in "\t," if mark in line), None)


def fields(line: str, separator: str | None) -> list[str]:
    """Split a line; quotes are for names that hold the separator.

    Example:
        >>> fields('u1, "Lee, Ann" ,0.5', ",")
        ['u1', 'Lee, Ann', '0.5']
    """
    if separator is None or '"' not in line:
        return [field.strip() for field in line.split(separator)]
    try:
        row = next(csv.reader([line], delimiter=separator, skipinitialspace=True))
    except csv.Error as error:
        raise UsageError(f"{line[:40].strip()!r} ... is no line of a table ({error})") from None
    return [field.strip() for field in row]


# ------------------------------------------------------------------------------------------ layout
# The first line says what the columns of a text of scores are. A header names its columns; without
# one a list is ``speaker trial score [target]``, as Kaldi and ZEBRA write it, and numbers alone are
# a table.

TRIAL = frozenset(
    {"trial", "trial_id", "test", "test_id", "utterance", "utt", "utt_id", "segment", "segmentid"}
)
SPEAKER = frozenset(
    {"speaker", "speaker_id", "spk", "model", "modelid", "model_id"}
    | {"enrolment", "enrollment", "enrolled", "enrol", "enroll", "enrol_id", "enroll_id"}
)
SCORE = frozenset({"score", "scores", "similarity", "llr"})
TARGET = frozenset({"target", "label", "labels", "key", "targettype", "true_speaker"})
WORDS = {
    **dict.fromkeys(("target", "tgt", "true", "1", "mated"), True),
    **dict.fromkeys(("nontarget", "non-target", "imp", "false", "0", "non-mated"), False),
}
"""What a trial list says of a pair."""
_DIGITS = 19


@dataclass(frozen=True)
class Layout:
    """Columns of a text.

    Of a list those of trial names, enrolled speakers, scores (a trial list has none), and of what
    says whether a pair is a target; of a table that of trial names and of who spoke, where it has
    them, and the speakers that all others are called after.
    """

    separator: str | None
    header: bool
    width: int
    trial: int | None = None
    speaker: int | None = None
    score: int | None = None
    target: int | None = None
    speakers: tuple[str, ...] = ()

    @property
    def list(self) -> bool:
        """A list of pairs, not a table of trials x speakers."""
        return self.speaker is not None


def natural(name: str) -> tuple[int, int, str]:
    """Return a key to sort names by: numbers by their size, then all others."""
    return (0, int(name), name) if name.isdecimal() and len(name) < _DIGITS else (1, 0, name)


def role_of(names: list[str], role: frozenset[str]) -> int | None:
    """Find the first column that is called so."""
    return next((i for i, name in enumerate(names) if name.lower() in role), None)


def layout_of(label: str, first: str) -> Layout:
    """Lay out a list or a table by its first line.

    Example:
        >>> layout_of("a", "1272 1272-0001 0.71").list
        True
        >>> layout_of("a", "trial,ann,bob").speakers
        ('ann', 'bob')
    """
    separator = separator_of(first)
    names = fields(first, separator)
    width = len(names)
    trial, speaker, score, target = (
        role_of(names, role) for role in (TRIAL, SPEAKER, SCORE, TARGET)
    )
    if trial is not None and speaker is not None and (score is not None or target is not None):
        return Layout(separator, True, width, trial, speaker, score, target)
    if trial is None and not names[0]:
        trial = 0  # of a table
    if trial is not None and speaker is None and score is None:
        speakers = tuple(name for i, name in enumerate(names) if i not in (trial, target))
        if "" not in speakers:
            return Layout(separator, True, width, trial, target=target, speakers=speakers)
    elif all(map(_is_number, names)):
        if not (width == 3 and names[0].isdecimal() and names[1].isdecimal()):
            return Layout(separator, False, width)
    elif separator != "," and width in (3, 4) and trial is None and speaker is None:
        if names[2].lower() in WORDS and not _is_number(names[2]):
            return Layout(separator, False, width, 1, 0, None, 2)
        return Layout(separator, False, width, 1, 0, 2, 3 if width == 4 else None)
    raise UsageError(
        f"{label}: its first line does not say which column is which: write a header above it, "
        "'trial speaker score' (or target) for a list, 'trial' and every speaker for a table, "
        "separated by tabs, commas or blanks"
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# ------------------------------------------------------------------------------------------- table
# Reads tables of scores: one row a trial, one column a speaker.


@dataclass(frozen=True)
class Table:
    """A table of scores (T, N), names of its rows and their true speakers, where it has them."""

    scores: AnyArray
    trials: tuple[str, ...]
    target: tuple[str, ...]


def read_table(path: Path, layout: Layout, progress: Progress | None = None) -> Table:
    """Read a table row by row: the text is never held whole."""
    columns = [i for i in range(layout.width) if i not in (layout.trial, layout.target)]
    if len(columns) < 2:
        raise UsageError(
            f"{path.name} has {plural(len(columns), 'column')} of scores; a table has one "
            f"for each speaker, and a comparison needs at least two"
        )
    scores = scratch((count_lines(path), len(columns)))
    names: dict[int, list[str]] = {i: [] for i in (layout.trial, layout.target) if i is not None}
    done, begin, header = 0, 0, layout.header
    for lines in text_chunks(path, progress):
        for number, row in rows_of(lines, layout, path.name, begin):
            if header:
                header = False
                continue
            try:
                scores[done] = [float(row[i]) for i in columns]
            except ValueError as error:
                raise UsageError(
                    f"{path.name} line {number}: a score is no number ({error}); decimals follow "
                    "a point, and a table has one row a trial and one score a speaker"
                ) from None
            for column_index, cells in names.items():
                cells.append(row[column_index])
            done += 1
        begin += len(lines)
    if not done:
        raise UsageError(f"{path.name} has no line of data")
    trials, target = (() if i is None else tuple(names[i]) for i in (layout.trial, layout.target))
    return Table(scores[:done], trials, target)


def rows_of(
    lines: list[str], layout: Layout, label: str, begin: int
) -> Iterator[tuple[int, list[str]]]:
    """Number and columns of every line that is not blank, after so many others."""
    for number, line in enumerate(lines, begin + 1):
        if line.strip():
            row = fields(line, layout.separator)
            if len(row) != layout.width:
                raise UsageError(
                    f"{label} line {number}: has {plural(len(row), 'column')} and not "
                    f"{layout.width}"
                )
            yield number, row


def count_lines(path: Path) -> int:
    """At least as many as there are rows."""
    count = 1
    with path.open("rb") as file:
        while block := file.read(1 << 24):
            count += block.count(b"\n") + block.count(b"\r")
    return count


# -------------------------------------------------------------------------------------- attributes
# Reads a file that gives every speaker an attribute: gender, accent, age group.

_KEYS = SPEAKER | TRIAL | {"id", "name", "reader"}
_ATTRIBUTES_MOST = 20


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


def read_attribute(
    path: Path, column: str | None = None, of: Callable[[str], str] = str
) -> Attribute:
    r"""Read ``speaker attribute`` lines (Kaldi's spk2gender), or a column of a table.

    The column need not be named where there is but one. Groups are `of` what stands there.
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
    groups: dict[str, str] = {}
    for number, line in enumerate(lines[header:], 1 + header):
        row = fields(line, separator)
        if len(row) != len(head) or len(row) < 2:
            raise UsageError(
                f"{path.name} line {number}: has {plural(len(row), 'column')}, not {len(head)}"
            )
        try:
            group = of(row[value]) if row[value] else ""
        except UsageError as error:
            raise UsageError(f"{path.name} line {number}: {error}") from None
        if group and groups.setdefault(row[key], group) != group:
            raise UsageError(
                f"{path.name}: {row[key]} is {groups[row[key]]} on one line and {group} on "
                "another; "
                "keep one"
            )
    attribute = Attribute(path.name, head[value] if header else "", groups)
    if len(attribute.values) > _ATTRIBUTES_MOST:
        raise UsageError(
            f"{path.name} has {len(attribute.values)} groups, more than {_ATTRIBUTES_MOST}: give "
            "ranges "
            "instead of numbers, or choose another column"
        )
    return attribute


_LENGTHS = frozenset({"seconds", "length", "duration"})
_EDGES = (1, 2, 5, 10, 20, 40)


def read_conditions(path: Path) -> tuple[Attribute, ...]:
    r"""Read the conditions of trials: a trial and its condition a line, or a table with a header.

    Every column beside the trial's is a condition; one called seconds, length or duration falls
    into ranges.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "conditions.csv")
        ...     _ = path.write_text("trial,line,seconds\nu1,mobile,4.2\nu2,landline,61\n")
        ...     line, seconds = read_conditions(path)
        >>> line.of, seconds.of
        ({'u1': 'mobile', 'u2': 'landline'}, {'u1': '2 to 5 s', 'u2': '40 s and more'})
    """
    if kind_of(path) != "text":
        raise UsageError(f"{path.name}: conditions are text, a trial and its condition a line")
    first = first_line(path)
    head = fields(first, separator_of(first))
    if len(head) < 2:
        raise UsageError(f"{path.name}: give a trial and its condition a line")
    if len(head) == 2 and head[0].lower() not in _KEYS:
        return (replace(read_attribute(path), name="condition"),)
    key = role_of(head, frozenset(_KEYS)) or 0
    names = [name for i, name in enumerate(head) if i != key]
    if len(set(names)) < len(names):
        raise UsageError(f"{path.name}: two columns have one name")
    return tuple(
        read_attribute(path, name, _length_range if name.lower() in _LENGTHS else str)
        for name in names
    )


def _length_range(text: str) -> str:
    try:
        seconds = float(text)
    except ValueError:
        raise UsageError(f"{text!r} is no length in seconds") from None
    if not 0 <= seconds < float("inf"):
        raise UsageError(f"{text!r} is no length in seconds")
    above = sum(seconds >= edge for edge in _EDGES)
    if above == 0:
        return f"below {_EDGES[0]} s"
    if above == len(_EDGES):
        return f"{_EDGES[-1]} s and more"
    return f"{_EDGES[above - 1]} to {_EDGES[above]} s"


def _columns(path: Path, head: list[str], column: str | None) -> tuple[int, int]:
    """Find the column of speaker names and that of the attribute."""
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
