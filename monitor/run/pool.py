"""Many live streams in one process: shared tables and networks, batches across streams."""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from threading import Condition, RLock, Thread
from typing import Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from monitor.errors import SourceError, UsageError
from monitor.events.reading import Reading
from monitor.events.run import Alert
from monitor.features.embeddings import SpeechWindows
from monitor.features.framing import columns_of
from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup
from monitor.jobs import one_thread
from monitor.kinds import FeatureSpec
from monitor.lazy import Managed
from monitor.population.population import Population
from monitor.protocols import AlertRule, Feature
from monitor.run.pace import Shedder, Timed
from monitor.sources.microphone import PAUSE_SECONDS, SoundClock
from monitor.stream.attacker import Question, assess_together
from monitor.stream.monitor import Monitor
from monitor.stream.plan import DEFAULTS, MonitorSettings, Plan
from monitor.stream.snapshot import resume_snapshot, take_snapshot
from monitor.stream.stream import Answers, Event, Steps
from monitor.types import TICKS_PER_SECOND, Block, Frames, Gap, Item, Notice, Tracks, Words

ROUND_SECONDS = 0.1
"""Wall seconds for which a pool collects audio before it processes all streams together."""
MOST_EVENTS = 3600
"""Maximum unpolled events of a stream. Beyond it, the oldest readings are dropped."""
MOST_BLOCK_SECONDS = 30.0
"""Longest run of waiting audio that is processed at once."""

Key = Hashable
_Key = TypeVar("_Key", bound=Hashable)
_Stream = TypeVar("_Stream", bound="KeyedStream")


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """Limits of a `Pool`. Calls that would exceed a limit raise an error.

    Attributes:
        streams: maximum number of open streams.
        backlog_seconds: maximum waiting audio of one stream.
        memory_mb: maximum resident memory of the whole process, checked when a stream is opened;
            None for no limit.
    """

    streams: int = 1000
    backlog_seconds: float = 30.0
    memory_mb: float | None = None

    def __post_init__(self) -> None:
        if self.streams < 1:
            raise UsageError(f"invalid streams={self.streams}: use 1 or more")
        if not self.backlog_seconds >= 1.0:
            raise UsageError(f"invalid backlog_seconds={self.backlog_seconds:g}: use 1 or more")


@dataclass(frozen=True, slots=True)
class PoolStatistics:
    """State of a pool, for operators.

    Attributes:
        streams: open streams.
        backlog_seconds: waiting audio of all streams.
        lag_seconds: the largest delay of the newest readings; None before any.
        skipped_seconds: audio that some feature skipped, since the pool was opened.
        readings, alerts: events so far, of forgotten streams too.
    """

    streams: int
    backlog_seconds: float
    lag_seconds: float | None
    skipped_seconds: float
    readings: int
    alerts: int


@dataclass(eq=False)
class KeyedStream:
    """Reported state of a stream: events, the error that ended it, and its end."""

    events: deque[Event | Alert] = field(default_factory=deque, init=False)
    error: Exception | None = field(default=None, init=False)
    ends: bool = field(default=False, init=False)  # after the waiting audio
    is_over: bool = field(default=False, init=False)


