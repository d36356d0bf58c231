"""Recordings turned into frames by other processes, ahead of the monitor that learns them.

What comes out is the same to the last bit as when the monitor hears the recordings itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from monitor.managed import Managed
from monitor.processes import GeneratorProcesses
from monitor.protocols import Source
from monitor.sources.chain import Chain
from monitor.sources.file import File
from monitor.stream.blocks_to_ticks import BlocksToTicks
from monitor.types import Block, Frames, Gap, Track, Tracks, Words

__all__ = ["HeardAhead"]


@dataclass(frozen=True, slots=True)
class _Task:
    """Some features of one recording, for one process to compute.

    Attributes:
        path: of the recording.
        interval: seconds to begin and to stop at.
        features: names.
        channel: to hear, from 1, or None.
        levels: whether to follow the channel as well.
        landmarks: whether to take those as well.
        skip: frames complete by this tick need not be computed.
        conditions: whether to describe what it sounds like.
    """

    path: Path
    interval: tuple[float, float | None]
    features: tuple[str, ...]
    channel: int | None
    levels: bool
    landmarks: bool
    skip: int
    conditions: bool


class HeardAhead(Managed):
    """The frames of recordings, one after the other, as a source.

    With fewer recordings than processes the features of each are dealt out as well.

    Args:
        files: the recordings.
        features: names of features; those that there are.
        channel: the channel to hear, counted from 1; None mixes all of them.
        levels: whether to follow what the voice comes through as well.
        skip: frames complete by this tick need not be computed.
        jobs: processes.
        placed: gives the source of a recording, by its place, from its frames: with the words that
            lie beside it, say.

    Attributes:
        label, seconds: as of a `Chain` of the recordings.
    """

    def __init__(
        self,
        files: Sequence[File],
        features: Sequence[str],
        *,
        channel: int | None = None,
        levels: bool = False,
        skip: int = 0,
        jobs: int = 2,
        placed: Callable[[int, Source], Source] = lambda _, recording: recording,
    ) -> None:
        groups = max(1, min(jobs // len(files), len(features)))
        tasks = [
            _Task(
                file.path,
                (file.start_seconds, file.end_seconds),
                tuple(features[group::groups]),
                channel,
                levels and group == groups - 1,
                group == 0,
                0 if number else skip,  # where the others begin is not known yet
                group == 0,
            )
            for number, file in enumerate(files)
            for group in range(groups)
        ]
        self._processes = GeneratorProcesses(_frames, tasks, jobs)
        self._chain = Chain([
            placed(
                number,
                _Recording(file, [self._processes.of(number * groups + g) for g in range(groups)]),
            )
            for number, file in enumerate(files)
        ])  # fmt: skip
        self.label, self.seconds = self._chain.label, self._chain.seconds
        self.brings = self._chain.brings

    def __iter__(self) -> Iterator[Block | Frames | Gap | Words | Tracks]:
        return iter(self._chain)

    def close(self) -> None:
        """End the processes."""
        self._processes.close()


class _Recording(Managed):
    """A recording whose features come from several processes, all cut in the same places."""

    def __init__(self, file: Source, parts: Sequence[Iterator[Frames | Gap]]) -> None:
        self.label, self.seconds, self.brings = file.label, file.seconds, file.brings
        self._parts = parts

    def __iter__(self) -> Iterator[Frames | Gap]:
        waiting = np.empty(0, np.bool_)  # decisions on ticks that other parts have not reached
        come = [0] * len(self._parts)
        gone = 0
        for items in zip(*self._parts, strict=True):
            runs = [item for item in items if isinstance(item, Frames)]
            if not runs:
                yield items[0]
                continue
            come = [ticks + len(run.speech) for ticks, run in zip(come, runs, strict=True)]
            waiting = np.concatenate((waiting, runs[0].speech))
            tracks: dict[str, Track] = {}
            for run in runs:
                tracks |= run.tracks
            speech, waiting = waiting[: min(come) - gone], waiting[min(come) - gone :]
            gone = min(come)
            yield Frames(speech, tracks, runs[0].gaps, notices=runs[0].notices)


def _frames(task: _Task) -> Iterator[Frames | Gap]:
    """What the features make of a recording; a loss at its end lies where `Monitor` puts it."""
    hearing = BlocksToTicks(
        task.features,
        task.channel,
        task.skip,
        levels=task.levels,
        conditions=task.conditions,
        landmarks=task.landmarks,
    )
    start, end = task.interval
    with File(task.path, start_seconds=start, end_seconds=end) as file:
        for item in file:
            if isinstance(item, Block):
                yield from hearing.process(item)
            elif hearing.ticks:
                yield Frames(np.empty(0, np.bool_), {}, ((hearing.ticks, item),))
            else:
                yield item
    if hearing.ticks:
        yield hearing.flush()
