"""Base classes of sources, samples in memory, chained and paced sources, and provenance."""

from __future__ import annotations

import hashlib
import math
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from monitor.arrays import is_array, real_numbers, sampling_rate
from monitor.errors import SourceError, UsageError
from monitor.kinds import FeatureSpec
from monitor.lazy import Managed
from monitor.protocols import (
    MOST_CHANNELS,
    LiveSource,
    Provenance,
    Source,
    StreamInfo,
    TranscriptNote,
)
from monitor.types import TICK_SECONDS, TICKS_PER_SECOND, Block, Frames, Gap, Item
from monitor.virtual_files import Readable, VirtualFile, readable

Given = TypeVar("Given", bound=Item, covariant=True)


class BaseSource(Managed, Generic[Given]):
    """Base class of sources. A subclass has ``label``, ``stream_info``, ``seconds`` and `items`.

    ``phase`` is first ``"opened"``, then ``"running"`` during reading, and ``"ended"`` after the
    last item. Leaving the ``with`` block makes it ``"closed"``, and entering the block opens the
    source again. If a source is not ``repeatable``, iterating again continues where the last
    iteration stopped.

    Raises:
        UsageError: from iterating a closed source, or an ended source that is not ``repeatable``.

    Example:
        >>> source = Samples(np.zeros(8000), 8000)
        >>> with source:
        ...     before, _, after = source.phase, list(source), source.phase
        >>> before, after, source.phase
        ('opened', 'ended', 'closed')
    """

    label: str
    stream_info: StreamInfo
    repeatable: ClassVar[bool] = True
    phase = "opened"

    @property
    def labels(self) -> tuple[str, ...]:
        """The label of each recording."""
        return (self.label,)

    @property
    def transcripts(self) -> tuple[TranscriptNote, ...]:
        """Summaries of transcripts, one per recording with words."""
        return ()

    def provenance(self) -> tuple[Provenance, ...] | None:
        """Return the recordings of the stream; None if unknown."""
        return None

    def items(self) -> Iterator[Given]:
        """Yield the stream, from its first sample on."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Given]:
        self._refuse_closed()
        if self.phase == "ended" and not self.repeatable:
            raise UsageError(
                f"{self.label} has ended and cannot be read again: open another source"
            )
        self.phase = "running"
        for item in self.items():
            yield item
            self._refuse_closed()
        if self.phase == "running":
            self.phase = "ended"

    def __enter__(self) -> Self:
        if self.phase == "closed":
            if not self.repeatable:
                self._refuse_closed()
            self.phase = "opened"
        return self

    def close(self) -> None:
        """Release what is open; may be called twice."""
        self.phase = "closed"

    def _refuse_closed(self) -> None:
        if self.phase == "closed":
            raise UsageError(f"{self.label} is closed: open another source")


class WrappedSource(BaseSource[Item]):
    """A source that wraps another source, with the same properties. It closes the other source."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.label, self.stream_info = source.label, source.stream_info

    @property
    def seconds(self) -> float | None:
        """Total audio seconds; None if unknown."""
        return self.source.seconds

    @property
    def labels(self) -> tuple[str, ...]:
        """The label of each recording."""
        return self.source.labels

    @property
    def transcripts(self) -> tuple[TranscriptNote, ...]:
        """Summaries of the other source's transcripts."""
        return self.source.transcripts

    def provenance(self) -> tuple[Provenance, ...] | None:
        """Return the provenance of the other source."""
        return self.source.provenance()

    def __enter__(self) -> Self:
        self.source.__enter__()
        self.label = self.source.label  # a microphone's label is known once it is open
        return super().__enter__()

    def close(self) -> None:
        """Close both."""
        super().close()
        self.source.__exit__(None, None, None)


class WrappedLiveSource(WrappedSource):
    """A live source that wraps another live source."""

    source: LiveSource

    @property
    def waiting_seconds(self) -> float:
        """Seconds of captured audio that wait to be read."""
        return self.source.waiting_seconds

    def behind_seconds(self, seconds: float) -> float:
        """Return the wall seconds since this second of the stream was captured."""
        return self.source.behind_seconds(seconds)

    def stop(self) -> None:
        """End the stream after the audio captured so far; thread-safe."""
        self.source.stop()


@dataclass(frozen=True, slots=True)
class Stretch:
    """Sound of one person alone. ``person`` is an index into the source's ``people``."""

    person: int
    seconds: float
    block: Block


