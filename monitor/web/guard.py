"""Access control of the page: hosts, token, sessions and limits on guessing."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import math
import secrets
import socket
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from enum import Enum
from hashlib import sha256
from typing import TYPE_CHECKING

from monitor.errors import UsageError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


COOKIE = "monitor_page"
LEAST_CHARACTERS = 12
WRONG_SECONDS = 0.5  # delay of the answer to a wrong token, however it is sent
TRIES = 10
TRIES_SECONDS = 60.0
MOST_ADDRESSES = 1024
SESSION_SECONDS = 7 * 24 * 3600
MOST_SESSIONS = 64


class Answer(Enum):
    """Answer to an offered token."""

    RIGHT = "right"
    WRONG = "wrong"
    WAIT = "wait"  # wrong, after too many wrong tokens from that address


class Access:
    """Token and sessions of readers. The token is never written anywhere or shown in an error.

    A browser exchanges it once for a session. A session is a random number in a cookie, independent
    of the token, and can be ended. An address may try `TRIES` wrong tokens in `TRIES_SECONDS`. The
    right token is always accepted, so that an attacker cannot lock out readers by guessing.
    """

    def __init__(self, secret: str, clock: Callable[[], float] = time.monotonic) -> None:
        if len(secret) < LEAST_CHARACTERS or not secret.isprintable():
            raise UsageError(
                f"the web token must have {LEAST_CHARACTERS} printable characters or more; "
                "`openssl rand -hex 16` makes one"
            )
        self._secret = secret.encode()
        self._clock = clock
        self._sessions: dict[bytes, float] = {}  # end of the session by digest of the cookie
        self._wrong: dict[str, deque[float]] = {}

    def __repr__(self) -> str:
        return "Access(...)"

    def accepts(self, offered: str) -> bool:
        """Return whether this is the token, in constant time."""
        return hmac.compare_digest(offered.encode(), self._secret)

    async def offer(self, offered: str, address: str) -> Answer:
        """Check a token from an address. The answer to a wrong token is delayed."""
        if self.accepts(offered):
            return Answer.RIGHT
        network = _network(address)
        if self.wait_seconds(address) > 0:
            return Answer.WAIT
        if network not in self._wrong and len(self._wrong) >= MOST_ADDRESSES:
            del self._wrong[next(iter(self._wrong))]
        self._wrong.setdefault(network, deque(maxlen=TRIES)).append(self._clock())
        await asyncio.sleep(WRONG_SECONDS)
        return Answer.WRONG

    def wait_seconds(self, address: str) -> float:
        """Return the remaining seconds of `Answer.WAIT` for an address; 0 if it may try."""
        tries = self._wrong.get(_network(address), deque())
        if len(tries) < TRIES:
            return 0.0
        return max(0.0, tries[0] + TRIES_SECONDS - self._clock())

    def begin(self) -> str:
        """Begin a session and return the cookie's value. If there are too many, the oldest ends."""
        now = self._clock()
        self._sessions = {key: end for key, end in self._sessions.items() if end > now}
        while len(self._sessions) >= MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        cookie = secrets.token_urlsafe(32)
        self._sessions[_digest(cookie)] = now + SESSION_SECONDS
        return cookie

    def knows(self, cookies: str) -> bool:
        """Return whether a Cookie header contains a current session."""
        now = self._clock()
        return any(self._sessions.get(key, 0.0) > now for key in _sessions(cookies))

    def end(self, cookies: str) -> None:
        """End the session in a Cookie header, if any."""
        for key in _sessions(cookies):
            self._sessions.pop(key, None)


def cookie_name(host: str) -> str:
    """Return the name of a server's cookie, by its Host header.

    A browser shares cookies between all ports of a machine, which may be different servers.
    """
    _, colon, port = host.rpartition(":")
    return f"{COOKIE}_{port if colon and port.isdigit() else ''}"


def _sessions(header: str) -> Iterator[bytes]:
    """Yield the digests of all sessions in a Cookie header, from any server on this machine."""
    for pair in header.split(";"):
        name, equals, value = pair.strip().partition("=")
        if equals and name.startswith(f"{COOKIE}_"):
            yield _digest(value)


def _digest(value: str) -> bytes:
    return sha256(value.encode("utf-8", "replace")).digest()


