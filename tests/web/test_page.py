"""Real HTTP on loopback."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx
import pytest

from monitor.errors import UsageError
from monitor.protocols import Sink
from monitor.web.page import MOST_BEHIND, Page
from tests.records import event
from tests.web import records
from tests.web.conftest import SECRET

get = partial(httpx.get, timeout=60.0)
DATA = ("/events", "/readings", "/metrics")


def parse(text: str) -> list[dict[str, str]]:
    """The events of a stream."""
    found = []
    for part in text.split("\n\n")[:-1]:
        pairs = (line.partition(": ") for line in part.split("\n"))
        found.append({name: value for name, _, value in pairs})
    return found


def ids(events: list[dict[str, str]]) -> list[int]:
    return [int(event["id"].split("-")[1]) for event in events if "id" in event]


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


def test_it_is_a_sink(page):
    assert page.url == f"http://127.0.0.1:{page.port}/"
    assert isinstance(page, Sink)
    page.close()
    page.close()
    page.write(event(records.start()))  # nobody is there; no harm


def written(seconds: int) -> list[Any]:
    """The records of a run as its page has them."""
    return [json.loads(json.dumps(event(record).record())) for record in records.run(seconds)]


def test_a_client_gets_everything_from_the_beginning_to_the_end(page):
    for record in records.run(300):
        page.write(event(record))
    page.hub.close()
    events = whole(page)
    assert events[0]["event"] == "hello"
    assert json.loads(events[0]["data"])["run"] == page.hub.run
    shown = [json.loads(event["data"]) for event in events if event["event"] == "record"]
    assert all(each.pop("said") for each in shown if each["type"] == "reading")
    assert [{k: v for k, v in each.items() if k != "said"} for each in shown] == written(300)
    assert ids(events) == list(range(1, 303))
    assert json.loads(events[-1]["data"])["last"] == 302


def test_a_client_that_comes_back_misses_nothing(page):
    made = list(records.run(60))
    for record in made[:30]:
        page.write(event(record))
    first = until(page, 30)
    last = next(event["id"] for event in reversed(first) if "id" in event)
    for record in made[30:]:
        page.write(event(record))
    page.hub.close()
    second = whole(page, last)
    assert ids(first) + ids(second) == list(range(1, 63))


def test_a_client_of_an_earlier_run_begins_again(page):
    for record in records.run(5):
        page.write(event(record))
    page.hub.close()
    assert ids(whole(page, "00000000-4")) == list(range(1, 8))


@pytest.mark.slow
def test_fifty_clients_at_once(page):
    made = list(records.run(200))

    async def follow(client: httpx.AsyncClient, ready: asyncio.Semaphore) -> list[int]:
        text = ""
        async with client.stream("GET", page.url + "events") as answer:
            ready.release()
            async for piece in answer.aiter_text():
                text += piece
        return ids(parse(text))

    async def all_of_them() -> list[list[int]]:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(limits=limits, timeout=60.0) as client:
            ready = asyncio.Semaphore(0)
            tasks = [asyncio.create_task(follow(client, ready)) for _ in range(50)]
            for _ in tasks:
                await ready.acquire()

            def write() -> None:
                for record in made:
                    page.write(event(record))
                page.hub.close()

            await asyncio.to_thread(write)
            return await asyncio.gather(*tasks)

    with ThreadPoolExecutor(1) as elsewhere:  # whatever loop this thread may have
        found = elsewhere.submit(lambda: asyncio.run(all_of_them())).result()
    assert len(found) == 50
    assert all(each == list(range(1, len(made) + 1)) for each in found)


def test_a_client_that_does_not_read_holds_nobody_up_and_gets_the_newest(page):
    padding = "x" * 20_000
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    slow.connect(("127.0.0.1", page.port))
    slow.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    page.write(event(records.start()))
    assert slow.recv(9).startswith(b"HTTP/1.1")
    for second in range(1, 1001):  # 20 MB: no buffer between takes that much
        page.write(event({"type": "reading", "seconds": second, "withheld": padding}))
        if second % 250 == 0:
            # one that reads is served meanwhile
            assert until(page, page.hub.last, {"last-event-id": f"{page.hub.run}-{second - 1}"})
    page.write(event(records.end(1000)))
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
    for record in records.run(5):
        page.write(event(record))
    answer = get(page.url + "readings")
    assert answer.headers["content-type"] == "application/json"
    found = answer.json()
    assert found["run"] == page.hub.run
    assert found["last"] == 7
    assert [each["record"] for each in found["records"]] == written(5)
    for since in ("5", f"{page.hub.run}-5"):
        later = get(page.url + "readings", params={"since": since}).json()
        assert [each["id"] for each in later["records"]] == [6, 7]
    assert len(get(page.url + "readings?since=nonsense").json()["records"]) == 7


def test_metrics(page):
    from prometheus_client.parser import text_string_to_metric_families

    assert get(page.url + "metrics").status_code == 200  # before anything is known
    page.write(event(records.start()))
    page.write(event(records.reading(10, bits=2.5, lag=0.3)))
    page.write(event({"type": "gap", "seconds": 10.0, "reason": "overflow", "lost_seconds": 0.5}))
    page.write(event({"type": "gap", "seconds": 11.0, "reason": "overflow", "lost_seconds": None}))
    page.write(event(records.alert(12)))
    page.write(event(records.reading(12, bits=None)))
    answer = get(page.url + "metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    found = {
        (sample.name, sample.labels.get("feature")): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }
    assert ("monitor_disclosure_bits", None) not in found  # withheld
    page.write(event(records.reading(13, bits=3.5)))
    page.write(event(records.reading(14, bits=2.5, lag=0.3)))
    found = {
        (sample.name, sample.labels.get("feature")): sample.value
        for family in text_string_to_metric_families(get(page.url + "metrics").text)
        for sample in family.samples
    }
    assert found["monitor_disclosure_bits", None] == 2.5
    assert found["monitor_ceiling_bits", None] == records.CEILING
    assert found["monitor_lag_seconds", None] == 0.3
    assert found["monitor_lost_seconds_total", None] == 0.5
    assert found["monitor_gaps_total", None] == 2
    assert found["monitor_readings_total", None] == 4
    assert found["monitor_alerts_total", None] == found["monitor_alert_raised", None] == 1
    assert found["monitor_feature_local_bits", "phones"] == 2.5
    assert found["monitor_feature_peak_bits", "phones"] == 3.5
    assert found["monitor_feature_ceiling_bits", "phones"] == records.CEILING
    assert found["monitor_change_open", None] == 0
    assert found["monitor_ended", None] == 0
    assert 0 <= found["monitor_reading_age_seconds", None] < 600
    assert '"ann"' not in get(page.url + "metrics").text  # who speaks is no metric


def test_health(guarded):
    answer = get(guarded.url + "healthz")
    assert (answer.status_code, answer.text) == (200, "ok\n")


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


def test_nothing_but_the_page_is_served(page):
    for path in (
        "static/../app.py", "static/%2e%2e/app.py", "static//etc/passwd", "static/",
        "population.npz", "templates", "audio", "docs", "openapi.json",
    ):  # fmt: skip
        assert get(page.url + path).status_code in (404, 405), path
    assert httpx.post(page.url + "readings").status_code == 405
    assert httpx.head(page.url + "events").status_code == 200


def test_without_the_token_there_is_no_data(guarded):
    for path in DATA:
        answer = get(guarded.url.rstrip("/") + path)
        assert answer.status_code == 401
        assert "ann" not in answer.text
    assert "token" in get(guarded.url).text
    # in the address it would end up in histories and logs
    assert get(guarded.url + "readings", params={"token": SECRET}).status_code == 401
    header = {"authorization": f"Bearer {SECRET}"}
    assert get(guarded.url + "readings", headers=header).json()["last"] == 1


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
        with pytest.raises(UsageError, match="--web-token"):
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
    page.write(event(records.start()))
    reader.start()
    while not page._server.answering:
        pass
    page.write(event(records.end(1)))
    page.close()
    reader.join(20)
    assert ids(got) == [1, 2]
    assert not page._server._thread.is_alive()
    with pytest.raises(httpx.ConnectError):
        get(page.url)
