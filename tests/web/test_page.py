"""Real HTTP on loopback; what the server answers is what SECURITY.md says, path by path."""

from __future__ import annotations

import json
import logging
import re
import socket
import threading
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from monitor.errors import UsageError
from monitor.serve.page import make_app as make_listening_app
from monitor.serve.session import ServeSettings
from monitor.serve.templates import TemplateFolder
from monitor.web.guard import Access, Guard
from monitor.web.hub import Hub
from monitor.web.page import MOST_BEHIND, Page, make_app
from tests.records import as_records, events
from tests.web import records
from tests.web.conftest import SECRET
from tests.web.records import give

SECURITY = (Path(__file__).resolve().parents[2] / "SECURITY.md").read_text(encoding="utf-8")
get = partial(httpx.get, timeout=60.0)
DATA = ("/events", "/readings", "/metrics")


def parse(text: str) -> list[dict[str, str]]:
    """The events of a stream."""
    found = []
    for part in text.split("\n\n")[:-1]:
        pairs = (line.partition(": ") for line in part.split("\n"))
        found.append({name: value for name, _, value in pairs})
    return found


def ids(sent: list[dict[str, str]]) -> list[int]:
    return [int(each["id"].split("-")[1]) for each in sent if "id" in each]


def whole(page: Page, since: str | None = None) -> list[dict[str, str]]:
    """All that a client gets of a run that is over."""
    headers = {} if since is None else {"last-event-id": since}
    return parse(get(page.url + "events", headers=headers, timeout=60.0).text)


def until(page: Page, last: int, headers: dict[str, str] | None = None) -> list[dict[str, str]]:
    """What a client gets up to some id; then it hangs up."""
    text = ""
    with httpx.stream("GET", page.url + "events", headers=headers, timeout=60.0) as answer:
        for piece in answer.iter_text():
            text += piece
            if ids(parse(text))[-1:] >= [last]:
                return parse(text)
    raise AssertionError(text)


def test_a_client_gets_everything_from_the_beginning_to_the_end(page):
    give(page, *records.run(300))
    page.hub.close()
    sent = whole(page)
    assert sent[0]["event"] == "hello"
    assert json.loads(sent[0]["data"])["run"] == page.hub.run
    shown = [json.loads(each["data"]) for each in sent if each["event"] == "record"]
    assert all(each.pop("said") for each in shown if each["type"] == "reading")
    made = [{k: v for k, v in each.items() if k != "said"} for each in shown]
    assert made == as_records(events(records.run(300)))
    assert ids(sent) == list(range(1, 303))
    assert json.loads(sent[-1]["data"])["last"] == 302
    assert ids(whole(page, "00000000-4")) == list(range(1, 303))  # of an earlier run


def test_a_client_that_comes_back_misses_nothing(page):
    made = list(records.run(60))
    give(page, *made[:30])
    first = until(page, 30)
    last = next(each["id"] for each in reversed(first) if "id" in each)
    give(page, *made[30:])
    page.hub.close()
    second = whole(page, last)
    assert ids(first) + ids(second) == list(range(1, 63))


def test_a_client_that_does_not_read_holds_nobody_up_and_gets_the_newest(page):
    padding = "x" * 20_000
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    slow.connect(("127.0.0.1", page.port))
    slow.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    give(page, records.start())
    assert slow.recv(9).startswith(b"HTTP/1.1")
    for second in range(1, 1001):  # 20 MB: no buffer between takes that much
        give(page, {"type": "reading", "seconds": second, "withheld": padding})
        if second % 250 == 0:
            # one that reads is served meanwhile
            assert until(page, page.hub.last, {"last-event-id": f"{page.hub.run}-{second - 1}"})
    give(page, records.end(1000))
    page.hub.close()
    text = bytearray()
    slow.settimeout(30)
    while b"\r\n0\r\n" not in bytes(text[-16:]):
        text += slow.recv(1 << 20)
    slow.close()
    lines = [line for line in text.decode().splitlines() if line.startswith("id: ")]
    got = [int(line.rpartition("-")[2]) for line in lines]
    assert got == sorted(set(got))
    assert got[-1] == page.hub.last == 1002
    assert len(got) < 500 + MOST_BEHIND


def test_readings_since(page):
    give(page, *records.run(5))
    answer = get(page.url + "readings")
    assert answer.headers["content-type"] == "application/json"
    found = answer.json()
    assert found["run"] == page.hub.run
    assert found["last"] == 7
    assert [each["record"] for each in found["records"]] == as_records(events(records.run(5)))
    for since in ("5", f"{page.hub.run}-5"):
        later = get(page.url + "readings", params={"since": since}).json()
        assert [each["id"] for each in later["records"]] == [6, 7]
    assert len(get(page.url + "readings?since=nonsense").json()["records"]) == 7


def table(heading: str) -> list[list[str]]:
    """The cells of a table of SECURITY.md."""
    section = SECURITY.split(f"## {heading}")[1].split("\n## ")[0]
    return [row.split("|") for row in section.splitlines() if row.startswith("| `")]


