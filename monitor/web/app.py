"""The server's routes: the page, events, readings, metrics, logging in and out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from monitor.web.access import COOKIE, SESSION_SECONDS, Access, Answer
from monitor.web.event_stream import batches, events, since_of
from monitor.web.guard import Guard, address_of, too_many_tries
from monitor.web.hub import Hub
from monitor.web.metrics import CONTENT_TYPE, exposition
from monitor.web.plotly import plotly_js, styles_of
from monitor.web.wakeup import Wakeup

__all__ = ["STATIC", "make_app"]

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
