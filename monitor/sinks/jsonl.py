"""Write events as JSON lines to a file or standard output, and detect an existing run."""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import orjson

from monitor.errors import StoreError, UsageError
from monitor.events.declaration import Event, encode
from monitor.files import PRIVATE, is_ours, keep_private, lock, path_matches_handle
from monitor.types import Record

_LAST_BYTES = 1 << 20  # an end record is far shorter


def refuse_overwrite(
    output: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str] | None]
) -> None:
    """Refuse to overwrite an input file."""
    for name in inputs:
        path = Path(name) if name else None
        if path is not None and path.exists() and Path(output).exists() and path.samefile(output):
            raise UsageError(f"{output} is read by this run; write to another file")


def standing(path: str | os.PathLike[str]) -> str | None:
    r"""Name what a new run would overwrite: a finished run, an unfinished run, or something else.

    None if the file is missing, empty, a pipe or a device.
    """
    path = Path(path)
    if not path.is_file() or not path.stat().st_size:
        return None
    with path.open("rb") as file:
        first = file.readline(_LAST_BYTES)
        file.seek(max(0, path.stat().st_size - _LAST_BYTES))
        last = file.read().rstrip().rpartition(b"\n")[2]
    if _kind(first) != "start":
        return "something else"
    return "a finished run" if _kind(last) == "end" else "an unfinished run"


_BEGUN_BYTES = 1 << 20
_START = b'{"type":"start"'


def has_barely_begun(path: str | os.PathLike[str]) -> bool:
    """Return whether a run ended before its first checkpoint, which follows a reading.

    Its file is then missing or empty, or has only a start (perhaps incomplete) and at most one
    reading.
    """
    try:
        with Path(path).open("rb") as file:
            content = file.read(_BEGUN_BYTES)
    except FileNotFoundError:
        return True
    kinds = [_kind(line) for line in content.splitlines()]
    has_begun = not content or content.startswith(_START) or _START.startswith(content)
    is_over = len(content) == _BEGUN_BYTES or "end" in kinds or kinds.count("reading") > 1
    return has_begun and not is_over


def _kind(line: bytes) -> Any:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record.get("type") if isinstance(record, dict) else None


_SCALE = 1e6  # six decimals


_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
"""Another user may have put a link there, so that another file is overwritten."""


def _is_pipe_of_another(name: str) -> bool:
    """Return whether this is a named pipe of another user, who may read it."""
    try:
        status = os.lstat(name)
    except OSError:
        return False
    return stat.S_ISFIFO(status.st_mode) and not is_ours(status)


def _leads_to_no_file(name: str) -> bool:
    """Return whether this is a pipe or a device, such as /dev/stdout, a link on some systems."""
    try:
        return not stat.S_ISREG(os.stat(name).st_mode)  # noqa: PTH116
    except OSError:
        return False


