"""One writer at a time: advisory locks on open files; they end with their process."""

from __future__ import annotations

import errno
import os

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["is_still_at", "lock"]

_UNKNOWN = {errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}
"""EBADF: of a folder over NFS, where a lock needs a file that is open for writing."""


def lock(handle: int, *, wait: bool = False) -> bool:
    """Take the lock of an open file; closing the file, or the end of the process, gives it back.

    Args:
        handle: its descriptor; of a folder too.
        wait: for whoever holds it.

    Returns:
        False where the system or the file system knows no locks.

    Raises:
        BlockingIOError: another process holds it.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as one, open(one.name) as two:
        ...     print(lock(one.fileno()))
        ...     try:
        ...         lock(two.fileno())
        ...     except BlockingIOError:
        ...         print("taken")
        True
        taken
    """
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        raise
    except OSError as error:
        if error.errno in _UNKNOWN:
            return False
        raise
    return True


def is_still_at(handle: int, path: str | os.PathLike[str]) -> bool:
    """Whether an open file is the one of that name: it may have been removed since, or replaced."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))  # noqa: PTH116
    except FileNotFoundError:
        return False
