"""Work by several processes: in order, none left behind, and no work lost in silence."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import psutil
import pytest

import monitor
from monitor.errors import MonitorError, UsageError
from monitor.jobs import each_in_order

SCRIPT = """
import time
from monitor.jobs import each_in_order
if __name__ == "__main__":
    print("begun", flush=True)
    list(each_in_order(time.sleep, [60.0] * 4, 2))
"""


def later_first(seconds: float) -> tuple[float, str | None]:
    time.sleep(seconds)
    return seconds, os.environ.get("OMP_NUM_THREADS")


def killed(number: int) -> int:
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def refused(number: int) -> int:
    if number == 2:
        raise UsageError("not two")
    return number


@pytest.mark.slow
def test_results_come_in_order_each_made_with_one_thread():
    tasks = [0.3, 0.0, 0.1, 0.0]
    assert list(each_in_order(later_first, tasks, 2)) == [(task, "1") for task in tasks]
    assert list(each_in_order(abs, [-2, 1, -3])) == [2, 1, 3]


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_what_is_done_is_told_of_before_what_takes_longer(jobs):
    told: list[float] = []
    tasks = [0.5, 0.0, 0.01, 0.0]
    results = each_in_order(later_first, tasks, jobs, arrived=lambda each: told.append(each[0]))
    assert [seconds for seconds, _ in results] == tasks
    assert sorted(told) == sorted(tasks)
    assert told.index(0.5) == (0 if jobs == 1 else 3)


def unwritten(result: tuple[float, str | None]) -> None:
    raise OSError("the disk is full")


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_what_cannot_be_told_of_ends_the_work(jobs):
    with pytest.raises(OSError, match="the disk is full"):
        list(each_in_order(later_first, [0.0] * 3, jobs, arrived=unwritten))


@pytest.mark.slow
def test_an_exception_of_the_work_is_raised_here():
    with closing(each_in_order(refused, range(9), 2)) as results:
        assert [next(results), next(results)] == [0, 1]
        with pytest.raises(UsageError, match="not two"):
            next(results)


@pytest.mark.slow
def test_a_process_that_dies_is_one_line():
    with pytest.raises(MonitorError, match="one of 2 processes has ended") as caught:
        list(each_in_order(killed, range(9), 2))
    assert "\n" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_process_outlives_the_one_that_asked(tmp_path, how):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    with subprocess.Popen(
        [sys.executable, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as script:
        assert script.stdout is not None
        assert script.stdout.readline() == "begun\n"
        workers = psutil.Process(script.pid).children
        until = time.monotonic() + 60
        while sum("spawn_main" in " ".join(w.cmdline()) for w in workers()) < 2:
            assert time.monotonic() < until
            time.sleep(0.05)
        left = workers()
        script.send_signal(how)
        gone, alive = psutil.wait_procs(left, timeout=60)
        assert not alive
        assert gone
        assert script.wait(60) != 0


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system pins nothing")
def test_nothing_counts_cores_that_this_process_may_not_use():
    program = """
import os, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from monitor.cli.doctor import examine
from monitor.jobs import cores
print(cores(), next(examine()).words)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("1 ")
    assert done.stdout.rstrip().endswith(", 1 core")
    used = [
        path
        for path in Path(monitor.__file__).parent.rglob("*.py")
        if "os.cpu_count" in path.read_text("utf-8")
    ]
    assert [path.name for path in used] == ["jobs.py"]
