import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from monitor.maths.logistic import compute_separation, fit_open_set


def simulated(gap: float, trials: int = 4000, features: int = 2):
    generator = np.random.default_rng(1)
    impostors = generator.normal(size=(trials, features))
    enrolled = generator.normal(size=(trials, features))
    enrolled[:, 0] += gap
    return enrolled, impostors, np.arange(trials) % 40


def test_the_log_odds_of_two_normals_are_found():
    # two unit normals a gap apart: log odds = gap (x - gap / 2)
    found = fit_open_set(*simulated(1.5, 40_000))
    assert found.slopes[0] == pytest.approx(1.5, abs=0.1)
    assert found.slopes[1] == pytest.approx(0.0, abs=0.05)
    assert found.bias == pytest.approx(-(1.5**2) / 2, abs=0.1)
    assert found.area == pytest.approx(0.856, abs=0.01)  # Phi(gap / sqrt 2)
    assert found.enrolled_kept == pytest.approx(found.impostors_found, abs=0.02)


def test_no_difference_tells_nothing_apart():
    found = fit_open_set(*simulated(0.0))
    assert found.area == pytest.approx(0.5, abs=0.03)


def test_a_clean_gap_stays_finite():
    found = fit_open_set(*simulated(100.0))
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
