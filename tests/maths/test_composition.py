from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from monitor.errors import UsageError
from monitor.maths.composition import advanced, basic, guides, optimal


@pytest.fixture(scope="module")
def expected(golden):
    return golden.json("composition")


def test_golden_rows(expected):
    assert len(expected["rows"]) == 48
    for row in expected["rows"]:
        eps, k, delta = row["eps0"], row["k"], row["delta"]
        assert basic(eps, k) == pytest.approx(row["basic"], rel=1e-12)
        assert advanced(eps, k, delta) == pytest.approx(row["advanced_DRV"], rel=1e-12)
        best = optimal(eps, k, delta)
        assert best == pytest.approx(row["dp_accounting_PLD"], rel=1e-6)
        assert best <= row["KOV_thm34"] + eps  # the grid steps by 2 epsilon below their formula
        grid = eps * np.arange(k % 2, k + 1, 2)  # of theorem 3.3
        assert grid[grid >= best - 1e-12][0] == pytest.approx(row["KOV_thm33_optimal_grid"])


def test_golden_crossover(expected):
    for eps, first in expected["delta_advanced_crossover"].items():
        wins = [k for k in range(1, 3000) if advanced(float(eps), k, 1e-4) < basic(float(eps), k)]
        assert (wins[0] if wins else None) == first


@settings(deadline=None)
@given(st.floats(0, 5), st.integers(0, 400), st.floats(1e-9, 0.5))
def test_order_of_the_bounds(eps, k, delta):
    best = optimal(eps, k, delta)
    assert 0 <= best <= basic(eps, k) + 1e-12
    assert optimal(eps, k, delta / 2) >= best - 1e-12
    assert optimal(eps, k + 1, delta) >= best * (1 - 1e-9)


def _delta(bound, eps, k):
    """Of k randomised responses, summed over every sequence of outcomes."""
    truth = 1 / (1 + math.exp(-eps))
    outcomes = np.array(list(itertools.product((truth, 1 - truth), repeat=k)))
    given, other = outcomes.prod(axis=1), (1 - outcomes).prod(axis=1)
    return np.maximum(given - math.exp(bound) * other, 0.0).sum()


@settings(deadline=None)
@given(st.floats(0.01, 3), st.integers(1, 9), st.floats(1e-6, 0.5))
def test_optimal_is_where_k_randomised_responses_reach_delta(eps, k, delta):
    best = optimal(eps, k, delta)
    if best == 0:
        assert _delta(0.0, eps, k) <= delta * (1 + 1e-9)
    else:
        assert _delta(best, eps, k) == pytest.approx(delta, rel=1e-6, abs=1e-12)


def test_optimal_lies_between_the_grid_points():
    assert optimal(0.05, 10, 1e-4) == pytest.approx(0.4166197, abs=1e-7)
    assert _delta(optimal(0.05, 10, 1e-4), 0.05, 10) == pytest.approx(1e-4, rel=1e-9)


def test_many_windows_stay_finite():
    k = 100_000
    assert 0 < optimal(0.01, k, 1e-6) < advanced(0.01, k, 1e-6) < basic(0.01, k)
    assert optimal(0.0, 10, 1e-6) == 0
    assert advanced(1000.0, 2, 1e-6) == math.inf


def test_guides():
    length = np.array([0.0, 0.3, 1.2, 30.0, 1e9])
    linear, root = guides(length, 0.3, 0.4, 5.0)
    assert_allclose(linear, [0, 0.4, 1.6, 5, 5])
    assert_allclose(root, [0, 0.4, 0.8, 4, 5])
    flat, _ = guides(10.0, 1.0, 0.0, 5.0)
    assert flat == 0
    assert guides(0.3, 0.3, 7.0, 5.0)[0] == 5


@settings(deadline=None)
@given(st.floats(0, 1e6), st.floats(1e-3, 1e3), st.floats(0, 20), st.floats(0, 20))
def test_guides_stay_between_nothing_and_the_ceiling(length, first, bits, ceiling):
    linear, root = guides(length, first, bits, ceiling)
    for guide in (linear, root):
        assert 0 <= guide <= ceiling
    assert (linear >= root) if length >= first else (linear <= root)


def test_refusals():
    for case in [(-1.0, 1.0, 1.0, 1.0), (1.0, 1.0, -1.0, 1.0), (1.0, 1.0, 1.0, math.nan)]:
        with pytest.raises(UsageError, match="guides take"):
            guides(*case)
    for first in (0.0, -1.0, math.inf):
        with pytest.raises(UsageError, match="above 0"):
            guides(1.0, first, 1.0, 1.0)
    for eps in (-1.0, math.nan, math.inf):
        with pytest.raises(UsageError, match="epsilon"):
            basic(eps, 1)
    with pytest.raises(UsageError, match="windows"):
        basic(1.0, -1)
    for delta in (0.0, 1.0, math.nan):
        with pytest.raises(UsageError, match="delta"):
            optimal(1.0, 2, delta)
