"""Commands, notifications and the bell, all of them real."""

from __future__ import annotations

import io
import json
import os
import pty
import shlex
import subprocess
import sys
import threading

import pytest

from monitor.alerts.actions.receivers import SECRETS, Bell, Command, Notify
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


def test_what_a_command_prints_is_not_data(capfd):
    Command("echo loud; echo louder >&2").deliver(event(alert()), CALM)
    out, err = capfd.readouterr()
    assert out == ""
    assert err == "loud\nlouder\n"


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
    for name in ("MONITOR_WEB_TOKEN", "MONITOR_WEBHOOK", "MONITOR_NOTIFY"):
        monkeypatch.setenv(name, "hush")
    monkeypatch.setenv("OTHER", "told")
    Command(f"env > '{tmp_path / 'env'}'").deliver(event(alert()), CALM)
    text = (tmp_path / "env").read_text()
    assert "OTHER=told" in text
    assert "hush" not in text


def test_a_command_that_does_not_read(tmp_path):
    Command("true").deliver(event({**alert(), "rule": "x" * 1_000_000}), CALM)


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


def test_a_notification_arrives(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with receiving((200, {})) as receiver:
        delivery = BackgroundDelivery(Notify(f"json://127.0.0.1:{receiver.port}/"))
        delivery.write(event(START))
        delivery.write(event(alert(level="warning", rule="bits>3 within 30 s", seconds_left=28.2)))
        assert delivery.drain() == []
        delivery.close()
    (got,) = receiver.got
    assert got["title"] == "Disclosure of me"
    assert got["message"] == "warning at 0:41: 3 bits in about 28 s (bits>3 within 30 s, now 3.4)"


def test_a_notification_that_is_not_taken_shows_no_address(monkeypatch, capfd):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with receiving((500, {})) as receiver:
        delivery = BackgroundDelivery(Notify(f"json://me:secret@127.0.0.1:{receiver.port}/"))
        delivery.write(event(alert()))
        assert delivery.drain() == [
            "notify json: 1 of 1 alert not delivered: the service did not take it"
        ]
        delivery.close()
    assert capfd.readouterr() == ("", "")


def test_a_notification_follows_no_redirect(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with receiving() as elsewhere, receiving((307, {"Location": elsewhere.url})) as receiver:
        with pytest.raises(DeliveryError):
            Notify(f"json://127.0.0.1:{receiver.port}/").deliver(event(alert()), CALM)
        assert len(receiver.got) == 1
        assert elsewhere.got == []


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


def test_no_command_gets_the_secrets_of_another_action():
    assert {option.environment for option in ACTION_OPTIONS} - {""} <= SECRETS
