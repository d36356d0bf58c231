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
from itertools import islice, repeat
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from monitor.errors import StoreError, UsageError
from monitor.files import read_arrays, watch_mapped
from monitor.phrases import plural
from monitor.safe_text import printable
from monitor.types import AnyArray, BoolArray, FloatArray, IntArray

_MOST = 1 << 28
"""Bytes that are simply held in memory."""


def scratch(shape: tuple[int, ...], dtype: DTypeLike = np.float64) -> AnyArray:
    """An array of zeros to fill: in memory where small, else a map of a temporary file.

    The file is private (0600) and has no name (POSIX) or goes when the program ends: nothing is
    left behind, whatever happens.

    Raises:
        StoreError: there is no room for it.
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
            + sum((many - 1) * step for many, step in zip(part.shape, part.strides, strict=True))
        )
        held.madvise(mmap.MADV_DONTNEED, start, end - start)


# ----------------------------------------------------------------------------------------- columns
# Columns of a list, shape (n,), may be as long as the disk: they are gone through in parts.

PART = 1 << 20
"""Entries of a column that are taken at a time."""


def parts(*columns: AnyArray | None) -> Iterator[slice]:
    """Slices of columns of one length, whose pages are given back after each."""
    given = [column for column in columns if column is not None]
    for first in range(0, len(given[0]), PART):
        yield slice(first, min(first + PART, len(given[0])))
        release(*given)


def tally(numbers: IntArray, size: int, which: BoolArray | None = None) -> IntArray:
    """How often each number below size stands in a column, where `which` says so: shape (size,).

    Example:
        >>> tally(np.array([0, 2, 2]), 4).tolist()
        [1, 0, 2, 0]
    """
    counts = np.zeros(size, dtype=np.intp)
    for part in parts(numbers, which):
        some = numbers[part] if which is None else numbers[part][which[part]]
        counts += np.bincount(some, minlength=size)
    return counts


def renumbered(numbers: IntArray, places: IntArray) -> IntArray:
    """The place of each number: a column again, of 32 bits."""
    made = scratch((len(numbers),), np.int32)
    for part in parts(numbers, made):
        made[part] = places[numbers[part]]
    return made


def many(which: BoolArray) -> int:
    """How many entries of a column are true."""
    return sum(int(np.count_nonzero(which[part])) for part in parts(which))


def taken(
    which: Callable[[slice], BoolArray], count: int, *columns: AnyArray
) -> tuple[AnyArray, ...]:
    """The `count` entries of columns that `which` says of each part."""
    made = tuple(scratch((count,), column.dtype) for column in columns)
    done = 0
    for part in parts(*columns):
        chosen = which(part)
        last = done + int(np.count_nonzero(chosen))
        for into, column in zip(made, columns, strict=True):
            into[done:last] = column[part][chosen]
        release(*made)
        done = last
    return made


# ------------------------------------------------------------------------------------------- files

Progress: TypeAlias = Callable[[int, int], None]
"""Called with how much is done and how much there is."""

_CHUNK = 1 << 20
_DECIMAL = re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069]")
_ASCII_CONTROL = bytes([*range(9), *range(14, 32), 127])
_QUOTED = re.compile(r'"([^"]*)"|(\S+)')
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
    """``"npy"``, ``"npz"`` or ``"text"``, by the first bytes.

    Raises:
        StoreError: it cannot be opened, or is none of these, or its name says otherwise.
        UsageError: it is empty.
    """
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
    """The array of a ``.npy``, mapped and not read; nothing is unpickled.

    Raises:
        StoreError: it is truncated, damaged or pickled.
    """
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
    """The arrays of an ``.npz`` by name, or the one that is wanted.

    Raises:
        StoreError: it is truncated, damaged, or holds pickled objects.
    """
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


def first_lines(path: Path) -> tuple[str, str]:
    """The first two lines that are not blank; the second is empty where there is but one.

    Raises:
        UsageError: there is none.
        StoreError: as `text_chunks`.
    """
    lines = (line for chunk in text_chunks(path) for line in chunk if line.strip())
    first, second = [*islice(lines, 2), "", ""][:2]
    if not first:
        raise UsageError(f"{path.name} is empty")
    return first, second


def text_blocks(path: Path, progress: Progress | None = None) -> Iterator[str]:
    """A text, a megabyte of whole lines at a time.

    Raises:
        StoreError: it cannot be read, is not UTF-8, or holds what steers a terminal.
    """
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
    """The lines of `text_blocks`."""
    for block in text_blocks(path, progress):
        yield io.StringIO(block).readlines()


def separator_of(line: str) -> str | None:
    r"""What separates the columns of this line: semicolon, tab, comma, or None for any blanks.

    A comma within a number is its decimal point where something else separates columns.

    Example:
        >>> [separator_of(line) for line in ("u1;0,5;0,7", "u1,0.5,0.7", "u1 0,5 0,7")]
        [';', ',', None]
        >>> separator_of("trial\tLee, Ann\tbob")
        '\t'
    """
    bare = re.sub(r'"[^"]*"', "q", line.strip())
    commas = bare.count(",")
    blanks = len(re.sub(r"\s*;\s*", ";", bare).split()) - 1
    if bare.count(";") >= max(blanks, 1) and _apart(bare, ";", commas):
        return ";"
    if "\t" in bare and _apart(bare, "\t", commas):
        return "\t"
    decimals = all(_DECIMAL.fullmatch(part) for part in bare.split() if "," in part)
    return "," if commas and not (blanks and decimals) else None


def _apart(line: str, mark: str, commas: int) -> bool:
    """Whether the commas of a line are decimal points, or fewer than the marks."""
    parts = [part.strip() for part in line.split(mark)]
    decimals = all(_DECIMAL.fullmatch(part) for part in parts if "," in part)
    return decimals or line.count(mark) > commas


def to_number(text: str) -> float:
    """A number, with a point or a comma before its decimals; ValueError where it is none.

    Example:
        >>> to_number("0,25"), to_number("-1e-3")
        (0.25, -0.001)
    """
    return float(text.replace(",", ".") if _DECIMAL.fullmatch(text.strip()) else text)


def fields(line: str, separator: str | None) -> list[str]:
    """The columns of one line; quotes are for names that hold the separator.

    Example:
        >>> fields('u1, "Lee, Ann" ,0.5', ","), fields('u1 "Lee, Ann" 0.5', None)
        (['u1', 'Lee, Ann', '0.5'], ['u1', 'Lee, Ann', '0.5'])
    """
    if separator is None:
        if '"' not in line:
            return line.split()
        return [name or plain for name, plain in _QUOTED.findall(line)]
    if '"' in line:
        try:
            row = next(csv.reader([line], delimiter=separator, skipinitialspace=True))
        except csv.Error as error:
            raise UsageError(f"{line[:40].strip()!r} ... is no line of a table ({error})") from None
        return [field.strip() for field in row]
    return [field.strip() for field in line.split(separator)]


# ------------------------------------------------------------------------------------------ layout
# Finds out from its first two lines what the columns of a text of scores are.

TRIAL = frozenset(
    {"trial", "trial_id", "test", "test_id", "utterance", "utt", "utt_id", "segment", "segmentid"}
)
SPEAKER = frozenset(
    {"speaker", "speaker_id", "spk", "model", "modelid", "model_id"}
    | {"enrolment", "enrollment", "enrolled", "enrol", "enroll", "enrol_id", "enroll_id"}
)
SCORE = frozenset({"score", "scores", "similarity", "llr"})
TARGET = frozenset({"target", "label", "labels", "key", "targettype", "true_speaker"})
_ROLES = (TRIAL, SPEAKER, SCORE, TARGET)
_DIGITS = 19
_NAMELESS = TRIAL | {"", "id", "file", "name", "trials"}
WORDS = {
    **dict.fromkeys(("target", "tgt", "true", "1", "mated"), True),
    **dict.fromkeys(("nontarget", "non-target", "imp", "false", "0", "non-mated"), False),
}
"""What a trial list says of a pair."""


@dataclass(frozen=True)
class Layout:
    """What the columns of a text are.

    It is a list of pairs or a table of trials x speakers, whose first line may name the columns,
    and whose separator is None for blanks. Columns are those of trial names (None where a table has
    none), of enrolled speakers and scores of a list (a trial list has no score), and of what says
    who spoke (of a list: whether it is a target). Speakers are the names in the header of a table.
    A list is certain where trial and speaker are named and not assumed.
    """

    list: bool
    separator: str | None
    header: bool
    width: int
    trial: int | None = None
    speaker: int | None = None
    score: int | None = None
    target: int | None = None
    speakers: tuple[str, ...] = ()
    certain: bool = True


def _number(text: str) -> bool:
    """Whether this reads as a number."""
    try:
        to_number(text)
    except ValueError:
        return False
    return True


def natural(name: str) -> tuple[int, int, str]:
    """A key to sort names by: numbers by their size, then all others.

    Example:
        >>> sorted(["1272", "84", "ann"], key=natural)
        ['84', '1272', 'ann']
    """
    return (0, int(name), name) if name.isdecimal() and len(name) < _DIGITS else (1, 0, name)


def role_of(names: list[str], role: frozenset[str]) -> int | None:
    """The first column that is called so."""
    return next((i for i, name in enumerate(names) if name.lower() in role), None)


def layout_of(label: str, first: str, second: str) -> Layout:
    """Tell a table from a list, with or without a header, by the first two lines of a file.

    Raises:
        UsageError: it cannot be told.

    Example:
        >>> layout_of("a", "1272 1272-0001 0.71", "").list
        True
        >>> layout_of("a", "trial,ann,bob", "u1,0.9,0.1").speakers
        ('ann', 'bob')
    """
    separator = separator_of(first)
    names, blanks = fields(first, separator), first.split()
    if separator == "\t" and (len(names) < 3 or "" in names[1:]) and _pair(blanks):
        separator, names = None, blanks  # tabs among other blanks
    values = fields(second, separator)
    roles = [role_of(names, role) for role in _ROLES]
    trial, speaker, score, target = roles
    if trial is not None and speaker is not None and (score is not None or target is not None):
        return Layout(True, separator, True, len(names), trial, speaker, score, target)
    if _pair(names):
        words = 2 if names[2].lower() in WORDS and not _number(names[2]) else None
        given = 3 if len(names) == 4 else words
        # Kaldi and ZEBRA write the enrolled speaker first; a table is thought of trial by trial
        trial, speaker = (1, 0) if separator in (None, "\t") else (0, 1)
        score = None if words else 2
        width = len(names)
        return Layout(True, separator, False, width, trial, speaker, score, given, certain=False)
    if len(names) == 3 and all(map(_whole, names[:2])) and _number(names[2]):
        if len(values) == 3 and not _whole(values[0]) and _number(values[0]):
            return _table(separator, names, values)
        raise UsageError(
            f"{label}: cannot tell three speakers from speaker, trial and score; "
            "add a first line that names the columns"
        )
    _understood(label, names, values, roles)
    return _table(separator, names, values)


def _understood(label: str, names: list[str], values: list[str], roles: list[int | None]) -> None:
    """Refuse a list whose header does not say which column is which."""
    trial, speaker, score, target = roles
    parts = sum(role is not None for role in (trial, speaker, score))
    known = {i for i in (trial, target) if i is not None}
    words = sum(not _number(value) for i, value in enumerate(values) if i not in known)
    named = len(values) == len(names) and not any(map(_number, names))
    half = parts > 1 and speaker is not None  # a list, and one of its columns is not found
    if not named or not (half or words + (trial is not None) > 1):
        return
    trials, speakers, scores, words_of = (", ".join(sorted(role)) for role in _ROLES)
    raise UsageError(
        f"{label}: its header {', '.join(names[:6])} does not say which column is which. A list "
        f"has a trial ({trials}), a speaker ({speakers}) and a score ({scores}), or a target "
        f"({words_of}); a table has a column for each speaker, the first may be trial, and target "
        "may say who spoke"
    )


def _pair(names: list[str]) -> bool:
    """Two names, then a score or a word, then perhaps a word."""
    if len(names) not in (3, 4):
        return False
    if any(_number(name) and not _whole(name) for name in names[:2]) or all(
        map(_number, names[:3])
    ):
        return False
    if len(names) == 4:
        return _number(names[2]) and names[3].lower() in WORDS
    return _number(names[2]) or names[2].lower() in WORDS


def _whole(text: str) -> bool:
    return text.removeprefix("-").isdecimal()


def _table(separator: str | None, names: list[str], values: list[str]) -> Layout:
    numbers = all(map(_number, names))
    # speakers may be called 1272, 1988 ...: whole numbers over fractions are names
    coded = all(map(_whole, names)) and not all(map(_whole, values)) and len(set(names)) > 1
    if numbers and not (values and coded):
        return Layout(False, separator, False, len(names))
    if len(values) == len(names) + 1:
        return Layout(False, separator, True, len(values), 0, speakers=tuple(names))
    trial = None
    if names[0].lower() in _NAMELESS or (values and not _number(values[0])):
        trial = 0
    target = role_of(names, TARGET)
    target = None if target == trial else target
    speakers = tuple(name for i, name in enumerate(names) if i not in (trial, target))
    return Layout(False, separator, True, len(names), trial, target=target, speakers=speakers)


# ------------------------------------------------------------------------------------------- table
# Reads tables of scores: one row a trial, one column a speaker.


@dataclass(frozen=True)
class Table:
    """A table of scores (T, N), names of its rows and their true speakers, where it has them."""

    scores: AnyArray
    trials: tuple[str, ...]
    target: tuple[str, ...]


def read_table(path: Path, layout: Layout, progress: Progress | None = None) -> Table:
    """Read a table row by row: the text is never held whole.

    Raises:
        UsageError: a row has too few columns, or a score is no number.
    """
    apart = [i for i in (layout.trial, layout.target) if i is not None]
    columns = [i for i in range(layout.width) if i not in apart]
    if len(columns) < 2:
        raise UsageError(
            f"{path.name} has {plural(len(columns), 'column')} of scores; a table has one "
            f"for each speaker, and a comparison needs at least two"
        )
    scores = scratch((count_lines(path), len(columns)))
    names: list[list[str]] = [[] for _ in apart]
    done, begin = 0, 0
    for lines in text_chunks(path, progress):
        after = begin + len(lines)
        if begin == 0 and layout.header:
            begin = 1 + next(i for i, line in enumerate(lines) if line.strip())
            del lines[:begin]
        block = _fast(lines, layout, columns)
        if block is None:
            rows = list(rows_of(lines, layout, path.name, begin))
            block = _slow(rows, columns, path.name)
        else:
            rows = [(0, line.split(layout.separator, max(apart) + 1)) for line in lines if apart]
        for kept, place in zip(names, apart, strict=True):
            kept.extend(row[place].strip() for _, row in rows)
        scores[done : done + len(block)] = block
        done += len(block)
        begin = after
    if not done:
        raise UsageError(f"{path.name} has no line of data")
    found: dict[int | None, tuple[str, ...]] = dict(zip(apart, map(tuple, names), strict=True))
    return Table(scores[:done], found.get(layout.trial, ()), found.get(layout.target, ()))


def _fast(lines: list[str], layout: Layout, columns: list[int]) -> FloatArray | None:
    """Scores by NumPy, three times as fast, where every line is as it should be; else None."""
    separator, width = layout.separator, layout.width
    if separator is None:
        even = len(columns) == width and all(map(str.strip, lines))  # NumPy counts the columns
    else:
        even = set(map(str.count, lines, repeat(separator))) == {width - 1}
    if not lines or not even or any('"' in line for line in lines):
        return None
    if separator != "," and any("," in line for line in lines):
        return None  # decimal commas
    used = None if len(columns) == width else columns
    try:
        block = np.loadtxt(lines, delimiter=separator, comments=None, usecols=used, ndmin=2)
    except ValueError:
        return None
    return block if block.shape == (len(lines), len(columns)) else None


def rows_of(
    lines: list[str], layout: Layout, label: str, begin: int
) -> Iterator[tuple[int, list[str]]]:
    """Number and columns of every line that is not blank, after so many others.

    Raises:
        UsageError: a line has another number of columns.
    """
    for number, line in enumerate(lines, begin + 1):
        if line.strip():
            row = fields(line, layout.separator)
            if len(row) != layout.width:
                raise UsageError(
                    f"{label} line {number}: has {plural(len(row), 'column')} and not "
                    f"{layout.width}"
                )
            yield number, row


def _slow(rows: list[tuple[int, list[str]]], columns: list[int], label: str) -> FloatArray:
    block = np.empty((len(rows), len(columns)))
    for into, (number, row) in zip(block, rows, strict=True):
        try:
            into[:] = [to_number(row[i]) for i in columns]
        except ValueError as error:
            raise UsageError(
                f"{label} line {number}: a score is no number ({error}); a table has one row a "
                "trial and one score a speaker, a list has trial, speaker and score in each line"
            ) from None
    return block


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
    """What a file, as messages call it, says of speakers by name (or of trials of nobody's)."""

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
    r"""Read ``speaker attribute`` lines (Kaldi's spk2gender), or a table with a header.

    Of a table one column; it need not be named where there is one beside the speaker's. Groups are
    `of` what stands there.

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
        try:
            said = of(row[value]) if row[value] else ""
        except UsageError as error:
            raise UsageError(f"{path.name} line {number}: {error}") from None
        if said and found.setdefault(row[key], said) != said:
            raise UsageError(
                f"{path.name}: {row[key]} is {found[row[key]]} on one line and {said} on another; "
                "keep one"
            )
    made = Attribute(path.name, head[value] if header else "", found)
    if len(made.values) > _ATTRIBUTES_MOST:
        raise UsageError(
            f"{path.name} has {len(made.values)} groups, more than {_ATTRIBUTES_MOST}: give ranges "
            "instead of numbers, or choose another column"
        )
    return made


_LENGTHS = frozenset({"seconds", "length", "duration"})
_EDGES = (1, 2, 5, 10, 20, 40)


def read_conditions(path: Path) -> tuple[Attribute, ...]:
    r"""Read the conditions of trials: a trial and its condition a line, or a table with a header.

    Every column beside the trial's is a condition; one called seconds, length or duration falls
    into ranges.

    Raises:
        UsageError, StoreError: as `read_attribute`, or a length that is no number.

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
    head = fields(first_lines(path)[0], separator_of(first_lines(path)[0]))
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
        seconds = to_number(text)
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
