from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import betabinom, binom

from monitor.maths.rank_models import mean_disclosure_bits
from monitor.population.interpolation import LengthModel, at_template
from tests.population.rank_models import LENGTHS, some_rank_model

ADDITIVE = np.array([True])


def at_d(seconds=10.0, additive=ADDITIVE, **other):
    return at_template(
        some_rank_model(features=["f0", "x"][: additive.size], **other), seconds, additive
    )


def degenerate(rows=slice(None), cells=(2,), p=0.03, **other):
    """A rank model with binomial cells at some lengths."""
    rank_model = some_rank_model(**other)
    for cell in cells:
        rank_model.alpha[rows, cell], rank_model.beta[rows, cell] = p, 1 - p
        rank_model.binomial[rows, cell] = True
    return rank_model


def slow_pmf(rank_model, row, index, speakers):
    """A cell's pmf, from scipy."""
    j, (a, b) = (
        np.arange(speakers),
        (rank_model.alpha[row, index, 0], rank_model.beta[row, index, 0]),
    )
    if rank_model.binomial[row, index, 0]:
        return binom.pmf(j, speakers - 1, a)
    return betabinom.pmf(j, speakers - 1, a, b)


def bits_of(pmf):
    seen = pmf[pmf > 0]
    return np.log2(pmf.size) + (seen * np.log2(seen)).sum()


@pytest.mark.parametrize("index", range(len(LENGTHS)))
def test_a_grid_point_has_the_stored_parameters(index):
    rank_model = some_rank_model()
    point = at_template(rank_model, 10.0, ADDITIVE).at(LENGTHS[index])
    assert point.share.shape[0] == 1
    assert_array_equal(point.alpha[0], rank_model.alpha[:, index, 0])
    assert_array_equal(point.beta[0], rank_model.beta[:, index, 0])
    assert_array_equal(point.weights, rank_model.weights[:, index, 0])
    assert_array_equal(point.floor, rank_model.floor[:, index, 0])
    assert (point.fade == 1.0).all()


@given(st.floats(LENGTHS[0], LENGTHS[-1]))
def test_between_grid_points_logarithms_are_interpolated_in_log_t(seconds):
    rank_model = some_rank_model()
    point = at_template(rank_model, 10.0, ADDITIVE).at(seconds)

    def expected(values):
        rows = [np.interp(np.log(seconds), np.log(LENGTHS), np.log(row)) for row in values]
        return np.exp(rows)

    assert_allclose(point.alpha[0], expected(rank_model.alpha[:, :, 0]), rtol=1e-9)
    assert_allclose(point.beta[0], expected(rank_model.beta[:, :, 0]), rtol=1e-9)
    assert_allclose(point.weights[:, 0], expected(rank_model.weights[:, :, 0, 0]), rtol=1e-9)
    assert_allclose(point.floor, expected(rank_model.floor[:, :, 0]), rtol=1e-9)
    assert not point.binomial.any()


@given(st.floats(LENGTHS[0], LENGTHS[1]))
def test_a_feature_without_a_say_at_one_length_gains_it_evenly(seconds):
    rank_model = some_rank_model()
    rank_model.weights[:, 0, :, 0] = 0.0
    point = at_template(rank_model, 10.0, ADDITIVE).at(seconds)
    w = np.interp(np.log(seconds), np.log(LENGTHS[:2]), [0.0, 1.0])
    assert_allclose(point.weights[:, 0], w * rank_model.weights[:, 1, 0, 0], atol=1e-12)


def test_a_feature_without_a_say_at_one_template_length_gains_it_evenly():
    rank_model = some_rank_model(template_lengths=(10.0, 40.0))
    rank_model.weights[:, :, 0, 0] = 0.0
    point = at_template(rank_model, 20.0, ADDITIVE).at(LENGTHS[1])
    assert_allclose(point.weights[:, 0], 0.5 * rank_model.weights[:, 1, 1, 0])


@pytest.mark.parametrize("index", [1, 2])
def test_continuous_at_grid_points(index):
    rank_model = at_d()
    sides = [rank_model.at(LENGTHS[index] * (1 + step)) for step in (-1e-9, 0, 1e-9)]
    for name in ("alpha", "beta", "weights", "floor"):
        values = [getattr(side, name) for side in sides]
        assert_allclose(values[0], values[1], rtol=1e-7)
        assert_allclose(values[2], values[1], rtol=1e-7)


