"""What N enrolled people cost, up to 100 000: memory and processor time of everything that grows.

    python -m benchmarks.scale [--speakers 1000,11696,100000] [--what reading,store,evaluate]
    python -m benchmarks.scale --speakers 1000000 --what mapped --folder DIR

Templates of 30 s are drawn from a generator, of the features, sizes and networks of the shipped
population and under its rank models and cohort, so that every reading says all that it would. Each
row is a process of its own, on one thread, whose memory is looked at; times are of the processor.
The public peer is numpy's product of the same matrices, in the same process. Prints JSON.

``mapped`` has embeddings of `voice` alone, 10 s of each person, in a store that is mapped: the
file is made in one process (``--folder`` keeps it), and started from and read in another. People
are drawn about the shipped readers (a smoothed bootstrap, by their covariance, and by that from
slice to slice): the cosines of both stand beside each other.

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
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.simulation import SIZE, Simulation
from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.lab.evaluation.evaluating import evaluate
from monitor.lab.evaluation.family import EvaluationSettings
from monitor.lab.evaluation.input.scores import read_scores
from monitor.population.cohort import FeatureTemplates
from monitor.population.people import Speaker
from monitor.population.population import Population
from monitor.stream.monitor import Monitor
from monitor.training.calibrating import CalibrationSettings, calibrate
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
            report = evaluate(
                read.matrix, settings=EvaluationSettings(replicates=200), notes=read.notes
            )
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
            voices,
            {"f0": spec},
            CalibrationSettings(lengths=[10.0], template_lengths=[30.0], prior=None, cohort=None),
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


SMOOTHED = 0.5
"""Share of the variance between people that is drawn anew, not a shipped voice's."""
WIDER = 1.1
"""By so much slices of a reader differ more than shipped ones do from their mean: of those that lie
apart in a recording the cosines are lower than of independent draws."""


class Crowd:
    """Draws people like the shipped ones, by sums of their `voice` embeddings over 5 s."""

    def __init__(self) -> None:
        shipped = Population.reference().only(["voice"])
        slices = shipped.features["voice"].slices.astype(float)
        counts = np.diff(shipped.offsets)
        means = np.add.reduceat(slices, shipped.offsets[:-1]) / counts[:, None]
        within = slices - np.repeat(means, counts, axis=0)
        lengths = np.linalg.norm(means, axis=1, keepdims=True)
        self.length = float(lengths.mean())
        self.voices = means / lengths
        self.middle = self.voices.mean(axis=0)
        self.between = self._root(self.voices - self.middle)
        self.within = WIDER * self._root(within)
        self.real = self._cosines(
            np.stack([slices[o : o + 2].sum(axis=0) for o in shipped.offsets[:-1]]),
            np.stack([slices[o - 2 : o].sum(axis=0) for o in shipped.offsets[1:]]),
        )

    @staticmethod
    def _root(rows: AnyArray) -> AnyArray:
        return np.asarray(rows / np.sqrt(len(rows)))

    def people(self, generator: np.random.Generator, count: int) -> AnyArray:
        """Means of so many, shape (count, M)."""
        kernel = self.voices[generator.integers(0, len(self.voices), count)] - self.middle
        drawn = generator.standard_normal((count, len(self.between)), np.float32)
        drawn = drawn @ self.between.astype(np.float32)
        mixed = np.sqrt(1 - SMOOTHED) * kernel + np.sqrt(SMOOTHED) * drawn
        return np.asarray((self.middle + mixed) * self.length, np.float32)

    def slices(self, generator: np.random.Generator, means: AnyArray, each: int) -> AnyArray:
        """So many slices of each, shape (count, each, M)."""
        drawn = generator.standard_normal((len(means), each, len(self.within)), np.float32)
        return np.asarray(means[:, None] + drawn @ self.within.astype(np.float32))

    @staticmethod
    def _cosines(one: AnyArray, other: AnyArray) -> dict[str, list[float]]:
        unit = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in (one, other)]
        scores = unit[0] @ unit[1].T
        own = np.eye(len(scores), dtype=bool)
        return {
            name: np.round(
                [some.mean(), some.std(), *np.quantile(some, [0.01, 0.5, 0.99])], 3
            ).tolist()
            for name, some in (("genuine", scores[own]), ("impostor", scores[~own]))
        }

    def made(self) -> dict[str, list[float]]:
        """Mean, deviation and quantiles (1, 50, 99 %) of the cosines of some who are drawn."""
        generator = np.random.default_rng(1)
        both = self.slices(generator, self.people(generator, 2000), 4)
        return self._cosines(both[:, :2].sum(axis=1), both[:, 2:].sum(axis=1))


