"""Live streams on the workers of a dask scheduler; another worker continues those of a dead one."""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from threading import Condition, RLock, Thread
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from monitor.cluster import Cluster
from monitor.errors import MonitorError, SourceError, UsageError
from monitor.events.run import Alert
from monitor.features.framing import columns_of
from monitor.lazy import Managed
from monitor.population.population import Population
from monitor.run.pool import Pool, PoolLimits, seconds_of
from monitor.stream.snapshot import read_seconds
from monitor.stream.stream import Event
from monitor.types import Block, Gap

HOP_SECONDS = 0.1
"""Wall seconds from one exchange with a worker to the next."""
LOOK_SECONDS = 1.0
"""Wall seconds from one look for new workers to the next."""
LOST_SECONDS = 60.0
"""Wall seconds without an answer, after which a worker counts as dead."""
_STORE = "monitor-streams"

Item = Block | Gap


class PoolWorker:
    """Actor on a dask worker: a pool of its own. Errors are returned by key, never raised."""

    def __init__(
        self,
        population: Callable[[], Population],
        features: Sequence[str] | None,
        limits: PoolLimits,
    ) -> None:
        self._pool = Pool(population(), features, limits=limits)

    def exchange(
        self,
        begins: Mapping[str, tuple[bytes | None, Mapping[str, Any]]],
        items: Mapping[str, Sequence[Item]],
        ends: Sequence[str],
        keys: Sequence[str],
    ) -> tuple[dict[str, list[Event | Alert]], dict[str, Exception]]:
        """Begin or continue streams, push items, end streams; return the events of all by key."""
        events: dict[str, list[Event | Alert]] = {}
        errors: dict[str, Exception] = {}
        pool = self._pool
        for key in keys:
            try:
                if key in begins:
                    snapshot, options = begins[key]
                    if snapshot is None:
                        pool.open(key, **options)
                    else:
                        pool.restore(key, snapshot, **options)
                for item in items.get(key, ()):
                    pool.push(key, item)
                events[key] = pool.finish(key) if key in ends else pool.poll(key)
                if key in ends:
                    pool.forget(key)
            except Exception as error:
                errors[key] = error
        return events, errors

    def snapshot(self, keys: Sequence[str]) -> dict[str, tuple[bytes, list[Event | Alert]]]:
        """Return snapshots by key, with the events before them; none of a stream that cannot move.

        A snapshot has all that was pushed. Without its events they would die with this worker.
        """
        taken = {}
        for key in keys:
            with suppress(MonitorError):
                taken[key] = self._pool.snapshot(key), self._pool.poll(key)
        return taken

    def forget(self, key: str) -> None:
        """Drop a stream."""
        if key in self._pool.keys:
            self._pool.forget(key)


@dataclass
class _FarStream:
    """One stream as its sender knows it."""

    options: Mapping[str, Any]
    worker: str | None = None
    snapshot: bytes | None = None
    items: deque[Item] = field(default_factory=deque)  # since the snapshot
    sent: int = 0  # of these, to the present worker
    events: deque[Event | Alert] = field(default_factory=deque)
    last_seconds: float = -1.0  # of the newest event
    ends: bool = False
    is_over: bool = False
    error: Exception | None = None

    @property
    def snapshot_seconds(self) -> float:
        """Seconds of audio in the snapshot."""
        return 0.0 if self.snapshot is None else read_seconds(self.snapshot)

    def advance(self, snapshot: bytes, count: int) -> None:
        """Take a snapshot, and drop the items that are in it."""
        self.snapshot = snapshot
        for _ in range(count):
            self.items.popleft()
        self.sent -= count

    def keep(self, events: Sequence[Event | Alert]) -> None:
        """Keep events that did not come from an earlier worker already."""
        before = self.last_seconds
        for event in events:
            if event.seconds > before:
                self.events.append(event)
                self.last_seconds = max(self.last_seconds, event.seconds)


