"""Programs of others, real ones: what they print is bounded, and nothing of them is left."""

import os
import resource
import shlex
import subprocess
import time
from pathlib import Path

import pytest

from monitor import programs
from monitor.programs import run_program
from tests.waiting import until

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")

ESCAPES = {
    "a child": "sleep 600 & echo $! > pid; wait",
    "setsid": "setsid sh -c 'echo $$ > pid; exec sleep 600' & sleep 600",
    "an orphan in a session of its own": (
        "(setsid sh -c 'echo $$ > pid; exec sleep 600' &); sleep 600"
    ),
    "a child without the environment": (
        "setsid env -i sh -c 'echo $$ > pid; exec sleep 600' & sleep 600"
    ),
    "a child of a child, both in sessions": (
        "setsid sh -c 'setsid sh -c \"echo \\$\\$ > pid; exec sleep 600\" & exec sleep 600' & wait"
    ),
}


def gone(pid: int) -> bool:
    """Within two seconds; a zombie that nobody waited for is."""
    for _ in range(200):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


def noted(path: Path) -> int:
    until(lambda: path.exists() and path.read_text().endswith("\n"))
    return int(path.read_text())


@pytest.mark.slow
@pytest.mark.parametrize("line", ESCAPES.values(), ids=ESCAPES)
def test_who_takes_too_long_is_killed_with_all_that_it_started(tmp_path, monkeypatch, line):
    monkeypatch.chdir(tmp_path)
    ended = run_program(["sh", "-c", line], b"", seconds=1.0, most_printed=100)
    assert (ended.stopped, ended.status) == ("time", -9)
    assert gone(noted(tmp_path / "pid"))


@pytest.mark.slow
def test_one_that_starts_others_without_end_is_killed():
    line = "while :; do (setsid sleep 601 &) ; sleep 0.01; done"
    assert run_program(["sh", "-c", line], b"", seconds=0.5, most_printed=9).stopped == "time"
    listed = subprocess.run(["ps", "-eo", "stat,args"], capture_output=True, text=True, check=True)
    assert not [each for each in listed.stdout.splitlines() if each.endswith("sleep 601")]


@pytest.mark.parametrize(("line", "stopped"), [("yes", "printed"), ("yes >&2", "said")])
def test_one_that_writes_without_end_is_killed_and_little_is_kept(monkeypatch, line, stopped):
    monkeypatch.setattr(programs, "MOST_SAID_BYTES", 1 << 24)
    ended = run_program(["sh", "-c", line], b"", seconds=60.0, most_printed=1 << 20)
    assert ended.stopped == stopped
    assert len(ended.printed) < (1 << 20) + (1 << 17)
    assert len(ended.errors) <= 1 << 16


def test_much_goes_in_and_much_comes_out():
    given = os.urandom(1 << 20) * 4
    ended = run_program(["cat"], given, seconds=60, most_printed=len(given))
    assert (ended.status, ended.stopped, ended.printed == given) == (0, None, True)


@pytest.mark.parametrize("line", ["exec <&-; echo done", "head -c 10 >&2; echo done"])
def test_who_does_not_listen_to_the_end_may_answer(line):
    ended = run_program(["sh", "-c", line], bytes(1 << 20), seconds=60, most_printed=100)
    assert (ended.status, ended.printed) == (0, b"done\n")


def test_what_it_leaves_behind_does_not_keep_its_answer(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    line = "setsid sh -c 'echo $$ > pid; exec sleep 600' & echo done"
    ended = run_program(["sh", "-c", line], b"", seconds=60, most_printed=100)
    assert (ended.status, ended.stopped, ended.printed) == (0, None, b"done\n")
    assert gone(noted(tmp_path / "pid"))


def test_nothing_of_it_is_open_afterwards():
    run_program(["true"], b"", seconds=60, most_printed=1)  # selectors are imported
    before = sorted(Path("/proc/self/fd").iterdir())
    for line in ("true", "yes", "yes >&2 | head -c 9", "exit 3"):
        run_program(shlex.split(f"sh -c '{line}'"), b"abc", seconds=60, most_printed=1000)
    assert sorted(Path("/proc/self/fd").iterdir()) == before
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss > 0  # they were waited for
