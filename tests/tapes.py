"""An input whose sound is known: what a device would do, to the sample, when it is told to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from monitor.errors import SourceError
from monitor.types import FloatArray

LOST = None
"""In a script: the sound system lost audio here."""


class FrameBuffer:
    """Opens as a device does; another thread calls back with parts of what it is made of.

    Args:
        script: what each opening plays: samples, or `LOST`. An opening beyond the last fails.
        rate: samples per second.
        gone: whether the device vanishes when a script is over; otherwise it falls silent.
    """

    name = "tape"

    def __init__(
        self, script: Sequence[Sequence[FloatArray | None]], rate: int, *, gone: bool = False
    ) -> None:
        self.rate, self.channels = rate, 1
        self._script, self._gone = script, gone
        self.opened = self.rescanned = 0

    def opens(self, _wanted: str | int | None, _channels: int | None) -> FrameBuffer:
        if self.opened >= len(self._script):
            raise SourceError("tape is gone")
        self.opened += 1
        return self

    def rescans(self) -> None:
        self.rescanned += 1

    def start(self, hear: Callable[[FloatArray, bool], None], ended: Callable[[], None]) -> None:
        parts = self._script[self.opened - 1]

        def play() -> None:
            lost = False
            for part in parts:
                if part is None:
                    lost = True
                    continue
                hear(part.reshape(len(part), -1).copy(), lost)
                lost = False
            if self._gone:
                ended()

        self._thread = threading.Thread(target=play)
        self._thread.start()

    def close(self) -> None:
        if hasattr(self, "_thread"):
            self._thread.join()
