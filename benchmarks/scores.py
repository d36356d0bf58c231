"""Real scores for `monitor evaluate`: each feature's, of real readers, trials x speakers.

    python -m benchmarks.scores FRAMES SCORES [--seconds 10] [--template 100]
    cd SCORES && monitor evaluate f0.npy phones.npy voice.npy --labels labels.npy

FRAMES is a folder made by `benchmarks.hear`. Trials of a reader come from other chapters than the
template; who trained the network of a feature has none. Rows of all matrices are the same trials,
columns the same readers.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.hear import trainers
from monitor.corpus import find
from monitor.training.voices import UNITS_PER_SECOND, collect, plans

CORPORA = ("train-clean-5", "train-clean-100", "dev-clean")
SHIFTS = 20


def main() -> None:
    parser = argparse.ArgumentParser(description="Scores of each feature on real readers.")
    parser.add_argument("frames", type=Path)
    parser.add_argument("scores", type=Path)
    parser.add_argument("--seconds", type=float, default=10.0, help="T, of speech")
    parser.add_argument("--template", type=float, default=100.0, help="D, of speech")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        manifest = Path(folder) / "all.csv"
        files = [f for name in CORPORA for f in sorted((given.frames / name).rglob("*.npz"))]
        lines = [f"{file.resolve()},{file.parent.name},{file.stem}" for file in files]
        manifest.write_text("\n".join(["path,speaker,session", *lines, ""]), encoding="utf-8")
        voices, specs, problems = collect(find(manifest))
    for problem in problems:
        raise SystemExit(problem)
    measures = {name: spec.kind.similarity() for name, spec in specs.items()}
    units = round(given.seconds * UNITS_PER_SECOND), round(given.template * UNITS_PER_SECOND)
    (plan,) = (
        plan
        for session, _, _, plan in plans(voices, (given.seconds,), (given.template,), SHIFTS)
        if session == "cross"
    )
    trained = {name for feature in measures for name in trainers(given.frames).get(feature, ())}
    untrained = np.array([voice.name not in trained for voice in voices])
    cell = plan.run(measures, *units).tested_on(untrained)
    given.scores.mkdir(parents=True, exist_ok=True)
    order = np.argsort(cell.own, kind="stable")  # trials of one reader together, in their order
    np.save(given.scores / "labels.npy", cell.own[order])
    for index, name in enumerate(measures):
        scores = cell.gaps[:, index] + cell.mated[:, index, None]
        np.save(given.scores / f"{name}.npy", scores[order].astype(np.float32))
    readers = np.unique(cell.own).size
    print(f"{order.size} trials of {readers} readers against {cell.candidates}: {given.scores}")


if __name__ == "__main__":
    main()
