"""Any source, replayed at a multiple of real time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence

from monitor.errors import UsageError
from monitor.managed import Managed
from monitor.protocols import Source
from monitor.sources.cutting import cut_frames
from monitor.sources.provenance import Provenance, stated_provenance
from monitor.sources.transcript_note import TranscriptNote, stated_transcripts
from monitor.types import TICK_SECONDS, TICKS_PER_SECOND, Block, Frames, Gap, Tracks, Words

__all__ = ["Paced"]

PIECE_SECONDS = 0.1  # of the clock: what a live view is given at a time
LONGEST_SECONDS = 10.0  # of audio
SLOWEST = 0.01
"""Times real time: an hour then takes four days."""


class Paced(Managed):
    """The same stream, no faster than ``speed`` times real time, in small pieces.

    A piece comes when its last sample would have been heard. Time that the listener loses is
    caught up, as with a microphone that queues.

    Args:
        source: any source.
        speed: 1 for real time, 10 for ten times as fast.
        clock: seconds that only go forward.
        sleep: waits that many seconds.

    Attributes:
        brings: as of the source.

    Raises:
        UsageError: the speed is not positive and finite.

    Example:
        >>> import io
        >>> from monitor.sources import Pipe
        >>> waits = []
        >>> pipe = Pipe(io.BytesIO(bytes(6400)), raw=(16000, 1, "s16le"))
        >>> paced = Paced(pipe, 2.0, clock=lambda: sum(waits), sleep=waits.append)
        >>> [len(block.samples) for block in paced], sum(waits)
        ([3200], 0.1)
    """

    def __init__(
        self,
        source: Source,
        speed: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        if not SLOWEST <= speed < math.inf:
            raise UsageError(f"speed={speed} must be {SLOWEST} or more: 1 is real time")
        self._source = source
        self._speed = speed
        self._clock = clock
        self._sleep = sleep
        self.label = source.label
        self.brings = source.brings

    @property
    def labels(self) -> Sequence[str]:
        """The label of each recording."""
        labels: Sequence[str] = getattr(self._source, "labels", (self.label,))
        return labels

    @property
    def provenance(self) -> tuple[Provenance, ...] | None:
        """That of the source; None where it does not know."""
        return stated_provenance(self._source)

    @property
    def transcripts(self) -> tuple[TranscriptNote, ...]:
        """Notes on the words of the source."""
        return stated_transcripts(self._source)

    @property
    def seconds(self) -> float | None:
        """Audio seconds promised."""
        return self._source.seconds

    def __iter__(self) -> Iterator[Block | Frames | Gap | Words | Tracks]:
        began = self._clock()
        heard = 0.0
        for item, seconds in self._pieces():
            heard += seconds
            wait = began + heard / self._speed - self._clock()
            if wait > 0:
                self._sleep(wait)
            yield item

    def _pieces(self) -> Iterator[tuple[Block | Frames | Gap | Words | Tracks, float]]:
        """What the source gives, cut small, and the audio seconds of each piece."""
        piece_seconds = min(PIECE_SECONDS * self._speed, LONGEST_SECONDS)
        ticks = 0
        for item in self._source:
            if isinstance(item, Block):
                most = max(1, round(piece_seconds * item.rate))
                for start in range(0, len(item.samples), most):
                    samples = item.samples[start : start + most]
                    yield Block(samples, item.rate, item.recording), len(samples) / item.rate
            elif isinstance(item, Frames):
                for run in cut_frames(item, ticks, max(1, round(piece_seconds * TICKS_PER_SECOND))):
                    yield run, len(run.speech) * TICK_SECONDS
                ticks += len(item.speech)
            else:
                yield item, 0.0

    def close(self) -> None:
        """Close the source."""
        self._source.__exit__(None, None, None)
