"""The page under attack by whoever can reach it, without a token; on loopback, and bounded."""

from __future__ import annotations

import contextlib
import json
import resource
import socket
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest

from monitor.web.guard import TRIES
from monitor.web.page import Page
from tests.alerts.receiver import receiving
from tests.web import records
from tests.web.conftest import SECRET
from tests.web.crowd import crowd
from tests.web.records import give

REQUEST = b"GET /readings HTTP/1.1\r\nHost: localhost\r\n"
LARGE = [{"type": "reading", "seconds": t, "withheld": "x" * 20_000} for t in range(1000)]  # 20 MB


def gone(one: socket.socket) -> bool:
    """Whether the server lets a connection go that says nothing more."""
    try:
        while one.recv(65536):
            pass
    except ConnectionError:
        pass
    return True


def get(page: Page, path: str, **more: object) -> httpx.Response:
    return httpx.get(page.url + path, timeout=60.0, **more)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("said", [b"", REQUEST, REQUEST + b"X: "], ids=["silent", "half", "word"])
def test_idle_connections_keep_nobody_out(page, said):
    give(page, records.start())
    page.connections.most = 16
    with crowd(page.port, 100, said):
        assert get(page, "readings").json()["last"] == 1
        assert len(page.connections) <= 16


@pytest.mark.slow
def test_half_a_request_is_not_waited_for(page):
    page.connections.request_seconds = 0.3
    with crowd(page.port, 1, REQUEST) as (dripping,), contextlib.suppress(ConnectionError):
        for _ in range(6000):  # bytes that come give no more time
            dripping.sendall(b"x")
            time.sleep(0.01)
        raise AssertionError("still there")
    with crowd(page.port, 1) as (silent,):
        assert gone(silent)
    login = b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\ntoken="
    with crowd(page.port, 1, login) as (bodiless,):
        assert gone(bodiless)


def test_where_all_are_served_the_newest_is_turned_away(page):
    give(page, records.start())
    page.connections.most = 8
    follow = b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with crowd(page.port, 8, follow) as readers:
        for one in readers:
            assert one.recv(9).startswith(b"HTTP/1.1")
        with crowd(page.port, 1, REQUEST + b"\r\n") as (late,):
            assert gone(late)
        assert page.connections.turned_away == 1
    while len(page.connections):
        time.sleep(0.01)
    assert get(page, "readings").json()["last"] == 1


@pytest.mark.slow
def test_clients_that_never_read_take_no_memory(page):
    give(page, *LARGE)
    before = psutil.Process().memory_info().rss
    with crowd(page.port, 100, REQUEST + b"\r\n") as waiting:
        for one in waiting:
            assert one.recv(9).startswith(b"HTTP/1.1")
        text = get(page, "readings").text  # and one that reads gets it all
        assert len(json.loads(text)["records"]) == 1000
        del text
        taken = psutil.Process().memory_info().rss - before
    assert taken < 300e6  # 100 copies of the answer are 2 GB


@pytest.mark.slow
def test_a_client_that_does_not_read_on_is_let_go(page):
    page.connections.stalled_seconds = 0.3
    give(page, *LARGE)
    with crowd(page.port, 1, REQUEST + b"\r\n") as (stalled,):
        while not len(page.connections):
            time.sleep(0.01)
        while len(page.connections):
            time.sleep(0.01)
        assert gone(stalled)


@pytest.mark.slow
def test_a_long_header_is_refused_and_freezes_nothing(guarded):
    hostile = '"' + "\\" * 60_000
    assert get(guarded, "", headers={"cookie": hostile}).status_code == 413
    short = '"' + "\\" * 15_000
    for _ in range(20):  # each would have taken a second
        assert get(guarded, "readings", headers={"cookie": short}).status_code == 401


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere loopback is one address")
def test_a_machine_guesses_no_faster_from_all_its_addresses_and_keeps_nobody_out(guarded):
    def guess(number: int) -> int:
        transport = httpx.HTTPTransport(local_address=f"127.1.{number // 250}.{1 + number % 250}")
        with httpx.Client(transport=transport, timeout=60.0) as client:
            bearer = {"authorization": f"Bearer guess {number}"}
            return client.get(guarded.url + "metrics", headers=bearer).status_code

    with httpx.Client() as reader:
        assert reader.post(guarded.url + "login", data={"token": SECRET}).status_code == 303
        with ThreadPoolExecutor(32) as many:
            answers = Counter(many.map(guess, range(300)))
        assert answers == {401: TRIES, 429: 300 - TRIES}
        # a reader who is in already notices nothing
        assert reader.get(guarded.url + "metrics").status_code == 200
    refused = httpx.post(guarded.url + "login", data={"token": "no"})
    assert refused.status_code == 429
    assert 0 < int(refused.headers["retry-after"]) <= 60
    assert httpx.post(guarded.url + "login", data={"token": SECRET}).status_code == 303
    right = {"authorization": f"Bearer {SECRET}"}
    assert get(guarded, "metrics", headers=right).status_code == 200


