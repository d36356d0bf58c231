"""Wakes the readers in the server's loop from the writer's thread."""

from __future__ import annotations

import asyncio
import contextlib

__all__ = ["Bell"]


class Bell:
    """Rung by any thread, heard by every coroutine that waits; belongs to the running loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()
        self._rung = False

    def ring(self) -> None:
        """Wake all that wait. Never waits itself; many rings may be heard as one."""
        if not self._rung:
            self._rung = True
            with contextlib.suppress(RuntimeError):  # the loop has been closed
                self._loop.call_soon_threadsafe(self._wake)

    async def wait(self, seconds: float) -> None:
        """Return at the next ring, or after so many seconds."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._event.wait(), seconds)

    def _wake(self) -> None:
        self._rung = False
        event, self._event = self._event, asyncio.Event()
        event.set()