class FarPool(Managed):
    """Live streams on the workers of a dask scheduler, each by a key.

    A worker holds a `Pool`; a stream goes to a worker by its key. Every ``snapshot_seconds`` each
    stream's snapshot goes to the scheduler. Audio since then waits here, in memory. If a worker
    dies, another continues its streams from there: no speech is lost, and none counts twice.

    Args:
        where: the scheduler, as of `Cluster`. Anyone who reaches it can run code here and there.
        population: makes the population on a worker, such as `Population.reference`, or
            ``functools.partial(Population.load, path)`` of a path that all machines share.
        features: names; None for all that the population supports.
        snapshot_seconds: wall seconds from snapshot to snapshot.
        limits: of the pool of each worker.
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
        self._cluster = Cluster(where)
        self._client = self._cluster.client
        self._client.direct_to_workers = True  # otherwise audio passes through the scheduler
        self._limits = limits or PoolLimits()
        self._arguments = population, features, self._limits
        self._every = snapshot_seconds
        self._streams: dict[str, _FarStream] = {}
        self._actors: dict[str, Any] = {}
        self._making: dict[str, Any] = {}
        self._dead: set[str] = set()
        self._lock = RLock()
        self._changed = Condition(self._lock)
        self._closed, self._looks = False, 0.0
        self.hop_seconds: deque[float] = deque(maxlen=1000)
        self._thread = Thread(target=self._work, daemon=True)
        self._thread.start()

    def open(self, key: str, *, resume: bool = False, **options: Any) -> float:
        """Open a stream; options as of `Pool.open`.

        ``resume`` continues the scheduler's snapshot of that key, which another sender left.
        Returns the seconds of audio in it, otherwise 0. Push the audio after them.
        """
        snapshot = self._client.get_metadata([_STORE, key], None) if resume else None
        stream = _FarStream(options, snapshot=snapshot)
        with self._lock:
            if key in self._streams:
                raise UsageError(f"stream {key!r} is open: forget it first")
            self._streams[key] = stream
        return stream.snapshot_seconds

    def push(self, key: str, samples: ArrayLike | Item, rate: int = 16_000) -> None:
        """Queue samples, (n,) or (n, channels), or a gap; returns at once.

        SourceError for invalid samples, and where more waits than the limit of a pool.
        """
        item = samples if isinstance(samples, Block | Gap) else Block(np.asarray(samples), rate)
        if isinstance(item, Block):
            columns_of(item, None)
            item = replace(item, samples=np.array(item.samples, np.float32))
        with self._lock:
            stream = self._find(key)
            if stream.ends:
                raise UsageError(f"stream {key!r} has ended: open another one")
            waiting = sum(map(seconds_of, list(stream.items)[stream.sent :]))
            if waiting and waiting + seconds_of(item) > self._limits.backlog_seconds:
                raise SourceError(f"{waiting:.1f} s of stream {key!r} wait: no worker takes them")
            stream.items.append(item)

    def poll(self, key: str) -> list[Event | Alert]:
        """Return the events of a stream since the last call; raise what ended it, once."""
        with self._lock:
            stream = self._find(key)
            events = list(stream.events)
            stream.events.clear()
            if not events and stream.error is not None:
                error, stream.error = stream.error, None
                raise error
            return events

    def finish(self, key: str) -> list[Event | Alert]:
        """End a stream, wait until its audio is processed, and return its last events."""
        with self._changed:
            stream = self._find(key)
            stream.ends = True
            self._changed.wait_for(lambda: stream.is_over or self._closed)
        return self.poll(key)

    def forget(self, key: str) -> None:
        """Drop a stream and its snapshot."""
        with self._lock:
            self._find(key)
            stream = self._streams.pop(key)
            actor = self._actors.get(stream.worker or "")
        if actor is not None and not stream.is_over:
            with self._client.as_current():
                actor.forget(key)
        self._client.set_metadata([_STORE, key], None)

    def snapshot_seconds_of(self, key: str) -> float:
        """Return the seconds of audio in the newest snapshot of a stream."""
        return self._find(key).snapshot_seconds

    @property
    def workers(self) -> list[str]:
        """Addresses of the workers that have a pool."""
        return list(self._actors)

    def worker_of(self, key: str) -> str | None:
        """Return the address of the worker of a stream; None before it has one."""
        return self._find(key).worker

    def close(self) -> None:
        """Let go of the scheduler; streams on workers end."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()
        self._actors.clear()
        self._cluster.close()

    def _find(self, key: str) -> _FarStream:
        if self._closed:
            raise UsageError("this FarPool is closed: open another one")
        try:
            return self._streams[key]
        except KeyError:
            raise UsageError(f"no open stream {key!r}") from None

    # ------------------------------------------------------------------------ the sender's thread

    def _work(self) -> None:
        """Exchange with all workers, again and again."""
        with self._client.as_current():  # actors look for it
            due = time.monotonic() + self._every
            while not self._closed:
                due = self._hop(due)
                with self._changed:
                    self._changed.wait_for(lambda: self._closed, HOP_SECONDS)

    def _hop(self, due: float) -> float:
        """Exchange with all workers, and store snapshots if they are due; return when they are."""
        try:
            self._find_workers()
            with self._lock:
                batches = self._assign()
            self._exchange(batches)
            if time.monotonic() >= due:
                self._store()
                return time.monotonic() + self._every
        except MonitorError as error:
            self._fail(error)
        except Exception as error:  # of dask, whatever it raises
            gone = MonitorError(f"the scheduler is gone ({type(error).__name__})")
            gone.__cause__ = error
            self._fail(gone)
        return due

    def _fail(self, error: Exception) -> None:
        """End all streams by an error."""
        with self._changed:
            for stream in self._streams.values():
                if not stream.is_over:
                    stream.error, stream.ends, stream.is_over = error, True, True
            self._changed.notify_all()

    def _find_workers(self) -> None:
        """Make pools on workers that have none; nothing waits for those."""
        for address in [name for name, future in self._making.items() if future.done()]:
            future = self._making.pop(address)
            if future.status == "finished":
                self._actors[address] = future.result(timeout=LOST_SECONDS)
            elif isinstance(error := future.exception(timeout=LOST_SECONDS), MonitorError):
                raise error
            else:  # it has died meanwhile
                self._dead.add(address)
        if time.monotonic() < self._looks:
            return
        self._looks = time.monotonic() + LOOK_SECONDS
        present = set(self._client.nthreads())
        for address in set(self._actors) - present:
            self._lose(address)
        self._making = {name: each for name, each in self._making.items() if name in present}
        for address in present - set(self._actors) - set(self._making) - self._dead:
            self._making[address] = self._client.submit(
                PoolWorker, *self._arguments, actor=True, workers=[address], pure=False
            )

    def _assign(self) -> dict[str, list[str]]:
        """Give streams without a worker one; return the keys of each worker."""
        batches: dict[str, list[str]] = {}
        for key, stream in self._streams.items():
            if stream.is_over:
                continue
            if stream.worker is None and self._actors:
                stream.worker, stream.sent = self._choose(key), -1
            if stream.worker is not None:
                batches.setdefault(stream.worker, []).append(key)
        return batches

    def _choose(self, key: str) -> str:
        """Choose a worker by a key; one that joins or leaves moves few others."""
        return max(self._actors, key=lambda name: hashlib.sha256(f"{key} {name}".encode()).digest())

    def _exchange(self, batches: Mapping[str, Sequence[str]]) -> None:
        """Send what is new to all workers at once, and keep their events."""
        calls = []
        for address, keys in batches.items():
            begins, items, ends, counts = {}, {}, [], {}
            with self._lock:
                for key in keys:
                    stream = self._streams[key]
                    if stream.sent < 0:
                        begins[key] = stream.snapshot, stream.options
                    counts[key] = len(stream.items)
                    items[key] = list(stream.items)[max(stream.sent, 0) :]
                    if stream.ends:
                        ends.append(key)
            began = time.monotonic()
            future = self._call(address, "exchange", begins, items, ends, list(keys))
            calls.append((address, future, counts, ends, began))
        for address, future, counts, ends, began in calls:
            answer = self._answer(address, future)
            if answer is None:
                continue
            self.hop_seconds.append(time.monotonic() - began)
            with self._changed:
                self._keep(answer, counts, ends)
                self._changed.notify_all()

    def _keep(
        self,
        answer: tuple[dict[str, list[Event | Alert]], dict[str, Exception]],
        counts: Mapping[str, int],
        ends: Sequence[str],
    ) -> None:
        events, errors = answer
        for key, count in counts.items():
            if (stream := self._streams.get(key)) is None:
                continue
            stream.sent = count
            stream.keep(events.get(key, ()))
            if key in errors:
                stream.error, stream.ends = errors[key], True
            stream.is_over = key in ends or key in errors

    def _store(self) -> None:
        """Take snapshots of all streams, and drop the audio before them."""
        with self._lock:
            batches: dict[str, dict[str, int]] = {}
            for key, stream in self._streams.items():
                if stream.worker is not None and not stream.is_over and stream.sent > 0:
                    batches.setdefault(stream.worker, {})[key] = stream.sent
        futures = {a: self._call(a, "snapshot", list(keys)) for a, keys in batches.items()}
        for address, counts in batches.items():
            answer = self._answer(address, futures[address])
            for key, (snapshot, events) in (answer or {}).items():
                self._client.set_metadata([_STORE, key], snapshot)
                with self._lock:
                    if (sender := self._streams.get(key)) is not None:
                        sender.advance(snapshot, counts[key])
                        sender.keep(events)

    def _call(self, address: str, method: str, *arguments: Any) -> Any:
        """Call a worker's pool; return the future of its answer, None where it has died."""
        try:
            return getattr(self._actors[address], method)(*arguments)
        except Exception:  # dask's, of an actor that it knows to be lost
            return None

    def _answer(self, address: str, future: Any) -> Any:
        """Return the answer of a worker; None where it has died."""
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
            except Exception:  # dask's: actors return their own errors
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
