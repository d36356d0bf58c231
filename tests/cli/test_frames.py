"""--frames: a corpus is heard once, and its frames are kept."""

from __future__ import annotations

import csv
import os
import signal
import struct
import subprocess
import time
import wave
from pathlib import Path

import pytest
import soundfile

from monitor.errors import OverlapError
from monitor.population.population import Population
from monitor.sources.file import File
from monitor.sources.frames import FramesFile
from monitor.stream.notices import session_of
from tests.sounds import RATE

pytestmark = pytest.mark.slow


@pytest.fixture
def voices(tmp_path: Path, voice) -> Path:
    for name, pitch in (("ann", 200.0), ("bob", 110.0)):
        path = tmp_path / "voices" / name / "talk.wav"
        path.parent.mkdir(parents=True)
        soundfile.write(path, voice(9.0, pitch), RATE)
    return tmp_path / "voices"


def test_a_corpus_is_heard_once_and_enrolled_from_its_frames(run, voices, tmp_path):
    frames, us = tmp_path / "frames", tmp_path / "us.npz"
    command = ("enrol", voices, "-o", us, "--replace", "--frames", frames, "--features", "f0")
    (voices / "bob" / "bad.wav").write_bytes(b"no audio")
    done = run(*command, "--jobs", "1")
    assert done.code == 4
    assert "skipped: bob/bad.wav" in done.err.replace("cannot read ", "")
    assert f"frames of 2 recordings written to {frames}, 0 there already" in done.err
    with (frames / "manifest.csv").open() as file:
        rows = [(row["path"], row["speaker"], row["session"]) for row in csv.DictReader(file)]
    assert rows == [("ann/talk.npz", "ann", "talk"), ("bob/talk.npz", "bob", "talk")]
    (voices / "bob" / "bad.wav").unlink()
    kept = us.read_bytes()
    done = run(*command, "--jobs", "1")
    assert done.code == 0
    assert "frames of 0 recordings" in done.err
    assert "2 there already" in done.err
    assert run("enrol", frames, "-o", us, "--replace").code == 0
    assert us.read_bytes() == kept
    assert Population.load(us).names == ("ann", "bob")
    with (
        File(voices / "ann" / "talk.wav") as talk,
        pytest.raises(OverlapError, match="were enrolled as ann"),
    ):
        session_of(Population.load(us), talk.provenance())


def test_frames_that_were_made_otherwise_are_refused(run, voices, tmp_path):
    frames = tmp_path / "frames"
    command = ("enrol", voices, "--features", "f0", "--frames", frames)
    assert run(*command, "-o", tmp_path / "us.npz").code == 0
    done = run(*command, "-o", tmp_path / "more.npz", "--channel", "1")
    assert done.code == 2
    assert f"--frames {frames}: its frames were made with channel all, not 1" in done.complaint
    done = run("score", frames, "-o", tmp_path / "scores.npz", "--frames", tmp_path / "more")
    assert done.code == 2
    assert "holds frames: leave out --frames" in done.complaint


def test_nothing_to_hear_is_said(run, voices, tmp_path):
    frames = ("--frames", tmp_path / "f", "--features", "f0", "--channel", "7")
    done = run("enrol", voices, "-o", tmp_path / "us.npz", *frames)
    assert done.code == 1
    assert "nothing could be heard" in done.complaint


def silence(path: Path, hours: int) -> None:
    """Hours of it, which take no room on the disk and long to hear."""
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes(b"")
    size = 2 * RATE * 3600 * hours
    with path.open("r+b") as raw:
        raw.truncate(44 + size)
        for place, value in ((4, 36 + size), (40, size)):
            raw.seek(place)
            raw.write(struct.pack("<I", value))


def test_ctrl_c_leaves_nothing_half_written_and_what_was_heard(command, voices, tmp_path):
    silence(voices / "ann" / "long.wav", 24)  # a minute's work, on a fast machine
    frames = tmp_path / "frames"
    us = ("-o", tmp_path / "us.npz", "--frames", frames)
    arguments = [*command, "enrol", voices, *us, "--jobs", "2", "--features", "f0"]
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as process:
        until = time.monotonic() + 100
        while not (frames / "ann" / "talk.npz").exists():
            assert time.monotonic() < until
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGINT)
        err = process.communicate(timeout=60)[1]
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert [line for line in err.splitlines() if line][-2:] == [
        "monitor: what was heard is kept; to go on, run the same command again",
        "monitor: interrupted",
    ]
    assert [path.name for path in frames.rglob(".*")] == []
    assert not (frames / "ann" / "long.npz").exists()
    assert FramesFile(frames / "ann" / "talk.npz").seconds == pytest.approx(9.0)
