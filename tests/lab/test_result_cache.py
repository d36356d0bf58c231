"""Results that are kept: real files, writers that are killed, and two at once."""

import signal
import stat
import subprocess
import sys

import pytest

from monitor.errors import StoreError
from monitor.lab.result_cache import ResultCache, result_key

KEY = result_key({"T": 1.0})
KILLED = """
import os, signal, sys
from pathlib import Path
from monitor.lab.result_cache import ResultCache

vars(os).pop("O_TMPFILE", None)  # as where files without names are unknown
os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)
ResultCache(Path(sys.argv[1])).write(sys.argv[2], b"half")
"""


def test_kept_is_found_again_and_private(tmp_path):
    cache = ResultCache(tmp_path / "deep" / "er")
    assert cache.read(KEY) is None
    cache.write(KEY, b"a\nb")
    assert ResultCache(cache.folder).read(KEY) == b"a\nb"
    (path,) = cache.folder.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(cache.folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("damage", [b"", b"x", b"0" * 64 + b"\nother", b"\n"])
def test_what_is_damaged_is_not_there(tmp_path, damage):
    cache = ResultCache(tmp_path)
    cache.write(KEY, b"whole")
    (path,) = tmp_path.iterdir()
    path.write_bytes(damage)
    assert cache.read(KEY) is None
    cache.write(KEY, b"whole")
    assert cache.read(KEY) == b"whole"


def test_fresh_forgets_results_and_nothing_else(tmp_path):
    ResultCache(tmp_path).write(KEY, b"old")
    (tmp_path / "mine.result").write_text("kept")
    assert ResultCache(tmp_path, fresh=True).read(KEY) is None
    assert [path.name for path in tmp_path.iterdir()] == ["mine.result"]


def test_a_writer_that_is_killed_leaves_nothing(tmp_path):
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), KEY], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 1
    assert ResultCache(tmp_path).read(KEY) is None
    assert list(tmp_path.iterdir()) == []


def test_a_key_is_of_all_that_goes_in_and_of_nothing_vague():
    whole = {"T": 3.0, "features": ["f0", "phones"], "version": "a"}
    changed = [{**whole, name: other} for name, other in
               (("T", 3.1), ("features", ["phones", "f0"]), ("version", "b"))]  # fmt: skip
    assert len({result_key(each) for each in [whole, *changed]}) == 4
    assert result_key(dict(reversed(whole.items()))) == result_key(whole)
    with pytest.raises(ValueError, match="JSON"):
        result_key({"T": float("nan")})
    with pytest.raises(TypeError):
        result_key({"T": object()})


@pytest.mark.parametrize("place", ["file", "file/cache"])
def test_a_folder_that_cannot_be_made_is_refused(tmp_path, place):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot write"):
        ResultCache(tmp_path / place)
