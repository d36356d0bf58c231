"""`Pipe` reads a WAV, or PCM without a header, from standard input.

The format is Microsoft's RIFF/WAVE with WAVE_FORMAT_EXTENSIBLE (multimedia data standards, 1991 and
2001). Programs that write to a pipe do not know its length, and write 0 or a huge number.
"""

from __future__ import annotations

import re
import struct
import sys
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from monitor.errors import SourceError, UsageError
from monitor.phrases import plural
from monitor.protocols import MOST_SAMPLES, Provenance, StreamInfo, check_format
from monitor.sources.base import BaseSource
from monitor.types import Block, FloatArray, Gap

STREAMED_BYTES = 0x7FF0_0000  # stated length from which a pipe is read to its end
ENCODINGS = {"s16le": 2, "s24le": 3, "s32le": 4, "f32le": 4}
"""Bytes per sample of each supported encoding."""
_BY_FORMAT = {(1, 16): "s16le", (1, 24): "s24le", (1, 32): "s32le", (3, 32): "f32le"}
_EXTENSIBLE = 0xFFFE
_MAGICS = (b"RIFF", b"RF64")
_ANOTHER = re.compile(rb"R(?:IFF|F64).{4}WAVE", re.DOTALL)
_ANOTHER_BYTES = 12
_ADVICE = (
    "pipe 16-bit WAV, as ffmpeg -i FILE -f wav - makes it, or name the raw format, as in "
    "--raw 16000:1:s16le"
)


@dataclass(frozen=True, slots=True)
class WavHeader:
    """Format of a WAV; ``data_bytes`` is None if samples continue to the end of the pipe."""

    rate: int
    channels: int
    encoding: str
    data_bytes: int | None

    @property
    def frame_bytes(self) -> int:
        """Bytes of one sample of every channel."""
        return self.channels * ENCODINGS[self.encoding]


def read_header(read: Callable[[int], bytes]) -> WavHeader:
    """Read a WAV header up to the first sample; raise SourceError if invalid.

    ``read`` returns the requested number of bytes, fewer only at the end of the pipe.
    """
    start = read(12)
    if not start:
        raise SourceError(f"the pipe is empty; {_ADVICE}")
    if len(start) < 12 or start[:4] not in _MAGICS or start[8:] != b"WAVE":
        raise SourceError(f"the pipe carries no WAV; {_ADVICE}")
    return _read_chunks(read)


def _read_chunks(read: Callable[[int], bytes]) -> WavHeader:
    kind: tuple[int, int, str] | None = None
    while len(chunk := read(8)) == 8:
        name, length = struct.unpack("<4sI", chunk)
        if name == b"data":
            if kind is None:
                raise SourceError(f"the WAV in the pipe does not name its format; {_ADVICE}")
            unknown = length == 0 or length >= STREAMED_BYTES
            return WavHeader(*kind, None if unknown else length)
        if name == b"fmt ":
            kind = _kind(read(min(length, 40)))
            length -= min(length, 40)
        _skip(read, length + length % 2)
    raise SourceError(f"the WAV in the pipe ends before its samples; {_ADVICE}")


def _skip(read: Callable[[int], bytes], length: int) -> int:
    """Read and drop bytes; return their number."""
    remaining = length
    while remaining > 0 and (data := read(min(remaining, 1 << 16))):
        remaining -= len(data)
    return length - remaining


