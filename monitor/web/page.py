"""A sink that shows a run in browsers: a hub, and a server in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import uvicorn

from monitor.errors import UsageError
from monitor.web.app import make_app
from monitor.web.connections import (
    BACKLOG,
    Connections,
    most_connections,
    no_descriptor_left,
)
from monitor.web.guard import Access, is_loopback
from monitor.web.hub import Hub

__all__ = ["Page"]

START_SECONDS = 10.0
LAST_WORDS_SECONDS = 2.0


class Page:
    """Serves a run to any number of browsers while it is written.

    ``write`` keeps the record and wakes the server's thread, no more: no client can hold the run
    up. After ``close`` the clients get what is left, for two seconds at most.

    Args:
        host: an address of this machine; only loopback ones need no token.
        port: 0 takes any that is free.
        token: what readers must show; it is never written anywhere.
        thresholds: field and bits to say the time left for.
        recorded: the run is over: it was read from a file.

    Raises:
        UsageError: no token where other machines could read, or the address cannot be had.

    Example:
        >>> from urllib.request import urlopen
        >>> with Page("127.0.0.1", 0) as page:
        ...     with urlopen(page.url + "healthz") as answer:
        ...         answer.read().decode().strip()
        'ok'
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        token: str | None = None,
        thresholds: Sequence[tuple[str, float]] = (),
        recorded: bool = False,
    ) -> None:
        if token is None and not is_loopback(host):
            raise UsageError(
                f"everybody who reaches {host} could follow the run: give a --web-token (or "
                "MONITOR_WEB_TOKEN), or use 127.0.0.1"
            )
        self.hub = Hub(thresholds, recorded=recorded)
        app = make_app(self.hub, host, None if token is None else Access(token))
        self._socket = _listening(host, port)
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://{_reachable(host)}:{self.port}/"
        self.connections = Connections(most_connections())
        self._server = uvicorn.Server(
            uvicorn.Config(
                app, access_log=False, log_config=None, log_level="critical", lifespan="off",
                ws="none", http=self.connections.protocol, loop="asyncio", server_header=False,
                proxy_headers=False, backlog=BACKLOG, timeout_graceful_shutdown=1,
            )
        )  # fmt: skip
        self._thread = threading.Thread(target=self._serve, name="monitor page", daemon=True)
        self._thread.start()
        until = time.monotonic() + START_SECONDS
        while not self._server.started and self._thread.is_alive() and time.monotonic() < until:
            time.sleep(0.005)

    def write(self, record: Mapping[str, Any]) -> None:
        """Take one record."""
        self.hub.write(record)

    def close(self) -> None:
        """Let the clients have the last records, then stop."""
        self.hub.close()
        until = time.monotonic() + LAST_WORDS_SECONDS
        # streams end by themselves once they have given everything
        while self._streaming() and time.monotonic() < until:
            time.sleep(0.01)
        self._server.should_exit = True
        self._thread.join(START_SECONDS)
        self._socket.close()

    def __enter__(self) -> Page:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _serve(self) -> None:
        with contextlib.suppress(SystemExit):  # uvicorn leaves that way when it cannot start
            asyncio.run(self._answer())

    async def _answer(self) -> None:
        asyncio.get_running_loop().set_exception_handler(_trouble)
        await self._server.serve(sockets=[self._socket])

    def _streaming(self) -> bool:
        return self._thread.is_alive() and bool(self._server.server_state.tasks)


def _trouble(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Leave out what would fill a terminal while the page is under attack."""
    if not no_descriptor_left(context):
        loop.default_exception_handler(context)


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens there."""
    name = "127.0.0.1" if host == "localhost" else host
    family = socket.AF_INET6 if ":" in name else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((name, port))
        made.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        made.close()
        code = getattr(error, "errno", None)
        if code == errno.EADDRINUSE:
            what = "something else listens there; choose another port, or 0 for any"
        elif code == errno.EACCES:
            what = "not permitted; choose a port from 1024 on"
        else:
            what = f"{getattr(error, 'strerror', None) or error}; choose an address of this machine"
        raise UsageError(f"the page cannot be served on {host} port {port}: {what}") from None
    return made


def _reachable(host: str) -> str:
    """How to write the host in an address that can be opened."""
    if host in ("0.0.0.0", "::"):
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host
