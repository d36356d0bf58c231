"""Hours of audio heard in an hour: one process, and a dask cluster with one worker and with two.

    python -m benchmarks.throughput ../shared/speech/dev-clean [--minutes 30] [--turns 3]

`monitor hear` of the same recordings, in turns; scheduler and workers are processes of their own,
in folders of their own, as `docs/cluster.md` starts them. What all processes took of the processor
is summed, but for the starts of scheduler and workers. Files are compared: a way that made others
would be refused. Prints JSON: of each way the best turn by the clock and the best by the processor,
and ratios of ways within a turn (their median).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import soundfile
from distributed import Client

from benchmarks.dask_cluster import DaskCluster

FEATURES = "f0,phones,voice"
IDLE_SECONDS = 10.0


def choose(corpus: Path, minutes: float, folder: Path) -> float:
    """Link recordings of different speakers into a folder until there are so many minutes."""
    homes = [sorted(home.rglob("*.*")) for home in sorted(corpus.iterdir()) if home.is_dir()]
    seconds = 0.0
    for turn in range(max(map(len, homes))):
        for home in homes:
            if turn < len(home) and seconds < 60 * minutes:
                seconds += soundfile.info(home[turn]).duration
                place = folder / home[turn].relative_to(corpus)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(home[turn].resolve())
    return seconds


def processor_seconds(processes: list[psutil.Process]) -> float:
    return sum(sum(each.cpu_times()[:2]) for each in processes)


def hear(corpus: Path, frames: Path, how: list[str], others: list[psutil.Process]) -> list[float]:
    """Wall and processor seconds of the command and of the other processes."""
    command = [sys.executable, "-m", "monitor", "hear", str(corpus), "-o", str(frames)]
    before, began = processor_seconds(others), time.perf_counter()
    own = os.times()
    subprocess.run([*command, "--features", FEATURES, *how], check=True, stderr=subprocess.DEVNULL)
    wall, after = time.perf_counter() - began, os.times()
    mine = after.children_user + after.children_system - own.children_user - own.children_system
    return [wall, mine + processor_seconds(others) - before]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def with_cluster(
    workers: int, folder: Path, run: Callable[[str, list[psutil.Process]], None], idle: list[float]
) -> None:
    """Call it with a cluster's address and processes, once all of them wait for work.

    What they take of a core while they wait goes to ``idle``.
    """
    folder.mkdir()
    with DaskCluster(folder) as cluster:
        for _ in range(workers):
            cluster.add_worker()
        others = [psutil.Process(p.pid) for p in (cluster.scheduler, *cluster.workers)]
        with Client(cluster.address, set_as_default=False) as client:
            client.wait_for_workers(workers)
        time.sleep(3.0)
        before = processor_seconds(others)
        time.sleep(IDLE_SECONDS)
        idle.append((processor_seconds(others) - before) / IDLE_SECONDS)
        run(cluster.address, others)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--turns", type=int, default=3)
    given = parser.parse_args()
    took: dict[str, list[list[float]]] = {"one process": [], "1 worker": [], "2 workers": []}
    idle: dict[str, list[float]] = {way: [] for way in took}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpus = folder / "corpus"
        seconds = choose(given.corpus, given.minutes, corpus)
        for turn in range(given.turns):
            one = folder / f"one{turn}"
            took["one process"].append(hear(corpus, one, ["--jobs", "1"], []))
            for count, way in ((1, "1 worker"), (2, "2 workers")):
                frames = folder / f"frames{turn}-{count}"

                def run(address: str, others: list[psutil.Process]) -> None:
                    how = ["--scheduler", address]
                    took[way].append(hear(corpus, frames, how, others))  # noqa: B023

                with_cluster(count, folder / f"dask{turn}-{count}", run, idle[way])
                if contents(frames) != contents(one):
                    raise SystemExit(f"{way}: not what one process hears")
    first = took["one process"]
    print(
        json.dumps(
            {
                "minutes": round(seconds / 60, 1),
                "features": FEATURES,
                "load": os.getloadavg()[1],
                "ways": {
                    way: {
                        "hours_an_hour_of_wall": round(seconds / min(t[0] for t in turns), 1),
                        "hours_an_hour_of_processor": round(seconds / min(t[1] for t in turns), 1),
                        "times_one_process_by_wall": ratio(first, turns, 0),
                        "processor_against_one_process": ratio(turns, first, 1),
                        "idle_share_of_a_core": round(min(idle[way], default=0.0), 3),
                    }
                    for way, turns in took.items()
                },
            },
            indent=1,
        )
    )


def ratio(above: list[list[float]], below: list[list[float]], which: int) -> float:
    """The median over turns."""
    pairs = zip(above, below, strict=True)
    return round(statistics.median(a[which] / b[which] for a, b in pairs), 2)


if __name__ == "__main__":
    main()