class PooledStream(KeyedStream):
    """One stream of a pool, with its monitor, waiting audio and events."""

    def __init__(self, monitor: Monitor, rules: Sequence[AlertRule]) -> None:
        super().__init__()
        self.monitor, self.rules = monitor, tuple(rules)
        self.stream = monitor.core
        self.waiting: deque[Item] = deque()
        self.waiting_seconds = self.came_seconds = 0.0
        self.is_ending = self.is_busy = False
        self.lag: float | None = None
        self.requests: list[Future[bytes]] = []  # snapshots for the next round
        self.settling: list[Future[bytes]] = []  # snapshots for this round
        self.wakers: set[Callable[[], object]] = set()
        self._clock, self._last = SoundClock(), 0.0
        timed = [Timed(feature) for feature in monitor.front_end.make()]
        monitor.front_end.use(timed)
        self.shedder = Shedder([(feature,) for feature in timed])
        self.windows = {
            timer.spec.name: (timer, timer.feature)
            for timer in timed
            if isinstance(timer.feature, SpeechWindows)
        }
        for _, feature in self.windows.values():
            feature.defers = True

    def put(self, item: Item, seconds: float, now: float) -> None:
        """Queue an item of this length that arrived at ``now``, in monotonic seconds."""
        if now - self._last > PAUSE_SECONDS or isinstance(item, Gap):
            self._clock.lost()
        self.waiting.append(item)
        self.waiting_seconds += seconds
        self.came_seconds += seconds
        self._clock.record(self.came_seconds, now)
        self._last = now

    def take(self) -> list[Item]:
        """Remove and return the waiting items, with neighbouring blocks of one recording joined."""
        items, self.waiting = list(self.waiting), deque()
        self.waiting_seconds, self.is_busy, self.is_ending = 0.0, True, self.ends
        self.settling, self.requests = self.requests, []
        return list(_join_blocks(items))

    @property
    def is_due(self) -> bool:
        """True while the stream has waiting or unfinished work."""
        if self.is_busy or self.waiting or self.requests:
            return True
        return self.ends and not self.is_over

    def freeze(self) -> None:
        """Take the snapshot that was requested for this round."""
        for request in self.settling:
            try:
                request.set_result(take_snapshot(self.monitor.plan, self.stream, self.rules))
            except Exception as error:  # `snapshot` raises it, and the stream continues
                request.set_exception(error)

    def resume(self, snapshot: bytes) -> float:
        """Continue a snapshot; return the seconds of audio in it."""
        plan = self.monitor.plan
        self.came_seconds = resume_snapshot(plan, self.stream, snapshot, self.rules)
        return self.came_seconds

    def wake(self) -> None:
        """Wake all callers that wait for events."""
        for wake in self.wakers:
            wake()

    def complete(self, event: Event) -> Iterator[Event | Alert]:
        """Yield an event and the alerts that it triggers; a reading gets its lag."""
        if isinstance(event, Reading):
            wall = self._clock.wall(event.seconds)
            self.lag = 0.0 if wall is None else max(0.0, time.monotonic() - wall)
            event = replace(event, lag=self.lag)
        yield event
        for rule in self.rules:
            yield from rule.update(event)

    def keep(self, events: Iterable[Event | Alert], error: Exception | None) -> None:
        """Store events for polling, and the error that ended the stream, if any."""
        self.events.extend(events)
        if error is not None:
            self.error, self.ends, self.is_ending = error, True, True
            self.waiting.clear()
        self.is_over |= self.is_ending
        self.is_busy = False
        if not self.waiting:
            self.shedder.shed(0.0)  # reports no backlog, since an idle stream has no further round
        drop_oldest_readings(self.events)


class KeyedStreams(Managed, Generic[_Key, _Stream]):
    """Base of pools: the open streams by key."""

    def __init__(self) -> None:
        self._streams: dict[_Key, _Stream] = {}
        self._closed = False
        self._lock = RLock()
        self._changed = Condition(self._lock)

    def poll(self, key: _Key) -> list[Event | Alert]:
        """Return the events of a stream since the last call. Readings have their ``lag``.

        If an error ended the stream, the call after its last event raises that error, once.
        """
        with self._lock:
            stream = self._find(key)
            events = list(stream.events)
            stream.events.clear()
            if not events and stream.is_over and stream.error is not None:
                error, stream.error = stream.error, None
                raise error
            return events

    def finish(self, key: _Key) -> list[Event | Alert]:
        """End a stream, wait until its audio is processed, and return its last events."""
        self.end(key)
        self._wait(lambda: self._find(key).is_over)
        return self.poll(key)

    def end(self, key: _Key) -> None:
        """End a stream after its waiting audio; returns at once."""
        with self._lock:
            self._find(key).ends = True
            self._wake()

    def _wake(self) -> None:
        """Have new items processed soon; the caller has the lock."""

    def _wait(self, done: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or done())
            self._check()

    def _check(self) -> None:
        if self._closed:
            raise UsageError(f"this {type(self).__name__} is closed: open another one")

    def _check_new(self, key: _Key) -> None:
        self._check()
        if key in self._streams:
            raise UsageError(f"stream {key!r} is open: forget it first")

    def _find(self, key: _Key) -> _Stream:
        self._check()
        try:
            return self._streams[key]
        except KeyError:
            raise UsageError(f"no open stream {key!r}") from None


