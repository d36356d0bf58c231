"""Memory and processor time of N enrolled people, up to a million.

Synthetic templates of 30 s have the features, sizes and networks of the shipped population, with
its rank models and cohort, so that every reading is complete. Each row is measured in a separate
process on one thread. Times are processor times. The public peer is NumPy's product of the same
matrices in the same process.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.evaluate import write_matrix
from benchmarks.page import Page, benchmark
from benchmarks.readers import FEATURES, scale_to_unit
from benchmarks.simulation import SIZE, Simulation
from benchmarks.timing import format_number, memory_mb, run_in_new_process
from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.lab.evaluation.evaluating import evaluate
from monitor.lab.evaluation.family import EvaluationSettings
from monitor.lab.evaluation.input.scores import read_scores
from monitor.population.cohort import FeatureTemplates
from monitor.population.people import Speaker
from monitor.population.population import Population
from monitor.stream.monitor import Monitor
from monitor.training.calibrating import CalibrationSettings, calibrate
from monitor.training.voices import SessionFrames, SpeakerSpeech
from monitor.types import AnyArray, Frames, Track

SLICES = 6
"""Slices of 5 s per template."""
SECONDS = 30
"""Seconds of a stream with one reading per second."""
TRIALS = 2000


class ResourceCost(NamedTuple):
    """Processor seconds, and peak memory beyond that at the start."""

    seconds: float = 0.0
    peak_mb: float = 0.0

    def __str__(self) -> str:
        gb = f"{self.peak_mb / 1000:.2f} GB" if self.peak_mb > 99 else f"{self.peak_mb:.0f} MB"
        return (
            f"{format_number(self.seconds) if self.seconds > 99 else f'{self.seconds:.2g}'} s, {gb}"
        )


@contextmanager
def measure_cost(costs: list[ResourceCost]) -> Iterator[None]:
    Path("/proc/self/clear_refs").write_text("5")
    before, began = memory_mb(), time.process_time()
    yield
    costs.append(ResourceCost(time.process_time() - began, memory_mb("VmHWM") - before))


@benchmark()
def scale(
    page: Page,
    *, speakers: tuple[int, ...] = (1000, 11_696, 100_000),
    what: tuple[str, ...] = ("reading", "evaluate"), folder: Path | None = None,
) -> None:  # fmt: skip
    """How much memory and processor time do readings, reports and calibration of N people need?

    --what is reading, evaluate, calibrate or mapped. `calibrate` fits a rank model of pitch to
    simulated speech, which takes minutes to simulate. `mapped` uses a memory-mapped store, which
    --folder keeps, with 10 s of `voice` per person, sampled around the shipped readers.
    """
    for each in what:
        heads, work = WHAT[each]
        arguments = (folder,) if each == "mapped" else ()
        rows = (
            [format_number(n), *run_in_new_process(_run_on_one_thread, work, n, *arguments)]
            for n in speakers
        )
        page.table(f"N | {heads}", rows, under="A million people" if each == "mapped" else "")


def _run_on_one_thread(work: Callable[..., Any], *arguments: object) -> Any:
    with threadpool_limits(1):
        return work(*arguments)


def draw_slices(spec: FeatureSpec, speakers: int) -> AnyArray:
    """Draw slices of 5 s, speaker after speaker, in blocks to save memory."""
    generator = np.random.default_rng(0)
    blocks: list[AnyArray] = []
    for first in range(0, speakers, 1000):
        count = min(1000, speakers - first)
        shape = (count, SLICES, spec.size)
        if spec.kind is HISTOGRAM:
            own = generator.gamma(0.3, size=(count, 1, spec.size)) + 1e-3
            block = generator.poisson(300 * own / own.sum(-1, keepdims=True), shape)
            blocks.append(block.astype(np.uint16))
        else:
            voice = generator.standard_normal((count, 1, spec.size))
            voice = voice + generator.standard_normal(shape)
            voice /= np.linalg.norm(voice, axis=-1, keepdims=True)
            blocks.append(voice.astype(np.float16))
    return np.concatenate(blocks).reshape(-1, spec.size)


def create_population(speakers: int, features: tuple[str, ...] = FEATURES) -> Population:
    """Return a population of synthetic people with the shipped rank models."""
    shipped = Population.reference().only(features)
    templates = {n: FeatureTemplates(s, draw_slices(s, speakers)) for n, s in shipped.specs.items()}
    return Population(
        [Speaker(f"{i:08d}") for i in range(speakers)],
        np.arange(speakers + 1) * SLICES,
        templates,
        shipped.rank_models,
        cohort=shipped.cohort,
    )


def draw_second(population: Population, second: int) -> Frames:
    """Return a second of a stream: frames of each feature, a voice embedding every third second."""
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


def measure_reading(speakers: int) -> list[str]:
    """Measure complete readings, one per second, and the matrix products that these need."""
    population, costs = create_population(speakers), list[ResourceCost]()
    size = sum(each.slices.nbytes for each in population.features.values()) / 1e6
    with measure_cost(costs):
        monitor = Monitor(population, FEATURES, watch="00000001")
    assert monitor.attacker.support_bits is not None
    resident = memory_mb()
    raw = {name: np.ones((speakers, spec.size)) for name, spec in population.specs.items()}
    own, products = list[float](), list[float]()
    for second in range(SECONDS):
        block, began = draw_second(population, second), time.thread_time()
        monitor.push(block)
        middle = time.thread_time()
        for name, matrix in raw.items():
            np.dot(matrix, np.ones(population.specs[name].size))
        own.append(middle - began)
        products.append(time.thread_time() - middle)
    reading_seconds, product_seconds = median(own[3:]), median(products[3:])
    return [
        f"{size:.3g} MB",
        f"{resident:.0f} MB",
        str(costs[0]),
        f"{1e3 * reading_seconds:.2g} ms",
        f"{reading_seconds / product_seconds:.3g}",
    ]


def measure_evaluation(speakers: int) -> list[str]:
    """Measure a report of 2000 trials against all speakers: all metrics, 200 replicates."""
    costs: list[ResourceCost] = []
    with tempfile.TemporaryDirectory() as folder:
        paths = write_matrix(Path(folder), TRIALS, speakers)
        with measure_cost(costs):
            read = read_scores(*paths)
            settings = EvaluationSettings(replicates=200)
            evaluate(read.matrix, settings=settings, notes=read.notes)
    return [str(costs[0])]


def measure_calibration(speakers: int) -> list[str]:
    """Measure the calibration of pitch, 10 s against 30 s, within and across two 60 s sessions."""
    spec, simulation = FeatureSpec("f0", HISTOGRAM, SIZE, 0.01), Simulation(speakers)
    costs: list[ResourceCost] = []

    def session(speaker: int, number: int) -> dict[str, SessionFrames]:
        frames = simulation.frames(speaker, number, 75.0)
        clock = np.cumsum(frames.speech)
        units = np.maximum(clock[frames.tracks["f0"].ticks - 1] - 1, 0) // 10
        length = int(clock[-1]) // 10
        keep = units < length
        values = frames.tracks["f0"].values[keep].astype(np.uint16)
        return {"f0": SessionFrames(values, units[keep].astype(np.int32), length, spec)}

    voices = [SpeakerSpeech(f"{i:08d}", (session(i, 0), session(i, 1))) for i in range(speakers)]
    settings = CalibrationSettings(lengths=[10.0], template_lengths=[30.0], prior=None, cohort=None)
    with measure_cost(costs):
        calibration = calibrate(voices, {"f0": spec}, settings)
    trials = max(int(cell["trials"]) for cell in calibration.rows)
    return [format_number(trials), f"{costs[0].seconds:.1f} s", f"{costs[0].peak_mb / 1000:.2f} GB"]


# ------------------------------------------------------------------------------------------- mapped

SMOOTHING = 0.5
"""Fraction of the variance between people from new samples; the rest is from a shipped voice."""
WIDENING = 1.1
"""Factor of the deviation of slices from a reader's mean, relative to shipped slices. Cosines of
slices far apart in a recording are lower than those of independent samples."""


class Crowd:
    """Sampler of `voice` slices of 5 s of people like the shipped ones (a smoothed bootstrap)."""

    def __init__(self) -> None:
        self.shipped = Population.reference().only(["voice"])
        slices = self.shipped.features["voice"].slices.astype(float)
        counts = np.diff(self.shipped.offsets)
        means = np.add.reduceat(slices, self.shipped.offsets[:-1]) / counts[:, None]
        within = slices - np.repeat(means, counts, axis=0)
        self.length = float(np.linalg.norm(means, axis=1).mean())
        self.voices = scale_to_unit(means)
        self.middle = self.voices.mean(axis=0)
        self.between = self._root(self.voices - self.middle)
        self.within = WIDENING * self._root(within)

    @staticmethod
    def _root(rows: AnyArray) -> AnyArray:
        return np.asarray(rows / np.sqrt(len(rows)), np.float32)

    def people(self, generator: np.random.Generator, count: int) -> AnyArray:
        """Draw the mean embeddings of people, shape (count, M)."""
        kernel = self.voices[generator.integers(0, len(self.voices), count)] - self.middle
        noise = generator.standard_normal((count, len(self.between)), np.float32) @ self.between
        mixed = np.sqrt(1 - SMOOTHING) * kernel + np.sqrt(SMOOTHING) * noise
        return np.asarray((self.middle + mixed) * self.length, np.float32)

    def slices(self, generator: np.random.Generator, means: AnyArray, each: int) -> AnyArray:
        """Draw slices of each person, shape (count, each, M)."""
        noise = generator.standard_normal((len(means), each, len(self.within)), np.float32)
        return np.asarray(means[:, None] + noise @ self.within)


def write_mapped(speakers: int, path: Path) -> None:
    """Write a memory-mapped store of people with 10 s of `voice` each."""
    crowd, generator = Crowd(), np.random.default_rng(0)
    with tempfile.TemporaryFile(dir=path.parent) as file:
        slices = np.memmap(file, np.float16, "w+", shape=(2 * speakers, crowd.voices.shape[1]))
        for first in range(0, speakers, 10_000):
            means = crowd.people(generator, min(10_000, speakers - first))
            block = crowd.slices(generator, means, 2).reshape(2 * len(means), -1)
            slices[2 * first : 2 * (first + len(means))] = block
        Population(
            [Speaker(f"{i:08d}") for i in range(speakers)],
            np.arange(speakers + 1) * 2,
            {"voice": FeatureTemplates(crowd.shipped.specs["voice"], slices)},
            crowd.shipped.rank_models,
            cohort=crowd.shipped.cohort,
        ).save(path, mapped=True)


def measure_mapped(speakers: int, folder: Path | None) -> list[str]:
    """Measure the start of a monitor with a mapped store, and readings of one enrolled person."""
    with tempfile.TemporaryDirectory() as spare:
        path = (folder or Path(spare)) / f"mapped_{speakers}.npz"
        if not path.exists():
            run_in_new_process(write_mapped, speakers, path)
        wall, began = time.perf_counter(), time.process_time()
        population = Population.load(path)
        watch = population.names[len(population) // 3]
        monitor = Monitor(population, ["voice"], watch=watch)
        monitor.push(Frames(np.zeros(1, np.bool_), {}))  # the first reading, before any audio
        start = f"{time.perf_counter() - wall:.2f} s, {time.process_time() - began:.2f} s"
        assert monitor.attacker.support_bits is not None
        started, index = memory_mb(), population.index(watch)
        own = np.asarray(population.features["voice"].slices[2 * index : 2 * index + 2], float)
        matrix = monitor.attacker.scorer.templates["voice"]
        crowd, generator = Crowd(), np.random.default_rng(7)
        walls, ratios = list[float](), list[float]()
        for second in range(SECONDS):
            values = crowd.slices(generator, own.mean(axis=0, keepdims=True), 1)[0]
            tick = np.array([100] if second % 3 == 2 else [], np.int64)
            track = Track(tick, values[: tick.size].astype(np.float32))
            block = Frames(np.ones(100, np.bool_), {"voice": track})
            wall, began = time.perf_counter(), time.thread_time()
            monitor.push(block)
            middle = time.thread_time()
            walls.append(time.perf_counter() - wall)
            np.dot(matrix, np.ones(matrix.shape[1], matrix.dtype))
            ratios.append((middle - began) / (time.thread_time() - middle))
        low, middle_ratio, high = min(ratios), median(ratios), max(ratios)
        return [
            f"{path.stat().st_size / 1e6:.0f} MB",
            start,
            f"{started / 1000:.2f} GB, {memory_mb('VmHWM') / 1000:.2f} GB",
            f"{median(walls):.3f} s, {max(walls):.3f} s",
            f"{middle_ratio:.1f} ({low:.1f} to {high:.1f})",
        ]


WHAT: dict[str, tuple[str, Callable[..., list[str]]]] = {
    "reading": (
        "templates | started monitor, resident | to start: processor, memory on top | one reading "
        "| the same in numpy's products of the same matrices",
        measure_reading,
    ),
    "evaluate": (
        "`evaluate`, 2 000 trials of as many people: processor, memory on top",
        measure_evaluation,
    ),
    "calibrate": ("trials a cell | processor, two cells | memory on top", measure_calibration),
    "mapped": (
        "store | start: by the clock, processor | resident: started, at most "
        "| a reading by the clock: median, the longest of 30 | in products: median, range",
        measure_mapped,
    ),
}
