from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from monitor.population.enrolled import EnrolledOdds
from tests.population.laws import rank_law


def law(**other):
    return rank_law(template_lengths=(10.0, 30.0), **other)


def odds(p):
    return np.log(p / (1 - p))


@pytest.fixture
def simple():
    base = law()
    shape = base.open_set.shape
    values = np.zeros(shape)
    values[..., 0] = np.arange(shape[0])[:, None]  # the bias tells which T
    values[..., 1] = 10.0 * np.arange(shape[1])  # the slope tells which D
    return law(open_set=values), base.lengths, base.template_lengths


def test_on_the_grid_the_coefficients_are_those_of_the_law(simple):
    made, lengths, templates = simple
    for d, template in enumerate(templates):
        found = EnrolledOdds(made, template).at(lengths, np.full((lengths.size, 1), 0.1))
        assert_allclose(odds(found), np.arange(lengths.size) + 1.0 * d, atol=1e-9)


def test_between_lengths_in_log_t_below_fading_beyond_standing_still(simple):
    made, lengths, templates = simple
    each = EnrolledOdds(made, templates[0])
    middle = np.sqrt(lengths[0] * lengths[1])
    nothing = np.zeros((1, 1))
    assert_allclose(odds(each.at(np.array([middle]), nothing)), [0.5])
    assert_allclose(each.at(np.array([0.0]), nothing), [0.5])
    last = each.at(lengths[-1:], nothing)
    assert_allclose(each.at(lengths[-1:] * 50, nothing), last)


def test_a_cell_nobody_reached_is_passed_over(simple):
    made, lengths, templates = simple
    values = made.open_set.copy()
    values[:, 0] = np.nan
    found = EnrolledOdds(law(open_set=values), templates[0]).at(lengths[:1], np.zeros((1, 1)))
    assert np.isfinite(found).all()


def test_huge_scores_stay_probabilities(simple):
    made, lengths, templates = simple
    each = EnrolledOdds(made, templates[-1])
    found = each.at(lengths[-1:].repeat(2), np.array([[1e9], [-1e9]]))
    assert 0 < found[1] < 1e-9 < 1 - 1e-9 < found[0] < 1
