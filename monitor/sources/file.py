"""`File` reads a recording in any format of libsndfile.

The code works around these properties of libsndfile, soundfile and libmpg123:

* soundfile seeks to its current position after every read. On an intact MP3 and on a damaged Ogg or
  Opus that seek changes the samples, so the decoder reports itself as not seekable.
* A read that meets a break raises, but its samples are in the buffer. A buffer filled with NaN
  beforehand shows how far the decoder came.
* libmpg123 writes its messages to file descriptor 2, past Python.
* A truncated WAV, AIFF or AU is silently shortened, and only libsndfile's log shows it. A truncated
  Ogg lacks its last page, and nothing shows it.
* Only the first of several concatenated streams is read (`find_pieces`).
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import RLock
from typing import BinaryIO

import numpy as np
import soundfile

from monitor import lazy
from monitor.contents import describe_archive, describe_foreign
from monitor.errors import SourceError, UsageError
from monitor.lazy import Managed
from monitor.phrases import plural
from monitor.protocols import MOST_SAMPLES, Provenance, StreamInfo, check_format
from monitor.safe_text import as_pipe, as_raw, as_wav, file_name, is_printable
from monitor.sources.base import BaseSource, file_hash, protection_of
from monitor.sources.sound_pieces import SoundPiece, find_pieces
from monitor.types import Block, FloatArray, Gap, round_to_16_bits
from monitor.virtual_files import Readable, VirtualFile, readable

STREAMED_BYTES = 0x7FF0_0000  # a stated length from this on comes from a pipe: length unknown
UNKNOWN_FRAMES = 1 << 60
TOLERATED_SECONDS = 0.1  # MP3 and Opus headers count padding in different ways
_REFUSALS = (soundfile.LibsndfileError, OSError, TypeError, ValueError)
_READ = "wav, flac, ogg, opus, mp3, aiff, au, w64 or caf"
OGG_PAGE_BYTES = 65_307
_RAW = (".raw", ".pcm")
_UNCOUNTED = re.compile(r"Unknown chunk marker \(\w+\) at position (\d+)\. Exiting parser")
_SEEN_BYTES = 1 << 16
_HASHED_SECONDS = 30
_HASHED_BATCH = 1 << 18  # samples of all channels
_SHORTENED = re.compile(r"^ *(?:data|SSND|Data Size|riff) *: (\d+) \(should be (\d+)\)", re.M)


class _Forward(soundfile.SoundFile):  # type: ignore[misc]
    """A sound file that is only ever read forwards."""

    def seekable(self) -> bool:
        return False


class _Window:
    """One piece of a file, after an optional header, as a file for libsndfile."""

    def __init__(self, file: BinaryIO, piece: SoundPiece, header: bytes = b"") -> None:
        self._file, self._begin, self._header = file, piece.begin, header
        self._size, self._at = len(header) + piece.end - piece.begin, 0

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = max(0, offset + (0, self._at, self._size)[whence])
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, count: int) -> bytes:
        data = self._header[self._at : self._at + count]
        self._file.seek(self._begin + max(0, self._at - len(self._header)))
        remaining = min(count, self._size - self._at) - len(data)
        data += self._file.read(max(0, remaining))
        self._at += len(data)
        return data


_ONE_AT_A_TIME = RLock()
"""Lock of file descriptor 2, which all threads of the process share."""


@contextmanager
def _silenced_stderr() -> Iterator[None]:
    """Discard what C code writes to file descriptor 2, only in the command line's processes."""
    if not lazy.own_process:
        yield
        return
    with _ONE_AT_A_TIME:
        try:
            saved = os.dup(2)
        except OSError:  # closed, so there is nothing to spoil
            yield
            return
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, 2)
            yield
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            os.close(nowhere)


