"""Files for one's own eyes that are written as they stand: ours and nobody else's, or refused.

A file that grows (a run, a ledger, a journal) cannot be written beside its place and renamed. Where
another user has put one there first, whoever may read it would get all that is written to it.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from monitor.errors import StoreError
from monitor.safe_text import printable

__all__ = ["check_private", "is_ours", "keep_private", "open_private"]

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_PRIVATE = stat.S_IRUSR | stat.S_IWUSR


def is_ours(found: os.stat_result) -> bool:
    """Whether a file belongs to the user that this process runs as; root has no more files.

    True on systems whose files have no such owner.
    """
    return not hasattr(os, "geteuid") or found.st_uid == os.geteuid()


def open_private(path: Path, flags: int) -> int:
    """A descriptor of a plain file that is ours alone (mode 0600); it is made where there is none.

    Args:
        path: of the file; a link is not followed.
        flags: of `os.open`, O_CREAT and all.

    Raises:
        OSError: it cannot be opened.
        StoreError: it is another user's, or not only here.
    """
    handle = os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), _PRIVATE)
    try:
        keep_private(handle, path)
    except BaseException:
        os.close(handle)
        raise
    return handle


def keep_private(handle: int, name: str | os.PathLike[str]) -> None:
    """See to it that an open file is ours alone; what is no plain file is left as it is.

    One that others could read or write is made private (0600), where the file system can.

    Args:
        handle: its descriptor.
        name: what to call it.

    Raises:
        StoreError: it is another user's, or has a second name elsewhere.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     os.fchmod(file.fileno(), 0o666)
        ...     keep_private(file.fileno(), file.name)
        ...     oct(os.fstat(file.fileno()).st_mode & 0o777)
        '0o600'
    """
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        return
    _refuse(found, name)
    if found.st_mode & _OTHERS and hasattr(os, "fchmod"):
        with suppress(OSError):  # a file system without modes
            os.fchmod(handle, _PRIVATE)


def check_private(path: Path) -> bool:
    """See to it that a file is ours alone, as `keep_private` does, without opening it.

    SQLite's locks are POSIX's: to open and close its file anywhere in the process gives them back.

    Returns:
        False where there is no such file.

    Raises:
        StoreError: it is another user's, has a second name elsewhere, or is no plain file; a link
            of one's own to a file of one's own is none of these.
    """
    try:
        link, found = path.lstat(), path.stat()
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(found.st_mode):
        raise StoreError(f"{printable(path)} is no plain file; name another")
    _refuse(found, path)
    if stat.S_ISLNK(link.st_mode) and not (is_ours(link) or link.st_uid == 0):
        raise _of_another(link, path)
    if found.st_mode & _OTHERS:
        with suppress(OSError):  # a file system without modes
            path.chmod(_PRIVATE)
    return True


def _refuse(found: os.stat_result, name: str | os.PathLike[str]) -> None:
    if not is_ours(found):
        raise _of_another(found, name)
    if found.st_nlink > 1:
        raise StoreError(
            f"{printable(os.fspath(name))} is a hard link: the same file has another name, and "
            "would change there too; copy it, or name another file"
        )


def _of_another(found: os.stat_result, name: str | os.PathLike[str]) -> StoreError:
    return StoreError(
        f"{printable(os.fspath(name))} belongs to {_user(found.st_uid)} and not to you "
        f"({_user(os.geteuid())}), so that it would not be private: name another file, in a folder "
        "of yours on this machine"
    )


def _user(number: int) -> str:
    """A user by name and number."""
    with suppress(ImportError, KeyError):
        import pwd

        return f"{printable(pwd.getpwuid(number).pw_name)}, {number}"
    return f"user {number}"
