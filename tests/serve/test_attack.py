"""The page that listens under attack: what no page of ours sends is refused, and all is bounded."""

from __future__ import annotations

import asyncio
import gc
import json
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import httpx
import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from monitor.errors import UsageError
from monitor.serve.page import MOST_SESSIONS, MOST_WAITING, ListeningPage, Outbox
from monitor.serve.session import ServeSettings
from monitor.serve.templates import TemplateFolder
from monitor.web.connections import Certificate
from monitor.web.hub import Wakeup
from monitor.web.server import MOST_MESSAGE_BYTES
from tests.serve.conftest import ENROL_SECONDS, RATE, TOKEN, cookie_of, frames, told
from tests.waiting import until
from tests.web.crowd import crowd
from tests.web.test_attack import gone

REFUSED, TOO_LARGE, FULL, TAKEN = 1008, 1009, 1013, 4409
ENROL = json.dumps({"do": "enrol", "name": "Ann", "rate": RATE})


def ended(line: Any) -> int:
    """The code by which the server ends a websocket."""

    def read_on() -> None:
        while True:
            line.recv(timeout=60)

    with pytest.raises(ConnectionClosed) as closing:
        read_on()
    assert closing.value.rcvd is not None
    return int(closing.value.rcvd.code)


def enrolling(line: Any) -> Any:
    """A websocket that enrols Ann, and has begun to."""
    opened = line()
    opened.send(ENROL)
    for frame in frames(np.zeros(RATE)):
        opened.send(frame)
    told(opened, "progress")
    return opened


# --- Who is let in.


@pytest.mark.parametrize(
    "origin", [None, "null", "http://evil.example", "http://localhost:1", "http://127.0.0.1"]
)
def test_a_page_of_another_site_does_not_reach_the_microphone(line, origin):
    with pytest.raises(InvalidStatus) as refused:
        line(origin=origin)
    assert refused.value.response.status_code == 403


def test_another_name_for_this_machine_does_not_either(served, client):
    cookie = cookie_of(client)
    name = f"rebound.example:{served.port}"
    way = socket.create_connection(("127.0.0.1", served.port))
    with way, pytest.raises(InvalidStatus) as refused:
        connect(f"ws://{name}/microphone", sock=way, origin=Origin(f"http://{name}"),
                additional_headers=cookie)  # fmt: skip
    assert refused.value.response.status_code == 421


def test_who_has_no_token_gets_nothing(served, line):
    for cookie in ("", "monitor_page_1=guess"):
        with pytest.raises(InvalidStatus) as refused:
            line(headers={"Cookie": cookie})
        assert refused.value.response.status_code == 403
    for path in ("people", "events?session=x"):
        assert httpx.get(served.url + path).status_code == 401
    assert httpx.post(served.url + "forget", json={"name": "Ann"}).status_code == 401
    assert len(served.sessions) == 0


def test_a_page_of_another_site_makes_nobody_forgotten(client):
    for origin in ({}, {"origin": "http://evil.example"}):
        assert client.post("/forget", json={"name": "Ann"}, headers=origin).status_code == 403


def test_who_logs_out_is_not_listened_to(served, line, client):
    opened = enrolling(line)
    ours = {"origin": served.url.rstrip("/")}
    assert client.post("/logout", headers=ours).status_code == 303
    opened.send(next(frames(np.zeros(320), RATE)))
    assert ended(opened) == REFUSED
    until(lambda: not served.sessions.busy)


# --- What is sent.


@pytest.mark.parametrize(
    "sent",
    [
        "no json", "", "[]", "null", "[" * 4000, '{"do": "dance"}', "{}", '{"do": ["enrol"]}',
        '{"do": "enrol", "name": "Bo"}', '{"do": "enrol", "name": "Bo", "rate": "16000"}',
        '{"do": "enrol", "name": "Bo", "rate": 1e999}', '{"do": "threshold", "bits": NaN}',
        '{"do": "threshold", "bits": true}', json.dumps({"do": "stop", "why": "x" * 5000}),
        b"", bytes(7), bytes(8), bytes(9), bytes(8 + 2), bytes(8 + 2 * RATE + 2),
        (2**64 - 1).to_bytes(8, "little") + bytes(640), bytes(8) + bytes(640),
    ],
    ids=lambda sent: repr(sent[:24]),
)  # fmt: skip
def test_what_no_page_sends_ends_what_goes_on(served, line, client, sent):
    opened = enrolling(line)
    opened.send(sent)
    assert ended(opened) == REFUSED
    until(lambda: not served.sessions.busy)
    assert client.get("/people").json() == []


