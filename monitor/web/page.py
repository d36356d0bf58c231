"""A sink that shows a run in browsers, with a hub and a server, as server-sent events."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import parse_qs

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    JSONResponse,
    PlainTextResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from monitor.errors import UsageError
from monitor.events import phrases
from monitor.events.declaration import Event
from monitor.lazy import Managed
from monitor.phrases import IMPOSTOR
from monitor.protocols import MUTED, RelayControl
from monitor.web.guard import (
    SESSION_SECONDS,
    Access,
    Answer,
    Guard,
    address_of,
    cookie_name,
    guarded,
    is_loopback,
    not_ours,
    too_many_tries,
)
from monitor.web.hub import Hub, NumberedRecord, Wakeup
from monitor.web.metrics import CONTENT_TYPE, exposition
from monitor.web.server import Server

_TEXT = re.compile(r"""\.textContent=(?:'([^'\\]*)'|"([^"\\]*)")""")
MOST_FORM_BYTES = 4096
MOST_BEHIND = 256
PAUSE_SECONDS = 0.05
HEARTBEAT_SECONDS = 10.0
RETRY_MILLISECONDS = 1000
STATIC = Path(__file__).parent / "static"


def plotly_js() -> Path:
    """Find the plotly.js of the installed plotly without importing it."""
    spec = find_spec("plotly")
    path = Path(spec.origin or "").parent / "package_data" / "plotly.min.js" if spec else None
    if path is None or not path.is_file():
        raise UsageError("the page needs plotly: pip install 'speaker-disclosure-monitor[web]'")
    return path


def styles_of(script: str) -> list[str]:
    """List sources for ``style-src`` that allow the style elements of a script, and no others.

    plotly's rules for maps are one literal text. Its other element starts empty, and its rules are
    added one by one.

    Examples:
        >>> styles_of("e.textContent='.a{top:0}'")[1]
        "'sha256-HKUUHr/zGJPt9XqxhVtl8Y2jTDRcFYbbXT8D5+vpwJE='"
    """
    texts = {"", *(a or b for a, b in _TEXT.findall(script) if "{" in a + b)}
    return [
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        for text in sorted(texts)
    ]


def make_app(
    hub: Hub, bound: str, access: Access | None = None, further: Sequence[BaseRoute] = ()
) -> ASGIApp:
    """Make the ASGI application of a page, with ``further`` routes, behind a `Guard`."""
    pages = Pages(hub, access)
    routes: list[BaseRoute] = [
        Route("/", pages.index),
        Route("/events", guarded(pages.events)),
        Route("/readings", guarded(pages.readings)),
        Route("/metrics", guarded(pages.metrics)),
        *further,
        *LoginPage(access).routes,
        *static_routes(),
    ]
    return Guard(Starlette(routes=routes), bound, access, plotly_styles())


async def read_body(request: Request) -> bytes:
    """Read the body of a request, of at most `MOST_FORM_BYTES`."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_FORM_BYTES:
            raise HTTPException(413, "too long\n")
    return bytes(body)


def static_routes() -> list[BaseRoute]:
    """Make the routes of the page's own files and of plotly's script."""
    plotly = plotly_js()

    async def script(_: Request) -> Response:
        return FileResponse(
            plotly, media_type="text/javascript", headers={"cache-control": "max-age=86400"}
        )

    return [Route("/static/plotly.min.js", script), Mount("/static", StaticFiles(directory=STATIC))]


def plotly_styles() -> list[str]:
    """List sources for ``style-src`` of plotly's style elements."""
    return styles_of(plotly_js().read_text(encoding="utf-8"))


class LoginPage:
    """Routes shared by all pages: login, logout and a health check."""

    def __init__(self, access: Access | None) -> None:
        self._access = access

    @property
    def routes(self) -> list[BaseRoute]:
        """The routes."""
        return [
            Route("/login", self.login, methods=["POST"]),
            Route("/logout", self.logout, methods=["POST"]),
            Route("/healthz", self.healthz),
        ]

    async def login(self, request: Request) -> Response:
        """Begin a session if the token is right."""
        body = await read_body(request)
        try:
            offered = parse_qs(body.decode(), max_num_fields=4).get("token", [""])[0]
        except ValueError:
            offered = ""
        if self._access is None:
            return _see_page()
        address = address_of(request.scope)
        answer = await self._access.offer(offered, address)
        if answer is Answer.WAIT:
            return too_many_tries(self._access, address)
        if answer is Answer.WRONG:
            return FileResponse(STATIC / "login.html", 401, headers={"x-monitor": "wrong token"})
        response = _see_page()
        # either to this server or to a proxy in front of it
        https = "https" in (
            request.url.scheme, request.headers.get("x-forwarded-proto", "").lower()
        )  # fmt: skip
        response.set_cookie(
            cookie_name(request.headers["host"]), self._access.begin(), max_age=SESSION_SECONDS,
            httponly=True, samesite="strict", secure=https,
        )  # fmt: skip
        return response

    async def logout(self, request: Request) -> Response:
        """End a session."""
        if not request.state.ours:
            return not_ours()
        if self._access is not None:
            self._access.end(request.headers.get("cookie", ""))
        response = _see_page()
        response.delete_cookie(
            cookie_name(request.headers["host"]), httponly=True, samesite="strict"
        )
        return response

    async def healthz(self, _: Request) -> Response:
        """Answer that the server is alive."""
        return PlainTextResponse("ok\n")


