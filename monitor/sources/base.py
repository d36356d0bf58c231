"""Base classes of sources: states, wrapping, splitting, provenance, and samples in memory."""

from __future__ import annotations

import hashlib
import os
import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, Self, TypeVar

import numpy as np

from monitor.errors import SourceError, UsageError
from monitor.files import MemoryFile, readable
from monitor.lazy import Managed
from monitor.protocols import (
    MOST_CHANNELS,
    LiveSource,
    Provenance,
    Source,
    StreamInfo,
    TranscriptNote,
)
from monitor.types import AnyArray, Block, Gap, Item

Given = TypeVar("Given", bound=Item, covariant=True)


class BaseSource(Managed, Generic[Given]):
    """Base of sources: a subclass gives ``label``, ``stream_info``, ``seconds`` and `items`.

    Its ``phase`` is ``"opened"`` once it is made, ``"running"`` while it is read, ``"ended"`` after
    its last item, and ``"closed"`` at the end of its ``with`` block; entering it opens it again.
    Where it is not ``repeatable``, iterating it again goes on with what comes, until it has ended.

    Raises:
        UsageError: from iterating one that is closed, or was read and is not ``repeatable``.

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
        """Notes on its words, one a recording; none unless it brings words."""
        return ()

    def provenance(self) -> tuple[Provenance, ...] | None:
        """Return the recordings behind the stream; None where unknown."""
        return None

    def items(self) -> Iterator[Given]:
        """Yield the stream, from its first sample on."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Given]:
        self._refuse_closed()
        if self.phase == "ended" and not self.repeatable:
            raise UsageError(f"{self.label} has ended, and comes once: open another source")
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
    """A source around another one, which it closes; its statements are those of that one."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.label, self.stream_info = source.label, source.stream_info

    @property
    def seconds(self) -> float | None:
        """Audio seconds promised."""
        return self.source.seconds

    @property
    def labels(self) -> tuple[str, ...]:
        """The label of each recording."""
        return self.source.labels

    @property
    def transcripts(self) -> tuple[TranscriptNote, ...]:
        """Notes on the words of the other source."""
        return self.source.transcripts

    def provenance(self) -> tuple[Provenance, ...] | None:
        """Return the provenance of the other source."""
        return self.source.provenance()

    def __enter__(self) -> Self:
        self.source.__enter__()
        self.label = self.source.label  # a microphone's is known once it is open
        return super().__enter__()

    def close(self) -> None:
        """Close both."""
        super().close()
        self.source.__exit__(None, None, None)


class WrappedLiveSource(WrappedSource):
    """A live source around another one."""

    source: LiveSource

    @property
    def waiting_seconds(self) -> float:
        """Seconds of audio that were heard and not yet taken."""
        return self.source.waiting_seconds

    def behind_seconds(self, seconds: float) -> float:
        """Wall seconds since that second of the stream was heard."""
        return self.source.behind_seconds(seconds)

    def stop(self) -> None:
        """End the stream after what was heard so far; may be called from anywhere."""
        self.source.stop()


@dataclass(frozen=True, slots=True)
class Stretch:
    """Sound of one person alone: an index into the source's ``people``, from that second on."""

    person: int
    seconds: float
    block: Block


