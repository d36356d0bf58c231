"""Private files: atomic writing, locks and checks of owners."""

from __future__ import annotations

import csv
import errno
import glob
import math
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import IO, TextIO

from monitor.errors import StoreError, UsageError
from monitor.safe_text import file_name, printable

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]


# EBADF: over NFS a lock needs a file that is open for writing, which a folder never is
_UNKNOWN = {errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}


def lock(handle: int) -> bool:
    """Lock an open file until it is closed or the process ends.

    False if the system or the file system does not support locks; BlockingIOError if another
    process has the lock.
    """
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _UNKNOWN:
            raise
        return False
    return True


def path_matches_handle(handle: int, path: str | os.PathLike[str]) -> bool:
    """Return whether a path still leads to this open file, not removed or replaced since."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))  # noqa: PTH116
    except FileNotFoundError:
        return False


# A file that grows (a run, a ledger, a journal) cannot be written under another name and renamed.
# If another user had created it first, its readers would see everything written to it.

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
PRIVATE = stat.S_IRUSR | stat.S_IWUSR
"""Mode 0600, for all files with data about people."""


def is_ours(status: os.stat_result) -> bool:
    """Return whether a file belongs to this process's user; True if files have no owner."""
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()


def open_private(path: Path, flags: int) -> int:
    """Open or create a plain file that is private to the user (mode 0600).

    Links are not followed. ``flags`` are those of `os.open`, including O_CREAT. Raises StoreError
    for another user's file, or one with a second hard link.
    """
    handle = os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), PRIVATE)
    try:
        keep_private(handle, path)
    except BaseException:
        os.close(handle)
        raise
    return handle


def keep_private(handle: int, name: str | os.PathLike[str]) -> None:
    """Make an open plain file private (0600); StoreError for another user's file or a hard link."""
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        return
    _refuse(status, name)
    if status.st_mode & _OTHERS and hasattr(os, "fchmod"):
        with suppress(OSError):  # a file system without modes
            os.fchmod(handle, PRIVATE)


def check_private(path: Path) -> bool:
    """Make a file private like `keep_private`, without opening it; False if it is missing.

    SQLite's POSIX locks are lost if any part of the process opens and closes the file.
    """
    try:
        link, status = path.lstat(), path.stat()
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(status.st_mode):
        raise StoreError(f"{printable(path)} is not a plain file: use another")
    _refuse(status, path)
    _close_to_others(path, link, status, PRIVATE)
    return True


def _close_to_others(
    path: Path, link: os.stat_result, status: os.stat_result, mode: int, *advice: str
) -> None:
    """Refuse another user's file or link to it; otherwise set its mode."""
    if not is_ours(status):
        raise _of_another(status, path, *advice)
    if stat.S_ISLNK(link.st_mode) and not (is_ours(link) or link.st_uid == 0):
        raise _of_another(link, path, *advice)
    if status.st_mode & _OTHERS:
        with suppress(OSError):  # a file system without modes
            path.chmod(mode)


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents, all 0700."""
    try:
        folder.mkdir(stat.S_IRWXU)
    except FileNotFoundError:
        make_folder(folder.parent)
        make_folder(folder)
    except OSError:
        if not folder.is_dir():
            raise


def check_private_folder(folder: Path) -> None:
    """Make a folder private (0700) if it exists; StoreError for another user's."""
    try:
        link, status = folder.lstat(), folder.stat()
    except FileNotFoundError:
        if folder.is_symlink():
            raise StoreError(
                f"{printable(folder)} is a link to a missing folder: create the folder, "
                "or remove the link"
            ) from None
        return
    if not stat.S_ISDIR(status.st_mode):
        raise StoreError(f"{printable(folder)} is not a folder: use another")
    _close_to_others(folder, link, status, stat.S_IRWXU, "name")


def _refuse(status: os.stat_result, name: str | os.PathLike[str]) -> None:
    if not is_ours(status):
        raise _of_another(status, name)
    if status.st_nlink > 1:
        raise StoreError(
            f"{printable(os.fspath(name))} is a hard link, so the file would also change under its "
            "other name: copy it, or use another file"
        )


