"""Cost of moving streams: a snapshot, and a hop to a dask worker."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from benchmarks.page import Page, benchmark
from benchmarks.readers import read
from monitor import Monitor, Population
from monitor.networks.layers import RATE
from monitor.run import FarPool
from monitor.types import Block


@benchmark()
def moving(
    page: Page, speech: Path, *, seconds: float = 30.0, streams: int = 20, workers: int = 2
) -> None:
    """What does it cost to move a stream, and to send it to another process?

    Times are the median and 95th percentile, in CPU time for a snapshot and wall time for a hop. A
    hop sends 0.1 s of all streams of a worker, in blocks of 20 ms, and returns events.
    """
    population, rows = Population.reference(), []
    for name, features in (("all features", None), ("f0", ["f0"])):
        snapshot_seconds, size, restored = [], [], []
        for path in sorted(speech.glob("dev-clean/*/*.opus"))[:8]:
            sound = read(path, seconds)
            monitor = Monitor(population, features, "84")
            monitor.push(Block(sound, RATE))
            began = time.process_time()
            data = monitor.snapshot()
            snapshot_seconds.append(time.process_time() - began)
            size.append(len(data) / 1e3)
            began = time.process_time()
            Monitor(monitor.plan).resume(data)
            restored.append(time.process_time() - began)
        rows.append(
            [name, f"{np.median(size):.0f} kB", *map(_format_spread, (snapshot_seconds, restored))]
        )
    page.table("snapshot of | size | to take | to continue", rows)
    page.table("workers | streams | a hop", [_measure_hops(speech, streams, workers)])


def _measure_hops(speech: Path, streams: int, workers: int) -> list[str]:
    """Time the hops of live streams."""
    sound = read(sorted(speech.glob("dev-clean/*/*.opus"))[0], 10.0)
    with FarPool(f"local:{workers}", Population.reference, ["f0"]) as pool:
        for k in range(streams):
            pool.open(str(k))
        began = time.monotonic()
        for begin in range(0, len(sound), RATE // 50):
            for k in range(streams):
                pool.push(str(k), sound[begin : begin + RATE // 50])
            time.sleep(max(0.0, began + begin / RATE - time.monotonic()))
        for k in range(streams):
            pool.finish(str(k))
        return [str(workers), str(streams), _format_spread(list(pool.hop_seconds)[5:])]


def _format_spread(seconds: list[float]) -> str:
    return "{:.0f} ms, {:.0f} ms".format(*1e3 * np.percentile(seconds, [50, 95]))
