"""The real thing: `monitor replay` killed by the system, and resumed."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.records import read_records
from tests.stream.streams import RATE, sounds

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 120  # a run takes a few
RAISED = 3


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "monitor", "replay", *arguments]


def start(folder: Path, arguments: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(*arguments),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(folder: Path, *arguments: str) -> tuple[int, str]:
    """Exit status and what was said to people."""
    with start(folder, arguments) as process:
        _, said = process.communicate(timeout=PATIENCE_SECONDS)
        return process.returncode, said


def kill(folder: Path, name: str, *arguments: str, lines: int) -> None:
    """Start a run and kill it once it can be resumed and has written so many lines more."""
    run, state = folder / name, folder / f"{name}.state"
    before = state.stat().st_mtime_ns if state.exists() else 0
    written = written_before = run.read_bytes().count(b"\n") if run.exists() else 0
    end = time.monotonic() + PATIENCE_SECONDS
    with start(folder, arguments) as process:
        while not (state.exists() and state.stat().st_mtime_ns > before) or (
            written < written_before + lines
        ):
            assert process.poll() is None, (process.communicate(), "it ended before it was killed")
            assert time.monotonic() < end
            time.sleep(0.01)
            written = run.read_bytes().count(b"\n") if run.exists() else 0
        process.kill()
        process.communicate()
    assert process.returncode == -9
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    assert b'"type":"end"' not in run.read_bytes()


def content(path: Path) -> bytes:
    """The bytes of a run, but for the times of day."""
    return re.sub(rb'"time":"[^"]*"', b'"time":""', path.read_bytes())


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four minutes of a synthetic voice."""
    path = tmp_path_factory.mktemp("talk") / "talk.flac"
    soundfile.write(path, np.tile(sounds(30.0), 8), RATE)
    return path


@pytest.fixture(scope="module")
def whole(talk: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    status, said = finish(folder, str(talk), "--jsonl", "run.jsonl", *OPTIONS)
    assert status == RAISED, said
    assert [path.name for path in folder.iterdir()] == ["run.jsonl"]
    return folder / "run.jsonl"


OPTIONS = ["--step", "0.1", "--speed", "60", "--alert", "bits>0.5 for 2 s"]


def test_a_killed_run_resumed_equals_one_that_was_not(talk, whole, tmp_path):
    arguments = [str(talk), "--jsonl", "run.jsonl", *OPTIONS]
    kill(tmp_path, "run.jsonl", *arguments, lines=400)
    kill(tmp_path, "run.jsonl", *arguments, "--resume", lines=300)
    kill(tmp_path, "run.jsonl", *arguments, "--resume", lines=200)
    # torn in the middle of a line, as when the power fails
    with (tmp_path / "run.jsonl").open("ab") as file:
        file.write(b'{"type":"reading","sec')
    status, said = finish(tmp_path, *arguments, "--resume", "--speed", "max")
    assert status == RAISED, said  # an alert raised before the kill counts
    assert content(tmp_path / "run.jsonl") == content(whole)
    assert [path.name for path in tmp_path.iterdir()] == ["run.jsonl"]
    assert stat.S_IMODE((tmp_path / "run.jsonl").stat().st_mode) == 0o600
    records = read_records(whole)
    assert len([record for record in records if record["type"] == "reading"]) == 2400
    assert any(record["type"] == "alert" for record in records)
    assert records[-1]["complete"] is True

    # and now that it has ended, nothing is left to resume
    status, said = finish(tmp_path, *arguments, "--resume")
    assert status == 1
    assert content(tmp_path / "run.jsonl") == content(whole)
    (line,) = said.splitlines()
    assert "nothing to resume" in line


def test_a_killed_run_is_not_resumed_as_another(talk, tmp_path):
    arguments = [str(talk), "--jsonl", "run.jsonl", *OPTIONS]
    kill(tmp_path, "run.jsonl", *arguments, lines=50)
    before = (tmp_path / "run.jsonl").read_bytes()
    status, said = finish(tmp_path, *arguments, "--resume", "--step", "0.2")
    assert status == 1
    assert said.splitlines()[-1].endswith("run with --replace to start anew")
    assert "(not the same: step)" in said
    assert "Traceback" not in said
    assert (tmp_path / "run.jsonl").read_bytes() == before
    assert (tmp_path / "run.jsonl.state").exists()
    # started anew, on less of it
    status, said = finish(tmp_path, *arguments, "--end", "5", "--replace")
    assert status in (0, RAISED, 4), said  # so little speech may leave an alert undecided
    assert [path.name for path in tmp_path.iterdir()] == ["run.jsonl"]
    assert read_records(tmp_path / "run.jsonl")[-1]["seconds"] == 5.0


def test_part_of_a_real_recording(shared, tmp_path):
    """Opus, from the middle of its second minute, resampled, with many pauses."""
    (recording,) = sorted((shared / "speech/long/kerstin").glob("*.opus"))[:1]
    arguments = [str(recording), "--start", "65", "--end", "165", "--step", "0.1", "--speed", "60"]
    status, said = finish(tmp_path, *arguments, "--jsonl", "whole.jsonl")
    assert status == 0, said
    kill(tmp_path, "run.jsonl", *arguments, "--jsonl", "run.jsonl", lines=300)
    status, said = finish(tmp_path, *arguments, "--jsonl", "run.jsonl", "--resume")
    assert status == 0, said
    assert content(tmp_path / "run.jsonl") == content(tmp_path / "whole.jsonl")
    assert read_records(tmp_path / "run.jsonl")[-1]["seconds"] == 100.0


@pytest.mark.parametrize("output", [["--jsonl", "-"], []])
def test_standard_output_cannot_be_resumed(talk, tmp_path, output):
    status, said = finish(tmp_path, str(talk), *output, "--resume")
    assert status == 2
    assert said == "monitor: --resume needs the file of the interrupted run: --jsonl FILE\n"


def test_nothing_to_resume(talk, tmp_path):
    status, said = finish(tmp_path, str(talk), "--jsonl", "run.jsonl", "--resume")
    assert status == 1
    assert said == (
        "monitor: run.jsonl.state: there is nothing to resume; leave out --resume to start anew\n"
    )
    assert list(tmp_path.iterdir()) == []