def _of_another(
    status: os.stat_result, name: str | os.PathLike[str], cure: str = "name another file, in"
) -> StoreError:
    return StoreError(
        f"{printable(os.fspath(name))} belongs to {_user(status.st_uid)} and not to you "
        f"({_user(os.geteuid())}), so that it would not be private: {cure} a folder of yours on "
        "this machine"
    )


def _user(number: int) -> str:
    with suppress(ImportError, KeyError):
        import pwd

        return f"{printable(pwd.getpwuid(number).pw_name)}, {number}"
    return f"user {number}"


# Written data may be biometric. On Linux a file has no name until it is complete, so that a killed
# writer leaves nothing. Elsewhere, and on file systems without unnamed files, a killed writer
# leaves a partial file. A live writer holds a lock on it. The next user of the target, or of its
# folder an hour later, can therefore detect abandoned files.

_SUFFIX = ".unfinished"
PATIENCE_SECONDS = 60.0
OLD_SECONDS = 3600.0  # after that, the writer of a file is considered dead
_LOOK_SECONDS = 0.02
_PART = re.compile(rf"\..+\.[a-z0-9_]{{8}}{re.escape(_SUFFIX)}", re.DOTALL)
_WIPED_BYTES = 1 << 20


@contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """Write a file, mode 0600, that replaces ``path`` when the block succeeds."""
    if path.exists() and not path.is_file():  # a device is not replaced by a file
        raise OSError(errno.EINVAL, "it is not a plain file")
    _sweep_old(path.parent)
    handle, temporary = _part(path)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            temporary = temporary or _named(handle, path)
            temporary.replace(path)
    except BaseException:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise StoreError if the system refuses to write this file or folder."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        message = f"cannot write {file_name(path)} ({reason}): choose another place"
        raise StoreError(message) from error


def unwritable(folder: Path) -> str:
    """Return why a folder, existing or not, cannot be written to; empty if it can."""
    existing = next(parent for parent in (folder, *folder.resolve().parents) if parent.exists())
    if not existing.is_dir():
        return f"{file_name(existing)} is not a folder"
    if os.access(existing, os.W_OK | os.X_OK):
        return ""
    fixed = hasattr(os, "statvfs") and os.statvfs(existing).f_flag & os.ST_RDONLY
    return os.strerror(errno.EROFS if fixed else errno.EACCES)


def list_open_files(folder: Path) -> list[str]:
    """List the visible files of a folder that is to be written; it need not exist.

    UsageError if it is a file, StoreError if nothing can be written there.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"-o {file_name(folder)} is a file; name a folder")
    if reason := unwritable(folder):
        raise StoreError(f"cannot write {file_name(folder)} ({reason}): choose another place")
    names = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    return [name for name in names if not name.startswith(".")]


def write_text(text: str, path: Path) -> None:
    """Write a text to a file atomically (mode 0600), or raise StoreError.

    A half of a surrogate pair, which JSON can hold and UTF-8 cannot, becomes a question mark.
    """
    with writing(path), atomic_write(path) as file:
        file.write(text.encode(errors="replace"))


# A spreadsheet treats such a text as a formula, which can run programs and send data. A person
# named =HYPERLINK(...) is written '=HYPERLINK(...) (OWASP, CSV injection).
_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(inf|nan)")


def csv_cell(value: object) -> object:
    """Return a cell that no spreadsheet takes for a formula; numbers stay as they are.

    Example:
        >>> [csv_cell(cell) for cell in ("=1+1", "-1.5", -1.5, "'-x", None)]
        ["'=1+1", '-1.5', -1.5, "''-x", None]
    """
    if isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def plain_cell(cell: str) -> str:
    """Undo `csv_cell` for a text."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def write_csv_rows(file: TextIO, rows: Iterable[Iterable[object]]) -> None:
    """Write rows of a table as CSV; None is an empty cell."""
    # csv quotes cells that contain a character of its line terminator: both kinds must be in it
    lines = SimpleNamespace(write=lambda line: file.write(f"{line[:-2]}\n"))
    csv.writer(lines, lineterminator="\r\n").writerows(map(csv_cell, row) for row in rows)


