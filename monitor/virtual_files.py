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
        """Seconds of the recording that it is a part of; None if it is whole."""
        return None

    @property
    def seconds(self) -> float | None:
        """Seconds of audio, where that is known without reading it."""
        return None

    def content(self) -> bytes | memoryview:
        """Return its bytes; SourceError if they cannot be read."""
        raise NotImplementedError

    def open(self, mode: str = "rb") -> BufferedReader:
        """Open its bytes at the beginning, for reading alone and without a copy."""
        if mode != "rb":
            raise ValueError("a file in memory is only read, as bytes")
        return BufferedReader(_MemoryReader(memoryview(self.content())))

    def is_dir(self) -> bool:
        """Return False."""
        return False

    def files(self) -> tuple[Path, ...]:
        """Return the files on disk that it is taken from."""
        return ()

    def origin(self) -> Path | None:
        """Return the recording that it is a part of; None if it is whole."""
        return None

    def absolute(self) -> VirtualFile:
        """Return the same, found from any working folder."""
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
    """Reads memory; a `BytesIO` of what is not bytes, or that is asked for a buffer, copies it."""

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
    """Return a file that means the same in another working folder; links stay as they are."""
    return path.absolute() if isinstance(path, VirtualFile) else Path(os.path.abspath(path))  # noqa: PTH100


def files_of(*paths: Readable) -> list[Path]:
    """Return the files on disk that are read for files."""
    return [
        file
        for path in paths
        for file in (path.files() if isinstance(path, VirtualFile) else (path,))
    ]


def spelled_path(path: Path) -> Path:
    """Return a path as the disk spells it: accents may be composed (NFC) in one and not the other.

    A path that leads nowhere in any spelling is returned as it is.
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
    """Return the names in a folder by their NFC; a change of the folder reads it again."""
    return {_composed(name): name for name in os.listdir(folder)}  # noqa: PTH208
