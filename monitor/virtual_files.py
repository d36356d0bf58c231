"""Files without a path, which can be read wherever a path is expected."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import Any, TypeAlias


class VirtualFile:
    """A file without a path, which can be opened and inspected like a `pathlib.Path`."""

    __slots__ = ()
    name: str

    @property
    def suffix(self) -> str:
        """Suffix of its name."""
        return Path(self.name).suffix

    @property
    def span(self) -> tuple[float, float] | None:
        """Begin and end within its recording, in seconds; None if it is a whole recording."""
        return None

    @property
    def seconds(self) -> float | None:
        """Seconds of audio; None if unknown without reading it."""
        return None

    def content(self) -> bytes | memoryview:
        """Return its bytes; SourceError if they cannot be read."""
        raise NotImplementedError

    def open(self, mode: str = "rb") -> BufferedReader:
        """Open it for reading, without a copy of its bytes."""
        if mode != "rb":
            raise ValueError("a file in memory is only read, as bytes")
        return BufferedReader(_MemoryReader(memoryview(self.content())))

    def is_dir(self) -> bool:
        """Return False."""
        return False

    def files(self) -> tuple[Path, ...]:
        """Return the files on disk that it is read from."""
        return ()

    def origin(self) -> Path | None:
        """Return the recording that it is a part of; None if it is whole."""
        return None

    def absolute(self) -> VirtualFile:
        """Return the same file, with absolute paths."""
        return self


@dataclass(frozen=True, slots=True)
class MemoryFile(VirtualFile):
    """A whole file in memory."""

    name: str
    data: bytes | memoryview = field(repr=False)

    def content(self) -> bytes | memoryview:
        """Return its bytes."""
        return self.data


class _MemoryReader(RawIOBase):
    """Reads memory without a copy, which `BytesIO` would make of a memoryview."""

    def __init__(self, data: memoryview) -> None:
        self._data, self._at = data, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._data[self._at : self._at + len(buffer)]
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = max(0, offset + (0, self._at, len(self._data))[whence])
        return self._at


Readable: TypeAlias = "Path | VirtualFile"


def readable(path: str | os.PathLike[str] | VirtualFile) -> Readable:
    """Return a path, or a virtual file as it is."""
    return path if isinstance(path, VirtualFile) else Path(path)


def make_absolute(path: Readable) -> Readable:
    """Return a file with absolute paths, without resolving links."""
    return path.absolute() if isinstance(path, VirtualFile) else Path(os.path.abspath(path))  # noqa: PTH100


def files_of(*paths: Readable) -> list[Path]:
    """Return the files on disk behind paths and virtual files."""
    return [
        file
        for path in paths
        for file in (path.files() if isinstance(path, VirtualFile) else (path,))
    ]


def spelled_path(path: Path) -> Path:
    """Return a path as the disk spells it, since only one of both may have composed accents (NFC).

    A name that exists in no spelling is kept.
    """
    if os.fspath(path).isascii():
        return path
    with suppress(OSError, ValueError):
        if not path.exists() and path != path.parent:
            folder = spelled_path(path.parent)
            names = _names_in(folder, folder.stat().st_mtime_ns)
            return folder / names.get(_composed(path.name), path.name)
    return path


def _composed(name: str) -> str:
    return unicodedata.normalize("NFC", name)


@lru_cache(maxsize=64)
def _names_in(folder: Path, _changed: int) -> Mapping[str, str]:
    """Map the NFC of names in a folder to the names; ``_changed`` invalidates the cache."""
    return {_composed(name): name for name in os.listdir(folder)}  # noqa: PTH208