def pcm_to_float(data: bytes, encoding: str, channels: int) -> FloatArray:
    """Convert PCM frames to float32, shape (n,) for one channel, otherwise (n, channels)."""
    samples: FloatArray
    if encoding == "f32le":
        samples = np.frombuffer(data, "<f4").astype(np.float32)
    elif encoding == "s16le":
        samples = np.frombuffer(data, "<i2").astype(np.float32) / np.float32(1 << 15)
    else:
        if encoding == "s24le":  # the low byte of a 32-bit sample is zero
            padded = np.zeros((len(data) // 3, 4), np.uint8)
            padded[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
            data = padded.tobytes()
        samples = np.frombuffer(data, "<i4").astype(np.float32) / np.float32(1 << 31)
    return samples if channels == 1 else samples.reshape(-1, channels)


def _kind(body: bytes) -> tuple[int, int, str]:
    if len(body) < 16:
        raise SourceError(f"the WAV in the pipe has a damaged header; {_ADVICE}")
    form, channels, rate, _, align, bits = struct.unpack("<HHIIHH", body[:16])
    if form == _EXTENSIBLE and len(body) >= 26:
        form = struct.unpack("<H", body[24:26])[0]
    encoding = _BY_FORMAT.get((form, bits))
    if encoding is None:
        raise SourceError(
            f"the WAV in the pipe is of format {form} with {bits} bits; "
            "convert it to 16, 24 or 32-bit PCM or 32-bit float"
        )
    if not channels or not rate or align != channels * ENCODINGS[encoding]:
        raise SourceError(f"the WAV in the pipe has a damaged header; {_ADVICE}")
    return rate, channels, encoding


TOLERATED_SECONDS = 0.1
NOTHING_YET_SECONDS = 0.01


class Pipe(BaseSource[Block | Gap]):
    """A WAV or raw PCM from a stream without seeking, in blocks of at most one second.

    A block is yielded as soon as its bytes arrive. An incomplete last frame is dropped.

    Args:
        stream: a binary stream, such as ``sys.stdin.buffer``.
        raw: (rate, channels, ``"s16le"`` or ``"f32le"``) for samples without a header; None for
            a WAV.

    Raises:
        SourceError: the stream is not a WAV of a supported kind, or has an absurd format.
        UsageError: ``raw`` is invalid.
    """

    label, repeatable = "-", False

    def __init__(self, stream: BinaryIO, raw: tuple[int, int, str] | None = None) -> None:
        self._raw, self._ahead = raw, b""
        self._read_some = getattr(stream, "read1", stream.read)
        if raw is None:
            self._header = read_header(self._read_exactly)
        else:
            rate, channels, encoding = raw
            if rate < 1 or channels < 1 or encoding not in ENCODINGS:
                raise UsageError(
                    f"raw={rate}:{channels}:{encoding} must be like 16000:1:s16le "
                    f"({', '.join(ENCODINGS)})"
                )
            self._header = WavHeader(rate, channels, encoding, None)
        check_format("the pipe", self._header.rate, self._header.channels)
        self.rate = self._header.rate
        self.channels = self._header.channels
        self.stream_info = StreamInfo(channels=self.channels)

    @property
    def seconds(self) -> float | None:
        """Audio seconds in the header; None if unknown."""
        if self._header.data_bytes is None:
            return None
        return self._header.data_bytes // self._header.frame_bytes / self.rate

    def provenance(self) -> tuple[Provenance, ...]:
        """Return standard input as the recording, without hashes to recognise it."""
        return (Provenance("-", raw=self._raw),)

    def items(self) -> Iterator[Block | Gap]:
        """Yield the blocks as their bytes arrive."""
        header = self._header
        while (yield from self._samples(header)):
            try:
                following = self._next_header(header)
            except (SourceError, OSError) as error:
                yield Gap("broken pipe", None, detail=f"-: {error}")
                return
            if following is None:
                return
            header = following

    def _samples(self, header: WavHeader) -> Generator[Block | Gap, None, bool]:
        """Yield the blocks of one WAV; return whether something may follow it."""
        maximum = header.frame_bytes * min(self.rate, MOST_SAMPLES // self.channels)
        pending, received = b"", 0
        reason = "the pipe ended early"
        next_wav: re.Match[bytes] | None = None
        while header.data_bytes is None or received < header.data_bytes:
            wanted = maximum - len(pending)
            if header.data_bytes is not None:
                wanted = min(wanted, header.data_bytes - received)
            try:
                data = self._some(wanted)
            except OSError as error:
                reason = str(error.strerror or error)
                if header.data_bytes is None:
                    yield Gap("broken pipe", None, detail=f"-: {reason}")
                break
            received += len(data)
            pending += data
            end = len(pending)
            if header.data_bytes is None and self._raw is None:  # another WAV may follow
                next_wav = _ANOTHER.search(pending)
                begin = pending.find(b"R", max(0, end - _ANOTHER_BYTES + 1)) if data else -1
                end = next_wav.start() if next_wav else begin if begin >= 0 else end
            complete = end - end % header.frame_bytes
            if complete:
                samples = pcm_to_float(pending[:complete], header.encoding, header.channels)
                yield Block(samples, self.rate)
            if next_wav is not None:
                self._ahead = pending[end:]
                return True
            pending = pending[complete:]
            if not data:
                break
        if header.data_bytes is None:
            return False
        lost = (header.data_bytes - received) // header.frame_bytes / self.rate
        if lost >= TOLERATED_SECONDS:
            yield Gap("broken pipe", lost, detail=f"-: {reason}")
        return received == header.data_bytes

    def _next_header(self, before: WavHeader) -> WavHeader | None:
        """Read the header of another WAV in the pipe; None at the pipe's end.

        SourceError if its format differs from the first WAV's.
        """
        read = self._read_exactly
        read((before.data_bytes or 0) % 2)
        while len(chunk := read(8)) == 8:
            name, length = struct.unpack("<4sI", chunk)
            if name in _MAGICS and read(4) == b"WAVE":
                header = _read_chunks(read)
                if (header.rate, header.channels) != (self.rate, self.channels):
                    channels = plural(header.channels, "channel")
                    raise SourceError(f"more sound follows, of {header.rate} Hz and {channels}")
                return header
            if not name.isascii() or not name.decode().isprintable():
                if _skip(read, sys.maxsize) >= TOLERATED_SECONDS * self.rate * before.frame_bytes:
                    raise SourceError("it has more bytes than its header states")
                return None
            _skip(read, length + length % 2)
        return None

    def _some(self, count: int) -> bytes:
        """Read at least one and at most ``count`` bytes; none at the end of the pipe."""
        if self._ahead:
            result, self._ahead = self._ahead[:count], self._ahead[count:]
            return result
        while (data := self._read_some(count)) is None:  # a non-blocking stream has nothing yet
            time.sleep(NOTHING_YET_SECONDS)
        return bytes(data)

    def _read_exactly(self, count: int) -> bytes:
        parts: list[bytes] = []
        while count > 0 and (data := self._some(count)):
            parts.append(data)
            count -= len(data)
        return b"".join(parts)
