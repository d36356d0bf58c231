"""Opens files by their content: what kind they are, and arrays of NumPy."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from monitor.contents import HEAD_BYTES, describe_foreign
from monitor.errors import StoreError, UsageError
from monitor.files import read_arrays
from monitor.safe_text import printable
from monitor.types import AnyArray

_FOREIGN = {
    b"\x80": "is a pickle, which is never loaded; save it with numpy.save",
    b"\xff\xfe": "is UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "is UTF-16 text; save it as UTF-8",
}


@contextmanager
def opening(path: Path) -> Iterator[None]:
    """Name the file in what the system refuses."""
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
            return np.asanyarray(np.load(path, mmap_mode="r", allow_pickle=False))
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
    words = printable(" ".join(str(error).replace(str(path), path.name).split()))
    if "allow_pickle" in words or "Object arrays" in words or "Python objects" in words:
        return StoreError(
            f"{path.name} holds Python objects, which are never loaded; save plain numbers or text"
        )
    return StoreError(
        f"{path.name} is damaged or cut short ({words[:100] or type(error).__name__}); "
        "write it again"
    )
