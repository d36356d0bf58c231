"""A server of pages in a separate thread, with limits on its connections."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from monitor.errors import UsageError

#
# uvicorn limits requests only. A socket that never sends one still uses a descriptor, and uvicorn's
# only timeout ends with the first byte of the next request.

MOST = 128
LEAST = 8
RESERVE = 64  # descriptors that are left to alert actions, the ledger and files
BACKLOG = 32  # connections accepted at one go, before the first of them can be refused
MOST_REQUEST_BYTES = 16 * 1024
REQUEST_SECONDS = 10.0
"""From the first moment of a connection, or the last answer, to a whole request."""
STALLED_SECONDS = 60.0
"""A client that reads nothing for this time is disconnected. A browser reconnects."""


def most_connections() -> int:
    """So many that descriptors are left for everything else."""
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
    """Return whether a loop reports that; it tries again by itself in a second."""
    error = context.get("exception")
    return isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)


_TOO_LONG = b"HTTP/1.1 413 Request Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


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
        # in the order in which they began to wait
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
        """Count a new connection; False if it must go."""
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
        """Give a connection the time for one request; more bytes give no more time."""
        if connection in self._all and connection not in self._asked:
            timer = connection.loop.call_later(self.request_seconds, self._drop, connection)
            self._asked[connection] = timer

    def is_waited_for(self, connection: _Connection | _Handshake) -> bool:
        """Return whether its request has not come, or not all of it."""
        return connection in self._asked

    def has_request(self, connection: _Connection | _Handshake) -> None:
        """Note that it has sent a whole request."""
        _cancel(self._asked.pop(connection, None))

    def stalls(self, connection: _Connection | _Handshake) -> None:
        """Note that it does not read what it is sent."""
        if connection in self._all and connection not in self._stalled:
            timer = connection.loop.call_later(self.stalled_seconds, self._drop, connection)
            self._stalled[connection] = timer

    def reads(self, connection: _Connection | _Handshake) -> None:
        """Note that it reads."""
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
        self._early += data  # with the last of the handshake

    def connection_lost(self, _exc: Exception | None) -> None:
        self._all.leave(self)

    async def _shake_hands(self) -> None:
        try:
            secure = await self.loop.start_tls(
                self.transport, self, self._context, server_side=True
            )
        except (OSError, ValueError):  # ssl.SSLError is an OSError; it went away
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
    """One connection of uvicorn's, counted."""

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
            if self._heard > MOST_REQUEST_BYTES:  # not even looked at: nothing of it is kept
                self.transport.write(_TOO_LONG)
                self.transport.close()
                return
        super().data_received(data)
        self._look()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._upgraded = True
        self.connections_of.has_request(self)
        super().handle_websocket_upgrade(event)
        websocket: Any = self.transport.get_protocol()
        websocket.connection = self

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
        """Note whether a whole request is being answered."""
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


START_SECONDS = 10.0
LAST_WORDS_SECONDS = 2.0
PING_SECONDS = 5.0  # a browser that answers no ping for this time is considered gone
MOST_MESSAGE_BYTES = 64 * 1024
"""Maximum message of a websocket. A longer one closes it before it is completely read."""


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


class Server:
    """Answers browsers from a separate thread.

    Args:
        app: what answers.
        host: an address of this machine.
        port: 0 takes any that is free.
        certificate: speak https.
        websockets: let the app have them.

    Attributes:
        port, url: where it is.
        connections: of all browsers.
    """

    def __init__(
        self,
        app: ASGIApp,
        host: str,
        port: int,
        *,
        certificate: Certificate | None = None,
        websockets: bool = False,
    ) -> None:
        self._socket = _listening(host, port)
        self.port: int = self._socket.getsockname()[1]
        scheme = "http" if certificate is None else "https"
        self.url = f"{scheme}://{_reachable(host)}:{self.port}/"
        self.connections = Connections(most_connections())
        self._server = uvicorn.Server(
            uvicorn.Config(
                app, access_log=False, log_config=None, log_level="critical", lifespan="off",
                ws=counted_websocket() if websockets else "none", ws_max_size=MOST_MESSAGE_BYTES,
                ws_ping_interval=PING_SECONDS, ws_ping_timeout=PING_SECONDS,
                ws_per_message_deflate=False, loop="asyncio",
                http=self.connections.protocol(certificate),  # type: ignore[arg-type]
                server_header=False, proxy_headers=False, backlog=BACKLOG,
                timeout_graceful_shutdown=1,
            )
        )  # fmt: skip
        self._failure = ""
        self._thread = threading.Thread(target=self._serve, name="monitor page", daemon=True)
        self._thread.start()
        until = time.monotonic() + START_SECONDS
        while not self._server.started and self._thread.is_alive() and time.monotonic() < until:
            time.sleep(0.005)
        if not self._server.started:
            self._socket.close()
            raise UsageError(
                f"the page cannot be served ({self._failure or 'it does not start'}): raise the "
                "limit of open files (ulimit -n 1024), or leave the page out"
            )

    def close(self) -> None:
        """Wait for what is being answered, two seconds at most, then stop."""
        until = time.monotonic() + LAST_WORDS_SECONDS
        while self.answering and time.monotonic() < until:
            time.sleep(0.01)
        self._server.should_exit = True
        self._thread.join(START_SECONDS)
        self._socket.close()

    def _serve(self) -> None:
        with contextlib.suppress(SystemExit):  # uvicorn leaves that way when it cannot start
            try:
                asyncio.run(self._answer())
            except OSError as error:
                self._failure = error.strerror or str(error)

    async def _answer(self) -> None:
        asyncio.get_running_loop().set_exception_handler(_trouble)
        await self._server.serve(sockets=[self._socket])

    @property
    def answering(self) -> bool:
        """True if some answer has not come to its end."""
        return self._thread.is_alive() and bool(self._server.server_state.tasks)


def counted_websocket() -> type[asyncio.Protocol]:
    """Make the protocol of connections that become websockets: they stay counted."""
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


def _trouble(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Leave out what would fill a terminal while the page is under attack."""
    if not no_descriptor_left(context):
        loop.default_exception_handler(context)


def _listening(host: str, port: int) -> socket.socket:
    name = "127.0.0.1" if host == "localhost" else host
    family = socket.AF_INET6 if ":" in name else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((name, port))
        listener.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        listener.close()
        code = getattr(error, "errno", None)
        if code == errno.EADDRINUSE:
            what = "something else listens there; choose another port, or 0 for any"
        elif code == errno.EACCES:
            what = "not permitted; choose a port from 1024 on"
        else:
            what = f"{getattr(error, 'strerror', None) or error}; choose an address of this machine"
        raise UsageError(f"the page cannot be served on {host} port {port}: {what}") from None
    return listener


def _reachable(host: str) -> str:
    if host in ("0.0.0.0", "::"):
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host
