"""Where a stream comes from: `Source`, a `LiveSource` that does not wait, an `AudioDevice`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Protocol, Self, runtime_checkable

from monitor.brings import Brings
from monitor.types import Block, FloatArray, Frames, Gap, Tracks, Words

__all__ = ["AudioDevice", "LiveSource", "Source"]


@runtime_checkable
class Source(Protocol):
    """Where audio, or ready-made frames, come from. A context manager.

    Iterating gives the stream from its first sample to its end, in order: a `Block` of audio (of
    any length, at any rate), or `Frames` that features made before, and a `Gap` for each stretch
    that is missing. Either blocks or `Frames` keep the clock; `Words` and `Tracks` may lie beside
    them, each given before the audio of the tick at which it counts. What it holds open it lets go
    of at the end of the ``with`` block; `monitor.managed.Managed` does that part.

    Attributes:
        label: how to call it in front of a person; never a full path.
        brings: what comes out of it.

    Raises:
        monitor.errors.SourceError: from iterating or opening, where nothing more can be given; the
            message says in one line what to do.

    Example:
        >>> import numpy as np
        >>> from monitor.managed import Managed
        >>> class Silence(Managed):
        ...     label, brings = "silence", Brings(channels=1)
        ...     seconds = 2.0
        ...
        ...     def __iter__(self):
        ...         yield Block(np.zeros(16000, np.float32), rate=16000)
        ...         yield Gap("cable", lost_seconds=1.0, detail="nothing was plugged in")
        >>> isinstance(Silence(), Source)
        True
    """

    label: str

    @property
    def seconds(self) -> float | None:
        """Audio seconds promised, None where unknown."""

    @property
    def brings(self) -> Brings:
        """What comes out of it."""

    def __iter__(self) -> Iterator[Block | Frames | Gap | Words | Tracks]: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


@runtime_checkable
class LiveSource(Source, Protocol):
    """A source that goes on whether or not somebody takes what it gives, until it is stopped."""

    @property
    def waiting_seconds(self) -> float:
        """Seconds of audio that were heard and not yet taken."""

    def behind_seconds(self, seconds: float) -> float:
        """Wall seconds since that second of the stream was heard."""

    def stop(self) -> None:
        """End the stream after what was heard so far; may be called from anywhere."""


class AudioDevice(Protocol):
    """An opened input device: what `monitor.sources.Microphone` needs of a sound library.

    Attributes:
        name: what the sound system calls it.
        rate: samples per second.
        channels: of each sample.
    """

    name: str
    rate: int
    channels: int

    def start(self, hear: Callable[[FloatArray, bool], None], ended: Callable[[], None]) -> None:
        """Begin to record; returns at once.

        Args:
            hear: called from the device's thread with samples, shape (n, channels), float32, which
                the callee copies, and with whether some were lost before them.
            ended: called once, from that thread, when the device gives no more.
        """

    def close(self) -> None:
        """Let go of the device."""
