from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from monitor.population.interpolation import GOOD_AREA, EnrolledProbability
from monitor.population.population import Population
from tests.population.rank_models import LENGTHS, some_rank_model


def rank_model(area=1.0, **other):
    templates = (10.0, 30.0)
    rows = tuple({"T": t, "D": d, "open_set_area": area} for t in LENGTHS for d in templates)
    return some_rank_model(template_lengths=templates, **{"rows": rows, **other})


def odds(p):
    return np.log(p / (1 - p))


@pytest.fixture
def simple():
    base = rank_model()
    shape = base.open_set.shape
    values = np.zeros(shape)
    values[..., 0] = np.arange(shape[0])[:, None]  # the bias tells which T
    values[..., 1] = 10.0 * np.arange(shape[1])  # the slope tells which D
    return rank_model(open_set=values), base.lengths, base.template_lengths


def test_on_the_grid_the_coefficients_are_those_of_the_rank_model(simple):
    made, lengths, templates = simple
    for d, template in enumerate(templates):
        found = EnrolledProbability(made, template).at(lengths, np.full((lengths.size, 1), 0.1))
        assert_allclose(odds(found), np.arange(lengths.size) + 1.0 * d, atol=1e-9)


def test_between_lengths_in_log_t_below_fading_beyond_standing_still(simple):
    made, lengths, templates = simple
    each = EnrolledProbability(made, templates[0])
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
    found = EnrolledProbability(rank_model(open_set=values), templates[0]).at(
        lengths[:1], np.zeros((1, 1))
    )
    assert np.isfinite(found).all()


def test_huge_scores_stay_probabilities(simple):
    made, lengths, templates = simple
    each = EnrolledProbability(made, templates[-1])
    found = each.at(lengths[-1:].repeat(2), np.array([[1e9], [-1e9]]))
    assert 0 < found[1] < 1e-9 < 1 - 1e-9 < found[0] < 1


@pytest.mark.parametrize(("area", "told"), [(GOOD_AREA - 0.01, False), (GOOD_AREA, True)])
def test_they_are_told_only_where_they_told_impostors_in_calibration(area, told):
    made = rank_model(area)
    found = EnrolledProbability(made, 10.0)
    assert np.isfinite(found.at(made.lengths, np.zeros((made.lengths.size, 1)))).all() == told
    assert_allclose(found.area(made.lengths * 1.3), area)


def test_a_rank_model_that_does_not_say_how_well_tells_nothing():
    found = EnrolledProbability(rank_model(rows=()), 10.0)
    assert np.isnan(found.area(np.array([5.0]))).all()
    assert np.isnan(found.at(np.array([5.0]), np.zeros((1, 1)))).all()


@pytest.mark.parametrize("session", ["cross", "same"])
def test_of_the_shipped_rank_models_those_with_an_embedding_can_tell_and_pitch_cannot(session):
    for each in Population.reference().rank_models:
        if each.session == session:
            able = EnrolledProbability(each, 100.0).area(np.array([3.0, 10.0, 120.0])) >= GOOD_AREA
            if "voice" in each.features:
                assert able[1:].all(), each.features
            elif each.features == ("f0",):
                assert not able.any()
