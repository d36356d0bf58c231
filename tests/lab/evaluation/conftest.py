from __future__ import annotations

import numpy as np
import pytest

from monitor.lab.evaluation.comparisons import ScoreMatrix


@pytest.fixture
def perfect() -> ScoreMatrix:
    """Ten speakers, three trials each, every mated score above all others."""
    target = np.repeat(np.arange(10), 3)
    generator = np.random.default_rng(0)
    scores = generator.uniform(0.0, 0.4, (30, 10))
    scores[np.arange(30), target] = generator.uniform(0.6, 1.0, 30)
    return ScoreMatrix(scores, target, name="perfect")
