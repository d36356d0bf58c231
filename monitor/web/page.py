"""A sink that shows a run in browsers: a hub, and a server with limits of its own."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import errno
import hashlib
import os
import re
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import orjson
import uvicorn
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from monitor.errors import UsageError
from monitor.web.guard import (
    COOKIE,
    SESSION_SECONDS,
    Access,
    Answer,
    Guard,
    address_of,
    is_loopback,
    too_many_tries,
)
from monitor.web.hub import Hub, NumberedRecord, Wakeup

# --- The newest reading as Prometheus metrics.

CONTENT_TYPE = CONTENT_TYPE_LATEST

# metric, key of a reading, help
READING = (
    ("disclosure_bits", "bits", "Headline: evidence of the watched speaker, else closed-set"),
    ("disclosure_bits_low", "bits_low", "Lower 95 % limit of the headline"),
    ("disclosure_bits_high", "bits_high", "Upper 95 % limit of the headline"),
    ("closed_set_bits", "closed_set_bits", "Among the candidates alone, at most the ceiling"),
    ("closed_set_bits_low", "closed_set_bits_low", "Lower 95 % limit of the closed-set figure"),
    ("closed_set_bits_high", "closed_set_bits_high", "Upper 95 % limit of the closed-set figure"),
    ("evidence_bits", "evidence_bits", "Evidence that it is the watched speaker, in any crowd"),
    ("evidence_bits_low", "evidence_bits_low", "Lower 95 % limit of the evidence"),
    ("evidence_bits_high", "evidence_bits_high", "Upper 95 % limit of the evidence"),
    ("support_bits", "support_bits", "The most bits of evidence that calibration supports"),
    ("gain_bits", "gain_bits", "Attacker's confidence, assuming that the speaker is enrolled"),
    ("expected_bits", "expected_bits", "What a voice of this length discloses on average"),
    ("peak_bits", "peak_bits", "Largest headline so far"),
    ("ceiling_bits", "ceiling", "log2 of the number of candidates"),
    ("plateau_bits", "plateau", "Largest expected bits over all lengths"),
    ("enrolled_probability", "enrolled", "Probability that the speaker is enrolled at all"),
    ("stream_seconds", "seconds", "Audio heard"),
    ("speech_seconds", "speech", "Speech among it"),
    ("lag_seconds", "lag", "From speech to its reading, where it is live"),
)
PROTECTED = (
    ("protected_disclosure_bits", "bits", "The headline through the anonymiser, by attacker"),
)
FEATURE = (
    ("feature_rank", "rank", "Rank of the watched speaker, 1 the most similar"),
    ("feature_rank_bits", "rank_bits", "What the rank alone discloses"),
    ("feature_local_bits", "local_bits", "Local bits of the watched speaker"),
    ("feature_gain_bits", "gain_bits", "Attacker's confidence"),
    ("feature_expected_bits", "expected_bits", "Average disclosure at this length"),
    ("feature_usable_seconds", "usable", "What the feature could use of the audio"),
)
COUNTERS = (
    ("readings", "reading", "Readings so far"),
    ("alerts", "raised", "Alerts raised so far"),
    ("warnings", "warned", "Warnings raised so far"),
    ("gaps", "gap", "Losses of audio so far"),
    ("changes", "change", "Changes of speaker or channel so far"),
)


class _Collector:
    def __init__(self, hub: Hub, clients: int, age: float | None) -> None:
        self._hub = hub
        self._clients = clients
        self._age = age

    def collect(self) -> Iterator[Metric]:
        state = self._hub.state()
        reading: Mapping[str, Any] = state["latest"].get("reading", {})
        stream = str(reading.get("stream", 1))
        if state["people"]:  # what follows is of one voice
            yield from self._of_people(state["people"])
            reading = {}
        for name, key, text in READING if not state["people"] else ():
            yield _gauge(name, text, ("stream",), {(stream,): reading.get(key)})
        crowds = {
            (stream, f"{each['people']:g}"): each.get("bits") for each in reading.get("among") or ()
        }
        yield _gauge("among_bits", "What that means among so many", ("stream", "people"), crowds)
        attackers = (reading.get("protected") or {}).get("attackers") or {}
        for name, key, text in PROTECTED:
            values = {(stream, attacker): row.get(key) for attacker, row in attackers.items()}
            yield _gauge(name, text, ("stream", "attacker"), values)
        features = reading.get("features") or {}
        for name, key, text in FEATURE:
            values = {(stream, feature): row.get(key) for feature, row in features.items()}
            yield _gauge(name, text, ("stream", "feature"), values)
        text = "Largest local bits of the feature so far; gain bits where nobody is watched"
        yield _gauge("feature_peak_bits", text, ("stream", "feature"), state["peaks"])
        ceilings = {(stream, feature): reading.get("ceiling") for feature in features}
        text = "log2 of the number of candidates"
        yield _gauge("feature_ceiling_bits", text, ("stream", "feature"), ceilings)
        for name, key, text in COUNTERS:
            yield CounterMetricFamily(f"monitor_{name}", text, value=state["counts"].get(key, 0))
        yield CounterMetricFamily(
            "monitor_lost_seconds", "Audio lost, as far as known", value=state["lost_seconds"]
        )
        raised = {(rule,): float(on) for rule, on in state["raised"].items()}
        yield _gauge("alert_raised", "1 while the alert, or warning, is raised", ("rule",), raised)
        text = "1 while a noted change is open: the bits may be of another voice"
        yield _gauge("change_open", text, (), {(): float(reading.get("change") is not None)})
        left = {(e["field"], f"{e['threshold']:g}"): e["seconds_left"] for e in state["forecast"]}
        text = "Stream seconds until the threshold at this rate; absent where not in sight"
        yield _gauge("threshold_seconds_left", text, ("field", "threshold_bits"), left)
        yield _gauge("reading_age_seconds", "Since the newest reading", (), {(): self._age})
        yield _gauge("page_clients", "Pages that follow the run", (), {(): self._clients})
        yield _gauge("ended", "1 once the run is over", (), {(): float("end" in state["latest"])})

    @staticmethod
    def _of_people(people: Mapping[tuple[str, str], Mapping[str, Any]]) -> Iterator[Metric]:
        """Of each person, and of each who is watched where several are, the newest reading."""
        for name, key, text in READING:
            values = {place: reading.get(key) for place, reading in people.items()}
            yield _gauge(name, text, ("label", "watch"), values)


def _gauge(
    name: str,
    text: str,
    labels: tuple[str, ...],
    values: Mapping[Any, float | None],
) -> Metric:
    """A gauge without those of its samples that are withheld."""
    made = GaugeMetricFamily(f"monitor_{name}", text, labels=labels)
    for key, value in values.items():
        if value is not None:
            made.add_metric(key, value)
    return made


def exposition(hub: Hub, clients: int = 0, clock: Callable[[], float] = time.monotonic) -> bytes:
    """The text that Prometheus scrapes. It names no speaker.

    Example:
        >>> hub = Hub()
        >>> hub.write({"type": "reading", "seconds": 3.0, "speech": 2.0, "bits": 1.5})
        >>> [line for line in exposition(hub).decode().splitlines() if "_bits{" in line]
        ['monitor_disclosure_bits{stream="1"} 1.5']
    """
    registry = CollectorRegistry(auto_describe=False)
    age = None if hub.heard is None else clock() - hub.heard
    registry.register(_Collector(hub, clients, age))
    return generate_latest(registry)


# --- A run as server-sent events: every record has an id, and a reader that comes back goes on.

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
        b'id: %s-%d\nevent: record\ndata: %s,"said":%s}\n\n'
        % (hub.run.encode(), each.id, each.data[:-1], each.said)
        for each in part
    )


def state_of(hub: Hub) -> dict[str, Any]:
    """What changes without being part of any record."""
    return {"forecast": hub.state()["forecast"], "last": hub.last}


def _event(name: str, data: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), orjson.dumps(data))


# --- The plotly.js that the page draws with, and the style sheets that it brings itself.

_TEXT = re.compile(r"""\.textContent=(?:'([^'\\]*)'|"([^"\\]*)")""")


