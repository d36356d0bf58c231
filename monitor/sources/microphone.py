"""Microphones and other sound inputs as live sources."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, Self

import numpy as np

from monitor.errors import MonitorError, SourceError, UsageError
from monitor.protocols import AudioDevice, StreamInfo
from monitor.sources.base import BaseSource
from monitor.types import Block, FloatArray, Gap

DRIFT = 1e-3
"""Maximum drift between both clocks in seconds per second, ten times that of bad crystals."""


class SoundClock:
    """Wall time of each second of a live stream.

    No block can arrive before its last sample was spoken. The block with the smallest delay,
    relative to the audio received by then, therefore gives the time of all others. The clocks of
    the sound card and the wall drift apart slowly, so the smallest delay is slowly forgotten.
    """

    def __init__(self) -> None:
        self._offset: float | None = None
        self._heard = 0.0

    def record(self, seconds: float, now: float) -> None:
        """Record the ``seconds`` of the stream received by wall time ``now``."""
        offset = now - seconds
        if self._offset is not None:
            offset = min(offset, self._offset + DRIFT * (seconds - self._heard))
        self._offset, self._heard = offset, seconds

    def lost(self) -> None:
        """Restart after lost audio, because earlier times do not apply to later ones."""
        self._offset = None

    def wall(self, seconds: float) -> float | None:
        """Return the wall clock at this second of the stream; None before any audio."""
        return None if self._offset is None else self._offset + seconds


WAKE_SECONDS = 0.1
PAUSE_SECONDS = 1.0  # without audio, which counts as a pause and not as lag
LONGEST_SECONDS = 1.0  # of a block, so that a slow reader can react in time
GAP_SECONDS = 1.0  # overflows come in bursts: one report per second


class AudioQueue(BaseSource[Block | Gap]):
    """A live source that you feed, for example from the callback of an audio library.

    `put` copies samples and returns at once, so it is safe in real-time callbacks. The monitor
    iterates in another thread. At most ``queue_seconds`` of audio can wait. Beyond that, new audio
    is dropped, and the stream continues with a gap ``"dropped"``. If your library reported a loss,
    the gap is ``"overflow"``. Blocks have at most about one second.

    Args:
        rate: samples per second.
        seconds: maximum length of the stream; None continues until `stop`.
        queue_seconds: maximum waiting audio, at least one second.
        recording: index of the recording for its blocks.
        label: name in messages.
        stalled_seconds: wall seconds without audio after which the stream ends; None never ends it.
        clock: function that returns wall-clock seconds.

    Example:
        >>> with AudioQueue(16000) as queue:
        ...     for _ in range(3):  # a callback would, from its own thread
        ...         queue.put(np.zeros(160, np.float32))
        ...     queue.stop()
        ...     [(len(block.samples), block.rate) for block in queue]
        [(480, 16000)]
    """

    stream_info = StreamInfo(live=True)
    repeatable = False

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
        self._dropped = self._missed = 0  # samples, since the last arrival
        self._over = False
        self._sounds = SoundClock()
        self.came = clock()

    @property
    def waiting_seconds(self) -> float:
        """Seconds of audio that wait to be read."""
        return (self._put - self._taken) / self.rate

    @property
    def taken_seconds(self) -> float:
        """Seconds of audio that were read."""
        return self._taken / self.rate

    def behind_seconds(self, seconds: float) -> float:
        """Return the wall seconds since this second of the stream arrived; 0 before any audio."""
        wall = self._sounds.wall(seconds)
        return 0.0 if wall is None else max(0.0, self._clock() - wall)

    def put(self, samples: FloatArray, lost: bool = False) -> None:
        """Queue a copy of samples, (n,) or (n, channels); ``lost`` marks lost audio before them.

        Returns at once. Ignored after `stop`.
        """
        if self._over:
            return
        if self._put - self._taken + len(samples) > self._most:
            self._dropped += len(samples)
            return
        dropped, self._dropped = self._dropped, 0
        missed, self._missed = self._missed, 0
        self._put += len(samples)
        self._queue.put(_Arrival(np.array(samples), self._clock(), lost, dropped, missed))

    def miss(self, samples: int) -> None:
        """Record that this many samples after the last ones were lost before they arrived."""
        self._missed += samples

    def stop(self) -> None:
        """End the stream after the waiting audio; thread-safe."""
        self._over = True
        self._queue.put(None)

    def close(self) -> None:
        """Ignore further audio."""
        super().close()
        self.stop()

    def items(self) -> Iterator[Block | Gap]:
        """Yield the queued audio in blocks of up to a second."""
        reports = _GapReports(self.rate)
        self._sounds, self.came = SoundClock(), self._clock()
        maximum = None if self.seconds is None else round(self.seconds * self.rate)
        silent = 0.0
        while (arrivals := self._arrivals()) is not None:
            if not arrivals:
                silent += WAKE_SECONDS  # not the clock, since this process may have been suspended
                if silent >= PAUSE_SECONDS:
                    self._sounds.lost()
                if self._stalled is not None and silent >= self._stalled:
                    break
                continue
            silent, self.came = 0.0, arrivals[-1].came
            samples_taken = self._taken - sum(len(arrival.samples) for arrival in arrivals)
            for arrival in arrivals:
                samples_taken += len(arrival.samples)
                if arrival.lost or arrival.dropped or arrival.missed:
                    self._sounds.lost()
                self._sounds.record(samples_taken / self.rate, arrival.came)
                yield from reports.before(arrival)
            samples = np.concatenate([arrival.samples for arrival in arrivals])
            if maximum is not None:
                samples = samples[: len(samples) - max(0, samples_taken - maximum)]
            alone = samples.ndim == 2 and samples.shape[1] == 1
            yield Block(samples[:, 0] if alone else samples, self.rate, self._recording)
            if maximum is not None and samples_taken >= maximum:
                break
        yield from reports.rest(self._dropped, self._missed)

    def _arrivals(self) -> list[_Arrival] | None:
        """Take up to a second of arrivals; empty after a timeout, None at the end."""
        arrivals: list[_Arrival] = []
        count = 0
        while count < LONGEST_SECONDS * self.rate:
            try:
                if arrivals:
                    arrival = self._queue.get_nowait()
                else:
                    arrival = self._queue.get(timeout=WAKE_SECONDS)
            except Empty:
                break
            if arrival is None:
                if arrivals:
                    self._queue.put(None)  # put the end back, after these
                    break
                return None
            arrivals.append(arrival)
            count += len(arrival.samples)
        self._taken += count
        return arrivals


@dataclass(frozen=True, slots=True)
class _Arrival:
    """Samples of one callback, their arrival time, and the losses before them."""

    samples: FloatArray
    came: float
    lost: bool
    dropped: int
    missed: int


class _GapReports:
    """Makes gaps for lost audio, with one report per burst of overflows."""

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._overflows = 0
        self._heard = self._reported = 0.0

    def before(self, arrival: _Arrival) -> Iterator[Gap]:
        yield from self._losses(arrival.dropped, arrival.missed)
        self._overflows += arrival.lost
        if self._heard >= self._reported:
            yield from self._pop_overflows()
        self._heard += len(arrival.samples) / self._rate

    def rest(self, dropped: int, missed: int) -> Iterator[Gap]:
        yield from self._pop_overflows()
        yield from self._losses(dropped, missed)

    def _pop_overflows(self) -> Iterator[Gap]:
        if count := self._overflows:
            self._overflows, self._reported = 0, self._heard + GAP_SECONDS
            times = "once" if count == 1 else f"{count} times"
            yield Gap("overflow", None, detail=f"the audio system lost audio {times}")

    def _losses(self, dropped: int, missed: int) -> Iterator[Gap]:
        for samples, reason in (
            (dropped, "arrived faster than they were processed"),
            (missed, "were lost before they arrived"),
        ):
            if samples:
                seconds = samples / self._rate
                yield Gap("dropped", seconds, detail=f"{seconds:.2f} s {reason}")


LATENCY_SECONDS = 0.2  # of PortAudio's buffer; callbacks are about four times as frequent
MIXED_CHANNELS = 2
"""Default number of channels to mix. Sound servers and interfaces offer many unused channels."""
_UNAVAILABLE = -9985  # paDeviceUnavailable
_LIST = "monitor doctor --devices lists them"
_ANOTHER = f"choose another with --device ({_LIST})"


@dataclass(frozen=True, slots=True)
class Device:
    """A sound device and its format. Its PortAudio number changes as devices come and go."""

    index: int
    name: str
    host: str
    channels: int
    rate: int
    default: bool


def library() -> Any:
    """Import sounddevice, with PortAudio; a SourceError if one is missing."""
    try:
        import sounddevice
    except ImportError:
        raise SourceError("sounddevice is missing: pip install sounddevice") from None
    except OSError:
        raise SourceError(
            "PortAudio is missing: apt install libportaudio2 (Debian, Ubuntu) or brew install "
            "portaudio (macOS)"
        ) from None
    return sounddevice


_CALLS = threading.RLock()
"""Lock for calls of PortAudio, which is not thread-safe."""
_opened: set[OpenedStream] = set()  # streams that a restart of PortAudio would break


@contextmanager
def _portaudio(failure: str, advice: str) -> Iterator[Any]:
    """Give one thread at a time access to sounddevice; convert its errors to a SourceError."""
    sound = library()
    try:
        with _CALLS:
            yield sound
    except sound.PortAudioError as error:
        reason = " ".join(str(error.args[0] if error.args else error).split())
        if _UNAVAILABLE in error.args[1:]:
            reason = "it is busy or gone: close the program that uses it"
        raise SourceError(f"{failure}: {reason}; {advice}") from None


def devices(kind: str = "input") -> list[Device]:
    """List the inputs or outputs that PortAudio found at its start or last rescan."""
    with _portaudio("PortAudio fails", "see monitor doctor") as sound:
        hosts = sound.query_hostapis()
        chosen = sound.default.device[kind == "output"]
        entries = sound.query_devices()
    if chosen < 0 and hosts:
        chosen = hosts[0][f"default_{kind}_device"]
    return [
        Device(
            index=int(entry["index"]),
            name=str(entry["name"]),
            host=str(hosts[entry["hostapi"]]["name"]),
            channels=int(entry[f"max_{kind}_channels"]),
            rate=round(entry["default_samplerate"]),
            default=entry["index"] == chosen,
        )
        for entry in entries
        if entry[f"max_{kind}_channels"] > 0
    ]


def choose(available: list[Device], wanted: str | int | None, kind: str = "input") -> Device:
    """Choose a device by number, name or part of a name; UsageError unless exactly one fits."""
    if not available:
        plug_in = "plug in a microphone, or " if kind == "input" else ""
        raise SourceError(
            f"no {kind} device: {plug_in}start the sound server (PipeWire, PulseAudio) and see "
            "that you may use it"
        )
    if wanted is None:
        return next((device for device in available if device.default), available[0])
    text = str(wanted).strip().casefold()
    matches = [device for device in available if text == str(device.index)]
    if text and not text.isdigit():
        matches = [device for device in available if text == device.name.casefold()]
        matches = matches or [device for device in available if text in device.name.casefold()]
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise UsageError(f"no {kind} device is called {str(wanted)!r}; {_LIST}")
    names = ", ".join(f"{device.index} ({device.name})" for device in matches[:4])
    raise UsageError(f"{str(wanted)!r} matches several devices, {names}: choose one by its number")


class OpenedStream:
    """Base of opened inputs and outputs, silent until started."""

    def __init__(
        self, device: Device, kind: str, channels: int, latency_seconds: float, advice: str
    ) -> None:
        self.name, self.rate, self.channels = device.name, device.rate, channels
        self._advice, self._closing = advice, False
        self._ended: Callable[[], None] = lambda: None
        with _portaudio(f"{self.name} cannot be opened", advice) as sound:
            self._stream = getattr(sound, f"{kind.title()}Stream")(
                device=device.index,
                samplerate=device.rate,
                channels=channels,
                dtype="float32",
                latency=latency_seconds,
                callback=self._callback,
                finished_callback=self._finished,
            )
            _opened.add(self)

    def close(self) -> None:
        """Release the device."""
        self._closing = True
        with _CALLS:
            with suppress(library().PortAudioError):  # of a lost device
                self._stream.abort(ignore_errors=True)
                self._stream.close(ignore_errors=True)
            _opened.discard(self)

    def _begin(self, ended: Callable[[], None]) -> None:
        self._ended = ended
        try:
            with _portaudio(f"{self.name} cannot be started", self._advice):
                self._stream.start()
        except SourceError:
            self.close()
            raise

    def _callback(self, samples: FloatArray, count: int, time: Any, status: Any) -> None:
        """Receive or fill in ``count`` samples, in the device's thread."""
        raise NotImplementedError

    def _finished(self) -> None:
        if not self._closing:
            self._ended()


