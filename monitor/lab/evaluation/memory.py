"""Room for scores: matrices may be on disk, lists must fit in memory."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from monitor.errors import StoreError, UsageError
from monitor.types import AnyArray

_MOST = 1 << 28  # maximum bytes of an array in memory
_BYTES = 45  # memory per comparison of a list that is read and evaluated
JOIN_BYTES = 75
"""Further memory per comparison while it is joined with a trial list, or enrolments are merged."""


def scratch(shape: tuple[int, ...], dtype: DTypeLike = np.float64) -> AnyArray:
    """Make an array of zeros: in memory if small, otherwise a map of a temporary file.

    The file is private (0600). It has no name (POSIX), or is deleted when the program ends.
    """
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    if size <= _MOST:
        return np.zeros(shape, dtype)
    try:
        with tempfile.TemporaryFile() as file:
            if hasattr(os, "posix_fallocate"):  # otherwise a full disk kills the program later
                os.posix_fallocate(file.fileno(), 0, size)
            return np.memmap(file, dtype, "w+", shape=shape)  # keeps the file open
    except OSError as error:
        raise StoreError(
            f"no room for {size / 1e9:.1f} GB of scores ({error.strerror}): free some space, or "
            "set TMPDIR to another folder"
        ) from None


def count_lines(path: Path) -> int:
    """Count lines, including a last one without a line end."""
    count, end = 0, b"\n"
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            count += block.count(b"\n") + block.count(b"\r") - block.count(b"\r\n")
            end = block[-1:]
    return count + (end not in b"\r\n")


def refuse_beyond_memory(label: str, comparisons: int, comparison_bytes: int = _BYTES) -> None:
    """Refuse (UsageError) a list too large for memory, at `comparison_bytes` each."""
    needed = comparisons * comparison_bytes
    if needed > (free := min(_free_bytes(), default=needed)):
        raise UsageError(
            f"{label} has {comparisons:,} comparisons: they need {needed / 1e6:,.0f} MB of memory, "
            f"and {max(free, 0) / 1e6:,.0f} MB is free. List fewer, or save a matrix as .npy"
        )


def _free_bytes() -> Iterator[int]:
    """Yield the memory left by the system, the control group and the limit of the process."""
    system, pages = Path("/proc/meminfo"), Path("/proc/self/statm")
    if hasattr(os, "sysconf"):
        yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if system.exists() and (free := re.search(r"MemAvailable: +(\d+)", system.read_text("ascii"))):
        yield int(free[1]) << 10
    group = Path("/sys/fs/cgroup")
    if (limit := group / "memory.max").exists() and (top := limit.read_text().strip()).isdigit():
        cached = re.search(r"^inactive_file (\d+)", (group / "memory.stat").read_text(), re.M)
        used = int((group / "memory.current").read_text())
        yield int(top) - used + (int(cached[1]) if cached else 0)
    try:
        import resource
    except ImportError:  # Windows
        return
    most_here = resource.getrlimit(resource.RLIMIT_AS)[0]
    if most_here != resource.RLIM_INFINITY and pages.exists():
        yield most_here - int(pages.read_text().split()[0]) * resource.getpagesize()
