"""Limits on the number of the server's connections and their idle time."""

from __future__ import annotations

import asyncio
import errno
import os
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from monitor.errors import UsageError

# uvicorn limits requests only. A socket that never sends one still uses a descriptor, and uvicorn's
# only timeout ends with the first byte of the next request.
MOST = 128
LEAST = 8
RESERVE = 64  # descriptors reserved for alert actions, the ledger and files
BACKLOG = 32  # connections accepted at once, before the first of them can be refused
MOST_REQUEST_BYTES = 16 * 1024
REQUEST_SECONDS = 10.0
"""Maximum time for a whole request, from the connection's start or the last answer."""
STALLED_SECONDS = 60.0
"""A client that reads nothing for this time is disconnected. A browser reconnects."""


def most_connections() -> int:
    """Return the maximum number of connections that leaves descriptors for everything else."""
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
    """Return whether a loop reports a lack of descriptors; it retries by itself after a second."""
    error = context.get("exception")
    return isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)


_TOO_LONG = b"HTTP/1.1 413 Request Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Certificate:
    """Certificate files of an https server; UsageError if they do not match."""

    certificate: Path  # PEM, with the chain
    key: Path | None = None  # PEM, without a password; None if it is in the certificate's file

    def __post_init__(self) -> None:
        try:
            self.context()
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            reason = "use a PEM certificate and its key without a password"
            if isinstance(error, OSError) and not isinstance(error, ssl.SSLError):
                reason = str(error.strerror)
            names = " and ".join(str(path) for path in (self.certificate, self.key) if path)
            raise UsageError(f"{names} cannot be used for https ({reason})") from None

    def context(self) -> ssl.SSLContext:
        """Make the context of a server's handshakes."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key, password="")
        return context


class Connections:
    """All connections of one server. If there are too many, an idle one is closed.

    Incomplete requests therefore never block other clients. The connection that has waited longest
    is closed first, then the one that has not read its answer for longest. The newest is refused
    only if all are being answered.
    """

    def __init__(self, maximum: int) -> None:
        self.most = maximum
        self.request_seconds = REQUEST_SECONDS
        self.stalled_seconds = STALLED_SECONDS
        self.turned_away = 0
        self._all: set[_Connection | _Handshake] = set()
        # timers of waiting connections, in the order in which they began to wait
        self._asked: dict[_Connection | _Handshake, asyncio.TimerHandle] = {}
        self._stalled: dict[_Connection | _Handshake, asyncio.TimerHandle] = {}

    def __len__(self) -> int:
        return len(self._all)

    def protocol(self, certificate: Certificate | None = None) -> Callable[..., asyncio.Protocol]:
        """Make the protocol of every connection for uvicorn: ``Config(http=...)``."""
        connections = self

        class Counted(_Connection):
            connections_of = connections

        if certificate is None:
            return Counted
        context = certificate.context()
        return lambda **options: _Handshake(connections, context, Counted(**options))

    def enter(self, connection: _Connection | _Handshake) -> bool:
        """Count a new connection; False if it is refused."""
        while len(self._all) >= self.most:
            idle = next(iter(self._asked), None) or next(iter(self._stalled), None)
            if idle is None:
                self.turned_away += 1
                return False
            self._drop(idle)
        self._all.add(connection)
        self.wait_for_request(connection)
        return True

    def leave(self, connection: _Connection | _Handshake) -> None:
        """Forget a closed connection."""
        self._all.discard(connection)
        self.has_request(connection)
        self.reads(connection)

    def wait_for_request(self, connection: _Connection | _Handshake) -> None:
        """Start a connection's time limit for one request, which more bytes do not extend."""
        if connection in self._all and connection not in self._asked:
            timer = connection.loop.call_later(self.request_seconds, self._drop, connection)
            self._asked[connection] = timer

    def is_waited_for(self, connection: _Connection | _Handshake) -> bool:
        """Return whether a connection's request is missing or incomplete."""
        return connection in self._asked

    def has_request(self, connection: _Connection | _Handshake) -> None:
        """Record that a connection has sent a whole request."""
        _cancel(self._asked.pop(connection, None))

    def stalls(self, connection: _Connection | _Handshake) -> None:
        """Record that a connection does not read its answer."""
        if connection in self._all and connection not in self._stalled:
            timer = connection.loop.call_later(self.stalled_seconds, self._drop, connection)
            self._stalled[connection] = timer

    def reads(self, connection: _Connection | _Handshake) -> None:
        """Record that a connection reads its answer."""
        _cancel(self._stalled.pop(connection, None))

    def _drop(self, connection: _Connection | _Handshake) -> None:
        self.leave(connection)
        connection.transport.abort()


class _Handshake(asyncio.Protocol):
    """A connection before https begins. It is counted and has the timeout of a request.

    asyncio's servers report a connection only after its handshake, so that silent ones could
    accumulate.
    """

    def __init__(self, all_: Connections, context: ssl.SSLContext, then: _Connection) -> None:
        self.loop = then.loop
        self._all, self._context, self._then = all_, context, then
        self._early = bytearray()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport
        if self._all.enter(self):
            self._task = self.loop.create_task(self._shake_hands())
        else:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        self._early += data  # arrives with the end of the handshake

    def connection_lost(self, _exc: Exception | None) -> None:
        self._all.leave(self)

    async def _shake_hands(self) -> None:
        try:
            secure = await self.loop.start_tls(
                self.transport, self, self._context, server_side=True
            )
        except (OSError, ValueError):  # ssl.SSLError is an OSError; the client has gone
            secure = None
        self._all.leave(self)
        if secure is None:
            self.transport.abort()
            return
        secure.set_protocol(self._then)
        self._then.connection_made(secure)
        if self._early:
            self._then.data_received(bytes(self._early))


class _Connection(H11Protocol):
    """A counted connection of uvicorn."""

    connections_of: Connections
    _heard = 0
    _upgraded = False

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
            if self._heard > MOST_REQUEST_BYTES:  # refused before it is parsed or stored
                self.transport.write(_TOO_LONG)
                self.transport.close()
                return
        super().data_received(data)
        self._update_wait()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._upgraded = True
        self.connections_of.has_request(self)
        super().handle_websocket_upgrade(event)
        websocket: Any = self.transport.get_protocol()
        websocket.connection = self

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._update_wait()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.connections_of.stalls(self)

    def resume_writing(self) -> None:
        super().resume_writing()
        self.connections_of.reads(self)

    def _update_wait(self) -> None:
        """Record whether a whole request is being answered."""
        if self._upgraded:
            return
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete and not cycle.more_body:
            self.connections_of.has_request(self)
            self._heard = 0
        else:
            self.connections_of.wait_for_request(self)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


def counted_websocket() -> type[asyncio.Protocol]:
    """Make the protocol of connections that become websockets, and remain counted."""
    from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

    class CountedWebSocket(WebSocketsSansIOProtocol):
        connection: _Connection | None = None

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            if self.connection is not None:
                self.connection.connections_of.leave(self.connection)

        def pause_writing(self) -> None:
            super().pause_writing()
            if self.connection is not None:
                self.connection.connections_of.stalls(self.connection)

        def resume_writing(self) -> None:
            super().resume_writing()
            if self.connection is not None:
                self.connection.connections_of.reads(self.connection)

    return CountedWebSocket
