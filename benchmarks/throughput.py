"""Hours of audio heard in an hour: one process, several, and the pinned workers of a dask cluster.

    python -m benchmarks.throughput SPEECH/dev-clean SPEECH/train-clean-5 --recordings 1000 --cut 15

`monitor hear` of the same recordings, in turns; scheduler and workers are processes of their own,
in folders of their own, as `docs/cluster.md` starts them. One process, and each worker, is bound to
one core (workers share the cores evenly); scheduler and client run on any of the cores. What all
processes took of the processor is summed, but for the starts of scheduler and workers. Files are
compared: a way that made others would be refused. Prints JSON: of each way the best turn by the
clock and the best by the processor, and ratios of ways within a turn (their median, and each).

``--cut S`` makes recordings of S seconds of the readers' chapters, as FLAC; without it whole
recordings are linked.
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
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import islice, zip_longest
from pathlib import Path

import psutil
import soundfile
from distributed import Client

from benchmarks.dask_cluster import DaskCluster, pinned
from monitor.corpus.finding import find

FEATURES = "f0,phones,voice"
IDLE_SECONDS = 10.0


def stretches(corpora: list[Path], cut: float | None) -> Iterator[tuple[str, Path, int]]:
    """Speaker, recording and number of its stretch: a first one of everybody, a second, and so on.

    Stretches are of ``cut`` seconds; with None they are whole recordings.
    """
    of: defaultdict[str, list[tuple[str, Path, int]]] = defaultdict(list)
    for each in (each for corpus in corpora for each in find(corpus).recordings):
        count = 1 if cut is None else int(soundfile.info(each.path).duration // cut)
        of[each.speaker] += [(each.speaker, each.path, number) for number in range(count)]
    for turn in zip_longest(*of.values()):
        yield from filter(None, turn)


def choose(corpora: list[Path], recordings: int, cut: float | None, folder: Path) -> float:
    """Put so many recordings into a folder, a folder each speaker; their seconds."""
    seconds = 0.0
    for speaker, path, number in islice(stretches(corpora, cut), recordings):
        home = folder / speaker
        home.mkdir(parents=True, exist_ok=True)
        if cut is None:
            seconds += soundfile.info(path).duration
            (home / path.name).symlink_to(path.resolve())
            continue
        rate = soundfile.info(path).samplerate
        size = int(cut * rate)
        audio, _ = soundfile.read(path, size, number * size, dtype="int16")
        soundfile.write(home / f"{path.stem}-{number}.flac", audio, rate)
        seconds += cut
    return seconds


def processor_seconds(processes: list[psutil.Process]) -> float:
    return sum(sum(each.cpu_times()[:2]) for each in processes)


def hear(
    corpus: Path,
    frames: Path,
    how: list[str],
    others: list[psutil.Process],
    core: int | None = None,
) -> list[float]:
    """Wall and processor seconds of the command and of the other processes."""
    command = [*pinned(core), sys.executable, "-m", "monitor", "hear", str(corpus)]
    command += ["-o", str(frames), "--features", FEATURES, *how]
    before, began = processor_seconds(others), time.perf_counter()
    own = os.times()
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
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
    cores = sorted(os.sched_getaffinity(0))
    with DaskCluster(folder) as cluster:
        for number in range(workers):
            cluster.add_worker(core=cores[number % len(cores)])
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
    parser.add_argument("corpus", type=Path, nargs="+")
    parser.add_argument("--recordings", type=int, default=1000)
    parser.add_argument("--cut", type=float, help="seconds of each recording [default: all]")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    given = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    plain, several = "one process", f"--jobs {len(cores)}"
    ways = [plain, several, *(f"{count} workers" for count in given.workers)]
    took: dict[str, list[list[float]]] = {way: [] for way in ways}
    idle: dict[str, list[float]] = {way: [] for way in ways}
    loads = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpus = folder / "corpus"
        seconds = choose(given.corpus, given.recordings, given.cut, corpus)
        for turn in range(given.turns):
            loads.append(os.getloadavg()[0])
            one, two = folder / f"one{turn}", folder / f"jobs{turn}"
            took[plain].append(hear(corpus, one, ["--jobs", "1"], [], cores[0]))
            took[several].append(hear(corpus, two, ["--jobs", str(len(cores))], []))
            for count in given.workers:
                way, frames = f"{count} workers", folder / f"frames{turn}-{count}"

                def run(address: str, others: list[psutil.Process]) -> None:
                    how = ["--scheduler", address]
                    took[way].append(hear(corpus, frames, how, others))  # noqa: B023

                with_cluster(count, folder / f"dask{turn}-{count}", run, idle[way])
                if contents(frames) != contents(one):
                    raise SystemExit(f"{way}: not what one process hears")
            print({way: took[way][-1] for way in ways}, file=sys.stderr, flush=True)
    first = took[plain]
    print(
        json.dumps(
            {
                "recordings": given.recordings,
                "minutes": round(seconds / 60, 1),
                "features": FEATURES,
                "cores": len(cores),
                "load before each turn": loads,
                "ways": {
                    way: {
                        "hours_an_hour_of_wall": round(seconds / min(t[0] for t in turns), 1),
                        "hours_an_hour_of_processor": round(seconds / min(t[1] for t in turns), 1),
                        "times_one_process_by_wall": ratios(first, turns, 0),
                        "processor_against_one_process": ratios(turns, first, 1),
                        "idle_share_of_a_core": round(min(idle[way], default=0.0), 3),
                    }
                    for way, turns in took.items()
                },
            },
            indent=1,
        )
    )


def ratios(above: list[list[float]], below: list[list[float]], which: int) -> list[float]:
    """The median over turns, and each turn."""
    pairs = [a[which] / b[which] for a, b in zip(above, below, strict=True)]
    return [round(each, 2) for each in (statistics.median(pairs), *pairs)]


if __name__ == "__main__":
    main()
