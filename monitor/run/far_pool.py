"""Live streams on dask workers. If a worker dies, another continues its streams."""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from threading import Lock, Thread
from typing import Any, TypeAlias

from numpy.typing import ArrayLike

from monitor.cluster import Cluster
from monitor.errors import MonitorError, SourceError, UsageError
from monitor.events.reading import Reading
from monitor.events.run import Alert
from monitor.population.population import Population
from monitor.run.pool import (
    KeyedStream,
    KeyedStreams,
    Pool,
    PoolLimits,
    copy_block,
    drop_oldest_readings,
    seconds_of,
)
from monitor.stream.snapshot import read_seconds
from monitor.stream.stream import Event
from monitor.types import Block, Gap

HOP_SECONDS = 0.1
"""Wall seconds between exchanges with a worker."""
LOOK_SECONDS = 1.0
"""Wall seconds between searches for new workers."""
LOST_SECONDS = 60.0
"""Wall seconds without an answer, after which a worker counts as dead."""
QUIET_SECONDS = 30.0
"""Seconds of audio after which a stream's first snapshot is taken even without speech."""
_STORE = "monitor-streams"

Item = Block | Gap


Events: TypeAlias = "list[Event | Alert]"


class PoolWorker:
    """Actor on a dask worker, with one pool. It returns errors by key instead of raising them."""

    def __init__(
        self,
        population: Callable[[], Population],
        features: Sequence[str] | None,
        limits: PoolLimits,
    ) -> None:
        self._pool = Pool(population(), features, limits=limits)

    def __del__(self) -> None:
        if hasattr(self, "_pool"):  # dask drops the actor when its sender has closed or died
            self._pool.close()

    def exchange(
        self,
        forgotten: Sequence[str],
        begins: Mapping[str, tuple[bytes | None, bytes]],
        items: Mapping[str, Sequence[Item]],
        ends: Collection[str],
    ) -> tuple[dict[str, Events], dict[str, Exception]]:
        """Forget streams, begin others by snapshot and pickled options, push items and end streams.

        Returns events and errors by key. A stream that ends, or has an error, is forgotten.
        """
        self._forget(forgotten)
        events: dict[str, Events] = {key: [] for key in items}
        errors: dict[str, Exception] = {}
        for key, waiting in items.items():
            try:
                if key in begins:
                    self._begin(key, *begins[key])
                for item in waiting:
                    self._pool.push(key, item)
                if key in ends:  # end all streams before finishing any
                    self._pool.end(key)
            except Exception as error:
                errors[key] = _portable(error)
        for key in items:
            try:
                if key in ends:
                    events[key] += self._pool.finish(key)
                events[key] += self._pool.poll(key)
            except Exception as error:
                errors.setdefault(key, _portable(error))
        self._forget({*ends, *errors})
        return events, errors

    def snapshot(
        self, keys: Sequence[str]
    ) -> tuple[dict[str, tuple[bytes, Events]], dict[str, Exception]]:
        """Return snapshots by key, each with the events before it, and errors by key.

        A snapshot covers all audio pushed so far. If this worker dies, only events returned here
        remain.
        """
        snapshots, errors = {}, {}
        for key in keys:
            try:
                snapshots[key] = self._pool.snapshot(key), self._pool.poll(key)
            except Exception as error:
                errors[key] = _portable(error)
        return snapshots, errors

    def _begin(self, key: str, snapshot: bytes | None, options: bytes) -> None:
        from distributed.protocol.pickle import loads

        if snapshot is None:
            self._pool.open(key, **loads(options))
        else:
            self._pool.restore(key, snapshot, **loads(options))

    def _forget(self, keys: Iterable[str]) -> None:
        for key in keys:
            with suppress(UsageError):  # it was not opened here
                self._pool.forget(key)


def _portable(error: Exception) -> Exception:
    """Return an error that every sender can unpickle."""
    if isinstance(error, MonitorError):
        return error
    return MonitorError(f"{type(error).__name__}: {error}")


