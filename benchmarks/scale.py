"""What N enrolled people cost, up to 100 000: memory and processor time of everything that grows.

    python -m benchmarks.scale [--speakers 1000,11696,100000] [--what reading,store,evaluate]

Templates of 30 s are drawn from a generator, of the features, sizes and networks of the shipped
population and under its rank models and cohort, so that every reading says all that it would. Each
row is a process of its own, on one thread, whose memory is looked at; times are of the processor.
The public peer is numpy's product of the same matrices, in the same process. Prints JSON.

``shortlist`` scores embeddings alone, as one would among millions. ``calibrate`` learns a rank
model of pitch on simulated speech (benchmarks/simulation.py), which takes minutes to make.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.simulation import SIZE, Simulation
from monitor.evaluation.evaluating import evaluate
from monitor.evaluation.input.scores import read_scores
from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.population.cohort import FeatureTemplates
from monitor.population.population import Population, Speaker
from monitor.stream.monitor import Monitor
from monitor.training.calibrating import calibrate
from monitor.training.voices import UNITS_PER_SECOND, SessionFrames, SpeakerSpeech
from monitor.types import AnyArray, Frames, Track

SLICES = 6
"""Of 5 s each."""
FEATURES = ("f0", "phones", "voice")
SECONDS = 30
"""Of a stream that is read every second."""
TRIALS = 2000


def memory_mb(what: str = "VmRSS") -> float:
    """Resident now, or since `forget_peak` at most (``VmHWM``)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(what)).split()[1]) / 1024


@contextmanager
def measured(row: dict[str, float], name: str) -> Iterator[None]:
    """Processor seconds, and the most memory beyond what was there before."""
    Path("/proc/self/clear_refs").write_text("5")
    before, began = memory_mb(), time.process_time()
    yield
    row[f"{name}_seconds"] = round(time.process_time() - began, 3)
    row[f"{name}_peak_mb"] = round(memory_mb("VmHWM") - before, 1)


def slices_of(spec: FeatureSpec, speakers: int) -> AnyArray:
    """Sketches of 5 s, speaker after speaker, drawn in blocks so that making them takes little."""
    generator = np.random.default_rng(0)
    made: list[AnyArray] = []
    for first in range(0, speakers, 1000):
        few = min(1000, speakers - first)
        shape = (few, SLICES, spec.size)
        if spec.kind is HISTOGRAM:
            own = generator.gamma(0.3, size=(few, 1, spec.size)) + 1e-3
            block = generator.poisson(300 * own / own.sum(-1, keepdims=True), shape)
            made.append(block.astype(np.uint16))
        else:
            voice = generator.standard_normal((few, 1, spec.size))
            voice = voice + generator.standard_normal(shape)
            voice /= np.linalg.norm(voice, axis=-1, keepdims=True)
            made.append(voice.astype(np.float16))
    return np.concatenate(made).reshape(-1, spec.size)


def population_of(speakers: int) -> Population:
    """So many synthetic people under the shipped rank models."""
    shipped = Population.reference().only(FEATURES)
    return Population(
        [Speaker(f"{i:08d}") for i in range(speakers)],
        np.arange(speakers + 1) * SLICES,
        {
            name: FeatureTemplates(spec, slices_of(spec, speakers))
            for name, spec in shipped.specs.items()
        },
        shipped.rank_models,
        cohort=shipped.cohort,
    )


def second_of(population: Population, second: int) -> Frames:
    """A second of a stream with frames of every feature, a voice embedding every third."""
    generator = np.random.default_rng([1, second])
    tracks = {}
    for name, spec in population.specs.items():
        if spec.kind is HISTOGRAM:
            ticks = np.arange(2, 101, 2)
            tracks[name] = Track(ticks, generator.integers(0, spec.size, ticks.size))
        else:
            ticks = np.array([100] if second % 3 == 2 else [], np.int64)
            tracks[name] = Track(
                ticks, generator.standard_normal((ticks.size, spec.size)).astype(np.float32)
            )
    return Frames(np.ones(100, np.bool_), tracks)


def reading(speakers: int) -> dict[str, float]:
    """A reading a second with everything in it, against the products that it cannot do without."""
    row: dict[str, float] = {}
    population = population_of(speakers)
    row["population_mb"] = round(
        sum(f.slices.nbytes for f in population.features.values()) / 1e6, 1
    )
    with measured(row, "monitor"):
        monitor = Monitor(population, FEATURES, watch="00000001")
    assert monitor.attacker.support_bits is not None
    row["resident_mb"] = round(memory_mb(), 1)
    raw = {name: np.ones((speakers, spec.size)) for name, spec in population.specs.items()}
    times: list[list[float]] = [[], []]
    for second in range(SECONDS):
        block = second_of(population, second)
        began = time.thread_time()
        monitor.push(block)
        middle = time.thread_time()
        for name, matrix in raw.items():
            np.dot(matrix, np.ones(population.specs[name].size))
        times[0].append(middle - began)
        times[1].append(time.thread_time() - middle)
    own, product = (statistics.median(taken[3:]) * 1e3 for taken in times)
    return row | {
        "reading_ms": round(own, 3),
        "product_ms": round(product, 3),
        "ratio": round(own / product, 2),
    }