class OpenedInput(OpenedStream):
    """An opened input device: a `monitor.protocols.AudioDevice`."""

    def __init__(
        self, device: Device, channels: int | None, latency_seconds: float = LATENCY_SECONDS
    ) -> None:
        self._hear: Callable[[FloatArray, bool], None] = lambda _samples, _overflow: None
        channels = min(channels or MIXED_CHANNELS, device.channels)
        super().__init__(device, "input", channels, latency_seconds, _ANOTHER)

    def start(self, hear: Callable[[FloatArray, bool], None], ended: Callable[[], None]) -> None:
        """Start recording. Another thread calls ``hear``, and ``ended`` when the device is lost."""
        self._hear = hear
        self._begin(ended)

    def _callback(self, samples: FloatArray, _count: int, _time: Any, status: Any) -> None:
        self._hear(samples, bool(status.input_overflow))


def open_input(
    wanted: str | int | None = None,
    channels: int | None = None,
    latency_seconds: float = LATENCY_SECONDS,
) -> OpenedInput:
    """Open a device found by `choose` at its own rate, with at most ``channels`` channels."""
    return OpenedInput(choose(devices(), wanted), channels, latency_seconds)


def rescan() -> None:
    """Restart PortAudio, which lists the devices again; SourceError while a stream is open."""
    with _portaudio("PortAudio fails", "see monitor doctor") as sound:
        if _opened:
            names = ", ".join(sorted(stream.name for stream in _opened))
            raise SourceError(f"devices cannot be listed again while {names} is open: close it")
        sound._terminate()  # PortAudio can only be restarted
        sound._initialize()