@dataclass(eq=False)
class _FarStream(KeyedStream):
    """Sender's record of one stream."""

    key: str
    options: bytes
    worker: str | None = None
    snapshot: bytes | None = None
    items: deque[Item] = field(default_factory=deque)  # since the snapshot
    sent: int = 0  # items sent to the present worker; -1 before it has begun the stream
    last_seconds: float = -1.0  # of the newest event
    known_seconds: float = -1.0  # of the newest event from earlier workers
    has_spoken: bool = False  # until then, a snapshot would lose sound held for the first syllable

    @property
    def snapshot_seconds(self) -> float:
        return 0.0 if self.snapshot is None else read_seconds(self.snapshot)

    @property
    def is_storable(self) -> bool:
        """True if items were sent, and no sound is held for the first syllable."""
        if self.ends or self.sent <= 0:
            return False
        return self.has_spoken or sum(map(seconds_of, self.items)) >= QUIET_SECONDS

    @property
    def unsent(self) -> list[Item]:
        """Items that the present worker lacks."""
        return list(self.items)[max(self.sent, 0) :]

    def begin(self, worker: str) -> None:
        """Continue from the snapshot on a worker, which repeats the events since then."""
        self.worker, self.sent, self.known_seconds = worker, -1, self.last_seconds

    def advance(self, snapshot: bytes, count: int) -> None:
        """Store a snapshot, and drop the ``count`` items that it covers."""
        self.snapshot = snapshot
        for _ in range(count):
            self.items.popleft()
        self.sent -= count

    def keep(self, events: Iterable[Event | Alert]) -> None:
        """Append events in order of time, except those that an earlier worker already returned."""
        for event in events:
            if event.seconds > self.known_seconds:
                self.events.append(event)
                self.has_spoken |= isinstance(event, Reading) and event.speech > 0
                self.last_seconds = event.seconds
        drop_oldest_readings(self.events)

    def fail(self, error: Exception) -> None:
        self.error, self.ends, self.is_over = error, True, True