class SplitSource(WrappedSource):
    """A recording that is split by person. Iterating yields the whole recording.

    Attributes:
        people: label of each person, in the order in which they begin to speak.
        notices: one line per fault of the split; complete at the recording's end.

    Raises:
        UsageError: the source has more than audio, has several recordings, or is live although this
            class splits only recordings.
    """

    people: tuple[str, ...]
    notices: tuple[str, ...] = ()
    _hears_live: ClassVar[bool] = False

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        info = source.stream_info
        if not info.audio or info.tracks or info.words:
            raise UsageError(
                f"{source.label} has other content than audio and cannot be split by person"
            )
        if info.live and not self._hears_live:
            raise UsageError(
                f"{source.label} is live: use LiveDiarised, which takes turns during the stream"
            )
        if len(source.labels) != 1:
            raise UsageError(f"{source.label}: only one recording at a time can be split by person")

    def items(self) -> Iterator[Item]:
        """Yield the whole recording, without the split."""
        return iter(self.source)

    def split(self) -> Iterator[Sequence[Stretch] | Gap]:
        """Yield gaps, and each block as a list of stretches by person."""
        begun = 0.0  # seconds of the recording before the block
        for item in self._sound():
            if isinstance(item, Block):
                yield list(self._parts(item, begun))
                begun += item.seconds
            else:
                yield item
        self._end(begun)

    def _sound(self) -> Iterator[Block | Gap]:
        """Yield the whole recording; UsageError if it has more than audio."""
        for item in self:
            if not isinstance(item, Block | Gap):
                raise UsageError(
                    f"{self.label} contains more than audio, and only sound can be split"
                )
            yield item

    def alone_seconds(self) -> Sequence[float | None]:
        """Return each person's seconds without overlap; None if unknown."""
        return [None] * len(self.people)

    def overlap_of(self) -> Sequence[float | None]:
        """Return each person's seconds of overlap; None if unknown."""
        return [None] * len(self.people)

    @property
    def overlap_seconds(self) -> float | None:
        """Seconds of overlapping speech, which are excluded; None if unknown."""
        return None

    def _parts(self, block: Block, begun: float) -> Iterator[Stretch]:
        """Yield the stretches of a block that begins at the second ``begun``."""
        raise NotImplementedError

    def _end(self, seconds: float) -> None:
        """Process the length of the recording at its end; does nothing by default."""


class Samples(BaseSource[Block]):
    """An array of samples as a source. Enrolled audio in an array is not recognised.

    Args:
        samples: an array, tensor, series, buffer or list of shape (n,) or (n, channels), with
            floats in [-1, 1], or signed integers at full scale.
        rate: samples per second, a whole number.
        label: name in messages.

    Example:
        >>> [block.samples.max() for block in Samples(np.array([0, 16384], np.int16), 16_000)]
        [np.float32(0.5)]
    """

    def __init__(self, samples: ArrayLike, rate: float | str, label: str = "samples") -> None:
        rate, samples = sampling_rate(rate), real_numbers(samples, "samples")
        shape = samples.shape
        if samples.ndim == 2 and shape[0] <= MOST_CHANNELS < shape[1]:
            raise UsageError(
                f"samples of shape {shape} have their channels first: give samples.T, (n, channels)"
            )
        if samples.ndim not in (1, 2) or (samples.ndim == 2 and not 1 <= shape[1] <= MOST_CHANNELS):
            raise UsageError(
                f"samples of shape {shape} must be (n,) or (n, channels), with at most "
                f"{MOST_CHANNELS} channels"
            )
        # numpy makes int64 of a list, with an unknown scale
        if samples.dtype.kind not in "fi" or samples.dtype == np.int64:
            raise UsageError(
                f"samples are {samples.dtype}: give floats from -1 to 1, or int16 or int32 at full "
                "scale"
            )
        self._samples, self._rate, self.label = samples, rate, label
        self.seconds = shape[0] / rate if rate > 0 else None  # an invalid rate is refused later
        self.stream_info = StreamInfo(channels=1 if samples.ndim == 1 else shape[1])

    def items(self) -> Iterator[Block]:
        """Yield blocks of a second."""
        samples = self._samples
        scale = 1.0 if samples.dtype.kind == "f" else -float(np.iinfo(samples.dtype).min)
        for start in range(0, len(samples), max(int(self._rate), 1)):
            second = samples[start : start + max(int(self._rate), 1)]
            yield Block(second if scale == 1.0 else (second / scale).astype(np.float32), self._rate)


def samples_or_source(audio: Any, rate: float | str | None) -> Any:
    """Return samples in memory as a source. Sources and names of sources are returned unchanged."""
    if not is_array(audio):
        if rate is not None:
            raise UsageError("rate= is for an array of samples: a source has its own")
        return audio
    if rate is None:
        raise UsageError("an array of samples needs its rate: pass rate=16_000 with it")
    return Samples(audio, rate)


_DONE_BY = re.compile(r"Voice (anonymised|scrubbed) by speaker-disclosure-monitor: ([ -~]{1,80})")


def protection_tag(done: str, method: str) -> str:
    """Format the comment in a sound file with a changed voice, without seed and command.

    Example:
        >>> protection_tag("anonymised", "command:/opt/mine --key 1")
        'Voice anonymised by speaker-disclosure-monitor: a program'
    """
    shown = "a program" if method.startswith("command:") else method
    return f"Voice {done} by speaker-disclosure-monitor: {shown}"