def test_no_random_message_fails_unseen(served, line, caplog):
    """Whatever is sent, and whatever still waits for the browser, no task fails unseen."""
    random = Random(1)
    strange = '[null, true, -1, 1e308, 1e99, "", "\\ud800", "/", [], {"name": "a", "size": 9}]'
    values = json.loads(strange)
    kinds = ["enrol", "listen", "measure", "threshold", "house", "stop", "cancel"]
    keys = ["name", "rate", "threshold", "bits", "protect", "recording", "turns", "show", "replace"]
    refused = json.dumps({"do": "enrol", "name": "/", "rate": RATE})
    for _ in range(30):
        opened = line()
        wish = {"do": random.choice(kinds), **{key: random.choice(values) for key in keys}}
        with suppress(ConnectionClosed):
            for _ in range(random.randrange(20)):
                opened.send(refused)
            opened.send(json.dumps(wish))
            opened.send(random.randbytes(random.randrange(700)))
            opened.send("[")
        ended(opened)
    until(lambda: served.sessions.attached == 0)
    gc.collect()
    assert [each.getMessage() for each in caplog.records if each.name == "asyncio"] == []


@pytest.mark.parametrize("pieces", [1, 5])
def test_a_message_that_is_too_large_is_not_taken(line, pieces):
    opened = line()
    part = bytes(MOST_MESSAGE_BYTES // pieces + 1)
    with suppress(ConnectionClosed):  # it may be, before the last piece is sent
        opened.send(iter([part] * pieces) if pieces > 1 else part)
    assert ended(opened) == TOO_LARGE


@pytest.mark.parametrize("sent", ['{"do": "stop"}', bytes(8 + 640)], ids=["wishes", "sound"])
def test_a_flood_ends_the_line(line, sent):
    opened = line()

    def flood() -> None:
        for _ in range(20_000):
            opened.send(sent)

    with pytest.raises(ConnectionClosed):
        flood()
    assert ended(opened) == REFUSED


@pytest.mark.parametrize(
    "name", ["../Ann", "'Ann", "\u0301Ann", "a/b", "a\\b", "/etc/passwd", "a\0b", "\x1b[31mAnn",
             "a\nb", ".", "..", "", " ", "x" * 41, "‮Ann", 5, None, {"a": 1}, ["Ann"]], ids=repr,
)  # fmt: skip
def test_no_name_leads_out_of_the_folder(served, line, client, tmp_path, name):
    opened = line()
    for wish in ("enrol", "listen"):
        opened.send(json.dumps({"do": wish, "name": name, "rate": RATE, "threshold": 6}))
        while (message := json.loads(opened.recv(timeout=60)))["type"] != "error":
            assert message["type"] == "ready"
        assert message["text"].isprintable()
    ours = {"origin": served.url.rstrip("/")}
    assert client.post("/forget", json={"name": name}, headers=ours).status_code == 400
    assert list(tmp_path.iterdir()) == []


# --- How many, and how slow.


def test_a_session_has_one_microphone(line):
    first = enrolling(line)
    first.send(json.dumps({"do": "stop"}))
    session = told(line(), "ready")["session"]
    second = line(session)
    assert ended(second) == TAKEN


def test_sessions_are_limited_and_those_that_went_make_room(served, line):
    held = [line() for _ in range(MOST_SESSIONS)]
    for each in held:
        told(each, "ready")
    late = line()
    assert ended(late) == FULL
    held[0].close()
    until(lambda: served.sessions.attached < MOST_SESSIONS)
    told(line(), "ready")  # at once, not when that one could not come back any more
    assert len(served.sessions) == MOST_SESSIONS


def test_one_that_listens_keeps_its_session_while_away(served, line):
    session_of = enrolling(line)
    session_of.close()
    until(lambda: served.sessions.attached == 0)
    for _ in range(MOST_SESSIONS - 1):
        told(line(), "ready")
    assert served.sessions.busy == 1
    told(line(), "ready")  # only where another needs its place
    until(lambda: served.sessions.busy == 0)
    assert len(served.sessions) == MOST_SESSIONS
    assert ended(line()) == FULL
    assert not served.sessions._settings.templates.people()


def test_a_page_that_was_left_ends_its_session_at_once(served, line):
    enrolling(line).close(code=1001)
    until(lambda: len(served.sessions) == 0, 5.0)
    assert not served.sessions._settings.templates.people()


def test_who_cannot_come_back_keeps_nobody_from_being_forgotten(enrolled):
    folder = enrolled[0].templates.folder
    settings = ServeSettings(TemplateFolder(folder.parent / "copy"), ENROL_SECONDS, 60.0)
    shutil.copytree(folder, settings.templates.folder)
    with ListeningPage(settings, token=TOKEN) as page, httpx.Client(base_url=page.url) as client:
        client.post("/login", data={"token": TOKEN})
        ours = {"origin": page.url.rstrip("/")}
        address = f"{page.url.replace('http', 'ws', 1)}microphone"
        with connect(
            address, origin=Origin(ours["origin"]), additional_headers=cookie_of(client)
        ) as line:
            line.send(json.dumps({"do": "listen", "name": "Ann", "rate": RATE, "threshold": 6}))
            told(line, "listening")
            answer = client.post("/forget", json={"name": "Ann"}, headers=ours)
            assert answer.status_code == 400
            assert "another page is measuring Ann" in answer.text
        until(lambda: page.sessions.attached == 0)
        assert page.sessions.busy == 1
        assert client.post("/forget", json={"name": "Ann"}, headers=ours).status_code == 200
        assert client.get("/people").json() == []


def test_who_reads_nothing_is_let_go_and_not_heard_any_more(settings, monkeypatch):
    monkeypatch.setattr("monitor.web.server.PING_SECONDS", 0.5)
    monkeypatch.setattr("monitor.serve.page.AWAY_SECONDS", 0.2)
    wish = ENROL.encode()
    masked = bytes([0x81, 0x80 | len(wish), 0, 0, 0, 0]) + wish
    with ListeningPage(settings, token=TOKEN) as page:
        with httpx.Client() as client:
            client.post(f"{page.url}login", data={"token": TOKEN})
            known = cookie_of(client)["Cookie"]
        opening = (
            "GET /microphone HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nOrigin: http://127.0.0.1\r\n"
            f"Cookie: {known}\r\n\r\n"
        )
        with crowd(page.port, 1, opening.encode()) as (silent,):
            assert b" 101 " in silent.recv(4096)
            silent.sendall(masked)
            until(lambda: page.sessions.busy == 1)
            assert gone(silent)  # it answered no ping
        until(lambda: len(page.sessions) == 0 and len(page.connections) == 0)


def test_what_waits_for_a_slow_reader_is_bounded():
    async def fill() -> None:
        outbox = Outbox(Wakeup())
        for number in range(1000):
            outbox.put({"type": "progress", "speech": number})
        assert outbox.take() == [{"type": "progress", "speech": 999}]
        for number in range(1000):
            outbox.put({"type": "error", "text": str(number)})
        assert len(outbox.take()) == MOST_WAITING

    asyncio.run(fill())


# --- What is kept.


@pytest.mark.slow
def test_nothing_but_the_template_is_written(served, line, chapters, written):
    opened = line()
    opened.send(ENROL)
    for frame in frames(chapters[0][: 20 * RATE]):
        opened.send(frame)
        time.sleep(0.002)
    told(opened, "enrolled")
    assert written
    folder = served.sessions._settings.templates.folder
    named = {path for path in written if not path.isdigit() and Path(path).parent != folder}
    assert named <= {str(folder)}, named  # a file without a name is opened by its folder
    assert [path.name for path in folder.iterdir()] == ["Ann.npz"]
    assert (folder / "Ann.npz").stat().st_mode & 0o777 == 0o600


# --- https.


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    """A certificate that this machine has signed itself."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    folder = tmp_path_factory.mktemp("pair")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-keyout", "page.key", "-out", "page.pem", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    return Certificate(folder / "page.pem", folder / "page.key")


@pytest.fixture
def secure(settings, pair) -> Iterator[ListeningPage]:
    """Where other machines could reach it."""
    with ListeningPage(settings, "0.0.0.0", token=TOKEN, certificate=pair) as page:
        yield page


def trusted(pair: Certificate) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(pair.certificate))


def test_with_a_certificate_other_addresses_are_served(secure, pair):
    origin = Origin(f"https://127.0.0.1:{secure.port}")
    with httpx.Client(base_url=origin, verify=trusted(pair), timeout=60.0) as client:
        answer = client.post("/login", data={"token": TOKEN})
        assert answer.status_code == 303
        assert "secure" in answer.headers["set-cookie"].lower()
        assert client.get("/people").json() == []
        cookie = cookie_of(client)
        address = f"wss://127.0.0.1:{secure.port}/microphone"
        with connect(
            address, ssl=trusted(pair), origin=origin, additional_headers=cookie, open_timeout=60
        ) as line:
            told(line, "ready")
        with pytest.raises(InvalidStatus):  # http is another origin
            connect(address, ssl=trusted(pair), origin=Origin(origin.replace("https", "http")),
                    additional_headers=cookie)  # fmt: skip


def test_silence_before_the_handshake_keeps_nobody_out(secure, pair):
    secure.connections.most = 16
    with crowd(secure.port, 100):
        answer = httpx.get(f"https://127.0.0.1:{secure.port}/healthz", verify=trusted(pair))
        assert answer.text.strip() == "ok"
        assert len(secure.connections) <= 16
    secure.connections.request_seconds = 0.3
    for said in (b"", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00"):
        with crowd(secure.port, 1, said) as (silent,):
            assert gone(silent)
    until(lambda: len(secure.connections) == 0)


def test_a_certificate_without_its_key_is_none(pair, tmp_path):
    text = tmp_path / "text.pem"
    text.write_text("no certificate")
    for path in (pair.certificate, text):
        with pytest.raises(UsageError, match="https"):
            Certificate(path)