@pytest.mark.parametrize("speakers", [2, 49, 300])
def test_below_the_grid_everything_fades_to_nothing(speakers):
    rank_model = at_d()
    steps = [0.0, 0.001, 0.1, 0.25, 0.4, 0.4999999, 0.5]
    points = [rank_model.at(seconds) for seconds in steps]
    assert [point.fade[0] for point in points] == pytest.approx([t / 0.5 for t in steps])
    expected = np.stack([point.expected_bits(speakers, slice(None)) for point in points])
    rank = np.stack([point.rank_bits(speakers, 0, 1) for point in points])
    for bits in (expected, rank):
        assert (bits[0] == 0.0).all()
        assert (np.diff(bits, axis=0) > 0).all()
        assert_allclose(bits[-2], bits[-1], atol=1e-5)
    assert_allclose(points[-1].uniform_share, points[-1].floor, atol=1e-15)
    assert (points[0].uniform_share == 1.0).all()
    # half of what the rank model says, half of nothing
    rank_model_pmf = points[-1].pmf(speakers, slice(None), floor=False)
    half = points[3].pmf(speakers, slice(None), floor=False)
    assert_allclose(half, 0.5 * rank_model_pmf + 0.5 / speakers, rtol=1e-12)


def test_beyond_the_grid_the_last_rank_model_holds():
    rank_model = at_d(additive=np.array([True, False]))
    last, point = rank_model.at(60.0), rank_model.at(240.0)
    assert (point.fade == 1.0).all()
    for name in ("alpha", "beta", "floor"):
        assert_array_equal(getattr(point, name), getattr(last, name))
    # a score that grows with the evidence is weighed as if it had been heard for the last length
    assert_allclose(point.weights[:, 0], last.weights[:, 0] / 4)
    assert_array_equal(point.weights[:, 1], last.weights[:, 1])
    assert_array_equal(point.expected_bits(50, slice(None)), last.expected_bits(50, slice(None)))