def protection_of(comment: str) -> str:
    """Return the method in a comment of `protection_tag`, otherwise an empty text."""
    match = _DONE_BY.fullmatch(comment)
    return f"{match[1]} ({match[2]})" if match else ""


def file_hash(path: str | os.PathLike[str] | VirtualFile) -> str:
    """Return the hash of a file's bytes; SourceError if they cannot be read."""
    path = readable(path)
    try:
        with path.open("rb") as file:
            return f"file:{hashlib.file_digest(file, 'sha256').hexdigest()}"
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SourceError(f"cannot open {path.name} ({reason}): check the name") from None


def hash_of_whole(path: Readable) -> str:
    """Return the hash of a file's bytes; for an excerpt, the whole recording's."""
    origin = path.origin() if isinstance(path, VirtualFile) else None
    return file_hash(path if origin is None else origin)


def cut_frames(frames: Frames, first: int, maximum: int) -> Iterator[Frames]:
    """Cut frames into runs of at most ``maximum`` ticks, after ``first`` earlier ticks.

    Example:
        >>> import numpy as np
        >>> from monitor.types import Track
        >>> track = Track(np.array([1, 2, 4]), np.array([7, 8, 9]))
        >>> runs = cut_frames(Frames(np.ones(4, bool), {"f0": track}), 0, 3)
        >>> [(len(run.speech), run.tracks["f0"].values.tolist()) for run in runs]
        [(3, [7, 8]), (1, [9])]
    """
    for start in range(0, len(frames.speech), maximum):
        speech = frames.speech[start : start + maximum]
        low, high = first + start, first + start + len(speech)
        tracks = {name: track.within(low, high) for name, track in frames.tracks.items()}
        gaps = tuple((tick, gap) for tick, gap in frames.gaps if low < tick <= high)
        notices = tuple((tick, notice) for tick, notice in frames.notices if low < tick <= high)
        yield Frames(speech, tracks, gaps, frames.recording, notices)


PIECE_SECONDS = 0.1  # of wall time, the pace of a live view
LONGEST_SECONDS = 10.0  # of audio per piece
SLOWEST = 0.01  # times real time: an hour then takes four days


class Paced(WrappedSource):
    """A source that is played at up to ``speed`` times real time, in small pieces.

    Each piece arrives when a microphone would have captured its last sample. If the reader is slow,
    pieces wait.
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
        """Yield the pieces, each at its time."""
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
    """Several sources as one stream, in which each source is a recording.

    If a source fails, only the rest of this source is lost. Ticks of precomputed frames continue
    across sources. ``Gap.recording`` is an index into ``labels``. UsageError if sources are
    incompatible.

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
            protected=tuple(
                method for source in sources for method in source.stream_info.protected
            ),
        )
        self.label = f"{self.labels[0]} and {more} more" if more else self.labels[0]

    @property
    def seconds(self) -> float | None:
        """Total audio seconds; None if unknown for a source."""
        lengths = [source.seconds for source in self.sources]
        return None if None in lengths else sum(length or 0.0 for length in lengths)

    @property
    def transcripts(self) -> tuple[TranscriptNote, ...]:
        """Summaries of all transcripts, in order."""
        return tuple(note for source in self.sources for note in source.transcripts)

    def provenance(self) -> tuple[Provenance, ...] | None:
        """Return the recordings of all sources; None if unknown for a source."""
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
    """Combine the features of ready-made frames; a histogram gets the largest size."""
    first, *others = sources
    common: Mapping[str, FeatureSpec] = first.stream_info.tracks
    for source in others:
        features: Mapping[str, FeatureSpec] = source.stream_info.tracks
        joined = {}
        for name, spec in features.items() if features.keys() == common.keys() else ():
            larger = max(spec, common[name], key=lambda feature: feature.size)
            if spec.kind.counted and spec.kind is larger.kind:
                spec = replace(spec, size=larger.size)
            if spec.like(larger):
                joined[name] = spec
        is_compatible = (source.stream_info.audio, source.stream_info.words) == (
            first.stream_info.audio,
            first.stream_info.words,
        )
        if joined.keys() != features.keys() or len(joined) != len(common) or not is_compatible:
            raise UsageError(
                f"{source.label} does not have the same features as {first.label}; "
                "chain recordings of one kind"
            )
        if any(spec.network != common[name].network for name, spec in joined.items()):
            raise UsageError(
                f"{source.label} and {first.label} were made by different networks: extract both "
                "again with this version"
            )
        common = joined
    return dict(common)


def _moved(frames: Frames, ticks: int, recording: int) -> Frames:
    """Shift frames by ``ticks``, and set their recording."""
    tracks = {name: track.shifted(ticks) for name, track in frames.tracks.items()}
    gaps = tuple((tick + ticks, replace(gap, recording=recording)) for tick, gap in frames.gaps)
    notices = tuple((tick + ticks, notice) for tick, notice in frames.notices)
    return Frames(frames.speech, tracks, gaps, recording, notices)
