"""A recording of several people, split: each one's sound as a stream of its own, on one clock."""

from __future__ import annotations

import math
import os
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from monitor.errors import UsageError
from monitor.protocols import Source
from monitor.sources.base import WrappedSource
from monitor.transcripts.turns import Turn, Turns, read_turns
from monitor.types import Block, Gap, Item


@dataclass(frozen=True, slots=True)
class Stretch:
    """Sound of one person alone.

    Attributes:
        person: which, as a place among the source's ``people``.
        seconds: where in the recording it begins.
        block: its samples.
    """

    person: int
    seconds: float
    block: Block


class SplitSource(WrappedSource):
    """A recording with the sound of each person in it apart; iterated, it is the recording itself.

    Attributes:
        people: the label of each person, in the order in which they begin to speak.
        notices: what a person should know of how it is split, a line each; complete at its end.

    Raises:
        UsageError: the source is live, not of audio alone, or of several recordings.
    """

    people: tuple[str, ...]
    notices: tuple[str, ...] = ()

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        info = source.stream_info
        if not info.audio or info.tracks or info.words:
            raise UsageError(f"{source.label} is not of audio alone: only sound is split by person")
        if info.live:
            raise UsageError(f"{source.label} is live: only a recording is split by person")
        if len(source.labels) != 1:
            raise UsageError(f"{source.label}: one recording at a time is split by person")

    def items(self) -> Iterator[Item]:
        """The recording, not split."""
        return iter(self.source)

    def split(self) -> Iterator[Sequence[Stretch] | Gap]:
        """What each block of the recording holds of each person, and what was lost."""
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
        """Of each person, the seconds that are theirs alone; None where nobody knows."""
        return [None] * len(self.people)

    def overlap_of(self) -> Sequence[float | None]:
        """Of each person, the seconds in which somebody else speaks too; None: nobody knows."""
        return [None] * len(self.people)

    @property
    def overlap_seconds(self) -> float | None:
        """Seconds that count for nobody, as several speak; None where nobody knows."""
        return None

    @abstractmethod
    def _parts(self, block: Block, begun: float) -> Iterator[Stretch]:
        """The stretches of a block that begins at that second."""

    def _end(self, seconds: float) -> None:
        """The recording was so long."""


class Diarised(SplitSource):
    """A recording split by turns: who speaks when, as somebody else found out.

    Time in which two labels speak counts for nobody, and neither does time of no label. What is
    left of a label is joined: its voice is heard as if nobody else had been in the room.

    Args:
        source: one recording, of audio.
        turns: `Turns`, a file of them (`read_turns`), or any number of `Turn`.
        start_seconds: where the recording begins on the clock of the turns; None for the
            ``start_seconds`` of a `File`.

    Attributes:
        turns: those within the recording, on its clock.

    Raises:
        SourceError: the turns cannot be read, or none lies in the recording.
        UsageError: as `SplitSource`.

    Example:
        >>> from monitor.sources import Samples
        >>> turns = [Turn(0.0, 0.5, "ann"), Turn(0.25, 1.0, "bob")]
        >>> meeting = Diarised(Samples(np.zeros(8000), 8000), turns)
        >>> [(part.person, part.seconds, len(part.block.samples)) for part in next(meeting.split())]
        [(0, 0.0, 2000), (1, 0.5, 4000)]
        >>> meeting.people, meeting.overlap_seconds
        (('ann', 'bob'), 0.25)
    """

    def __init__(
        self,
        source: Source,
        turns: Turns | Iterable[Turn] | str | os.PathLike[str],
        *,
        start_seconds: float | None = None,
    ) -> None:
        super().__init__(source)
        if isinstance(turns, str | os.PathLike):
            turns = read_turns(turns, recording=source.label)
        elif not isinstance(turns, Turns):
            turns = Turns.of(turns)
        own = getattr(source, "start_seconds", 0.0) if start_seconds is None else start_seconds
        self._cut = source.stream_info.cut
        seconds = math.inf if source.seconds is None else source.seconds
        self._promised = not math.isinf(seconds)
        turns = turns.cut(seconds, own, told=self._promised and not self._cut)
        self.turns, self.notices, self.people = turns, turns.notices, turns.labels
        self._alone = turns.alone
        self._place = {label: place for place, label in enumerate(self.people)}
        self._next = 0

    def split(self) -> Iterator[Sequence[Stretch] | Gap]:
        """What each block of the recording holds of each person, and what was lost."""
        self._next = 0
        return super().split()

    def alone_seconds(self) -> Sequence[float | None]:
        """Of each person, the seconds that are theirs alone."""
        found = dict.fromkeys(self.people, 0.0)
        for turn in self._alone:
            found[turn.label] += turn.seconds
        return [round(seconds, 3) for seconds in found.values()]

    def overlap_of(self) -> Sequence[float | None]:
        """Of each person, the seconds in which somebody else speaks too."""
        overlap = self.turns.overlap_of
        return [round(overlap[label], 3) for label in self.people]

    @property
    def overlap_seconds(self) -> float | None:
        """Seconds that count for nobody, as several speak."""
        return round(self.turns.overlap_seconds, 3)

    def _parts(self, block: Block, begun: float) -> Iterator[Stretch]:
        first, size = round(begun * block.rate), len(block.samples)
        while self._next < len(self._alone):
            turn = self._alone[self._next]
            low, high = (round(t * block.rate) for t in (turn.start_seconds, turn.end_seconds))
            if low >= first + size:
                return
            low, ends = max(low, first), high <= first + size
            samples = block.samples[low - first : high - first]
            if len(samples):
                part = replace(block, samples=np.ascontiguousarray(samples))
                yield Stretch(self._place[turn.label], low / block.rate, part)
            if not ends:
                return
            self._next += 1

    def _end(self, seconds: float) -> None:
        if not self._promised and not self._cut and seconds:
            self.turns = self.turns.cut(seconds)
            self.notices, self._alone = self.turns.notices, self.turns.alone
            self._promised = True


class PerChannel(SplitSource):
    """A recording with a person on each channel, as a call is recorded.

    Each is heard as a recording of that channel alone is; labels are ``"channel 1"`` and on.

    Args:
        source: one recording, of two channels or more.

    Raises:
        UsageError: as `SplitSource`; or it has one channel.

    Example:
        >>> from monitor.sources import Samples
        >>> call = PerChannel(Samples(np.zeros((8000, 2)), 8000))
        >>> call.people, [part.block.samples.shape for part in next(call.split())]
        (('channel 1', 'channel 2'), [(8000,), (8000,)])
    """

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        channels = source.stream_info.channels or 1
        if channels < 2:
            raise UsageError(f"{source.label} has one channel: there is nothing to tell apart")
        self.people = tuple(f"channel {number}" for number in range(1, channels + 1))

    def _parts(self, block: Block, begun: float) -> Iterator[Stretch]:
        columns = block.samples.reshape(len(block.samples), -1)
        for person in range(min(columns.shape[1], len(self.people))):
            samples = np.ascontiguousarray(columns[:, person])
            yield Stretch(person, begun, replace(block, samples=samples))