def made_mapped(speakers: int, path: Path) -> dict[str, Any]:
    """Write a mapped store of so many people with 10 s of `voice` each."""
    row: dict[str, Any] = {}
    crowd, generator = Crowd(), np.random.default_rng(0)
    shipped = Population.reference().only(["voice"])
    size = crowd.voices.shape[1]
    with tempfile.TemporaryFile(dir=path.parent) as file:
        slices = np.memmap(file, np.float16, "w+", shape=(2 * speakers, size))
        for first in range(0, speakers, 10_000):
            count = min(10_000, speakers - first)
            block = crowd.slices(generator, crowd.people(generator, count), 2)
            slices[2 * first : 2 * (first + count)] = block.reshape(-1, size)
        population = Population(
            [Speaker(f"{i:08d}") for i in range(speakers)],
            np.arange(speakers + 1) * 2,
            {"voice": FeatureTemplates(shipped.specs["voice"], slices)},
            shipped.rank_models,
            cohort=shipped.cohort,
        )
        began = time.process_time()
        population.save(path, mapped=True)
        row["save_seconds"] = round(time.process_time() - began, 1)
    row["file_mb"] = round(path.stat().st_size / 1e6, 1)
    return row | {"cosines": crowd.made(), "cosines_of_the_shipped": crowd.real}


def mapped(speakers: int, folder: Path | None = None) -> dict[str, Any]:
    """Start a monitor of a mapped store, and read; beside numpy's product of the same matrix."""
    with tempfile.TemporaryDirectory() as spare:
        path = (folder or Path(spare)) / f"mapped_{speakers}.npz"
        row: dict[str, Any] = {}
        if not path.exists():
            command = [sys.executable, "-m", "benchmarks.scale", "--one", "--what", "made_mapped"]
            asked = [*command, "--speakers", str(speakers), "--folder", str(path.parent)]
            done = subprocess.run(asked, check=True, stdout=subprocess.PIPE)
            row |= json.loads(done.stdout)
        return row | read_mapped(path)


def read_mapped(path: Path) -> dict[str, Any]:
    """Readings a second apart of one of the people, whose speech begins with others' noise."""
    crowd, generator = Crowd(), np.random.default_rng(7)
    before, wall, began = memory_mb(), time.perf_counter(), time.process_time()
    population = Population.load(path)
    watch = population.names[len(population) // 3]
    monitor = Monitor(population, ["voice"], watch=watch)
    monitor.push(Frames(np.zeros(1, np.bool_), {}))  # what is said before anything is heard
    start = time.perf_counter() - wall, time.process_time() - began
    assert monitor.attacker.support_bits is not None
    started = memory_mb()
    place = population.index(watch)
    own = np.asarray(population.features["voice"].slices[2 * place : 2 * place + 2], float)
    matrix = monitor.attacker._scorers["voice"].templates
    times: list[list[float]] = [[], []]
    walls = []
    for second in range(SECONDS):
        values = crowd.slices(generator, own.mean(axis=0, keepdims=True), 1)[0].astype(np.float32)
        tick = np.array([100] if second % 3 == 2 else [], np.int64)
        block = Frames(np.ones(100, np.bool_), {"voice": Track(tick, values[: tick.size])})
        wall, began = time.perf_counter(), time.thread_time()
        (reading,) = monitor.push(block)
        middle = time.thread_time()
        walls.append(time.perf_counter() - wall)
        vector = np.ones(matrix.shape[1], matrix.dtype)
        product = time.thread_time()
        np.dot(matrix, vector)
        times[0].append(middle - began)
        times[1].append(time.thread_time() - product)
    ratios = [a / b for a, b in zip(*times, strict=True)]
    ranks = reading.features["voice"].rank
    return {
        "speakers": len(population),
        "matrix": [*matrix.shape, str(matrix.dtype)],
        "start_seconds_wall_processor": [round(each, 2) for each in start],
        "start_memory_mb": round(started - before, 1),
        "memory_mb": round(memory_mb(), 1),
        "peak_mb": round(memory_mb("VmHWM"), 1),
        "reading_seconds_median_most": [
            round(statistics.median(times[0]), 3),
            round(max(times[0]), 3),
        ],
        "reading_seconds_median_most_by_the_clock": [
            round(statistics.median(walls), 3),
            round(max(walls), 3),
        ],
        "product_seconds": round(statistics.median(times[1]), 3),
        "ratio": [round(each, 2) for each in (min(ratios), statistics.median(ratios), max(ratios))],
        "rank": ranks,
        "evidence_bits": reading.evidence_bits,
    }


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
    parser.add_argument("--folder", type=Path, help="where a mapped store is kept")
    given = parser.parse_args()
    counts = [int(number) for number in given.speakers.split(",")]
    if given.one:
        with threadpool_limits(1):
            if given.what == "made_mapped":
                path = given.folder / f"mapped_{counts[0]}.npz"
                print(json.dumps(made_mapped(counts[0], path)))
            elif given.what == "mapped":
                print(json.dumps(mapped(counts[0], given.folder)))
            else:
                print(json.dumps(WHAT[given.what](counts[0])))
        return
    for what in given.what.split(","):
        for speakers in counts:
            command = [sys.executable, "-m", "benchmarks.scale", "--one", "--what", what]
            command += ["--folder", str(given.folder)] if given.folder else []
            done = subprocess.run(
                [*command, "--speakers", str(speakers)], check=True, stdout=subprocess.PIPE
            )
            print(json.dumps({"what": what, "speakers": speakers, **json.loads(done.stdout)}))


if __name__ == "__main__":
    main()
