"""Between the lengths of a calibration: rank models, evidence, who is enrolled, spread and bias."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import betabinom, binom

from monitor.maths.rank_models import mean_disclosure_bits
from monitor.population.interpolation import (
    GOOD_AREA,
    EnrolledProbability,
    EvidenceSpread,
    at_template,
    same_session_bias_bits,
)
from monitor.population.population import Population
from tests.population.rank_models import LENGTHS, evidence_model, some_rank_model

ADDITIVE = np.array([True])
D = (10.0, 30.0, 120.0)
EVERY = slice(None)


def at_d(rank_model=None, seconds=10.0):
    return at_template(rank_model or some_rank_model(), seconds, ADDITIVE)


def degenerate(rows=EVERY, cells=(2,), p=0.03, **other):
    """A rank model with binomial cells at some lengths."""
    rank_model = some_rank_model(**other)
    for cell in cells:
        rank_model.alpha[rows, cell], rank_model.beta[rows, cell] = p, 1 - p
        rank_model.binomial[rows, cell] = True
    return rank_model


def slow_pmf(rank_model, row, index, speakers):
    """A cell's pmf, from scipy."""
    ranks = np.arange(speakers)
    a, b = rank_model.alpha[row, index, 0], rank_model.beta[row, index, 0]
    if rank_model.binomial[row, index, 0]:
        return binom.pmf(ranks, speakers - 1, a)
    return betabinom.pmf(ranks, speakers - 1, a, b)


def bits_of(pmf):
    seen = pmf[pmf > 0]
    return np.log2(pmf.size) + (seen * np.log2(seen)).sum()


def between(at, lengths, rows):
    """Rows of values, interpolated as logarithms in the logarithm of the length."""
    return np.exp([np.interp(np.log(at), np.log(lengths), np.log(row)) for row in rows])


# ------------------------------------------------------------------------------------- rank models


@given(st.sampled_from(LENGTHS) | st.floats(LENGTHS[0], LENGTHS[-1]))
def test_logarithms_are_interpolated_in_log_t(seconds):
    rank_model = some_rank_model()
    point = at_d(rank_model).evaluate_at(seconds)
    assert (point.fade == 1.0).all()
    assert not point.binomial.any()
    for found, values in (
        (point.alpha[0], rank_model.alpha[:, :, 0]),
        (point.beta[0], rank_model.beta[:, :, 0]),
        (point.weights[:, 0], rank_model.weights[:, :, 0, 0]),
        (point.floor, rank_model.floor[:, :, 0]),
    ):
        if seconds in LENGTHS:  # exactly what is stored
            assert point.mixture.shape[0] == 1
            assert_array_equal(found, values[:, LENGTHS.index(seconds)])
        assert_allclose(found, between(seconds, LENGTHS, values), rtol=1e-9)


@given(st.floats(10, 120))
def test_logarithms_are_interpolated_in_log_d(seconds):
    rank_model = some_rank_model(template_lengths=D, replicates=3)
    point = at_d(rank_model, seconds).evaluate_at(10.0)
    for name in ("alpha", "beta"):
        expected = between(seconds, D, getattr(rank_model, name)[:, 2])
        assert_allclose(getattr(point, name)[0], expected, rtol=1e-9)
    expected = between(seconds, D, rank_model.weights[:, 2, :, 0])
    assert_allclose(point.weights[:, 0], expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("seconds", "column"), [(5.0, 0), (10.0, 0), (30.0, 1), (120.0, 2), (900, 2)]
)
def test_at_and_outside_the_template_lengths_the_nearest_holds(seconds, column):
    rank_model = some_rank_model(template_lengths=D)
    point = at_d(rank_model, seconds).evaluate_at(10.0)
    assert_array_equal(point.alpha[0], rank_model.alpha[:, 2, column])
    assert_array_equal(point.floor, rank_model.floor[:, 2, column])