class Decoder(Managed):
    """Read a recording once, from its beginning to its end or to the first break.

    SourceError if the file is missing, not a recording, or has an absurd format.
    """

    def __init__(self, path: Readable) -> None:
        self._path = path
        self._bytes, head, pieces = _opened(path)
        mp3 = path.suffix.lower() == ".mp3" or head.startswith((b"ID3", b"\xff"))
        self._quiet = _silenced_stderr if mp3 else nullcontext
        try:
            # promised: number of frames in the header, or None
            self._file, self.promised = self._open(pieces[0])
        except _REFUSALS as error:
            self._bytes.close()
            raise SourceError(_no_recording(path, head, error)) from None
        self.rate: int = self._file.samplerate
        self.channels: int = self._file.channels
        self.subtype: str = self._file.subtype
        self.comment: str = self._file.comment
        self.broken: str | None = None  # short reason why decoding stopped early, or None
        try:
            check_format(file_name(path.name), self.rate, self.channels)
        except SourceError:
            self.close()
            raise
        # description of further data that cannot be read with it; otherwise empty
        self.unread = self._uncounted(self._file, pieces[0])
        self._waiting = deque[SoundPiece]()
        for piece in pieces[1:]:
            if not self.unread:
                self._add(piece)
        # whether the file was truncated by an unknown amount
        self.unfinished = head.startswith(b"OggS") and not all(
            _ogg_is_finished(self._bytes, piece) for piece in (pieces[0], *self._waiting)
        )

    def _add(self, piece: SoundPiece) -> None:
        """Queue another piece of the same format; otherwise describe it in ``unread``."""
        try:
            file, promised = self._open(piece)
        except _REFUSALS as error:
            self.unread = f"more sound follows, which cannot be read ({_words(error)})"
            return
        rate, channels = file.samplerate, file.channels
        if (rate, channels) == (self.rate, self.channels):
            self._waiting.append(piece)
            self.unread = self._uncounted(file, piece)
            if self.promised is not None:
                self.promised = None if promised is None else self.promised + promised
        else:
            self.unread = f"more sound follows, of {rate} Hz and {plural(channels, 'channel')}"
        with self._quiet():
            file.close()

    def _open(self, piece: SoundPiece) -> tuple[_Forward, int | None]:
        """Open a piece; return it with the number of frames in its header, or None."""
        if (piece.begin, piece.end) != (0, self._bytes.seek(0, os.SEEK_END)):
            input_file: object = _Window(self._bytes, piece)
        elif isinstance(self._path, VirtualFile):
            input_file = self._path.open()
        else:  # on POSIX systems the bytes of a name need not be UTF-8
            input_file = os.fsencode(self._path) if os.name == "posix" else os.fspath(self._path)
        with self._quiet():
            file = _Forward(input_file)
            if piece.samples is None:
                return file, _promise(file)
            if file.frames < piece.samples - TOLERATED_SECONDS * file.samplerate:
                file.close()
                file = _Forward(_Window(self._bytes, piece, piece.header))
            return file, min(file.frames, piece.samples)

    def _uncounted(self, file: _Forward, piece: SoundPiece) -> str:
        """Describe further bytes after the samples in a WAV's header, or return an empty text."""
        if (end := _UNCOUNTED.search(file.extra_info)) is None:
            return ""
        self._bytes.seek(piece.begin + int(end[1]))
        remaining = piece.end - self._bytes.tell()
        is_short = remaining < TOLERATED_SECONDS * file.samplerate * file.channels
        is_padding = not any(self._bytes.read(_SEEN_BYTES))
        return "" if is_short or is_padding else "it has more bytes than its header states"

    def read(self, frames: int) -> FloatArray:
        """Read the next samples, (n, channels) float32, at most ``frames``; empty at the end.

        A call returns at most `MOST_SAMPLES` samples over all channels.
        """
        frames = min(frames, MOST_SAMPLES // self.channels)
        samples = np.full((frames, self.channels), np.nan, dtype=np.float32)
        if self.broken is not None:
            return samples[:0]
        try:
            with self._quiet():
                got = self._file.read(out=samples)
                while not len(got) and self._waiting:
                    self._file.close()
                    self._file, _ = self._open(self._waiting.popleft())
                    got = self._file.read(out=samples)
        except _REFUSALS as error:
            self.broken = _words(error)
            written = np.flatnonzero(~np.isnan(samples).any(axis=1))
            got = samples[: int(written[-1]) + 1 if len(written) else 0]
        result: FloatArray = got
        return result

    def close(self) -> None:
        """Close the file."""
        with self._quiet():
            self._file.close()
        self._bytes.close()


def _promise(file: _Forward) -> int | None:
    frames: int = file.frames
    if frames >= UNKNOWN_FRAMES or frames < 0:
        return None
    shortened = _SHORTENED.search(file.extra_info)
    if shortened and frames:
        stated, actual = int(shortened[1]), int(shortened[2])
        if stated >= STREAMED_BYTES:
            return frames
        if stated > actual > 0:
            return frames + round((stated - actual) * frames / actual)
    return frames


def _no_recording(path: Readable, head: bytes, error: Exception) -> str:
    """Explain why libsndfile cannot open a file, and suggest a remedy."""
    name, suffix = file_name(path.name), path.suffix.lower()
    # libsndfile reports any failure of libmpg123 as a missing file
    words = "no sound that can be decoded" if "does not exist" in str(error) else _words(error)
    if _is_text(head):
        words = "it is text"
    text = f"{name} is not a readable recording ({words}): use a {_READ} file"
    if isinstance(path, VirtualFile) or _is_text(head):
        return text
    if suffix in _RAW:
        return (
            f"{name} is not a recording with a header. Give its sample format: {as_raw(path)}  (to "
            f"enrol it, first {as_wav(path, '-f s16le -ar 16000 -ac 1 ')})"
        )
    is_film = head[4:8] == b"ftyp" or head.startswith((b"\x1aE\xdf\xa3", b"0&\xb2u"))
    is_supported = not is_film and suffix[1:] in _READ.replace(",", "").split()
    if is_supported and not head.startswith(b"OggS"):  # Ogg may contain FLAC or Speex
        return text
    return f"{text}, or try {as_pipe(path)}  (to enrol it, first {as_wav(path)})"


def _opened(path: Readable) -> tuple[BinaryIO, bytes, list[SoundPiece]]:
    """Open a regular file; return it with its first bytes and its pieces."""
    try:
        if isinstance(path, Path) and not stat.S_ISREG(path.stat().st_mode):
            kind = "a folder" if path.is_dir() else "not a plain file"
            raise SourceError(
                f"{file_name(path) or path} is {kind}: use a recording, or - for a pipe"
            )
        file = path.open("rb")
        try:
            head = file.read(512)
            if reason := describe_archive(path.name) or describe_foreign(
                head, markup=_is_text(head)
            ):
                raise SourceError(f"{file_name(path.name)} {reason}")
            pieces = find_pieces(file)
        except BaseException:
            file.close()
            raise
    except (OSError, ValueError) as error:
        advice = "its permissions" if isinstance(error, PermissionError) else "the name"
        raise SourceError(
            f"cannot open {file_name(path.name)} ({_words(error)}): check {advice}"
        ) from None
    if not head:
        file.close()
        raise SourceError(f"{file_name(path.name)} is empty; record it again or leave it out")
    return file, head, pieces


def _is_text(head: bytes) -> bool:
    text = head.decode(errors="replace")[:-1]  # the last character may be incomplete
    return "\ufffd" not in text and is_printable(" ".join(text.split()))


def _words(error: Exception) -> str:
    text = getattr(error, "error_string", None) or getattr(error, "strerror", None) or str(error)
    return " ".join(str(text).split()).removeprefix("Error : ").rstrip(".")


def _ogg_is_finished(file: BinaryIO, piece: SoundPiece) -> bool:
    """Return whether the last Ogg page is complete and marked as last (RFC 3533, section 6)."""
    file.seek(max(piece.begin, piece.end - 2 * OGG_PAGE_BYTES))
    tail = file.read(piece.end - file.tell())
    page = tail.rfind(b"OggS")
    if page < 0 or len(tail) < page + 27:
        return False
    segments = tail[page + 27 : page + 27 + tail[page + 26]]
    is_complete = len(tail) >= page + 27 + tail[page + 26] + sum(segments)
    return is_complete and bool(tail[page + 5] & 4)


def audio_hashes(path: Readable) -> tuple[str, ...]:
    """Return the hash of a file's bytes and, if it is audio, the hash of its samples.

    The second hash covers rate, channels, frame count and the first 30 s at 16 bits.
    """
    hashes = (file_hash(path),)
    try:
        decoder = Decoder(path)
    except SourceError:
        return hashes
    digest = hashlib.sha256()
    with decoder:
        frames = 0
        while frames < _HASHED_SECONDS * decoder.rate:
            remaining = _HASHED_SECONDS * decoder.rate - frames
            samples = decoder.read(min(_HASHED_BATCH // decoder.channels, remaining))
            if not len(samples):
                break
            frames += len(samples)
            finite = np.nan_to_num(samples.astype(np.float64), posinf=1.0, neginf=-1.0)
            digest.update(round_to_16_bits(finite).tobytes())
        if not frames:
            return hashes
        count = decoder.promised
        if count is None:  # not in the header: count
            while read := len(decoder.read(10 * decoder.rate)):
                frames += read
            count = frames
        digest.update(f"{decoder.rate} {decoder.channels} {count}".encode())
    return (*hashes, f"audio:{digest.hexdigest()}")


class File(BaseSource[Block | Gap]):
    """A recording on disk, in any format that libsndfile reads.

    Blocks have float32 samples. A damaged file yields everything before the damage, then one `Gap`.
    Decoding always starts at the beginning, because seeking in a compressed file is not exact to
    the sample.

    Args:
        path: the file, or a virtual file, which is never written to disk.
        recording: index of the recording for its blocks.
        start_seconds, end_seconds: part to read; None for the end of the file.
        block_seconds: maximum length of a block. Readings in one block are computed together, with
            the same result.

    Raises:
        SourceError: the file is missing, unreadable, empty or not a recording.
        UsageError: the interval or the block length is invalid.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | VirtualFile,
        recording: int = 0,
        start_seconds: float = 0.0,
        end_seconds: float | None = None,
        block_seconds: float = 30.0,
    ) -> None:
        if not 0 < block_seconds <= 3600:
            raise UsageError(f"block_seconds={block_seconds} must lie between 0 and 3600")
        if not 0 <= start_seconds < math.inf:
            raise UsageError(f"start_seconds={start_seconds} must be zero or more")
        if end_seconds is not None and not start_seconds < end_seconds < math.inf:
            raise UsageError(f"end_seconds={end_seconds} must be later than start_seconds")
        self.path = readable(path)
        self.start_seconds, self.end_seconds = start_seconds, end_seconds
        self.label = file_name(self.path.name)
        self._recording = recording
        self._provenance: Provenance | None = None
        with Decoder(self.path) as decoder:
            self.rate = decoder.rate
            self.channels = decoder.channels
            self.subtype = decoder.subtype
            promised = decoder.promised
            protection = protection_of(decoder.comment)
        self.stream_info = StreamInfo(
            channels=self.channels,
            cut=end_seconds is not None,
            protected=(f"{self.label} was {protection}",) if protection else (),
        )
        if promised == 0:
            raise SourceError(
                f"{self.label} has no audio according to its header. If it does, pipe it in as -"
            )
        self._start = round(start_seconds * self.rate)
        self._end = None if end_seconds is None else round(end_seconds * self.rate)
        self._promised = promised
        if promised is not None and self._end is not None:
            self._promised = min(promised, self._end)
        self._frames = max(1, round(block_seconds * self.rate))
        if promised is not None and self._start >= promised:
            raise SourceError(
                f"{self.label} ends at {promised / self.rate:.2f} s; start before that"
            )

    @property
    def seconds(self) -> float | None:
        """Audio seconds between start and end, from the header; None if unknown."""
        if self._promised is None:
            return None
        return (self._promised - self._start) / self.rate

    def provenance(self) -> tuple[Provenance, ...]:
        """Return the recording and its part. The first call reads the whole file."""
        if self._provenance is None:
            hashes = audio_hashes(self.path)
            self._provenance = Provenance(self.label, hashes, self.start_seconds, self.end_seconds)
        return (self._provenance,)

    def blocks(self) -> Iterator[Block]:
        """Yield the whole recording; SourceError if it is damaged."""
        for block in self:
            if not isinstance(block, Block):
                raise SourceError(block.detail or f"{self.label}: {block.reason}")
            yield block

    def items(self) -> Iterator[Block | Gap]:
        """Yield the blocks, then a gap if audio was lost at the end."""
        with Decoder(self.path) as decoder:
            position = 0
            while self._end is None or position < self._end:
                remaining = self._frames if self._end is None else self._end - position
                samples = decoder.read(min(self._frames, remaining))
                if not len(samples):
                    break
                selected = samples[max(0, self._start - position) :]
                position += len(samples)
                if len(selected):
                    selected = selected[:, 0] if self.channels == 1 else selected
                    yield Block(selected, self.rate, self._recording)
            yield from self._loss(decoder, position)

    def _loss(self, decoder: Decoder, position: int) -> Iterator[Gap]:
        if self._end is not None and position >= self._end:
            return
        lost = None
        if self._promised is not None:
            lost = max(0.0, (self._promised - max(position, self._start)) / self.rate)
        reason = decoder.broken
        if reason is None and lost is not None and lost >= TOLERATED_SECONDS:
            reason = "parts are damaged or missing"
        if reason is None and decoder.unfinished:
            reason, lost = "cut off before its last page", None
        if reason is None and decoder.unread:
            reason, lost = decoder.unread, None
        if reason is not None:
            detail = f"{self.label}: ends after {position / self.rate:.2f} s ({reason})"
            yield Gap("broken file", lost, self._recording, detail)
