"""Files that appear atomic, and what is left of writers that were killed: real processes."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from monitor import files as atomic
from monitor.errors import StoreError
from monitor.files import alone, atomic_write, sweep
from monitor.population.store import read_store, write_store

KILLED = """
import os, signal, sys
from pathlib import Path
from monitor.population.store import write_store
import numpy as np

if "elsewhere" in sys.argv:
    vars(os).pop("O_TMPFILE", None)
os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)
write_store(Path(sys.argv[1]), "population", {}, {"template": np.arange(9)})
"""

SLOW = """
import os, sys
from pathlib import Path
from monitor.files import alone, atomic_write

vars(os).pop("O_TMPFILE", None)
path = Path(sys.argv[1])
with alone(path), atomic_write(path) as file:
    file.write(b"slow")
    file.flush()
    print("half", flush=True)
    sys.stdin.readline()
"""


def killed(path: Path, *more: str) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(path), *more], check=False)
    assert done.returncode == -signal.SIGKILL


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """What a killed save left behind, where files without names are unknown."""
    killed(tmp_path / "us.npz", "elsewhere")
    (part,) = tmp_path.iterdir()
    assert stat.S_IMODE(part.stat().st_mode) == 0o600
    assert part.stat().st_size > 100
    return part


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="files without names")
def test_of_a_killed_save_nothing_is_left(tmp_path):
    path = tmp_path / "us.npz"
    killed(path)
    assert list(tmp_path.iterdir()) == []
    write_store(path, "population", {}, {"template": np.arange(9)})
    before = path.read_bytes()
    killed(path)
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == before
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_a_killed_save_left_goes_with_the_next_look_at_the_store(left, tmp_path):
    path = tmp_path / "us.npz"
    with pytest.raises(StoreError, match="does not exist"):
        read_store(path, "population")
    assert list(tmp_path.iterdir()) == []


def test_and_with_the_next_save(left, tmp_path):
    write_store(tmp_path / "other.npz", "population", {}, {})
    assert left.exists()
    write_store(tmp_path / "us.npz", "population", {}, {})
    assert {path.name for path in tmp_path.iterdir()} == {"other.npz", "us.npz"}


def test_only_what_is_surely_ours_and_nobody_works_on(left, tmp_path):
    path = tmp_path / "us.npz"
    precious = tmp_path / "precious"
    precious.write_text("mine")
    planted = tmp_path / ".us.npz.aaaaaaaa.unfinished"
    planted.symlink_to(precious)
    twin = tmp_path / ".us.npz.bbbbbbbb.unfinished"
    os.link(precious, twin)
    folder = tmp_path / ".us.npz.cccccccc.unfinished"
    folder.mkdir()
    os.mkfifo(tmp_path / ".us.npz.dddddddd.unfinished")
    for name in (".us.npz.abcdefgh", ".us.npz.swp", ".us.npz.backup.unfinished", "us.npz.1"):
        (tmp_path / name).write_text("of another program")
    before = set(tmp_path.iterdir()) - {left}
    with subprocess.Popen(
        [sys.executable, "-c", SLOW, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True,
    ) as slow:  # fmt: skip
        assert slow.stdout is not None
        assert slow.stdin is not None
        assert slow.stdout.readline() == "half\n"
        sweep(path)
        assert not left.exists()
        (living,) = set(tmp_path.iterdir()) - before
        slow.stdin.write("\n")
        slow.stdin.close()
        assert slow.wait() == 0
    assert not living.exists()
    assert path.read_bytes() == b"slow"
    assert set(tmp_path.iterdir()) == before | {path}
    assert precious.read_text() == "mine"


def test_what_is_an_hour_old_goes_with_the_next_write_into_its_folder(left, tmp_path):
    foreign = tmp_path / ".figure8.png.abcdefgh"
    foreign.write_text("of another program")
    fresh = tmp_path / ".figure9.png.abcdefgh.unfinished"
    fresh.write_text("begun just now")
    for path in (left, foreign):
        os.utime(path, (0, 0))
    atomic._sweep_old.cache_clear()
    with atomic_write(tmp_path / "other.csv") as file:
        file.write(b"x")
    assert not left.exists()
    assert {path.name for path in tmp_path.iterdir()} == {"other.csv", foreign.name, fresh.name}


def test_without_locks_nothing_is_removed_and_saving_works(left, tmp_path, monkeypatch):
    monkeypatch.setattr("monitor.files.fcntl", None)
    path = tmp_path / "us.npz"
    with alone(path) as locked:
        write_store(path, "population", {}, {"a": np.arange(3)})
    assert not locked
    assert left.exists()
    assert read_store(path, "population")[1]["a"].tolist() == [0, 1, 2]


def test_one_at_a_time_in_a_folder(tmp_path, monkeypatch):
    path = tmp_path / "us.npz"
    with subprocess.Popen(
        [sys.executable, "-c", SLOW, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True,
    ) as slow:  # fmt: skip
        assert slow.stdout is not None
        slow.stdout.readline()
        monkeypatch.setattr(atomic, "PATIENCE_SECONDS", 0.1)
        with pytest.raises(StoreError, match="another process is writing in its folder") as caught:
            alone(path).__enter__()
        assert "\n" not in str(caught.value)
        slow.kill()
    with alone(path) as locked:  # the lock has gone with its process
        assert locked


def test_a_block_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def interrupted() -> None:
        with atomic_write(path) as file:
            file.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [each.name for each in tmp_path.iterdir()] == ["a"]
    assert path.read_bytes() == b"old"


def test_a_device_is_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="no plain file"), atomic_write(pipe) as file:
        file.write(b"x")
    assert stat.S_ISFIFO(pipe.stat().st_mode)