def _network(address: str) -> str:
    """Return the address, the /64 of an IPv6 address, or ``loopback`` for this machine."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 6:
        parsed = parsed.ipv4_mapped or parsed
    if parsed.is_loopback:
        return "loopback"
    if parsed.version == 4:
        return str(parsed)
    return str(ipaddress.ip_network((parsed, 64), strict=False))


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
    "referrer-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_of(header: str) -> str:
    """Parse the host of a Host header, without its port; empty if invalid."""
    header = header.strip().lower()
    if header.startswith("["):
        host, bracket, suffix = header[1:].partition("]")
        port = suffix.removeprefix(":") if suffix else "0"
    else:
        host, _, port = header.partition(":") if ":" in header else (header, "", "0")
        bracket = "]"
    is_valid = bracket and port.isascii() and port.isdigit() and not any(map(str.isspace, host))
    return host.removesuffix(".") if is_valid else ""


def may_ask_for(header: str, bound: str) -> bool:
    """Return whether a Host header names this server, not a foreign domain that resolves to it.

    A page in a browser can make any name resolve here (DNS rebinding), but not an address. A server
    bound to loopback accepts loopback addresses and localhost. Other servers accept every address,
    localhost and the machine's name.
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


def same_origin(origin: str, host: str, scheme: str) -> bool:
    """Return whether an Origin header names a page of this server, by the Host header.

    A proxy in front may speak https for us.
    """
    schemes = ("https",) if scheme in ("https", "wss") else ("https", "http")
    return origin.lower() in {f"{protocol}://{host.strip().lower()}" for protocol in schemes}


class Guard:
    """Checks the Host header before anything else, and adds security headers to every answer.

    An ASGI middleware. It sets ``scope["state"]["known"]`` if the reader may see the run.
    ``styles`` are allowed sources of style elements besides the page's own sheet. ``microphone``
    allows the page, but not embedded pages, to use the microphone. A page of another origin cannot
    open a websocket. ``scope["state"]["ours"]`` is set if a request names this origin.
    """

    def __init__(
        self,
        app: ASGIApp,
        bound: str,
        access: Access | None,
        styles: Iterable[str] = (),
        *,
        microphone: bool = False,
    ) -> None:
        self._app = app
        policy = "; ".join((*CSP, " ".join(("style-src 'self'", *styles))))
        self._headers = {
            **HEADERS, "content-security-policy": policy, "cache-control": "no-store"
        }  # fmt: skip
        if microphone:
            allowed = HEADERS["permissions-policy"].replace("microphone=()", "microphone=(self)")
            self._headers["permissions-policy"] = allowed
        self._bound = bound
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or let one websocket in."""
        if scope["type"] == "websocket":
            await (await self._checked(scope))(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                names = {name for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(
                        (name.encode(), value.encode())
                        for name, value in self._headers.items()
                        if name.encode() not in names
                    ),
                ]
            await send(message)

        app = await self._checked(scope)
        await app(scope, receive, answer)

    async def _checked(self, scope: Scope) -> ASGIApp:
        """Return the application that answers this request."""
        headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            # if a header appears twice, neither is trusted
            key = name.decode("latin-1")
            headers[key] = "" if key in headers else value.decode("latin-1")
        if not may_ask_for(headers.get("host", ""), self._bound):
            return _refusal("this server does not have that name", 421)
        ours = same_origin(headers.get("origin", ""), headers["host"], scope["scheme"])
        if scope["type"] == "websocket" and not ours:
            return _refusal("a page of another origin is not allowed to listen", 403)
        access, is_admitted = self._access, True
        if access is not None and not access.knows(headers.get("cookie", "")):
            kind, _, offered = headers.get("authorization", "").partition(" ")
            is_admitted = False
            if kind.lower() == "bearer":
                address = address_of(scope)
                answer = await access.offer(offered.strip(), address)
                if answer is Answer.WAIT:
                    return too_many_tries(access, address)
                is_admitted = answer is Answer.RIGHT
        scope.setdefault("state", {}).update(known=is_admitted, ours=ours)
        return self._app


def guarded(
    answer: Callable[[Request], Awaitable[Response]],
) -> Callable[[Request], Awaitable[Response]]:
    """Wrap a route so that only readers with the token get its answer."""

    async def checked(request: Request) -> Response:
        if request.state.known:
            return await answer(request)
        text = "missing or wrong token. Send Authorization: Bearer TOKEN"
        return _refusal(text, 401, {"www-authenticate": "Bearer"})

    return checked


def address_of(scope: Scope) -> str:
    """Return the address of a request's client."""
    client = scope.get("client")
    return client[0] if client else ""


def too_many_tries(access: Access, address: str) -> Response:
    """Make the answer to an address that has offered too many wrong tokens."""
    seconds = max(1, math.ceil(access.wait_seconds(address)))
    return _refusal("too many wrong tokens: wait a minute", 429, {"retry-after": str(seconds)})


def not_ours() -> Response:
    """Make the answer to a request from a page of another origin."""
    return _refusal("a page of another origin is not allowed to do that", 403)


def _refusal(text: str, status: int, headers: dict[str, str] | None = None) -> Response:
    from starlette.responses import PlainTextResponse

    return PlainTextResponse(f"{text}\n", status, headers)
