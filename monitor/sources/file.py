"""A recording on disk as a source: any format that libsndfile reads."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from monitor.brings import Brings
from monitor.errors import SourceError, UsageError
from monitor.managed import Managed
from monitor.safe_text import file_name
from monitor.sources.decoder import Decoder
from monitor.sources.provenance import Provenance, provenance_of
from monitor.types import Block, Gap

__all__ = ["File"]

TOLERATED_SECONDS = 0.1  # MP3 and Opus headers count their padding as they like


class File(Managed):
    """Any recording that libsndfile reads, as blocks of float32 samples.

    A file that breaks off gives everything before the break, then one `Gap`. The samples do not
    depend on ``block_seconds``. Decoding always starts at the beginning, because a seek in a
    compressed file is not sample exact.

    Args:
        path: the file.
        recording: number given to its blocks.
        start_seconds: where to begin.
        end_seconds: where to stop; None for the end of the file.
        block_seconds: longest block; readings of one block are worked out together.

    Attributes:
        label: the name of the file, without its folder.
        rate: samples per second.
        channels: channels a frame.
        start_seconds, end_seconds: as given.
        seconds: audio seconds promised between start and end, None where the header is silent.

    Raises:
        SourceError: the file is missing, unreadable, empty or no recording.
        UsageError: the interval or the block length makes no sense.

    Example:
        >>> import tempfile, numpy, soundfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     soundfile.write(f"{folder}/a.flac", numpy.zeros(8000), 16000)
        ...     source = File(f"{folder}/a.flac", block_seconds=0.2)
        ...     source.label, source.seconds, [len(block.samples) for block in source]
        ('a.flac', 0.5, [3200, 3200, 1600])
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
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
        self.path = Path(path)
        self.start_seconds, self.end_seconds = start_seconds, end_seconds
        self.label = file_name(self.path)
        self._recording = recording
        with Decoder(self.path) as decoder:
            self.rate = decoder.rate
            self.channels = decoder.channels
            promised = decoder.promised
        self.brings = Brings(channels=self.channels)
        if promised == 0:
            raise SourceError(
                f"{self.label} holds no audio by its header; if it does, pipe it in as -"
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
        """Audio seconds promised between start and end."""
        if self._promised is None:
            return None
        return (self._promised - self._start) / self.rate

    @cached_property
    def provenance(self) -> tuple[Provenance, ...]:
        """The recording and the part of it; reads the file."""
        return (provenance_of(self.path, self.start_seconds, self.end_seconds),)

    def blocks(self) -> Iterator[Block]:
        """The whole recording, where less than that is of no use.

        Raises:
            SourceError: it breaks off.
        """
        for block in self:
            if not isinstance(block, Block):
                raise SourceError(block.detail or f"{self.label}: {block.reason}")
            yield block

    def __iter__(self) -> Iterator[Block | Gap]:
        with Decoder(self.path) as decoder:
            position = 0
            while self._end is None or position < self._end:
                left = self._frames if self._end is None else self._end - position
                samples = decoder.read(min(self._frames, left))
                if not len(samples):
                    break
                wanted = samples[max(0, self._start - position) :]
                position += len(samples)
                if len(wanted):
                    wanted = wanted[:, 0] if self.channels == 1 else wanted
                    yield Block(wanted, self.rate, self._recording)
            yield from self._loss(decoder, position)

    def _loss(self, decoder: Decoder, position: int) -> Iterator[Gap]:
        """What was promised and did not come."""
        if self._end is not None and position >= self._end:
            return
        lost = None
        if self._promised is not None:
            lost = max(0.0, (self._promised - max(position, self._start)) / self.rate)
        why = decoder.broken
        if why is None and lost is not None and lost >= TOLERATED_SECONDS:
            why = "parts are damaged or missing"
        if why is None and decoder.unfinished:
            why, lost = "cut off before its last page", None
        if why is not None:
            detail = f"{self.label}: {why}; {position / self.rate:.2f} s could be read"
            yield Gap("broken file", lost, self._recording, detail)
