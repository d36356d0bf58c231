"""Audio from a browser: its microphone, or a recording, which stays in memory."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from monitor.errors import MonitorError, SourceError, UsageError
from monitor.phrases import clock_time
from monitor.protocols import Source
from monitor.safe_text import LONGEST_NAME, file_name
from monitor.sources.base import Chain
from monitor.sources.file import File
from monitor.sources.microphone import AudioQueue
from monitor.sources.people import Diarised
from monitor.sources.pipe import pcm_to_float
from monitor.transcripts.turn_formats import read_turns
from monitor.virtual_files import MemoryFile

MOST_BYTES = 225 * 1024 * 1024
"""Maximum size of a recording, which fits two hours of 16-bit samples at 16 kHz or days of Opus.
Processing takes its size and at most 85 MB of memory.
"""
MOST_TURNS_BYTES = 4 * 1024 * 1024
MOST_AT_ONCE = 1  # maximum number of recordings in memory for all browsers together
BLOCK_SECONDS = 10.0  # audio per step, which sets the delay of progress and of cancelling
BLOCK_SAMPLES = 1 << 19  # maximum samples per step over all channels, 2 MB
RATES = (8_000, 192_000)
_HEADER = struct.Struct("<Q")
SHORTEST_SECONDS = 0.005
"""Shortest message. Many shorter ones would fill the memory instead of the queue."""
AHEAD_SECONDS = 120.0  # audio further ahead of the clock does not come from a microphone
QUEUE_SECONDS = 30.0
PAUSED_SECONDS = 1800.0  # a session without audio for this time ends


@dataclass(frozen=True, slots=True)
class UploadHeader:
    """A file that a browser is about to send."""

    name: str
    size: int
    maximum: int = MOST_BYTES

    def __post_init__(self) -> None:
        if self.size < 1:
            raise UsageError(f"{self.name} is empty")
        if self.size > self.maximum:
            raise UsageError(
                f"{self.name} is too large: {self.maximum / 1e6:.0f} MB at most are measured here"
            )

    @classmethod
    def parse(
        cls, wish: Mapping[str, object], key: str, maximum: int = MOST_BYTES
    ) -> UploadHeader | None:
        """Parse the name and ``size`` of the file in a message's ``key``, or None."""
        header = wish.get(key)
        if header is None:
            return None
        fields = header if isinstance(header, dict) else {}
        name, size = fields.get("name"), fields.get("size")
        if not isinstance(name, str) or type(size) is not int:
            raise UsageError("a file needs a name and a size")
        return cls(file_name(name[-LONGEST_NAME:]) or "recording", size, maximum)


class Upload:
    """An arriving recording, followed by its turns, if any. Both stay in memory."""

    def __init__(self, recording: UploadHeader, turns: UploadHeader | None = None) -> None:
        self._announced = [header for header in (recording, turns) if header is not None]
        # memory is allocated as it is written
        self._bytes = np.empty(sum(header.size for header in self._announced), np.uint8).data
        self._came = 0

    def add(self, message: bytes) -> bool:
        """Add the next bytes, and return whether the files are complete."""
        end = self._came + len(message)
        if end > len(self._bytes):
            raise UsageError("a file is larger than announced")
        self._bytes[self._came : end] = message
        self._came = end
        return end == len(self._bytes)

    def take(self) -> list[MemoryFile]:
        """Hand over the recording and the turns, without a copy; the upload is empty afterwards."""
        content, self._bytes = self._bytes, memoryview(b"")
        files = []
        for header in self._announced:
            files.append(MemoryFile(header.name, content[: header.size]))
            content = content[header.size :]
        return files


def opened(
    recording: MemoryFile, turns: MemoryFile | None = None, *, longest_seconds: float
) -> Source:
    """Open the recording as a source; with turns, split by person."""
    source = File(recording)
    block_seconds = min(BLOCK_SECONDS, BLOCK_SAMPLES / (source.rate * source.channels))
    end_seconds = longest_seconds if source.seconds is None else None
    source = File(recording, block_seconds=block_seconds, end_seconds=end_seconds)
    if source.seconds is not None and source.seconds > longest_seconds:
        raise SourceError(
            f"{source.label} is {clock_time(source.seconds)} long: "
            f"{clock_time(longest_seconds)} at most are measured here"
        )
    if turns is None:
        return Chain([source])
    return Diarised(source, read_turns(turns, recording=recording.name), start_seconds=0.0)


class RefusedError(MonitorError):
    """A message that our page never sends. The websocket is closed."""


class BrowserMicrophone(AudioQueue):
    """Audio from a browser, in messages of 16-bit mono samples with their position.

    A message starts with the number of samples before it, as an unsigned 64-bit integer. The
    samples follow. Both are little-endian. Samples missing between two messages are a gap.
    """

    def __init__(
        self, rate: int, *, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if not RATES[0] <= rate <= RATES[1]:
            raise UsageError(f"unsupported microphone rate {rate} Hz: use {RATES[0]} to {RATES[1]}")
        super().__init__(
            rate,
            seconds=seconds,
            queue_seconds=QUEUE_SECONDS,
            label="the browser's microphone",
            stalled_seconds=PAUSED_SECONDS,
            clock=clock,
        )
        self._place = 0
        self._began = clock()

    def receive_audio(self, message: bytes) -> None:
        """Take the samples of a message; RefusedError if malformed, out of order or too fast."""
        samples, odd = divmod(len(message) - _HEADER.size, 2)
        if odd or not SHORTEST_SECONDS * self.rate <= samples <= self.rate:
            raise RefusedError("an audio message must have 5 ms to 1 s of 16-bit samples")
        (position,) = _HEADER.unpack_from(message)
        if position < self._place:
            raise RefusedError("audio messages must be in order")
        ahead = (position + samples) / self.rate - (self._clock() - self._began)
        if ahead > AHEAD_SECONDS:
            raise RefusedError("audio arrived faster than real time")
        if position > self._place:
            self.miss(position - self._place)
        self._place = position + samples
        self.put(pcm_to_float(message[_HEADER.size :], "s16le", 1))