@pytest.mark.parametrize("speakers", [2, 49, 300])
def test_below_the_grid_everything_fades_to_nothing(speakers):
    rank_model = at_d()
    steps = [0.0, 0.001, 0.1, 0.25, 0.4, 0.4999999, 0.5]
    points = [rank_model.evaluate_at(seconds) for seconds in steps]
    assert [point.fade[0] for point in points] == pytest.approx([t / 0.5 for t in steps])
    expected = np.stack([point.expected_bits(speakers, EVERY) for point in points])
    rank = np.stack([point.rank_bits(speakers, 0, 1) for point in points])
    for bits in (expected, rank):
        assert (bits[0] == 0.0).all()
        assert (np.diff(bits, axis=0) > 0).all()
        assert_allclose(bits[-2], bits[-1], atol=1e-5)
    assert_allclose(points[-1].uniform_share, points[-1].floor, atol=1e-15)
    assert (points[0].uniform_share == 1.0).all()
    # half of what the rank model says, half of nothing
    whole, half = (points[k].pmf(speakers, EVERY, floor=False) for k in (-1, 3))
    assert_allclose(half, 0.5 * whole + 0.5 / speakers, rtol=1e-12)


def test_beyond_the_grid_the_last_rank_model_holds():
    made = at_template(some_rank_model(("f0", "x")), 10.0, np.array([True, False]))
    last, point = made.evaluate_at(60.0), made.evaluate_at(240.0)
    assert (point.fade == 1.0).all()
    for name in ("alpha", "beta", "floor"):
        assert_array_equal(getattr(point, name), getattr(last, name))
    # a score that grows with the evidence is weighed as if it had been heard for the last length
    assert_allclose(point.weights[:, 0], last.weights[:, 0] / 4)
    assert_array_equal(point.weights[:, 1], last.weights[:, 1])
    assert_array_equal(point.expected_bits(50, EVERY), last.expected_bits(50, EVERY))
    single = at_d(some_rank_model(lengths=(5.0,)))
    assert [single.evaluate_at(t).fade[0] for t in (2.5, 5.0)] == [0.5, 1.0]
    assert_allclose(single.evaluate_at(10.0).weights, single.evaluate_at(5.0).weights / 2)


