"""An output device that other programs use as a microphone; muted if in doubt."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from threading import Lock
from typing import Any, Protocol

import numpy as np
import soxr

from monitor.errors import SourceError, UsageError
from monitor.lazy import ProcessSetting
from monitor.sources.microphone import Device, OpenedStream, choose, devices
from monitor.types import FloatArray

LATENCY_SECONDS = 0.01
"""Latency requested from PortAudio, which uses the nearest that the device supports."""
SWITCH_SECONDS = 5e-4
"""Interval of Python's switches to the sound card's threads; 5 ms, the default, is half a buffer.
"""
LEAST_SECONDS = 0.012
"""Minimum buffered sound, the allowed delay of a late thread."""
MOST_CUSHION_SECONDS, FORGOTTEN = 0.4, 0.97
"""Maximum buffering after underruns, which double it, and its decay per window."""
MOST_SECONDS = 2.0
"""Maximum buffered sound. After a stall of machine or device, the oldest is dropped."""
SKIPPED_SECONDS = 0.25
"""Excess sound that is dropped at once, since lag is worse than a lost word."""
WINDOW_SECONDS = 2.0
"""Window for the minimum of buffered sound, longer than a step of the gate."""
GAIN, MOST_CHANGE = 0.05, 5e-3
"""Change of speed per second of excess or deficit, and its maximum: 9 cents, 100 ms in 20 s."""


class SoundQueue:
    """Queue of sound between two clocks, which is played slightly faster or slower.

    Crystals drift by up to 100 ppm, 0.4 s in an hour. So the queue measures the minimum of buffered
    sound, and changes its speed until this is `LEAST_SECONDS`. After an underrun, it returns
    silence until more sound is buffered, and later sound is played completely. After a stall, sound
    that is too old is dropped.
    """

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self.dropped = 0  # samples
        self._lock = Lock()
        self._parts: deque[FloatArray] = deque()
        self._waiting = 0
        self._rate_in = 0
        self._speed = 1.0
        self._least, self._looked = rate * MOST_SECONDS, 0
        self._cushion, self._filling = LEAST_SECONDS, True

    @property
    def waiting_seconds(self) -> float:
        """Seconds of buffered sound."""
        return self._waiting / self.rate

    def put(self, samples: FloatArray, rate: int) -> None:
        """Add sound, shape (n,) float32, at this sample rate."""
        if rate != self._rate_in:
            self._rate_in = rate
            room = 1 + 2 * MOST_CHANGE
            try:
                self._stream = soxr.ResampleStream(
                    rate * room, self.rate, 1, dtype="float32", vr=True
                )
            except TypeError:
                raise SourceError(
                    f"a relay needs soxr 1.1 or later, and this is {soxr.__version__}: run "
                    "pip install -U soxr"
                ) from None
            self._stream.set_io_ratio(rate * self._speed, self.rate)
        sound = self._stream.resample_chunk(np.ascontiguousarray(samples, np.float32))
        with self._lock:
            self._parts.append(sound)
            self._waiting += len(sound)
            self._drop(self._waiting - round(MOST_SECONDS * self.rate))

    def take(self, count: int) -> FloatArray:
        """Return this many samples, shape (count,), padded with silence."""
        with self._lock:
            self._filling &= self._waiting < self._cushion * self.rate
            if self._filling:
                return np.zeros(count, np.float32)
            parts = self._pop(count)
            if missing := count - sum(map(len, parts)):
                self._filling = True
                self._cushion = min(2 * self._cushion, MOST_CUSHION_SECONDS)
            self._follow(count)
        return np.concatenate([*parts, np.zeros(missing, np.float32)])

    def _pop(self, count: int) -> list[FloatArray]:
        parts = []
        while count > 0 and self._parts:
            chunk = self._parts.popleft()
            if len(chunk) > count:
                self._parts.appendleft(chunk[count:])
                chunk = chunk[:count]
            parts.append(chunk)
            count -= len(chunk)
            self._waiting -= len(chunk)
        return parts

    def _drop(self, count: int) -> None:
        self.dropped += sum(map(len, self._pop(count)))

    def _follow(self, count: int) -> None:
        self._least = min(self._least, self._waiting)
        self._looked += count
        if self._looked < WINDOW_SECONDS * self.rate:
            return
        late = self._least / self.rate - self._cushion
        self._cushion = max(FORGOTTEN * self._cushion, LEAST_SECONDS)
        if late > SKIPPED_SECONDS:
            self._drop(round(late * self.rate))
            late = 0.0
        self._speed = 1 + min(max(GAIN * late, -MOST_CHANGE), MOST_CHANGE)
        self._stream.set_io_ratio(self._rate_in * self._speed, self.rate, self._rate_in // 10)
        self._least, self._looked = self.rate * MOST_SECONDS, 0


class SoundOutput(Protocol):
    """An opened output device, as `OutputDevice` needs from a sound library."""

    name: str
    rate: int

    def start(self, give: Callable[[int], FloatArray], ended: Callable[[], None]) -> None:
        """Start. The device's thread requests samples from ``give``, and calls ``ended`` once."""

    def close(self) -> None:
        """Release the device."""


