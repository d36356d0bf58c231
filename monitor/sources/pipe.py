"""A WAV, or PCM without a header, from standard input as a source."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import BinaryIO

from monitor.audio_limits import MOST_SAMPLES
from monitor.brings import Brings
from monitor.errors import UsageError
from monitor.managed import Managed
from monitor.sources.header_check import check_format
from monitor.sources.provenance import Provenance
from monitor.sources.wav import ENCODINGS, WavHeader, pcm_to_float, read_header
from monitor.types import Block, Gap

__all__ = ["Pipe"]

TOLERATED_SECONDS = 0.1
NOTHING_YET_SECONDS = 0.01


class Pipe(Managed):
    """A WAV or raw PCM from a stream that cannot be seeked in, as blocks of at most one second.

    Blocks come as soon as their bytes do. A last frame that is not whole is dropped.

    Args:
        stream: a binary stream, such as ``sys.stdin.buffer``.
        raw: (rate, channels, ``"s16le"`` or ``"f32le"``) for samples without a header; None for
            a WAV.

    Attributes:
        label: ``"-"``.
        provenance: that it is standard input, which nobody can know again.
        rate: samples per second.
        channels: channels a frame.
        seconds: audio seconds promised; None for raw PCM and for a WAV that was itself piped.

    Raises:
        SourceError: this is no WAV of a kind that is understood, or one of an absurd format.
        UsageError: ``raw`` makes no sense.

    Example:
        >>> import io
        >>> source = Pipe(io.BytesIO(bytes(6401)), raw=(16000, 1, "s16le"))
        >>> [len(block.samples) for block in source]
        [3200]
    """

    def __init__(self, stream: BinaryIO, raw: tuple[int, int, str] | None = None) -> None:
        self.label = "-"
        self.provenance = (Provenance("-", raw=raw),)
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
        self.brings = Brings(channels=self.channels)

    @property
    def seconds(self) -> float | None:
        """Audio seconds promised by the header."""
        if self._header.data_bytes is None:
            return None
        return self._header.data_bytes // self._header.frame_bytes / self.rate

    def __iter__(self) -> Iterator[Block | Gap]:
        header = self._header
        most = header.frame_bytes * min(self.rate, MOST_SAMPLES // self.channels)
        kept, heard = b"", 0
        why = "the pipe ended early"
        while header.data_bytes is None or heard < header.data_bytes:
            left = most - len(kept)
            if header.data_bytes is not None:
                left = min(left, header.data_bytes - heard)
            try:
                data = self._some(left)
            except OSError as error:
                why = str(error.strerror or error)
                if header.data_bytes is None:
                    yield Gap("broken pipe", None, detail=f"-: {why}")
                break
            if not data:
                break
            heard += len(data)
            kept += data
            whole = len(kept) - len(kept) % header.frame_bytes
            if whole:
                samples = pcm_to_float(kept[:whole], header.encoding, header.channels)
                kept = kept[whole:]
                yield Block(samples, self.rate)
        if header.data_bytes is not None:
            lost = (header.data_bytes - heard) // header.frame_bytes / self.rate
            if lost >= TOLERATED_SECONDS:
                yield Gap("broken pipe", lost, detail=f"-: {why}")

    def _some(self, count: int) -> bytes:
        """At least one byte and at most that many; none at the end of the pipe."""
        while (data := self._read_some(count)) is None:  # a non-blocking stream has nothing yet
            time.sleep(NOTHING_YET_SECONDS)
        result: bytes = data
        return result

    def _read_exactly(self, count: int) -> bytes:
        """That many bytes, fewer only at the end of the pipe."""
        parts: list[bytes] = []
        while count > 0 and (data := self._some(count)):
            parts.append(data)
            count -= len(data)
        return b"".join(parts)
