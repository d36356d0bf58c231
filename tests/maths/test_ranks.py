from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from monitor.errors import UsageError
from monitor.maths.ranks import TIE_RULES, rank_bounds, rank_histogram, rank_histograms


@st.composite
def trials(draw):
    speakers = draw(st.integers(1, 30))
    better = draw(st.lists(st.integers(0, speakers - 1), min_size=1, max_size=40))
    tied = [draw(st.integers(1, speakers - b)) for b in better]
    return np.array(better), np.array(tied), speakers


@pytest.mark.parametrize("regime", ["plain", "mid", "weak", "random"])
def test_golden_histograms(golden, regime):
    expected = golden.json("reference")[regime]["srd"]["hist"]
    better, tied = rank_bounds(golden.scores(f"{regime}_eval").astype(float), golden.target)
    assert (tied == 1).all()
    for rule in TIE_RULES:
        assert_array_equal(rank_histogram(better, tied, 100, rule), expected)


def test_golden_mid_rank_of_tied_scores(golden):
    expected = golden.json("reference")["tied"]["mid"]["mean_rank"]
    better, tied = rank_bounds(golden.scores("tied_eval").astype(float), golden.target)
    mid = rank_histogram(better, tied, 100, "mid")
    assert mid @ np.arange(1, 101) / 1000 == pytest.approx(expected, abs=1e-12)


def test_ties_count_the_target_itself():
    better, tied = rank_bounds(np.full((2, 5), 0.5), np.array([0, 4]))
    assert better.tolist() == [0, 0]
    assert tied.tolist() == [5, 5]


def test_one_row_and_infinite_scores():
    better, tied = rank_bounds(np.array([np.inf, 0.0, -np.inf]), 2)
    assert (int(better), int(tied)) == (2, 1)


def test_each_rule_by_hand():
    better, tied = np.array([1]), np.array([4])
    expected: dict[str, list[float]] = {
        "spread": [0, 0.25, 0.25, 0.25, 0.25, 0],
        "optimistic": [0, 1, 0, 0, 0, 0],
        "pessimistic": [0, 0, 0, 0, 1, 0],
        "mid": [0, 0, 0.5, 0.5, 0, 0],
    }
    for rule in TIE_RULES:
        assert_allclose(rank_histogram(better, tied, 6, rule), expected[rule])
    assert_allclose(rank_histogram(better, np.array([3]), 6, "mid"), [0, 0, 1, 0, 0, 0])


@pytest.mark.slow
@settings(deadline=None)
@given(trials(), st.sampled_from(TIE_RULES))
def test_mass_is_conserved_and_never_negative(case, rule):
    better, tied, speakers = case
    histogram = rank_histogram(better, tied, speakers, rule)
    assert histogram.shape == (speakers,)
    assert (histogram >= 0).all()
    assert histogram.sum() == pytest.approx(better.size)


@pytest.mark.slow
@settings(deadline=None)
@given(trials())
def test_spread_equals_the_loop_and_leaves_empty_ranks_empty(case):
    better, tied, speakers = case
    expected = np.zeros(speakers)
    for first, share in zip(better, tied, strict=True):
        expected[first : first + share] += 1 / share
    histogram = rank_histogram(better, tied, speakers)
    assert_allclose(histogram, expected, atol=1e-12)
    assert_array_equal(histogram > 0, expected > 0)


@pytest.mark.slow
@settings(deadline=None)
@given(trials(), st.integers(0, 2**32 - 1))
def test_many_weightings_equal_the_loop(case, seed):
    better, tied, speakers = case
    weights = np.random.default_rng(seed).integers(0, 4, (5, better.size)).astype(float)
    many = rank_histograms(better, tied, speakers, weights)
    for row, weight in zip(many, weights, strict=True):
        assert_allclose(row, rank_histogram(better, tied, speakers, "spread", weight), atol=1e-12)


@pytest.mark.slow
@settings(deadline=None)
@given(trials())
def test_monotone_scores_keep_their_ranks(case):
    better, _, speakers = case
    rows = np.random.default_rng(int(better.sum())).integers(0, 5, (better.size, speakers))
    same = rank_bounds(rows.astype(float), better)
    moved = rank_bounds(np.exp(rows / 3.0), better)
    assert_array_equal(same[0], moved[0])
    assert_array_equal(same[1], moved[1])


def test_refusals():
    with pytest.raises(UsageError, match="not a number"):
        rank_bounds(np.array([0.1, np.nan]), 0)
    for target in (2, -1):
        with pytest.raises(UsageError, match="outside"):
            rank_bounds(np.array([0.1, 0.2]), target)
    with pytest.raises(UsageError, match="whole numbers"):
        rank_bounds(np.array([0.1, 0.2]), np.array(0.0))
    with pytest.raises(UsageError, match="tie rule"):
        rank_histogram(np.array([0]), np.array([1]), 2, "random")
    with pytest.raises(UsageError, match="do not fit"):
        rank_histogram(np.array([1]), np.array([2]), 2)
    with pytest.raises(UsageError, match="one length"):
        rank_histogram(np.array([0, 1]), np.array([1]), 2)
    with pytest.raises(UsageError, match="do not match"):
        rank_histograms(np.array([0]), np.array([1]), 2, np.ones((3, 2)))
    with pytest.raises(UsageError, match="one weight"):
        rank_histogram(np.array([0]), np.array([1]), 2, weights=np.ones((2, 1)))
    for weight in (-1.0, np.nan, np.inf):
        with pytest.raises(UsageError, match="weight"):
            rank_histogram(np.array([0]), np.array([1]), 2, weights=np.array([weight]))
