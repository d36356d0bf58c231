"""Time and memory of functions that take turns in one process, and of separate programs."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

MONITOR = (sys.executable, "-m", "monitor")
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def time_in_turns(runs: int, works: Mapping[str, Callable[[], object]]) -> dict[str, list[float]]:
    """Return processor seconds of functions in turns on one thread, after a warm-up run of each."""
    from threadpoolctl import threadpool_limits

    seconds: dict[str, list[float]] = {name: [] for name in works}
    with threadpool_limits(1):
        for work in works.values():
            work()
        for _ in range(runs):
            for name, work in works.items():
                began = time.process_time()
                work()
                seconds[name].append(time.process_time() - began)
    return seconds


def format_speedup(slow: Sequence[float], fast: Sequence[float]) -> str:
    """Format the speed ratio of paired runs: median, minimum and maximum."""
    each = sorted(a / b for a, b in zip(slow, fast, strict=True))
    return f"{median(each):.1f} times as fast ({each[0]:.1f} to {each[-1]:.1f})"


class ResourceUse(NamedTuple):
    """Seconds and MB of a program and its child processes: wall, processor, peak and samples."""

    wall_seconds: float
    processor_seconds: float
    peak_mb: float
    memory_samples_mb: list[float]


def wait_for_exit(process: subprocess.Popen[bytes], began: float = 0.0) -> ResourceUse:
    """Wait until a program ends and return its resources."""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    processor_seconds = used.ru_utime + used.ru_stime
    return ResourceUse(time.perf_counter() - began, processor_seconds, used.ru_maxrss / 1024, [])


def run_program(
    command: Sequence[str | Path],
    *, cores: str = "", environment: Mapping[str, str] | None = None, folder: Path | None = None,
    every_seconds: float = 0.0, allowed: Sequence[int] = (0,),
) -> ResourceUse:  # fmt: skip
    """Run a program without output, on some cores (``"0,1"``), and sample its memory if requested.

    Raises:
        SystemExit: its exit status is not allowed.
    """
    pinned = ["taskset", "-c", cores, *command] if cores else list(command)
    began, memory = time.perf_counter(), list[float]()
    with subprocess.Popen(
        pinned,
        env={**os.environ, **(environment or {})},
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        while every_seconds and not _is_over(process.pid):
            memory.append(memory_mb(process=str(process.pid)))
            time.sleep(every_seconds)
        use = wait_for_exit(process, began)
    if process.returncode not in allowed:
        raise SystemExit(f"{' '.join(map(str, command))}: exit status {process.returncode}")
    return use._replace(memory_samples_mb=memory)


def _is_over(number: int) -> bool:
    """Return whether a process has ended, without reaping it."""
    return os.waitid(os.P_PID, number, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def memory_mb(what: str = "VmRSS", process: str = "self") -> float:
    """Return resident MB, or the peak (``VmHWM``); 0 for a process that has just ended."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next((int(x.split()[1]) / 1024 for x in lines if x.startswith(what)), 0.0)


def run_in_new_process(work: Callable[..., Any], *arguments: object) -> Any:
    """Run a function in a new process, so that its memory is separate, and return the result."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        return pool.submit(work, *arguments).result()


def format_number(number: float) -> str:
    """Format a number with spaces between thousands.

    Example:
        >>> format_number(3546.2), format_number(0.2)
        ('3 546', '0.2')
    """
    return f"{number:,.0f}".replace(",", " ") if number >= 10 else f"{number:.2g}"
