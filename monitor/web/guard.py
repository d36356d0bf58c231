"""Who may see the page: which hosts it answers to, the token, and the headers of every answer."""

from __future__ import annotations

import hmac
import ipaddress
import socket
from collections.abc import Iterable
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING

from monitor.errors import UsageError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["COOKIE", "CSP", "Guard", "Token", "host_of", "is_loopback", "may_ask_for"]

COOKIE = "monitor_page"
LEAST_CHARACTERS = 12

_EMPTY_STYLE = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
"""Of no text at all: plotly.js makes an empty style element and adds its rules one by one."""
CSP = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        f"style-src 'self' {_EMPTY_STYLE}",
        "style-src-attr 'none'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "content-security-policy": CSP,
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


class Token:
    """What lets a reader in. It is never written anywhere, nor shown in an error.

    Raises:
        UsageError: it is too short.
    """

    def __init__(self, secret: str) -> None:
        if len(secret) < LEAST_CHARACTERS or not secret.isprintable():
            raise UsageError(
                f"the web token must have {LEAST_CHARACTERS} printable characters or more; "
                "`openssl rand -hex 16` makes one"
            )
        self._secret = secret.encode()
        # a cookie that is stolen does not give the token away
        self.cookie = hmac.new(self._secret, b"monitor page", sha256).hexdigest()

    def __repr__(self) -> str:
        return "Token(...)"

    def fits(self, offered: str) -> bool:
        """Whether this is the token; takes as long for any answer."""
        return hmac.compare_digest(offered.encode(), self._secret)

    def lets_in(self, authorization: str, cookies: str) -> bool:
        """Whether a request carries the token (``Bearer``) or the cookie it was exchanged for."""
        kind, _, offered = authorization.partition(" ")
        if kind.lower() == "bearer" and self.fits(offered.strip()):
            return True
        try:
            jar = SimpleCookie(cookies)
        except CookieError:
            return False
        morsel = jar.get(COOKIE)
        return morsel is not None and hmac.compare_digest(
            morsel.value.encode(), self.cookie.encode()
        )


class Guard:
    """Checks the Host header before anything else, and gives every answer its headers.

    An ASGI middleware; ``scope["state"]["known"]`` says whether the reader has shown the token.
    """

    def __init__(self, app: ASGIApp, bound: str, token: Token | None) -> None:
        self._app = app
        self._bound = bound
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            # where a header comes twice, neither is trusted
            key = name.decode("latin-1")
            headers[key] = "" if key in headers else value.decode("latin-1")

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(
                        (name.encode(), value.encode())
                        for name, value in {**HEADERS, "cache-control": "no-store"}.items()
                        if name.encode() not in given
                    ),
                ]
            await send(message)

        if not may_ask_for(headers.get("host", ""), self._bound):
            from starlette.responses import PlainTextResponse

            refusal = PlainTextResponse("this server does not answer to that name\n", 421)
            await refusal(scope, receive, answer)
            return
        known = self._token is None or self._token.lets_in(
            headers.get("authorization", ""), headers.get("cookie", "")
        )
        scope.setdefault("state", {})["known"] = known
        await self._app(scope, receive, answer)
