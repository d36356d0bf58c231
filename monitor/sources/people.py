"""Recordings of several people, split into one stream per person."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Self

import numpy as np

from monitor.errors import UsageError
from monitor.phrases import clock_time
from monitor.protocols import LiveSource, Source
from monitor.safe_text import printable
from monitor.sources.base import SplitSource, Stretch, WrappedLiveSource
from monitor.transcripts.live import TurnPipe
from monitor.transcripts.turn_formats import read_turns
from monitor.transcripts.turns import Turn, Turns
from monitor.types import Block, Gap


class Diarised(SplitSource):
    """A recording split by speaker turns from a diariser.

    Overlapping speech and time without a label are excluded. The remaining speech of a label is
    joined and measured like a recording of this speaker alone.

    Args:
        source: one recording of audio.
        turns: `Turns`, a file of turns (`read_turns`), or an iterable of `Turn`.
        start_seconds: start of the recording on the clock of the turns; None for the
            ``start_seconds`` of a `File`.

    Raises:
        SourceError: the turns cannot be read, or all are outside the recording.
        UsageError: as in `SplitSource`.

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
            turns = Turns.from_turns(turns)
        offset = getattr(source, "start_seconds", 0.0) if start_seconds is None else start_seconds
        self._cut = source.stream_info.cut
        seconds = math.inf if source.seconds is None else source.seconds
        self._promised = not math.isinf(seconds)
        turns = turns.cut(seconds, offset, warns=self._promised and not self._cut)
        self.turns, self.notices, self.people = turns, turns.notices, turns.labels
        self._alone = turns.alone
        self._place = {label: index for index, label in enumerate(self.people)}
        self._next = 0

    def split(self) -> Iterator[Sequence[Stretch] | Gap]:
        """Yield the stretches of each block by person, and gaps."""
        self._next = 0
        return super().split()

    def alone_seconds(self) -> Sequence[float | None]:
        """Return each person's seconds without overlap."""
        seconds_by_label = dict.fromkeys(self.people, 0.0)
        for turn in self._alone:
            seconds_by_label[turn.label] += turn.seconds
        return [round(seconds, 3) for seconds in seconds_by_label.values()]

    def overlap_of(self) -> Sequence[float | None]:
        """Return each person's seconds of overlap."""
        overlap = self.turns.overlap_of
        return [round(overlap[label], 3) for label in self.people]

    @property
    def overlap_seconds(self) -> float | None:
        """Seconds of overlapping speech, which are excluded."""
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
                cut = replace(block, samples=np.ascontiguousarray(samples))
                yield Stretch(self._place[turn.label], low / block.rate, cut)
            if not ends:
                return
            self._next += 1

    def _end(self, seconds: float) -> None:
        if not self._promised and not self._cut and seconds:
            self.turns = self.turns.cut(seconds)
            self.notices, self._alone = self.turns.notices, self.turns.alone
            self._promised = True


MOST_DELAY_SECONDS = 60.0
"""Maximum audio in memory, and the age up to which turns are stored, in seconds."""


