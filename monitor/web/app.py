"""The server's routes: the page, events, readings, metrics, logging in and out."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import time
from collections.abc import AsyncIterator, Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from monitor.errors import UsageError
from monitor.web.guard import (
    COOKIE,
    SESSION_SECONDS,
    Access,
    Answer,
    Guard,
    address_of,
    too_many_tries,
)
from monitor.web.hub import Hub, NumberedRecord, Wakeup
from monitor.web.metrics import CONTENT_TYPE, exposition

__all__ = ["STATIC", "batches", "events", "hello", "make_app", "plotly_js", "since_of", "styles_of"]


# ------------------------------------------------------------------------------------ event stream
# A run as server-sent events: every record has an id, and a reader that comes back goes on.

MOST_BEHIND = 256
PAUSE_SECONDS = 0.05
HEARTBEAT_SECONDS = 10.0
RETRY_MILLISECONDS = 1000


def since_of(hub: Hub, text: str | None) -> int:
    """The number in an id (``RUN-NUMBER``, or a number); 0 where it is of another run.

    Example:
        >>> hub = Hub()
        >>> since_of(hub, f"{hub.run}-7"), since_of(hub, "00000000-7"), since_of(hub, "7")
        (7, 0, 7)
    """
    run, dash, number = (text or "").rpartition("-")
    if dash and run != hub.run:
        return 0
    return int(number) if number.isascii() and number.isdigit() and len(number) < 16 else 0


def hello(hub: Hub, guarded: bool) -> dict[str, Any]:
    """What a page needs to know before the first record; of a guarded run, that it can be left."""
    thresholds = [[each["field"], each["threshold"]] for each in hub.state()["forecast"]]
    return {
        "run": hub.run,
        "recorded": hub.recorded,
        "thresholds": thresholds,
        "guarded": guarded,
    }


async def events(
    hub: Hub,
    wakeup: Wakeup,
    since: int,
    clock: Callable[[], float] = time.monotonic,
    *,
    guarded: bool = False,
) -> AsyncIterator[bytes]:
    """The stream of one client.

    Everything kept that is newer than ``since`` comes first, all of it. From then on a client
    that takes its records more slowly than they come gets a choice of them that always ends with
    the newest: nothing is queued for it.
    """
    yield f"retry: {RETRY_MILLISECONDS}\n".encode() + _event("hello", hello(hub, guarded))
    async for part in batches(hub, since, hub.last):
        yield _records(hub, part)
        since = part[-1].id
    said: float | None = None
    while True:
        closed = hub.closed
        if part := hub.batch(since, MOST_BEHIND):
            yield _records(hub, part)
            since, said = part[-1].id, None
            await asyncio.sleep(0)
        elif said is None:
            yield _event("state", state_of(hub))
            said = clock()
            # the next ones are sent together
            await asyncio.sleep(0 if closed else PAUSE_SECONDS)
        elif closed:
            return
        elif clock() - said >= HEARTBEAT_SECONDS:
            said = None
        else:
            await wakeup.wait(HEARTBEAT_SECONDS)


async def batches(hub: Hub, since: int, last: int) -> AsyncIterator[list[NumberedRecord]]:
    """The records kept with ids after ``since`` up to ``last``, in order, a little at a time.

    Between two of them nothing is held, however slowly a client takes them.
    """
    while since < last and (part := hub.batch(since)):
        yield [each for each in part if each.id <= last] if part[-1].id > last else part
        since = part[-1].id
        await asyncio.sleep(0)


def _records(hub: Hub, part: list[NumberedRecord]) -> bytes:
    return b"".join(
        b"id: %s-%d\nevent: record\ndata: %s\n\n" % (hub.run.encode(), each.id, each.data)
        for each in part
    )


def state_of(hub: Hub) -> dict[str, Any]:
    """What changes without being part of any record."""
    return {"forecast": hub.state()["forecast"], "last": hub.last}


def _event(name: str, data: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), orjson.dumps(data))


# ------------------------------------------------------------------------------------------ plotly
# The plotly.js that the page draws with, and the style sheets that it brings itself.

_TEXT = re.compile(r"""\.textContent=(?:'([^'\\]*)'|"([^"\\]*)")""")


def plotly_js() -> Path:
    """The plotly.js of the installed plotly, which is not imported for it.

    Raises:
        UsageError: there is none.
    """
    spec = find_spec("plotly")
    path = Path(spec.origin or "").parent / "package_data" / "plotly.min.js" if spec else None
    if path is None or not path.is_file():
        raise UsageError("the page needs plotly: pip install 'speaker-disclosure-monitor[web]'")
    return path


