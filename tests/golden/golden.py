"""What public tools print, and the score matrices that they were given: README.md beside this."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from monitor.evaluation.scores.matrix import ScoreMatrix
from monitor.types import AnyArray, IntArray

SPEAKERS, TRIALS_EACH = 100, 10
PLACES = 60
"""Binary places of a product of two stored embeddings."""


class Golden:
    """Golden inputs and outputs, each read once.

    Attributes:
        target: column of the mated speaker of each trial, shape (1000,).
    """

    def __init__(self) -> None:
        self.folder = Path(__file__).parent
        self.target: IntArray = np.repeat(np.arange(SPEAKERS), TRIALS_EACH)
        self.json = cache(self._json)
        self.scores = cache(self._scores)

    def matrix(self, name: str) -> ScoreMatrix:
        """By name: ``mid_eval``, ``mid_dev``, ``tied_eval`` ..."""
        return ScoreMatrix(self.scores(name), self.target, name=name)

    def _json(self, name: str) -> Any:
        """By name: ``peers``, ``zebra_exact``, ``reference``, ``math`` ..."""
        return json.loads((self.folder / f"{name}.json").read_text(encoding="utf-8"))

    def _scores(self, name: str) -> AnyArray:
        """The matrix of that name, float32, shape (1000, 100), bit for bit."""
        if name == "tied_eval":
            return np.round(self.scores("mid_eval"), 1)
        with np.load(self.folder / "scores.npz") as store:
            trials, speakers, steps = (
                _whole(store[f"{name}_{part}"]) for part in ("trials", "speakers", "steps")
            )
        # whole numbers: exact, and in any order of summation
        near = np.ldexp((trials @ speakers.T).astype(float), -PLACES).astype(np.float32)
        # a step is one float further, there and back in turns: 0, -1, 1, -2, 2 ...
        steps = (steps >> 1) ^ -(steps & 1)
        exact = near.view(np.int32) + steps.astype(np.int32)
        scores: AnyArray = exact.view(np.float32)
        return scores


def _whole(planes: AnyArray) -> AnyArray:
    """Whole numbers of which the lowest bytes are stored first, then the next ..."""
    return np.ascontiguousarray(np.moveaxis(planes, 0, -1)).view("<i4")[..., 0].astype(np.int64)
