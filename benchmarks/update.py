"""What one reading costs, against the one matrix-vector product it cannot do without.

    python -m benchmarks.update [--speakers 50,1000,11696,100000] [--seconds 120]

A population of simulated templates with the shipped rank laws; every second of audio gives one full
reading with all limits. Both are timed in turn in one run, on one thread; the ratio is that of the
medians. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.simulation import SIZE, Simulation
from monitor.maths.scores import similarity
from monitor.population.population import FeatureTemplates, Population, Speaker
from monitor.stream.monitor import Monitor
from monitor.types import Frames, Track

SLICES = 20


def population_of(speakers: int) -> Population:
    """Templates of 100 s, drawn straight from each simulated voice's histogram."""
    simulation = Simulation(speakers)
    bins = np.arange(SIZE)
    apart = (bins[None] - simulation.mean[:, None]) / simulation.spread[:, None]
    shape = np.exp(-0.5 * apart**2) + 1e-4
    shape /= shape.sum(axis=1, keepdims=True)
    generator = np.random.default_rng(0)
    slices = generator.multinomial(200, np.repeat(shape, SLICES, axis=0)).astype(np.uint16)
    laws = Population.reference().laws
    return Population(
        [Speaker(f"{i:06d}") for i in range(speakers)],
        np.arange(speakers + 1) * SLICES,
        {"f0": FeatureTemplates("histogram", SIZE, 0.01, slices)},
        laws,
    )


def second_of(frames: Frames, second: int) -> Frames:
    """One second of a longer run of frames."""
    track = frames.tracks["f0"]
    low, high = np.searchsorted(track.ticks, (second * 100 + 1, second * 100 + 101))
    part = Track(track.ticks[low:high], track.values[low:high])
    return Frames(frames.speech[second * 100 : second * 100 + 100], {"f0": part})


def measure(speakers: int, seconds: int) -> dict[str, float | int]:
    population = population_of(speakers)
    monitor = Monitor(population, watch="000001")
    frames = Simulation(speakers).frames(1, 0, seconds)
    prepare = similarity("log-likelihood").prepare
    prepared = prepare(population.templates("f0", population.scoring()))
    counts = np.zeros(SIZE)
    update, product = [], []
    for second in range(seconds):
        block = second_of(frames, second)
        start = time.perf_counter()
        monitor.push(block)
        middle = time.perf_counter()
        np.dot(prepared, counts)
        product.append(time.perf_counter() - middle)
        update.append(middle - start)
        counts += np.bincount(block.tracks["f0"].values, minlength=SIZE)
    both = [statistics.median(times) * 1e6 for times in (update, product)]
    return {
        "speakers": speakers,
        "update_us": round(both[0], 1),
        "product_us": round(both[1], 1),
        "ratio": round(both[0] / both[1], 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--speakers", default="50,1000,11696,100000")
    parser.add_argument("--seconds", type=int, default=120)
    arguments = parser.parse_args()
    with threadpool_limits(1):
        rows = [measure(int(n), arguments.seconds) for n in arguments.speakers.split(",")]
    print(
        json.dumps({"machine": platform.processor() or platform.machine(), "rows": rows}, indent=1)
    )


if __name__ == "__main__":
    main()