class Pages:
    """The page of one run and its records. Routes with data need the token."""

    def __init__(self, hub: Hub, access: Access | None) -> None:
        self.hub = hub
        self._access = access
        self._wakeup: Wakeup | None = None
        self._clients = 0

    async def index(self, request: Request) -> Response:
        """Send the page, or the login form."""
        if not request.state.known:
            return FileResponse(STATIC / "login.html")
        start = self.hub.state().start
        several = start is not None and start.people is not None
        name = "people.html" if several else "index.html"
        return FileResponse(STATIC / name, headers={"cache-control": "no-cache"})

    async def events(self, request: Request) -> Response:
        """Stream the records as they arrive."""
        if self._wakeup is None:
            self._wakeup = Wakeup()
            self.hub.subscribe(self._wakeup.wake)
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        last_id = request.headers.get("last-event-id") or request.query_params.get("since")
        cookies = request.headers.get("cookie", "")
        stream = self._follow(self._wakeup, since_of(self.hub, last_id), cookies)
        return StreamingResponse(stream, media_type="text/event-stream")

    async def _follow(self, wakeup: Wakeup, since: int, cookies: str) -> AsyncIterator[bytes]:
        access = self._access
        by_session = access is not None and access.knows(cookies)
        self._clients += 1
        try:
            async for chunk in events(self.hub, wakeup, since, guarded=access is not None):
                if by_session and access is not None and not access.knows(cookies):
                    return  # the session was ended
                yield chunk
        finally:
            self._clients -= 1

    async def readings(self, request: Request) -> Response:
        """Send the records so far, as JSON."""
        since = since_of(self.hub, request.query_params.get("since"))
        return StreamingResponse(self._listed(since), media_type="application/json")

    async def _listed(self, since: int) -> AsyncIterator[bytes]:
        last = self.hub.last
        yield b'{"run":"%s","last":%d,"records":[' % (self.hub.run.encode(), last)
        comma = b""
        async for batch in batches(self.hub, since, last):
            yield comma + b",".join(b'{"id":%d,"record":%s}' % (e.id, e.data) for e in batch)
            comma = b","
        yield b"]}"

    async def metrics(self, _: Request) -> Response:
        """Send the newest figures for Prometheus."""
        return Response(exposition(self.hub, self._clients), headers={"content-type": CONTENT_TYPE})


def _see_page() -> Response:
    return Response(status_code=303, headers={"location": "/"})


class Page(Managed):
    """Serves a run to any number of browsers while it is written.

    ``write`` only stores the event and wakes the server's thread, so that no client can delay the
    run. After ``close`` the clients get the remaining records, for at most two seconds.

    Raises:
        UsageError: the address is not available, or other machines can reach it without a token.
    """

    def __init__(
        self,
        # an address of this machine; only loopback addresses work without a token
        host: str = "127.0.0.1",
        port: int = 0,  # 0 chooses a free port
        *,
        token: str | None = None,  # secret that readers need; it is never written anywhere
        # fields and bits for which to forecast the time left
        thresholds: Sequence[tuple[str, float]] = (),
        recorded: bool = False,  # whether the run is over and was read from a file
        relay: RelayControl | None = None,  # relay to show and to mute
        # token of ``/overlay?token=``, which shows only the newest number and its state; None
        # disables it
        overlay_token: str | None = None,
    ) -> None:
        if token is None and not is_loopback(host):
            raise UsageError(
                f"anyone who reaches {host} could follow the run: set MONITOR_WEB_TOKEN, or "
                "use 127.0.0.1"
            )
        self.hub = Hub(thresholds, recorded=recorded)
        self.hub.relayed = relay is not None
        further = [] if relay is None else relay_routes(relay)
        if overlay_token is not None:
            further += overlay_routes(self.hub, overlay_token, relay)
        app = make_app(self.hub, host, None if token is None else Access(token), further)
        self._server = Server(app, host, port)
        self.port, self.url = self._server.port, self._server.url
        self.connections = self._server.connections

    def write(self, event: Event) -> None:
        """Take one event."""
        self.hub.write(event)

    def close(self) -> None:
        """Send the last records to the clients, then stop."""
        self.hub.close()
        self._server.close()  # streams end once they have sent everything


def since_of(hub: Hub, text: str | None) -> int:
    """Return the number in an id (``RUN-NUMBER``, or a number); 0 for another run.

    Example:
        >>> hub = Hub()
        >>> since_of(hub, f"{hub.run}-7"), since_of(hub, "00000000-7"), since_of(hub, "7")
        (7, 0, 7)
    """
    run, dash, number = (text or "").rpartition("-")
    if dash and run != hub.run:
        return 0
    return int(number) if number.isascii() and number.isdigit() and len(number) < 16 else 0