class SplitSource(WrappedSource):
    """A recording with the sound of each person in it apart; iterated, it is the recording itself.

    Attributes:
        people: the label of each person, in the order in which they begin to speak.
        notices: what a person should know of how it is split, a line each; complete at its end.

    Raises:
        UsageError: the source is live and this splits recordings, not of audio alone, or of several
            recordings.
    """

    people: tuple[str, ...]
    notices: tuple[str, ...] = ()
    _hears_live: ClassVar[bool] = False

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        info = source.stream_info
        if not info.audio or info.tracks or info.words:
            raise UsageError(f"{source.label} is not of audio alone: only sound is split by person")
        if info.live and not self._hears_live:
            raise UsageError(
                f"{source.label} is live: it is split by turns that come while it is heard "
                "(LiveDiarised)"
            )
        if len(source.labels) != 1:
            raise UsageError(f"{source.label}: one recording at a time is split by person")

    def items(self) -> Iterator[Item]:
        """Yield the recording, not split."""
        return iter(self.source)

    def split(self) -> Iterator[Sequence[Stretch] | Gap]:
        """Yield the stretches of each block by person, and gaps."""
        begun = 0.0  # seconds of the recording before the block
        for item in self:
            if isinstance(item, Block):
                yield list(self._parts(item, begun))
                begun += len(item.samples) / item.rate
            elif isinstance(item, Gap):
                yield item
            else:
                raise UsageError(f"{self.label} brings more than audio: only sound is split")
        self._end(begun)

    def alone_seconds(self) -> Sequence[float | None]:
        """Return each person's seconds without overlap; None where unknown."""
        return [None] * len(self.people)

    def overlap_of(self) -> Sequence[float | None]:
        """Return each person's seconds of overlap; None where unknown."""
        return [None] * len(self.people)

    @property
    def overlap_seconds(self) -> float | None:
        """Seconds that count for nobody, as several speak; None where nobody knows."""
        return None

    @abstractmethod
    def _parts(self, block: Block, begun: float) -> Iterator[Stretch]:
        """Yield the stretches of a block that begins at that second."""

    def _end(self, seconds: float) -> None:
        """Note the length of the recording."""


class Samples(BaseSource[Block]):
    """An array of samples, in blocks of a second; enrolled audio is not recognised in it.

    Args:
        samples: shape (n,) or (n, channels): floats in [-1, 1], or signed integers at full scale.
        rate: samples per second.
        label: name in messages.

    Example:
        >>> [block.samples.max() for block in Samples(np.array([0, 16384], np.int16), 16_000)]
        [np.float32(0.5)]
    """

    def __init__(self, samples: AnyArray, rate: int, label: str = "samples") -> None:
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
        if samples.dtype.kind not in "fi":
            raise UsageError(
                f"samples are {samples.dtype}: give floats from -1 to 1, or signed integers"
            )
        self._samples, self._rate, self.label = samples, rate, label
        self.seconds = shape[0] / rate if rate > 0 else None  # a rate that is none is refused later
        self.stream_info = StreamInfo(channels=1 if samples.ndim == 1 else shape[1])

    def items(self) -> Iterator[Block]:
        """Yield blocks of a second."""
        samples = self._samples
        scale = 1.0 if samples.dtype.kind == "f" else -float(np.iinfo(samples.dtype).min)
        for start in range(0, len(samples), max(int(self._rate), 1)):
            second = samples[start : start + max(int(self._rate), 1)]
            yield Block(second if scale == 1.0 else (second / scale).astype(np.float32), self._rate)


_DONE_BY = re.compile(r"Voice (anonymised|scrubbed) by speaker-disclosure-monitor: ([ -~]{1,80})")


def protection_tag(done: str, method: str) -> str:
    """Format the comment of a sound file with a changed voice; it names no seed, no program.

    Example:
        >>> protection_tag("anonymised", "command:/opt/mine --key 1")
        'Voice anonymised by speaker-disclosure-monitor: a program'
    """
    shown = "a program" if method.startswith("command:") else method
    return f"Voice {done} by speaker-disclosure-monitor: {shown}"


def protection_of(comment: str) -> str:
    """Return how a comment of `protection_tag` says the voice was changed; else empty."""
    match = _DONE_BY.fullmatch(comment)
    return f"{match[1]} ({match[2]})" if match else ""


def file_hash(path: str | os.PathLike[str] | MemoryFile) -> str:
    """Return the hash of a file's bytes; SourceError where they cannot be read."""
    path = readable(path)
    try:
        with path.open("rb") as file:
            return f"file:{hashlib.file_digest(file, 'sha256').hexdigest()}"
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SourceError(f"cannot open {path.name}: {reason}; check the name") from None
