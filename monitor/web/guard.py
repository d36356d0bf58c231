"""Who may see the page: which hosts it answers to, the token, and the headers of every answer."""

from __future__ import annotations

import ipaddress
import math
import socket
from collections.abc import Iterable
from typing import TYPE_CHECKING

from monitor.web.access import Access, Answer

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = [
    "CSP",
    "Guard",
    "address_of",
    "host_of",
    "is_loopback",
    "may_ask_for",
    "too_many_tries",
]


CSP = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src-attr 'none'",
    "img-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
)
HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    Examples:
        >>> [is_loopback(h) for h in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "example.org")]
        [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_of(header: str) -> str:
    """The host in a Host header, without its port; empty where it makes no sense.

    Examples:
        >>> [host_of(h) for h in ("LOCALHOST:80", "[::1]:80", "127.0.0.1", "a b", "x:y:z", "x:y")]
        ['localhost', '::1', '127.0.0.1', '', '', '']
    """
    header = header.strip().lower()
    if header.startswith("["):
        host, bracket, rest = header[1:].partition("]")
        port = rest.removeprefix(":") if rest else "0"
    else:
        host, _, port = header.partition(":") if ":" in header else (header, "", "0")
        bracket = "]"
    known = bracket and port.isascii() and port.isdigit() and not any(map(str.isspace, host))
    return host.removesuffix(".") if known else ""


def may_ask_for(header: str, bound: str) -> bool:
    """Whether a Host header names this server rather than somebody's domain that resolves to it.

    A page in a browser can make any name resolve here (DNS rebinding), but no address: where the
    server is bound to loopback it answers to loopback addresses and localhost; elsewhere to every
    address, to localhost and to the name of the machine.

    Examples:
        >>> may_ask_for("localhost:8000", "127.0.0.1"), may_ask_for("evil.org", "127.0.0.1")
        (True, False)
        >>> may_ask_for("192.0.2.1:8000", "0.0.0.0"), may_ask_for("192.0.2.1:8000", "127.0.0.1")
        (True, False)
    """
    host = host_of(header)
    if is_loopback(host):
        return True
    if not host or is_loopback(bound):
        return False
    names: Iterable[str] = (bound.lower(), socket.gethostname().lower(), socket.getfqdn().lower())
    if host in names:
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


SOON_SECONDS = 10
"""Until somebody may try again where the line of those who try was full."""


class Guard:
    """Checks the Host header before anything else, and gives every answer its headers.

    An ASGI middleware; ``scope["state"]["known"]`` says whether the reader may see the run.
    ``styles`` are sources of style elements that are allowed beside the page's own sheet.
    """

    def __init__(
        self, app: ASGIApp, bound: str, access: Access | None, styles: Iterable[str] = ()
    ) -> None:
        self._app = app
        policy = "; ".join((*CSP, " ".join(("style-src 'self'", *styles))))
        self._headers = {
            **HEADERS, "content-security-policy": policy, "cache-control": "no-store"
        }  # fmt: skip
        self._bound = bound
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(
                        (name.encode(), value.encode())
                        for name, value in self._headers.items()
                        if name.encode() not in given
                    ),
                ]
            await send(message)

        app = await self._checked(scope)
        await app(scope, receive, answer)

    async def _checked(self, scope: Scope) -> ASGIApp:
        """What answers this request."""
        headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            # where a header comes twice, neither is trusted
            key = name.decode("latin-1")
            headers[key] = "" if key in headers else value.decode("latin-1")
        if not may_ask_for(headers.get("host", ""), self._bound):
            return _refusal("this server does not answer to that name", 421)
        access, known = self._access, True
        if access is not None and not access.knows(headers.get("cookie", "")):
            kind, _, offered = headers.get("authorization", "").partition(" ")
            known = False
            if kind.lower() == "bearer":
                address = address_of(scope)
                answer = await access.offer(offered.strip(), address)
                if answer is Answer.WAIT:
                    return too_many_tries(access, address)
                known = answer is Answer.RIGHT
        scope.setdefault("state", {})["known"] = known
        return self._app


def address_of(scope: Scope) -> str:
    """The address that a request comes from."""
    client = scope.get("client")
    return client[0] if client else ""


def too_many_tries(access: Access, address: str) -> Response:
    """The answer to an address that has offered too many wrong tokens."""
    seconds = math.ceil(access.wait_seconds(address)) or SOON_SECONDS
    return _refusal("too many wrong tokens: wait a minute", 429, {"retry-after": str(seconds)})


def _refusal(text: str, status: int, headers: dict[str, str] | None = None) -> Response:
    from starlette.responses import PlainTextResponse

    return PlainTextResponse(f"{text}\n", status, headers)
