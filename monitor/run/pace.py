"""Pace of a run: recordings are read ahead, and live sources skip audio under load."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup, make
from monitor.jobs import GeneratorProcesses, worthwhile
from monitor.protocols import Feature, LiveSource, Source, WindowFeature
from monitor.sources.base import BaseSource, Chain, WrappedLiveSource, WrappedSource
from monitor.sources.file import File
from monitor.stream.clocks import BlocksToTicks
from monitor.types import TICKS_PER_SECOND, AnyArray, Block, FloatArray, Frames, Gap, Item, Track
from monitor.virtual_files import Readable

if TYPE_CHECKING:
    from monitor.stream.monitor import Monitor
    from monitor.stream.pair import MonitorPair


@dataclass(frozen=True, slots=True)
class _Task:
    """Some features of one recording, for one process to compute."""

    path: Readable
    interval: tuple[float, float | None]
    features: tuple[str, ...]
    channel: int | None
    skip: int
    levels: bool
    conditions: bool
    landmarks: bool
    setup: FeatureSetup


class PrefetchedFrames(WrappedSource):
    """Frames of recordings, which other processes compute ahead, with exactly the same result.

    With fewer recordings than processes, the features of a recording are also distributed.
    ``placed`` makes the source of a recording, for example with words, from its index and frames.
    """

    repeatable = False

    def __init__(
        self,
        files: Sequence[File],
        features: Sequence[str],
        *,
        channel: int | None = None,
        levels: bool = False,
        skip: int = 0,
        jobs: int = 2,
        setup: FeatureSetup = AS_ENVIRONMENT,
        placed: Callable[[int, Source], Source] = lambda _, recording: recording,
    ) -> None:
        groups = max(1, min(jobs // len(files), len(features)))
        tasks = [
            _Task(
                file.path,
                (file.start_seconds, file.end_seconds),
                tuple(features[group::groups]),
                channel,
                0 if number else skip,  # where later recordings begin is not known yet
                levels=levels and group == groups - 1,
                conditions=group == 0,
                landmarks=group == 0,
                setup=setup,
            )
            for number, file in enumerate(files)
            for group in range(groups)
        ]
        self._processes = GeneratorProcesses(_frames, tasks, jobs)
        recordings = []
        for number, file in enumerate(files):
            parts = [self._processes.iterate_task(number * groups + g) for g in range(groups)]
            recordings.append(placed(number, _Recording(file, parts)))
        super().__init__(Chain(recordings))

    def items(self) -> Iterator[Item]:
        """Yield the frames of all recordings."""
        return iter(self.source)

    def close(self) -> None:
        """End the processes."""
        super().close()
        self._processes.close()


class _Recording(BaseSource[Frames | Gap]):
    """A recording with features from several processes, all cut at the same positions."""

    def __init__(self, file: Source, parts: Sequence[Iterator[Frames | Gap]]) -> None:
        self.label, self.seconds, self.stream_info = file.label, file.seconds, file.stream_info
        self._parts = parts

    def items(self) -> Iterator[Frames | Gap]:
        waiting = np.empty(0, np.bool_)  # decisions on ticks that some parts have not reached
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
    """Extract features of a recording. Each gap is at the tick where `Monitor` would place it."""
    reader = BlocksToTicks(
        make(task.features, task.setup),
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
                yield from reader.process(item)
            elif reader.ticks:
                yield Frames(np.empty(0, np.bool_), {}, ((reader.ticks, item),))
            else:
                yield item
    if reader.ticks:
        yield reader.flush()


LATE_SECONDS = 2.0  # of waiting audio before a feature sheds some
PATIENCE_SECONDS = 3.0  # of wall time, enough to catch up after a short stall
LEAST_SECONDS = 4.0  # minimum audio that a feature sheds
BUSY = 0.7  # wall seconds per second of audio above which a stream cannot catch up
TOO_LATE_SECONDS = 10.0  # of waiting audio, whatever the features cost
_MEMORY = 0.98  # decay per second: a cost is remembered for some 50 s of audio


class Timed:
    """Feature that measures its cost, and can skip audio."""

    def __init__(self, feature: Feature, clock: Callable[[], float] = time.perf_counter) -> None:
        self.spec, self.follow, self.feature = feature.spec, feature.follow, feature
        self._rate = feature.spec.rate or 1
        self.activity = getattr(feature, "activity", None)  # shared with the stream's clock
        self._clock = clock
        self._spent = self._heard = 0.0  # wall and audio seconds, decaying
        self._samples = 0  # since the last reset
        self._until = 0.0  # end of shedding, in audio seconds since then

    @property
    def cost(self) -> float:
        """Recent wall seconds per second of audio, when no audio is skipped."""
        return self._spent / self._heard if self._heard else 0.0

    @property
    def is_shedding(self) -> bool:
        """True while the feature skips audio."""
        return self._samples / self._rate < self._until

    def charge(self, seconds: float) -> None:
        """Add wall seconds that were spent on this feature elsewhere."""
        self._spent += seconds

    def shed(self, seconds: float) -> None:
        """Skip the frames that the next seconds of audio complete."""
        self._until = self._samples / self._rate + seconds
        self.feature.skip_to(round(self._until * TICKS_PER_SECOND))

    def process(self, samples: FloatArray) -> Track:
        """Process samples with the feature."""
        is_shedding, began = self.is_shedding, self._clock()
        track = self.feature.process(samples)
        seconds = samples.size / self._rate
        self._samples += samples.size
        if not is_shedding:
            fading = _MEMORY**seconds
            self._spent = fading * self._spent + self._clock() - began
            self._heard = fading * self._heard + seconds
        return track

    def flush(self) -> Track:
        """Flush the feature."""
        return self.feature.flush()

    def embed_part(self, speech: FloatArray) -> AnyArray:
        """Embed part of a window with the feature, which must be a `WindowFeature`."""
        assert isinstance(self.feature, WindowFeature)
        return self.feature.embed_part(speech)

    def skip_to(self, tick: int) -> None:
        """Skip to a tick with the feature."""
        self.feature.skip_to(tick)

    def resume_at(self, samples: int) -> None:
        """Count from this sample of the recording, where a snapshot continues."""
        self._samples = samples

    def reset(self) -> None:
        """Reset the feature, without skipping."""
        self._samples, self._until = 0, 0.0
        self.feature.reset()


class Shedder:
    """Chooser of features that skip audio if a stream falls behind.

    If the backlog exceeds two seconds for three seconds of wall time, the slowest feature skips the
    whole backlog, at least four seconds. The stream then has a gap ``"thinned"``. If the other
    features alone are too slow as well, the next one skips at four seconds of backlog, otherwise at
    ten. A feature has one side, or two with an anonymiser.
    """

    def __init__(
        self, features: Sequence[Sequence[Timed]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._features, self._clock = tuple(features), clock
        self._late_since: float | None = None

    @property
    def is_exhausted(self) -> bool:
        """True while every feature skips audio."""
        return all(any(side.is_shedding for side in sides) for sides in self._features)

    def shed(self, waiting: float) -> Gap | None:
        """If the backlog is too long, make a feature skip audio, and return the gap."""
        if waiting <= LATE_SECONDS:
            self._late_since = None
            return None
        able = [sides for sides in self._features if not any(side.is_shedding for side in sides)]
        maximum = LATE_SECONDS
        if len(able) < len(self._features):
            # it will catch up without these, unless the others cost too much as well
            quick = sum(side.cost for sides in able for side in sides) < BUSY
            maximum = TOO_LATE_SECONDS if quick else 2 * LATE_SECONDS
        if not able or waiting <= maximum:
            self._late_since = None
            return None
        now = self._clock()
        if self._late_since is None:
            self._late_since = now
        if now - self._late_since < PATIENCE_SECONDS:
            return None
        self._late_since = None
        slowest = max(able, key=lambda sides: sum(side.cost for side in sides))
        seconds = max(LEAST_SECONDS, waiting)
        for side in slowest:
            side.shed(seconds)
        name = slowest[0].spec.name
        detail = f"{name} skips {seconds:.1f} s because this machine cannot keep up"
        return Gap("thinned", seconds, detail=detail)


class LoadShedding(WrappedLiveSource):
    """Live source in which the slowest feature skips audio if the reader falls behind."""

    def __init__(
        self,
        source: LiveSource,
        features: Sequence[Sequence[Timed]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(source)
        self._shedder = Shedder(features, clock)

    def items(self) -> Iterator[Item]:
        """Yield the stream, with a gap where a feature skips audio."""
        for item in self.source:
            gap = self._shedder.shed(self.source.waiting_seconds)
            if gap is not None:
                yield gap
            yield item


def timed(names: Iterable[str], setup: FeatureSetup = AS_ENVIRONMENT) -> list[Timed]:
    """Create the named features with `Timed`, for live use."""
    return [Timed(feature) for feature in make(names, setup)]


WORTHWHILE_SECONDS = 300.0
"""Minimum audio per process, which takes a second or two to start."""


def add_load_shedding(
    source: LiveSource, monitor: Monitor, pair: MonitorPair | None = None
) -> Source:
    """Wrap a live source, so that the slowest feature skips audio if the machine cannot keep up."""
    if not source.stream_info.audio:  # frames cost nothing
        return source
    timed = [Timed(feature) for feature in monitor.front_end.make()]
    monitor.front_end.use(timed)
    if pair is None:
        return LoadShedding(source, [(feature,) for feature in timed])
    protected = [Timed(feature) for feature in pair.features]
    pair.use(protected)
    return LoadShedding(source, list(zip(timed, protected, strict=True)))


def prefetch_features(
    source: Source, monitor: Monitor, jobs: int | None
) -> PrefetchedFrames | None:
    """Compute features of recordings in ``jobs`` processes; None chooses the number.

    Returns None if this process computes them, for example with custom features.
    """
    parts = source.sources if isinstance(source, Chain) else (source,)
    if jobs is None:
        jobs = worthwhile((recording.seconds or 0.0 for recording in parts), WORTHWHILE_SECONDS)
    if jobs < 2 or not monitor.front_end.by_name:
        return None
    from monitor.sources.beside import SideInputSource

    recordings = [
        recording.source if isinstance(recording, SideInputSource) else recording
        for recording in parts
    ]
    files = [recording for recording in recordings if isinstance(recording, File)]
    if len(files) != len(parts):
        return None

    def placed(number: int, frames: Source) -> Source:
        recording = parts[number]
        return recording.around(frames) if isinstance(recording, SideInputSource) else frames

    return PrefetchedFrames(
        files,
        monitor.front_end.audio_features,
        jobs=jobs,
        setup=monitor.front_end.setup,
        channel=monitor.settings.channel,
        levels=monitor.on_change != "ignore",
        skip=monitor.core.skipped_ticks,
        placed=placed,
    )
