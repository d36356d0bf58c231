"""How should a score be set against a cohort whose people trained the network?

    python -m benchmarks.normalising FRAMES [--features f0,phones,voice]

FRAMES is a folder that `benchmarks.build_reference` heard; the cohort is its background readers,
who trained `voice`. Across sessions, T = 10 s, templates of 100 s: how well the
best score of all tells enrolled readers from impostors (area under the ROC curve), and Cllr after
the best recalibration, for scores as they are (by the frame where they add up), less the stream's
mean over the cohort, and that by the stream's spread over it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from benchmarks.build_reference import FEATURES
from benchmarks.hear import BACKGROUND
from benchmarks.template_length import collected
from monitor.corpus import find
from monitor.maths.likelihood_ratios import least_cost_bits
from monitor.maths.logistic import compute_separation
from monitor.maths.scores import Similarity
from monitor.population.cohort import Cohort
from monitor.training.voices import UNITS_PER_SECOND, Plan, cohort_of, plans
from monitor.types import AnyArray, FloatArray, IntArray

SECONDS, TEMPLATE_SECONDS, SHIFTS = 10.0, 100.0, 20


def main() -> None:
    parser = argparse.ArgumentParser(description="Scores set against a cohort, in several ways.")
    parser.add_argument("frames", type=Path)
    parser.add_argument("--features", default=",".join(FEATURES))
    given = parser.parse_args()
    features = given.features.split(",")
    voices, specs = collected(given.frames, features)
    cohort, _ = cohort_of(find(given.frames / BACKGROUND), features=features)
    (plan,) = (
        plan
        for session, _, _, plan in plans(voices, (SECONDS,), (TEMPLATE_SECONDS,), SHIFTS)
        if session == "cross"
    )
    print("| | raw: area, least Cllr | less the mean | and by the spread |")
    print("| --- | ---: | ---: | ---: |")
    for name, spec in specs.items():
        measure = spec.kind.similarity()
        cells = [
            ", ".join(f"{x:.2f}" for x in each) for each in figures(plan, name, measure, cohort)
        ]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def figures(
    plan: Plan, name: str, measure: Similarity, cohort: Cohort
) -> list[tuple[float, float]]:
    """Area and least Cllr, by how the scores are set against the cohort."""
    slices = cohort.features[name].slices
    wide = cohort.specs[name].kind.wide
    others = measure.prepare(slices[slices.any(axis=1)].astype(wide))
    raw, level, spread, own = [], [], [], []
    for shift in range(SHIFTS):
        made = measure.prepare(windows(plan, name, shift, plan.candidates, TEMPLATE_SECONDS))
        tests = windows(plan, name, shift, plan.candidates[plan.mated], SECONDS)
        frames = np.maximum(tests.sum(axis=1), 1) if measure.additive else np.ones(len(tests))
        against = measure.score(others, tests) / frames[:, None]
        raw.append(measure.score(made, tests) / frames[:, None])
        level.append(against.mean(axis=1))
        spread.append(against.std(axis=1))
        own.append(plan.mated)
    scores, mean, width = map(np.concatenate, (raw, level, spread))
    centred = scores - mean[:, None]
    place = np.concatenate(own)
    return [judged(each, place) for each in (scores, centred, centred / width[:, None])]


def windows(plan: Plan, name: str, shift: int, voices: IntArray, seconds: float) -> AnyArray:
    """Totals of templates, or of tests, shape (n, M)."""
    units = round(seconds * UNITS_PER_SECOND)
    where = plan.template if seconds == TEMPLATE_SECONDS else plan.test
    found = []
    for voice in voices.tolist():
        session, start = where(voice, shift)
        found.append(session[name].total(start, units))
    return np.stack(found)


def judged(scores: FloatArray, own: IntArray) -> tuple[float, float]:
    """Area, and Cllr after the best recalibration; every speaker weighs the same."""
    rows = np.arange(len(scores))
    weight = (1.0 / np.bincount(own, minlength=own.max() + 1))[own]
    others = scores.copy()
    others[rows, own] = -np.inf
    area = compute_separation(scores.max(axis=1), others.max(axis=1), weight)[2]
    there = np.isfinite(others)
    mass = np.repeat(weight, there.sum(axis=1))
    return area, least_cost_bits(scores[rows, own], others[there], weight, mass)


if __name__ == "__main__":
    main()
