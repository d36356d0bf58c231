from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from monitor.maths.posterior_fit import (
    Anchor,
    Trials,
    fit,
    fit_held_out,
    fit_replicates,
    information,
)
from monitor.maths.statistics import speaker_weights


@pytest.fixture
def behind() -> np.ndarray:
    """Raw scores of 40 trials, two features, 9 candidates, the first of them the speaker."""
    generator = np.random.default_rng(3)
    scores = generator.normal(size=(40, 2, 9)) * np.array([1.0, 20.0])[:, None]
    scores[:, :, 0] += np.array([1.5, 20.0])
    return np.asarray(scores - scores[:, :, :1])


def expected_loss(behind, truth, at):
    """Mean nats of -log p under the parameters ``at`` where ``truth`` draws the speaker."""

    def posterior(x):
        evidence = np.einsum("f,nfj->nj", x[:-1], behind)
        q = np.exp(evidence - evidence.max(axis=1, keepdims=True))
        e = np.exp(x[-1])
        return (1 - e) * q / q.sum(axis=1, keepdims=True) + e / behind.shape[2]

    return -(posterior(truth) * np.log(posterior(at))).sum(axis=1).mean()


def test_information_is_the_bend_of_the_expected_loss(behind):
    truth = np.array([0.8, 0.06, np.log(0.1)])
    step = np.array([1e-3, 1e-4, 1e-3])
    bend = np.empty((3, 3))
    for i in range(3):
        for j in range(3):
            corners = [
                (1 if a == b else -1) * expected_loss(behind, truth, truth + a * u + b * v)
                for a in (1, -1)
                for b in (1, -1)
                for u, v in [(np.eye(3)[i] * step, np.eye(3)[j] * step)]
            ]
            bend[i, j] = sum(corners) / (4 * step[i] * step[j])
    found = information(behind, truth[:-1], 0.1)
    size = np.sqrt(np.diag(bend))
    assert_allclose(found / np.outer(size, size), bend / np.outer(size, size), atol=1e-3)
    # whom the scores are taken against does not matter
    assert_allclose(information(behind - behind[:, :, 3:4], truth[:-1], 0.1), found, rtol=1e-9)


def test_cost_slope_and_bend_agree():
    generator = np.random.default_rng(0)
    root = generator.normal(size=(3, 3))
    anchor = Anchor(generator.normal(size=(4, 3)), root @ root.T).scale_to(7.0)
    weights, floors = generator.random((5, 2)), np.array([0.05, 0.3])
    cost = anchor.cost(weights, floors)
    assert cost.shape == (4, 5, 2)
    away = np.append(weights[2], np.log(0.3)) - anchor.centre[3]
    assert cost[3, 2, 1] == pytest.approx(3.5 * away @ root @ root.T @ away)
    at = np.log(np.append(weights[2], 0.3))
    value, slope, bend = anchor.bends(weights[2], 0.3)
    assert value == pytest.approx(cost[0, 2, 1])
    for f, move in enumerate(np.eye(3) * 1e-6):
        up, down = (anchor.bends(np.exp(x[:2]), np.exp(x[2])) for x in (at + move, at - move))
        assert slope[f] == pytest.approx((up[0] - down[0]) / 2e-6, rel=1e-5)
        assert_allclose(bend[f], (up[1] - down[1]) / 2e-6, rtol=1e-5)
    assert anchor.rank_model.cost(weights, floors) == pytest.approx(cost[:1])


@pytest.mark.slow
def test_a_fit_goes_from_its_own_to_the_anchor_as_the_worth_grows(behind):
    trials = Trials(behind, np.repeat(np.arange(10), 4))
    free, there = fit(trials), np.array([0.2, 0.1])
    replicates = np.abs(np.random.default_rng(1).normal(1, 0.1, (31, 2))) * there
    replicates[0] = there
    centre = np.column_stack([replicates, np.full(31, np.log(0.2))])
    anchor = Anchor(centre, information(behind, there, 0.2))
    found = [fit(trials, None, anchor.scale_to(worth)) for worth in (1e-9, 10.0, 1e9)]
    assert_allclose(found[0].weights, free.weights, rtol=1e-4)
    assert_allclose(found[2].weights, there, rtol=1e-4)
    assert found[2].floor == pytest.approx(0.2, rel=1e-4)
    away = [anchor.bends(each.weights, each.floor)[0] for each in found]
    assert away[0] > away[1] > away[2]
    # the limits hold what is left of the prior's own spread
    picks = speaker_weights(10, 30)
    spread = [
        np.log(fit_replicates(trials, each.weights, picks, anchor=anchor.scale_to(worth))[0]).std(
            axis=0
        )
        for each, worth in ((found[0], 1e-9), (found[2], 1e9))
    ]
    assert_allclose(spread[1], np.log(replicates[1:]).std(axis=0), rtol=0.3)
    held, floors = fit_held_out(trials, found[2].weights, 10, None, anchor.scale_to(1e9))
    assert_allclose(held, np.tile(there, (10, 1)), rtol=1e-3)
    assert_allclose(floors, 0.2, rtol=1e-3)
