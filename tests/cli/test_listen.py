"""monitor listen, enroll --microphone, devices and doctor: on a real sound device, as processes."""

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from monitor.events.schema import SCHEMA
from monitor.population.population import Population
from tests.settings import configured
from tests.virtual_microphone import DEVICE, VirtualMicrophone, virtual_microphone

__all__ = ["virtual_microphone"]

READER = "dev-clean/1272/128104.opus"
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


@pytest.fixture
def start(virtual_microphone, command, tmp_path):
    """Starts the command line where it hears the virtual microphone."""
    running = []

    def start(*arguments: object, **options: Any) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*command, *configured(arguments, tmp_path)],
            env=virtual_microphone.environment,
            **{
                "stdin": subprocess.DEVNULL,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE,
                **options,
            },
            text=True,
        )
        running.append(process)
        return process

    yield start
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def speaking(virtual_microphone: VirtualMicrophone, shared: Path) -> VirtualMicrophone:
    """A reader speaks into it."""
    virtual_microphone.play_file(shared / "speech" / READER, 120.0)
    return virtual_microphone


def records(text: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in text.splitlines()]
    for record in found:
        VALIDATOR.validate(record)
    return found


def two_readings(log: Path, process: subprocess.Popen[str]) -> None:
    """Wait until so many are there."""
    until = time.monotonic() + 60
    while not log.exists() or log.read_text().count('"reading"') < 2:
        assert time.monotonic() < until
        assert process.poll() is None
        time.sleep(0.1)


def test_listen_gives_the_records_of_a_replay_and_their_lag(start, speaking):
    process = start("listen", "--for", "12", "--watch", "1272", "--alert", "bits>0 for 2s")
    out, err = process.communicate(timeout=120)
    found = records(out)
    assert [found[0]["type"], found[-1]["type"]] == ["start", "end"]
    readings = [record for record in found if record["type"] == "reading"]
    assert [reading["seconds"] for reading in readings] == [float(t) for t in range(1, 13)]
    assert all(reading["lag"] >= 0 for reading in readings)
    assert readings[-1]["speech"] > 3
    assert readings[-1]["features"]["f0"]["usable"] > 1
    assert found[0]["recordings"] == ["default"]
    # a busy machine may have thinned
    assert {r["reason"] for r in found if r["type"] == "gap"} <= {"thinned"}
    raised = [record for record in found if record["type"] == "alert"]
    assert process.returncode == (3 if raised else 4 if found[-1]["gaps"] else 0)
    assert any("speech" in line for line in err.splitlines()[-2:])


def test_people_are_told_apart_by_a_diariser_that_writes_while_they_speak(
    start, speaking, tmp_path
):
    log = tmp_path / "run.jsonl"
    options = ("--turns", "-", {"turns-delay": "3"}, "--features", "f0", {"on-change": "ignore"})
    process = start("listen", "--for", "14", *options, "--jsonl", log, stdin=subprocess.PIPE)
    began = time.monotonic()
    for k in range(7):  # every other second somebody else, told when it is over
        time.sleep(max(began + 2 * k + 2 - time.monotonic(), 0))
        process.stdin.write(f"SPEAKER room 1 {2 * k} 2 <NA> <NA> S{k % 2} <NA> <NA>\n")
        process.stdin.flush()
    process.stdin.close()
    process.stdin = None
    _, err = process.communicate(timeout=120)
    found = records(log.read_text())
    assert found[0]["people"] == []
    readings = [record for record in found if record["type"] == "reading"]
    assert {reading["label"] for reading in readings} == {"S0", "S1"}, err
    end = found[-1]
    assert [row["label"] for row in end["people"]] == ["S0", "S1"]
    assert end["people"][0]["seconds"] > 3
    assert max(reading["lag"] for reading in readings) > 2  # sound waits for its turn
    assert "2 people" in err


