"""One decoder over libsndfile that gives the same samples for any block size.

What had to be found out about libsndfile, soundfile and libmpg123:

* soundfile seeks to where it already is after every read. On an intact MP3 and on a damaged Ogg
  or Opus that seek changes the samples, so the decoder calls itself not seekable.
* The read that meets a break raises and its samples seem lost. They are not: they lie in the
  buffer, so a buffer filled with NaN beforehand shows how far the decoder came.
* libmpg123 writes its complaints to file descriptor 2, past Python.
* A truncated WAV, AIFF or AU is silently shortened; only libsndfile's log tells. A truncated Ogg
  lacks its last page; nothing tells.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import RLock

import numpy as np
import soundfile

from monitor.audio_limits import MOST_SAMPLES
from monitor.errors import SourceError
from monitor.managed import Managed
from monitor.safe_text import as_pipe, as_wav, file_name
from monitor.sources.header_check import check_format
from monitor.types import FloatArray

__all__ = ["Decoder"]

STREAMED_BYTES = 0x7FF0_0000  # a header as long as this was written to a pipe: length unknown
UNKNOWN_FRAMES = 1 << 60
_READ = "wav, flac, ogg, opus, mp3, aiff, au, w64 or caf"
OGG_PAGE_BYTES = 65_307
_SHORTENED = re.compile(r"^ *(?:data|SSND|Data Size|riff) *: (\d+) \(should be (\d+)\)", re.M)


class _Forward(soundfile.SoundFile):  # type: ignore[misc]
    """A sound file that is only ever read forwards."""

    def seekable(self) -> bool:
        return False


_ONE_AT_A_TIME = RLock()
"""Descriptors are the process's: of two at once, the later one would keep what the earlier put."""


@contextmanager
def _silenced_stderr() -> Iterator[None]:
    """Send what C code writes to file descriptor 2 nowhere; other threads wait for their turn."""
    with _ONE_AT_A_TIME:
        try:
            kept = os.dup(2)
        except OSError:  # closed: nothing can be spoilt
            yield
            return
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, 2)
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            os.close(nowhere)


class Decoder(Managed):
    """Reads a recording once, from its beginning to its end or to where it breaks.

    Args:
        path: a file in any format that libsndfile reads.

    Attributes:
        rate: samples per second.
        channels: channels a frame.
        promised: frames that the header promises, None where it does not say.
        unfinished: the file was cut off and nobody can know how much is missing.
        broken: why decoding stopped early, in a few words; None while it has not.

    Raises:
        SourceError: there is no such file, it is no recording, or one of an absurd format.
    """

    def __init__(self, path: Path) -> None:
        head = _opened(path)
        mp3 = path.suffix.lower() == ".mp3" or head.startswith((b"ID3", b"\xff"))
        self._quiet = _silenced_stderr if mp3 else nullcontext
        try:
            with self._quiet():
                self._file = _Forward(_as_given(path))
        except (soundfile.LibsndfileError, OSError, TypeError, ValueError) as error:
            ffmpeg = f"; or try {as_pipe(path)}  (to enrol it: {as_wav(path)})"
            known = path.suffix.lower()[1:] in _READ.replace(",", "").split()
            raise SourceError(
                f"{file_name(path)} is no recording ({_words(error)}); give a {_READ} file"
                f"{'' if known or _is_text(head) else ffmpeg}"
            ) from None
        self.rate: int = self._file.samplerate
        self.channels: int = self._file.channels
        try:
            check_format(file_name(path), self.rate, self.channels)
        except SourceError:
            self.close()
            raise
        self.promised = self._promise()
        self.unfinished = head.startswith(b"OggS") and not _ogg_is_finished(path)
        self.broken: str | None = None

    def read(self, frames: int) -> FloatArray:
        """The next samples, shape (n, channels) float32: at most ``frames``, none at the end.

        Of many channels fewer come at one go: `MOST_SAMPLES` in all.
        """
        frames = min(frames, MOST_SAMPLES // self.channels)
        samples = np.full((frames, self.channels), np.nan, dtype=np.float32)
        if self.broken is not None:
            return samples[:0]
        try:
            with self._quiet():
                got = self._file.read(out=samples)
        except (soundfile.LibsndfileError, OSError) as error:
            self.broken = _words(error)
            written = np.flatnonzero(~np.isnan(samples).any(axis=1))
            got = samples[: int(written[-1]) + 1 if len(written) else 0]
        result: FloatArray = got
        return result

    def close(self) -> None:
        """Close the file."""
        with self._quiet():
            self._file.close()

    def _promise(self) -> int | None:
        frames: int = self._file.frames
        if frames >= UNKNOWN_FRAMES or frames < 0:
            return None
        shortened = _SHORTENED.search(self._file.extra_info)
        if shortened and frames:
            said, found = int(shortened[1]), int(shortened[2])
            if said >= STREAMED_BYTES:
                return frames
            if said > found > 0:
                return frames + round((said - found) * frames / found)
        return frames


def _opened(path: Path) -> bytes:
    """The first bytes of a regular file, or a plain word about why there are none."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            what = "a folder" if path.is_dir() else "not a plain file"
            raise SourceError(
                f"{file_name(path) or path} is {what}; give a recording, or - for a pipe"
            )
        with path.open("rb") as file:
            head = file.read(512)
    except (OSError, ValueError) as error:
        raise SourceError(
            f"cannot open {file_name(path)}: {_words(error)}; check the name"
        ) from None
    if not head:
        raise SourceError(f"{file_name(path)} is empty; record it again or leave it out")
    return head


def _as_given(path: Path) -> str | bytes:
    """A name as libsndfile takes it; on POSIX systems its bytes need not be UTF-8."""
    return os.fsencode(path) if os.name == "posix" else os.fspath(path)


def _is_text(head: bytes) -> bool:
    """Whether a file begins like words."""
    text = head.decode(errors="replace")[:-1]  # the last character may have been cut in two
    return "\ufffd" not in text and all(c.isprintable() or c.isspace() for c in text)


def _words(error: Exception) -> str:
    """What a library said, without its paths, prefixes and line ends."""
    text = getattr(error, "error_string", None) or getattr(error, "strerror", None) or str(error)
    return " ".join(str(text).split()).removeprefix("Error : ").rstrip(".")


def _ogg_is_finished(path: Path) -> bool:
    """Whether the last Ogg page is whole and says that it is the last (RFC 3533, section 6)."""
    with path.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - 2 * OGG_PAGE_BYTES))
        tail = file.read()
    page = tail.rfind(b"OggS")
    if page < 0 or len(tail) < page + 27:
        return False
    segments = tail[page + 27 : page + 27 + tail[page + 26]]
    whole = len(tail) >= page + 27 + tail[page + 26] + sum(segments)
    return whole and bool(tail[page + 5] & 4)
