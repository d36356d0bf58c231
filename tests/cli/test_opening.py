"""What is there is overwritten only when asked; what several processes write to loses nothing."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from monitor.population.population import Population
from monitor.population.store import write_store
from monitor.stream.checkpoint import state_path
from tests.records import read_records
from tests.settings import configured

PATIENCE_SECONDS = 120
KILLED = """
import os, signal, sys
vars(os).pop("O_TMPFILE", None)  # as where files without names are unknown
os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)
from monitor.cli import main
main(sys.argv[1:])
"""


@pytest.fixture
def finished(run, talk: Path, population: Path, tmp_path: Path) -> Path:
    """The folder of a finished run, and of an interrupted one that can be resumed."""
    folder = tmp_path / "runs"
    folder.mkdir()
    assert run("replay", talk, "-p", population, "--jsonl", folder / "run.jsonl").code == 0
    lines = (folder / "run.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "cut.jsonl").write_bytes(b"".join(lines[:9]))
    write_store(state_path(folder / "cut.jsonl"), "checkpoint", {}, {})
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("run.jsonl", "holds a finished run: name another file, or overwrite it (--replace)"),
        ("cut.jsonl", "holds an unfinished run: continue it (--resume), name another"),
        ("diary.txt", "holds something else: name another file, or overwrite it (--replace)"),
    ],
)
def test_what_is_there_is_overwritten_only_when_asked(run, talk, population, finished, name, words):
    (finished / "diary.txt").write_text("dear diary\n")
    before = content(finished)
    for command in (["replay", talk], ["listen"]):
        result = run(*command, "-p", population, "--jsonl", finished / name)
        assert result.code == 2
        assert words in result.complaint
        assert content(finished) == before
    result = run("replay", talk, "-p", population, "--jsonl", finished / name, "--replace")
    assert result.code == 0, result.err
    assert read_records(finished / name)[-1]["type"] == "end"
    assert not state_path(finished / name).exists()


@pytest.mark.slow
def test_two_runs_do_not_write_to_one_file(run, command, talk, population, tmp_path):
    """The second is refused; the first, killed and resumed, misses nothing."""
    path = tmp_path / "run.jsonl"
    options = [str(talk), "-p", str(population), "--jsonl", str(path), {"step": "0.1"}]

    def going(*more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*command, *configured(["replay", *options, *more], tmp_path)], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    with going("--speed", "10") as first:
        until(lambda: state_path(path).exists(), first)
        for more in ([], ["--replace"], ["--resume"]):
            result = run("replay", *options, *more)
            assert result.code == 1
            assert "by another run" in result.complaint
        first.send_signal(signal.SIGKILL)
        first.communicate()
    assert run("replay", *options, "--resume").code == 0
    records = read_records(path)
    assert [r["seconds"] for r in records if r["type"] == "reading"] == [
        round(0.1 * n, 1) for n in range(1, 501)
    ]
    assert [record["type"] for record in records].count("start") == 1


def until(holds: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_file_of_somebody_elses_beside_the_run_is_left_alone(run, talk, population, tmp_path):
    notes = tmp_path / "run.jsonl.state"
    notes.write_text("my notes")
    result = run("replay", talk, "-p", population, "--jsonl", tmp_path / "run.jsonl")
    assert result.code == 1
    assert "run.jsonl.state" in result.complaint
    assert notes.read_text() == "my notes"
    assert not (tmp_path / "run.jsonl").exists()


@pytest.fixture
def store(population: Path, tmp_path: Path) -> Path:
    path = tmp_path / "us.npz"
    path.write_bytes(population.read_bytes())
    path.chmod(0o600)
    return path


@pytest.fixture
def further(people: Path, tmp_path: Path) -> Callable[[str], Path]:
    """A corpus of one speaker of that name, a recording of its own."""

    def further(name: str) -> Path:
        (tmp_path / "more" / name / name).mkdir(parents=True)
        whose = "000003" if name == "ann" else "000004"
        session = (people / whose / "s1.npz").read_bytes()
        (tmp_path / "more" / name / name / "s.npz").write_bytes(session)
        return tmp_path / "more" / name

    return further


@pytest.fixture
def meanwhile(command, monkeypatch) -> Callable[..., None]:
    """Another command runs, from its beginning to its end, while the next one listens."""

    def meanwhile(where: str, *arguments: object) -> None:
        import importlib

        module, _, name = where.rpartition(".")
        real = getattr(importlib.import_module(module), name)

        def wrapped(*args: object, **options: object) -> object:
            other = [*command, *map(str, arguments)]
            done = subprocess.run(other, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            return real(*args, **options)

        monkeypatch.setattr(where, wrapped)

    return meanwhile


@pytest.mark.slow
def test_two_that_add_to_one_store_lose_nobody(run, store, further, meanwhile):
    before = Population.load(store)
    options = ("--add", "--features", "f0", "-o", store)
    meanwhile("monitor.training.enrolling.enrol", "enrol", further("ann"), *options)
    result = run("enrol", further("bob"), *options)
    assert result.code == 0, result.err
    after = Population.load(store)
    assert after.names == (*before.names, "ann", "bob")
    assert len(after.rank_models) == len(before.rank_models)


@pytest.mark.slow
def test_a_new_store_that_somebody_else_has_made_stays(run, tmp_path, further, meanwhile):
    path = tmp_path / "new.npz"
    meanwhile("monitor.training.enrolling.enrol", "enrol", further("ann"), "-o", path)
    result = run("enrol", further("bob"), "-o", path)
    assert result.code == 1
    assert "was written by another process meanwhile; name another file" in result.complaint
    assert Population.load(path).names == ("ann",)


@pytest.mark.slow
def test_who_is_added_during_a_calibration_stays(run, store, people, further, meanwhile):
    adding = ("enrol", further("ann"), "--add", "--features", "f0", "-o", store)
    meanwhile("monitor.training.calibrating.calibrate", *adding)
    small = ("--lengths", "1,5", "--template-lengths", "20", {"trials": "2", "replicates": "20"})
    result = run("calibrate", people, "-o", store, *small)
    assert result.code == 0, result.err
    after = Population.load(store)
    assert after.names[-1] == "ann"
    learnt = after.rank_models.find(("f0",), "cross")
    assert learnt.lengths.tolist() == [1.0, 5.0]


@pytest.mark.slow
def test_killed_saves_leave_nothing_for_long(run, store, people, further, talk, tmp_path):
    small = ("--lengths", "1,5", "--template-lengths", "20", {"trials": "2", "replicates": "20"})
    before = store.read_bytes()
    kept = set(tmp_path.iterdir()) | {tmp_path / "more"}
    settings = tmp_path.parent
    for arguments in (
        ("enrol", further("ann"), "--features", "f0", "--replace", "-o", store),
        ("enrol", further("bob"), "--features", "f0", "--add", "-o", store),
        ("calibrate", people, "-o", store, *small),
    ):
        killed = subprocess.run(
            [sys.executable, "-c", KILLED, *configured(arguments, settings)],
            capture_output=True,
            check=False,
        )
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        (part,) = set(tmp_path.iterdir()) - kept
        with np.load(part) as left:  # biometric
            assert "slices/f0" in left.files
        subprocess.run([sys.executable, "-m", "monitor", "people", str(store)], check=True)
        assert set(tmp_path.iterdir()) == kept
        assert store.read_bytes() == before
    result = run("replay", talk, "-p", store, "--watch", "000003")
    assert result.code == 0, result.err
