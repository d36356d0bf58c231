"""A server of pages in a separate thread."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import threading
import time
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from monitor.errors import UsageError
from monitor.web.connections import (
    BACKLOG,
    Certificate,
    Connections,
    counted_websocket,
    most_connections,
    no_descriptor_left,
)

START_SECONDS = 10.0
LAST_WORDS_SECONDS = 2.0
PING_SECONDS = 5.0  # a browser that does not answer a ping within this time has gone
MOST_MESSAGE_BYTES = 64 * 1024
"""Maximum websocket message. A longer one closes the websocket before it is completely read."""


class Server:
    """Answers browsers from a separate thread."""

    def __init__(
        self,
        app: ASGIApp,  # application that answers
        host: str,  # an address of this machine
        port: int,  # 0 chooses a free port
        *,
        certificate: Certificate | None = None,  # for https
        websockets: bool = False,  # whether to accept them
    ) -> None:
        self._socket = _listening(host, port)
        self.port: int = self._socket.getsockname()[1]  # port, url: address of the server
        scheme = "http" if certificate is None else "https"
        self.url = f"{scheme}://{_reachable(host)}:{self.port}/"
        self.connections = Connections(most_connections())  # of all browsers
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
        """Wait at most two seconds for open answers, then stop."""
        until = time.monotonic() + LAST_WORDS_SECONDS
        while self.answering and time.monotonic() < until:
            time.sleep(0.01)
        self._server.should_exit = True
        self._thread.join(START_SECONDS)
        self._socket.close()

    def _serve(self) -> None:
        with contextlib.suppress(SystemExit):  # uvicorn raises it if it cannot start
            try:
                asyncio.run(self._answer())
            except OSError as error:
                self._failure = error.strerror or str(error)

    async def _answer(self) -> None:
        asyncio.get_running_loop().set_exception_handler(_trouble)
        await self._server.serve(sockets=[self._socket])

    @property
    def answering(self) -> bool:
        """True while an answer is incomplete."""
        return self._thread.is_alive() and bool(self._server.server_state.tasks)


def _trouble(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Ignore errors that would fill a terminal while the page is under attack."""
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
