from __future__ import annotations

import socket
import threading
import time

import pytest

from monitor.alerts.actions.receivers import Webhook
from monitor.alerts.actions.registry import BackgroundDelivery
from monitor.errors import DeliveryError, UsageError
from tests.alerts.receiver import START, alert, receiving
from tests.records import event

CALM = threading.Event()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")


def hook(url: str, timeout: float = 5.0, waits: tuple[float, ...] = (0.01, 0.01)) -> Webhook:
    return Webhook(url, timeout_seconds=timeout, waits_seconds=waits)


def test_one_alert_is_one_post_with_who_and_when():
    with receiving() as receiver:
        delivery = BackgroundDelivery(hook(receiver.url))
        for record in (START, {"type": "reading", "seconds": 1}, alert()):
            delivery.write(event(record))
        assert delivery.drain() == []
        delivery.close()
    (got,) = receiver.got
    assert got.pop("time").endswith("Z")
    assert got == {**alert(), "watch": "me"}
    assert receiver.methods == ["POST"]
    assert receiver.headers[0]["Content-Type"] == "application/json"
    assert receiver.headers[0]["User-Agent"].startswith("speaker-disclosure-monitor/")


def test_user_and_password_are_basic_authentication_and_never_shown():
    with receiving((500, {})) as receiver:
        url = receiver.url.replace("http://", "http://me:s%20cret@")
        webhook = hook(url, waits=())
        with pytest.raises(DeliveryError) as caught:
            webhook.deliver(event(alert()), CALM)
    assert receiver.headers[0]["Authorization"] == "Basic bWU6cyBjcmV0"
    shown = webhook.label + str(caught.value)
    assert shown == f"webhook 127.0.0.1:{receiver.port}answered 500"


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_what_may_pass_is_tried_again(status):
    with receiving((status, {}), (status, {"Retry-After": "0"}), (200, {})) as receiver:
        hook(receiver.url).deliver(event(alert()), CALM)
    assert len(receiver.got) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 413, 501])
def test_what_will_not_pass_is_not(status):
    with receiving((status, {})) as receiver, pytest.raises(DeliveryError, match=f"ed {status}$"):
        hook(receiver.url).deliver(event(alert()), CALM)
    assert len(receiver.got) == 1


def test_the_last_attempt_is_the_last():
    with receiving((503, {})) as receiver, pytest.raises(DeliveryError, match="answered 503"):
        hook(receiver.url).deliver(event(alert()), CALM)
    assert len(receiver.got) == 3


