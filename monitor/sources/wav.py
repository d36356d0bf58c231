"""The header of a WAV that cannot be seeked in, and PCM samples as floats.

Microsoft's RIFF/WAVE with WAVE_FORMAT_EXTENSIBLE (multimedia data standards, 1991 and 2001). A
program that writes to a pipe cannot know the length and puts 0 or something huge there.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from monitor.errors import SourceError
from monitor.types import FloatArray

__all__ = ["ENCODINGS", "WavHeader", "pcm_to_float", "read_header"]

STREAMED_BYTES = 0x7FF0_0000  # this long or longer: written to a pipe, read to its end
ENCODINGS = {"s16le": 2, "s24le": 3, "s32le": 4, "f32le": 4}
"""Bytes a sample of each encoding understood."""
_BY_FORMAT = {(1, 16): "s16le", (1, 24): "s24le", (1, 32): "s32le", (3, 32): "f32le"}
_EXTENSIBLE = 0xFFFE
_ADVICE = (
    "pipe 16-bit WAV, as ffmpeg -i FILE -f wav - makes it, or name the raw format, as in "
    "--raw 16000:1:s16le"
)


@dataclass(frozen=True, slots=True)
class WavHeader:
    """What a header promises.

    Attributes:
        rate: samples per second.
        channels: channels a frame.
        encoding: a key of `ENCODINGS`.
        data_bytes: bytes of audio that follow, None where they run to the end of the pipe.
    """

    rate: int
    channels: int
    encoding: str
    data_bytes: int | None

    @property
    def frame_bytes(self) -> int:
        """Bytes of one sample of every channel."""
        return self.channels * ENCODINGS[self.encoding]


def read_header(read: Callable[[int], bytes]) -> WavHeader:
    """The header of a WAV, leaving the pipe at its first sample.

    Args:
        read: gives exactly that many bytes, fewer only at the end of the pipe.

    Raises:
        SourceError: this is no WAV, or one of a kind that is not understood.
    """
    start = read(12)
    if not start:
        raise SourceError(f"nothing came through the pipe; {_ADVICE}")
    if len(start) < 12 or start[:4] not in {b"RIFF", b"RF64"} or start[8:] != b"WAVE":
        raise SourceError(f"the pipe carries no WAV; {_ADVICE}")
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


def pcm_to_float(data: bytes, encoding: str, channels: int) -> FloatArray:
    r"""Whole frames of PCM as float32, shape (n,) for one channel, else (n, channels).

    Example:
        >>> pcm_to_float(b"\x00\x40\x00\xc0", "s16le", 1).tolist()
        [0.5, -0.5]
    """
    samples: FloatArray
    if encoding == "f32le":
        samples = np.frombuffer(data, "<f4").astype(np.float32)
    elif encoding == "s16le":
        samples = np.frombuffer(data, "<i2").astype(np.float32) / np.float32(1 << 15)
    else:
        if encoding == "s24le":  # the low byte of a 32-bit sample is zero
            wide = np.zeros((len(data) // 3, 4), np.uint8)
            wide[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
            data = wide.tobytes()
        samples = np.frombuffer(data, "<i4").astype(np.float32) / np.float32(1 << 31)
    return samples if channels == 1 else samples.reshape(-1, channels)


def _kind(body: bytes) -> tuple[int, int, str]:
    """Rate, channels and encoding of a ``fmt`` chunk."""
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


def _skip(read: Callable[[int], bytes], count: int) -> None:
    """Read over bytes that are of no interest, a little at a time."""
    while count > 0 and (data := read(min(count, 1 << 16))):
        count -= len(data)
