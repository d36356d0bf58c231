"""Limits on the server's connections: how many, and how long one may do nothing.

uvicorn limits requests, and a socket that never sends one uses up a descriptor all the same; its
one time limit ends with the first byte of the next request.
"""

from __future__ import annotations

import asyncio
import errno
import os
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["BACKLOG", "Connections", "most_connections", "no_descriptor_left"]

MOST = 128
LEAST = 8
RESERVE = 64
"""Descriptors that are left to alert actions, the ledger and files."""
BACKLOG = 32
"""Connections accepted at one go, before the first of them can be refused."""
MOST_REQUEST_BYTES = 16 * 1024
REQUEST_SECONDS = 10.0
"""From the first moment of a connection, or the last answer, to a whole request."""
STALLED_SECONDS = 60.0
"""A client that takes nothing of its answer for so long is let go; a browser comes back."""


def most_connections() -> int:
    """So many that descriptors are left for everything else.

    Example:
        >>> LEAST <= most_connections() <= MOST
        True
    """
    try:
        import resource
    except ImportError:  # a system without such limits
        return MOST
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return MOST
    try:
        used = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    except OSError:
        used = RESERVE
    return min(MOST, max(LEAST, limit - used - RESERVE - BACKLOG))


def no_descriptor_left(context: dict[str, Any]) -> bool:
    """Whether a loop tells its exception handler of that; it tries again by itself in a second."""
    error = context.get("exception")
    return isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)


_TOO_LONG = b"HTTP/1.1 413 Request Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class Connections:
    """All connections of one server; when there are too many, an idle one makes room.

    So half a request, or none, never keeps anybody out: the one that has waited longest goes first,
    then the one that has not read its answer for longest. Only where all are being answered the
    newest is turned away.

    Args:
        most: how many.
        request_seconds: for a whole request to arrive.
        stalled_seconds: for a client to read on.

    Attributes:
        turned_away: how many found no room.
    """

    def __init__(
        self,
        most: int,
        request_seconds: float = REQUEST_SECONDS,
        stalled_seconds: float = STALLED_SECONDS,
    ) -> None:
        self.most = most
        self.request_seconds = request_seconds
        self.stalled_seconds = stalled_seconds
        self.turned_away = 0
        self._all: set[_Connection] = set()
        # in the order in which they began to wait
        self._asked: dict[_Connection, asyncio.TimerHandle] = {}
        self._stalled: dict[_Connection, asyncio.TimerHandle] = {}

    def __len__(self) -> int:
        return len(self._all)

    @property
    def protocol(self) -> type[asyncio.Protocol]:
        """What uvicorn makes of every connection: ``Config(http=...)``."""
        there = self

        class Counted(_Connection):
            connections_of = there

        return Counted

    def enter(self, one: _Connection) -> bool:
        """Count a new connection; False where it must go."""
        while len(self._all) >= self.most:
            idle = next(iter(self._asked), None) or next(iter(self._stalled), None)
            if idle is None:
                self.turned_away += 1
                return False
            self._drop(idle)
        self._all.add(one)
        self.wait_for_request(one)
        return True

    def leave(self, one: _Connection) -> None:
        """It is closed."""
        self._all.discard(one)
        self.has_request(one)
        self.reads(one)

    def wait_for_request(self, one: _Connection) -> None:
        """Give it the time for one request; more bytes give no more time."""
        if one in self._all and one not in self._asked:
            self._asked[one] = one.loop.call_later(self.request_seconds, self._drop, one)

    def is_waited_for(self, one: _Connection) -> bool:
        """Whether its request has not come, or not all of it."""
        return one in self._asked

    def has_request(self, one: _Connection) -> None:
        """It has sent a whole request."""
        _cancel(self._asked.pop(one, None))

    def stalls(self, one: _Connection) -> None:
        """It does not read what it is sent."""
        if one in self._all and one not in self._stalled:
            self._stalled[one] = one.loop.call_later(self.stalled_seconds, self._drop, one)

    def reads(self, one: _Connection) -> None:
        """It reads."""
        _cancel(self._stalled.pop(one, None))

    def _drop(self, one: _Connection) -> None:
        self.leave(one)
        one.transport.abort()


class _Connection(H11Protocol):
    """One connection of uvicorn's, counted."""

    connections_of: Connections
    _heard = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if not self.connections_of.enter(self):
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.connections_of.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.connections_of.is_waited_for(self):
            self._heard += len(data)
            if self._heard > MOST_REQUEST_BYTES:  # not even looked at: nothing of it is kept
                self.transport.write(_TOO_LONG)
                self.transport.close()
                return
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.connections_of.stalls(self)

    def resume_writing(self) -> None:
        super().resume_writing()
        self.connections_of.reads(self)

    def _look(self) -> None:
        """Whether there is a whole request that is being answered."""
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete and not cycle.more_body:
            self.connections_of.has_request(self)
            self._heard = 0
        else:
            self.connections_of.wait_for_request(self)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
