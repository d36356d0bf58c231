"""monitor experiment: from a folder of recordings to a page."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest
import soundfile

QUICK = ("--replicates", 20, "--trials", 3, "--jobs", 1)
LENGTHS = ("--lengths", "1,10", "--template-lengths", "10")


@pytest.mark.slow
def test_a_folder_becomes_a_page(run, people, tmp_path):
    out = tmp_path / "out"
    done = run("experiment", people, "-o", out, *QUICK, *LENGTHS)
    assert (done.code, done.out) == (0, "")
    assert "cross session, sweep: 12 speakers, 12 tested, 2 cells" in done.err
    assert "Does disclosure rise with the length of the test, T?" in done.err
    first = json.loads((out / "results.json").read_text())
    assert {cell["session"] for cell in first["cells"]} == {"cross", "same"}
    assert {cell["systems"]["f0"]["tested"] for cell in first["cells"]} == {12}
    assert first["frame_counts"]["f0"]
    assert (out / "figure4.svg").is_file()
    assert not (out / "frames").exists()  # they were ready-made
    for path in out.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0
    # another experiment in the same place: who trained the network is not tested
    names = sorted(folder.name for folder in people.iterdir())[:2]
    (tmp_path / "trainers").write_text("\n".join(names))
    trained = ("--trained", f"f0={tmp_path / 'trainers'}", "--session", "same")
    assert run("experiment", people, "-o", out, *QUICK, *LENGTHS, *trained).code == 0
    found = json.loads((out / "results.json").read_text())
    assert {(c["session"], c["systems"]["f0"]["tested"]) for c in found["cells"]} == {("same", 10)}


@pytest.mark.slow
def test_audio_is_heard_once_and_a_broken_file_is_skipped(run, tmp_path):
    generator = np.random.default_rng(0)
    for i in range(3):
        place = tmp_path / "voices" / f"p{i}"
        place.mkdir(parents=True)
        seconds = np.arange(8 * 16_000) / 16_000
        tone = np.sign(np.sin(2 * np.pi * (100 + 40 * i) * seconds))
        sound = 0.3 * tone * (1 + 0.1 * generator.normal(size=seconds.size))
        soundfile.write(place / "a.flac", sound, 16_000)
    (tmp_path / "voices" / "p0" / "b.flac").write_bytes(b"fLaC broken")
    options = ("--features", "f0", "--lengths", 1, "--template-lengths", 1, "--tables-at", 1, 1)
    out = tmp_path / "out"
    done = run("experiment", tmp_path / "voices", "-o", out, *QUICK, *options)
    assert done.code == 4
    assert "b.flac" in done.err
    frames = {path: path.stat().st_mtime_ns for path in (out / "frames").rglob("*.npz")}
    assert len(frames) == 3
    assert out.stat().st_mode & 0o777 == 0o700
    assert run("experiment", tmp_path / "voices", "-o", out, *QUICK, *options).code == 4
    assert {path: path.stat().st_mtime_ns for path in (out / "frames").rglob("*.npz")} == frames
    page = (out / "index.html").read_text()
    assert "cannot be decided with so few speakers" in page
    assert "b.flac" in page


@pytest.mark.slow
def test_killed_it_goes_on(command, people, tmp_path):
    out = tmp_path / "out"
    whole = [*command, "experiment", str(people), "-o", str(out), *map(str, LENGTHS)]
    running = subprocess.Popen(whole, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while not list((out / "cache").glob("*.result")) and time.monotonic() < until:
        time.sleep(0.02)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    kept = {path: path.stat().st_mtime_ns for path in (out / "cache").glob("*.result")}
    assert kept
    assert not (out / "index.html").exists()
    subprocess.run(whole, check=True, stderr=subprocess.DEVNULL)
    assert (out / "index.html").exists()
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("{}/nowhere", "-o", "{}/out"), "nowhere does not exist"),
        (("{}/empty", "-o", "{}/out"), "no recording in empty"),
        (("{people}", "-o", "{}/file"), "is a file; name a folder"),
        (("{people}", "-o", "{}/other"), "holds something else"),
        (("{people}", "-o", "{}/out", "--lengths", "4000"), "fewer than two speakers"),
        (("{people}", "-o", "{}/out", "--lengths", "1.23"), "multiple of 0.1"),
        (("{people}", "-o", "{}/out", "--tables-at", 99, 99), "shorter --tables-at"),
        (
            ("{people}", "-o", "{}/out", "--features", "voice"),
            "no frames of voice: there are those of f0",
        ),
        (("{people}", "-o", "{}/out", "--trained", "f0={}/empty"), "cannot be read"),
        (("{people}", "-o", "{}/out", "--trained", "voice={}/names"), "--trained voice"),
        (("{}/damaged.npz", "-o", "{}/out"), "damaged"),
    ],
)
def test_what_cannot_be_done_is_one_line(run, people, tmp_path, options, says):
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "index.html").write_text("mine")
    (tmp_path / "file").write_text("")
    (tmp_path / "damaged.npz").write_text("PK")
    (tmp_path / "names").write_text(min(folder.name for folder in people.iterdir()))
    given = [str(each).replace("{}", str(tmp_path)).replace("{people}", str(people))
             for each in options]  # fmt: skip
    done = run("experiment", *given)
    assert done.code in (1, 2)
    assert says in done.err.splitlines()[-1]
    assert "Traceback" not in done.err
    assert (tmp_path / "other" / "index.html").read_text() == "mine"
    assert not (tmp_path / "out").exists()


def test_a_folder_within_the_corpus_is_refused(run, people, tmp_path):
    shutil.copytree(people, tmp_path / "voices")
    done = run("experiment", tmp_path / "voices", "-o", tmp_path / "voices" / "out")
    assert done.code == 2
    assert "lies in the corpus itself" in done.err
