from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from monitor.errors import CalibrationError
from monitor.lab.evaluation.calibration import local_information_bits, softmax_bits
from monitor.lab.evaluation.longitudinal import fit_growing_temperature, fit_temperature
from monitor.maths.logistic import Platt, compute_separation, fit_open_set, platt


@pytest.mark.slow
@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from([0.1, 1.0, np.inf]))
def test_the_loss_has_its_minimum_there(seed, balanced, strength):
    generator = np.random.default_rng(seed)
    own = generator.normal(generator.uniform(-1, 2), 1.0, int(generator.integers(20, 200)))
    other = generator.normal(0.0, generator.uniform(0.3, 3), int(generator.integers(20, 900)))
    if own.min() >= other.max() or own.max() <= other.min():
        return
    found = platt(own, other, None, balanced, strength)
    total = own.size + other.size
    s = (total / (2 * own.size), total / (2 * other.size)) if balanced else (1.0, 1.0)

    def loss(x):
        own_loss = np.logaddexp(0, -(x[0] * own + x[1])).sum()
        other_loss = np.logaddexp(0, x[0] * other + x[1]).sum()
        return (s[0] * own_loss + s[1] * other_loss + x[0] ** 2 / (2 * strength)) / total

    assert not found.bounded
    at = np.array([found.weight, found.bias])
    for move in np.random.default_rng(0).normal(size=(6, 2)) * 1e-3:
        assert loss(at) <= loss(at + move)
    other_minimum = minimize(loss, [0.0, 0.0], method="BFGS", options={"gtol": 1e-8})
    assert_allclose(at, other_minimum.x, rtol=1e-4, atol=1e-5)


def test_counts_stand_for_copies():
    own, other = np.array([0.5, 1.0, 2.0]), np.array([-1.0, 0.0, 0.8])
    copies = platt(own, np.repeat(other, [3, 1, 2]))
    counted = platt(own, other, np.array([3.0, 1.0, 2.0]))
    assert_allclose([counted.weight, counted.bias], [copies.weight, copies.bias], rtol=1e-12)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_classes_that_separate_are_bounded(sign):
    own, other = sign * np.array([1.0, 1.5]), sign * np.array([0.0, 1.0, -1.0])
    found = platt(own, other)
    assert found.bounded
    assert found == replace(platt(own, other, strength=1.0), bounded=True)
    assert np.sign(found.weight) == sign
    assert not platt(own, other, strength=100.0).bounded


def test_equal_scores_say_nothing():
    found = platt(np.zeros(2), np.zeros(6))
    assert found.weight == 0.0
    assert found.bias == pytest.approx(np.log(1 / 3))
    assert platt(np.ones(2), np.ones(6), balanced=True) == Platt(0.0, 0.0)


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


@pytest.mark.parametrize(("tau", "rho"), [(1.0, 0.3), (2.0, 0.05), (0.5, 0.9), (1.0, 0.0)])
def test_a_growing_temperature_is_found_again(tau, rho):
    growth = np.repeat(np.arange(10.0), 400)
    ratios, target = drawn(tau * (1 + rho * growth))
    found = fit_growing_temperature(ratios, target, growth)
    assert found[0] == pytest.approx(tau, rel=0.15 if rho else 0.1)
    assert found[1] == pytest.approx(rho, rel=0.25, abs=0.0 if rho else 0.02)
    best = tempered_loss(ratios, target, found[0] * (1 + found[1] * growth))
    generator = np.random.default_rng(1)
    for _ in range(8):
        other = np.array(found) * np.exp(generator.normal(size=2) * 0.02)
        loss = tempered_loss(ratios, target, other[0] * (1 + other[1] * growth))
        assert best <= loss + 1e-12


def test_bits_are_those_of_lid():
    scores = np.random.default_rng(0).normal(size=(5, 7))
    normalised = (scores - scores.mean(axis=1, keepdims=True)) / scores.std(axis=1, keepdims=True)
    target = np.arange(5)
    expected = local_information_bits(scores, target, 1.3, 0.0)
    assert softmax_bits(1.3 * normalised, target) == pytest.approx(expected)


def two_normals(gap: float, trials: int = 4000, features: int = 2):
    generator = np.random.default_rng(1)
    impostors = generator.normal(size=(trials, features))
    enrolled = generator.normal(size=(trials, features))
    enrolled[:, 0] += gap
    return enrolled, impostors, np.arange(trials) % 40


def test_the_log_odds_of_two_normals_are_found():
    # two unit normals a gap apart: log odds = gap (x - gap / 2)
    found = fit_open_set(*two_normals(1.5, 40_000))
    assert found.slopes[0] == pytest.approx(1.5, abs=0.1)
    assert found.slopes[1] == pytest.approx(0.0, abs=0.05)
    assert found.bias == pytest.approx(-(1.5**2) / 2, abs=0.1)
    assert found.area == pytest.approx(0.856, abs=0.01)  # Phi(gap / sqrt 2)
    assert found.enrolled_kept == pytest.approx(found.impostors_found, abs=0.02)


def test_no_difference_tells_nothing_apart_and_a_clean_gap_stays_finite():
    assert fit_open_set(*two_normals(0.0)).area == pytest.approx(0.5, abs=0.03)
    found = fit_open_set(*two_normals(100.0))
    assert np.isfinite([found.bias, *found.slopes]).all()
    assert (found.enrolled_kept, found.impostors_found) == (1.0, 1.0)
    assert found.area == pytest.approx(1.0)


def test_it_is_judged_on_speakers_left_out():
    # a feature that says nothing but who somebody is, right for that speaker alone
    generator = np.random.default_rng(0)
    speaker = np.repeat(np.arange(20), 5)
    enrolled = generator.normal(size=(100, 1)) * 0.1
    found = fit_open_set(enrolled, enrolled.copy(), speaker)
    assert found.area == pytest.approx(0.5, abs=0.05)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=12), st.integers(-2, 2))
def test_the_area_counts_pairs_and_ties_half(values, shift):
    first = np.array(values, float)
    second = first[::-1] - shift
    pairs = first[:, None] - second[None]
    area = compute_separation(first, second, np.ones(first.size))[2]
    assert_allclose(area, ((pairs > 0) + 0.5 * (pairs == 0)).mean())


def test_nothing_to_fit_on_is_refused():
    with pytest.raises(CalibrationError, match="add trials"):
        platt(np.array([]), np.array([1.0]))
