"""What one reading costs, against the one matrix-vector product it cannot do without.

    python -m benchmarks.update [--speakers 50,1000,11696,100000] [--seconds 120]

A population of simulated templates with the shipped rank models; every second of audio gives one
full reading with all limits, and an alert looks at it. Three are timed in turn in one run, in
processor time on one thread: readings with evidence and what it means among N and among a million
people, those of the same population without, and the product; ratios are those of the medians. The
evidence model is made up (its figures do not change its time): 200 resamples, against 219 simulated
voices. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.simulation import SIZE, Simulation
from monitor.alerts import Threshold
from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.population.cohort import Cohort, FeatureTemplates
from monitor.population.people import Speaker
from monitor.population.population import Population
from monitor.population.rank_model import EvidenceModel, RankModel, RankModels
from monitor.stream.monitor import Monitor
from monitor.types import AnyArray, Frames, Track

SLICES = 20
COHORT = 219
DRAWS = 200


def counts_of(voices: Simulation, each: int) -> AnyArray:
    """So many sketches of a second of every voice, drawn straight from its histogram."""
    bins = np.arange(SIZE)
    apart = (bins[None] - voices.mean[:, None]) / voices.spread[:, None]
    shape = np.exp(-0.5 * apart**2) + 1e-4
    shape /= shape.sum(axis=1, keepdims=True)
    generator = np.random.default_rng(0)
    return generator.multinomial(200, np.repeat(shape, each, axis=0)).astype(np.uint16)


def population_of(speakers: int) -> Population:
    """Templates of 100 s."""
    rank_models = [
        rank_model
        for rank_model in Population.reference().rank_models
        if rank_model.features == ("f0",)
    ]
    return Population(
        [Speaker(f"{i:06d}") for i in range(speakers)],
        np.arange(speakers + 1) * SLICES,
        {
            "f0": FeatureTemplates(
                FeatureSpec("f0", HISTOGRAM, SIZE, 0.01), counts_of(Simulation(speakers), SLICES)
            )
        },
        RankModels([replace(rank_model, evidence=None) for rank_model in rank_models]),
    )


def with_evidence(population: Population) -> Population:
    """The same with a cohort, and rank models that set scores against it."""
    slices = counts_of(Simulation(COHORT, seed=1), 1)
    cohort = Cohort(
        np.full(COHORT, 3.0),
        {"f0": FeatureTemplates(FeatureSpec("f0", HISTOGRAM, SIZE, 0.01), slices)},
    )

    def evidence(rank_model: RankModel) -> EvidenceModel:
        cells = (1 + DRAWS, rank_model.lengths.size, rank_model.template_lengths.size)
        strewn = np.random.default_rng(0).uniform(0.9, 1.1, (cells[0], 1, 1))
        intercept, slopes = np.full(cells, -2.0) * strewn, np.full(cells, 1.0) * strewn
        support, area = np.full(cells[1:], 12.0), np.full(cells[1:], 0.9)
        marks = (cohort.compute_digest("f0"),)
        return EvidenceModel(
            rank_model.lengths,
            rank_model.template_lengths,
            intercept,
            slopes[..., None],
            support,
            area,
            marks,
        )

    rank_models = RankModels(
        [
            replace(rank_model, evidence=evidence(rank_model))
            for rank_model in population.rank_models
        ]
    )
    features, offsets = population.features, population.offsets
    return Population(population.speakers, offsets, features, rank_models, cohort=cohort)


def second_of(frames: Frames, second: int) -> Frames:
    """One second of a longer run of frames."""
    track = frames.tracks["f0"]
    low, high = np.searchsorted(track.ticks, (second * 100 + 1, second * 100 + 101))
    part = Track(track.ticks[low:high], track.values[low:high])
    return Frames(frames.speech[second * 100 : second * 100 + 100], {"f0": part})


def measure(speakers: int, seconds: int) -> dict[str, float | int]:
    """One row."""
    plain = population_of(speakers)
    watched = [
        (Monitor(population, watch="000001"), Threshold(field, 3.0))
        for population, field in ((with_evidence(plain), "evidence_bits"), (plain, "bits"))
    ]
    assert watched[0][0].attacker.support_bits is not None
    frames = Simulation(speakers).frames(1, 0, seconds)
    prepare = HISTOGRAM.similarity("log-likelihood").prepare
    prepared = prepare(plain.templates("f0", plain.scoring()))
    counts = np.zeros(SIZE)
    times: list[list[float]] = [[], [], []]
    for second in range(seconds):
        block = second_of(frames, second)
        for (monitor, rule), taken in zip(watched, times, strict=False):
            start = time.thread_time()
            for reading in monitor.push(block):
                rule.update(reading)
            taken.append(time.thread_time() - start)
        start = time.thread_time()
        np.dot(prepared, counts)
        times[2].append(time.thread_time() - start)
        counts += np.bincount(block.tracks["f0"].values, minlength=SIZE)
    update, without, product = (statistics.median(taken) * 1e6 for taken in times)
    return {
        "speakers": speakers,
        "update_us": round(update, 1),
        "without_evidence_us": round(without, 1),
        "product_us": round(product, 1),
        "ratio": round(update / product, 2),
        "evidence_adds": round(update / without - 1, 2),
        "evidence_products": round((update - without) / product, 2),
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
