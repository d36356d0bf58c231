"""The browser's microphone as a live source."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable

from monitor.errors import MonitorError, UsageError
from monitor.sources.microphone import AudioQueue
from monitor.sources.pipe import pcm_to_float

RATES = (8_000, 192_000)
_HEADER = struct.Struct("<Q")
SHORTEST_SECONDS = 0.005
"""Shortest message. Many shorter ones would fill the memory instead of the queue."""
AHEAD_SECONDS = 120.0  # sound that is so far ahead of the clock was not spoken into a microphone
QUEUE_SECONDS = 30.0
PAUSED_SECONDS = 1800.0  # a session without audio for this time ends


class RefusedError(MonitorError):
    """A message that our page never sends. The websocket is closed."""


class BrowserMicrophone(AudioQueue):
    """Audio from a browser, in messages of 16-bit mono samples with their position.

    A message starts with the number of samples before it, as an unsigned 64-bit integer. The
    samples follow. Both are little-endian. Samples missing between two messages are a gap.
    """

    def __init__(
        self, rate: int, *, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if not RATES[0] <= rate <= RATES[1]:
            raise UsageError(f"unsupported microphone rate {rate} Hz: use {RATES[0]} to {RATES[1]}")
        super().__init__(
            rate,
            seconds=seconds,
            queue_seconds=QUEUE_SECONDS,
            label="the browser's microphone",
            stalled_seconds=PAUSED_SECONDS,
            clock=clock,
        )
        self._place = 0
        self._began = clock()

    def receive_audio(self, message: bytes) -> None:
        """Take the samples of a message; RefusedError if malformed, out of order or too fast."""
        samples, odd = divmod(len(message) - _HEADER.size, 2)
        if odd or not SHORTEST_SECONDS * self.rate <= samples <= self.rate:
            raise RefusedError("an audio message must have 5 ms to 1 s of 16-bit samples")
        (position,) = _HEADER.unpack_from(message)
        if position < self._place:
            raise RefusedError("audio messages must be in order")
        ahead = (position + samples) / self.rate - (self._clock() - self._began)
        if ahead > AHEAD_SECONDS:
            raise RefusedError("audio arrived faster than real time")
        if position > self._place:
            self.miss(position - self._place)
        self._place = position + samples
        self.put(pcm_to_float(message[_HEADER.size :], "s16le", 1))