def hello(hub: Hub, guarded: bool) -> dict[str, object]:
    """Return the page's initial data, including whether the reader can log out."""
    thresholds = [[f.field, f.threshold] for f in hub.state().forecast]
    return {
        "run": hub.run,
        "recorded": hub.recorded,
        "thresholds": thresholds,
        "guarded": guarded,
        "relayed": hub.relayed,
    }


async def events(
    hub: Hub,
    wakeup: Wakeup,
    since: int,
    clock: Callable[[], float] = time.monotonic,
    *,
    guarded: bool = False,
) -> AsyncIterator[bytes]:
    """Yield the stream of one client.

    All stored records after ``since`` come first. A client that reads more slowly than records
    arrive then gets a selection that always ends with the newest. Nothing is queued for it.
    """
    yield f"retry: {RETRY_MILLISECONDS}\n".encode() + _event("hello", hello(hub, guarded))
    async for batch in batches(hub, since, hub.last):
        yield _records(hub, batch)
        since = batch[-1].id
    state_time: float | None = None
    while True:
        closed = hub.closed
        if batch := hub.batch(since, MOST_BEHIND):
            yield _records(hub, batch)
            since, state_time = batch[-1].id, None
            await asyncio.sleep(0)
        elif state_time is None:
            yield _event("state", state_of(hub))
            state_time = clock()
            # records that arrive meanwhile are sent together
            await asyncio.sleep(0 if closed else PAUSE_SECONDS)
        elif closed:
            return
        elif clock() - state_time >= HEARTBEAT_SECONDS:
            state_time = None
        else:
            await wakeup.wait(HEARTBEAT_SECONDS)


async def batches(hub: Hub, since: int, last: int) -> AsyncIterator[list[NumberedRecord]]:
    """Yield the records with ids after ``since`` up to ``last``, in order, in batches.

    No lock or memory is held between two batches, even for a slow client.
    """
    while since < last and (batch := hub.batch(since)):
        yield [entry for entry in batch if entry.id <= last] if batch[-1].id > last else batch
        since = batch[-1].id
        await asyncio.sleep(0)


def _records(hub: Hub, batch: list[NumberedRecord]) -> bytes:
    return b"".join(
        b'id: %s-%d\nevent: record\ndata: %s,"said":%s}\n\n'
        % (hub.run.encode(), entry.id, entry.data[:-1], entry.words)
        for entry in batch
    )


def state_of(hub: Hub) -> dict[str, object]:
    """Return the changing state that is not part of any record."""
    return {
        "forecast": [time_left._asdict() for time_left in hub.state().forecast],
        "last": hub.last,
    }


def _event(name: str, data: Mapping[str, object]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), orjson.dumps(data))


def relay_routes(relay: RelayControl) -> list[BaseRoute]:
    """Return the route of the mute switch. GET reports the relay's state, POST mutes or unmutes."""

    async def answer(request: Request) -> Response:
        if request.method == "POST":
            if not request.state.ours:
                return not_ours()
            relay.muted = request.query_params.get("muted") != "no"
        bits = ("budget_bits", "left_bits", "sent_bits", "kept_bits", "held_bits")
        return JSONResponse({name: getattr(relay, name) for name in ("way", "muted", *bits)})

    return [Route("/relay", guarded(answer), methods=["GET", "POST"])]


def overlay_routes(hub: Hub, token: str, relay: RelayControl | None) -> list[BaseRoute]:
    """Return the routes that show OBS the newest bits and their state, with their own token."""
    access = Access(token)

    async def refuse(request: Request) -> Response | None:
        address = address_of(request.scope)
        answer = await access.offer(request.query_params.get("token", ""), address)
        if answer is Answer.WAIT:
            return too_many_tries(access, address)
        if answer is Answer.WRONG:
            return PlainTextResponse("the overlay needs its own token: ?token=...\n", 401)
        return None

    async def view(request: Request) -> Response:
        return await refuse(request) or FileResponse(STATIC / "overlay.html")

    async def number(request: Request) -> Response:
        reading = hub.state().reading
        state, words = _overlay(hub, relay)
        shown = {"bits": reading and reading.bits, "state": state, "words": words}
        return await refuse(request) or JSONResponse(shown)

    return [Route("/overlay", view), Route("/overlay/bits", number)]


def _overlay(hub: Hub, relay: RelayControl | None) -> tuple[str, str]:
    now = hub.state()
    reading = now.reading
    if relay is not None and relay.way == MUTED:
        return "muted", "Muted"
    if reading is None:
        return "waiting", "Waiting"
    if reading.change is not None:
        return "doubt", phrases.voice_since(reading.change).capitalize()
    if reading.is_impostor:
        return "doubt", IMPOSTOR.capitalize()
    if reading.bits is None:
        return "waiting", "No figure yet"
    words = phrases.bits_or_more(reading, f"{phrases.number(reading.bits)} bits").capitalize()
    if "end" in now.counts:
        return "ended", f"{words}, ended"
    raised = any(on for rule, on in now.raised.items() if rule not in now.quiet)
    return ("alert", f"{words}, alert") if raised else ("calm", words)