def store(speakers: int) -> dict[str, float]:
    """The file of a population: its size, to write and to read."""
    row: dict[str, float] = {}
    population = population_of(speakers)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "many.npz"
        with measured(row, "save"):
            population.save(path)
        row["file_mb"] = round(path.stat().st_size / 1e6, 1)
        del population
        with measured(row, "load"):
            again = Population.load(path)
        assert len(again) == speakers
    return row


def evaluated(speakers: int) -> dict[str, float]:
    """A report of 2000 trials against everybody, all metrics, 200 resamples; float32 on disk."""
    row: dict[str, float] = {}
    generator = np.random.default_rng(0)
    target = np.sort(generator.integers(0, speakers, TRIALS))
    with tempfile.TemporaryDirectory() as folder:
        scores, labels = Path(folder) / "scores.npy", Path(folder) / "labels.npy"
        np.save(labels, target)
        header = {"descr": "<f4", "fortran_order": False, "shape": (TRIALS, speakers)}
        with scores.open("wb") as file:
            np.lib.format.write_array_header_1_0(file, header)
            for first in range(0, TRIALS, 100):
                block = generator.standard_normal((100, speakers), dtype=np.float32)
                block[np.arange(100), target[first : first + 100]] += 3
                file.write(block.tobytes())
        row["file_mb"] = round(scores.stat().st_size / 1e6, 1)
        with measured(row, "evaluate"):
            read = read_scores(scores, labels)
            report = evaluate(read.matrix, replicates=200, notes=read.notes)
        row["figures"] = len(report.figures)
    return row


def calibrated(speakers: int) -> dict[str, float]:
    """A model of pitch at one length, 10 s against 30 s, within and across two sessions of 60 s."""
    row: dict[str, float] = {}
    spec = FeatureSpec("f0", HISTOGRAM, SIZE, 0.01)
    simulation = Simulation(speakers)

    def session(speaker: int, number: int) -> dict[str, SessionFrames]:
        frames = simulation.frames(speaker, number, 75.0)
        clock = np.cumsum(frames.speech)
        units = np.maximum(clock[frames.tracks["f0"].ticks - 1] - 1, 0) // 10
        length = int(clock[-1]) // 10
        keep = units < length
        values = frames.tracks["f0"].values[keep].astype(np.uint16)
        return {"f0": SessionFrames(values, units[keep].astype(np.int32), length, spec)}

    voices = [SpeakerSpeech(f"{i:08d}", (session(i, 0), session(i, 1))) for i in range(speakers)]
    hours = sum(v.length(s) for v in voices for s in (0, 1)) / UNITS_PER_SECOND / 3600
    with measured(row, "calibrate"):
        made = calibrate(
            voices, {"f0": spec}, lengths=[10.0], template_lengths=[30.0], prior=None, cohort=None
        )
    row["trials"] = max(int(cell["trials"]) for cell in made.rows)
    row["cells"] = len(made.rows)
    return row | {"speech_hours": round(hours, 1)}


def shortlisted(speakers: int) -> dict[str, float]:
    """The thousand nearest of so many embeddings, kept in half precision, scored in blocks."""
    row: dict[str, float] = {}
    spec = Population.reference().specs["voice"]
    generator = np.random.default_rng(0)
    half = np.empty((speakers, spec.size), np.float16)
    for first in range(0, speakers, 10_000):
        block = generator.standard_normal((min(10_000, speakers - first), spec.size))
        half[first : first + len(block)] = block / np.linalg.norm(block, axis=1, keepdims=True)
    stream = generator.standard_normal(spec.size)
    stream = stream / np.linalg.norm(stream) + half[7].astype(float)
    row["templates_mb"] = round(half.nbytes / 1e6, 1)
    with measured(row, "shortlist"):
        near = np.empty(speakers, np.float32)
        for first in range(0, speakers, 10_000):
            block = half[first : first + 10_000].astype(np.float32)
            near[first : first + len(block)] = block @ stream.astype(np.float32)
        kept = np.argpartition(-near, 1000)[:1000]
    exact = np.concatenate(
        [half[i : i + 10_000].astype(float) @ stream for i in range(0, speakers, 10_000)]
    )
    best = np.argsort(-exact)[:100]
    return row | {"of_the_hundred_nearest": float(np.isin(best, kept).mean())}


WHAT: dict[str, Callable[[int], dict[str, float]]] = {
    "reading": reading,
    "store": store,
    "evaluate": evaluated,
    "calibrate": calibrated,
    "shortlist": shortlisted,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--speakers", default="1000,11696,100000")
    parser.add_argument("--what", default="reading,store,evaluate")
    parser.add_argument("--one", action="store_true", help="in this process")
    given = parser.parse_args()
    counts = [int(number) for number in given.speakers.split(",")]
    if given.one:
        with threadpool_limits(1):
            print(json.dumps(WHAT[given.what](counts[0])))
        return
    for what in given.what.split(","):
        for speakers in counts:
            command = [sys.executable, "-m", "benchmarks.scale", "--one", "--what", what]
            done = subprocess.run(
                [*command, "--speakers", str(speakers)], check=True, stdout=subprocess.PIPE
            )
            print(json.dumps({"what": what, "speakers": speakers, **json.loads(done.stdout)}))


if __name__ == "__main__":
    main()
