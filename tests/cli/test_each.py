"""monitor replay --each: in several processes, killed and gone on with, and on a cluster."""

import csv
import os
import signal
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest
import soundfile

from tests.contracts import voice as gliding
from tests.dask_cluster import DaskCluster
from tests.sounds import RATE, synthetic

pytestmark = pytest.mark.slow

PATIENCE_SECONDS = 120.0
QUICK = ("--features", "f0", "--alert", "bits>0.1 for 1 s after 0 s")


@pytest.fixture
def talks(tmp_path: Path, voice) -> Path:
    folder = tmp_path / "talks"
    sounds = [voice(seconds, 130.0 + 40 * n) for n, seconds in enumerate((8.0, 6.0, 9.0))]
    for number, sound in enumerate((gliding(14.0), *sounds)):  # the first repeats nothing
        path = folder / f"day {number % 2}" / f"{number + 8}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, sound, RATE)
    return folder


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_killed_and_gone_on_with_it_is_the_same_table_whatever_the_processes(
    run, command, talks, tmp_path, voice
):
    for number in range(8):
        soundfile.write(talks / f"{number}.wav", voice(30.0, 90.0 + 10 * number), RATE)
    whole, table = tmp_path / "whole.csv", tmp_path / "out.csv"
    done = run("replay", talks, "--each", "--summary", whole, *QUICK, "--jobs", "1")
    assert (done.code, done.out) == (3, "")
    assert "measured 12 recordings (" in done.err
    assert "an alert was raised in 12" in done.err
    first = rows(whole)[0]
    alone = run("replay", first["recording"], *QUICK)
    assert float(first["bits"]) == pytest.approx(alone.readings[-1]["bits"], rel=1e-5)
    assert first["exit_status"] == str(alone.code) == "3"
    shell = [*command, "replay", talks, "--each", "--summary", table, *QUICK, "--jobs", "2"]
    until = time.monotonic() + PATIENCE_SECONDS
    with subprocess.Popen(shell, stderr=subprocess.PIPE) as process:
        while not table.exists() or table.read_bytes().count(b"\n") < 4:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until
            time.sleep(0.005)
        process.kill()
    assert 3 <= len(rows(table)) < 12
    time.sleep(3.0)  # its processes notice within moments, and end
    done = run("replay", talks, "--each", "--summary", table, *QUICK, "--jobs", "2", "--resume")
    assert done.code == 3
    assert " there already" in done.err
    assert table.read_bytes() == whole.read_bytes()


