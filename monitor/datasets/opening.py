"""Opens files of data sets within limits, so that a hostile file takes little memory and time."""

from __future__ import annotations

import gzip
import io
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from monitor.contents import HEAD_BYTES, LFS_POINTER, describe_foreign
from monitor.errors import CorpusError
from monitor.npz import FREE_BYTES, MOST_RATIO
from monitor.safe_text import file_name

LONGEST_LINE = 8 << 20
"""Maximum bytes or characters of a line, about the word times of ten hours of speech."""
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_MARK = b"\xef\xbb\xbf"


class _Bounded(io.RawIOBase):
    """Reader of at most ``maximum`` bytes; CorpusError if the file has more."""

    def __init__(self, file: BinaryIO, name: str, maximum: int) -> None:
        self._file, self._name, self._remaining, self._maximum = file, name, maximum, maximum

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._file.read(len(buffer))
        self._remaining -= len(piece)
        if self._remaining < 0:
            raise CorpusError(
                f"{self._name} unpacks to more than {self._maximum >> 20} MB, implausible for its "
                "size: write it again"
            )
        buffer[: len(piece)] = piece
        return len(piece)


def walk(root: Path) -> Iterator[tuple[Path, list[str]]]:
    """Yield each folder with the names of its files, without hidden ones and link loops."""
    seen: set[str] = set()
    for folder, subfolders, names in os.walk(root, followlinks=True):
        real_path = os.path.realpath(folder)
        if real_path in seen:
            subfolders.clear()
            continue
        seen.add(real_path)
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        yield Path(folder), sorted(name for name in names if not name.startswith("."))


def check_regular(path: Path) -> None:
    """Refuse pipes, devices and Git LFS pointers with a CorpusError; OSError if unreadable."""
    with _open_regular(path):
        pass


@contextmanager
def _open_regular(path: Path) -> Iterator[BinaryIO]:
    name = file_name(path)
    # do not block: opening a pipe would wait until a program writes to it
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise CorpusError(f"{name} is a pipe or a device: save it to a file first")
        if file.read(len(LFS_POINTER)) == LFS_POINTER:
            raise CorpusError(f"{name} is a Git LFS pointer, not the file itself: run git lfs pull")
        file.seek(0)
        yield file


@contextmanager
def open_bytes(path: Path) -> Iterator[io.BufferedReader]:
    """Open a regular file for reading, unpacked if its name ends in ``.gz``.

    Raises CorpusError if it is not a regular file, cannot be read, or unpacks to more than 128 MB
    plus 50 times its size.
    """
    name = file_name(path)
    try:
        with _open_regular(path) as file:
            if path.suffix.lower() != ".gz":
                yield file  # type: ignore[misc]
                return
            max_bytes = FREE_BYTES + MOST_RATIO * os.fstat(file.fileno()).st_size
            unpacked = cast("BinaryIO", gzip.GzipFile(fileobj=file))
            yield io.BufferedReader(_Bounded(unpacked, name, max_bytes))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise CorpusError(f"{name} cannot be read ({error}); write it again") from None
    except OSError as error:
        raise CorpusError(f"cannot open {name} ({error.strerror}): check the name") from None


def byte_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file, without a byte-order mark.

    Raises CorpusError as `open_bytes` does, and if a line is too long.
    """
    with open_bytes(path) as file:
        if file.peek(3).startswith(_MARK):
            file.read(3)
        while line := file.readline(LONGEST_LINE):
            _check_length(line, path)
            yield line


def text_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 text with their ends, without a byte-order mark.

    Raises CorpusError as `open_bytes` does, and if a line is too long or not UTF-8 text.
    """
    with open_bytes(path) as file:
        head = file.peek(HEAD_BYTES)[:HEAD_BYTES]
        if reason := describe_foreign(head):
            raise CorpusError(f"{file_name(path)} {reason}")
        if head.startswith(_UTF16):
            raise CorpusError(f"{file_name(path)} is UTF-16 text; save it as UTF-8")
        text = io.TextIOWrapper(file, "utf-8-sig", newline="")
        try:
            while line := text.readline(LONGEST_LINE):
                _check_length(line, path)
                yield line
        except UnicodeDecodeError:
            raise CorpusError(f"{file_name(path)} is not UTF-8 text; save it as UTF-8") from None


def _check_length(line: str | bytes, path: Path) -> None:
    if len(line) >= LONGEST_LINE:
        raise CorpusError(f"{file_name(path)} has a line of more than {LONGEST_LINE >> 20} MB")