def styles_of(script: str) -> list[str]:
    """Sources for ``style-src`` that allow the style elements of a script, and no others.

    Its rules for maps are one literal text; another element is empty and takes rules one by one.

    Examples:
        >>> styles_of("e.textContent='.a{top:0}'")[1]
        "'sha256-HKUUHr/zGJPt9XqxhVtl8Y2jTDRcFYbbXT8D5+vpwJE='"
    """
    texts = {"", *(one or other for one, other in _TEXT.findall(script) if "{" in one + other)}
    return [
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        for text in sorted(texts)
    ]


# --------------------------------------------------------------------------------------------- app
# The server's routes: the page, events, readings, metrics, logging in and out.

STATIC = Path(__file__).parent / "static"
MOST_FORM_BYTES = 4096


def make_app(hub: Hub, bound: str, access: Access | None = None) -> ASGIApp:
    """The ASGI application of a page: its routes, behind a `Guard`.

    Args:
        hub: the records to show.
        bound: the address that the server listens on.
        access: who is let in; None lets everybody in who can reach the address.
    """
    pages = _Pages(hub, access)
    plotly = plotly_js()

    async def script(_: Request) -> Response:
        return FileResponse(
            plotly, media_type="text/javascript", headers={"cache-control": "max-age=86400"}
        )

    routes: list[BaseRoute] = [
        Route("/", pages.index),
        Route("/login", pages.login, methods=["POST"]),
        Route("/logout", pages.logout, methods=["POST"]),
        Route("/events", pages.events),
        Route("/readings", pages.readings),
        Route("/metrics", pages.metrics),
        Route("/healthz", pages.healthz),
        Route("/static/plotly.min.js", script),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    styles = styles_of(plotly.read_text(encoding="utf-8"))
    return Guard(Starlette(routes=routes), bound, access, styles)


class _Pages:
    """The answers; those with data need the token."""

    def __init__(self, hub: Hub, access: Access | None) -> None:
        self._hub = hub
        self._access = access
        self._wakeup: Wakeup | None = None
        self._clients = 0

    async def index(self, request: Request) -> Response:
        if not request.state.known:
            return FileResponse(STATIC / "login.html", 401)
        return FileResponse(STATIC / "index.html", headers={"cache-control": "no-cache"})

    async def login(self, request: Request) -> Response:
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > MOST_FORM_BYTES:
                return PlainTextResponse("too long\n", 413)
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
        response.set_cookie(
            COOKIE, self._access.begin(), max_age=SESSION_SECONDS, httponly=True,
            samesite="strict", secure=_is_https(request),
        )  # fmt: skip
        return response

    async def logout(self, request: Request) -> Response:
        if self._access is not None:
            self._access.end(request.headers.get("cookie", ""))
        response = _see_page()
        response.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return response

    async def events(self, request: Request) -> Response:
        if not request.state.known:
            return _refused()
        if self._wakeup is None:
            self._wakeup = Wakeup()
            self._hub.listen(self._wakeup.wake)
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        asked = request.headers.get("last-event-id") or request.query_params.get("since")
        cookies = request.headers.get("cookie", "")
        stream = self._follow(self._wakeup, since_of(self._hub, asked), cookies)
        return StreamingResponse(stream, media_type="text/event-stream")

    async def _follow(self, wakeup: Wakeup, since: int, cookies: str) -> AsyncIterator[bytes]:
        access = self._access
        by_session = access is not None and access.knows(cookies)
        self._clients += 1
        try:
            async for chunk in events(self._hub, wakeup, since, guarded=access is not None):
                if by_session and access is not None and not access.knows(cookies):
                    return  # it was ended
                yield chunk
        finally:
            self._clients -= 1

    async def readings(self, request: Request) -> Response:
        if not request.state.known:
            return _refused()
        since = since_of(self._hub, request.query_params.get("since"))
        return StreamingResponse(self._listed(since), media_type="application/json")

    async def _listed(self, since: int) -> AsyncIterator[bytes]:
        last = self._hub.last
        yield b'{"run":"%s","last":%d,"records":[' % (self._hub.run.encode(), last)
        comma = b""
        async for part in batches(self._hub, since, last):
            yield comma + b",".join(b'{"id":%d,"record":%s}' % (e.id, e.data) for e in part)
            comma = b","
        yield b"]}"

    async def metrics(self, request: Request) -> Response:
        if not request.state.known:
            return _refused()
        return Response(
            exposition(self._hub, self._clients), headers={"content-type": CONTENT_TYPE}
        )

    async def healthz(self, _: Request) -> Response:
        return PlainTextResponse("ok\n")


def _is_https(request: Request) -> bool:
    """Whether the browser speaks https, to us or to what stands in front of us."""
    return "https" in (request.url.scheme, request.headers.get("x-forwarded-proto", "").lower())


def _see_page() -> Response:
    return Response(status_code=303, headers={"location": "/"})


def _refused() -> Response:
    text = "the token is missing or wrong: send it as Authorization: Bearer TOKEN\n"
    return PlainTextResponse(text, 401, headers={"www-authenticate": "Bearer"})
