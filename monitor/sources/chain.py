"""Sources combined: several in a row, or replayed at a multiple of real time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from monitor.errors import SourceError, UsageError
from monitor.kinds import FeatureSpec
from monitor.protocols import Provenance, Source, TranscriptNote
from monitor.sources.base import BaseSource, WrappedSource
from monitor.types import TICK_SECONDS, TICKS_PER_SECOND, Block, Frames, Gap, Item


def cut_frames(frames: Frames, first: int, most: int) -> Iterator[Frames]:
    """Cut frames into runs of at most ``most`` ticks.

    Args:
        frames: a run whose first tick is the one after ``first``.
        first: ticks of the stream before this run.
        most: longest run, in ticks.

    Example:
        >>> import numpy as np
        >>> from monitor.types import Track
        >>> track = Track(np.array([1, 2, 4]), np.array([7, 8, 9]))
        >>> runs = cut_frames(Frames(np.ones(4, bool), {"f0": track}), 0, 3)
        >>> [(len(run.speech), run.tracks["f0"].values.tolist()) for run in runs]
        [(3, [7, 8]), (1, [9])]
    """
    for start in range(0, len(frames.speech), most):
        speech = frames.speech[start : start + most]
        low, high = first + start, first + start + len(speech)
        tracks = {name: track.within(low, high) for name, track in frames.tracks.items()}
        gaps = tuple((tick, gap) for tick, gap in frames.gaps if low < tick <= high)
        notices = tuple((tick, notice) for tick, notice in frames.notices if low < tick <= high)
        yield Frames(speech, tracks, gaps, frames.recording, notices)


PIECE_SECONDS = 0.1  # of the clock: what a live view is given at a time
LONGEST_SECONDS = 10.0  # of audio
SLOWEST = 0.01
"""Times real time: an hour then takes four days."""


class Paced(WrappedSource):
    """Source played no faster than ``speed`` times real time, in small pieces.

    A piece comes when its last sample would have been heard. Time that the listener loses is
    caught up, as with a microphone that queues.

    Args:
        source: any source.
        speed: 1 for real time, 10 for ten times as fast.
        clock: seconds that only go forward.
        sleep: waits that many seconds.

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
        super().__init__(source)
        self._speed, self._clock, self._sleep = speed, clock, sleep

    def items(self) -> Iterator[Item]:
        """Yield the pieces, each in time."""
        began = self._clock()
        passed = 0.0
        for item, seconds in self._pieces():
            passed += seconds
            wait = began + passed / self._speed - self._clock()
            if wait > 0:
                self._sleep(wait)
            yield item

    def _pieces(self) -> Iterator[tuple[Item, float]]:
        """Cut the source into small pieces, with the audio seconds of each."""
        piece_seconds = min(PIECE_SECONDS * self._speed, LONGEST_SECONDS)
        ticks = 0
        for item in self.source:
            if isinstance(item, Block):
                longest = max(1, round(piece_seconds * item.rate))
                for start in range(0, len(item.samples), longest):
                    samples = item.samples[start : start + longest]
                    yield Block(samples, item.rate, item.recording), len(samples) / item.rate
            elif isinstance(item, Frames):
                for run in cut_frames(item, ticks, max(1, round(piece_seconds * TICKS_PER_SECOND))):
                    yield run, len(run.speech) * TICK_SECONDS
                ticks += len(item.speech)
            else:
                yield item, 0.0


