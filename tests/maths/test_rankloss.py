from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from monitor.maths.logistic import descend
from monitor.maths.rank_models import LOSSES, RankLoss, fit, log_pmf


@pytest.mark.parametrize("loss", LOSSES[1:])
def test_slope_and_hessian_are_those_of_the_loss(loss):
    shares = 0.7 * np.exp(log_pmf(0.5, 2.0, 30)) + 0.3 * np.exp(log_pmf(2.0, 0.5, 30))
    objective, point, step = RankLoss(shares, loss, 0.1), np.array([[0.3, -0.2]]), 1e-5
    _, slope, hessian = objective(point)
    sides = [(objective(point + step * d), objective(point - step * d)) for d in np.eye(2)]
    expected = [float(up[0][0] - down[0][0]) / (2 * step) for up, down in sides]
    assert_allclose(slope[0], expected, rtol=1e-5)
    bends = np.array([(up[1][0] - down[1][0]) / (2 * step) for up, down in sides])
    assert_allclose(hessian[0], bends, rtol=1e-5, atol=1e-6 * np.abs(hessian).max())


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES[1:])
@pytest.mark.parametrize("seed", range(6))
def test_no_start_finds_a_lower_loss(loss, seed):
    random = np.random.default_rng(seed)
    speakers = int(random.integers(5, 80))
    alpha, beta = np.exp(random.uniform(-2, 3, 2))
    histogram = random.multinomial(300, np.exp(log_pmf(alpha, beta, speakers))).astype(float)
    rank_model = fit(histogram, loss)
    if rank_model.binomial:
        return
    objective = RankLoss(histogram / histogram.sum(), rank_model.loss, rank_model.value or 1.0)
    if rank_model.loss == "LL":
        return
    starts = random.uniform(-4, 6, (40, 2))
    _, found = descend(objective, starts, np.log(1e-9), np.log(1e12))
    assert found.min() > 1 - 1e-6