class OpenedOutput(OpenedStream):
    """An opened output device: a `SoundOutput`."""

    def __init__(self, device: Device) -> None:
        self._give: Callable[[int], FloatArray] = lambda count: np.zeros(count, np.float32)
        channels, advice = min(2, device.channels), "choose another with --through"
        super().__init__(device, "output", channels, LATENCY_SECONDS, advice)

    def start(self, give: Callable[[int], FloatArray], ended: Callable[[], None]) -> None:
        """Start. Another thread calls ``give`` and ``ended``."""
        self._give = give
        self._begin(ended)

    def _callback(self, out: FloatArray, count: int, _time: Any, _status: Any) -> None:
        out.fill(0)  # if anything below fails, the output is silent
        out[:] = self._give(count)[:, None]


_SINK = Lock()


def open_output(wanted: str) -> OpenedOutput:
    """Open an output by number, name or part of it; or a sink of PulseAudio or PipeWire by name.

    UsageError or SourceError if it is missing or cannot be opened.
    """
    outputs = devices("output")
    if wanted in list_sinks():
        with _SINK:  # PortAudio cannot name a sink; its device "pulse" uses the variable
            os.environ["PULSE_SINK"] = wanted
            return OpenedOutput(choose(outputs, "pulse", "output"))
    try:
        return OpenedOutput(choose(outputs, wanted, "output"))
    except UsageError as error:
        raise UsageError(f"{error}. `monitor doctor` shows how to make one.") from None


def list_sinks() -> list[str]:
    """List the sinks of PulseAudio or PipeWire; empty without its tools."""
    lines = ask_sound_server("list", "short", "sinks").splitlines()
    return [line.split("\t")[1] for line in lines if "\t" in line]


def ask_sound_server(*arguments: str) -> str:
    """Return what ``pactl`` prints; empty without it."""
    if (tool := shutil.which("pactl")) is None:
        return ""
    done = subprocess.run(
        [tool, *arguments],
        env={**os.environ, "LC_ALL": "C"},
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
    )
    return done.stdout


def _switch_soon() -> Callable[[], object]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    return partial(sys.setswitchinterval, before)


_SOON = ProcessSetting(_switch_soon)


class OutputDevice:
    """Opened output, at the rate of its device; silent before and after."""

    def __init__(
        self,
        device: str,
        opens: Callable[[str], SoundOutput] = open_output,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._device = opens(device)
        self._clock = clock
        self.name = self._device.name if self._device.name != "pulse" else device
        self._queue = SoundQueue(self._device.rate)
        self._open_until = -np.inf
        self._settings = ExitStack()
        self.gone = False

    @property
    def lost_seconds(self) -> float:
        """Seconds of sound that were dropped because they were too old."""
        return self._queue.dropped / self._queue.rate

    def start(self) -> None:
        """Start, with silence."""
        self._settings.enter_context(_SOON)
        self._device.start(self._queue.take, self._end)

    def write(self, samples: FloatArray, rate: int) -> None:
        """Send sound, shape (n,); SourceError if the device is lost."""
        if self.gone:
            raise SourceError(
                f"{self.name} is lost and nothing is sent: choose another with --through"
            )
        self._queue.put(samples, rate)

    def permit(self, seconds: float) -> None:
        """Allow `pass_on` to send sound for this many seconds from now; 0 stops it."""
        self._open_until = self._clock() + seconds if seconds else -np.inf

    def pass_on(self, samples: FloatArray, rate: int) -> None:
        """Send sound, shape (n, channels), at once while this is permitted; never raises."""
        if self._clock() < self._open_until and not self.gone:
            self._queue.put(samples.mean(axis=1), rate)

    def close(self) -> None:
        """Release the device."""
        self._device.close()
        self._settings.close()

    def _end(self) -> None:
        self.gone = True
