"""Atomic, private writes of files: written beside the target, mode 0600, renamed at the end.

A writer that is killed leaves its part behind, which may be biometric. As long as it lives it holds
a lock on it, so that whoever next uses the target can tell what nobody works on any more.
"""

from __future__ import annotations

import errno
import glob
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from monitor.errors import StoreError
from monitor.locks import is_still_at, lock
from monitor.safe_text import file_name

__all__ = ["alone", "atomic_write", "not_written", "sweep"]

_SUFFIX = ".unfinished"
PATIENCE_SECONDS = 60.0
_LOOK_SECONDS = 0.02


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
    me = os.geteuid() if hasattr(os, "geteuid") else None
    flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    for part in path.parent.glob(f".{glob.escape(path.name)}.????????{_SUFFIX}"):
        # what cannot be opened or locked is somebody's
        with suppress(OSError):
            handle = os.open(part, flags)
            try:
                found = os.fstat(handle)
                ours = stat.S_ISREG(found.st_mode) and found.st_uid == me and found.st_nlink == 1
                if ours and lock(handle) and is_still_at(handle, part):
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
