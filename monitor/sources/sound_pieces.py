"""Streams of sound in a file: chained Ogg, and MPEG audio between tags."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from itertools import pairwise
from typing import BinaryIO, NamedTuple

_SCANNED_BYTES = 1 << 20
_BEGINS = {  # by first bytes: pattern of a stream's beginning, and its length
    magic: (re.compile(pattern, re.DOTALL), size)
    for magics, pattern, size in (
        ((b"RIFF", b"RF64", b"RIFX"), rb"R(?:IFF|F64|IFX).{4}WAVE[ -~]{4}", 16),
        ((b"FORM",), rb"FORM.{4}AIF[FC]", 12),
        ((b"fLaC",), rb"fLaC[\x00\x80]\x00\x00\x22", 8),
        ((b"OggS",), rb"OggS\x00[\x02\x03\x06\x07]\x00{8}.{4}\x00{4}", 22),
        ((b".snd",), rb"\.snd\x00\x00.{6}\x00\x00\x00[\x01-\x1b]\x00.{3}\x00\x00\x00.", 24),
        ((b"riff",), rb"riff\x2e\x91\xcf\x11\xa5\xd6\x28\xdb\x04\xc1\x00\x00", 16),
        ((b"caff",), rb"caff\x00\x01\x00\x00desc", 12),
    )
    for magic in magics
}


@dataclass(frozen=True, slots=True)
class SoundPiece:
    """One stream of a file, bytes ``begin`` to ``end``.

    ``samples`` is the number per channel if frames had to be counted, otherwise None. If set,
    ``header`` precedes the bytes and states it for the decoder.
    """

    begin: int
    end: int
    samples: int | None = None
    header: bytes = field(default=b"", repr=False)


def find_pieces(file: BinaryIO) -> list[SoundPiece]:
    """Return the streams of a file in order; one with all bytes if the format is unknown."""
    size = file.seek(0, io.SEEK_END)
    sound = _skip_tags(file, 0)
    magic = _read(file, sound, 4)
    if magic in _BEGINS:
        begins = list(_scan(file, *_BEGINS[magic]))
        if magic == b"OggS":
            begins = _of_links(file, begins)
        bounds = [0, *(begin for begin in begins if begin > sound), size]
        return [SoundPiece(*bound) for bound in pairwise(bounds)]
    is_mpeg = sound > 0 or _SYNC.match(magic)
    return (_of_mpeg(file, size) if is_mpeg else []) or [SoundPiece(0, size)]


def _read(file: BinaryIO, at: int, count: int) -> bytes:
    file.seek(at)
    return file.read(count)


def _skip_tags(file: BinaryIO, at: int) -> int:
    """Find the end of the ID3 and APE tags that begin at this byte."""
    while True:
        head = _read(file, at, 16)
        if head.startswith(b"ID3") and len(head) == 16:
            sevens = (byte & 0x7F for byte in head[6:10])
            at += 10 + reduce(lambda length, seven: length << 7 | seven, sevens)
        elif head.startswith(b"TAG"):
            at += 128
        elif head.startswith(b"APETAGEX"):
            at += 32 + int.from_bytes(head[12:16], "little")
        else:
            return at


def _scan(file: BinaryIO, pattern: re.Pattern[bytes], size: int) -> Iterator[int]:
    file.seek(0)
    at, tail = 0, b""
    while data := file.read(_SCANNED_BYTES):
        data = tail + data
        for match in pattern.finditer(data):
            yield at + match.start()
        tail = data[1 - size :]
        at += len(data) - len(tail)


def _of_links(file: BinaryIO, begins: list[int]) -> list[int]:
    """Select the first page of each Ogg link. Multiplexed streams begin with adjacent pages."""
    links, row_end = list[int](), -1
    for at in begins:
        if at != row_end:
            links.append(at)
        head = _read(file, at, 27 + 255)
        row_end = at + 27 + head[26] + sum(head[27 : 27 + head[26]]) if len(head) > 26 else -1
    return links


_SYNC = re.compile(rb"\xff[\xe2\xe3\xf2\xf3\xfa\xfb]")  # of layer III
_KIND = 0xFFFE_0C00  # version, layer and sampling rate, constant in a stream
_HERTZ = (44_100, 48_000, 32_000)
_KILOBITS = (
    (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),  # of MPEG-1
)
_ROOMY = 9  # index of a bit rate with room for a Xing header in each frame
_UNPROTECTED = 1 << 16
_HEAD_BYTES = 64


class _Frame(NamedTuple):
    """The header of an MP3 frame; ``side`` bytes precede a Xing header."""

    word: int
    kind: tuple[int, bool]
    size: int
    samples: int
    side: int

    def promised(self, head: bytes) -> int | None:
        """Return the number of frames in a Xing or VBRI header; 0 if unclear, None without one."""
        for side in (self.side, self.side + 2):  # with a checksum
            name, flags, frames = (head[4 + side + i : 8 + side + i] for i in (0, 4, 8))
            if name in (b"Xing", b"Info"):
                return int.from_bytes(frames) if int.from_bytes(flags) & 1 else 0
        return 0 if head[36:40] == b"VBRI" else None

    def header(self, frames: int) -> bytes:
        """Make a frame that states the number of following frames, like Xing's encoder."""
        word = self.word & ~(0xF << 12 | 1 << 9) | _ROOMY << 12 | _UNPROTECTED
        head = word.to_bytes(4) + bytes(self.side) + b"Xing\0\0\0\1" + frames.to_bytes(4)
        roomy = _frame(head[:4])
        return head.ljust(roomy.size, b"\0") if roomy else b""


