"""Stores that several commands change at once, or in which they are killed: real processes."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from monitor.population.population import Population

pytestmark = pytest.mark.slow

KILLED = """
import os, signal, sys
vars(os).pop("O_TMPFILE", None)  # as where files without names are unknown
os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)
from monitor.cli import main
main(sys.argv[1:])
"""


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


def test_two_that_add_to_one_store_lose_nobody(run, store, further, meanwhile):
    before = Population.load(store)
    options = ("--add", "--features", "f0", "-o", store)
    meanwhile("monitor.training.enrolling.enrol", "enrol", further("ann"), *options)
    result = run("enrol", further("bob"), *options)
    assert result.code == 0, result.err
    after = Population.load(store)
    assert after.names == (*before.names, "ann", "bob")
    assert len(after.rank_models) == len(before.rank_models)


def test_the_same_speaker_twice_is_refused_and_the_first_stays(run, store, further, meanwhile):
    folder = further("ann")
    options = ("--add", "--features", "f0", "-o", store)
    meanwhile("monitor.training.enrolling.enrol", "enrol", folder, *options)
    result = run("enrol", folder, *options)
    assert result.code == 2
    assert "enrolled already, as ann" in result.complaint
    assert Population.load(store).names[-2:] == ("000011", "ann")


def test_a_new_store_that_somebody_else_has_made_stays(run, tmp_path, further, meanwhile):
    path = tmp_path / "new.npz"
    meanwhile("monitor.training.enrolling.enrol", "enrol", further("ann"), "-o", path)
    result = run("enrol", further("bob"), "-o", path)
    assert result.code == 1
    assert "has been written by another process; name another file" in result.complaint
    assert Population.load(path).names == ("ann",)


def test_who_is_added_during_a_calibration_stays(run, store, people, further, meanwhile):
    adding = ("enrol", further("ann"), "--add", "--features", "f0", "-o", store)
    meanwhile("monitor.training.calibrating.calibrate", *adding)
    small = ("--lengths", "1,5", "--template-lengths", "20", "--trials", "2", "--replicates", "20")
    result = run("calibrate", people, "-o", store, *small)
    assert result.code == 0, result.err
    after = Population.load(store)
    assert after.names[-1] == "ann"
    learnt = after.rank_models.find(("f0",), "cross")
    assert learnt is not None
    assert learnt.lengths.tolist() == [1.0, 5.0]


def test_killed_saves_leave_nothing_for_long(run, store, people, further, talk, tmp_path):
    small = ("--lengths", "1,5", "--template-lengths", "20", "--trials", "2", "--replicates", "20")
    before = store.read_bytes()
    kept = set(tmp_path.iterdir()) | {tmp_path / "more"}
    for arguments in (
        ("enrol", further("ann"), "--features", "f0", "--replace", "-o", store),
        ("enrol", further("bob"), "--features", "f0", "--add", "-o", store),
        ("calibrate", people, "-o", store, *small),
    ):
        killed = subprocess.run(
            [sys.executable, "-c", KILLED, *map(str, arguments)], capture_output=True, check=False
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
