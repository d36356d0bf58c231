from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from monitor.errors import CalibrationError
from monitor.maths.logistic import Platt, platt


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
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


def test_an_empty_class_is_refused():
    with pytest.raises(CalibrationError, match="add trials"):
        platt(np.array([]), np.array([1.0]))
