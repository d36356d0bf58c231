"""Commands, notifications, the bell and webhooks, all of them real."""

import io
import json
import os
import pty
import shlex
import socket
import subprocess
import sys
import threading
import time

import pytest

from monitor.alerts.actions.receivers import SECRETS, Bell, Command, Notify, Webhook
from monitor.alerts.actions.registry import ACTION_OPTIONS, BackgroundDelivery
from monitor.errors import DeliveryError, UsageError
from tests.alerts.receiver import START, alert, receiving
from tests.records import event
from tests.test_programs import gone

CALM = threading.Event()


def test_a_command_gets_the_record_on_standard_input(tmp_path):
    target = tmp_path / "said.jsonl"
    delivery = BackgroundDelivery(Command(f"cat >> '{target}'"))
    for record in (START, alert(1.0), alert(2.0, state="cleared")):
        delivery.write(event(record))
    assert delivery.drain() == []
    delivery.close()
    first, second = map(json.loads, target.read_text().splitlines())
    assert (first["seconds"], first["state"], first["watch"]) == (1.0, "raised", "me")
    assert (second["seconds"], second["state"]) == (2.0, "cleared")


def test_what_a_command_prints_is_read_while_a_microphone_is_open():
    code = """if True:
        import os, threading
        from monitor.alerts.actions.receivers import Command
        from monitor.cli.inputs import quiet_libraries
        from monitor.events import Alert
        with quiet_libraries():
            alert = Alert(1.0, 1.0, "bits>3", "bits", 3.0, "raised", 3.2)
            Command("echo loud; echo louder >&2").deliver(alert, threading.Event())
            os.write(2, b"ALSA says something")
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "loud\nlouder\n")


def test_a_command_is_not_told_secrets(tmp_path, monkeypatch):
    assert {option.environment for option in ACTION_OPTIONS} - {""} <= SECRETS
    for name in SECRETS:
        monkeypatch.setenv(name, "hush")
    monkeypatch.setenv("OTHER", "told")
    Command(f"env > '{tmp_path / 'env'}'").deliver(event(alert()), CALM)
    text = (tmp_path / "env").read_text()
    assert "OTHER=told" in text
    assert "hush" not in text
    Command("true").deliver(event({**alert(), "rule": "x" * 1_000_000}), CALM)  # does not read


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("exit 3", "exit status 3"),
        ("no-such-command-at-all 2>/dev/null", "exit status 127"),
        ("kill -9 $$", "killed by signal 9"),
    ],
)
def test_a_command_that_fails_says_so(command, words):
    with pytest.raises(DeliveryError, match=f"^{words}$"):
        Command(command).deliver(event(alert()), CALM)


@pytest.mark.slow
@pytest.mark.parametrize("start", ["", "setsid "])
def test_a_command_that_hangs_is_killed_with_all_that_it_started(tmp_path, start):
    child = tmp_path / "child"
    inner = shlex.quote(f"echo $$ > '{child}'; exec sleep 600")
    command = Command(f"{start}sh -c {inner} & wait", timeout_seconds=1.0)
    with pytest.raises(DeliveryError, match="took over 1 s and was killed"):
        command.deliver(event(alert()), CALM)
    assert gone(int(child.read_text()))


def test_labels_do_not_show_arguments():
    assert Command("/usr/bin/curl -H 'Authorization: secret'").label == "command curl"
    assert Command("it's broken").label == "command it's"
    with pytest.raises(UsageError):
        Command("  ")


def test_a_notification_arrives():
    with receiving((200, {})) as receiver:
        delivery = BackgroundDelivery(Notify(f"json://127.0.0.1:{receiver.port}/"))
        delivery.write(event(START))
        delivery.write(event(alert(level="warning", rule="bits>3 within 30 s", seconds_left=28.2)))
        assert delivery.drain() == []
        delivery.close()
    (got,) = receiver.got
    assert got["title"] == "Disclosure of me"
    assert got["message"] == "warning at 0:41: 3 bits in about 28 s (bits>3 within 30 s, now 3.4)"


def test_a_notification_that_is_not_taken_shows_no_address_and_follows_no_redirect(capfd):
    with receiving() as elsewhere:
        for answer in ((500, {}), (307, {"Location": elsewhere.url})):
            with receiving(answer) as receiver:
                delivery = BackgroundDelivery(
                    Notify(f"json://me:secret@127.0.0.1:{receiver.port}/")
                )
                delivery.write(event(alert()))
                assert delivery.drain() == [
                    "notify json: 1 of 1 alert not delivered (the service did not take it)"
                ]
                delivery.close()
                assert len(receiver.got) == 1
        assert elsewhere.got == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("url", ["", "nonsense", "nonsense://secret", "json://"])
def test_an_address_that_apprise_does_not_know(url, capfd):
    with pytest.raises(UsageError, match="--notify needs an address") as caught:
        Notify(url)
    assert "secret" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


def test_the_bell_rings_on_a_terminal_and_only_there():
    ours, theirs = pty.openpty()
    with open(theirs, "w") as terminal:  # noqa: PTH123
        bell = Bell(terminal)
        for record in (START, alert(), alert(state="cleared"), alert(level="warning")):
            bell.write(event(record))
        assert os.read(ours, 1) + os.read(ours, 1) == b"\a\a"
    os.close(ours)
    text = io.StringIO()
    Bell(text).write(event(alert()))
    assert text.getvalue() == ""


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")


def hook(url: str, timeout: float = 5.0, waits: tuple[float, ...] = (0.01, 0.01)) -> Webhook:
    return Webhook(url, timeout_seconds=timeout, waits_seconds=waits)


def refused(webhook: Webhook) -> str:
    """What is said of an alert that was not delivered."""
    with pytest.raises(DeliveryError) as caught:
        webhook.deliver(event(alert()), CALM)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_one_alert_is_one_post_with_who_and_when():
    before = set(threading.enumerate())
    with receiving() as receiver:
        delivery = BackgroundDelivery(hook(receiver.url))
        for record in (START, {"type": "reading", "seconds": 1}, alert()):
            delivery.write(event(record))
        (mine,) = [t for t in set(threading.enumerate()) - before if t.name.startswith("alerts to")]
        assert delivery.drain() == []
        delivery.close()
        mine.join(5)
        assert not mine.is_alive()
    (got,) = receiver.got
    assert got.pop("time").endswith("Z")
    assert got == {**alert(), "watch": "me"}
    assert receiver.methods == ["POST"]
    assert receiver.headers[0]["Content-Type"] == "application/json"
    assert receiver.headers[0]["User-Agent"].startswith("speaker-disclosure-monitor/")
    # user and password are basic authentication, and never shown
    with receiving((500, {})) as receiver:
        url = receiver.url.replace("http://", "http://me:s%20cret@")
        webhook = hook(url, waits=())
        shown = webhook.label + refused(webhook)
    assert receiver.headers[0]["Authorization"] == "Basic bWU6cyBjcmV0"
    assert shown == f"webhook 127.0.0.1:{receiver.port}answered 500"


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_what_may_pass_is_tried_again(status):
    with receiving((status, {}), (status, {"Retry-After": "0"}), (200, {})) as receiver:
        hook(receiver.url).deliver(event(alert()), CALM)
        assert len(receiver.got) == 3
    with receiving((status, {})) as receiver:  # so often and no more
        assert refused(hook(receiver.url)) == f"answered {status}"
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


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 413, 501])
def test_what_will_not_pass_is_not_tried_again(status):
    with receiving((status, {})) as receiver:
        assert refused(hook(receiver.url)) == f"answered {status}"
    assert len(receiver.got) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("same", [True, False])
def test_no_redirect_is_followed_to_another_host_or_anywhere(status, same):
    with receiving() as other, receiving() as receiver:
        to = "/elsewhere" if same else other.url.replace("127.0.0.1", "localhost")
        receiver.answers = [(status, {"Location": to})]
        where = "" if same else " to localhost"
        assert refused(hook(receiver.url)) == (
            f"answered {status}, a redirect{where}: not followed, give the final address"
        )
    assert (len(receiver.got), other.got) == (1, [])


@pytest.mark.parametrize("answer", [b"", b"SSH-2.0-dropbear\r\n\r\n", None])
def test_a_receiver_that_hangs_up_talks_nonsense_or_never_answers(answer):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for _ in range(3):
                connection, _ = server.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(answer)

        thread = threading.Thread(target=serve)
        if answer is not None:
            thread.start()
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        said = refused(hook(address, timeout=0.05 if answer is None else 5.0))
        if answer is not None:
            thread.join()
        else:
            assert said == "no answer within 0.05 s"
    assert refused(hook(address)) == "Connection refused"  # nobody listens any more


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
    assert line.endswith("44 of 50 alerts not delivered (too many alerts at once)")


def test_the_end_cuts_the_waits_between_attempts_short():
    with receiving((503, {})) as receiver:
        webhook = hook(receiver.url, waits=(1000.0,))
        delivery = BackgroundDelivery(webhook, patience_seconds=0.3)
        delivery.write(event(alert()))
        assert delivery.drain() == [f"{webhook.label}: 1 of 1 alert not delivered (answered 503)"]
        delivery.close()


def test_a_receiver_that_breaks_stops_nothing():
    class Broken:
        label = "broken"

        def deliver(self, *_: object) -> None:
            raise ZeroDivisionError("a bug")

    delivery = BackgroundDelivery(Broken())
    delivery.write(event(alert()))
    delivery.write(event(alert()))
    assert delivery.drain() == [
        "broken: 2 of 2 alerts not delivered (unexpected ZeroDivisionError)"
    ]
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