def plotly_js() -> Path:
    """The plotly.js of the installed plotly, which is not imported for it."""
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


# --- The server's routes: the page, events, readings, metrics, logging in and out.

STATIC = Path(__file__).parent / "static"
MOST_FORM_BYTES = 4096


def make_app(hub: Hub, bound: str, access: Access | None = None) -> ASGIApp:
    """The ASGI application of a page: its routes, behind a `Guard`."""
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
        several = "people" in self._hub.state()["latest"].get("start", {})
        name = "people.html" if several else "index.html"
        return FileResponse(STATIC / name, headers={"cache-control": "no-cache"})

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
        # to us, or to what stands in front of us
        https = "https" in (
            request.url.scheme, request.headers.get("x-forwarded-proto", "").lower()
        )  # fmt: skip
        response.set_cookie(
            COOKIE, self._access.begin(), max_age=SESSION_SECONDS, httponly=True,
            samesite="strict", secure=https,
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


def _see_page() -> Response:
    return Response(status_code=303, headers={"location": "/"})


def _refused() -> Response:
    text = "the token is missing or wrong: send it as Authorization: Bearer TOKEN\n"
    return PlainTextResponse(text, 401, headers={"www-authenticate": "Bearer"})


# --- Limits on the server's connections: how many, and how long one may do nothing.
#
# uvicorn limits requests, and a socket that never sends one uses up a descriptor all the same; its
# one time limit ends with the first byte of the next request.

MOST = 128
LEAST = 8
RESERVE = 64
"""Descriptors that are left to alert actions, the ledger and files."""
BACKLOG = 32
"""Connections accepted at one go, before the first of them can be refused."""
MOST_REQUEST_BYTES = 16 * 1024
REQUEST_SECONDS = 10.0
"""From the first moment of a connection, or the last answer, to a whole request."""
STALLED_SECONDS = 60.0
"""A client that takes nothing of its answer for so long is let go; a browser comes back."""


def most_connections() -> int:
    """So many that descriptors are left for everything else.

    Example:
        >>> LEAST <= most_connections() <= MOST
        True
    """
    try:
        import resource
    except ImportError:  # a system without such limits
        return MOST
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return MOST
    try:
        used = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    except OSError:
        used = RESERVE
    return min(MOST, max(LEAST, limit - used - RESERVE - BACKLOG))


def no_descriptor_left(context: dict[str, Any]) -> bool:
    """Whether a loop tells its exception handler of that; it tries again by itself in a second."""
    error = context.get("exception")
    return isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)


