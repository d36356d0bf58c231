from __future__ import annotations

import numpy as np
import pytest

from monitor.errors import UsageError
from monitor.maths.logistic import fit_growing_temperature, fit_temperature
from monitor.maths.posterior import local_information_bits, softmax_bits


def drawn(temperature, seed=0, trials=4000, count=12):
    """Ratios that are calibrated once divided by the temperature."""
    generator = np.random.default_rng(seed)
    ratios = generator.normal(size=(trials, count)) * 2
    p = np.exp(ratios)
    p /= p.sum(axis=1, keepdims=True)
    target = (p.cumsum(axis=1) > generator.random((trials, 1))).argmax(axis=1)
    return ratios * temperature[:, None], target


def tempered_loss(ratios, target, temperature):
    """Mean of -log p of the true speaker, nats, but for a constant."""
    return -softmax_bits(ratios / np.asarray(temperature)[..., None], target).mean()


def test_one_temperature_is_found_again():
    ratios, target = drawn(np.full(4000, 3.7))
    found = fit_temperature(ratios, target)
    assert found == pytest.approx(3.7, rel=0.05)
    best = tempered_loss(ratios, target, found)
    for other in (found * 0.999, found * 1.001):
        assert best <= tempered_loss(ratios, target, other)


def test_temperatures_stay_in_their_range():
    right = 9 * np.eye(5)
    assert fit_temperature(right, np.arange(5)) == 0.05
    assert fit_temperature(right, (np.arange(5) + 1) % 5) == pytest.approx(100, rel=1e-6)
    assert fit_temperature(right, (np.arange(5) + 1) % 5, trials=50) == pytest.approx(200, rel=1e-6)


@pytest.mark.parametrize(("tau", "rho"), [(1.0, 0.3), (2.0, 0.05), (0.5, 0.9)])
def test_a_growing_temperature_is_found_again(tau, rho):
    growth = np.repeat(np.arange(10.0), 400)
    ratios, target = drawn(tau * (1 + rho * growth))
    found = fit_growing_temperature(ratios, target, growth)
    assert found[0] == pytest.approx(tau, rel=0.15)
    assert found[1] == pytest.approx(rho, rel=0.25)
    best = tempered_loss(ratios, target, found[0] * (1 + found[1] * growth))
    generator = np.random.default_rng(1)
    for _ in range(8):
        other = np.array(found) * np.exp(generator.normal(size=2) * 0.02)
        loss = tempered_loss(ratios, target, other[0] * (1 + other[1] * growth))
        assert best <= loss + 1e-12


def test_independent_sums_need_no_growth():
    growth = np.repeat(np.arange(10.0), 400)
    ratios, target = drawn(np.ones(4000))
    tau, rho = fit_growing_temperature(ratios, target, growth)
    assert tau == pytest.approx(1, rel=0.1)
    assert rho < 0.02


def test_bits_are_those_of_lid():
    scores = np.random.default_rng(0).normal(size=(5, 7))
    normalised = (scores - scores.mean(axis=1, keepdims=True)) / scores.std(axis=1, keepdims=True)
    target = np.arange(5)
    expected = local_information_bits(scores, target, 1.3, 0.0)
    assert softmax_bits(1.3 * normalised, target) == pytest.approx(expected)


def test_nothing_to_fit_on_is_refused():
    for fit in (fit_temperature, lambda r, t: fit_growing_temperature(r, t, np.zeros(0))):
        with pytest.raises(UsageError, match="development"):
            fit(np.zeros((0, 3)), np.zeros(0, dtype=int))
