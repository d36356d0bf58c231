"""A real broker of MQTT on a free port of loopback, and somebody who follows what it is told."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

USER, PASSWORD = "house", "correct horse"
SBIN = ":/usr/sbin:/usr/local/sbin"
"""Where Debian has it: not on everybody's path."""


class Mosquitto:
    """A broker that knows one user; it keeps what it was told over a restart.

    Args:
        folder: for its files.
        certificate: of an encrypted connection, with its key beside it.
    """

    def __init__(self, folder: Path, certificate: Path | None = None) -> None:
        self.folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        passwords = folder / "passwords"
        subprocess.run(
            ["mosquitto_passwd", "-b", "-c", str(passwords), USER, PASSWORD],
            check=True, capture_output=True,
        )  # fmt: skip
        lines = [
            f"listener {self.port} 127.0.0.1",
            f"user {pwd.getpwuid(os.geteuid()).pw_name}",
            "allow_anonymous false",
            f"password_file {passwords}",
            "persistence true",
            f"persistence_location {folder}/",
        ]
        if certificate is not None:
            lines += [f"certfile {certificate}", f"keyfile {certificate.with_suffix('.key')}"]
        self._scheme = "mqtt" if certificate is None else "mqtts"
        (folder / "mosquitto.conf").write_text("\n".join(lines) + "\n")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address, without the password."""
        return f"{self._scheme}://{USER}@127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        program = shutil.which("mosquitto", path=os.environ["PATH"] + SBIN)
        assert program is not None
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [program, "-c", str(self.folder / "mosquitto.conf")], stdout=log, stderr=log
            )
        until = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                assert self._process.poll() is None, (self.folder / "log").read_text()
                assert time.monotonic() < until
                time.sleep(0.02)

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, such as SIGSTOP."""
        self._process.send_signal(number)

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()
            self._process.wait(20)
            self._process = None


class Follower:
    """A subscriber to all topics: what came, in order, as topic, payload and whether retained."""

    def __init__(self, broker: Mosquitto, name: str = "") -> None:
        client_module = pytest.importorskip("paho.mqtt.client")
        from paho.mqtt.enums import CallbackAPIVersion

        self.messages: list[tuple[str, str, bool]] = []
        self._ready = threading.Event()
        # one with a name is told later what it missed
        self.client = client_module.Client(
            CallbackAPIVersion.VERSION2, client_id=name, clean_session=not name
        )
        self.client.username_pw_set(USER, PASSWORD)
        self.client.reconnect_delay_set(1, 1)
        self.client.on_connect = lambda client, *_: client.subscribe("#", 1)
        self.client.on_subscribe = lambda *_: self._ready.set()
        self.client.on_message = self._on_message
        self.client.connect("127.0.0.1", broker.port)
        self.client.loop_start()
        assert self._ready.wait(10)

    def _on_message(self, _: Any, __: object, message: Any) -> None:
        self.messages.append((message.topic, message.payload.decode(), message.retain))

    def of(self, topic: str) -> list[str]:
        """Payloads of a topic, by its end."""
        return [payload for name, payload, _ in list(self.messages) if name.endswith(topic)]

    def wait_for(self, topic: str, holds: Callable[[str], bool] = bool, seconds: float = 15) -> str:
        """Wait until a payload of a topic is so; return it."""
        until = time.monotonic() + seconds
        while not (matches := [payload for payload in self.of(topic) if holds(payload)]):
            assert time.monotonic() < until, self.messages
            time.sleep(0.02)
        return matches[0]

    def publish(self, topic: str, payload: str, *, retain: bool = False) -> None:
        """Publish, and wait until the broker has it."""
        self.client.publish(topic, payload, 1, retain=retain).wait_for_publish(10)

    def close(self) -> None:
        """Let go of the broker."""
        self.client.disconnect()
        self.client.loop_stop()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    """A running broker; skips without mosquitto."""
    check_broker()
    server = Mosquitto(tmp_path)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def follower(broker: Mosquitto) -> Iterator[Follower]:
    """Somebody who follows all topics."""
    made = Follower(broker)
    yield made
    made.close()


def check_broker() -> None:
    """Skip where there is no broker to be had."""
    pytest.importorskip("paho.mqtt.client", reason="needs the extra 'mqtt'")
    if shutil.which("mosquitto", path=os.environ["PATH"] + SBIN) is None:
        pytest.skip("needs a broker of MQTT (Debian: mosquitto)")
