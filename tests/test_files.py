"""Files that appear whole or not at all, what killed writers left, and archives of an impostor."""

import io
import os
import signal
import stat
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil
import pytest

from monitor import files
from monitor.errors import StoreError
from monitor.files import alone, atomic_write, sweep
from monitor.npz import read_arrays
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


@contextmanager
def slow_writer(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process, in the midst of writing; it ends with a line of input."""
    with subprocess.Popen(
        [sys.executable, "-c", SLOW, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True,
    ) as slow:  # fmt: skip
        assert slow.stdout.readline() == "half\n"
        yield slow


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


def test_what_a_killed_save_left_goes_with_the_next_save_or_look_at_the_store(left, tmp_path):
    path = tmp_path / "us.npz"
    write_store(tmp_path / "other.npz", "population", {}, {})
    assert left.exists()
    with pytest.raises(StoreError, match="does not exist"):
        read_store(path, "population")
    assert not left.exists()
    killed(path, "elsewhere")
    write_store(path, "population", {}, {})
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
    with slow_writer(path) as slow:
        sweep(path)
        assert not left.exists()
        (living,) = set(tmp_path.iterdir()) - before
        slow.communicate("\n")
        assert slow.wait() == 0
    assert not living.exists()
    assert path.read_bytes() == b"slow"
    assert set(tmp_path.iterdir()) == before | {path}
    assert precious.read_text() == "mine"


def test_one_at_a_time_in_a_folder(tmp_path, monkeypatch):
    path = tmp_path / "us.npz"
    with slow_writer(path) as slow:
        monkeypatch.setattr(files, "PATIENCE_SECONDS", 0.1)
        with pytest.raises(StoreError, match="another process is writing in its folder") as caught:
            alone(path).__enter__()
        assert "\n" not in str(caught.value)
        slow.kill()
    with alone(path) as locked:  # the lock has gone with its process
        assert locked


def test_a_block_that_fails_leaves_the_old_file_and_a_device_is_not_replaced(tmp_path):
    path, pipe = tmp_path / "a", tmp_path / "pipe"
    path.write_bytes(b"old")

    def interrupted() -> None:
        with atomic_write(path) as file:
            file.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [each.name for each in tmp_path.iterdir()] == ["a"]
    assert path.read_bytes() == b"old"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="not a plain file"), atomic_write(pipe) as file:
        file.write(b"x")
    assert stat.S_ISFIFO(pipe.stat().st_mode)


# --------------------------------------------------------------------- archives of an impostor


def saved(**content) -> io.BytesIO:
    file = io.BytesIO()
    np.savez_compressed(file, **content)
    file.seek(0)
    return file


def zipped(**members: bytes) -> io.BytesIO:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    file.seek(0)
    return file


def npy(array: np.ndarray, shape=None) -> bytes:
    """An array that says it had a shape."""
    file = io.BytesIO()
    header = np.lib.format.header_data_from_array_1_0(array)
    header["shape"] = array.shape if shape is None else shape
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + array.tobytes()


@pytest.mark.parametrize("later", [(), ("a",)])
def test_large_and_plain_arrays_come_back_and_damage_is_noticed_when_one_is_read(later):
    large, plain = np.arange(1 << 18), io.BytesIO()
    np.savez(plain, a=large[:100])
    plain.seek(0)
    assert (read_arrays(saved(a=large), later=later)["a"] == large).all()
    assert (read_arrays(plain, later=later)["a"] == large[:100]).all()
    content = bytearray(saved(a=np.random.default_rng(0).integers(99, size=999)).getvalue())
    content[500] ^= 1
    with pytest.raises((ValueError, zlib.error, zipfile.BadZipFile)):
        read_arrays(io.BytesIO(content), later=later)["a"]
    assert later == () or "a" in read_arrays(io.BytesIO(content), later=later)


@pytest.mark.slow
def test_what_would_take_all_memory_is_refused_before_it_is_inflated():
    bomb = saved(a=np.zeros(3 << 27, np.uint8))  # 0.4 MB on disk, 400 MB in memory
    before = psutil.Process().memory_info().rss
    with pytest.raises(ValueError, match="much memory"):
        read_arrays(bomb)
    assert psutil.Process().memory_info().rss - before < 50e6


@pytest.mark.parametrize(
    ("file", "words"),
    [
        (zipped(a=npy(np.zeros(4), (1 << 40,))), "another length"),
        (zipped(a=npy(np.zeros(4), (2,))), "another length"),
        (zipped(a=npy(np.zeros(4), (-4,))), "another length|shape"),
        (saved(a=np.array([{}], dtype=object)), "Object arrays"),
    ],
    ids=["promises more", "promises less", "negative", "pickled"],
)
def test_arrays_that_lie(file, words):
    with pytest.raises(ValueError, match=words):
        read_arrays(file)


def test_members_that_are_no_arrays_or_come_twice():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(ValueError, match="not an array"):
        read_arrays(file)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.npy", npy(np.zeros(1)))
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("a.npy", npy(np.ones(1)))
    with pytest.raises(ValueError, match="too many"):
        read_arrays(file)
