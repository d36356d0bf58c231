"""A live source under a scheme of its own; a generator takes the place of a websocket.

python examples/13_a_live_source.py
"""

import threading
from collections.abc import Iterator
from typing import Self

import numpy as np

from monitor import Monitor, Population, Run, sources


def connect(_address: str) -> Iterator[bytes]:
    """Yield messages; yours is ``websockets.sync.client.connect(f"wss://{address}")``."""
    seconds = np.arange(6 * 16_000) / 16_000
    buzz = 9_000 * np.sin(2 * np.pi * 120 * seconds + np.sin(2 * np.pi * 3 * seconds))
    for message in np.split(buzz.astype("<i2"), 60):  # 16-bit samples, as they come
        yield message.tobytes()


class Feed(sources.AudioQueue):
    """Mono audio at 16 kHz. It ends with the connection, or after 10 s without data."""

    def __init__(self, address: str) -> None:
        super().__init__(16_000, label=address, stalled_seconds=10.0)
        self.address = address

    def __enter__(self) -> Self:
        threading.Thread(target=self.receive, daemon=True).start()
        return super().__enter__()

    def receive(self) -> None:
        """Put every message into the queue, in a thread of its own."""
        try:
            for message in connect(self.address):
                self.put(np.frombuffer(message, "<i2") / 32_768)
        finally:
            self.stop()


sources.register("feed:", Feed)
with Run("feed:example.org/ann", Monitor(Population.reference(), features=["f0"])) as run:
    for event in run:
        if event.type == "reading":
            print(f"{event.seconds:.0f} s  {event.bits:.2f} bits, {event.lag:.1f} s late")
