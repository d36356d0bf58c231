"""Reads files by their content: arrays, columns of text, tables; errors name lines."""

from __future__ import annotations

import csv
import io
import mmap
import os
import re
import tempfile
import unicodedata
import zipfile
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import compress, count, pairwise
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from monitor.contents import HEAD_BYTES, describe_foreign
from monitor.errors import StoreError, UsageError
from monitor.files import read_arrays, watch_mapped
from monitor.phrases import plural
from monitor.safe_text import describe_twin, find_decimal_twin, is_empty_cell, printable
from monitor.types import AnyArray, BoolArray, FloatArray, IntArray

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


Progress: TypeAlias = Callable[[int, int], None]
"""Called with how much is done and how much there is."""

_CHUNK = 1 << 20
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069]")
_ASCII_CONTROL = bytes([*range(9), *range(14, 32), 127])
_FOREIGN = {
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
    """Return ``"npy"``, ``"npz"``, ``"parquet"`` or ``"text"``, by the first bytes."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise StoreError(f"{path.name} is a pipe or a device; save it to a file first")
    with _opening(path), path.open("rb") as file:
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
            f"{path.name} holds no NumPy array; if it is text, name it .csv, .tsv or .txt"
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
    """Read the first line that is not blank; UsageError where it is no row of a table."""
    for number, line in text_lines(path):
        if reason := _find_fault(line):
            raise UsageError(f"{path.name} line {number}: {reason}")
        return line
    raise UsageError(f"{path.name} is empty")


_DECIMAL_COMMA = re.compile(r"(?<![^\s;])-?\d+,\d+(?![^\s;])", re.ASCII)


def _find_fault(line: str) -> str:
    """Return what keeps the first line from being one of a table, and what to do."""
    if line.lstrip().startswith("#"):
        return "is a comment (#): remove it, or write the names of the columns without #"
    if ";" not in line or len(line.split()) > 1:
        return ""
    if _DECIMAL_COMMA.search(line):
        return "has decimal commas and semicolons: use decimal points, and commas between columns"
    return "" if "," in line else "has semicolons between columns: use commas, tabs or blanks"


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
                    yield unicodedata.normalize("NFC", block)  # as names are compared
                    done += len(block)
                    if progress is not None:
                        progress(min(done, size), size)
        except UnicodeDecodeError:
            raise StoreError(f"{path.name} is not UTF-8 text; save it as UTF-8") from None


def text_chunks(path: Path, progress: Progress | None = None) -> Iterator[list[str]]:
    """Yield the lines of `text_blocks`."""
    for block in text_blocks(path, progress):
        yield io.StringIO(block).readlines()


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield every line of `text_blocks` that is not blank, and its number."""
    lines = (line for chunk in text_chunks(path) for line in chunk)
    return ((number, line) for number, line in enumerate(lines, 1) if line.strip())


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
    elif all(map(is_number, names)):
        if not (width == 3 and names[0].isdecimal() and names[1].isdecimal()):
            return Layout(separator, False, width)
    elif separator != "," and width in (3, 4) and trial is None and speaker is None:
        if names[2].lower() in WORDS and not is_number(names[2]):
            return Layout(separator, False, width, 1, 0, None, 2)
        return Layout(separator, False, width, 1, 0, 2, 3 if width == 4 else None)
    if _DECIMAL_COMMA.search(first):
        raise UsageError(f"the first line of {label} has decimal commas: use decimal points")
    if separator is not None and not names[-1]:
        raise UsageError(
            f"lines of {label} end with a separator: remove it, or name the last column"
        )
    raise UsageError(
        f"{label}: its first line does not say which column is which: write a header above it, "
        "'trial speaker score' (or target) for a list, 'trial' and every speaker for a table, "
        "separated by tabs, commas or blanks"
    )


def is_number(text: str) -> bool:
    """Return whether a cell is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def rows_of(
    lines: list[str], layout: Layout, label: str, begin: int
) -> Iterator[tuple[int, list[str]]]:
    """Number and columns of every line that is not blank, after so many others."""
    for number, line in enumerate(lines, begin + 1):
        if line.strip():
            row = fields(line, layout.separator)
            if len(row) != layout.width:
                raise UsageError(f"{label} line {number}: {describe_width(row, layout.width)}")
            yield number, row


def describe_width(row: Sequence[str], width: int) -> str:
    """Describe a row that has not this many columns."""
    text = f"has {plural(len(row), 'column')} and not {width}"
    is_open = len(row) == width + 1 and not row[-1]
    return f"{text}: remove the separator at the end of the line" if is_open else text


def no_number(label: str, number: int, cell: str) -> UsageError:
    """Explain that a cell of scores cannot be read."""
    comma = ": use a decimal point" if _DECIMAL_COMMA.fullmatch(cell.strip()) else ""
    return UsageError(
        f"{label} line {number}: the score {printable(cell)[:40]!r} is not a number{comma}"
    )


def check_names(label: str, role: str, names: Collection[str]) -> None:
    """Refuse (UsageError) cells without a name, and one name that is written in two ways."""
    if empty := next((name for name in names if name and is_empty_cell(name)), None):
        raise UsageError(
            f"a {role} of {label} is called {empty!r}, as empty cells are written: write its name, "
            "or remove the line"
        )
    if twin := find_decimal_twin(names):
        raise UsageError(f"{label}: {describe_twin(twin, role)}")


def count_lines(path: Path) -> int:
    """At least as many as there are rows."""
    count = 1
    with path.open("rb") as file:
        while block := file.read(1 << 24):
            count += block.count(b"\n") + block.count(b"\r")
    return count


# ------------------------------------------------------------------------------------------- lists
# Lists of pairs of a trial and an enrolled speaker.


@dataclass(frozen=True)
class Pairs:
    """The lines of a list, as they were written, and how messages call the file.

    Names of trials and speakers are in the order of their first appearance; shape (n,): the index
    of those of each line, its score, and whether both are one person, None where the list does not
    say. It is numbered where names are numbers from 0.
    """

    label: str
    trials: tuple[str, ...]
    speakers: tuple[str, ...]
    trial: IntArray
    speaker: IntArray
    scores: FloatArray | None
    target: BoolArray | None
    numbered: bool = False

    @property
    def columns(self) -> dict[str, AnyArray]:
        """Columns that there are of each line, by field."""
        every = {key: getattr(self, key) for key in ("trial", "speaker", "scores", "target")}
        return {key: column for key, column in every.items() if column is not None}

    def _with_columns(self, columns: Mapping[str, AnyArray]) -> Pairs:
        return replace(
            self, trial=columns["trial"], speaker=columns["speaker"],
            scores=columns.get("scores"), target=columns.get("target"),
        )  # fmt: skip

    def only(self, which: BoolArray) -> Pairs:
        """Select lines, shape (n,), and drop trials and speakers without any."""
        columns = self.columns
        selected = take_where(which.__getitem__, count_true(which), *columns.values())
        return self._with_columns(dict(zip(columns, selected, strict=True))).without_empty()

    def without_empty(self) -> Pairs:
        """Drop trials and speakers without any line."""
        trial, trials = _compact(self.trial, self.trials)
        speaker, speakers = _compact(self.speaker, self.speakers)
        return replace(self, trial=trial, trials=trials, speaker=speaker, speakers=speakers)

    def by_trial(self) -> Pairs:
        """Sort lines trial after trial, those of a trial as they came."""
        if _ascending(self.trial):
            return self
        starts = starts_of(self.trial, len(self.trials))
        edges = whole_trials(starts)
        columns = self.columns
        sorted_columns: dict[str, AnyArray] = {
            key: scratch(c.shape, c.dtype) for key, c in columns.items()
        }
        heap = np.searchsorted(edges, starts[:-1], "right") - 1  # of each trial
        ends = edges[:-1].copy()
        for part in parts(*columns.values()):
            which = heap[self.trial[part]]
            order = np.argsort(which, kind="stable")
            sizes = np.bincount(which, minlength=len(ends))
            cuts = np.cumsum(sizes) - sizes
            for key, column in columns.items():
                moved = column[part][order]
                for at in np.flatnonzero(sizes).tolist():
                    rows = moved[cuts[at] : cuts[at] + sizes[at]]
                    sorted_columns[key][ends[at] : ends[at] + sizes[at]] = rows
                release(sorted_columns[key])
            ends += sizes
        for first, last in pairwise(edges.tolist()):
            order = np.argsort(sorted_columns["trial"][first:last], kind="stable")
            for into in sorted_columns.values():
                into[first:last] = into[first:last][order]
            release(*sorted_columns.values())
        return self._with_columns(sorted_columns)

    def targets(self) -> list[tuple[int, int]]:
        """Return trial and speaker of each target line."""
        assert self.target is not None
        columns = take_where(
            self.target.__getitem__, count_true(self.target), self.trial, self.speaker
        )
        return list(zip(*(column.tolist() for column in columns), strict=True))


def _compact(numbers: IntArray, names: tuple[str, ...]) -> tuple[IntArray, tuple[str, ...]]:
    present = tally(numbers, len(names)) > 0
    if present.all():
        return numbers, names
    return renumber(numbers, np.cumsum(present) - 1), tuple(compress(names, present.tolist()))


def _ascending(numbers: IntArray) -> bool:
    last = -1
    for part in parts(numbers):
        block = numbers[part]
        if block[0] < last or (block[1:] < block[:-1]).any():
            return False
        last = int(block[-1])
    return True


def starts_of(trial: IntArray, trials: int) -> IntArray:
    """Return where the lines of each of T trials begin, and of one after: (T + 1,)."""
    return np.concatenate([[0], np.cumsum(tally(trial, trials))])


def whole_trials(starts: IntArray) -> IntArray:
    """Return where to cut lists into pieces of about `PART` lines, never within a trial.

    Of `starts`, (T + 1,): where the first piece begins, and where each of them ends.
    """
    first = np.flatnonzero(np.diff(starts[:-1] // PART, prepend=-1))
    return np.unique([*starts[first], starts[-1]])


def read_pairs(path: Path, layout: Layout, progress: Progress | None = None) -> Pairs:
    """Read a list of pairs: the text is never held whole."""
    assert layout.trial is not None
    assert layout.speaker is not None
    most = (count_lines(path),)
    index: list[defaultdict[str, int]] = [
        defaultdict(count().__next__)
        for _ in range(2)  # a new name is a new number
    ]
    numbers = [scratch(most, np.int32) for _ in index]
    scores = None if layout.score is None else scratch(most)
    target = None if layout.target is None else scratch(most, np.bool_)
    held = [column for column in (*numbers, scores, target) if column is not None]
    done = begin = 0
    header = layout.header
    for block in text_blocks(path, progress):
        columns, lines = _columns(block, layout, path.name, begin)
        begin += block.count("\n")
        if header and lines:
            columns, lines, header = [column[1:] for column in columns], lines[1:], False
        if not lines:
            continue
        part = slice(done, done + len(lines))
        for names, into, place in zip(index, numbers, (layout.trial, layout.speaker), strict=True):
            into[part] = np.fromiter(map(names.__getitem__, columns[place]), np.int32, len(lines))
        if scores is not None and layout.score is not None:
            scores[part] = _numbers(path.name, columns[layout.score], lines)
        if target is not None and layout.target is not None:
            target[part] = _words(path.name, columns[layout.target], lines)
        done = part.stop
        if done // PART > part.start // PART:
            release(*held)
    if not done:
        raise UsageError(f"{path.name} has no line of data")
    if any("" in names for names in index):
        raise UsageError(f"{path.name}: a trial or a speaker has no name")
    for role, names_of_role in zip(("trial", "speaker"), index, strict=True):
        check_names(path.name, role, names_of_role.keys())
    pairs = Pairs(
        path.name,
        tuple(index[0]),
        tuple(index[1]),
        numbers[0][:done],
        numbers[1][:done],
        None if scores is None else scores[:done],
        None if target is None else target[:done],
    )
    if not layout.header:
        _check_order(pairs)
    return pairs


def _check_order(pairs: Pairs) -> None:
    """Refuse a list without a header whose targets look as if trials came first."""
    if pairs.target is None:
        return
    of_trial = tally(pairs.trial, len(pairs.trials), pairs.target).max()
    of_speaker = tally(pairs.speaker, len(pairs.speakers), pairs.target).max()
    if of_trial > 1 == of_speaker:
        rest = " target" if pairs.scores is None else " score target"
        raise UsageError(
            f"{pairs.label}: no name in its first column has two targets, some in its second "
            f"have: write the header 'trial speaker{rest}' above it if trials come first, else "
            f"'speaker trial{rest}'"
        )


def pairs_of_records(label: str, records: AnyArray) -> Pairs:
    """Read a list from records, mapped or not, shape (n,): trials and speakers are numbers.

    Fields are called as columns of a text are.
    """
    names = list(records.dtype.names or ())
    at = [role_of(names, role) for role in (TRIAL, SPEAKER, SCORE, TARGET)]
    columns = [None if i is None else records[names[i]] for i in at]
    trial, speaker, scores, target = columns
    kinds = [
        column.dtype.kind if column is not None and column.ndim == 1 else "" for column in columns
    ]
    right = kinds[0] in tuple("iu") and kinds[1] in tuple("iu") and kinds[2] in tuple("fiu")
    if not (right and kinds[3] in ("", *"biu")) or not len(records):
        raise UsageError(
            f"{label} holds {len(records)} records of {records.dtype}; those of a list are trial "
            "and speaker, numbers from 0, score, and perhaps target, in one row"
        )
    assert trial is not None
    assert speaker is not None
    is_target = None
    if target is not None:
        is_target = scratch(target.shape, np.bool_)
        for part in parts(target, is_target):
            is_target[part] = target[part] != 0
            if np.any((target[part] != 0) & (target[part] != 1)):
                raise UsageError(f"{label}: a target is neither 1 nor 0: write 0 of nontarget")
    trials, speakers = _names_up_to(label, trial), _names_up_to(label, speaker)
    pairs = Pairs(label, trials, speakers, trial, speaker, scores, is_target, numbered=True)
    return pairs.without_empty()


def _names_up_to(label: str, numbers: IntArray) -> tuple[str, ...]:
    ends = [(int(numbers[part].min()), int(numbers[part].max())) for part in parts(numbers)]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    if low < 0 or high > max(10 * len(numbers), 1 << 20):
        raise UsageError(
            f"{label} numbers trials or speakers from {low} to {high}: number them from 0, without "
            "wide gaps"
        )
    return tuple(map(str, range(high + 1)))


def _numbers(label: str, texts: Sequence[str], lines: Sequence[int]) -> FloatArray:
    numbers = np.empty(len(texts))
    for i, text in enumerate(texts):
        try:
            numbers[i] = float(text)
        except ValueError:
            error = no_number(label, lines[i], text)
            order = "without a header, columns are speaker, trial and score"
            raise UsageError(f"{error}; {order}") from None
    return numbers


def _words(label: str, texts: Sequence[str], lines: Sequence[int]) -> BoolArray:
    words: dict[str, bool] = {}
    for word in dict.fromkeys(texts):
        is_target = WORDS.get(word.strip().lower())
        if is_target is None:
            raise UsageError(
                f"{label} line {lines[texts.index(word)]}: {word.strip()!r} is neither target nor "
                "nontarget: write these words, or 1 and 0"
            )
        words[word] = is_target
    return np.fromiter(map(words.__getitem__, texts), bool, len(texts))


def _columns(
    block: str, layout: Layout, label: str, begin: int
) -> tuple[Sequence[Sequence[str]], Sequence[int]]:
    """Split every line that is not blank into columns, beside the numbers of these lines."""
    width, separator = layout.width, layout.separator
    if '"' not in block:  # one split of many lines is several times faster than a split of each
        block += "" if block.endswith("\n") else "\n"
        flat = block.replace("\n", f"{separator or ' '}\0{separator or ' '}").split(separator)
        lines = block.count("\n")
        ends = flat[width :: width + 1]
        even = len(flat) == lines * (width + 1) + (separator is not None)
        if even and ends.count("\0") == lines:
            columns = [flat[i : lines * (width + 1) : width + 1] for i in range(width)]
            blanks = (blank in block for blank in " \t\v\f" if blank != separator)
            if separator is not None and (not block.isascii() or any(blanks)):
                columns = [list(map(str.strip, column)) for column in columns]
            return columns, range(begin + 1, begin + lines + 1)
    rows = list(rows_of(io.StringIO(block).readlines(), layout, label, begin))
    return list(zip(*(row for _, row in rows), strict=True)), [number for number, _ in rows]