class LiveDiarised(SplitSource, WrappedLiveSource):
    """A live source that is split by turns from a live diariser.

    Audio waits in memory until it is ``delay_seconds`` old (at most 60). It is then assigned by the
    turns received so far, if only one label speaks. Later turns cause a gap ``"late turns"``. If
    the turns end and the audio continues for a second, there is one gap ``"turns ended"``. Times of
    turns count from the first sample of received audio.
    """

    source: LiveSource
    repeatable = False
    _hears_live = True

    def __init__(self, source: LiveSource, pipe: TurnPipe, *, delay_seconds: float = 5.0) -> None:
        if not 0 <= delay_seconds <= MOST_DELAY_SECONDS:
            raise UsageError(
                f"a delay of {delay_seconds:g} s must lie between 0 and {MOST_DELAY_SECONDS:g} s"
            )
        super().__init__(source)
        self.people = ()
        self._pipe, self._delay = pipe, delay_seconds
        self._place: dict[str, int] = {}
        self._turns: list[Turn] = []  # recent turns, which may overlap later ones
        self._passed = 0.0  # seconds of assigned audio
        self._alone: list[float] = []
        self._overlap_of: list[float] = []
        self._overlap = 0.0
        self._late: float | None = None  # late seconds not reported yet; None if nothing was late

    def __enter__(self) -> Self:
        entered = super().__enter__()
        self._pipe.__enter__()
        return entered

    def close(self) -> None:
        """Close both."""
        self._pipe.close()
        super().close()

    def split(self) -> Iterator[Sequence[Stretch] | Gap]:
        """Yield gaps, and the stretches of each block by person once the block is old enough."""
        waiting: deque[tuple[float, Block]] = deque()
        received, ended, is_reported = 0.0, math.inf, False
        for item in self._sound():
            if isinstance(item, Gap):
                yield item
                continue
            waiting.append((received, item))
            received += item.seconds
            yield from self._take(received)
            if self._pipe.over and math.isinf(ended):
                ended = max([received, *(turn.end_seconds for turn in self._turns)])
            if received - ended >= 1.0 and not is_reported:
                is_reported = True
                since = clock_time(ended)
                line = f"the turns have ended, so speech from {since} on is excluded"
                yield Gap("turns ended", None, detail=line)
            while waiting and waiting[0][0] + waiting[0][1].seconds <= received - self._delay:
                yield self._cut_block(*waiting.popleft())
        self._pipe.wait(self._delay)
        yield from self._take(received)
        while waiting:
            yield self._cut_block(*waiting.popleft())
        self._pipe.report_lost()
        if self._late:
            yield Gap("late turns", self._late, detail=f"{self._late:.1f} s more arrived too late")

    def alone_seconds(self) -> Sequence[float | None]:
        """Return each person's seconds so far without overlap."""
        return [round(seconds, 3) for seconds in self._alone]

    def overlap_of(self) -> Sequence[float | None]:
        """Return each person's seconds of overlap so far."""
        return [round(seconds, 3) for seconds in self._overlap_of]

    @property
    def overlap_seconds(self) -> float | None:
        """Seconds of overlapping speech so far, which are excluded."""
        return round(self._overlap, 3)

    def _take(self, received: float) -> Iterator[Gap]:
        for turn in self._pipe.collect(received + self.source.waiting_seconds):
            if turn.label not in self._place:
                self._place[turn.label] = len(self.people)
                self.people += (turn.label,)
                self._alone.append(0.0)
                self._overlap_of.append(0.0)
            late = self._uncovered(turn)
            self._turns.append(turn)
            if late < 0.01:
                continue
            if self._late is None:
                self._late = 0.0
                line = (
                    f"a turn of {printable(turn.label)} arrived "
                    f"{received - turn.start_seconds:.1f} s after it began. Its first {late:.1f} s "
                    f"are excluded. Use a delay longer than {self._delay:g} s"
                )
                yield Gap("late turns", late, detail=line)
            else:
                self._late += late

    def _uncovered(self, turn: Turn) -> float:
        """Count the seconds of a turn in audio that was assigned before the turn arrived."""
        end = min(turn.end_seconds, self._passed)
        if end <= turn.start_seconds:
            return 0.0
        turns_of_label = [t for t in self._turns if t.label == turn.label]
        alone = Turns(tuple(sorted(turns_of_label))).alone
        return (end - turn.start_seconds) - sum(
            max(
                min(turn_alone.end_seconds, end)
                - max(turn_alone.start_seconds, turn.start_seconds),
                0.0,
            )
            for turn_alone in alone
        )

    def _cut_block(self, begin: float, block: Block) -> list[Stretch]:
        """Cut a block into stretches, by the turns received so far."""
        end = self._passed = begin + block.seconds
        inside = [
            replace(turn, start_seconds=max(turn.start_seconds, begin),
                    end_seconds=min(turn.end_seconds, end))
            for turn in self._turns
            if turn.start_seconds < end and turn.end_seconds > begin
        ]  # fmt: skip
        self._turns = [t for t in self._turns if t.end_seconds > end - MOST_DELAY_SECONDS]
        current = Turns(tuple(sorted(inside)))
        for label, seconds in current.overlap_of.items():
            self._overlap_of[self._place[label]] += seconds
        self._overlap += current.overlap_seconds
        stretches = []
        for turn in current.alone:
            person = self._place[turn.label]
            self._alone[person] += turn.seconds
            low, high = (
                min(max(round((t - begin) * block.rate), 0), len(block.samples))
                for t in (turn.start_seconds, turn.end_seconds)
            )
            if high > low:
                samples = np.ascontiguousarray(block.samples[low:high])
                cut = replace(block, samples=samples)
                stretches.append(Stretch(person, begin + low / block.rate, cut))
        return stretches


class PerChannel(SplitSource):
    """A recording with one person per channel, such as a recorded call.

    Each channel is measured like a separate recording. Labels are ``"channel 1"`` and so on.
    """

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        channels = source.stream_info.channels or 1
        if channels < 2:
            raise UsageError(f"{source.label} has only one channel, so it cannot be split")
        self.people = tuple(f"channel {number}" for number in range(1, channels + 1))

    def _parts(self, block: Block, begun: float) -> Iterator[Stretch]:
        columns = block.samples.reshape(len(block.samples), -1)
        for person in range(min(columns.shape[1], len(self.people))):
            samples = np.ascontiguousarray(columns[:, person])
            yield Stretch(person, begun, replace(block, samples=samples))
