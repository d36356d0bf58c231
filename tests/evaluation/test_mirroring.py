from __future__ import annotations

import numpy as np
import pytest

from monitor.evaluation.matrix import ScoreMatrix
from monitor.evaluation.mirroring import mirrored
from monitor.evaluation.resampling import resamples
from monitor.evaluation.tally import Tally
from monitor.evaluation.zebra import d_ece, figures
from monitor.maths.bootstrap import limits


def test_mirroring_is_its_own_inverse_within_bounds():
    draws = np.array([0.1, 0.25, 0.3])
    assert mirrored(0.2, mirrored(0.2, draws, -9, 9), -9, 9) == pytest.approx(draws)


def test_mirrored_limits_hold_the_true_figure_where_percentiles_do_not():
    """Thirty studies of 40 speakers whose scores know little."""
    generator = np.random.default_rng(0)
    lift = 0.3
    many = generator.normal(size=200_000) + lift, generator.normal(size=2_000_000)
    truth = d_ece(*many)
    target = np.repeat(np.arange(40), 5)
    held = np.zeros(2)
    for study in range(30):
        scores = generator.normal(size=(200, 40))
        scores[np.arange(200), target] += lift
        matrix = ScoreMatrix(scores, target)
        weights = resamples(matrix, 60, seed=study)
        mean = figures(matrix, weights, Tally.of(matrix, weights))[0]
        assert mean.value is not None
        assert mean.draws is not None
        plain = limits(2 * mean.value - mean.draws)
        for kind, (low, high) in enumerate([mean.limits, plain]):
            assert low is not None
            assert high is not None
            held[kind] += low <= truth <= high
    assert held[0] >= 24
    assert held[1] <= 15