class InputSystem(NamedTuple):
    """Functions that open an input device, and that rescan for devices."""

    opens: Callable[[str | int | None, int | None], AudioDevice] = open_input
    rescans: Callable[[], None] = rescan


PORTAUDIO = InputSystem()

STALLED_SECONDS = 5.0
"""A device without audio for this time is considered lost; the first audio may take 2 s."""
RETRY_SECONDS = 1.0


class Microphone(BaseSource[Block | Gap]):
    """A microphone or other sound input, as a live source.

    The device is opened at its own rate, and blocks have at most one second. The stream has the
    gaps of an `AudioQueue`. If the device is lost, the stream waits for it and continues with a gap
    (``"device lost"``). If it does not return, the stream ends with that gap. Code that holds
    Python's global lock for longer than the sound card's buffer (0.2 s) causes an overflow.

    Args:
        device: number, name or part of a name, from `monitor doctor --devices`; None for the
            default input.
        seconds: maximum length of the stream; None continues until ``stop``.
        channels: maximum number of channels to open; None for one or two.
        reconnect_seconds: wall seconds to wait for a lost device.
        queue_seconds: maximum waiting audio.
        report: called with a line of text when the device is lost and when it returns.
        clock: wall seconds.
        system: access to devices, PortAudio by default.
    """

    stream_info = StreamInfo(live=True)  # channels are known once it is open

    def __init__(
        self,
        device: str | int | None = None,
        *,
        seconds: float | None = None,
        channels: int | None = None,
        reconnect_seconds: float = 60.0,
        queue_seconds: float = 30.0,
        report: Callable[[str], object] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
        system: InputSystem = PORTAUDIO,
    ) -> None:
        if seconds is not None and not seconds > 0:
            raise UsageError(f"seconds={seconds:g} must be positive")
        if not queue_seconds >= LONGEST_SECONDS:
            raise UsageError(f"queue_seconds={queue_seconds:g} must be {LONGEST_SECONDS:g} or more")
        self.label = "microphone" if device is None else str(device)
        self.seconds = seconds
        self._device, self._channels = device, channels
        self._reconnect_seconds, self._queue_seconds = reconnect_seconds, queue_seconds
        self._report, self._clock = report, clock
        self._system = system
        self._input: AudioDevice | None = None
        self._queue: AudioQueue | None = None
        self._stopped = threading.Event()
        self._before = self._heard = 0.0  # audio seconds yielded: before this opening, and in total
        self._came = 0.0  # wall time of the last audio

    @property
    def waiting_seconds(self) -> float:
        """Seconds of captured audio that wait to be read."""
        return 0.0 if self._input is None or self._queue is None else self._queue.waiting_seconds

    def behind_seconds(self, seconds: float) -> float:
        """Return the wall seconds since this second of the stream was captured."""
        return 0.0 if self._queue is None else self._queue.behind_seconds(seconds - self._before)

    def open(self) -> None:
        """Open the device now instead of at the first block. Errors are those of `open_input`."""
        if self._input is None:
            self._input = self._system.opens(self._device, self._channels)
            self.label = self._input.name

    def stop(self) -> None:
        """End the stream after the audio captured so far; thread-safe."""
        self._stopped.set()
        if self._queue is not None:
            self._queue.stop()

    def close(self) -> None:
        """Release the device."""
        super().close()
        self._release()

    def _release(self) -> None:
        if self._input is not None:
            self._input.close()
        self._input = None

    def __enter__(self) -> Self:
        self.open()
        return super().__enter__()

    def items(self) -> Iterator[Block | Gap]:
        """Yield the device's audio; wait for a lost device."""
        self._queue, self._before, self._heard = None, 0.0, 0.0
        recording = 0
        try:
            while True:
                self.open()
                yield from self._items(recording)
                over = self.seconds is not None and self._heard >= self.seconds - 1e-9
                if over or self._stopped.is_set():
                    return
                gap, is_back = self._wait()
                yield gap
                if not is_back:
                    return
                recording += 1  # resampling and voice activity restart
        finally:
            self._stopped.clear()  # only now, since `stop` may come before the first block
            self._release()

    def _items(self, recording: int) -> Iterator[Block | Gap]:
        """Yield the audio of one opened device, until it is lost or the stream is over."""
        opened, seconds_before = self._input, self._heard
        assert opened is not None
        queue = AudioQueue(
            opened.rate,
            seconds=None if self.seconds is None else self.seconds - seconds_before,
            queue_seconds=self._queue_seconds,
            recording=recording,
            stalled_seconds=STALLED_SECONDS,
            clock=self._clock,
        )
        self._queue, self._before = queue, seconds_before
        if self._stopped.is_set():
            queue.stop()
        opened.start(queue.put, queue.stop)
        for item in queue:
            self._heard = seconds_before + queue.taken_seconds
            yield item
        self._came = queue.came

    def _wait(self) -> tuple[Gap, bool]:
        """Wait for a lost device; return the gap since the last audio, and whether it is back."""
        name, began = self.label, self._clock()
        self._report(f"{name} is gone; waiting up to {self._reconnect_seconds:g} s for it")
        self._release()
        while self._clock() - began < self._reconnect_seconds:
            if self._stopped.wait(RETRY_SECONDS):
                break
            with suppress(MonitorError):  # the device may be back without a rescan
                self._system.rescans()
            try:
                self.open()
            except MonitorError:  # not back yet
                continue
            lost = self._clock() - self._came
            self._report(f"{self.label} is back after {lost:.0f} s")
            return Gap("device lost", lost, detail=f"{name} was gone for {lost:.1f} s"), True
        lost = self._clock() - self._came
        self.label = name
        detail = f"{name} did not come back: no sound for {lost:.0f} s"
        return Gap("device lost", lost, detail=detail), False