class Chain(BaseSource[Item]):
    """Several sources as one stream; items are numbered by source.

    A source that breaks loses only its own rest. Ticks of ready-made frames go on counting.

    Args:
        sources: at least one, in the order in which they are heard.

    Attributes:
        label: the first label, and how many more there are.
        labels: the label of each source; ``Gap.recording`` is an index into it.
        sources: as given.

    Raises:
        UsageError: there is no source, or they do not go together.

    Example:
        >>> import io
        >>> from monitor.sources import Pipe
        >>> pipes = [Pipe(io.BytesIO(bytes(320)), raw=(16000, 1, "s16le")) for _ in range(2)]
        >>> [(block.recording, len(block.samples)) for block in Chain(pipes)]
        [(0, 160), (1, 160)]
    """

    labels: tuple[str, ...] = ()

    def __init__(self, sources: Sequence[Source]) -> None:
        if not sources:
            raise UsageError("a chain needs at least one source")
        self.sources = tuple(sources)
        self.labels = tuple(source.label for source in sources)
        more = len(sources) - 1
        channels = [source.stream_info.channels for source in sources]
        self.stream_info = replace(
            sources[0].stream_info,
            tracks=_common_features(sources),
            channels=None if None in channels else min(count or 0 for count in channels),
            noise=next(filter(None, (source.stream_info.noise for source in sources)), ""),
            protected=tuple(how for source in sources for how in source.stream_info.protected),
        )
        self.label = f"{self.labels[0]} and {more} more" if more else self.labels[0]

    @property
    def seconds(self) -> float | None:
        """Audio seconds promised by all; None where one of them does not know."""
        lengths = [source.seconds for source in self.sources]
        return None if None in lengths else sum(length or 0.0 for length in lengths)

    @property
    def transcripts(self) -> tuple[TranscriptNote, ...]:
        """Notes on the words of its recordings, in order."""
        return tuple(note for source in self.sources for note in source.transcripts)

    def provenance(self) -> tuple[Provenance, ...] | None:
        """Return the recordings of all sources; None where a source does not know."""
        parts: list[Provenance] = []
        for source in self.sources:
            provenance = source.provenance()
            if provenance is None:
                return None
            parts += provenance
        return tuple(parts)

    def items(self) -> Iterator[Item]:
        """Yield the items of each source, one after the other."""
        ticks = 0
        for recording, source in enumerate(self.sources):
            before = ticks
            try:
                with source:
                    for item in source:
                        if isinstance(item, Frames):
                            ticks += len(item.speech)
                            yield _moved(item, before, recording)
                        else:
                            yield replace(item, recording=recording)
            except SourceError as error:
                yield Gap("broken file", None, recording, str(error))

    def close(self) -> None:
        """Close every source."""
        super().close()
        for source in self.sources:
            source.__exit__(None, None, None)


def _common_features(sources: Sequence[Source]) -> dict[str, FeatureSpec]:
    """Combine features of ready-made frames; a histogram is as long as the longest."""
    first, *others = sources
    common: Mapping[str, FeatureSpec] = first.stream_info.tracks
    for source in others:
        features: Mapping[str, FeatureSpec] = source.stream_info.tracks
        joined = {}
        for name, spec in features.items() if features.keys() == common.keys() else ():
            larger = max(spec, common[name], key=lambda feature: feature.size)
            if spec.kind.open_size and spec.kind is larger.kind:
                spec = replace(spec, size=larger.size)
            if spec.like(larger):
                joined[name] = spec
        is_compatible = (source.stream_info.audio, source.stream_info.words) == (
            first.stream_info.audio,
            first.stream_info.words,
        )
        if joined.keys() != features.keys() or len(joined) != len(common) or not is_compatible:
            raise UsageError(
                f"{source.label} does not hold the same features as {first.label}; "
                "chain recordings of one kind"
            )
        if any(spec.network != common[name].network for name, spec in joined.items()):
            raise UsageError(
                f"{source.label} and {first.label} were heard by different networks; hear "
                "both again with this version"
            )
        common = joined
    return dict(common)


def _moved(frames: Frames, ticks: int, recording: int) -> Frames:
    """Shift frames by that many ticks."""
    tracks = {name: track.shifted(ticks) for name, track in frames.tracks.items()}
    gaps = tuple((tick + ticks, replace(gap, recording=recording)) for tick, gap in frames.gaps)
    notices = tuple((tick + ticks, notice) for tick, notice in frames.notices)
    return Frames(frames.speech, tracks, gaps, recording, notices)
