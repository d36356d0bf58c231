"""A reader speaks into one virtual device, and the other side records another."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import soundfile

from monitor import measure
from monitor.run import MeasurementSettings
from tests.broker import PASSWORD, Follower, Mosquitto, broker, follower
from tests.settings import configured
from tests.virtual_microphone import DEVICE, VirtualMicrophone, virtual_microphone

__all__ = ["broker", "follower", "virtual_microphone"]

READER, RECORDING = "1462", "speech/dev-clean/1462/170145.opus"
MEETING = "meeting"
pytestmark = pytest.mark.slow


class OtherSide:
    """Records what a meeting hears."""

    def __init__(self, microphone: VirtualMicrophone, path: Path) -> None:
        self.path, self._microphone = path, microphone
        microphone.control("load-module", "module-null-sink", f"sink_name={MEETING}", "rate=48000")
        self._recorder = subprocess.Popen(
            ["parec", "-d", f"{MEETING}.monitor", "--file-format=wav", "--rate=48000",
             "--channels=1", str(path)],
            env=microphone.environment, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def stop(self) -> np.ndarray:
        """Return the sound, shape (n,), at 48 kHz."""
        self._recorder.send_signal(signal.SIGINT)
        self._recorder.wait(10)
        return np.asarray(soundfile.read(self.path, dtype="float32")[0])


@pytest.fixture
def other_side(virtual_microphone: VirtualMicrophone, tmp_path: Path) -> Iterator[OtherSide]:
    side = OtherSide(virtual_microphone, tmp_path / "other.wav")
    yield side
    side._recorder.kill()
    side._recorder.wait()


@pytest.fixture
def through(virtual_microphone, tmp_path):
    """Starts a monitor that lets a voice through, and waits until it hears."""
    processes = []

    def start(*options: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "monitor", *configured(
                ["listen", "--device", DEVICE, "--through", MEETING, "-w", READER, "--jsonl",
                 tmp_path / "run.jsonl", {"bell": False}, *options], tmp_path)],
            env=virtual_microphone.environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        processes.append(process)
        log = tmp_path / "run.jsonl"
        until = time.monotonic() + 60
        while not log.exists() or '"reading"' not in log.read_text():  # it hears
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < until
            time.sleep(0.1)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture
def speak(virtual_microphone: VirtualMicrophone, shared: Path):
    def play(seconds: float) -> subprocess.Popen[bytes]:
        return virtual_microphone.play_file(shared / RECORDING, seconds)

    return play


def test_the_other_side_never_learns_more_than_the_budget(other_side, through, speak, tmp_path):
    process = through("--budget", 8, "--for", 25)
    speak(20.0)
    assert process.wait(90) == 3, process.communicate()[1]
    events = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    (alert,) = (event for event in events if event["type"] == "alert")
    assert "muted" in alert["rule"]
    assert (events[-1]["peak_bits"] or 0.0) <= 8
    sound = other_side.stop()
    loud = np.flatnonzero(np.abs(sound) > 1e-3) / 48_000
    late = any("too late" in failure for failure in events[-1]["failures"])  # on a busy machine
    assert late or loud.size
    assert np.ptp(loud[[0, -1]] if loud.size else 0.0) < 20 - 2
    settings = MeasurementSettings(on_change="note")
    heard = measure(other_side.path, watch=READER, settings=settings)
    assert max(reading.bits or 0.0 for reading in heard.readings) <= 8


def test_after_the_budget_it_goes_on_through_an_anonymiser(other_side, through, speak, tmp_path):
    process = through("--budget", 6, "--then", "mcadams:random", "--for", 20, {"protect-seed": 1})
    speak(15.0)
    said = process.communicate(timeout=90)[1]
    assert "attacker who knows the method" in said
    events = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    alerts = [event["rule"] for event in events if event["type"] == "alert"]
    assert "mcadams:random" in alerts[0]
    assert np.abs(other_side.stop()).max() > 0.01


def test_a_killed_monitor_leaves_silence(other_side, through, speak):
    process = through("--budget", 11, "--delay", 0)
    speak(20.0)
    time.sleep(6)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    time.sleep(3)
    sound = other_side.stop()
    assert np.abs(sound).max() > 0.01
    assert not np.abs(sound[-48_000:]).max() > 1e-4


@pytest.mark.parametrize("options", [(), ("--budget", 11)])
def test_a_microphone_that_the_server_replaced_is_muted(
    virtual_microphone, other_side, through, speak, tmp_path, options
):
    virtual_microphone.control("load-module", "module-rescue-streams")
    process = through(*options)
    speak(2.0).wait()
    time.sleep(1)
    modules = virtual_microphone.control("list", "short", "modules").splitlines()
    (own,) = (line.split("\t")[0] for line in modules if "sink_name=speech" in line)
    virtual_microphone.control("unload-module", own)
    time.sleep(2)  # by now it records what it sends
    before = virtual_microphone.control("list", "source-outputs")
    assert f'application.process.id = "{process.pid}"' in before
    tone = 0.3 * np.sin(2 * np.pi * 300 / 48_000 * np.arange(4800))
    soundfile.write(tmp_path / "tone.wav", tone, 48_000)
    subprocess.run(["paplay", "-d", MEETING, tmp_path / "tone.wav"], check=True,
                   env=virtual_microphone.environment)  # fmt: skip
    time.sleep(2)
    sound = other_side.stop()
    process.send_signal(signal.SIGINT)
    assert f"{MEETING}.monitor" in process.communicate(timeout=60)[1]
    end = json.loads((tmp_path / "run.jsonl").read_text().splitlines()[-1])
    assert any(f"{MEETING}.monitor" in failure for failure in end["failures"])
    assert not np.abs(sound[-48_000:]).max() > 1e-3  # the tone does not come back for ever


@pytest.fixture
def house(virtual_microphone, broker: Mosquitto) -> list[str]:
    """Options by which the voice is shown in a house."""
    virtual_microphone.environment["MONITOR_MQTT_PASSWORD"] = PASSWORD
    return ["--mqtt", broker.url]


def test_the_house_mutes_and_unmutes(other_side, through, speak, house, follower: Follower):
    through(*house)
    follower.publish("disclosure-monitor/voice/mute/set", "ON")
    follower.wait_for("voice/mute", lambda text: '"muted"' in text)
    speak(15.0)
    time.sleep(7)
    follower.messages.clear()
    follower.publish("disclosure-monitor/voice/mute/set", "OFF")
    follower.wait_for("voice/mute", lambda text: '"clear"' in text)
    time.sleep(10)
    loud = np.flatnonzero(np.abs(other_side.stop()) > 1e-3) / 48_000
    assert 2 < loud[-1] - loud[0] < 10


def test_the_house_is_told_when_the_budget_was_spent(other_side, through, speak, house, follower):
    through("--budget", 8, *house)
    speak(20.0)
    alert = json.loads(follower.wait_for("voice/alert", lambda text: '"ON"' in text, 40))
    assert alert["rule"] == "budget of 8 bits spent: muted"
    follower.wait_for("voice/mute", lambda text: '"muted"' in text)
    other_side.stop()
