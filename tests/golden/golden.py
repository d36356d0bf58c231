"""What public tools print, and the score matrices that they were given: README.md beside this."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.types import AnyArray, FloatArray, IntArray

SPEAKERS, TRIALS, UTTERANCES, SIZE = 100, 1000, 5, 32
REGIMES: dict[str, tuple[int, float | None]] = {
    "plain": (20260900, 0.6),
    "mid": (20260910, 2.0),
    "weak": (20260920, 5.0),
    "random": (20260930, None),
}
"""Seed of the dev half (the eval half has the next), and by how much noise is louder than
the speaker, None where no speaker is heard."""


class Golden:
    """Golden inputs and outputs, each read once.

    Attributes:
        target: column of the mated speaker of each trial, shape (1000,).
    """

    def __init__(self) -> None:
        self.folder = Path(__file__).parent
        self.target: IntArray = np.repeat(np.arange(SPEAKERS), TRIALS // SPEAKERS)
        self.json = cache(self._json)
        self.scores = cache(self._scores)

    def matrix(self, name: str) -> ScoreMatrix:
        """By name: ``mid_eval``, ``mid_dev``, ``tied_eval`` ..."""
        return ScoreMatrix(self.scores(name), self.target, name=name)

    def _json(self, name: str) -> Any:
        """By name: ``peers``, ``zebra_exact``, ``reference``, ``math`` ..."""
        return json.loads((self.folder / f"{name}.json").read_text(encoding="utf-8"))

    def _scores(self, name: str) -> AnyArray:
        """Cosines of trials and enrolled speakers, float32, shape (1000, 100)."""
        if name == "tied_eval":
            return np.round(self.scores("mid_eval"), 1)
        regime, half = name.split("_")
        seed, noise = REGIMES[regime]
        normal = np.random.default_rng(seed + (half == "eval")).standard_normal
        speakers = normal((SPEAKERS, SIZE))
        if noise is None:
            enrolled, tested = normal((SPEAKERS, SIZE)), normal((TRIALS, SIZE))
        else:
            utterances = speakers[:, None] + noise * normal((SPEAKERS, UTTERANCES, SIZE))
            enrolled = utterances.mean(axis=1)
            tested = speakers[self.target] + noise * normal((TRIALS, SIZE))
        return (_unit(tested) @ _unit(enrolled).T).astype(np.float32)


def _unit(embeddings: FloatArray) -> FloatArray:
    return np.asarray(embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True))
