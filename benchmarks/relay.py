"""A microphone with a budget: whether the other side stays under it, and what it costs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import soundfile
import soxr

from benchmarks.page import Page, benchmark
from benchmarks.readers import FEATURES, read
from monitor import Monitor, enrol
from monitor.networks.layers import RATE
from monitor.population.population import Population
from monitor.relay import CLEAR, DELAY_SECONDS, Gate, RelaySettings, Way
from monitor.types import Block, FloatArray

DEVICE_RATE = 48_000
LEADS = (0.5, 1.27, 1.62, 2.5)
"""Seconds of silence before the first word in the other side's recordings."""
ENROLLED_SECONDS = 30.0


@benchmark()
def relay(
    page: Page, nonnative: Path, *, people: int = 24, budgets: tuple[float, ...] = (3, 6, 9)
) -> None:
    """Does the other side's recording, replayed, stay under the budget of a microphone?

    Each person is enrolled beside the shipped readers from the first 30 s of a recording, and
    speaks the rest until the gate closes. What went out is replayed as recordings that begin
    earlier.
    """
    paths, spent = sorted(nonnative.glob("*.opus"))[:people], list[tuple[float, float]]()
    with TemporaryDirectory() as folder:
        for path in paths:
            person = Path(folder, path.stem)
            person.mkdir()
            soundfile.write(person / "a.wav", read(path, ENROLLED_SECONDS), RATE)
        enrolled = enrol(folder, features=FEATURES).population
    population = Population.reference().joined(enrolled)
    readers = [
        (path.stem, soxr.resample(read(path, first=ENROLLED_SECONDS), RATE, DEVICE_RATE))
        for path in paths
        if path.stem in enrolled.names
    ]

    def rows() -> Iterator[list[str]]:
        for budget in budgets:
            out, most = [], []
            for name, sound in readers:
                monitor = Monitor(population, watch=name, on_change="note")
                sent = let_out(monitor, budget, sound, spent)
                out.append(sent)
                most += [peak(monitor.fresh(), replayed(sound[:sent], lead)) for lead in LEADS]
            over = np.array(most) - budget
            times = np.array(out) / DEVICE_RATE
            yield [
                f"{budget:g}",
                f"{len(readers)}",
                f"{np.median(times):.1f} s ({times.min():.1f} to {times.max():.1f})",
                f"{np.mean(most):.1f}",
                f"{np.sum(over > 0)} of {len(over)}",
                f"{max(over.max(), 0.0):.1f}",
            ]

    page.table(
        "budget, bits | readers | sound let out | most that it reads, on average "
        "| recordings over the budget | by at most, bits",
        rows(),
    )
    heard, processor = np.sum(spent, axis=0)
    page.note(f"{processor / heard:.2f} s of processor a second of sound, beside the run")


def let_out(
    monitor: Monitor, budget: float, sound: FloatArray, spent: list[tuple[float, float]]
) -> int:
    """Samples that a gate lets out; adds seconds heard and of processor."""
    step = RelaySettings(budget, delay_seconds=DELAY_SECONDS).step_seconds
    gate = Gate(budget, [Way(CLEAR, [monitor.fresh(step_seconds=step)])], step)
    began, at = time.process_time(), 0
    for at in range(0, len(sound), DEVICE_RATE // 20):
        gate.take(Block(sound[at : at + DEVICE_RATE // 20], DEVICE_RATE))
        if gate.closings:
            break
    spent.append((at / DEVICE_RATE, time.process_time() - began))
    return round(gate.closings[0][0] * DEVICE_RATE) if gate.closings else len(sound)


def replayed(sound: FloatArray, lead: float) -> FloatArray:
    """The other side's recording: 16 bits, silence before and after."""
    silence = np.zeros(round(lead * DEVICE_RATE), np.float32)
    whole = np.concatenate([silence, sound, np.zeros(3 * DEVICE_RATE, np.float32)])
    return np.asarray(np.round(whole * 32767) / 32767, np.float32)


def peak(monitor: Monitor, recording: FloatArray) -> float:
    """The most bits that any second of a recording reads."""
    readings = monitor.stream(recording, rate=DEVICE_RATE)
    return max((reading.bits or 0.0 for reading in readings), default=0.0)
