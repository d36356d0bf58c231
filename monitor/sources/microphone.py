"""A sound device as a source."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from queue import Empty, SimpleQueue

import numpy as np

from monitor.errors import MonitorError, UsageError
from monitor.managed import Managed
from monitor.protocols import AudioDevice
from monitor.sources.portaudio import open_input, rescan
from monitor.sources.soundclock import SoundClock
from monitor.types import Block, FloatArray, Gap

__all__ = ["Microphone"]

STALLED_SECONDS = 5.0
"""A device that gives nothing for so long is gone; the first sound may take 2 s."""
RETRY_SECONDS = 1.0
WAKE_SECONDS = 0.1
LONGEST_SECONDS = 1.0  # of a block: who is late hears of it in time
GAP_SECONDS = 1.0  # overflows come in bursts: one report a second


class Microphone(Managed):
    """What a sound device hears, as blocks of at most one second, as soon as they are there.

    The device is opened at its own rate. Its callback copies and enqueues, nothing else. What the
    listener does not take in time waits, up to ``queue_seconds``; then new audio is dropped, and
    the stream goes on with a gap (``"dropped"``; ``"overflow"`` where the sound system itself was
    late). A device that vanishes is waited for, and the stream goes on with a gap
    (``"device lost"``); if it does not come back the stream ends with one.

    Whatever keeps Python's lock for longer than a sound card's buffer lasts (0.2 s) makes it
    overflow. Where features take too long, a script had better say
    ``monitor.front_end.use(timed(monitor.features))`` and wrap the microphone in a `LoadShedding`,
    both of `monitor.stream.shedding`, as `monitor listen` does.

    Args:
        device: a number, a name or part of one, as `monitor devices` lists them; None for the
            default input.
        seconds: stop after so many seconds of audio; None goes on until ``stop``.
        channels: how many to open, at most; None for one or two.
        reconnect_seconds: how long a lost device is waited for.
        queue_seconds: how much audio may wait.
        told: called with a line for people when the device is lost, and when it is back.
        clock: wall seconds.
        opens: opens a device.
        rescans: looks which devices there are now.

    Attributes:
        label: the name of the device, once it is open.
        seconds: audio seconds asked for, or None.

    Raises:
        UsageError: a length is not positive.

    Example::

        with Microphone(seconds=60) as microphone:
            for reading in Monitor(Population.reference()).stream(microphone):
                print(reading.seconds, reading.bits)
    """

    def __init__(
        self,
        device: str | int | None = None,
        *,
        seconds: float | None = None,
        channels: int | None = None,
        reconnect_seconds: float = 60.0,
        queue_seconds: float = 30.0,
        told: Callable[[str], object] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
        opens: Callable[[str | int | None, int | None], AudioDevice] = open_input,
        rescans: Callable[[], None] = rescan,
    ) -> None:
        if seconds is not None and not seconds > 0:
            raise UsageError(f"seconds={seconds:g} must be positive")
        if not queue_seconds >= LONGEST_SECONDS:
            raise UsageError(f"queue_seconds={queue_seconds:g} must be {LONGEST_SECONDS:g} or more")
        self.label = "microphone" if device is None else str(device)
        self.seconds = seconds
        self._device, self._channels = device, channels
        self._reconnect_seconds, self._queue_seconds = reconnect_seconds, queue_seconds
        self._told, self._clock = told, clock
        self._opens, self._rescans = opens, rescans
        self._input: AudioDevice | None = None
        self._line: _Line | None = None
        self._stopped = threading.Event()
        self._sounds = SoundClock()
        self._heard = 0.0  # audio seconds given
        self._came = 0.0  # when sound last came

    @property
    def waiting_seconds(self) -> float:
        """Audio that was heard and not yet taken."""
        return 0.0 if self._line is None else self._line.waiting_seconds

    def behind_seconds(self, seconds: float) -> float:
        """Wall seconds since that second of the stream was heard."""
        wall = self._sounds.wall(seconds)
        return 0.0 if wall is None else max(0.0, self._clock() - wall)

    def open(self) -> None:
        """Open the device now rather than at the first block.

        Raises:
            SourceError: PortAudio is missing, there is no input, or it cannot be opened.
            UsageError: no input is meant, or more than one.
        """
        if self._input is None:
            self._input = self._opens(self._device, self._channels)
            self.label = self._input.name

    def stop(self) -> None:
        """End the stream after what was heard so far; may be called from anywhere."""
        self._stopped.set()

    def close(self) -> None:
        """Let go of the device."""
        if self._input is not None:
            self._input.close()
        self._input = self._line = None

    def __enter__(self) -> Microphone:
        self.open()
        return self

    def __iter__(self) -> Iterator[Block | Gap]:
        self._stopped.clear()
        self._sounds, self._heard = SoundClock(), 0.0
        recording = 0
        try:
            while True:
                self.open()
                yield from self._hear(recording)
                if self._done:
                    return
                gap, back = self._wait()
                yield gap
                if not back:
                    return
                recording += 1  # resampling and voice activity begin afresh
        finally:
            self.close()

    @property
    def _done(self) -> bool:
        over = self.seconds is not None and self._heard >= self.seconds - 1e-9
        return over or self._stopped.is_set()

    def _hear(self, recording: int) -> Iterator[Block | Gap]:
        """Everything from one opened device, until it goes or the stream is over."""
        opened = self._input
        assert opened is not None
        line = self._line = _Line(opened.rate, self._queue_seconds, self._clock)
        opened.start(line.hear, line.end)
        self._sounds.lost()
        losses = _Losses(opened.rate)
        base, taken, silent = self._heard, 0, 0.0
        self._came = self._clock()
        while True:
            if self._stopped.is_set():
                line.end()
            parts = line.take()
            if parts is None:
                break
            if not parts:
                silent += WAKE_SECONDS  # not the clock: we may have stood still ourselves
                if silent >= STALLED_SECONDS:
                    break
                continue
            silent = 0.0
            self._came = parts[-1].came
            for part in parts:
                taken += len(part.samples)
                if part.overflow or part.dropped:
                    self._sounds.lost()
                self._sounds.heard(base + taken / opened.rate, part.came)
                yield from losses.before(part)
            samples = np.concatenate([part.samples for part in parts])
            if self.seconds is not None:
                beyond = taken - round((self.seconds - base) * opened.rate)
                samples = samples[: len(samples) - max(0, beyond)]
            self._heard = base + taken / opened.rate
            yield Block(samples[:, 0] if samples.shape[1] == 1 else samples, opened.rate, recording)
            if self.seconds is not None and self._heard >= self.seconds:
                break
        yield from losses.rest(line)

    def _wait(self) -> tuple[Gap, bool]:
        """Wait for a device that is gone: what was lost since sound last came, and is it back."""
        name, began = self.label, self._clock()
        self._told(f"{name} is gone; waiting up to {self._reconnect_seconds:g} s for it")
        self.close()
        while self._clock() - began < self._reconnect_seconds:
            if self._stopped.wait(RETRY_SECONDS):
                break
            try:
                self._rescans()
                self.open()
            except MonitorError:  # not yet
                continue
            lost = self._clock() - self._came
            self._told(f"{self.label} is back after {lost:.0f} s")
            return Gap("device lost", lost, detail=f"{name} was gone for {lost:.1f} s"), True
        lost = self._clock() - self._came
        self.label = name
        detail = f"{name} did not come back: no sound for {lost:.0f} s"
        return Gap("device lost", lost, detail=detail), False


@dataclass(frozen=True, slots=True)
class _Part:
    """What one call of the callback brought, and what was lost before it."""

    samples: FloatArray
    came: float
    overflow: bool
    dropped: int


class _Line:
    """From the callback's thread to the listener's; each writes its own counter."""

    def __init__(self, rate: int, most_seconds: float, clock: Callable[[], float]) -> None:
        self._rate, self._most, self._clock = rate, round(most_seconds * rate), clock
        self._queue: SimpleQueue[_Part | None] = SimpleQueue()
        self._put = self._taken = 0  # samples
        self.dropped = 0  # samples, since the last part
        self._over = False

    @property
    def waiting_seconds(self) -> float:
        """Audio between the two."""
        return (self._put - self._taken) / self._rate

    def hear(self, samples: FloatArray, overflow: bool) -> None:
        """The callback: enqueues, nothing else."""
        if self._over:
            return
        if self._put - self._taken + len(samples) > self._most:
            self.dropped += len(samples)
            return
        dropped, self.dropped = self.dropped, 0
        self._put += len(samples)
        self._queue.put(_Part(samples, self._clock(), overflow, dropped))

    def end(self) -> None:
        """Nothing more comes."""
        self._over = True
        self._queue.put(None)

    def take(self) -> list[_Part] | None:
        """What is there, up to a second of it; nothing after a short while; None at the end."""
        parts: list[_Part] = []
        count = 0
        while count < LONGEST_SECONDS * self._rate:
            try:
                part = self._queue.get_nowait() if parts else self._queue.get(timeout=WAKE_SECONDS)
            except Empty:
                break
            if part is None:
                if parts:
                    self._queue.put(None)  # again, after these
                    break
                return None
            parts.append(part)
            count += len(part.samples)
        self._taken += count
        return parts


class _Losses:
    """Makes gaps of what was lost; overflows come in bursts."""

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._overflows = 0
        self._heard = self._told = 0.0

    def before(self, part: _Part) -> Iterator[Gap]:
        """The gaps to report before a part."""
        if part.dropped:
            yield self._dropped(part.dropped)
        self._overflows += part.overflow
        if self._overflows and self._heard >= self._told:
            yield self._overflow()
        self._heard += len(part.samples) / self._rate

    def rest(self, line: _Line) -> Iterator[Gap]:
        """What has not been reported, at the end."""
        if self._overflows:
            yield self._overflow()
        if line.dropped:
            yield self._dropped(line.dropped)

    def _overflow(self) -> Gap:
        count, self._overflows = self._overflows, 0
        self._told = self._heard + GAP_SECONDS
        times = "once" if count == 1 else f"{count} times"
        return Gap("overflow", None, detail=f"the sound system lost audio {times}")

    def _dropped(self, samples: int) -> Gap:
        seconds = samples / self._rate
        return Gap("dropped", seconds, detail=f"{seconds:.2f} s came faster than they were heard")