@pytest.mark.parametrize("p", [0.0, 0.03, 1.0])
@pytest.mark.parametrize("speakers", [2, 14, 50])
@pytest.mark.parametrize("seconds", [2.0, 3.0, 9.999, 10.0, 25.0, 60.0])
def test_beside_a_degenerate_cell_pmfs_are_mixed(p, speakers, seconds):
    rank_model = degenerate(p=p, replicates=3)
    point = at_template(rank_model, 10.0, ADDITIVE).at(seconds)
    pmf = point.pmf(speakers, slice(None), floor=False)
    with_floor = point.pmf(speakers, slice(None), floor=True)
    bits = point.expected_bits(speakers, slice(None))
    left = max(i for i, t in enumerate(LENGTHS) if t <= seconds)
    right = min(left + 1, len(LENGTHS) - 1)
    w = (
        np.log(seconds / LENGTHS[left]) / np.log(LENGTHS[right] / LENGTHS[left])
        if right > left
        else 0
    )
    for row in range(4):
        expected = (1 - w) * slow_pmf(rank_model, row, left, speakers)
        expected += w * slow_pmf(rank_model, row, right, speakers)
        assert_allclose(pmf[row], expected, atol=1e-9)
        assert bits[row] == pytest.approx(bits_of(expected), abs=1e-8)
        e = point.floor[row]
        assert_allclose(with_floor[row], (1 - e) * expected + e / speakers, atol=1e-9)
        for better in (0, speakers // 2, speakers - 1):
            own = point.rank_bits(speakers, better, 1)[row]
            assert own == pytest.approx(np.log2(speakers * with_floor[row, better]), abs=1e-8)


def test_a_degenerate_draw_leaves_the_rank_model_itself_alone():
    rank_model = degenerate(rows=slice(2, 4), replicates=5)
    plain = at_template(some_rank_model(replicates=5), 10.0, ADDITIVE).at(5.0)
    point = at_template(rank_model, 10.0, ADDITIVE).at(5.0)
    bits, rank = point.expected_bits(40, slice(None)), point.rank_bits(40, 3, 2)
    assert np.isfinite(bits).all()
    others = [0, 1, 4, 5]
    assert_allclose(bits[others], plain.expected_bits(40, slice(None))[others], rtol=1e-12)
    assert_allclose(rank[others], plain.rank_bits(40, 3, 2)[others], rtol=1e-12)
    assert (np.abs(bits[2:4] - plain.expected_bits(40, slice(None))[2:4]) > 1e-3).all()


def test_a_perfect_rank_model_is_certain_everywhere():
    rank_model = at_template(degenerate(cells=(0, 1, 2, 3), p=0.0), 10.0, ADDITIVE)
    for seconds in (0.5, 1.0, 60.0, 500.0):
        assert_allclose(rank_model.at(seconds).expected_bits(64, slice(None)), 6.0)
    assert 0 < rank_model.at(0.25).expected_bits(64, slice(0, 1))[0] < 6


def test_a_rank_model_of_one_length():
    rank_model = at_d(lengths=(5.0,))
    assert (rank_model.at(2.5).fade == 0.5).all()
    assert (rank_model.at(5.0).fade == 1.0).all()
    assert_allclose(rank_model.at(10.0).weights, rank_model.at(5.0).weights / 2)


@pytest.mark.parametrize("speakers", [2, 14, 49, 3000])
def test_expected_bits_are_mean_disclosure_at_the_live_n(speakers):
    rank_model = some_rank_model()
    assert rank_model.candidates == 14
    point = at_template(rank_model, 10.0, ADDITIVE).at(2.0)
    bits = point.expected_bits(speakers, slice(None))
    assert_allclose(
        bits, mean_disclosure_bits(rank_model.alpha[:, 1, 0], rank_model.beta[:, 1, 0], speakers)
    )
    slow = [bits_of(slow_pmf(rank_model, row, 1, speakers)) for row in (0, 7)]
    assert_allclose(bits[[0, 7]], slow, atol=2e-6)
    assert_allclose(point.expected_bits(speakers, slice(0, 1)), bits[:1], rtol=1e-10)


@pytest.mark.parametrize("seconds", [0.2, 0.5, 3.0, 5.0, 100.0])
@pytest.mark.parametrize(
    "rank_model",
    [some_rank_model(replicates=4), degenerate(replicates=4), degenerate(p=0.0, replicates=4)],
)
def test_ranks_share_one_probability(rank_model, seconds):
    point = at_template(rank_model, 10.0, ADDITIVE).at(seconds)
    for speakers in (2, 30, 49):
        pmf = point.pmf(speakers, slice(None), floor=True)
        assert_allclose(pmf.sum(axis=1), 1.0)
        assert_allclose(point.pmf(speakers, slice(None), floor=False).sum(axis=1), 1.0)
        each = np.stack(
            [point.rank_probability(speakers, k, 1, slice(None)) for k in range(speakers)], axis=1
        )
        assert_allclose(each, pmf, rtol=1e-9)
        assert_array_equal(point.rank_probability(speakers, 1, 1, slice(0, 1)), each[:1, 1])


@given(st.integers(2, 60), st.data())
def test_tied_ranks_share_the_mean_of_gamma(speakers, data):
    better = data.draw(st.integers(0, speakers - 1))
    tied = data.draw(st.integers(1, speakers - better))
    seconds = data.draw(st.sampled_from([0.1, 0.5, 4.0, 80.0]))
    point = at_template(degenerate(replicates=3), 10.0, ADDITIVE).at(seconds)
    pmf = point.pmf(speakers, slice(None), floor=True)
    expected = np.log2(speakers * pmf[:, better : better + tied].mean(axis=1))
    assert_allclose(point.rank_bits(speakers, better, tied), expected, atol=1e-9)


@pytest.mark.parametrize("speakers", [2, 3, 49, 98, 1000])
def test_no_evidence_is_exactly_zero_rank_bits(speakers):
    for rank_model in (some_rank_model(), degenerate(p=0.0)):
        for seconds in (0.0, 0.2, 5.0, 100.0):
            point = at_template(rank_model, 10.0, ADDITIVE).at(seconds)
            assert (point.rank_bits(speakers, 0, speakers) == 0.0).all()
        # and nothing heard at all, whatever the rank
        assert (
            at_template(rank_model, 10.0, ADDITIVE).at(0.0).rank_bits(speakers, 0, 1) == 0.0
        ).all()


def test_rank_bits_are_bounded_by_the_floor_below():
    point = at_template(degenerate(p=0.0), 10.0, ADDITIVE).at(10.0)
    bits = point.rank_bits(50, 49, 1)
    assert_allclose(bits, np.log2(point.floor))


D = (10.0, 30.0, 120.0)


@given(st.floats(10, 120))
def test_between_template_lengths_logarithms_are_interpolated_in_log_d(seconds):
    rank_model = some_rank_model(template_lengths=D, replicates=3)
    point = at_template(rank_model, seconds, ADDITIVE).at(10.0)
    for name in ("alpha", "beta"):
        rows = getattr(rank_model, name)[:, 2]
        expected = [np.exp(np.interp(np.log(seconds), np.log(D), np.log(row))) for row in rows]
        assert_allclose(getattr(point, name)[0], expected, rtol=1e-9)
    rows = rank_model.weights[:, 2, :, 0]
    expected = [np.exp(np.interp(np.log(seconds), np.log(D), np.log(row))) for row in rows]
    assert_allclose(point.weights[:, 0], expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("seconds", "column"), [(5.0, 0), (10.0, 0), (30.0, 1), (120.0, 2), (900, 2)]
)
def test_at_and_outside_the_template_lengths_the_nearest_holds(seconds, column):
    rank_model = some_rank_model(template_lengths=D)
    point = at_template(rank_model, seconds, ADDITIVE).at(10.0)
    assert_array_equal(point.alpha[0], rank_model.alpha[:, 2, column])
    assert_array_equal(point.floor, rank_model.floor[:, 2, column])


def test_cells_that_were_not_reached_are_left_out():
    rank_model = some_rank_model(template_lengths=D)
    for values in (rank_model.alpha, rank_model.beta, rank_model.floor, rank_model.weights):
        values[:, 3, 1:] = np.nan  # 60 s only against the shortest template
        values[:, 1, 1] = np.nan  # a hole
        values[:, 0] = np.nan  # no test that short at all
    made = at_template(rank_model, 60.0, ADDITIVE)
    assert made.lengths.tolist() == [2.0, 10.0, 60.0]
    assert_array_equal(made.at(60.0).alpha[0], rank_model.alpha[:, 3, 0])
    w = np.log(60 / 10) / np.log(120 / 10)
    hole = np.exp(
        (1 - w) * np.log(rank_model.alpha[:, 1, 0]) + w * np.log(rank_model.alpha[:, 1, 2])
    )
    assert_allclose(made.at(2.0).alpha[0], hole, rtol=1e-12)
    for seconds in (0.0, 1.0, 2.0, 4.0, 30.0, 90.0):
        point = made.at(seconds)
        assert np.isfinite(point.expected_bits(50, slice(None))).all()
        assert np.isfinite(point.weights).all()
        assert np.isfinite(point.floor).all()


def test_beside_a_degenerate_template_length_the_nearest_holds():
    rank_model = some_rank_model(template_lengths=D, replicates=3)
    rank_model.alpha[:2, 2, 1], rank_model.beta[:2, 2, 1], rank_model.binomial[:2, 2, 1] = (
        0.0,
        1.0,
        True,
    )
    for seconds, column in ((15.0, 0), (20.0, 1), (55.0, 1), (70.0, 2)):
        point = at_template(rank_model, seconds, ADDITIVE).at(10.0)
        assert_array_equal(point.alpha[0, :2], rank_model.alpha[:2, 2, column])
        assert_array_equal(point.binomial[0, :2], [column == 1] * 2)
        between = sorted(
            [rank_model.alpha[2, 2, 1], rank_model.alpha[2, 2, 0 if seconds < 30 else 2]]
        )
        assert between[0] < point.alpha[0, 2] < between[1]
        assert not point.binomial[0, 2:].any()
        assert np.isfinite(point.weights).all()


def test_more_of_either_discloses_more():
    rank_model = some_rank_model(template_lengths=D)
    bits = [
        [
            at_template(rank_model, d, ADDITIVE).at(t).expected_bits(50, slice(0, 1))[0]
            for t in LENGTHS
        ]
        for d in (10.0, 20.0, 60.0, 120.0)
    ]
    assert (np.diff(bits, axis=0) > 0).all()
    assert (np.diff(bits, axis=1) > 0).all()


def test_asking_again_gives_the_same_point():
    rank_model = at_d()
    assert isinstance(rank_model, LengthModel)
    first = rank_model.at(3.0)
    assert rank_model.at(3.0) is first
    rank_model.at(4.0)
    assert_array_equal(rank_model.at(3.0).alpha, first.alpha)