class Pool(KeyedStreams[Key, PooledStream]):
    """Pool of live streams in one process. Each stream has a key and its own settings.

    Streams share the population, the networks and all tables. You may call `push` from any thread
    and from asyncio, and it returns at once. One thread of the pool processes the audio of all
    streams. Each stream's figures equal those of its own `Monitor` (docs/method.md). If the machine
    is too slow, the slowest feature skips audio, and the stream gets a gap ``"thinned"``. Streams
    with alert rules skip audio last.

    Open a pool after a fork. A forked child lacks the pool's thread.

    Args:
        population: enrolled speakers, with rank models.
        features: names, as in `Monitor`; None for all that the population supports.
        setup: your own files for the features, such as networks.
        limits: maximum numbers of streams, waiting seconds and megabytes.

    Example:
        >>> with Pool(Population.reference(), ["f0"]) as pool:
        ...     pool.open("call 7")
        ...     pool.push("call 7", np.zeros(32_000), rate=16_000)
        ...     [reading.seconds for reading in pool.finish("call 7")]
        [...]
        [1.0, 2.0]
    """

    def __init__(
        self,
        population: Population,
        features: Sequence[str | FeatureSpec] | None = None,
        *,
        setup: FeatureSetup = AS_ENVIRONMENT,
        limits: PoolLimits | None = None,
    ) -> None:
        super().__init__()
        self.population, self.limits = population, limits or PoolLimits()
        self._features: Sequence[str | Feature | FeatureSpec] | None = features
        self._setup = setup
        self._plans: dict[tuple[object, ...], Plan] = {}
        self._arrived, self._hurried = Condition(self._lock), Condition(self._lock)
        self._process, self._thread = os.getpid(), Thread(target=self._work, daemon=True)
        self._has_arrived = False
        self._urgent = 0  # callers that wait for results
        self._skipped, self._readings, self._alerts = 0.0, 0, 0

    def open(
        self,
        key: Key,
        *,
        watch: str | None = None,
        rules: Sequence[AlertRule] = (),
        step_seconds: float = 1.0,
        on_change: str = "ignore",
        settings: MonitorSettings = DEFAULTS,
    ) -> list[Notice]:
        """Open a stream and return the notices of its setup.

        Arguments and errors are those of `Monitor`. UsageError if the key is open, or a limit is
        reached.
        """
        plan = self._get_plan(watch, step_seconds, on_change, settings)
        stream = PooledStream(Monitor(plan), rules)
        self._add(key, stream)
        return stream.monitor.notices

    def restore(
        self,
        key: Key,
        snapshot: bytes,
        *,
        watch: str | None = None,
        rules: Sequence[AlertRule] = (),
        step_seconds: float = 1.0,
        on_change: str = "ignore",
        settings: MonitorSettings = DEFAULTS,
    ) -> float:
        """Open a stream that continues a `snapshot` of another pool; arguments as in `open`.

        Returns the seconds of audio in the snapshot. Push the audio that follows. StoreError if the
        snapshot is damaged, or of another version, population or settings.
        """
        plan = self._get_plan(watch, step_seconds, on_change, settings)
        stream = PooledStream(Monitor(plan), rules)
        seconds = stream.resume(snapshot)
        self._add(key, stream)
        return seconds

    def _add(self, key: Key, stream: PooledStream) -> None:
        with self._lock:
            self._check_new(key)
            if len(self._streams) >= self.limits.streams:
                raise UsageError(f"{len(self._streams)} streams are open, the limit of this pool")
            if self.limits.memory_mb is not None and _memory_mb() > self.limits.memory_mb:
                raise UsageError(
                    f"the process exceeds memory_mb={self.limits.memory_mb:g}, the limit of this "
                    "pool: forget a stream first"
                )
            self._streams[key] = stream

    def _get_plan(
        self, watch: str | None, step_seconds: float, on_change: str, settings: MonitorSettings
    ) -> Plan:
        """Return a plan; streams with equal settings share one."""
        among = None if settings.among is None else tuple(settings.among)
        chosen = watch, step_seconds, on_change
        key = *chosen, id(settings.rank_models), replace(settings, among=among, rank_models=None)
        with self._lock:
            if key not in self._plans:
                self._plans[key] = Plan.create(
                    self.population, self._features, *chosen, None, self._setup, settings
                )
            return self._plans[key]

    def push(self, key: Key, samples: ArrayLike | Item, rate: int = 16_000) -> None:
        """Queue a copy of samples, (n,) or (n, channels), or another item of the stream.

        SourceError if samples are invalid, or the stream exceeds its backlog. UsageError if the key
        is unknown, or the stream has ended.
        """
        if isinstance(samples, Gap | Frames | Words | Tracks):
            item: Item = samples
        else:
            item = copy_block(samples, rate)
        seconds = seconds_of(item)
        with self._lock:
            stream = self._find(key)
            if stream.ends:
                raise UsageError(f"stream {key!r} has ended: open another one")
            waiting, maximum = stream.waiting_seconds, self.limits.backlog_seconds
            if waiting and waiting + seconds > maximum:
                raise SourceError(
                    f"{waiting:.1f} s of stream {key!r} wait to be processed (limit {maximum:g} "
                    "s). Push a Gap for dropped audio, or open fewer streams"
                )
            stream.put(item, seconds, time.monotonic())
            self._wake()

    async def events(self, key: Key) -> AsyncIterator[Event | Alert]:
        """Yield the events of a stream as they arrive, until the stream ends."""
        loop, woken = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(woken.set)

        with self._lock:
            stream = self._find(key)
            stream.wakers.add(wake)
        try:
            while True:
                woken.clear()
                is_over = stream.is_over
                for event in self.poll(key):
                    yield event
                if is_over:
                    return
                await woken.wait()
        finally:
            with self._lock:
                stream.wakers.discard(wake)

    def snapshot(self, key: Key) -> bytes:
        """Return a stream as bytes without audio; `restore` continues it in another process.

        The snapshot covers all audio pushed before the call, and the state of the rules. The stream
        continues here, too. UsageError if the stream cannot move, because of custom features or
        words beside the audio.
        """
        with self._lock:
            stream, request = self._find(key), Future[bytes]()
            if stream.ends:
                raise UsageError(f"stream {key!r} has ended: there is nothing to move")
            stream.requests.append(request)
            self._wake()
        self._wait(lambda: request.done() or stream.is_over)
        if not request.done():
            raise UsageError(f"stream {key!r} has ended while it was moved")
        return request.result()

    def forget(self, key: Key) -> None:
        """Drop a stream, with its waiting audio and its events."""
        with self._lock:
            stream = self._find(key)
            del self._streams[key]
            stream.is_over = True  # for callers that wait for it
            self._changed.notify_all()
            stream.wake()

    def drain(self) -> None:
        """Wait until all audio that was pushed has been processed."""
        self._wait(lambda: not any(stream.is_due for stream in self._streams.values()))

    def notices(self, key: Key) -> list[Notice]:
        """Return the notices of a stream's setup and of its audio so far."""
        return self._find(key).monitor.notices

    @property
    def keys(self) -> list[Key]:
        """Keys of the open streams."""
        with self._lock:
            return list(self._streams)

    def measure(self) -> PoolStatistics:
        """Return the state of the pool."""
        with self._lock:
            streams = self._streams.values()
            lags = [stream.lag for stream in streams if stream.lag is not None]
            return PoolStatistics(
                len(streams),
                sum(stream.waiting_seconds for stream in streams),
                max(lags, default=None),
                self._skipped,
                self._readings,
                self._alerts,
            )

    def exposition(self) -> str:
        """Return `measure` as Prometheus metrics, for your own ``/metrics``."""
        lines = []
        for figure, value in asdict(self.measure()).items():
            if value is None:
                continue
            is_counter = figure in ("skipped_seconds", "readings", "alerts")
            name = f"monitor_pool_{figure}{'_total' if is_counter else ''}"
            kind = "counter" if is_counter else "gauge"
            lines += [f"# TYPE {name} {kind}", f"{name} {value:g}"]
        return "\n".join([*lines, ""])

    def close(self) -> None:
        """Stop at once and drop all streams. First `finish` each stream that you still need."""
        with self._lock:
            self._closed = True
            for condition in (self._arrived, self._hurried, self._changed):
                condition.notify_all()
            for stream in self._streams.values():
                stream.wake()
        if self._thread.is_alive():
            self._thread.join()
        self._streams.clear()

    def _check(self) -> None:
        super()._check()
        if os.getpid() != self._process:
            raise UsageError("this Pool was opened before a fork: open it in the child")

    def _wake(self) -> None:
        """Start the thread, or wake it; the caller has the lock."""
        if self._thread.ident is None:
            self._thread.start()
        if not self._has_arrived:
            self._has_arrived = True
            self._arrived.notify()

    def _wait(self, done: Callable[[], bool]) -> None:
        """Wait for a result; meanwhile rounds start at once, without collecting audio."""
        with self._lock:
            self._urgent += 1
            try:
                self._hurried.notify()
                super()._wait(done)
            finally:
                self._urgent -= 1

    # ------------------------------------------------------------------------- the pool's thread

    def _work(self) -> None:
        """Process the waiting items of all streams, round after round."""
        while True:
            with self._lock:
                self._arrived.wait_for(lambda: self._closed or self._has_arrived)
                self._hurried.wait_for(lambda: self._closed or self._urgent, ROUND_SECONDS)
                if self._closed:
                    return
                self._has_arrived = False
                due = [stream for stream in self._streams.values() if stream.is_due]
                gaps = self._shed(due)
                batch = [
                    (stream, gap, stream.take()) for stream, gap in zip(due, gaps, strict=True)
                ]
            with one_thread():
                outcomes = _process_batch(batch)
            with self._lock:
                for stream, (events, error) in zip(due, outcomes, strict=True):
                    stream.keep(events, error)
                    self._readings += sum(isinstance(event, Reading) for event in events)
                    self._alerts += sum(event.code == "alert.raised" for event in events)
                    stream.wake()
                self._changed.notify_all()
            del due, batch, outcomes  # frees the audio of the round

    def _shed(self, due: Sequence[PooledStream]) -> list[Gap | None]:
        """Let late streams skip audio, but those with rules only if the others cannot."""
        spared = any(not stream.rules and not stream.shedder.is_exhausted for stream in due)
        gaps = [
            stream.shedder.shed(0.0 if spared and stream.rules else stream.waiting_seconds)
            for stream in due
        ]
        self._skipped += sum(gap.lost_seconds or 0.0 for gap in gaps if gap is not None)
        return gaps