@pytest.mark.parametrize("p", [0.0, 0.03, 1.0])
@pytest.mark.parametrize("speakers", [2, 14, 50])
@pytest.mark.parametrize("seconds", [2.0, 3.0, 9.999, 10.0, 25.0, 60.0])
def test_beside_a_degenerate_cell_pmfs_are_mixed(p, speakers, seconds):
    rank_model = degenerate(p=p, replicates=3)
    point = at_d(rank_model).evaluate_at(seconds)
    pmf = point.pmf(speakers, EVERY, floor=False)
    with_floor = point.pmf(speakers, EVERY, floor=True)
    bits = point.expected_bits(speakers, EVERY)
    place = np.interp(np.log(seconds), np.log(LENGTHS), range(len(LENGTHS)))
    left, w = int(place), place % 1
    for row in range(4):
        expected = (1 - w) * slow_pmf(rank_model, row, left, speakers)
        expected += w * slow_pmf(rank_model, row, min(left + 1, 3), speakers)
        assert_allclose(pmf[row], expected, atol=1e-9)
        assert bits[row] == pytest.approx(bits_of(expected), abs=1e-8)
        e = point.floor[row]
        assert_allclose(with_floor[row], (1 - e) * expected + e / speakers, atol=1e-9)
        for better in (0, speakers // 2, speakers - 1):
            own = point.rank_bits(speakers, better, 1)[row]
            assert own == pytest.approx(np.log2(speakers * with_floor[row, better]), abs=1e-8)


@pytest.mark.parametrize("speakers", [2, 14, 49, 3000])
def test_expected_bits_are_mean_disclosure_at_the_live_n(speakers):
    rank_model = some_rank_model()
    assert rank_model.candidates == 14
    point = at_d(rank_model).evaluate_at(2.0)
    bits = point.expected_bits(speakers, EVERY)
    alpha, beta = rank_model.alpha[:, 1, 0], rank_model.beta[:, 1, 0]
    assert_allclose(bits, mean_disclosure_bits(alpha, beta, speakers))
    slow = [bits_of(slow_pmf(rank_model, row, 1, speakers)) for row in (0, 7)]
    assert_allclose(bits[[0, 7]], slow, atol=2e-6)
    assert_allclose(point.expected_bits(speakers, slice(0, 1)), bits[:1], rtol=1e-10)


@given(
    st.integers(2, 60), st.sampled_from([0.1, 0.5, 4.0, 80.0]), st.sampled_from([None, 0.03, 0.0]),
    st.data(),
)  # fmt: skip
def test_ranks_share_one_probability_and_tied_ones_its_mean(speakers, seconds, p, data):
    better = data.draw(st.integers(0, speakers - 1))
    tied = data.draw(st.integers(1, speakers - better))
    made = some_rank_model(replicates=3) if p is None else degenerate(p=p, replicates=3)
    point = at_d(made).evaluate_at(seconds)
    pmf = point.pmf(speakers, EVERY, floor=True)
    assert_allclose(pmf.sum(axis=1), 1.0)
    assert_allclose(point.pmf(speakers, EVERY, floor=False).sum(axis=1), 1.0)
    expected = pmf[:, better : better + tied].mean(axis=1)
    found = point.rank_probability(speakers, better, tied, EVERY)
    assert_allclose(found, expected, rtol=1e-9)
    one, alone = (point.rank_probability(speakers, better, 1, of) for of in (EVERY, slice(0, 1)))
    assert_array_equal(one[:1], alone)
    bits = point.rank_bits(speakers, better, tied)
    assert_allclose(bits, np.log2(speakers * expected), atol=1e-9)


@pytest.mark.parametrize("speakers", [2, 3, 49, 98, 1000])
def test_no_evidence_is_exactly_zero_rank_bits_and_the_floor_bounds_them(speakers):
    for made in (at_d(), at_d(degenerate(p=0.0))):
        for seconds in (0.0, 0.2, 5.0, 100.0):
            assert (made.evaluate_at(seconds).rank_bits(speakers, 0, speakers) == 0.0).all()
        # and nothing heard at all, whatever the rank
        assert (made.evaluate_at(0.0).rank_bits(speakers, 0, 1) == 0.0).all()
    point = made.evaluate_at(10.0)
    assert_allclose(point.rank_bits(speakers, speakers - 1, 1), np.log2(point.floor))


def test_cells_that_were_not_reached_are_left_out():
    rank_model = some_rank_model(template_lengths=D)
    for values in (rank_model.alpha, rank_model.beta, rank_model.floor, rank_model.weights):
        values[:, 3, 1:] = np.nan  # 60 s only against the shortest template
        values[:, 1, 1] = np.nan  # a hole
        values[:, 0] = np.nan  # no test that short at all
    made = at_d(rank_model, 60.0)
    assert made.lengths.tolist() == [2.0, 10.0, 60.0]
    assert_array_equal(made.evaluate_at(60.0).alpha[0], rank_model.alpha[:, 3, 0])
    hole = between(60.0, (10.0, 120.0), rank_model.alpha[:, 1, ::2])
    assert_allclose(made.evaluate_at(2.0).alpha[0], hole, rtol=1e-12)
    for seconds in (0.0, 1.0, 2.0, 4.0, 30.0, 90.0):
        point = made.evaluate_at(seconds)
        for found in (point.expected_bits(50, EVERY), point.weights, point.floor):
            assert np.isfinite(found).all()


def test_beside_a_degenerate_template_length_the_nearest_holds():
    made = some_rank_model(template_lengths=D, replicates=3)
    made.alpha[:2, 2, 1], made.beta[:2, 2, 1], made.binomial[:2, 2, 1] = 0.0, 1.0, True
    for seconds, column in ((15.0, 0), (20.0, 1), (55.0, 1), (70.0, 2)):
        point = at_d(made, seconds).evaluate_at(10.0)
        assert_array_equal(point.alpha[0, :2], made.alpha[:2, 2, column])
        assert_array_equal(point.binomial[0, :2], [column == 1] * 2)
        low, high = sorted([made.alpha[2, 2, 1], made.alpha[2, 2, 0 if seconds < 30 else 2]])
        assert low < point.alpha[0, 2] < high
        assert not point.binomial[0, 2:].any()
        assert np.isfinite(point.weights).all()


# ---------------------------------------------------------------------------------------- evidence


@pytest.fixture
def evidence():
    return evidence_model(some_rank_model(("f0", "phones"), template_lengths=(10.0, 60.0)))


def test_evidence_at_the_grid_between_before_and_beyond(evidence):
    at = evidence.at_template(10.0)
    point = at.evaluate_at(evidence.lengths)
    assert_allclose(point.intercept.T, evidence.intercept[:, :, 0])
    assert_allclose(np.moveaxis(point.slopes, 1, 0), evidence.slopes[:, :, 0])
    assert_allclose(point.support, evidence.support[:, 0])
    middle = np.sqrt(evidence.lengths[1] * evidence.lengths[2])
    between = at.evaluate_at(np.array([middle])).intercept[0]
    assert_allclose(between, evidence.intercept[:, 1:3, 0].mean(axis=1))
    half = evidence.at_template(float(np.sqrt(600.0))).evaluate_at(evidence.lengths)
    assert_allclose(half.support, np.maximum.accumulate(evidence.support, axis=1).mean(axis=1))
    # before the grid it fades, beyond it stands
    first, last = evidence.lengths[[0, -1]]
    early = evidence.at_template(200.0).evaluate_at(np.array([0.0, first / 4, last, 50 * last]))
    assert_array_equal(early.intercept[0], 0)
    assert_array_equal(early.slopes[0], 0)
    assert_allclose(early.intercept[1], evidence.intercept[:, 0, 1] / 4)
    assert_allclose(early.intercept[3], early.intercept[2])
    assert_allclose(early.support[3], evidence.support[-1, 1])


@given(
    cells=st.lists(st.lists(st.one_of(st.floats(0, 20), st.none()), min_size=2, max_size=2),
                   min_size=4, max_size=4),
    template=st.floats(1, 300),
)  # fmt: skip
def test_what_shorter_speech_supports_longer_speech_supports(cells, template):
    support = np.array(cells, dtype=float)
    assume(np.isfinite(support).any())
    made = evidence_model(some_rank_model(("f0", "phones"), template_lengths=(10.0, 60.0)))
    hole = np.isnan(support)
    made = replace(
        made,
        support=support,
        area=np.where(hole, np.nan, made.area),
        intercept=np.where(hole, np.nan, made.intercept),
        slopes=np.where(hole[..., None], np.nan, made.slopes),
    )
    seconds = np.geomspace(0.05, 500, 300)
    point = made.at_template(template).evaluate_at(seconds)
    assert (np.diff(point.support) >= -1e-12).all()
    # what a length supports by itself holds there
    for t, length in enumerate(made.lengths):
        if not hole[t].any():
            own = made.at_template(template).evaluate_at(np.array([length])).support[0]
            assert own >= support[t].min() - 1e-9
    assert point.support[-1] <= np.nanmax(support) + 1e-9
    longer = made.at_template(2 * template).evaluate_at(seconds)
    if not hole.any():
        assert (longer.support >= point.support - 1e-9).all()


def test_cells_without_evidence_are_left_out(evidence):
    for name in ("intercept", "slopes", "support", "area"):
        values = getattr(evidence, name)
        values[(0, 0) if values.ndim == 2 else (EVERY, 0, 0)] = np.nan
    found = evidence.at_template(10.0).evaluate_at(evidence.lengths[:1]).support
    assert_allclose(found, evidence.support[0, 1])


# --------------------------------------------------------------------------------- who is enrolled


def open_set(area=1.0, **other):
    templates = (10.0, 30.0)
    rows = tuple({"T": t, "D": d, "open_set_area": area} for t in LENGTHS for d in templates)
    return some_rank_model(template_lengths=templates, **{"rows": rows, **other})


def odds(p):
    return np.log(p / (1 - p))


def test_coefficients_of_who_is_enrolled():
    values = np.zeros(open_set().open_set.shape)
    values[..., 0] = np.arange(4)[:, None]  # the bias tells which T
    values[..., 1] = 10.0 * np.arange(2)  # the slope tells which D
    made, lengths, nothing = open_set(open_set=values), np.array(LENGTHS), np.zeros((1, 1))
    short, long = (EnrolledProbability(made, template) for template in made.template_lengths)
    for d, each in enumerate((short, long)):
        found = each.evaluate_at(lengths, np.full((lengths.size, 1), 0.1))
        assert_allclose(odds(found), np.arange(lengths.size) + 1.0 * d, atol=1e-9)
    # between lengths in log T, below fading, beyond standing still
    assert_allclose(odds(short.evaluate_at(np.sqrt(lengths[:1] * lengths[1]), nothing)), [0.5])
    assert_allclose(short.evaluate_at(np.array([0.0]), nothing), [0.5])
    assert_allclose(
        short.evaluate_at(lengths[-1:] * 50, nothing), short.evaluate_at(lengths[-1:], nothing)
    )
    huge = long.evaluate_at(lengths[-1:].repeat(2), np.array([[1e9], [-1e9]]))
    assert 0 < huge[1] < 1e-9 < 1 - 1e-9 < huge[0] < 1
    values[:, 0] = np.nan  # a cell nobody reached is passed over
    found = EnrolledProbability(open_set(open_set=values), 10.0).evaluate_at(lengths[:1], nothing)
    assert np.isfinite(found).all()


@pytest.mark.parametrize(("area", "told"), [(GOOD_AREA - 0.01, False), (GOOD_AREA, True)])
def test_it_is_told_only_where_it_told_impostors_in_calibration(area, told):
    made = open_set(area)
    found = EnrolledProbability(made, 10.0)
    assert (
        np.isfinite(found.evaluate_at(made.lengths, np.zeros((made.lengths.size, 1)))).all() == told
    )
    assert_allclose(found.area(made.lengths * 1.3), area)
    silent = EnrolledProbability(open_set(rows=()), 10.0)
    assert np.isnan(silent.area(np.array([5.0]))).all()
    assert np.isnan(silent.evaluate_at(np.array([5.0]), np.zeros((1, 1)))).all()


# -------------------------------------------------------------------------------- spread and bias


def test_spread_between_lengths_and_at_the_nearest_template():
    def told(t, d, low, high):
        names = (f"{of}_twentieth" for of in ("evidence_low", "evidence_high", "others_high"))
        return {"T": t, "D": d, **dict(zip(names, (low, high, -low), strict=True))}

    rows = [told(1.0, 10.0, 1.0, 2.0), told(100.0, 10.0, 3.0, 6.0), told(10.0, 90.0, 9.0, 9.5),
            {"T": 0.3, "D": 10.0, "evidence_low_twentieth": None}]  # fmt: skip
    spread, other = (EvidenceSpread.from_rows(rows, seconds) for seconds in (20.0, 80.0))
    assert spread.evaluate_at(10.0) == pytest.approx((2.0, 4.0, -2.0))
    assert spread.evaluate_at(1.0) == pytest.approx((1.0, 2.0, -1.0))
    assert (
        spread.evaluate_at(0.0) is spread.evaluate_at(0.99) is None
    )  # nothing that short was calibrated
    assert spread.evaluate_at(1e4) == spread.evaluate_at(100.0)
    assert other.evaluate_at(10.0) == pytest.approx((9.0, 9.5, -9.0))
    # where a twentieth was cut to what calibration supports, the true range may end higher
    cut = EvidenceSpread.from_rows([{**rows[0], "support_bits": 2.0}, rows[1]], 10.0)
    assert [at.high for seconds in (1.0, 10.0, 200.0) if (at := cut.evaluate_at(seconds))] == [
        math.inf
    ] * 3
    assert EvidenceSpread.from_rows([rows[3], {"T": 2.0, "D": 10.0}], 10.0) is None
    assert EvidenceSpread.from_rows([], 10.0) is None


def test_what_people_read_whom_no_fit_saw_takes_the_place_of_the_spread():
    names = "evidence_low_twentieth", "evidence_high_twentieth", "support_bits"
    cells = [
        {"T": t, "D": 10.0, **dict(zip(names, (4.0, high, high), strict=True))}
        for t, high in ((1.0, 11.0), (10.0, 10.0))
    ]
    known = [{**cell, "usual_low": -2.0, "usual_high": usual}
             for cell, usual in zip(cells, (10.5, 11.0), strict=True)]  # fmt: skip
    spread, usual = EvidenceSpread.from_rows(cells, 10.0), EvidenceSpread.from_rows(known, 10.0)
    assert spread.evaluate_at(1.0) == (4.0, math.inf, None)
    assert usual.evaluate_at(1.0) == (-2.0, 10.5, None)
    assert usual.evaluate_at(10.0) == (-2.0, math.inf, None)  # cut to the most that is supported


@pytest.mark.parametrize("names", [("f0",), ("phones", "f0"), ("f0", "phones", "voice")])
def test_same_session_bias_is_what_the_shipped_rows_say(names):
    reference = Population.reference()
    specs = {name: reference.specs[name] for name in names}
    bits, fewer = (same_session_bias_bits(specs, count, 100.0) for count in (50, 12))
    same, cross = (
        next(r["mean_bits_model"] for r in rank_model.rows if (r["T"], r["D"]) == (10.0, 100.0))
        for rank_model in (
            reference.rank_models[names, "same"],
            reference.rank_models[names, "cross"],
        )
    )
    # at the calibration's own N the model's MeanD is in the table
    assert bits[10.0] == pytest.approx(same - cross, abs=1e-3)
    assert 0 < fewer[60.0] < 3.6
