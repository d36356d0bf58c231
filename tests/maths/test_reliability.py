import numpy as np
import pytest
from numpy.testing import assert_allclose

from monitor.maths.posterior import reliability


def simulated(trials: int, candidates: int, sharpen: float = 1.0):
    """Trials whose posterior is right where ``sharpen`` is 1, and overconfident above."""
    generator = np.random.default_rng(3)
    evidence = generator.normal(size=(trials, candidates)) * 2.0
    p = np.exp(evidence) / np.exp(evidence).sum(axis=1, keepdims=True)
    own = (p.cumsum(axis=1) > generator.random(trials)[:, None]).argmax(axis=1)
    claimed = p**sharpen
    return claimed / claimed.sum(axis=1, keepdims=True), own, np.ones(trials)


@pytest.mark.slow
def test_a_calibrated_posterior_lies_on_the_diagonal():
    found = reliability(*simulated(20_000, 20))
    assert found.share.sum() == pytest.approx(1.0)
    assert_allclose(found.predicted, found.observed, atol=0.05)
    assert found.top_error < 0.02
    assert found.all_error < 0.05


@pytest.mark.slow
def test_an_overconfident_one_does_not():
    honest, boastful = (reliability(*simulated(20_000, 20, power)) for power in (1.0, 3.0))
    assert boastful.top_error > honest.top_error + 0.1
    assert boastful.all_error > honest.all_error + 0.2


def test_trials_weigh_what_they_are_given():
    p = np.array([[0.9, 0.1], [0.9, 0.1]])
    own = np.array([0, 1])
    assert reliability(p, own, np.array([1.0, 0.0])).top_error == pytest.approx(0.1)
    assert reliability(p, own, np.array([0.0, 1.0])).top_error == pytest.approx(0.9)


def test_probabilities_of_exactly_one_and_zero_have_a_bin():
    found = reliability(np.eye(3), np.arange(3), np.ones(3))
    assert_allclose(found.predicted, [0.0, 1.0])
    assert_allclose(found.observed, [0.0, 1.0])
    assert (found.top_error, found.all_error) == (0.0, 0.0)
