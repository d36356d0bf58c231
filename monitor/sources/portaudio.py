"""PortAudio, through sounddevice: which inputs there are, and one of them opened.

Importing sounddevice initialises PortAudio, and fails where the library is missing: so it is
imported when a device is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from monitor.errors import SourceError, UsageError
from monitor.types import FloatArray

__all__ = ["Device", "OpenedInput", "choose", "devices", "open_input", "rescan"]

LATENCY_SECONDS = 0.2
"""What PortAudio holds for us when we are late; it calls some four times as often."""
MIXED_CHANNELS = 2
"""A sound server offers dozens of channels, a recording interface has unused ones."""
_UNAVAILABLE = -9985  # paDeviceUnavailable
_LIST = "monitor devices lists them"


@dataclass(frozen=True, slots=True)
class Device:
    """An input.

    Attributes:
        index: what PortAudio calls it; changes as devices come and go.
        name: for people.
        host: the sound system it is reached through.
        channels: how many it has at most.
        rate: its own sample rate, Hz.
        default: True for the one that is heard when none is chosen.
    """

    index: int
    name: str
    host: str
    channels: int
    rate: int
    default: bool


def library() -> Any:
    """The module sounddevice, with PortAudio behind it.

    Raises:
        SourceError: one of them is missing.
    """
    try:
        import sounddevice
    except ImportError:
        raise SourceError("sounddevice is missing; install it: pip install sounddevice") from None
    except OSError:
        raise SourceError(
            "PortAudio is missing; install it (Debian, Ubuntu: apt install libportaudio2; "
            "macOS: brew install portaudio)"
        ) from None
    return sounddevice


def devices() -> list[Device]:
    """Every input there is, as PortAudio saw it when it was started or last rescanned.

    Raises:
        SourceError: PortAudio is missing, or fails.
    """
    sound = library()
    try:
        hosts = sound.query_hostapis()
        chosen = sound.default.device[0]
        found = sound.query_devices()
    except sound.PortAudioError as error:
        raise SourceError(f"PortAudio fails: {_reason(error)}; see monitor doctor") from None
    if chosen < 0 and hosts:
        chosen = hosts[0]["default_input_device"]
    return [
        Device(
            index=int(each["index"]),
            name=str(each["name"]),
            host=str(hosts[each["hostapi"]]["name"]),
            channels=int(each["max_input_channels"]),
            rate=round(each["default_samplerate"]),
            default=each["index"] == chosen,
        )
        for each in found
        if each["max_input_channels"] > 0
    ]


def choose(found: list[Device], wanted: str | int | None) -> Device:
    """The device that is meant: by index, by name or by a part of it; None for the default.

    Raises:
        SourceError: there is no input at all.
        UsageError: no input is meant, or more than one.

    Example:
        >>> inputs = [
        ...     Device(0, "HDA Intel: ALC257", "ALSA", 2, 48000, True),
        ...     Device(4, "USB Microphone", "ALSA", 1, 44100, False),
        ... ]
        >>> choose(inputs, None).index, choose(inputs, "usb").index, choose(inputs, 4).name
        (0, 4, 'USB Microphone')
    """
    if not found:
        raise SourceError(
            "no input device: plug in a microphone, or start the sound server (PipeWire, "
            "PulseAudio) and see that you may use it"
        )
    if wanted is None:
        return next((each for each in found if each.default), found[0])
    text = str(wanted).strip().casefold()
    meant = [each for each in found if text == str(each.index)]
    if text and not text.isdigit():
        meant = [each for each in found if text == each.name.casefold()]
        meant = meant or [each for each in found if text in each.name.casefold()]
    if len(meant) == 1:
        return meant[0]
    if not meant:
        raise UsageError(f"no input device is called {str(wanted)!r}; {_LIST}")
    some = ", ".join(f"{each.index} ({each.name})" for each in meant[:4])
    raise UsageError(f"{str(wanted)!r} may be {some}; choose one by its number")


class OpenedInput:
    """An opened device, silent until started.

    Attributes:
        name: of the device.
        rate: samples per second.
        channels: channels in what is heard.
    """

    def __init__(self, device: Device, channels: int | None) -> None:
        sound = library()
        self.name = device.name
        self.rate = device.rate
        self.channels = min(channels or MIXED_CHANNELS, device.channels)
        self._closing = False
        self._hear: Callable[[FloatArray, bool], None] = lambda _samples, _overflow: None
        self._ended: Callable[[], None] = lambda: None
        try:
            self._stream = sound.InputStream(
                device=device.index,
                samplerate=device.rate,
                channels=self.channels,
                dtype="float32",
                latency=LATENCY_SECONDS,
                callback=self._callback,
                finished_callback=self._finished,
            )
        except sound.PortAudioError as error:
            if len(error.args) > 1 and error.args[1] == _UNAVAILABLE:
                raise SourceError(
                    f"{self.name} is busy or gone: close the program that uses it, or choose "
                    f"another with --device ({_LIST})"
                ) from None
            raise SourceError(
                f"{self.name} cannot be opened: {_reason(error)}; choose another with --device "
                f"({_LIST})"
            ) from None

    def start(self, hear: Callable[[FloatArray, bool], None], ended: Callable[[], None]) -> None:
        """Begin.

        Args:
            hear: called in another thread with samples, shape (n, channels), which it must copy,
                and whether audio before them was lost. Must return at once.
            ended: called when the device has gone.
        """
        self._hear, self._ended = hear, ended
        sound = library()
        try:
            self._stream.start()
        except sound.PortAudioError as error:
            self.close()
            raise SourceError(
                f"{self.name} cannot be started: {_reason(error)}; choose another with --device "
                f"({_LIST})"
            ) from None

    def close(self) -> None:
        """Let go of the device; nothing is heard any more."""
        self._closing = True
        sound = library()
        try:
            self._stream.abort(ignore_errors=True)
            self._stream.close(ignore_errors=True)
        except sound.PortAudioError:  # a device that has gone
            return

    def _callback(self, samples: FloatArray, _frames: int, _time: Any, status: Any) -> None:
        self._hear(samples, bool(status.input_overflow))

    def _finished(self) -> None:
        if not self._closing:
            self._ended()


def open_input(wanted: str | int | None = None, channels: int | None = None) -> OpenedInput:
    """Open a device at its own rate.

    Args:
        wanted: as in `choose`.
        channels: how many to hear, at most; None for one or two.

    Raises:
        SourceError: PortAudio is missing, there is no input, or it cannot be opened.
        UsageError: no input is meant, or more than one.
    """
    return OpenedInput(choose(devices(), wanted), channels)


def rescan() -> None:
    """Look again which devices there are; no device may be open.

    Raises:
        SourceError: PortAudio cannot be started again.
    """
    sound = library()
    try:
        sound._terminate()  # PortAudio has no other way
        sound._initialize()
    except sound.PortAudioError as error:
        raise SourceError(f"PortAudio fails: {_reason(error)}; see monitor doctor") from None


def _reason(error: Exception) -> str:
    return " ".join(str(error.args[0] if error.args else error).split())