class FarPool(KeyedStreams[str, _FarStream]):
    """Pool of live streams on the workers of a dask scheduler. Each stream has a key.

    Each worker has a `Pool`, and a stream's key determines its worker. Every ``snapshot_seconds``,
    a snapshot of each stream is sent to the scheduler. This process keeps the audio since the
    snapshot in memory. If a worker dies, another continues its streams from the snapshots. No
    speech is lost or counted twice. A stream without a snapshot, for example with custom features,
    ends with an error.

    Args:
        where: the scheduler, as in `Cluster`. Anyone who can reach it can run code here and on the
            workers.
        population: function that loads the population on a worker, such as `Population.reference`,
            or ``functools.partial(Population.load, path)`` with a path that all machines share.
        features: names; None for all that the population supports.
        snapshot_seconds: wall seconds between snapshots.
        limits: limits of each worker's pool.
    """

    def __init__(
        self,
        where: str,
        population: Callable[[], Population],
        features: Sequence[str] | None = None,
        *,
        snapshot_seconds: float = 2.0,
        limits: PoolLimits | None = None,
    ) -> None:
        if not 0 < snapshot_seconds <= 60:
            raise UsageError(
                f"invalid snapshot_seconds={snapshot_seconds:g}: use above 0, up to 60"
            )
        super().__init__()
        self._cluster = Cluster(where)
        self._client = self._cluster.client
        self._client.direct_to_workers = True  # otherwise audio passes through the scheduler
        self._limits = limits or PoolLimits()
        backlog = self._limits.backlog_seconds + LOST_SECONDS  # room for the audio of a lost worker
        self._arguments = population, features, replace(self._limits, backlog_seconds=backlog)
        self._every = snapshot_seconds
        self._actors: dict[str, Any] = {}
        self._making: dict[str, Any] = {}
        self._dead: set[str] = set()
        self._forgotten: list[tuple[str, str]] = []  # worker and key
        self._storing = Lock()
        self._looks = 0.0
        self.hop_seconds: deque[float] = deque(maxlen=1000)
        self._thread = Thread(target=self._work, daemon=True)
        self._thread.start()

    def open(self, key: str, *, resume: bool = False, **options: Any) -> float:
        """Open a stream; options as in `Pool.open`.

        ``resume`` continues another sender's snapshot of this key, which the scheduler keeps.
        Returns the seconds of audio in the snapshot, otherwise 0. Push the audio that follows.
        """
        from distributed.protocol.pickle import dumps

        try:
            stream = _FarStream(key, dumps(options))
        except Exception as error:
            raise UsageError(f"the options of stream {key!r} cannot be sent: {error}") from error
        if resume:
            stream.snapshot = self._client.get_metadata([_STORE, key], None)
        seconds = stream.snapshot_seconds
        with self._lock:
            self._check_new(key)
            self._streams[key] = stream
        return seconds

    def push(self, key: str, samples: ArrayLike | Item, rate: int = 16_000) -> None:
        """Queue samples, (n,) or (n, channels), or a gap; returns at once.

        SourceError if samples are invalid, or the stream exceeds its backlog.
        """
        item = samples if isinstance(samples, Gap) else copy_block(samples, rate)
        with self._lock:
            stream = self._find(key)
            if stream.ends:
                raise UsageError(f"stream {key!r} has ended: open another one")
            waiting, maximum = sum(map(seconds_of, stream.unsent)), self._limits.backlog_seconds
            if waiting and waiting + seconds_of(item) > maximum:
                raise SourceError(
                    f"{waiting:.1f} s of stream {key!r} wait for a worker (limit {maximum:g} s). "
                    "Push a Gap for dropped audio, or start workers"
                )
            stream.items.append(item)

    def forget(self, key: str) -> None:
        """Drop a stream and its snapshot."""
        with self._storing:
            with self._changed:
                stream = self._find(key)
                del self._streams[key]
                if stream.worker is not None and not stream.is_over:
                    self._forgotten.append((stream.worker, key))
                self._changed.notify_all()
            self._client.set_metadata([_STORE, key], None)

    @property
    def workers(self) -> list[str]:
        """Addresses of the workers that have a pool."""
        return list(self._actors)

    def close(self) -> None:
        """Disconnect from the scheduler. Streams on workers end."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()
        self._actors.clear()
        self._cluster.close()

    # ------------------------------------------------------------------------ the sender's thread

    def _work(self) -> None:
        """Exchange with all workers until the pool is closed."""
        with self._client.as_current():  # actors need it
            due = time.monotonic() + self._every
            while not self._closed:
                due = self._hop(due)
                with self._changed:
                    self._changed.wait_for(lambda: self._closed, HOP_SECONDS)

    def _hop(self, due: float) -> float:
        """Exchange with all workers, and store snapshots if due; return when they are next due."""
        try:
            self._find_workers()
            self._exchange()
            if time.monotonic() >= due:
                self._store()
                return time.monotonic() + self._every
        except MonitorError as error:
            self._fail(error)
        except Exception as error:  # dask may raise anything
            lost = MonitorError(
                f"lost the scheduler ({type(error).__name__}): start it, and open the streams again"
            )
            lost.__cause__ = error
            self._fail(lost)
        return due

    def _fail(self, error: Exception) -> None:
        with self._changed:
            for stream in self._streams.values():
                if not stream.is_over:
                    stream.fail(error)
            self._changed.notify_all()

    def _find_workers(self) -> None:
        """Start making pools on workers that have none, without waiting for them."""
        for address in [name for name, future in self._making.items() if future.done()]:
            future = self._making.pop(address)
            if future.status == "finished":
                self._actors[address] = future.result(timeout=LOST_SECONDS)
            elif future.status == "error":
                self._refuse(address, future.exception(timeout=LOST_SECONDS))
            else:  # the worker has died
                self._dead.add(address)
        if time.monotonic() < self._looks:
            return
        self._looks = time.monotonic() + LOOK_SECONDS
        present = set(self._client.nthreads())
        self._dead &= present  # a later worker may have the same address
        for address in set(self._actors) - present:
            self._lose(address)
        self._making = {name: pool for name, pool in self._making.items() if name in present}
        for address in present - set(self._actors) - set(self._making) - self._dead:
            self._making[address] = self._client.submit(
                PoolWorker, *self._arguments, actor=True, workers=[address], pure=False
            )

    def _refuse(self, address: str, error: BaseException) -> None:
        """Raise the error of a worker that cannot make a pool, unless it has died."""
        from distributed.scheduler import KilledWorker

        if not isinstance(error, KilledWorker):
            raise MonitorError(f"worker {address} has no pool: {error}") from error
        self._dead.add(address)

    def _assign(self) -> dict[str, list[_FarStream]]:
        """Assign workers to streams that have none; return the streams of each worker."""
        batches: dict[str, list[_FarStream]] = {address: [] for address, _ in self._forgotten}
        for stream in self._streams.values():
            if stream.is_over:
                continue
            if stream.worker is None and self._actors:
                stream.begin(self._choose(stream.key))
            if stream.worker is not None:
                batches.setdefault(stream.worker, []).append(stream)
        return batches

    def _choose(self, key: str) -> str:
        """Choose a worker for a key, so that workers that join or leave move few streams."""
        return max(self._actors, key=lambda name: hashlib.sha256(f"{key} {name}".encode()).digest())

    def _exchange(self) -> None:
        """Send new items to all workers at once, and keep their events."""
        with self._lock:
            batches = self._assign()
            forgotten, self._forgotten = self._forgotten, []
            orders = {a: self._compose(streams) for a, streams in batches.items()}
            counts = {
                address: [(stream, len(stream.items), stream.ends) for stream in streams]
                for address, streams in batches.items()
            }
        began, calls = time.monotonic(), {}
        for address, order in orders.items():
            gone = [key for worker, key in forgotten if worker == address]
            calls[address] = self._call(address, "exchange", gone, *order)
        for address, future in calls.items():
            answer = self._answer(address, future)
            if answer is None:
                continue
            self.hop_seconds.append(time.monotonic() - began)
            events, errors = answer
            with self._changed:
                for stream, count, ends in counts[address]:
                    stream.sent, stream.is_over = count, ends
                    stream.keep(events[stream.key])
                    if stream.key in errors:
                        stream.fail(errors[stream.key])
                self._changed.notify_all()

    def _compose(self, streams: Sequence[_FarStream]) -> tuple[object, object, object]:
        """Compose a worker's arguments for its streams: beginnings, items and ends."""
        begins = {
            stream.key: (stream.snapshot, stream.options) for stream in streams if stream.sent < 0
        }
        items = {stream.key: stream.unsent for stream in streams}
        return begins, items, {stream.key for stream in streams if stream.ends}

    def _store(self) -> None:
        """Take snapshots of all streams, and drop the audio before them."""
        batches: dict[str, list[tuple[_FarStream, int]]] = {}
        with self._lock:
            for stream in self._streams.values():
                if stream.worker is not None and stream.is_storable:
                    batches.setdefault(stream.worker, []).append((stream, stream.sent))
        calls = {
            address: self._call(address, "snapshot", [stream.key for stream, _ in batch])
            for address, batch in batches.items()
        }
        for address, batch in batches.items():
            if (answer := self._answer(address, calls[address])) is None:
                continue
            snapshots, errors = answer
            for stream, count in batch:
                if stream.key in snapshots:
                    self._store_one(stream, count, *snapshots[stream.key])
                else:  # the next exchange returns its last events, and its own error if any
                    with self._lock:
                        stream.error, stream.ends = errors[stream.key], True

    def _store_one(self, stream: _FarStream, count: int, snapshot: bytes, events: Events) -> None:
        with self._storing:
            if self._streams.get(stream.key) is stream:  # otherwise it was forgotten
                self._client.set_metadata([_STORE, stream.key], snapshot)
        with self._lock:
            stream.keep(events)
            stream.advance(snapshot, count)

    def _call(self, address: str, method: str, *arguments: Any) -> Any:
        """Call a worker's pool; return the future of its answer, None if the worker has died."""
        try:
            return getattr(self._actors[address], method)(*arguments)
        except Exception:  # raised by dask for a lost actor
            return None

    def _answer(self, address: str, future: Any) -> Any:
        """Return the answer of a worker; None if it has died."""
        if future is None:
            self._lose(address)
            return None
        until = time.monotonic() + LOST_SECONDS
        while True:
            try:
                return future.result(timeout=HOP_SECONDS)
            except TimeoutError:
                if time.monotonic() < until and address in self._client.nthreads():
                    continue
            except Exception:  # raised by dask, since actors return their errors
                pass
            self._lose(address)
            return None

    def _lose(self, address: str) -> None:
        """Forget a dead worker; its streams need another one."""
        with self._lock:
            self._actors.pop(address, None)
            self._dead.add(address)
            for stream in self._streams.values():
                if stream.worker == address:
                    stream.worker = None