def csv_text(head: Sequence[object], rows: Iterable[Iterable[object]]) -> str:
    """Format a table as CSV."""
    text = StringIO(newline="")
    write_csv_rows(text, [head, *rows])
    return text.getvalue()


def csv_number(value: float | None) -> str:
    """Format a number with all its digits; empty for None."""
    return "" if value is None or math.isnan(value) else repr(float(value))


def finite(value: float | None) -> float | None:
    """Return a number for JSON, None if it is not finite."""
    return None if value is None or not math.isfinite(value) else float(value)


def sweep(path: Path) -> None:
    """Remove remains of killed writers of this file, if they are plain, ours and unlocked."""
    _remove(path.parent.glob(f".{glob.escape(path.name)}.????????{_SUFFIX}"))


def sweep_folder(folder: Path, older: float = math.inf) -> None:
    """Remove remains of killed writers in a folder, last written before the time ``older``."""
    with suppress(OSError):  # the following write reports the reason
        parts = [Path(entry.path) for entry in os.scandir(folder) if _PART.fullmatch(entry.name)]
        _remove(parts, older)


@cache
def _sweep_old(folder: Path) -> None:
    """Remove only old remains, once per process: another machine's locks may be invisible."""
    sweep_folder(folder, time.time() - OLD_SECONDS)


def _remove(parts: Iterable[Path], older: float = math.inf) -> None:
    """Remove partial files that are certainly abandoned."""
    me = os.geteuid() if hasattr(os, "geteuid") else None
    flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    for temporary in parts:
        # a file that cannot be opened or locked is in use
        with suppress(OSError):
            handle = os.open(temporary, flags)
            try:
                status = os.fstat(handle)
                ours = stat.S_ISREG(status.st_mode) and status.st_uid == me and status.st_nlink == 1
                if (
                    ours
                    and status.st_mtime < older
                    and lock(handle)
                    and path_matches_handle(handle, temporary)
                ):
                    temporary.unlink()
            finally:
                os.close(handle)


@contextmanager
def alone(path: Path) -> Iterator[bool]:
    """Lock out other processes between reading and writing a store.

    The lock is on the folder, since writing replaces the store, and a lock file would remain.
    Yields False if the system or the file system does not support locks.
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
                        f"{path} was not changed, because another process is writing in its "
                        "folder: try again later"
                    ) from None
                time.sleep(_LOOK_SECONDS)
        yield locked
    finally:
        os.close(handle)


@contextmanager
def wiped(path: Path) -> Iterator[None]:
    """Overwrite a file's old bytes in place after the block has replaced it.

    This is limited. A file with another hard link is left unchanged, and older versions kept by the
    disk or file system are not reached.
    """
    flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)
    try:
        old = os.open(path, flags)
    except OSError:  # missing or not writable: the block may replace it all the same
        yield
        return
    try:
        yield
        with suppress(OSError):
            status = os.fstat(old)
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
                for start in range(0, status.st_size, _WIPED_BYTES):
                    os.pwrite(old, bytes(min(_WIPED_BYTES, status.st_size - start)), start)
                os.fsync(old)
    finally:
        os.close(old)


def _part(path: Path) -> tuple[int, Path | None]:
    """Create a locked file in the folder of ``path``; return its handle and its name, if any."""
    with suppress(AttributeError, OSError):  # otherwise use a named file, or report its error
        handle = os.open(path.parent, os.O_TMPFILE | os.O_RDWR, PRIVATE)
        if Path(f"/proc/self/fd/{handle}").exists():  # needed to name it
            lock(handle)
            return handle, None
        os.close(handle)
    import tempfile  # slow to import

    while True:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=_SUFFIX, dir=path.parent)
        # another process may remove it before it is locked: then create another
        with suppress(BlockingIOError):
            lock(handle)
            if path_matches_handle(handle, name):
                return handle, Path(name)
        os.close(handle)


def _named(handle: int, path: Path) -> Path:
    """Give an unnamed open file a new name beside ``path``."""
    while True:
        temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}{_SUFFIX}")
        with suppress(FileExistsError):
            # src_dir_fd makes Python follow the link, though an absolute path does not need it
            os.link(f"/proc/self/fd/{handle}", temporary, src_dir_fd=handle, follow_symlinks=True)
            return temporary