_Made: TypeAlias = "tuple[list[Event | Alert], Exception | None]"


def _process_batch(batch: Sequence[tuple[PooledStream, Gap | None, list[Item]]]) -> list[_Made]:
    """Extract frames of all streams, embed their windows together, and assess them together."""
    extractions = [_Extraction(*streamed) for streamed in batch]
    try:
        _embed(extractions)
    except Exception as error:  # a failed network ends all streams, and poll raises its error
        return [([], error) for _ in extractions]
    asking = extractions
    while asking := [extraction for extraction in asking if extraction.advance()]:
        _answer(asking)
    return [(extraction.events, extraction.error) for extraction in extractions]


def _answer(asking: Sequence[_Extraction]) -> None:
    """Answer the questions of all streams together. If that fails, each stream asks alone later."""
    questions = [question for extraction in asking for question in extraction.questions]
    with suppress(Exception):
        answers = assess_together(questions)
        for extraction in asking:
            count = len(extraction.questions)
            extraction.answers, answers = answers[:count], answers[count:]


class _Extraction:
    """Frames of one stream in one round, and the losses between them, in order."""

    def __init__(self, pooled: PooledStream, gap: Gap | None, items: Sequence[Item]) -> None:
        self.pooled = pooled
        self.error: Exception | None = None
        self.parts: list[Frames | tuple[int, Gap]] = []
        self.events: list[Event | Alert] = []
        self.questions: list[Question] = []  # to be answered before it can advance
        self.answers: Answers | None = None
        self._steps = self._advance()
        intake = pooled.stream.intake
        try:
            for item in (*([] if gap is None else [gap]), *items):
                if isinstance(item, Gap):
                    self.parts.append((intake.arrived, item))
                else:
                    self.parts += pooled.stream.take_in(item)
            if pooled.settling:
                self.parts += intake.complete_collected()
        except Exception as error:
            self.error = error

    def advance(self) -> bool:
        """Collect events; return True at the next questions, False at the end of the round."""
        try:
            if self.questions and self.answers is None:
                self.answers = assess_together(self.questions)
            while True:
                step, self.answers = self._steps.send(self.answers), None
                self.questions = step if isinstance(step, list) else []
                if isinstance(step, list):
                    return True
                self.events.extend(self.pooled.complete(step))
        except StopIteration:
            return False
        except Exception as error:  # not even a rule's error may stop the thread
            self.error = error
            return False

    def _advance(self) -> Steps:
        """Yield the events of these frames, and those of the stream's end."""
        stream = self.pooled.stream
        for item in self.parts:
            yield from stream.steps(item) if isinstance(item, Frames) else stream.lose(*item)
        if self.pooled.is_ending and self.error is None and not stream.is_over:
            for _, feature in self.pooled.windows.values():
                feature.defers = False
            yield from stream.end()
        self.pooled.freeze()


