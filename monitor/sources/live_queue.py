"""A bounded queue from an audio callback to the monitor: the callback never waits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from queue import Empty, SimpleQueue

import numpy as np

from monitor.brings import Brings
from monitor.errors import UsageError
from monitor.managed import Managed
from monitor.sources.soundclock import SoundClock
from monitor.types import Block, FloatArray, Gap

__all__ = ["AudioQueue"]

WAKE_SECONDS = 0.1
LONGEST_SECONDS = 1.0  # of a block: who is late hears of it in time
GAP_SECONDS = 1.0  # overflows come in bursts: one report a second


class AudioQueue(Managed):
    """A live source that is fed by a callback of your own audio library.

    `put` copies and returns, so it may be called where nothing may wait; the monitor iterates, in
    another thread. Audio that is not taken in time waits, up to ``queue_seconds``; then new audio
    is dropped, and the stream goes on with a gap (``"dropped"``, or ``"overflow"`` where your
    library says that it lost some itself). Blocks are of at most about one second.

    Args:
        rate: samples per second.
        seconds: end after so many seconds of audio; None goes on until `stop`.
        queue_seconds: how much audio may wait, one second or more.
        recording: number given to the blocks.
        label: what to call it in front of a person.
        stalled_seconds: end when nothing came for so long; None waits for ever.
        clock: wall seconds.

    Attributes:
        came: when audio last came, by the clock; at first, when the queue was made.

    Raises:
        UsageError: ``queue_seconds`` is less than a second.

    Example:
        >>> with AudioQueue(16000) as queue:
        ...     for _ in range(3):  # a callback would, from its own thread
        ...         queue.put(np.zeros(160, np.float32))
        ...     queue.stop()
        ...     [(len(block.samples), block.rate) for block in queue]
        [(480, 16000)]
    """

    brings = Brings(live=True)

    def __init__(
        self,
        rate: int,
        *,
        seconds: float | None = None,
        queue_seconds: float = 30.0,
        recording: int = 0,
        label: str = "audio",
        stalled_seconds: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not queue_seconds >= LONGEST_SECONDS:
            raise UsageError(f"queue_seconds={queue_seconds:g} must be {LONGEST_SECONDS:g} or more")
        self.rate, self.seconds, self.label = rate, seconds, label
        self._recording, self._stalled, self._clock = recording, stalled_seconds, clock
        self._most = round(queue_seconds * rate)
        self._queue: SimpleQueue[_Arrival | None] = SimpleQueue()
        self._put = self._taken = 0  # samples; each thread writes its own counter
        self._dropped = 0  # samples, since the last arrival
        self._over = False
        self._sounds = SoundClock()
        self.came = clock()

    @property
    def waiting_seconds(self) -> float:
        """Audio that was put in and not yet taken."""
        return (self._put - self._taken) / self.rate

    @property
    def taken_seconds(self) -> float:
        """Audio that was taken."""
        return self._taken / self.rate

    def behind_seconds(self, seconds: float) -> float:
        """Wall seconds since that second of the stream came; 0 before anything did."""
        wall = self._sounds.wall(seconds)
        return 0.0 if wall is None else max(0.0, self._clock() - wall)

    def put(self, samples: FloatArray, lost: bool = False) -> None:
        """Take over a copy of these samples; returns at once. Ignored after `stop`.

        Args:
            samples: shape (n,) or (n, channels), floats in [-1, 1]; the same channels each time.
            lost: whether audio before them was lost.
        """
        if self._over:
            return
        if self._put - self._taken + len(samples) > self._most:
            self._dropped += len(samples)
            return
        dropped, self._dropped = self._dropped, 0
        self._put += len(samples)
        self._queue.put(_Arrival(np.array(samples), self._clock(), lost, dropped))

    def stop(self) -> None:
        """Nothing more comes: the stream ends after what waits. May be called from anywhere."""
        self._over = True
        self._queue.put(None)

    def close(self) -> None:
        """Take no more audio."""
        self.stop()

    def __iter__(self) -> Iterator[Block | Gap]:
        reports = _GapReports(self.rate)
        self._sounds, self.came = SoundClock(), self._clock()
        most = None if self.seconds is None else round(self.seconds * self.rate)
        silent = 0.0
        while (arrivals := self._take()) is not None:
            if not arrivals:
                silent += WAKE_SECONDS  # not the clock: we may have stood still ourselves
                if self._stalled is not None and silent >= self._stalled:
                    break
                continue
            silent, self.came = 0.0, arrivals[-1].came
            taken = self._taken - sum(len(each.samples) for each in arrivals)
            for each in arrivals:
                taken += len(each.samples)
                if each.lost or each.dropped:
                    self._sounds.lost()
                self._sounds.heard(taken / self.rate, each.came)
                yield from reports.before(each)
            samples = np.concatenate([each.samples for each in arrivals])
            if most is not None:
                samples = samples[: len(samples) - max(0, taken - most)]
            alone = samples.ndim == 2 and samples.shape[1] == 1
            yield Block(samples[:, 0] if alone else samples, self.rate, self._recording)
            if most is not None and taken >= most:
                break
        yield from reports.rest(self._dropped)

    def _take(self) -> list[_Arrival] | None:
        """What is there, up to a second of it; nothing after a short while; None at the end."""
        arrivals: list[_Arrival] = []
        count = 0
        while count < LONGEST_SECONDS * self.rate:
            try:
                if arrivals:
                    next_one = self._queue.get_nowait()
                else:
                    next_one = self._queue.get(timeout=WAKE_SECONDS)
            except Empty:
                break
            if next_one is None:
                if arrivals:
                    self._queue.put(None)  # again, after these
                    break
                return None
            arrivals.append(next_one)
            count += len(next_one.samples)
        self._taken += count
        return arrivals


@dataclass(frozen=True, slots=True)
class _Arrival:
    """What one call of the callback brought, when, and what was lost before it."""

    samples: FloatArray
    came: float
    lost: bool
    dropped: int


class _GapReports:
    """Makes gaps of what was lost; overflows come in bursts."""

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._overflows = 0
        self._heard = self._told = 0.0

    def before(self, arrival: _Arrival) -> Iterator[Gap]:
        """The gaps to report before what arrived."""
        if arrival.dropped:
            yield self._of_dropped(arrival.dropped)
        self._overflows += arrival.lost
        if self._overflows and self._heard >= self._told:
            yield self._of_overflows()
        self._heard += len(arrival.samples) / self._rate

    def rest(self, dropped: int) -> Iterator[Gap]:
        """What has not been reported, at the end."""
        if self._overflows:
            yield self._of_overflows()
        if dropped:
            yield self._of_dropped(dropped)

    def _of_overflows(self) -> Gap:
        count, self._overflows = self._overflows, 0
        self._told = self._heard + GAP_SECONDS
        times = "once" if count == 1 else f"{count} times"
        return Gap("overflow", None, detail=f"the sound system lost audio {times}")

    def _of_dropped(self, samples: int) -> Gap:
        seconds = samples / self._rate
        return Gap("dropped", seconds, detail=f"{seconds:.2f} s came faster than they were heard")
