"""A microphone, or any other sound input, as a live source; waits for a device that vanishes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

from monitor.brings import Brings
from monitor.errors import MonitorError, UsageError
from monitor.managed import Managed
from monitor.protocols import AudioDevice
from monitor.sources.live_queue import LONGEST_SECONDS, AudioQueue
from monitor.sources.portaudio import open_input, rescan
from monitor.types import Block, Gap

__all__ = ["Microphone"]

STALLED_SECONDS = 5.0
"""A device that gives nothing for so long is gone; the first sound may take 2 s."""
RETRY_SECONDS = 1.0


class Microphone(Managed):
    """What a sound device hears, as blocks of at most one second, as soon as they are there.

    The device is opened at its own rate, and its callback fills an `AudioQueue`, whose gaps are
    those of the stream. A device that vanishes is waited for, and the stream goes on with a gap
    (``"device lost"``); if it does not come back the stream ends with one.

    Whatever keeps Python's lock for longer than a sound card's buffer lasts (0.2 s) makes it
    overflow.

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

    brings = Brings(live=True)  # the channels are known once it is open

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
        self._queue: AudioQueue | None = None
        self._stopped = threading.Event()
        self._before = self._heard = 0.0  # audio seconds given: before this opening, and in all
        self._came = 0.0  # when sound last came

    @property
    def waiting_seconds(self) -> float:
        """Audio that was heard and not yet taken."""
        return 0.0 if self._input is None or self._queue is None else self._queue.waiting_seconds

    def behind_seconds(self, seconds: float) -> float:
        """Wall seconds since that second of the stream was heard."""
        return 0.0 if self._queue is None else self._queue.behind_seconds(seconds - self._before)

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
        if self._queue is not None:
            self._queue.stop()

    def close(self) -> None:
        """Let go of the device."""
        if self._input is not None:
            self._input.close()
        self._input = None

    def __enter__(self) -> Microphone:
        self.open()
        return self

    def __iter__(self) -> Iterator[Block | Gap]:
        self._queue, self._before, self._heard = None, 0.0, 0.0
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
            self._stopped.clear()  # not before: it may have been stopped before its first block
            self.close()

    @property
    def _done(self) -> bool:
        over = self.seconds is not None and self._heard >= self.seconds - 1e-9
        return over or self._stopped.is_set()

    def _hear(self, recording: int) -> Iterator[Block | Gap]:
        """Everything from one opened device, until it goes or the stream is over."""
        opened, before = self._input, self._heard
        assert opened is not None
        queue = AudioQueue(
            opened.rate,
            seconds=None if self.seconds is None else self.seconds - before,
            queue_seconds=self._queue_seconds,
            recording=recording,
            stalled_seconds=STALLED_SECONDS,
            clock=self._clock,
        )
        self._queue, self._before = queue, before
        if self._stopped.is_set():
            queue.stop()
        opened.start(queue.put, queue.stop)
        for item in queue:
            self._heard = before + queue.taken_seconds
            yield item
        self._came = queue.came

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