def _embed(extractions: Iterable[_Extraction]) -> None:
    """Embed the deferred windows of all streams together, in one batch per network."""
    deferred = [
        (extraction, index, name, track)
        for extraction in extractions
        for index, frames in enumerate(extraction.parts)
        if isinstance(frames, Frames)
        for name, track in frames.tracks.items()
        if name in extraction.pooled.windows and track.windows
    ]
    by_name = itemgetter(2)
    for name, group in groupby(sorted(deferred, key=by_name), by_name):
        windows = list(group)
        _, feature = windows[0][0].pooled.windows[name]
        began = time.perf_counter()
        filled = feature.embed_deferred([track for *_, track in windows])
        cost = (time.perf_counter() - began) / len(windows)
        for (extraction, index, _, _), track in zip(windows, filled, strict=True):
            frames = extraction.parts[index]
            assert isinstance(frames, Frames)
            extraction.parts[index] = replace(frames, tracks={**frames.tracks, name: track})
            extraction.pooled.windows[name][0].charge(cost)


def seconds_of(item: Item) -> float:
    """Return the length of an item, in seconds of the stream; 0 for words and tracks."""
    if isinstance(item, Block):
        return item.seconds
    return len(item.speech) / TICKS_PER_SECOND if isinstance(item, Frames) else 0.0