_TOO_LONG = b"HTTP/1.1 413 Request Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class Connections:
    """All connections of one server; when there are too many, an idle one makes room.

    So half a request, or none, never keeps anybody out: the one that has waited longest goes first,
    then the one that has not read its answer for longest. Only where all are being answered the
    newest is turned away.
    """

    def __init__(
        self,
        most: int,
        request_seconds: float = REQUEST_SECONDS,
        stalled_seconds: float = STALLED_SECONDS,
    ) -> None:
        self.most = most
        self.request_seconds = request_seconds
        self.stalled_seconds = stalled_seconds
        self.turned_away = 0
        self._all: set[_Connection] = set()
        # in the order in which they began to wait
        self._asked: dict[_Connection, asyncio.TimerHandle] = {}
        self._stalled: dict[_Connection, asyncio.TimerHandle] = {}

    def __len__(self) -> int:
        return len(self._all)

    @property
    def protocol(self) -> type[asyncio.Protocol]:
        """What uvicorn makes of every connection: ``Config(http=...)``."""
        there = self

        class Counted(_Connection):
            connections_of = there

        return Counted

    def enter(self, one: _Connection) -> bool:
        """Count a new connection; False where it must go."""
        while len(self._all) >= self.most:
            idle = next(iter(self._asked), None) or next(iter(self._stalled), None)
            if idle is None:
                self.turned_away += 1
                return False
            self._drop(idle)
        self._all.add(one)
        self.wait_for_request(one)
        return True

    def leave(self, one: _Connection) -> None:
        """It is closed."""
        self._all.discard(one)
        self.has_request(one)
        self.reads(one)

    def wait_for_request(self, one: _Connection) -> None:
        """Give it the time for one request; more bytes give no more time."""
        if one in self._all and one not in self._asked:
            self._asked[one] = one.loop.call_later(self.request_seconds, self._drop, one)

    def is_waited_for(self, one: _Connection) -> bool:
        """Whether its request has not come, or not all of it."""
        return one in self._asked

    def has_request(self, one: _Connection) -> None:
        """It has sent a whole request."""
        _cancel(self._asked.pop(one, None))

    def stalls(self, one: _Connection) -> None:
        """It does not read what it is sent."""
        if one in self._all and one not in self._stalled:
            self._stalled[one] = one.loop.call_later(self.stalled_seconds, self._drop, one)

    def reads(self, one: _Connection) -> None:
        """It reads."""
        _cancel(self._stalled.pop(one, None))

    def _drop(self, one: _Connection) -> None:
        self.leave(one)
        one.transport.abort()


class _Connection(H11Protocol):
    """One connection of uvicorn's, counted."""

    connections_of: Connections
    _heard = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if not self.connections_of.enter(self):
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.connections_of.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.connections_of.is_waited_for(self):
            self._heard += len(data)
            if self._heard > MOST_REQUEST_BYTES:  # not even looked at: nothing of it is kept
                self.transport.write(_TOO_LONG)
                self.transport.close()
                return
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.connections_of.stalls(self)

    def resume_writing(self) -> None:
        super().resume_writing()
        self.connections_of.reads(self)

    def _look(self) -> None:
        """Whether there is a whole request that is being answered."""
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete and not cycle.more_body:
            self.connections_of.has_request(self)
            self._heard = 0
        else:
            self.connections_of.wait_for_request(self)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


# --- A sink that shows a run in browsers: a hub, and a server in a thread of its own.

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
