"""May people who trained a feature's network be candidates, where their tests teach no rank model?

    python -m benchmarks.trained FRAMES [--features f0,phones,voice]

FRAMES is a folder that `benchmarks.build_reference` heard. The tests are those of readers who
trained no network. First: do the templates of readers who trained the network of phones attract
them less, or more, than those of the others? The mean score of the one group less that of the other
in each test, in standard deviations of that test's scores; beside it that of features whose
networks none of them trained, since the two groups are two corpora, of two codecs. Second: mean
local bits of readers left out among those candidates alone who trained nothing, by a posterior that
was fitted among all candidates, as that of the shipped models, and by one fitted among the former.
Last: cosines of 12 s of every reader with the shipped cohort, and with 12 s of the other readers:
the cohort's readers trained the network of voice.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.build_reference import FEATURES
from benchmarks.hear import trainers
from benchmarks.template_length import collected
from monitor.maths import posterior_fit as logit
from monitor.population.population import Population
from monitor.training.voices import UNITS_PER_SECOND, Cell, SpeakerSpeech, plans
from monitor.types import BoolArray, FloatArray

LENGTHS = (3.0, 10.0, 30.0)
TEMPLATE_SECONDS = 60.0
SETS = (("phones",), ("f0", "phones"), ("f0", "phones", "voice"))
SHIFTS = 20
COHORT_SECONDS = 12.0


def main() -> None:
    parser = argparse.ArgumentParser(description="People who trained a network, as candidates.")
    parser.add_argument("frames", type=Path)
    parser.add_argument("--features", default=",".join(FEATURES))
    given = parser.parse_args()
    features = given.features.split(",")
    trained = trainers(given.frames)["phones"]
    voices, specs = collected(given.frames, features)
    measures = {n: s.kind.similarity() for n, s in specs.items()}
    knows = np.array([voice.name in trained for voice in voices])
    print("| session | T | " + " | ".join(features) + " |")
    print("| --- | ---: |" + " ---: |" * len(features))
    lines = []
    for session, t, _, plan in plans(voices, LENGTHS, (TEMPLATE_SECONDS,), SHIFTS):
        units = [round(x * UNITS_PER_SECOND) for x in (LENGTHS[t], TEMPLATE_SECONDS)]
        cell = plan.run(measures, *units).tested_on(~knows)
        group = knows[plan.candidates]
        cells = [attraction(cell, f, group) for f in range(len(features))]
        print(f"| {session} | {LENGTHS[t]:g} s | " + " | ".join(cells) + " |", flush=True)
        for names in SETS:
            axis = [list(measures).index(name) for name in names]
            among, own = bits(cell, axis, ~group)
            lines.append(
                f"| {session} | {'+'.join(names)} | {LENGTHS[t]:g} s | {among:.2f} | {own:.2f} |"
            )
    print("\n| cosine: mean, sd in a stream | cohort | other readers |\n| --- | ---: | ---: |")
    if "voice" in features:
        print("| voice | " + " | ".join(near(voices, "voice")) + " |")
    print("\n| session | features | T | fitted among all | among them alone |")
    print("| --- | --- | ---: | ---: | ---: |", *lines, sep="\n")


def attraction(cell: Cell, feature: int, group: BoolArray) -> str:
    """Mean over readers, with its standard error."""
    scores = cell.gaps[:, feature].copy()
    scores[np.arange(len(scores)), cell.own] = np.nan
    usable = np.nanstd(scores, axis=1) > 0
    scores = scores[usable] / np.nanstd(scores[usable], axis=1, keepdims=True)
    lead = np.nanmean(scores[:, group], axis=1) - np.nanmean(scores[:, ~group], axis=1)
    readers = cell.gap_speaker[usable]
    means = [lead[readers == reader].mean() for reader in np.unique(readers)]
    return f"{np.mean(means):+.2f} ± {np.std(means, ddof=1) / np.sqrt(len(means)):.2f}"


def near(voices: Sequence[SpeakerSpeech], name: str) -> list[str]:
    """How near streams are to the cohort, and to the others."""
    units = round(COHORT_SECONDS * UNITS_PER_SECOND)
    long = [voice for voice in voices if voice.length(0) >= units]
    streams = unit(
        np.stack([v.sessions[-1][name].total(v.length(-1) - units, units) for v in long])
    )
    others = unit(np.stack([v.sessions[0][name].total(0, units) for v in long]))
    cohort = Population.reference().cohort
    assert cohort is not None
    found = []
    for against in (unit(cohort.features[name].slices.astype(float)), others):
        cosines = streams @ against.T
        if against is others:
            np.fill_diagonal(cosines, np.nan)
        spread = np.nanstd(cosines, axis=1).mean()
        found.append(f"{np.nanmean(cosines):.3f}, {spread:.3f}")
    return found


def unit(vectors: FloatArray) -> FloatArray:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def bits(cell: Cell, axis: Sequence[int], kept: BoolArray) -> tuple[float, float]:
    """Mean local bits among some candidates: by the fit among all, and by one among those."""
    _, place = np.unique(cell.gap_speaker, return_inverse=True)
    behind = cell.gaps[:, list(axis)]
    few = logit.Trials(np.ascontiguousarray(behind[:, :, kept]), place)
    found: list[FloatArray] = []
    for trials in (logit.Trials(behind, place), few):
        prior = logit.prior_of(trials)
        start = logit.fit(trials, prior).weights
        weights, floor = logit.fit_held_out(trials, start, trials.speakers, prior)
        found.append(logit.held_out_bits(few, weights, floor))
    return float(found[0].mean()), float(found[1].mean())


if __name__ == "__main__":
    main()
