"""Reads files by their content: arrays, blocks of text, separators, numbers; errors name lines."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import numpy as np

from monitor.archives import read_arrays
from monitor.errors import StoreError, UsageError
from monitor.types import AnyArray

__all__ = [
    "Progress",
    "array_at",
    "arrays_at",
    "fields",
    "kind_of",
    "separator_of",
    "text_chunks",
    "to_number",
]

Progress: TypeAlias = Callable[[int, int], None]
"""Called with how much is done and how much there is."""

_CHUNK = 1 << 22
_DECIMAL = re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069]")
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
            return np.asanyarray(np.load(path, mmap_mode="r", allow_pickle=False))
        except ValueError:  # an array without any number cannot be mapped
            return np.asanyarray(np.load(path, allow_pickle=False))
    except Exception as error:  # the header is parsed as Python: anything may come of it
        raise _broken(path, error) from None


def arrays_at(path: Path, only: str | None = None) -> dict[str, AnyArray]:
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


def text_chunks(path: Path, progress: Progress | None = None) -> Iterator[list[str]]:
    """The lines of a text, some megabytes at a time.

    Raises:
        StoreError: it cannot be read, is not UTF-8, or holds what steers a terminal.
    """
    with _opening(path):
        size = path.stat().st_size
        try:
            with path.open(encoding="utf-8-sig") as file:
                done = 0
                while lines := file.readlines(_CHUNK):
                    if any(map(_CONTROL.search, lines)):
                        raise StoreError(f"{path.name} holds control characters: is it text?")
                    yield lines
                    done += sum(map(len, lines))
                    if progress is not None:
                        progress(min(done, size), size)
        except UnicodeDecodeError:
            raise StoreError(f"{path.name} is not UTF-8 text; save it as UTF-8") from None


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
    """A number, with a point or a comma before its decimals.

    Raises:
        ValueError: it is none.

    Example:
        >>> to_number("0,25"), to_number("-1e-3")
        (0.25, -0.001)
    """
    return float(text.replace(",", ".") if _DECIMAL.fullmatch(text.strip()) else text)


def fields(line: str, separator: str | None) -> list[str]:
    """The columns of one line; quotes are for names that hold the separator.

    Raises:
        UsageError: its quotes make no sense.

    Example:
        >>> fields('u1, "Lee, Ann" ,0.5', ",")
        ['u1', 'Lee, Ann', '0.5']
        >>> fields('u1 "Lee, Ann" 0.5', None)
        ['u1', 'Lee, Ann', '0.5']
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
