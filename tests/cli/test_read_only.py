"""On a file system that cannot be written: one line, or what was asked for. A real mount."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from monitor.errors import StoreError
from monitor.ledger import Ledger
from tests.cli.conftest import Result

pytestmark = pytest.mark.slow

MOUNT = """
folders=$1; shift
for folder in $folders; do
    mount --bind "$folder" "$folder" && mount -o remount,bind,ro "$folder" "$folder" || exit 99
done
exec "$@"
"""
PATIENCE_SECONDS = 120


@pytest.fixture
def frozen(command, tmp_path: Path) -> Callable[..., Result]:
    """The command line where the folder ``frozen``, or other ones, cannot be written."""

    def run(*arguments: object, folders: str = str(tmp_path / "frozen"), **more: str) -> Result:
        within = ["unshare", "--mount", "--map-root-user", "sh", "-c", MOUNT, "sh", folders]
        done = subprocess.run(
            [*within, *command, *map(str, arguments)], capture_output=True, text=True, check=False,
            env={**os.environ, **more},
        )  # fmt: skip
        return Result(done.returncode, done.stdout, done.stderr)

    (tmp_path / "frozen").mkdir()
    try:
        works = subprocess.run(
            ["unshare", "--mount", "--map-root-user", "sh", "-c", MOUNT, "sh",
             str(tmp_path / "frozen"), "touch", str(tmp_path / "frozen" / "a")],
            capture_output=True, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        pytest.skip("needs unshare (Debian: util-linux)")
    if b"Read-only file system" not in works.stderr:
        pytest.skip("this machine lets nobody mount anything: " + works.stderr.decode().strip())
    return run


@pytest.fixture
def ledger(run, halves, population: Path, tmp_path: Path, frozen) -> Path:
    path = tmp_path / "frozen" / "me.db"
    result = run("replay", halves[0], "-p", population, "-w", "000003", "--ledger", path,
                 "--jsonl", "-", "--alert", "bits>-3 for 1 s after 0 s")  # fmt: skip
    assert result.code == 3
    return path


def test_a_ledger_is_read_there(run, frozen, ledger):
    for part in (("show",), ("export", "-o", "-")):
        plain, there = run("ledger", *part, ledger), frozen("ledger", *part, ledger)
        assert (there.code, there.err) == (0, "")
        assert there.records == plain.records
        assert there.records[0]["type"] == "session"
    assert [path.name for path in ledger.parent.iterdir()] == ["me.db"]


def test_and_not_written(frozen, ledger, halves, population):
    before = ledger.read_bytes()
    for arguments in (
        ["forget", ledger, "000003"],
        ["scrub", ledger],
    ):
        result = frozen("ledger", *arguments)
        assert result.code == 1
        assert "me.db: may not be written here; copy it to where it may be" in result.complaint
    result = frozen("replay", halves[1], "-p", population, "-w", "000003", "--ledger", ledger)
    assert (result.code, result.out) == (1, "")
    assert "me.db: cannot be opened (Read-only file system)" in result.complaint
    assert ledger.read_bytes() == before


def test_what_a_killed_run_has_not_folded_in_is_not_passed_over(
    run, command, frozen, halves, talk, population, tmp_path
):
    """Its rows are in the WAL: they are read, or it is said that they cannot be."""
    path = tmp_path / "frozen" / "me.db"
    options = ["-p", population, "-w", "000003", "--ledger", path, "--ledger-every", "1"]
    killed = subprocess.Popen(
        [*map(str, [*command, "replay", talk, *options]), "--speed", "10", "--jsonl", "-"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        assert killed.poll() is None
        assert time.monotonic() < until
        with suppress(StoreError), Ledger(path, create=False) as other:
            if any(session.speech > 0 for session in other.sessions()):
                break
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    there = frozen("ledger", "show", path)
    assert there.code == 0, there.err
    (session,) = there.records
    assert session["speech"] > 0
    path.with_name("me.db-shm").unlink()
    there = frozen("ledger", "show", path)
    assert (there.code, there.out) == (1, "")
    assert "copy it and me.db-wal to where they may be written" in there.complaint
    assert run("ledger", "show", path).records == [session]


def test_results_cannot_go_there(frozen, talk, population, people, tmp_path):
    no = tmp_path / "frozen"
    for arguments in (
        ["replay", talk, "-p", population, "--jsonl", no / "run.jsonl"],
        ["replay", talk, "-p", population, "--plot", no / "a.png"],
        ["demo", "-o", no],
        ["enrol", people, "-o", no / "us.npz"],
        ["calibrate", people, "-o", no / "us.npz"],
        ["serve", "--web", "0", "--data", no / "people"],
    ):
        result = frozen(*arguments)
        assert (result.code, result.out) == (1, ""), arguments
        (line,) = [line for line in result.err.splitlines() if line.startswith("monitor: ")]
        assert str(no) in line
        assert re.search("permission|read-only", line, re.IGNORECASE)
        assert "Traceback" not in result.err
    assert list(no.iterdir()) == []


def test_stores_are_read_there(run, frozen, talk, population, tmp_path):
    store = tmp_path / "frozen" / "us.npz"
    store.write_bytes(population.read_bytes())
    (tmp_path / "frozen" / ".us.npz.abcdefgh.unfinished").write_bytes(b"left behind")
    result = frozen("replay", talk, "-p", store)
    assert result.code == 0, result.err
    assert result.readings == run("replay", talk, "-p", population).readings


def test_no_place_for_a_cache_is_said_before_the_long_work(frozen, talk, population, tmp_path):
    picture = Path("/dev/shm/never-drawn.png")
    if not os.access(picture.parent, os.W_OK):
        pytest.skip("needs /dev/shm")
    no = str(tmp_path / "frozen")
    folders = " ".join([no, "/tmp", "/var/tmp", str(Path.cwd())])
    result = frozen(
        "replay", talk, "-p", population, "--plot", picture, folders=folders, HOME=no, TMPDIR=no
    )
    assert (result.code, result.out) == (1, "")
    assert "set MPLCONFIGDIR to one that may be written" in result.complaint
    assert not picture.exists()
