"""Cost of many live streams in one process: a pool, separate monitors, and a peer."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from benchmarks.page import Page, benchmark
from benchmarks.readers import read
from benchmarks.timing import memory_mb, run_in_new_process
from monitor import Monitor, Pool, Population
from monitor.networks.layers import RATE
from monitor.types import Block, FloatArray

FRAME_SECONDS = 0.02
WARM_SECONDS = 6.0


PEER_SECONDS = 3.0


@benchmark()
def streams(
    page: Page, speech: Path,
    *, seconds: float = 30.0, counts: tuple[int, ...] = (1, 10, 30, 60),
    features: tuple[str, ...] = (), peer: Path | None = None,
) -> None:  # fmt: skip
    """What do live streams cost in one process, in a pool, in separate monitors, and in a peer?

    Audio arrives in blocks of 20 ms, with one reading per second. Each stream has a different
    watched reader and recording. Processor time is that of the whole process, and includes start
    and end. Memory is peak resident memory beyond that of the process with one stream. PEER is a
    folder with SpeechBrain's ECAPA-TDNN, whose complete network embeds every 3 s of each stream.
    """
    paths = sorted(speech.glob("dev-clean/*/*.opus"))
    works = {"pool": measure_pool, "monitors": measure_monitors}
    if peer is not None:
        works["SpeechBrain's ECAPA-TDNN alone"] = partial(measure_embeddings, peer)
    what, rows = "+".join(features) or "all", []
    for count in counts:
        for name, work in works.items():
            load = os.getloadavg()[0]
            share, more = run_in_new_process(work, paths, count, seconds, list(features) or None)
            each = share / count
            rows.append([
                name, "" if "alone" in name else what, f"{seconds:g} s", str(count),
                f"{100 * each:.2f} %", f"{1 / each:.0f}",
                f"{more / (count - 1):.1f} MB" if count > 1 else "", f"{load:.1f}",
            ])  # fmt: skip
            page.note(" | ".join(rows[-1]))
    heads = "in | features | of | streams | of a core, each | a core holds"
    page.table(f"{heads} | memory, each further one | load before", rows, keys=4)


def read_sounds(paths: list[Path], count: int, seconds: float) -> list[FloatArray]:
    """Read a recording of this length for each stream; repeat recordings if too few."""
    long = (sound for path in paths if len(sound := read(path, seconds)) == round(seconds * RATE))
    recordings = list(islice(long, count))
    return [recordings[k % len(recordings)] for k in range(count)]


def push_in_frames(sound: list[FloatArray], push: Callable[[int, FloatArray], object]) -> None:
    """Push audio to all streams in turn, 20 ms at a time."""
    size = round(FRAME_SECONDS * RATE)
    for begin in range(0, max(map(len, sound)), size):
        for k, samples in enumerate(sound):
            if begin < len(samples):
                push(k, samples[begin : begin + size])


def measure_pool(
    paths: list[Path], count: int, seconds: float, features: list[str] | None
) -> tuple[float, float]:
    """Return the fraction of a core and the MB of a pool, fed without waiting for real time."""
    sounds, population = read_sounds(paths, count, seconds), Population.reference()
    names = population.names
    with Pool(population, features) as pool:
        pool.open("warm", watch=names[0])
        pool.push("warm", sounds[0][: round(WARM_SECONDS * RATE)])
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
                pool.drain()  # each round has 0.1 s of each stream, as in live use

        began = time.process_time()
        push_in_frames(sounds, push)
        for k in range(count):
            pool.finish(k)
        processor_seconds = time.process_time() - began
    return processor_seconds / seconds, memory_mb("VmHWM") - memory


def measure_monitors(
    paths: list[Path], count: int, seconds: float, features: list[str] | None
) -> tuple[float, float]:
    """Return the fraction of a core and the MB of one monitor per stream."""
    sounds, population = read_sounds(paths, count, seconds), Population.reference()
    names = population.names
    warm = Monitor(population, features, names[0])
    warm.push(Block(sounds[0][: round(WARM_SECONDS * RATE)], RATE))
    memory = memory_mb()
    monitors = [Monitor(population, features, names[k % len(names)]) for k in range(count)]
    began = time.process_time()
    push_in_frames(sounds, lambda k, samples: monitors[k].push(Block(samples, RATE)))
    for monitor in monitors:
        monitor.finish()
    processor_seconds = time.process_time() - began
    return processor_seconds / seconds, memory_mb("VmHWM") - memory


def measure_embeddings(
    folder: Path, paths: list[Path], count: int, seconds: float, _features: object
) -> tuple[float, float]:
    """Return the fraction of a core and the MB of SpeechBrain's network, all streams in a batch."""
    import torch
    from speechbrain.inference.speaker import EncoderClassifier

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as cache:
        encoder = EncoderClassifier.from_hparams(
            str(folder), savedir=cache, overrides={"pretrained_path": str(folder)}
        )
        assert encoder is not None
        sounds = np.stack(read_sounds(paths, count, seconds // PEER_SECONDS * PEER_SECONDS))
        windows = sounds.reshape(count, -1, round(PEER_SECONDS * RATE))
        with torch.no_grad():
            encoder.encode_batch(torch.from_numpy(windows[:1, 0]))
            memory, began = memory_mb(), time.process_time()
            for k in range(windows.shape[1]):
                encoder.encode_batch(torch.from_numpy(windows[:, k]))
            processor_seconds = time.process_time() - began
    return processor_seconds * RATE / sounds.shape[1], memory_mb("VmHWM") - memory
