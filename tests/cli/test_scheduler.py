"""``--scheduler`` as people use it: the same files as one process makes, whoever is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest
import soundfile

from monitor.cluster import Cluster
from monitor.errors import MonitorError
from monitor.training.feature_extraction import HearingOptions, HearingOrder, keep
from tests.dask_cluster import DaskCluster
from tests.sounds import RATE, synthetic

pytest.importorskip("distributed", reason="needs the extra cluster")
pytestmark = pytest.mark.slow

PATIENCE_SECONDS = 120.0


@pytest.fixture(scope="module")
def dask(tmp_path_factory):
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
    shell += ["--scheduler", dask.address]
    asked: Any = {"stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(shell, **asked) as process:
        wait_for(frames, 1, process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert process.returncode == 130
    assert "what was heard is kept; to go on, run the same command again" in err
    worker = dask.add_worker()
    with subprocess.Popen(shell, **asked) as process:
        wait_for(frames, 5, process)
        worker.kill()
        assert len(whole(frames)) < 12
        _, err = process.communicate()
    assert process.returncode == alone.code == 4
    assert "0-broken.wav is no recording" in err
    assert "Traceback" not in err
    assert contents(frames) == contents(one)
    assert {path.stat().st_mode & 0o777 for path in whole(frames)} == {0o600}


def test_templates_and_scores_are_those_of_one_process(run, dask, voices, tmp_path):
    options = ("--features", "f0,voice")
    made = []
    for name, who in (("one", ("--jobs", 1)), ("two", ("--scheduler", dask.address))):
        us, scores = tmp_path / f"{name}.npz", tmp_path / f"{name}-scores.npz"
        told = run("enrol", voices, "-o", us, "--seconds", 20, *options, *who)
        lengths = ("--lengths", 2, "--template-lengths", 5)
        said = run("score", voices, "-o", scores, *options, *lengths, *who)
        assert (told.code, said.code) == (4, 4), said.err
        made.append((us.read_bytes(), scores.read_bytes(), told.err.replace(str(us), "FILE")))
    assert made[0] == made[1]


def test_a_table_of_recordings_is_that_of_one_process(run, dask, voices, tmp_path, monkeypatch):
    monkeypatch.chdir(voices)
    options = ("--each", "--features", "f0", "--alert", "bits>0.1 for 1 s after 0 s")
    tables = [tmp_path / "one.csv", tmp_path / "two.csv"]
    for table, who in zip(tables, (("--jobs", 1), ("--scheduler", dask.address)), strict=True):
        done = run("replay", "ann", "bob", *options, "--summary", table, *who)
        assert done.code == 1
        assert "0-broken.wav is no recording" in done.err
    assert tables[0].read_bytes() == tables[1].read_bytes()
    again = run("replay", "ann", "bob", *options, "--summary", table, *who, "--resume")
    assert "9 there already" in again.err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--each", "--summary", "s.csv", "--jobs", 2), "--jobs is for processes of this machine"),
        ((), "--scheduler is for many recordings: add --each"),
        (
            ("--each", "--summary", "s.csv", "--alert", "bits>1", "--on-alert", "true"),
            "--on-alert acts where the command runs: leave it out with --scheduler",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(run, dask, voices, more, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("replay", voices / "ann" / "0.wav", *more, "--scheduler", dask.address)
    assert done.code == 2
    assert said in done.err.splitlines()[-1]


def test_an_output_that_workers_do_not_share_is_refused(run, dask, voices, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(
        "enrol", voices, "-o", "us.npz", "--frames", "/proc/self/cwd/f", "--scheduler", dask.address
    )
    assert done.code == 1
    assert "f/manifest.csv cannot be read on worker tcp://127.0.0.1:" in done.err.splitlines()[-1]


def test_frames_that_a_worker_wrote_elsewhere_are_missed(dask, voices, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    order = HearingOrder(voices / "ann" / "0.wav", Path("/proc/self/cwd/0.npz"), "ann", "1")
    with (
        Cluster(dask.address) as workers,
        pytest.raises(MonitorError, match=r"0.npz was written where it cannot be seen from here"),
    ):
        list(keep([order], HearingOptions(("f0",)), workers))


def test_without_the_extra_it_says_how_to_have_it(run, voices, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = run("enrol", voices, "-o", tmp_path / "f.npz", "--scheduler", "local")
    assert done.code == 2
    assert "pip install 'speaker-disclosure-monitor[cluster]'" in done.err.splitlines()[-1]


@pytest.mark.skipif(find_spec("cryptography") is None, reason="needs cryptography (extra cluster)")
def test_a_local_cluster_listens_to_nobody_else(run, command, voices, tmp_path):
    frames = tmp_path / "frames"
    us = ("-o", tmp_path / "us.npz", "--replace", "--frames")
    shell = [*command, "enrol", voices, *us, frames, "--features", "f0"]
    with subprocess.Popen(
        [*map(str, shell), "--scheduler", "local:1"], stderr=subprocess.PIPE
    ) as process:
        wait_for(frames, 1, process)
        family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(True)]
        ears = {c.laddr.ip for p in family for c in p.net_connections() if c.status == "LISTEN"}
        process.communicate()
    assert ears == {"127.0.0.1"}
    run("enrol", voices, *us, tmp_path / "one", "--features", "f0", "--jobs", 1)
    assert contents(frames) == contents(tmp_path / "one")