def listed() -> dict[str, str]:
    """Each path in the table of SECURITY.md, and what a reader without the token gets there."""
    rows = table("Paths of `--web`")
    return {path: row[3].strip() for row in rows for path in re.findall(r"`(/[^`]*)`", row[1])}


def routes(app: object) -> set[str]:
    assert isinstance(app, Guard)
    assert isinstance(app._app, Starlette)
    return {getattr(route, "path", "").partition("/{")[0] for route in app._app.routes}


def test_every_route_is_in_the_lists_and_no_other(tmp_path):
    assert routes(make_app(Hub(), "127.0.0.1")) == listed().keys()
    settings = ServeSettings(TemplateFolder(tmp_path))
    found = routes(make_listening_app(settings, "127.0.0.1", Access(SECRET))[0])
    rows = table("Paths of `monitor serve`")
    paths = {f"/{path}" for row in rows for path in re.findall(r"`/(\w+)", row[1])}
    assert found - listed().keys() <= paths <= found


def test_without_the_token_there_is_no_data(guarded):
    for path, needs in listed().items():
        method = "POST" if path in ("/login", "/logout") else "GET"
        answer = httpx.request(method, guarded.url.rstrip("/") + path, timeout=60.0)
        assert records.start()["watch"] not in answer.text.split()
        assert (answer.status_code == 401) == (needs == "needed" or path == "/login")
    # in the address it would end up in histories and logs
    assert get(guarded.url + "readings", params={"token": SECRET}).status_code == 401
    header = {"authorization": f"Bearer {SECRET}"}
    assert get(guarded.url + "readings", headers=header).json()["last"] == 1


def test_nothing_but_the_page_is_served(page):
    for path in (
        "static/../app.py", "static/%2e%2e/app.py", "static//etc/passwd", "static/", "api",
        "population.npz", "templates", "audio", "docs", "openapi.json", "records", "favicon.ico",
    ):  # fmt: skip
        assert get(page.url + path).status_code in (404, 405), path
    assert httpx.post(page.url + "readings").status_code == 405
    assert httpx.head(page.url + "events").status_code == 200
    assert get(page.url + "metrics").headers["content-type"].startswith("text/plain; version=")


@pytest.mark.parametrize("path", ["/", "/healthz", "/static/app.js", "/nowhere", *DATA])
def test_every_answer_is_strict(page, path):
    page.hub.close()
    answer = get(page.url.rstrip("/") + path, headers={"origin": "https://evil.example"})
    assert answer.status_code == (404 if path == "/nowhere" else 200)
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert "server" not in answer.headers
    other = get(page.url.rstrip("/") + path, headers={"host": "evil.example"})
    assert other.status_code == 421
    assert "content-security-policy" in other.headers


@pytest.mark.slow
def test_the_token_is_exchanged_for_a_cookie(guarded):
    with httpx.Client() as client:
        wrong = client.post(guarded.url + "login", data={"token": "wrong"})
        assert wrong.status_code == 401
        assert not client.cookies
        right = client.post(guarded.url + "login", data={"token": SECRET})
        assert (right.status_code, right.headers["location"]) == (303, "/")
        cookie = right.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert SECRET not in cookie
        assert client.get(guarded.url + "readings").json()["last"] == 1
    huge = httpx.post(guarded.url + "login", content=b"token=" + b"x" * 100_000)
    assert huge.status_code == 413
    assert httpx.post(guarded.url + "login", content=b"\xff\xfe").status_code == 401


def test_the_token_is_in_no_log(guarded, caplog, capfd):
    with caplog.at_level(logging.DEBUG):
        for path in (f"?token={SECRET}", f"events?token={SECRET}", f"nowhere/{SECRET}"):
            get(guarded.url + path)
        get(guarded.url + "readings", headers={"authorization": f"Bearer {SECRET}"})
    ours = [r.getMessage() for r in caplog.records if not r.name.startswith(("httpx", "httpcore"))]
    assert not [message for message in ours if SECRET in message or "token" in message]
    assert capfd.readouterr() == ("", "")


def test_other_machines_need_a_token():
    for host in ("0.0.0.0", "192.0.2.1", "::"):
        with pytest.raises(UsageError, match="MONITOR_WEB_TOKEN"):
            Page(host)
    with Page("0.0.0.0", token=SECRET) as page:
        assert get(f"http://127.0.0.1:{page.port}/readings").status_code == 401


def test_an_address_that_cannot_be_had(page):
    with pytest.raises(UsageError, match="something else listens there"):
        Page("127.0.0.1", page.port)
    with pytest.raises(UsageError, match="choose an address of this machine"):
        Page("192.0.2.1", 0, token=SECRET)


def test_closing_ends_the_streams_and_the_thread():
    page = Page()
    got: list[Any] = []
    reader = threading.Thread(target=lambda: got.extend(whole(page)))
    give(page, records.start())
    reader.start()
    while not page._server.answering:
        pass
    give(page, records.end(1))
    page.close()
    reader.join(20)
    assert ids(got) == [1, 2]
    assert not page._server._thread.is_alive()
    with pytest.raises(httpx.ConnectError):
        get(page.url)