def test_the_status_is_the_worst_of_all_and_a_broken_file_no_end(run, talks, tmp_path, voice):
    table = tmp_path / "out.csv"
    plain = ("replay", talks, "--each", "--summary", table, "--features", "f0", "--jobs", "1")
    assert run(*plain).code == 0
    soundfile.write(talks / "still.wav", 0 * voice(3.0), RATE)
    soundfile.write(tmp_path / "whole.flac", voice(9.0, 120.0), RATE)
    whole = (tmp_path / "whole.flac").read_bytes()
    (talks / "cut.flac").write_bytes(whole[: len(whole) // 2])
    lost = run(*plain, "--resume")
    assert lost.code == 4
    (cut,) = [line for line in lost.err.splitlines() if "cut.flac" in line]
    assert "audio was lost" in cut
    assert "still.wav: no speech in it\n" in lost.err
    (talks / "bad.wav").write_bytes(b"no audio")
    done = run(*plain, "--resume")
    assert done.code == 1
    assert "bad.wav is not" in done.err
    assert "measured 0 recordings (0.0 min); 1 could not be measured; 6 there already" in done.err
    told = {Path(row["recording"]).name: row for row in rows(table)}
    statuses = {name: told[f"{name}"]["exit_status"] for name in ("bad.wav", "8.wav", "still.wav")}
    assert statuses == {"bad.wav": "1", "8.wav": "0", "still.wav": "4"}
    assert "audio was lost" in told["cut.flac"]["notices"]
    assert "audio was lost" not in told["8.wav"]["notices"]


def test_a_recording_too_short_to_decide_does_not_comfort(run, talks, tmp_path):
    table, rule = tmp_path / "out.csv", ("--features", "f0", "--alert", "bits>5 for 0 s")
    done = run("replay", talks, "--each", "--summary", table, *rule, "--jobs", "1")
    assert done.code == 4
    told = {Path(row["recording"]).name: row for row in rows(table)}
    assert (told["8.wav"]["undecided"], told["8.wav"]["exit_status"]) == ("", "0")  # 14 s
    short = told["10.wav"]
    assert short["exit_status"] == "4"
    assert short["undecided"].startswith("alert bits>5: not decided, ")
    assert f"10.wav: {short['undecided']}\n" in done.err
    alone = run("replay", short["recording"], *rule)
    assert alone.code == 4
    assert alone.records[-1]["undecided"] == [short["undecided"]]
    assert f"monitor: {short['undecided']}\n" in alone.err
    at_once = run("replay", short["recording"], *rule[:2], "--alert", "bits>5 for 0 s after 0 s")
    assert (at_once.code, at_once.records[-1]["undecided"]) == (0, [])


def test_what_was_enrolled_too_is_told_of_the_recording_alone(run, people, population, tmp_path):
    table, both = tmp_path / "out.csv", [people / "000003" / f"s{i}.npz" for i in range(2)]
    asked = ("--each", "--summary", table, "-p", population, "--features", "f0", "--replace")
    assert "measured 1 recording (" in run("replay", *both, *asked).err
    enrolled, other = rows(table)
    assert enrolled["error"].endswith("or insist with allow-overlap = true in --config FILE")
    assert (other["session"], other["enrolled_too"]) == ("cross", "false")
    heard = run("replay", *both, *asked, {"allow-overlap": True})
    [line] = [line for line in heard.err.splitlines() if "enrolled too" in line]
    assert "s0.npz" in line
    assert "s1.npz" not in line


@pytest.fixture(scope="module")
def dask(tmp_path_factory):
    pytest.importorskip("distributed", reason="needs the extra cluster")
    with DaskCluster(tmp_path_factory.mktemp("dask")) as cluster:
        cluster.add_worker()
        yield cluster


@pytest.fixture(scope="module")
def voices(tmp_path_factory) -> Path:
    """Three speakers, four sessions each; one file is broken."""
    folder: Path = tmp_path_factory.mktemp("corpus") / "voices"
    for number in range(12):
        path = folder / ("ann", "bob", "cleo")[number // 4] / f"{number}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, synthetic(12.0, 90.0 + 40 * (number // 4), number), RATE)
    (folder / "ann" / "0-broken.wav").write_bytes(b"no audio")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def whole(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*.npz") if not path.name.startswith(".")]


def wait_for(frames: Path, count: int, process: subprocess.Popen[Any]) -> None:
    """Until so many recordings have been heard."""
    until = time.monotonic() + PATIENCE_SECONDS
    while len(whole(frames)) < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.01)


def test_interrupted_and_with_a_worker_killed_it_is_what_one_process_hears(
    run, command, dask, voices, tmp_path, monkeypatch
):
    """The second worker dies in the midst of it, by SIGKILL; nothing is asked of anybody."""
    features = ("--features", "f0,voice")
    one, frames = tmp_path / "one", tmp_path / "frames"
    us = ("-o", "us.npz", "--replace", "--frames")
    monkeypatch.chdir(tmp_path)  # names that mean nothing to a worker
    alone = run("enrol", voices, *us, one, *features, "--jobs", 1)
    shell = [*command, "enrol", os.path.relpath(voices), *us, "frames", *features]
    shell += ["--jobs", dask.address]
    asked: Any = {"stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(shell, **asked) as process:
        wait_for(frames, 1, process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert process.returncode == 130
    assert "run the same command again" in err
    worker = dask.add_worker()
    with subprocess.Popen(shell, **asked) as process:
        wait_for(frames, 5, process)
        worker.kill()
        assert len(whole(frames)) < 12
        _, err = process.communicate()
    assert process.returncode == alone.code == 4
    assert "0-broken.wav is not" in err
    assert "Traceback" not in err
    assert contents(frames) == contents(one)
    assert {path.stat().st_mode & 0o777 for path in whole(frames)} == {0o600}


def test_a_table_of_recordings_is_that_of_one_process(run, dask, voices, tmp_path, monkeypatch):
    monkeypatch.chdir(voices)
    options = ("--each", "--features", "f0", "--alert", "bits>0.1 for 1 s after 0 s")
    tables = [tmp_path / "one.csv", tmp_path / "two.csv"]
    for table, who in zip(tables, (("--jobs", 1), ("--jobs", dask.address)), strict=True):
        done = run("replay", "ann", "bob", *options, "--summary", table, *who)
        assert done.code == 1
        assert "0-broken.wav is not" in done.err
    assert tables[0].read_bytes() == tables[1].read_bytes()
    again = run("replay", "ann", "bob", *options, "--summary", table, *who, "--resume")
    assert "9 there already" in again.err


def test_where_workers_do_not_share_what_is_needed(run, dask, voices, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = ("enrol", voices, "-o", "us.npz", "--frames", "/proc/self/cwd/f")
    done = run(*asked, "--jobs", dask.address)
    assert done.code == 1
    line = done.err.splitlines()[-1]
    assert "f/manifest.csv" in line
    assert "worker tcp://127.0.0.1:" in line
    acts = ("--each", "--summary", "s.csv", "--alert", "bits>1", "--on-alert", "true")
    done = run("replay", voices / "ann" / "0.wav", *acts, "--jobs", dask.address)
    assert done.code == 2
    assert "--on-alert acts on this machine: leave it out" in done.err.splitlines()[-1]


@pytest.mark.skipif(find_spec("cryptography") is None, reason="needs cryptography (extra cluster)")
def test_a_local_cluster_listens_to_nobody_else(run, command, voices, tmp_path):
    frames = tmp_path / "frames"
    us = ("-o", tmp_path / "us.npz", "--replace", "--frames")
    shell = [*command, "enrol", voices, *us, frames, "--features", "f0"]
    with subprocess.Popen(
        [*map(str, shell), "--jobs", "local:1"], stderr=subprocess.PIPE
    ) as process:
        wait_for(frames, 1, process)
        family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(True)]
        ears = {c.laddr.ip for p in family for c in p.net_connections() if c.status == "LISTEN"}
        process.communicate()
    assert ears == {"127.0.0.1"}
    run("enrol", voices, *us, tmp_path / "one", "--features", "f0", "--jobs", 1)
    assert contents(frames) == contents(tmp_path / "one")
