"""Access control of the page: its token, the browsers' sessions, and limits on guessing."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import secrets
import time
from collections import deque
from collections.abc import Callable
from enum import Enum
from hashlib import sha256

from monitor.errors import UsageError

__all__ = ["COOKIE", "SESSION_SECONDS", "Access", "Answer"]

COOKIE = "monitor_page"
LEAST_CHARACTERS = 12
WRONG_SECONDS = 0.5
"""A wrong token is answered so much later, whichever way it came."""
TRIES = 10
TRIES_SECONDS = 60.0
ALL_TRIES = 100
"""Wrong tokens in `TRIES_SECONDS` from all addresses together; then each waits for its turn."""
MOST_IN_LINE = 32
MOST_ADDRESSES = 1024
SESSION_SECONDS = 7 * 24 * 3600
MOST_SESSIONS = 64


class Answer(Enum):
    """To a token that was offered."""

    RIGHT = "right"
    WRONG = "wrong"
    WAIT = "wait"
    """Too many wrong ones came, from that address or at once: this one was not looked at."""


class Access:
    """What lets readers in. The token is never written anywhere, nor shown in an error.

    A browser exchanges it once for a session, a random number in a cookie that says nothing of the
    token and can be ended. An address may offer `TRIES` wrong tokens in `TRIES_SECONDS`. After
    `ALL_TRIES` from all of them, tokens are looked at one by one, each `WRONG_SECONDS` after the
    other, so that many addresses guess no faster, and who has the token comes in a little later.
    Sessions that exist, and addresses that a right token has come from, do not stand in that line.

    Args:
        secret: the token.
        clock: monotonic seconds.

    Raises:
        UsageError: it is too short.

    Example:
        >>> access = Access("correct horse battery")
        >>> cookie = access.begin()
        >>> access.knows(f"{COOKIE}={cookie}"), access.knows(f"{COOKIE}=somebody")
        (True, False)
    """

    def __init__(self, secret: str, clock: Callable[[], float] = time.monotonic) -> None:
        if len(secret) < LEAST_CHARACTERS or not secret.isprintable():
            raise UsageError(
                f"the web token must have {LEAST_CHARACTERS} printable characters or more; "
                "`openssl rand -hex 16` makes one"
            )
        self._secret = secret.encode()
        self._clock = clock
        self._sessions: dict[bytes, float] = {}  # digest of the cookie: when it ends
        self._wrong: dict[str, deque[float]] = {}
        self._all_wrong: deque[float] = deque(maxlen=ALL_TRIES)
        self._welcome: dict[str, None] = {}  # that a right token has come from, newest last
        self._turn = asyncio.Lock()  # in the order in which it was asked for
        self._in_line = 0

    def __repr__(self) -> str:
        return "Access(...)"

    def fits(self, offered: str) -> bool:
        """Whether this is the token; takes as long for any answer."""
        return hmac.compare_digest(offered.encode(), self._secret)

    async def offer(self, offered: str, address: str) -> Answer:
        """Look at a token that came from an address; a wrong one is answered late."""
        place = _network(address)
        if self.wait_seconds(address) > 0 or not await self._may_pass(place):
            return Answer.WAIT
        if self.fits(offered):
            self._welcome.pop(place, None)
            self._welcome[place] = None
            if len(self._welcome) > MOST_SESSIONS:
                del self._welcome[next(iter(self._welcome))]
            return Answer.RIGHT
        self._all_wrong.append(self._clock())
        if place not in self._wrong and len(self._wrong) >= MOST_ADDRESSES:
            del self._wrong[next(iter(self._wrong))]
        self._wrong.setdefault(place, deque(maxlen=TRIES)).append(self._clock())
        await asyncio.sleep(WRONG_SECONDS)
        return Answer.WRONG

    async def _may_pass(self, place: str) -> bool:
        """Wait for a turn where many guess; False where too many wait already."""
        if place in self._welcome or not self._left(self._all_wrong):
            return True
        if self._in_line >= MOST_IN_LINE:
            return False
        self._in_line += 1
        try:
            async with self._turn:
                await asyncio.sleep(WRONG_SECONDS)
        finally:
            self._in_line -= 1
        return self._left(self._wrong.get(place)) == 0  # it may have guessed on meanwhile

    def wait_seconds(self, address: str) -> float:
        """How long until a token from that address is looked at again; 0 where it is at once."""
        return self._left(self._wrong.get(_network(address)))

    def _left(self, tries: deque[float] | None) -> float:
        """Seconds until one more may be made after so many wrong ones as are remembered."""
        if tries is None or len(tries) < (tries.maxlen or 0):
            return 0.0
        return max(0.0, tries[0] + TRIES_SECONDS - self._clock())

    def begin(self) -> str:
        """Begin a session: the cookie's value. Of too many the oldest one ends."""
        now = self._clock()
        self._sessions = {key: end for key, end in self._sessions.items() if end > now}
        while len(self._sessions) >= MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        made = secrets.token_urlsafe(32)
        self._sessions[_digest(made)] = now + SESSION_SECONDS
        return made

    def knows(self, cookies: str) -> bool:
        """Whether a Cookie header holds a session that has not ended."""
        value = _cookie(cookies)
        return value is not None and self._sessions.get(_digest(value), 0.0) > self._clock()

    def end(self, cookies: str) -> None:
        """End the session of a Cookie header, if it holds one."""
        value = _cookie(cookies)
        if value is not None:
            self._sessions.pop(_digest(value), None)


def _cookie(header: str) -> str | None:
    """The one cookie, by its name; in one pass, whatever else the header holds."""
    for part in header.split(";"):
        name, equals, value = part.strip().partition("=")
        if equals and name == COOKIE:
            return value
    return None


def _digest(value: str) -> bytes:
    return sha256(value.encode("utf-8", "replace")).digest()


def _network(address: str) -> str:
    """The address, or the /64 that a whole site has of IPv6; this machine is one, all its /8."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return address
    if known.version == 6:
        known = known.ipv4_mapped or known
    if known.is_loopback:
        return "loopback"
    if known.version == 4:
        return str(known)
    return str(ipaddress.ip_network((known, 64), strict=False))
