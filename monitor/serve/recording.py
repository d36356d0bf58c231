"""A recording dropped onto the page: taken into memory, and opened as `monitor replay` opens it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from typing import Any

from monitor.errors import SourceError, UsageError
from monitor.files import MemoryFile
from monitor.phrases import clock_time
from monitor.protocols import Source
from monitor.safe_text import LONGEST_NAME, file_name
from monitor.sources.chain import Chain
from monitor.sources.file import File
from monitor.sources.people import Diarised
from monitor.transcripts.turns import read_turns

MOST_BYTES = 256 * 1024 * 1024
"""Of a recording: two hours of 16-bit samples at 16 kHz, or days of Opus."""
MOST_TURNS_BYTES = 4 * 1024 * 1024
MOST_AT_ONCE = 2
"""Recordings in memory, of all browsers together."""
BLOCK_SECONDS = 10.0
"""Heard at one go: how soon progress is seen, and a wish to end it heeded."""


@dataclass(frozen=True, slots=True)
class Announced:
    """A file that a browser is about to send.

    Raises:
        UsageError: it is empty, or too large.
    """

    name: str
    size: int
    most: int = MOST_BYTES

    def __post_init__(self) -> None:
        if self.size < 1:
            raise UsageError(f"{self.name} is empty")
        if self.size > self.most:
            raise UsageError(
                f"{self.name} has {self.size / 1e6:.0f} MB: {self.most / 1e6:.0f} MB at most are "
                "measured here"
            )

    @classmethod
    def of(cls, wish: Mapping[str, Any], key: str, most: int = MOST_BYTES) -> Announced | None:
        """The file of a message's ``key``, by name and ``size``; None where there is none."""
        told = wish.get(key)
        if told is None:
            return None
        name, size = (told.get("name"), told.get("size")) if isinstance(told, dict) else (None, 0)
        if not isinstance(name, str) or type(size) is not int:
            raise UsageError("a file has a name and a size")
        return cls(file_name(name[-LONGEST_NAME:]) or "recording", size, most)


class Upload:
    """A recording as it comes, and turns after it where there are any: in memory alone.

    Example:
        >>> upload = Upload(Announced("a.wav", 4), Announced("a.rttm", 2))
        >>> upload.add(b"abc"), upload.add(b"def")
        (False, True)
        >>> [file.data for file in upload.files()]
        [b'abcd', b'ef']
    """

    def __init__(self, recording: Announced, turns: Announced | None = None) -> None:
        self._parts = [recording] if turns is None else [recording, turns]
        self._left = sum(each.size for each in self._parts)
        self._bytes = BytesIO()

    def add(self, message: bytes) -> bool:
        """Take the next bytes; whether all are there.

        Raises:
            UsageError: more came than was announced.
        """
        self._left -= len(message)
        if self._left < 0:
            raise UsageError("a file is larger than was said")
        self._bytes.write(message)
        return not self._left

    def files(self) -> list[MemoryFile]:
        """The recording, and the turns."""
        self._bytes.seek(0)
        return [MemoryFile(each.name, self._bytes.read(each.size)) for each in self._parts]


def opened(
    recording: MemoryFile, turns: MemoryFile | None = None, *, longest_seconds: float
) -> Source:
    """The recording as a source; with turns, split by person.

    Raises:
        SourceError: it is no recording, too long, or the turns cannot be read.
    """
    make = partial(File, recording, block_seconds=BLOCK_SECONDS)
    source = make()
    if source.seconds is None:
        source = make(end_seconds=longest_seconds)
    elif source.seconds > longest_seconds:
        raise SourceError(
            f"{source.label} is {clock_time(source.seconds)} long: "
            f"{clock_time(longest_seconds)} at most are measured here"
        )
    if turns is None:
        return Chain([source])
    return Diarised(source, read_turns(turns, recording=recording.name), start_seconds=0.0)