def test_a_session_can_be_ended(guarded):
    with httpx.Client() as client:
        client.post(guarded.url + "login", data={"token": SECRET})
        name = f"monitor_page_{guarded.port}"
        cookie = client.cookies[name]
        assert client.get(guarded.url + "readings").status_code == 200
        follow = b"GET /events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nCookie: "
        said = follow + f"{name}={cookie}\r\n\r\n".encode()
        with crowd(guarded.port, 1, said) as (open_stream,):
            assert open_stream.recv(9).startswith(b"HTTP/1.1")
            for origin in ({}, {"origin": "http://evil.example"}, {"origin": "null"}):
                assert client.post(guarded.url + "logout", headers=origin).status_code == 403
            assert client.get(guarded.url + "readings").status_code == 200
            ours = {"origin": guarded.url.rstrip("/")}
            assert client.post(guarded.url + "logout", headers=ours).status_code == 303
            give(guarded, records.reading(1, bits=1.0))
            assert gone(open_stream)  # what had been opened ends with it
        assert not client.cookies
    stolen = {"cookie": f"{name}={cookie}"}
    assert get(guarded, "readings", headers=stolen).status_code == 401
    assert httpx.get(guarded.url + "logout").status_code == 405


def test_the_cookie_is_secure_where_the_browser_speaks_https(guarded):
    def set_cookie(**headers: str) -> str:
        data = {"token": SECRET}
        answer = httpx.post(guarded.url + "login", data=data, headers=headers)
        return answer.headers["set-cookie"].lower()

    assert "secure" not in set_cookie()
    assert "secure" in set_cookie(**{"x-forwarded-proto": "https"})


BESIEGED = """
import json, resource, sys, time
from pathlib import Path
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
from monitor.alerts import Threshold
from monitor.alerts.actions import BackgroundDelivery, Command, Webhook
from monitor.events.reading import Reading
from monitor.web.guard import TRIES
from monitor.web.page import Page
folder, url = Path(sys.argv[1]), sys.argv[2]
receivers = (Command(f"cat >> {folder}/alerts"), Webhook(url))
couriers = [BackgroundDelivery(each) for each in receivers]
with Page() as page:
    print(page.port, flush=True)
    sys.stdin.readline()  # the attack is on
    rule = Threshold("bits", 1.0, hold_seconds=0.0)
    for second in range(21):
        reading = Reading.from_record({"seconds": float(second), "bits": 2.0 * (second % 2)})
        page.write(reading)
        for alert in rule.update(reading):
            for courier in couriers:
                courier.write(alert)
        (folder / f"log-{second}").write_text("a file can be opened")
        time.sleep(0.02)
    failures = [line for courier in couriers for line in courier.drain()]
    print(json.dumps([failures, len(page.connections)]), flush=True)
    sys.stdin.readline()
for courier in couriers:
    courier.close()
"""


@pytest.mark.slow
def test_no_alert_is_lost_while_silent_sockets_pile_up(tmp_path: Path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 1024:
        pytest.skip("needs more descriptors than this system allows")
    with contextlib.ExitStack() as stack:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1024), hard))
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        receiver = stack.enter_context(receiving())
        besieged = subprocess.Popen(
            [sys.executable, "-c", BESIEGED, str(tmp_path), receiver.url],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert besieged.stdin is not None
        assert besieged.stdout is not None
        with besieged:
            port = int(besieged.stdout.readline())
            with crowd(port, 400):
                besieged.stdin.write("\n")
                besieged.stdin.flush()
                failures, held = json.loads(besieged.stdout.readline())
                with httpx.Client(timeout=60.0) as client:
                    answer = client.get(f"http://127.0.0.1:{port}/readings")
                    assert answer.json()["last"] == 21
            _, errors = besieged.communicate("\n", timeout=60)
        assert besieged.returncode == 0
        assert errors == ""
        assert failures == []
        assert held < 200
        assert len((tmp_path / "alerts").read_text().splitlines()) == 20
        assert len(receiver.got) == 20
        assert len(list(tmp_path.glob("log-*"))) == 21
