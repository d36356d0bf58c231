"""An event that another thread sets and coroutines of the server's loop wait for."""

from __future__ import annotations

import asyncio
import contextlib

__all__ = ["Wakeup"]


class Wakeup:
    """Set by any thread, seen by every coroutine that waits; belongs to the running loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()
        self._waking = False

    def wake(self) -> None:
        """Wake all that wait. Never waits itself; several calls may wake them once."""
        if not self._waking:
            self._waking = True
            with contextlib.suppress(RuntimeError):  # the loop has been closed
                self._loop.call_soon_threadsafe(self._wake)

    async def wait(self, seconds: float) -> None:
        """Return at the next `wake`, or after so many seconds."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._event.wait(), seconds)

    def _wake(self) -> None:
        self._waking = False
        event, self._event = self._event, asyncio.Event()
        event.set()
