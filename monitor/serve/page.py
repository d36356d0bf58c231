"""Server of the page of `monitor serve`: its routes, and the websocket for audio."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp
from starlette.websockets import WebSocket, WebSocketDisconnect

from monitor.errors import MonitorError, UsageError
from monitor.lazy import Managed
from monitor.serve.browser_audio import MOST_TURNS_BYTES, RefusedError, UploadHeader
from monitor.serve.downloads import DOWNLOADS
from monitor.serve.session import Message, ServeSettings, Session, choices
from monitor.serve.templates import checked_name
from monitor.web.connections import Certificate
from monitor.web.guard import Access, Guard, guarded, is_loopback, not_ours
from monitor.web.hub import Wakeup
from monitor.web.page import STATIC, LoginPage, Pages, plotly_styles, read_body, static_routes
from monitor.web.server import Server

MOST_WAITING = 64
MOST_SOUNDS = 64
"""Messages of protected sound, half a second each; the oldest are dropped and become silence."""


class Outbox:
    """Messages that wait for a browser. A newer message of a `NEWS` type replaces the last one."""

    NEWS = ("progress",)

    def __init__(self, wakeup: Wakeup) -> None:
        self._wakeup = wakeup
        self._lock = threading.Lock()
        self._waiting: deque[Message] = deque(maxlen=MOST_WAITING)
        self._sounds: deque[bytes] = deque(maxlen=MOST_SOUNDS)

    def put(self, message: Message) -> None:
        """Add a message, from any thread; never waits."""
        with self._lock:
            last: Message = self._waiting[-1] if self._waiting else {}
            if last.get("type") == message["type"] and message["type"] in self.NEWS:
                self._waiting.pop()
            self._waiting.append(message)
        self._wakeup.wake()

    def put_sound(self, sound: bytes) -> None:
        """Add protected sound, from any thread; never waits."""
        with self._lock:
            self._sounds.append(sound)
        self._wakeup.wake()

    def take_sound(self) -> bytes | None:
        """Take the oldest waiting sound, or None."""
        with self._lock:
            return self._sounds.popleft() if self._sounds else None

    def take(self) -> list[Message]:
        """Take all waiting messages."""
        with self._lock:
            messages = list(self._waiting)
            self._waiting.clear()
        return messages


MOST_SESSIONS = 8
AWAY_SECONDS = 30.0  # time in which a browser can reconnect to its session, in seconds
MOST_TEXT = 4096
TEXTS_SECOND = 20  # messages other than sound; a dragged slider sends a dozen
MESSAGES_SECOND = 200  # with sound, 50 messages in normal use, and more after a stalled connection
BURST_SECONDS = 5
LEFT, REFUSED, FULL, TAKEN = 1001, 1008, 1013, 4409
HEARTBEAT_SECONDS = 10.0
FRAGMENT = "<!-- the first minute -->"


def make_app(settings: ServeSettings, bound: str, access: Access) -> tuple[ASGIApp, Sessions]:
    """Make the ASGI application of `monitor serve`, behind a `Guard`, and its sessions."""
    sessions = Sessions(settings, access)
    routes: list[BaseRoute] = [
        Route("/", index),
        WebSocketRoute("/microphone", sessions.microphone),
        Route("/events", guarded(sessions.events)),
        Route("/download/{name}", guarded(sessions.download)),
        Route("/people", guarded(sessions.people)),
        Route("/anonymisers", guarded(anonymisers)),
        Route("/forget", guarded(sessions.forget), methods=["POST"]),
        *LoginPage(access).routes,
        *static_routes(),
    ]
    app = Starlette(routes=routes)
    return Guard(app, bound, access, plotly_styles(), microphone=True), sessions


async def anonymisers(_: Request) -> Response:
    """List the available anonymisers."""
    return JSONResponse(await asyncio.to_thread(choices))


async def index(request: Request) -> Response:
    """Send the page of a live run, with the parts for enrolment and the microphone before it."""
    if not request.state.known:
        return FileResponse(STATIC / "login.html")
    page = (STATIC / "index.html").read_text("utf-8")
    first = (STATIC / "serve.html").read_text("utf-8")
    people = (STATIC / "people.html").read_text("utf-8")
    everybody = people.partition('<main id="main">')[2].partition("</main>")[0]
    first += f'<div id="everybody">{everybody}</div>'
    page = page.replace(FRAGMENT, first).replace("/static/app.js", "/static/serve.js")
    page = page.replace("<body>", '<body data-serve="yes" data-stage="welcome">')
    return HTMLResponse(page, headers={"cache-control": "no-cache"})


class RateLimiter:
    """Rate limit per second, with a burst of `BURST_SECONDS`."""

    def __init__(self, rate: float) -> None:
        self._rate, self._left, self._at = rate, rate * BURST_SECONDS, time.monotonic()

    def take(self) -> bool:
        """Return whether one more is allowed now."""
        now = time.monotonic()
        earned = (now - self._at) * self._rate
        self._left, self._at = min(self._left + earned, self._rate * BURST_SECONDS) - 1, now
        return self._left >= 0


class Sessions:
    """All sessions of a server. A browser returns to its session with an unguessable id."""

    def __init__(self, settings: ServeSettings, access: Access) -> None:
        self._settings = settings
        self._access = access
        self._all: dict[str, _BrowserSlot] = {}

    def __len__(self) -> int:
        return len(self._all)

    @property
    def attached(self) -> int:
        """Number of connected browsers."""
        return sum(slot.attached for slot in self._all.values())

    @property
    def busy(self) -> int:
        """Number of sessions that listen to a microphone."""
        return sum(slot.session.busy for slot in self._all.values())

    def close(self) -> None:
        """End all sessions, and wait until they have ended."""
        for slot in list(self._all.values()):
            slot.session.close()

    async def people(self, request: Request) -> Response:
        """List the enrolled people; with ``?new=NAME`` refuse a name that cannot be enrolled."""
        templates = self._settings.templates
        try:
            if (name := request.query_params.get("new")) is not None:
                await asyncio.to_thread(templates.check_new, name)
        except MonitorError as error:
            return PlainTextResponse(f"{error}\n", 400)
        people = await asyncio.to_thread(templates.people)
        return JSONResponse(
            [{"name": person.name, "enrolled": person.enrolled.isoformat()} for person in people]
        )

    async def forget(self, request: Request) -> Response:
        """Remove a person's template."""
        if not request.state.ours:
            return not_ours()
        body = await read_body(request)
        try:
            name = checked_name(_parse_object(body.decode("utf-8", "replace")).get("name"))
            for slot in list(self._all.values()):
                if slot.session.busy and slot.session.name == name:
                    if slot.attached:
                        raise UsageError(f"another page is measuring {name}: end that first")
                    self._end(slot)  # its browser may never come back
                    await asyncio.to_thread(slot.session.close)
            await asyncio.to_thread(self._settings.templates.forget, name)
        except MonitorError as error:
            return PlainTextResponse(f"{error}\n", 400)
        return JSONResponse({"forgotten": name})

    async def events(self, request: Request) -> Response:
        """Stream the records of a session's run, as `Pages.events` does."""
        slot = self._all.get(request.query_params.get("session", ""))
        if slot is None or slot.session.hub is None:
            return PlainTextResponse("there is no such session\n", 404)
        if slot.pages is None or slot.pages.hub is not slot.session.hub:
            slot.pages = Pages(slot.session.hub, self._access)
        return await slot.pages.events(request)

    async def download(self, request: Request) -> Response:
        """Send a session's run so far: its records, a picture or a report."""
        slot = self._all.get(request.query_params.get("session", ""))
        run = None if slot is None else slot.session.kept
        name = request.path_params["name"]
        if run is None or name not in DOWNLOADS:
            return PlainTextResponse("there is no such run\n", 404)
        media, make = DOWNLOADS[name]
        if request.method == "HEAD":
            return Response(media_type=media)
        try:
            pieces = await asyncio.to_thread(make, run)
        except MonitorError as error:
            return PlainTextResponse(f"{error}\n", 409)
        saved = {"content-disposition": f'attachment; filename="{name}"'}
        return StreamingResponse(pieces, media_type=media, headers=saved)

    async def microphone(self, websocket: WebSocket) -> None:
        """Serve the websocket of one browser, with its audio and requests, until it closes."""
        if not websocket.state.known:
            await websocket.close()  # before accepting it, which answers 403
            return
        await websocket.accept()
        slot = self._all.get(websocket.query_params.get("session", ""))
        if slot is None:
            if not self._has_room():
                await websocket.close(FULL, "too many people use this page now")
                return
            slot = _BrowserSlot(self._settings)
            self._all[slot.session.id] = slot
        elif slot.attached:
            await websocket.close(TAKEN, "this session has a microphone already")
            return
        slot.attach()
        sender = asyncio.create_task(self._send(websocket, slot))
        refusal, code = "", 0
        try:
            code = await self._receive(websocket, slot)
        except RefusedError as error:
            refusal = str(error)
            slot.session.stop(cancel=True)
        finally:
            sender.cancel()  # it must not send after the close, nor fail silently
            await asyncio.gather(sender, return_exceptions=True)
            slot.session.drop_upload()
            slot.detach(0.0 if code == LEFT else AWAY_SECONDS, self._end)
        if refusal:
            with suppress(RuntimeError):  # the browser has gone
                await websocket.close(REFUSED, refusal)

    def _has_room(self) -> bool:
        """Return whether a session may begin; if full, end one without a browser, idle first."""
        if len(self._all) < MOST_SESSIONS:
            return True
        departed = [slot for slot in self._all.values() if not slot.attached]
        if departed:
            self._end(min(departed, key=lambda slot: (slot.session.busy, slot.left)))
        return bool(departed)

    def _end(self, slot: _BrowserSlot) -> None:
        slot.session.stop(cancel=True)  # the speaker has left, so no template can be stored
        self._all.pop(slot.session.id, None)

    async def _send(self, websocket: WebSocket, slot: _BrowserSlot) -> None:
        settings = self._settings
        ready = {
            "type": "ready",
            "session": slot.session.id,
            "busy": slot.session.busy,
            "wanted": settings.enrol_seconds,
            "longest": settings.longest_seconds,
            "house": settings.house is not None,
        }
        with suppress(WebSocketDisconnect):  # `_receive` notices it, too
            await websocket.send_json(ready)
            while True:
                for message in slot.outbox.take():
                    await websocket.send_json(message)
                if (sound := slot.outbox.take_sound()) is not None:
                    await websocket.send_bytes(sound)
                    continue
                await slot.wakeup.wait(HEARTBEAT_SECONDS)

    async def _receive(self, websocket: WebSocket, slot: _BrowserSlot) -> int:
        """Process messages until the browser goes; return the code of its close."""
        texts, messages = RateLimiter(TEXTS_SECOND), RateLimiter(MESSAGES_SECOND)
        cookies = websocket.headers.get("cookie", "")
        by_cookie = self._access.knows(cookies)
        while (message := await websocket.receive())["type"] == "websocket.receive":
            if by_cookie and not self._access.knows(cookies):
                raise RefusedError("you have logged out")
            if not messages.take():
                raise RefusedError("too many messages")
            if (sound := message.get("bytes")) is not None:
                slot.session.receive_audio(sound)
                continue
            if not texts.take():
                raise RefusedError("too many messages")
            text = message.get("text") or ""
            if len(text) > MOST_TEXT:
                raise RefusedError("a message is too long")
            wish = _parse_object(text)
            try:
                self._do(slot.session, wish)
            except RefusedError:
                raise
            except MonitorError as error:
                slot.outbox.put({"type": "error", "text": str(error)})
        return int(message.get("code") or 0)

    @staticmethod
    def _do(session: Session, wish: Mapping[str, object]) -> None:
        doing = wish.get("do")
        if doing == "enrol":
            replace = wish.get("replace") is True
            session.enrol(wish.get("name"), int(_number(wish, "rate")), replace=replace)
        elif doing == "listen":
            rate, bits = int(_number(wish, "rate")), _number(wish, "threshold")
            session.listen(wish.get("name"), rate, bits, wish.get("protect"))
        elif doing == "measure":
            recording = UploadHeader.parse(wish, "recording")
            turns = UploadHeader.parse(wish, "turns", MOST_TURNS_BYTES)
            if recording is None:
                raise UsageError("a recording needs a name and a size")
            session.measure(wish.get("name"), recording, turns, _number(wish, "threshold"))
        elif doing == "threshold":
            session.adjust(_number(wish, "bits"))
        elif doing == "house":
            session.show_in_house(wish.get("show") is True)
        elif doing in ("stop", "cancel"):
            session.stop(cancel=doing == "cancel")
        else:
            raise RefusedError("unknown request")


