"""What Laplace noise on embeddings is worth: MeanD against epsilon, on real readers.

    python -m benchmarks.laplace FRAMES [--feature voice] [--epsilons 15,100,300,1000,3000]

FRAMES is a folder of `--frames`. Of each reader with two sessions the first 10 frames (30 s of
speech) of the first make a template, the second gives trials of 3 frames (9 s) and of 10 (30 s).
Every trial is drawn ``--draws`` times. Attackers: clear templates, compared by the cosine as the
program does; the same templates by an attacker who knows the mechanism and takes the likelihood of
the noise; and templates that were protected in the same way (lazy-informed), by the cosine. Prints
MeanD of the fitted model in bits with 95 % interval from resampled readers, and what was promised.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from monitor.anonymisers.laplace import Laplace, promises
from monitor.corpus import find
from monitor.features.framing import join_runs
from monitor.lab.evaluation import EvaluationSettings, ScoreMatrix, evaluate
from monitor.maths.composition import clipped
from monitor.sources.frames import FramesFile
from monitor.types import FloatArray

TEMPLATE = 10
TRIALS = (3, 10)
CLEAR = float("inf")


def main() -> None:
    words = argparse.ArgumentParser(description="Laplace noise on embeddings.")
    words.add_argument("frames", type=Path)
    words.add_argument("--feature", default="voice")
    words.add_argument("--epsilons", default="inf,3000,1000,300,100,15")
    words.add_argument("--draws", type=int, default=5)
    asked = words.parse_args()
    readers = embeddings(asked.frames, asked.feature)
    print(f"{len(readers)} readers, at most {np.log2(len(readers)):.2f} bits")
    for epsilon in map(float, asked.epsilons.split(",")):
        for frames in TRIALS:
            told = [row(*each) for each in attacks(readers, epsilon, frames, asked.draws)]
            if epsilon < CLEAR:
                (promise,) = promises({"": (frames, 3.0 * frames)}, epsilon)
                told.append(f"promised: at most {promise.most_bits:.0f} bits of evidence")
            print(f"epsilon {epsilon:g}, {frames} frames: " + "; ".join(told), flush=True)


def embeddings(folder: Path, feature: str) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Of each reader the embeddings of a first and of a second session."""
    corpus, found = find(folder), {}
    for name in corpus.speakers:
        sessions = [
            np.concatenate([join_runs(list(FramesFile(p))).tracks[feature].values for p in paths])
            for paths in corpus.sessions(name).values()
        ]
        long = [each for each in sessions if len(each) >= TEMPLATE]
        if len(long) > 1:
            found[name] = (long[0][:TEMPLATE], long[1])
    return found


def attacks(
    readers: dict[str, tuple[FloatArray, FloatArray]], epsilon: float, frames: int, draws: int
) -> list[tuple[str, ScoreMatrix]]:
    """Scores of every trial against every template, by each attacker."""
    names = tuple(readers)
    clear = np.stack([unit(readers[name][0]).mean(axis=0) for name in names])
    cosine, likelihood, lazy, owners = [], [], [], []
    for draw in range(draws if epsilon < CLEAR else 1):

        def noisy(values: FloatArray, *whose: object, draw: int = draw) -> FloatArray:
            return values if epsilon == CLEAR else Laplace(epsilon).noisy(values, draw, *whose)

        learnt = np.stack([unit(noisy(readers[n][0], n, "template")).mean(axis=0) for n in names])
        for owner, name in enumerate(names):
            heard = noisy(readers[name][1], name, "trial").astype(np.float64)
            for begin in range(0, len(heard) - frames + 1, frames):
                trial = heard[begin : begin + frames]
                mean = unit(trial).mean(axis=0)
                cosine.append(unit(clear) @ mean)
                lazy.append(unit(learnt) @ mean)
                apart = trial[:, None] - clipped(clear * len(clear[0]), 1.0)
                likelihood.append(-np.abs(apart).sum(axis=(0, 2)))
                owners.append(owner)
    by = {"clear templates, cosine": cosine, "protected templates, cosine": lazy}
    if epsilon < CLEAR:
        by["clear templates, likelihood"] = likelihood
    return [
        (attacker, ScoreMatrix(np.stack(scores), np.array(owners), names, "voice"))
        for attacker, scores in by.items()
    ]


def unit(vectors: FloatArray) -> FloatArray:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))


def row(attacker: str, scores: ScoreMatrix) -> str:
    bits = evaluate(scores, settings=EvaluationSettings(replicates=200)).figures[
        "srd.mean_bits_model"
    ]
    return f"{attacker} {bits.value:.2f} [{bits.low:.2f}, {bits.high:.2f}] ({scores.trials} trials)"


if __name__ == "__main__":
    main()
