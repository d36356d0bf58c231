from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from monitor.evaluation.scores.matrix import ScoreMatrix

REGIMES = ("plain", "mid", "weak", "random")


class Golden:
    """Inputs and outputs of the public tools."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with np.load(folder / "scores_N100_T1000.npz") as store:
            self.arrays = {name: store[name] for name in store.files}
        self.matrix = cache(self._matrix)
        self.json = cache(self._json)

    def _matrix(self, name: str) -> ScoreMatrix:
        """By name: ``mid_eval``, ``mid_dev``, ``tied_eval`` ..."""
        return ScoreMatrix(self.arrays[name], self.arrays["target"], name=name)

    def _json(self, name: str) -> Any:
        """By name: ``peers``, ``zebra_exact``, ``reference``, ``math`` ..."""
        return json.loads((self.folder / f"golden_{name}.json").read_text())


@pytest.fixture(scope="session")
def golden(shared) -> Golden:
    return Golden(shared / "golden")


@pytest.fixture
def perfect() -> ScoreMatrix:
    """Ten speakers, three trials each, every mated score above all others."""
    target = np.repeat(np.arange(10), 3)
    generator = np.random.default_rng(0)
    scores = generator.uniform(0.0, 0.4, (30, 10))
    scores[np.arange(30), target] = generator.uniform(0.6, 1.0, 30)
    return ScoreMatrix(scores, target, name="perfect")
