"""The file of populations and rank models: npz without pickle, with a JSON header.

Written whole and private to its owner (0600, as `monitor.files.atomic_write` makes files): a
reader sees the old file or the new one, never half.
"""

from __future__ import annotations

import errno
import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from monitor.errors import SchemaError, StoreError
from monitor.files import atomic_write, sweep
from monitor.npz import MAPPED, Arrays, Rows, mapped_arrays, read_arrays, write_arrays
from monitor.safe_text import is_name, printable
from monitor.types import AnyArray

SCHEMA = 4  # of written stores; earlier ones can be read if they are complete
_HEADER = "header"
# errors of numpy and zipfile for invalid or damaged files
_DAMAGE = (OSError, ValueError, LookupError, TypeError, EOFError, MemoryError, RuntimeError,
           zipfile.BadZipFile, zlib.error)  # fmt: skip


def write_store(
    path: Path,
    kind: str,
    header: Mapping[str, object],
    arrays: Mapping[str, AnyArray],
    *,
    mapped: Mapping[str, Rows] | None = None,
    tidy: bool = True,
) -> None:
    """Write a store atomically, mode 0600.

    Arrays in ``mapped`` are stored uncompressed. ``tidy`` removes the remains of an interrupted
    write.
    """
    text = json.dumps({"kind": kind, "schema": SCHEMA, **header}, ensure_ascii=False)
    content = dict(arrays)
    content[_HEADER] = np.frombuffer(text.encode(), dtype=np.uint8)
    pickled = [name for name, array in content.items() if array.dtype.hasobject]
    if pickled:
        raise StoreError(f"{path}: not written, since {pickled[0]!r} is not plain numbers")
    if tidy:
        sweep(path)
    try:
        with atomic_write(path) as file:
            write_arrays(file, content, mapped or {})
    except OSError as error:
        reason = error.strerror or str(error)
        raise StoreError(f"cannot write {path} ({reason}). Nothing was changed") from error


def read_store(
    path: Path, kind: str, *, without: tuple[str, ...] = (), later: tuple[str, ...] = ()
) -> tuple[dict[str, Any], Arrays]:
    """Read the header of a store and its arrays by name, as `monitor.npz.read_arrays` does.

    Names of mapped arrays begin with `monitor.npz.MAPPED`.
    """
    sweep(path)
    if not path.is_file():
        what = "is a directory" if path.is_dir() else "does not exist"
        raise StoreError(f"{path}: {what}. Use a {_called(kind)} file (.npz)")
    try:
        with path.open("rb") as handle:
            arrays = read_arrays(handle, without=without, later=later)
            if not MAPPED.startswith(without):
                large = mapped_arrays(handle)
                arrays.update({f"{MAPPED}{name}": array for name, array in large.items()})
        if _HEADER not in arrays:
            raise StoreError(f"{path} is not a {_called(kind)} file of this program")
        header = json.loads(bytes(arrays.pop(_HEADER)).decode())
        actual_kind, schema = header["kind"], header["schema"]
        if type(schema) is not int:
            raise ValueError("no schema")  # reported below
        if schema > SCHEMA:
            raise SchemaError(
                f"{path} has schema {schema}, but this version reads at most {SCHEMA}. Upgrade "
                "speaker-disclosure-monitor"
            )
        if actual_kind != kind:
            raise StoreError(f"{path} is a {_called(actual_kind)} file. Use a {_called(kind)} file")
    except PermissionError as error:
        raise StoreError(f"{path}: permission denied. Check its permissions") from error
    except _DAMAGE as error:
        if getattr(error, "errno", None) in (errno.EMFILE, errno.ENFILE):  # not the file's fault
            raise
        raise StoreError(
            f"{path} is damaged or not a {_called(kind)} file. Make it again or restore a copy"
        ) from error
    return header, arrays


@contextmanager
def refusing_incomplete(path: Path) -> Iterator[None]:
    """Report a missing or damaged part of a store in one line."""
    try:
        yield
    except (*_DAMAGE, AttributeError, StoreError) as error:
        if str(error).startswith(f"{path}: "):  # already names the file
            raise
        raise StoreError(f"{path} is incomplete ({printable(error)}). Make it again") from error


def _called(kind: object) -> str:
    return printable(kind)[:20].replace("_", " ")


def store_kind(path: Path) -> str | None:
    """Return the kind of a store, or None for other files."""
    try:
        with path.open("rb") as handle:
            return str(json.loads(bytes(read_arrays(handle, _HEADER)[_HEADER]).decode())["kind"])
    except _DAMAGE:
        return None


def require(holds: object, message: str) -> None:
    """Raise StoreError with the message unless the condition holds."""
    if not holds:
        raise StoreError(message)


def refuse_invalid(of: str, valid: Mapping[str, object]) -> None:
    """Raise StoreError with the names of the invalid parts, if any."""
    if wrong := [name for name, is_valid in valid.items() if not is_valid]:
        raise StoreError(f"{', '.join(wrong)} of {of}: no calibration gives that")


def are_names(names: object) -> bool:
    """Return whether a value is a tuple of names."""
    return isinstance(names, tuple) and all(map(is_name, names))


def is_number(value: object) -> bool:
    """Return whether a value is a number, but not a bool."""
    return isinstance(value, int | float) and not isinstance(value, bool)