def test_control_c_ends_it_with_an_end_record(start, virtual_microphone, tmp_path):
    log = tmp_path / "run.jsonl"
    process = start("listen", "--features", "f0", "--jsonl", log, "--device", DEVICE)
    two_readings(log, process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 4, err  # nobody spoke
    assert out == ""
    found = records(log.read_text())
    assert found[-1]["type"] == "end"
    assert found[-1]["complete"]
    assert found[0]["recordings"] == [DEVICE]


def test_after_standing_still_it_catches_up_and_nothing_is_lost(start, speaking, tmp_path):
    log = tmp_path / "run.jsonl"
    process = start("listen", "--features", "f0", "--jsonl", log, "--for", "12")
    two_readings(log, process)
    process.send_signal(signal.SIGSTOP)
    time.sleep(6.0)
    process.send_signal(signal.SIGCONT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    found = records(log.read_text())
    readings = [record for record in found if record["type"] == "reading"]
    assert [reading["seconds"] for reading in readings] == [float(t) for t in range(1, 13)]
    assert max(reading["lag"] for reading in readings) > 4
    assert readings[-1]["lag"] < 2
    assert found[-1]["complete"]


def test_a_device_that_goes_for_good_leaves_everything_so_far_and_4(
    start, virtual_microphone, tmp_path
):
    log = tmp_path / "run.jsonl"
    process = start("listen", "--features", "f0", "--jsonl", log, {"reconnect": "2"})
    two_readings(log, process)
    virtual_microphone.stop()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 4
    found = records(log.read_text())
    (gap,) = [record for record in found if record["type"] == "gap"]
    assert gap["reason"] == "device lost"
    assert not found[-1]["complete"]
    assert "is gone; waiting up to 2 s for it" in err


def test_devices_and_doctor(start, virtual_microphone):
    done = start("doctor", "--devices")
    out, err = done.communicate(timeout=60)
    assert done.returncode == 0, err
    assert DEVICE in out
    assert out.count("*") == 2  # the input and the output
    done = start("doctor", "--hear", "--json")
    found = {each["what"]: each for each in json.loads(done.communicate(timeout=120)[0])}
    for what in ("PortAudio", "inputs", "phones", "population", "disk"):
        assert found[what]["state"] == "ok", found[what]
    assert "silence" in found["hearing"]["words"].lower()
    assert done.returncode == (1 if any(f["state"] == "broken" for f in found.values()) else 0)


def test_enrolling_at_the_microphone_and_listening_for_it(start, speaking, tmp_path):
    us = tmp_path / "us.npz"
    arguments = ("--microphone", "--speaker", "me", "--seconds", "10", "--features", "f0")
    done = start("enrol", *arguments, "--base", "reference", "-o", us)
    _, err = done.communicate(timeout=120)
    assert done.returncode == 0, err
    population = Population.load(us)
    assert population.names[-1] == "me"
    assert len(population) == len(Population.reference()) + 1
    assert population.template_seconds[-1] == 10.0
    assert "speak, about anything" in err.lower()
    assert "unless watched" in err
    listening = start("listen", "-p", us, "--watch", "me", "--for", "8")
    found = records(listening.communicate(timeout=120)[0])
    assert (found[0]["watch"], found[0]["template_seconds"]) == ("me", 10)
    last = [record for record in found if record["type"] == "reading"][-1]
    assert last["features"]["f0"]["rank"] <= 20


def test_too_little_speech_enrols_nobody(start, virtual_microphone, tmp_path):
    us = tmp_path / "us.npz"
    arguments = ("--microphone", "--speaker", "me", "--features", "f0", "-o", us)
    done = start("enrol", *arguments)
    plan = "plan: me, up to 60 s of speech from the microphone\n"
    assert done.stderr.readline() == plan
    assert done.stderr.readline().startswith("Speak, about anything")
    time.sleep(1)
    done.send_signal(signal.SIGINT)
    _, err = done.communicate(timeout=60)
    assert done.returncode == 1
    assert "othing was enrolled" in err.splitlines()[-1]
    assert not us.exists()
