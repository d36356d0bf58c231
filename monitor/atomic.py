"""Atomic, private writes of files: written beside the target, mode 0600, renamed at the end.

A writer that is killed leaves its part behind, which may be biometric. As long as it lives it holds
a lock on it, so that whoever next uses the target, or an hour later its folder, can tell what
nobody works on any more.
"""

from __future__ import annotations

import errno
import glob
import math
import os
import re
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO

from monitor.errors import StoreError
from monitor.locks import is_still_at, lock
from monitor.safe_text import file_name

__all__ = ["alone", "atomic_write", "not_written", "sweep", "wiped"]

_SUFFIX = ".unfinished"
PATIENCE_SECONDS = 60.0
OLD_SECONDS = 3600.0
"""Who writes to one file for longer than that without ending is gone."""
_LOOK_SECONDS = 0.02
_PART = re.compile(rf"\..+\.[a-z0-9_]{{8}}{re.escape(_SUFFIX)}", re.DOTALL)
_WIPED_BYTES = 1 << 20


@contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """A file, mode 0600, that takes the place of ``path`` when the block has ended well.

    Raises:
        OSError: it cannot be written; what was there before is untouched.

    Example:
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "a")
        ...     with atomic_write(path) as file:
        ...         _ = file.write(b"all of it")
        ...     path.read_bytes(), len(list(path.parent.iterdir()))
        (b'all of it', 1)
    """
    if path.exists() and not path.is_file():  # a device is not replaced by a file
        raise OSError(errno.EINVAL, "it is no plain file")
    _sweep_folder(path.parent)
    handle, part = _part(path)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def not_written(path: Path, error: OSError) -> StoreError:
    """What is said of a file that could not be written."""
    reason = error.strerror or error
    return StoreError(f"cannot write {file_name(path)}: {reason}; choose another place")


def sweep(path: Path) -> None:
    """Remove what writers of this file have left behind that were killed.

    Only what is surely that: named as `atomic_write` names it, a plain file of this user's, and
    locked by nobody. Where the file system knows no locks, nothing is.
    """
    _remove(path.parent.glob(f".{glob.escape(path.name)}.????????{_SUFFIX}"))


@cache
def _sweep_folder(folder: Path) -> None:
    """The same of all files in a folder, once in a process: of those that nobody writes again.

    Only what is old: another machine's lock may be unknown here.
    """
    try:
        found = [Path(entry.path) for entry in os.scandir(folder) if _PART.fullmatch(entry.name)]
    except OSError:  # what is to be written there says why
        return
    _remove(found, older=time.time() - OLD_SECONDS)


def _remove(parts: Iterable[Path], older: float = math.inf) -> None:
    """Those that are surely left over."""
    me = os.geteuid() if hasattr(os, "geteuid") else None
    flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    for part in parts:
        # what cannot be opened or locked is somebody's
        with suppress(OSError):
            handle = os.open(part, flags)
            try:
                found = os.fstat(handle)
                ours = stat.S_ISREG(found.st_mode) and found.st_uid == me and found.st_nlink == 1
                if ours and found.st_mtime < older and lock(handle) and is_still_at(handle, part):
                    part.unlink()
            finally:
                os.close(handle)


@contextmanager
def alone(path: Path) -> Iterator[bool]:
    """A block in which no other process is between reading a store and writing it.

    The lock is that of the folder: a store is replaced when it is written, and nothing is left
    behind.

    Yields:
        False where the system or the file system knows no locks.

    Raises:
        StoreError: another process has been at it for a minute.
    """
    try:
        handle = os.open(path.parent, os.O_RDONLY)
    except OSError:  # Windows opens no folders
        yield False
        return
    try:
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                locked = lock(handle)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise StoreError(
                        f"{path}: another process is writing in its folder; nothing was changed, "
                        "try again when that has ended"
                    ) from None
                time.sleep(_LOOK_SECONDS)
        yield locked
    finally:
        os.close(handle)


@contextmanager
def wiped(path: Path) -> Iterator[None]:
    r"""A block that replaces a file, whose old bytes are then overwritten where they lie.

    As far as a program can: a file that has another name too (a hard link) is left as it is, and
    what a disk or a file system keeps of older versions is not reached.

    Example:
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "a")
        ...     _ = path.write_bytes(b"old")
        ...     with path.open("rb") as old:
        ...         with wiped(path), atomic_write(path) as file:
        ...             _ = file.write(b"new")
        ...         path.read_bytes(), old.read()
        (b'new', b'\x00\x00\x00')
    """
    flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)
    try:
        old = os.open(path, flags)
    except OSError:  # it is not there, or not ours to write: it is replaced all the same
        yield
        return
    try:
        yield
        with suppress(OSError):
            found = os.fstat(old)
            if stat.S_ISREG(found.st_mode) and found.st_nlink == 0:
                for start in range(0, found.st_size, _WIPED_BYTES):
                    os.pwrite(old, bytes(min(_WIPED_BYTES, found.st_size - start)), start)
                os.fsync(old)
    finally:
        os.close(old)


def _part(path: Path) -> tuple[int, Path]:
    """A new file beside ``path``, locked."""
    while True:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=_SUFFIX, dir=path.parent)
        # one that was swept away before it was locked is left to its fate
        with suppress(BlockingIOError):
            lock(handle)
            if is_still_at(handle, name):
                return handle, Path(name)
        os.close(handle)