@lru_cache
def _frame(head: bytes) -> _Frame | None:
    """Parse the frame header of four bytes, or return None."""
    word = int.from_bytes(head)
    version, bits, rate = word >> 19 & 3, word >> 12 & 15, word >> 10 & 3
    if len(head) < 4 or not _SYNC.match(head) or bits in (0, 15) or rate == 3:
        return None
    first, mono = version == 3, word >> 6 & 3 == 3
    hertz = _HERTZ[rate] >> (0 if first else 1 if version == 2 else 2)
    samples = 1152 if first else 576
    size = 125 * samples * _KILOBITS[first][bits] // hertz + (word >> 9 & 1)
    side = (17 if mono else 32) if first else (9 if mono else 17)
    return _Frame(word, (word & _KIND, mono), size, samples, side)


@dataclass(slots=True)
class _Stream:
    """Consecutive frames of one kind; ``promised`` is the number in their header, or None."""

    first: _Frame
    begin: int
    promised: int | None
    frames: int = 0


def _of_mpeg(file: BinaryIO, size: int) -> list[SoundPiece]:
    """Split an MP3 into streams at tags, headers, and changes of rate or channels."""
    streams = list[_Stream]()
    for begin, tagged, frame, promised in _mpeg_frames(file, size):
        is_new = (
            not streams or tagged or promised is not None or frame.kind != streams[-1].first.kind
        )
        if is_new:
            streams.append(_Stream(frame, begin, promised))
        streams[-1].frames += promised is None
    streams = [stream for stream in streams if stream.frames]
    pieces = list[SoundPiece]()
    for number, stream in enumerate(streams):
        begin = stream.begin
        end = streams[number + 1].begin if number + 1 < len(streams) else size
        if stream.promised is not None and stream.frames <= stream.promised:
            pieces.append(SoundPiece(begin if number else 0, end))
            continue
        if stream.promised is not None:  # the header states fewer frames than there are
            begin += stream.first.size
        samples = stream.frames * stream.first.samples
        pieces.append(SoundPiece(begin, end, samples, stream.first.header(stream.frames)))
    return pieces


def _mpeg_frames(file: BinaryIO, size: int) -> Iterator[tuple[int, bool, _Frame, int | None]]:
    """Yield each complete frame: begin, whether tags precede it, the frame, and its promise."""
    at, kind, tagged = 0, None, False
    while at < size:
        head = _read(file, at, _HEAD_BYTES)
        frame = _frame(head[:4])
        if frame is None and (end := _skip_tags(file, at)) > at:
            at, tagged = end, True
        elif frame is None or (kind != frame.kind and not _goes_on(file, at, frame, size)):
            at = _next_frame(file, at + 1, size)
        elif at + frame.size > size:
            break
        else:
            yield at, tagged, frame, frame.promised(head)
            at, kind, tagged = at + frame.size, frame.kind, False


def _goes_on(file: BinaryIO, begin: int, frame: _Frame, size: int) -> bool:
    """Return whether a frame of this kind, tags or the file's end follow a frame."""
    end = begin + frame.size
    following = _frame(_read(file, end, 4))
    if following is not None:
        return following.kind == frame.kind
    return end == size or _skip_tags(file, end) > end


def _next_frame(file: BinaryIO, at: int, size: int) -> int:
    """Find the next frame that is followed by another one, otherwise the end."""
    while at < size:
        data = _read(file, at, _SCANNED_BYTES)
        for match in _SYNC.finditer(data):
            frame = _frame(data[match.start() : match.start() + 4])
            if frame is not None and _goes_on(file, at + match.start(), frame, size):
                return at + match.start()
        at += max(len(data) - 3, 1)
    return size