class JsonLines:
    """One compact JSON object per line, flushed immediately.

    Floats are rounded to six decimals. The file is private (0600), because it discloses who spoke.
    Another user's file is refused. An open file is locked against other runs. Its old content
    remains until the first record, so a run that fails before then changes nothing.

    Args:
        path: a file, or ``-`` for standard output.

    Attributes:
        offset: bytes written so far, including the file's earlier content.
        plain: whether the output is a regular file, in which a run can continue.
        locked: False if the file system has no locks.

    Raises:
        StoreError: the file cannot be written, is another user's, or is in use by another run.

    Example:
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     sink = JsonLines(f"{folder}/run.jsonl")
        ...     sink.write_record({"type": "alert", "seconds": 1.0000000001})
        ...     sink.close()
        ...     print(pathlib.Path(folder, "run.jsonl").read_text(), sink.offset)
        {"type":"alert","seconds":1.0}
         31
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._name = os.fspath(path)
        self._own = self._name != "-"
        self.offset = 0
        self.plain = self._made = False  # whether it is a plain file; whether we created it
        self.locked = True
        self._begun = not self._own
        self._file: BinaryIO = self._open() if self._own else sys.stdout.buffer

    def go_on_at(self, offset: int) -> None:
        """Continue at a byte offset; the next record replaces later content.

        StoreError if the file is shorter.
        """
        size = os.fstat(self._file.fileno()).st_size if self._own else 0
        if not 0 <= offset <= size:
            self.close()
            raise StoreError(
                f"{self._name} has {size} bytes, but the checkpoint needs {offset}: start a new run"
            )
        self.offset = offset

    def begin(self) -> None:
        """Truncate the file to ``offset`` now; otherwise the first record does so."""
        if self._begun:
            return
        self._begun = True
        if self.plain:
            try:
                self._file.truncate(self.offset)
                self._file.seek(self.offset)
            except OSError as error:
                raise self._failure(error) from None

    def _open(self) -> BinaryIO:
        flags = os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0)
        if _is_pipe_of_another(self._name):
            raise StoreError(
                f"{self._name} is a pipe of another user; name a file, or make your own"
            )
        while True:
            try:
                try:
                    handle, self._made = os.open(self._name, flags | os.O_EXCL, PRIVATE), True
                except FileExistsError:
                    flags_now = flags | (0 if _leads_to_no_file(self._name) else _NO_LINK)
                    handle, self._made = os.open(self._name, flags_now, PRIVATE), False
                # unbuffered, so that closing the file cannot fail again
                file = open(handle, "wb", buffering=0)  # noqa: PTH123, SIM115
            except (OSError, ValueError) as error:
                raise self._failure(error) from None
            self.plain = stat.S_ISREG(os.fstat(handle).st_mode)
            if not self.plain:  # a pipe or a device may have several writers
                return file
            try:
                self.locked = lock(handle)
            except BlockingIOError:
                file.close()
                raise StoreError(
                    f"{self._name} is in use by another run: wait for its end, or use another file"
                ) from None
            # if a refused run has just removed it, open it again
            if not path_matches_handle(handle, self._name):
                file.close()
                continue
            try:
                keep_private(handle, self._name)
            except StoreError:
                if self._made:  # on some file systems others own even a file that we have just made
                    os.unlink(self._name)  # noqa: PTH108
                file.close()
                raise
            return file

    def write(self, event: Event) -> None:
        """Write one event."""
        self.write_record(encode(event))

    def write_record(self, record: Record) -> None:
        """Write one JSON object."""
        line = line_of(record)
        self.begin()
        unwritten = memoryview(line)
        try:
            while unwritten:
                unwritten = unwritten[self._file.write(unwritten) or 0 :]
            if not self._own:
                self._file.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            if self._own:
                with suppress(OSError):  # remove the incomplete line
                    self._file.truncate(self.offset)
            raise self._failure(error) from None
        self.offset += len(line)

    def flush(self) -> None:
        """Ensure that all records so far are on disk."""
        if not self._own:
            self._file.flush()
            return
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            if not os.path.isfile(self._name):  # noqa: PTH113  a pipe or a device has no disk
                return
            raise self._failure(error) from None

    def close(self) -> None:
        """Close the file, and remove a new file without records. Standard output stays open."""
        if not self._own or self._file.closed:
            return
        if self._made and not self._begun and path_matches_handle(self._file.fileno(), self._name):
            os.unlink(self._name)  # noqa: PTH108
        self._file.close()

    def _failure(self, error: Exception) -> StoreError:
        reason = getattr(error, "strerror", None) or str(error)
        name = self._name if self._own else "standard output"
        if getattr(error, "errno", None) == errno.ELOOP:
            return StoreError(f"cannot write {name}, which is a link: use the file itself")
        return StoreError(f"cannot write {name} ({reason}): free some space or use another file")


def line_of(record: Record) -> bytes:
    """Format a record as one line of JSON, with floats at six decimals."""
    try:
        rounded = _rounded(record)
    except (OverflowError, ValueError) as error:
        raise ValueError(f"a figure is not JSON compliant: {error}") from None
    return orjson.dumps(rounded, option=orjson.OPT_APPEND_NEWLINE)


_KEPT = frozenset((str, int, bool, type(None)))  # types that are written unchanged


def _rounded(value: Any) -> Any:
    """Round every float in a value to six decimals; no other code rounds."""
    kind = type(value)
    if kind is float:
        # three times as fast as round(value, 6) (benchmarks/runs.py: much of a run's time is spent
        # here), and raises if not finite
        return round(value * _SCALE) / _SCALE
    if kind in _KEPT:
        return value
    if kind is dict:  # inlined for speed
        return {
            key: (
                round(item * _SCALE) / _SCALE
                if (which := type(item)) is float
                else item
                if which in _KEPT
                else _rounded(item)
            )
            for key, item in value.items()
        }
    if kind is list or kind is tuple:
        return [
            round(item * _SCALE) / _SCALE if type(item) is float else _rounded(item)
            for item in value
        ]
    if isinstance(value, Mapping):
        return _rounded(dict(value))
    if isinstance(value, np.generic | np.ndarray):
        return _rounded(value.tolist())
    if isinstance(value, float):
        return _rounded(float(value))
    if isinstance(value, str | int):
        return value
    raise TypeError(f"a record cannot hold {type(value).__name__}")