def copy_block(samples: ArrayLike | Block, rate: int) -> Block:
    """Copy samples, (n,) or (n, channels), into a block; SourceError if invalid."""
    block = samples if isinstance(samples, Block) else Block(np.asarray(samples), rate)
    columns_of(block, None)
    return Block(np.array(block.samples, np.float32), block.rate, block.recording)


def drop_oldest_readings(events: deque[Event | Alert]) -> None:
    """Drop the oldest readings beyond `MOST_EVENTS` events."""
    while len(events) > MOST_EVENTS:
        oldest = next((event for event in events if isinstance(event, Reading)), None)
        if oldest is None:
            return
        events.remove(oldest)


def _join_blocks(items: Iterable[Item]) -> Iterator[Item]:
    """Yield items, with neighbouring blocks of one recording joined up to a maximum length."""
    run: list[Block] = []
    seconds, run_format = 0.0, None
    for item in items:
        block_format = None
        if isinstance(item, Block):
            block_format = item.recording, item.rate, item.samples.shape[1:]
        if run and (block_format != run_format or seconds >= MOST_BLOCK_SECONDS):
            yield _joined(run)
            run, seconds = [], 0.0
        if isinstance(item, Block):
            run.append(item)
            seconds, run_format = seconds + item.seconds, block_format
        else:
            yield item
    if run:
        yield _joined(run)


def _joined(run: Sequence[Block]) -> Block:
    samples = np.concatenate([block.samples for block in run])
    return Block(samples, run[0].rate, run[0].recording)


def _memory_mb() -> float:
    """Return the resident memory of this process in MB; its peak on a system without /proc."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
    except (OSError, ValueError):
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
