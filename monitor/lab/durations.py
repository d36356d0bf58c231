"""Predicts the duration of laboratory work from a sample of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup, make
from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.evaluation.evaluating import evaluate
from monitor.lab.evaluation.family import EvaluationSettings
from monitor.training.frames_folder import ExtractionOptions, extract_features
from monitor.types import TICKS_PER_SECOND
from monitor.virtual_files import Readable

_SAMPLE_SECONDS = 10.0


def measure_seconds(work: Callable[[], object], load: Callable[[], object] | None = None) -> float:
    """Return the wall seconds of work, after ``load`` or a first run has loaded networks."""
    (load or work)()
    began = time.monotonic()
    work()
    return time.monotonic() - began


def measure_evaluation(speakers: int, trials: int, settings: EvaluationSettings) -> float:
    """Return the wall seconds of an evaluation of random scores."""
    target = np.arange(trials) % speakers
    scores = np.random.default_rng(0).normal(size=(trials, speakers))
    scores[np.arange(trials), target] += 2.0  # standard deviations
    names = tuple(map(str, range(speakers)))
    matrix = ScoreMatrix(scores, target, names, "score", tuple(map(str, range(trials))))
    began = time.monotonic()
    evaluate(matrix, settings=settings)
    return time.monotonic() - began


def measure_extraction(
    path: Readable, names: Sequence[str], setup: FeatureSetup = AS_ENVIRONMENT
) -> float:
    """Return the wall seconds of extraction per second of audio, from the first 10 s of a file.

    Raises SourceError if the file cannot be read.
    """
    options = ExtractionOptions(tuple(names), _SAMPLE_SECONDS, setup=setup)
    seconds = 0.0

    def extract() -> None:
        nonlocal seconds
        frames = extract_features(path, make(names, setup), options)
        seconds = len(frames.speech) / TICKS_PER_SECOND

    wall = measure_seconds(extract)
    return wall / max(seconds, 1.0)
