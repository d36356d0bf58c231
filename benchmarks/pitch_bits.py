"""How well a reader is found by the pitch, before and after an anonymiser, as two trackers hear it.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.pitch_bits ../shared/speech/dev-clean
        [--readers 20] [--methods none,mcadams:0.8,...] [--features f0,f0_robust]

Of each reader with two chapters the first 45 s of the first make a template of 30 s of speech, and
the first 45 s of the second trials of 10 s. Ignorant: templates of clear speech. Lazy-informed:
templates of speech that was protected by the same method, with draws of its own. Prints, for each
method, attacker and feature: MeanD of the ranks in bits and the share of first ranks, each with
95 % interval from resampled readers, and how many times real time the method takes.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.pitch import excerpts
from monitor.anonymisers import protect
from monitor.corpus import find
from monitor.kinds import FeatureSpec
from monitor.lab.evaluation import EvaluationSettings, ScoreMatrix, evaluate
from monitor.training.voices import UNITS_PER_SECOND, SpeakerSpeech, collect

TEMPLATE = 30 * UNITS_PER_SECOND
TRIAL = 10 * UNITS_PER_SECOND
FIGURES = ("srd.mean_bits_model", "srd.idr")


def main() -> None:
    words = argparse.ArgumentParser(description="Bits of pitch through anonymisers.")
    words.add_argument("speech", type=Path)
    words.add_argument("--readers", type=int, default=20)
    words.add_argument("--methods", default="none,mcadams:0.8,mcadams:random,mcadams:0.5")
    words.add_argument("--features", default="f0,f0_robust")
    asked = words.parse_args()
    features = asked.features.split(",")
    with tempfile.TemporaryDirectory() as folder:
        clear = Path(folder, "clear")
        excerpts(find(asked.speech), clear, asked.readers)
        ours, specs, _ = collect(find(clear), features=features)
        for method in asked.methods.split(","):
            protected = Path(folder, method.replace(":", "-"))
            speed = protect_all(clear, protected, method)
            theirs, _, _ = collect(find(protected), features=features)
            print(f"\n{method}, {speed:.0f} times real time", flush=True)
            for attacker, enrolled in (("ignorant", ours), ("lazy-informed", theirs)):
                for name, spec in specs.items():
                    print(row(attacker, name, matrix(enrolled, theirs, spec)), flush=True)


def protect_all(clear: Path, protected: Path, method: str) -> float:
    """Every recording of a folder; how many times real time."""
    took = seconds = 0.0
    for path in sorted(clear.rglob("*.flac")):
        target = protected / path.relative_to(clear)
        began = time.process_time()
        name = path.relative_to(clear).as_posix()
        seconds += protect(path, target, method, name=name, speaker=path.parent.name).seconds
        took += time.process_time() - began
    return seconds / took


def matrix(
    enrolled: Sequence[SpeakerSpeech], heard: Sequence[SpeakerSpeech], spec: FeatureSpec
) -> ScoreMatrix:
    """Trials of everybody's second chapter against templates of everybody's first."""
    names = [voice.name for voice in enrolled]
    assert names == [voice.name for voice in heard]
    templates = np.stack([voice.sessions[0][spec.name].total(0, TEMPLATE) for voice in enrolled])
    trials, owners = [], []
    for owner, voice in enumerate(heard):
        for i in range(voice.length(1) // TRIAL):
            trials.append(voice.sessions[1][spec.name].total(i * TRIAL, TRIAL))
            owners.append(owner)
    similarity = spec.kind.similarity()
    scores = similarity.score(similarity.prepare(templates), np.stack(trials))
    return ScoreMatrix(scores, np.array(owners), tuple(names), spec.name)


def row(attacker: str, name: str, scores: ScoreMatrix) -> str:
    report = evaluate(scores, settings=EvaluationSettings(replicates=200))
    bits, first = (report.figures[key] for key in FIGURES)
    limits = [f"{f.value:.2f} [{f.low:.2f}, {f.high:.2f}]" for f in (bits, first)]
    n = f"{scores.trials} trials, N = {scores.scores.shape[1]}"
    return f"{attacker:14}{name:10}MeanD {limits[0]:20} first {limits[1]:20} {n}"


if __name__ == "__main__":
    main()
