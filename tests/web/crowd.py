"""Many connections at once, on loopback."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

__all__ = ["crowd"]


@contextlib.contextmanager
def crowd(port: int, count: int, said: bytes = b"") -> Iterator[list[socket.socket]]:
    """So many connections, each of which has said the same; some may have been turned away."""
    with contextlib.ExitStack() as stack:
        made = []
        for _ in range(count):
            one = stack.enter_context(socket.socket())
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.settimeout(60)
            with contextlib.suppress(ConnectionError):
                one.connect(("127.0.0.1", port))
                one.sendall(said)
            made.append(one)
        yield made
