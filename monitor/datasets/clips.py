"""Parts of a recording, joined to a separate recording in memory."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from monitor.errors import SourceError
from monitor.safe_text import file_name
from monitor.types import FloatArray
from monitor.virtual_files import VirtualFile

TOLERATED_SECONDS = 0.1  # manifests round, and count the padding of MP3 and Opus
_MOST_BYTES = (1 << 32) - 64  # of the samples in a WAV
_BATCH_SECONDS = 30.0
_FLOAT = 3


@dataclass(frozen=True, slots=True)
class Clip(VirtualFile):
    """Stretches of some channels of a recording, end to end, as a WAV in memory."""

    file: Path  # the recording
    # begin and end of each, in seconds; they are in order and do not overlap
    stretches: tuple[tuple[float, float], ...]
    channels: tuple[int, ...] | None = None  # from 0; None takes all of them

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name of the file, and which part of it this is."""
        begin, end = self.stretches[0][0], self.stretches[-1][1]
        channels = "" if self.channels is None else f"-ch{'+'.join(map(str, self.channels))}"
        return f"{self.file.stem}{channels}@{begin:.7g}-{end:.7g}.wav"

    @property
    def span(self) -> tuple[float, float]:
        """Begin of the first and end of the last stretch, in seconds."""
        return self.stretches[0][0], self.stretches[-1][1]

    @property
    def seconds(self) -> float:
        """Seconds of all stretches."""
        return math.fsum(end - begin for begin, end in self.stretches)

    def content(self) -> bytes:
        """Return the WAV; SourceError if the recording lacks some of it."""
        return _cut(self)

    def files(self) -> tuple[Path, ...]:
        """Return the recording."""
        return (self.file,)

    def origin(self) -> Path:
        """Return the recording."""
        return self.file

    def absolute(self) -> Clip:
        """Return the same, found from any working folder."""
        return replace(self, file=self.file.absolute())


def join_stretches(stretches: Iterable[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Sort stretches and join those that touch, so that no audio counts twice.

    Example:
        >>> join_stretches([(5.0, 7.0), (0.0, 1.0), (6.0, 8.0)])
        ((0.0, 1.0), (5.0, 8.0))
    """
    joined: list[tuple[float, float]] = []
    for begin, end in sorted(stretches):
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((begin, end))
    return tuple(joined)


@lru_cache(maxsize=2)  # a recording is opened several times: for its header, its hashes, its sound
def _cut(clip: Clip) -> bytes:
    # imported when sound is read: a corpus can be listed without libsndfile
    from monitor.sources.file import Decoder

    with Decoder(clip.file) as decoder:
        rate, channels = decoder.rate, clip.channels
        if channels is not None and max(channels) >= decoder.channels:
            raise SourceError(
                f"{file_name(clip.file)} has {decoder.channels} channels, and no channel "
                f"{max(channels)} (from 0): correct the manifest"
            )
        bounds = [(round(begin * rate), round(end * rate)) for begin, end in clip.stretches]
        width = decoder.channels if channels is None else len(channels)
        if sum(end - begin for begin, end in bounds) * width * 4 > _MOST_BYTES:
            raise SourceError(f"{clip.name} is too long for memory; cut it into parts")
        pieces: list[FloatArray] = []
        position, last = 0, bounds[-1][1]
        while position < last:
            samples = decoder.read(min(round(_BATCH_SECONDS * rate), last - position))
            if not len(samples):
                break
            if channels is not None:
                samples = samples[:, list(channels)]
            for begin, end in bounds:
                piece = samples[max(0, begin - position) : max(0, end - position)]
                if len(piece):
                    pieces.append(piece.copy())
            position += len(samples)
        if position >= last and not pieces:
            raise SourceError(f"{clip.name} is shorter than one sample: leave it out")
        if position < last - TOLERATED_SECONDS * rate or not pieces:
            reason = f" ({decoder.broken})" if decoder.broken else ""
            raise SourceError(
                f"{file_name(clip.file)} ends at {position / rate:.2f} s{reason}. The manifest "
                f"lists speech in it up to {last / rate:.2f} s: correct the manifest"
            )
    samples = np.concatenate(pieces).astype("<f4")
    return _header(rate, samples.shape[1], samples.nbytes) + samples.tobytes()


def _header(rate: int, channels: int, size: int) -> bytes:
    """Return the header of a WAV of 32-bit floats; libsndfile's own would hold the time of day."""
    return struct.pack(
        "<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + size, b"WAVE", b"fmt ", 16,
        _FLOAT, channels, rate, rate * channels * 4, channels * 4, 32, b"data", size,
    )  # fmt: skip