def test_waits_grow_and_retry_after_is_heeded():
    waited: list[float] = []

    class Watch(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waited.append(timeout or 0.0)
            return False

    with (
        receiving((503, {}), (503, {"Retry-After": "7"}), (503, {"Retry-After": "9999"})) as far,
        pytest.raises(DeliveryError),
    ):
        Webhook(far.url).deliver(event(alert()), Watch())
    assert 1.0 <= waited[0] <= 1.1
    assert waited[1:] == [7.0, 30.0]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("same", [True, False])
def test_no_redirect_is_followed_to_another_host_or_anywhere(status, same):
    with receiving() as other, receiving() as receiver:
        to = "/elsewhere" if same else other.url.replace("127.0.0.1", "localhost")
        receiver.answers = [(status, {"Location": to})]
        with pytest.raises(DeliveryError) as caught:
            hook(receiver.url).deliver(event(alert()), CALM)
    assert other.got == []
    assert len(receiver.got) == 1
    where = "" if same else " to localhost"
    assert str(caught.value) == (
        f"answered {status}, a redirect{where}: not followed, give the final address"
    )


def test_nobody_listens():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        webhook = hook(f"http://127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(DeliveryError, match=r"^Connection refused$"):
            webhook.deliver(event(alert()), CALM)


def test_a_name_that_is_none():
    with pytest.raises(DeliveryError):
        hook("http://nowhere.invalid/").deliver(event(alert()), CALM)


def test_a_receiver_that_hangs_up_or_talks_nonsense():
    for answer in (b"", b"SSH-2.0-dropbear\r\n\r\n"):
        with socket.create_server(("127.0.0.1", 0)) as server:

            def serve(server: socket.socket = server, answer: bytes = answer) -> None:
                for _ in range(3):
                    connection, _ = server.accept()
                    with connection:
                        connection.recv(65536)
                        connection.sendall(answer)

            thread = threading.Thread(target=serve)
            thread.start()
            with pytest.raises(DeliveryError) as caught:
                hook(f"http://127.0.0.1:{server.getsockname()[1]}").deliver(event(alert()), CALM)
            thread.join()
        assert "\n" not in str(caught.value)


def test_a_receiver_that_never_answers_is_given_up():
    with socket.create_server(("127.0.0.1", 0)) as server:
        webhook = hook(f"http://127.0.0.1:{server.getsockname()[1]}", timeout=0.05)
        with pytest.raises(DeliveryError, match=r"no answer within 0\.05 s"):
            webhook.deliver(event(alert()), CALM)


def test_writing_never_waits_and_the_end_waits_only_so_long():
    with receiving() as receiver:
        receiver.hold = threading.Event()
        delivery = BackgroundDelivery(
            hook(receiver.url, timeout=30.0), most_waiting=5, patience_seconds=0.2
        )
        began = time.monotonic()
        for second in range(5000):
            delivery.write(event(alert(float(second))))
        wrote = time.monotonic() - began
        (line,) = delivery.drain()
        delivery.close()
        assert wrote < 5.0  # a held request would be 30 s; writing alone is some milliseconds
        assert line.startswith(f"webhook 127.0.0.1:{receiver.port}: 5000 of 5000 alerts not deliv")
        assert len(receiver.got) == 1  # the one that hung


def test_of_too_many_the_newest_are_delivered():
    with receiving() as receiver:
        receiver.hold = threading.Event()
        delivery = BackgroundDelivery(hook(receiver.url), most_waiting=5)
        for second in range(50):
            delivery.write(event(alert(float(second))))
            while not receiver.got:
                time.sleep(0.01)
        receiver.hold.set()
        (line,) = delivery.drain()
        delivery.close()
    assert [record["seconds"] for record in receiver.got] == [0, 45, 46, 47, 48, 49]
    assert line.endswith("44 of 50 alerts not delivered: too many alerts at once")


def test_the_end_cuts_the_waits_between_attempts_short():
    with receiving((503, {})) as receiver:
        webhook = hook(receiver.url, waits=(1000.0,))
        delivery = BackgroundDelivery(webhook, patience_seconds=0.3)
        delivery.write(event(alert()))
        assert delivery.drain() == [f"{webhook.label}: 1 of 1 alert not delivered: answered 503"]
        delivery.close()


def test_close_lets_the_thread_go():
    before = set(threading.enumerate())
    with receiving() as receiver:
        delivery = BackgroundDelivery(hook(receiver.url))
        delivery.write(event(alert()))
        (mine,) = [t for t in set(threading.enumerate()) - before if t.name.startswith("alerts to")]
        delivery.drain()
        delivery.close()
        mine.join(5)
        assert not mine.is_alive()


def test_a_receiver_that_breaks_stops_nothing():
    class Broken:
        label = "broken"

        def deliver(self, *_: object) -> None:
            raise ZeroDivisionError("a bug")

    delivery = BackgroundDelivery(Broken())
    delivery.write(event(alert()))
    delivery.write(event(alert()))
    assert delivery.drain() == ["broken: 2 of 2 alerts not delivered: unexpected ZeroDivisionError"]
    delivery.close()


@pytest.mark.parametrize(
    "url",
    ["", "example.org", "ftp://example.org/", "file:///etc/passwd", "http://", "http://[::1",
     "http://a:b:c/", "http://exa mple.org/", "http://a.org/\r\nX: y", "http://a:99999/", "http://a..b/",
     "http://" + "a" * 64 + ".org/",
     "http://a.org/\x7f"],
)  # fmt: skip
def test_no_address(url):
    with pytest.raises(UsageError, match="--webhook needs an address"):
        Webhook(url)


def test_an_address_with_letters_of_any_language():
    with receiving() as receiver:
        webhook = Webhook(f"http://127.0.0.1:{receiver.port}/é?who=ä&b=%20")
        webhook.deliver(event(alert()), CALM)
    assert receiver.paths == ["/%C3%A9?who=%C3%A4&b=%20"]