class _BrowserSlot:
    """A session, the messages for its browser, and whether the browser is connected."""

    def __init__(self, settings: ServeSettings) -> None:
        self.wakeup = Wakeup()
        self.outbox = Outbox(self.wakeup)
        self.session = Session(settings, self.outbox.put, self.outbox.put_sound)
        self.pages: Pages | None = None
        self.attached, self.left = False, 0.0
        self._leaving: asyncio.TimerHandle | None = None

    def attach(self) -> None:
        self.attached = True
        if self._leaving is not None:
            self._leaving.cancel()

    def detach(self, seconds: float, then: Callable[[_BrowserSlot], None]) -> None:
        """Record that the browser has left; call ``then`` if it does not return in time."""
        self.attached, self.left = False, time.monotonic()
        self._leaving = asyncio.get_running_loop().call_later(seconds, then, self)


def _parse_object(text: str) -> dict[str, object]:
    """Parse a JSON object, or raise RefusedError."""
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        raise RefusedError("a message must be a JSON object")
    return message


def _number(wish: Mapping[str, object], key: str) -> float:
    value = wish.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e9:
        raise RefusedError(f"{key} must be a number")
    return float(value)


class ListeningPage(Managed):
    """Server of the page of `monitor serve`."""

    def __init__(
        self,
        settings: ServeSettings,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        token: str,
        certificate: Certificate | None = None,
    ) -> None:
        if certificate is None and not is_loopback(host):
            raise UsageError(
                f"browsers do not allow a microphone on {host} without https: use --certificate "
                "and --key, or use 127.0.0.1"
            )
        app, self.sessions = make_app(settings, host, Access(token))
        self._server = Server(app, host, port, certificate=certificate, websockets=True)
        self.url, self.port = self._server.url, self._server.port
        self.connections = self._server.connections

    def close(self) -> None:
        """End all sessions, then stop."""
        self.sessions.close()
        self._server.close()
