"""Many live streams in one process: a pool against a monitor for each stream."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.page import Page, benchmark
from benchmarks.readers import read
from benchmarks.timing import in_own_process, memory_mb
from monitor import Monitor, Pool, Population
from monitor.networks.layers import RATE
from monitor.types import Block, FloatArray

FRAME_SECONDS = 0.02
WARM_SECONDS = 6.0


@benchmark()
def streams(
    page: Page, speech: Path,
    *, seconds: float = 20.0, counts: tuple[int, ...] = (1, 10, 30, 60),
    features: tuple[str, ...] = (),
) -> None:  # fmt: skip
    """What do live streams cost in one process, in a pool and in separate monitors?

    Frames of 20 ms, one reading per second, each stream with another watched reader and another
    recording. Processor time is that of the whole process. Memory is resident memory beyond that
    of one stream, which is in the process before.
    """
    paths = sorted(speech.glob("dev-clean/*/*.opus"))
    rows = []
    for count in counts:
        for name, work in (("pool", pooled), ("monitors", separate)):
            share, more = in_own_process(work, paths, count, seconds, list(features) or None)
            rows.append([
                name, str(count), f"{100 * share / count:.2f} %", f"{100 * share:.0f} %",
                f"{more / max(count - 1, 1):.1f} MB" if count > 1 else "",
            ])  # fmt: skip
            page.note(" | ".join(rows[-1]))
    page.table("in | streams | of a core, each | of a core, all | memory, each further one", rows)


def sounds(paths: list[Path], count: int, seconds: float) -> list[FloatArray]:
    """Read a recording for each stream; in a circle where they are too few."""
    some = [read(path, seconds) for path in paths[: min(count, len(paths))]]
    return [some[k % len(some)] for k in range(count)]


def in_frames(sound: list[FloatArray], push: Callable[[int, FloatArray], object]) -> None:
    """Push to all streams in turn, 20 ms at a time."""
    size = round(FRAME_SECONDS * RATE)
    for begin in range(0, max(map(len, sound)), size):
        for k, samples in enumerate(sound):
            if begin < len(samples):
                push(k, samples[begin : begin + size])


def pooled(
    paths: list[Path], count: int, seconds: float, features: list[str] | None
) -> tuple[float, float]:
    """Processor share and MB of a pool that gets audio as fast as it takes it."""
    sound, population = sounds(paths, count, seconds), Population.reference()
    names = population.names
    with Pool(population, features) as pool:
        pool.open("warm", watch=names[0])
        pool.push("warm", sound[0][: round(WARM_SECONDS * RATE)])
        pool.drain()
        memory = memory_mb()
        for k in range(count):
            pool.open(k, watch=names[k % len(names)])
        pushed = 0

        def push(k: int, samples: FloatArray) -> None:
            nonlocal pushed
            pool.push(k, samples)
            pushed += len(samples)
            if k == count - 1 and pushed % (count * RATE // 10) < count * len(samples):
                pool.drain()  # a round has a tenth of a second of each stream, as live

        began = time.process_time()
        in_frames(sound, push)
        for k in range(count):
            pool.finish(k)
        spent = time.process_time() - began
    return spent / seconds, memory_mb("VmHWM") - memory


def separate(
    paths: list[Path], count: int, seconds: float, features: list[str] | None
) -> tuple[float, float]:
    """Processor share and MB of a monitor for each stream."""
    sound, population = sounds(paths, count, seconds), Population.reference()
    names = population.names
    warm = Monitor(population, features, names[0])
    warm.push(Block(sound[0][: round(WARM_SECONDS * RATE)], RATE))
    memory = memory_mb()
    monitors = [Monitor(population, features, names[k % len(names)]) for k in range(count)]
    began = time.process_time()
    in_frames(sound, lambda k, samples: monitors[k].push(Block(samples, RATE)))
    for monitor in monitors:
        monitor.finish()
    spent = time.process_time() - began
    return spent / seconds, memory_mb("VmHWM") - memory
