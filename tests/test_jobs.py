"""Work by several processes, one thread each: in order, none left behind, none lost in silence."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing

import psutil
import pytest

from monitor.errors import MonitorError, SourceError, UsageError
from monitor.jobs import AHEAD, GeneratorProcesses, cores, each_in_order

SCRIPT = """
import time
from monitor.jobs import each_in_order
if __name__ == "__main__":
    print("begun", flush=True)
    list(each_in_order(time.sleep, [60.0] * 4, 2))
"""

INTERRUPTED = """
import signal, sys, time
import multiprocessing.popen_spawn_posix, multiprocessing.queues, multiprocessing.synchronize
from monitor.jobs import each_in_order

left = int(sys.argv[1])

def count(frame, event, _):
    global left
    left -= event == "return" and "multiprocessing" in frame.f_code.co_filename
    if not left:
        left = -1
        signal.raise_signal(signal.SIGINT)

if __name__ == "__main__":
    sys.setprofile(count)
    try:
        list(each_in_order(time.sleep, [60.0] * 3, 2))
    except KeyboardInterrupt:
        sys.exit(130)
"""
"""Ctrl-C when so many functions of multiprocessing have returned."""


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


def unwritten(result: tuple[float, str | None]) -> None:
    raise OSError("the disk is full")


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_results_come_in_order_and_are_told_of_as_they_are_done(jobs):
    told: list[float] = []
    tasks = [0.5, 0.0, 0.01, 0.0]
    made = list(each_in_order(later_first, tasks, jobs, arrived=lambda each: told.append(each[0])))
    assert [seconds for seconds, _ in made] == tasks
    assert jobs == 1 or {threads for _, threads in made} == {"1"}
    assert sorted(told) == sorted(tasks)
    assert told.index(0.5) == (0 if jobs == 1 else 3)
    with pytest.raises(OSError, match="the disk is full"):
        list(each_in_order(later_first, [0.0] * 3, jobs, arrived=unwritten))


@pytest.mark.slow
def test_what_the_work_raises_is_raised_here_and_a_process_that_dies_is_one_line():
    with closing(each_in_order(refused, range(9), 2)) as results:
        assert [next(results), next(results)] == [0, 1]
        with pytest.raises(UsageError, match="not two"):
            next(results)
    with pytest.raises(MonitorError, match="one of 2 processes ended") as caught:
        list(each_in_order(killed, range(9), 2))
    assert "\n" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_the_one_that_asked_and_nothing_is_left_to_clean_up(tmp_path, how):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    with subprocess.Popen(
        [sys.executable, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as script:
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
        assert "resource_tracker" not in script.stderr.read()  # it ends with the last of them


@pytest.mark.slow
@pytest.mark.parametrize("moment", [1, 30, 59, 60, 74, 75, 89, 90, 110])
def test_ctrl_c_at_any_moment_ends_all_and_leaves_nothing_to_clean_up(tmp_path, moment):
    path = tmp_path / "script.py"
    path.write_text(INTERRUPTED)
    done = subprocess.run(
        [sys.executable, path, str(moment)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (130, "")


# ------------------------------------------------------------------------------------- generators


def counted(most: int) -> Iterator[int]:
    yield from range(most)
    if most == 3:
        raise SourceError("it broke")


def told(_: None) -> Iterator[tuple[int, str | None]]:
    yield os.getpid(), os.environ.get("OPENBLAS_NUM_THREADS")


@pytest.mark.slow
def test_each_generator_by_its_place_and_an_error_where_it_came():
    with GeneratorProcesses(counted, [2, 3, 4 * AHEAD, 1], jobs=2) as processes:
        assert list(processes.iterate_task(0)) == [0, 1]
        broken = processes.iterate_task(1)
        assert [next(broken) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(SourceError, match="it broke"):
            next(broken)
        assert list(processes.iterate_task(2)) == list(range(4 * AHEAD))
        assert list(processes.iterate_task(3)) == [0]
    with GeneratorProcesses(told, [None] * 3, jobs=2) as processes:
        found = [next(processes.iterate_task(place)) for place in range(3)]
    assert found[0] == found[2] != found[1]
    assert {threads for _, threads in found} == {"1"}
    assert os.getpid() not in {process for process, _ in found}


def test_a_generator_that_is_not_wanted_any_more_is_ended():
    with GeneratorProcesses(counted, [1 << 60], jobs=1) as processes:
        assert next(processes.iterate_task(0)) == 0
    assert not any(process.is_alive() for process in processes._processes)


@pytest.mark.slow
@pytest.mark.skipif(cores() < 2, reason="there is one core")
def test_embeddings_are_the_same_on_one_core_and_on_more():
    program = """
import hashlib, numpy as np
from monitor.features.extractor import Extractor
from monitor.features.embeddings import Voice
from monitor.types import Block
from tests.sounds import synthetic
extractor = Extractor([Voice()])
track = extractor.process(Block(synthetic(12.0), 16_000)).tracks["voice"]
print(len(track.values), hashlib.sha256(track.values.tobytes()).hexdigest())
"""
    said = {
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": threads},
        ).stdout
        for threads in ("1", "2")
    }  # fmt: skip
    assert len(said) == 1
    assert not said.pop().startswith("0 ")
