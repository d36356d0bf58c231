import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from monitor.errors import UsageError
from monitor.maths.rank_models import log_pmf, mean_disclosure_bits
from monitor.maths.ranks import (
    TIE_RULES,
    RankStatistics,
    all_rank_bounds,
    ceiling_bits,
    kl_bits,
    null_bias_bits,
    rank1_match_bits,
    rank_bounds,
    rank_histogram,
    rank_histograms,
    rank_statistics,
)


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


def test_bounds_by_hand():
    better, tied = rank_bounds(np.full((2, 5), 0.5), np.array([0, 4]))
    assert (better.tolist(), tied.tolist()) == ([0, 0], [5, 5])  # ties count the target itself
    better, tied = rank_bounds(np.array([np.inf, 0.0, -np.inf]), 2)
    assert (int(better), int(tied)) == (2, 1)


@pytest.mark.parametrize("values", [3, 50, 10**6])
def test_every_column_as_if_it_were_the_target(values):
    scores = np.random.default_rng(values).integers(0, values, (40, 17)).astype(np.float32)
    better, tied = all_rank_bounds(scores)
    for column in range(17):
        one = rank_bounds(scores, column)
        assert np.array_equal(better[:, column], one[0])
        assert np.array_equal(tied[:, column], one[1])


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
@given(trials(), st.integers(0, 2**32 - 1))
def test_histograms_hold_every_trial_once(case, seed):
    better, tied, speakers = case
    for rule in TIE_RULES:
        histogram = rank_histogram(better, tied, speakers, rule)
        assert histogram.shape == (speakers,)
        assert (histogram >= 0).all()
        assert histogram.sum() == pytest.approx(better.size)
    expected = np.zeros(speakers)
    for first, share in zip(better, tied, strict=True):
        expected[first : first + share] += 1 / share
    histogram = rank_histogram(better, tied, speakers)
    assert_allclose(histogram, expected, atol=1e-12)
    assert_array_equal(histogram > 0, expected > 0)
    weights = np.random.default_rng(seed).integers(0, 4, (5, better.size)).astype(float)
    many = rank_histograms(better, tied, speakers, weights)
    for row, weight in zip(many, weights, strict=True):
        assert_allclose(row, rank_histogram(better, tied, speakers, "spread", weight), atol=1e-12)


def agrees(found: RankStatistics, golden: dict[str, Any]) -> None:
    assert found.trials == golden["n"]
    assert found.mean_bits == pytest.approx(golden["MeanD"], abs=1e-12)
    assert found.miller_madow_bits == pytest.approx(golden["MeanD_MillerMadow"], abs=1e-12)
    assert found.identification_rate == golden["IdR"]
    assert found.std_bits == pytest.approx(golden["StDD"], abs=1e-12)
    assert found.max_bits == pytest.approx(golden["MaxD"], abs=1e-12)
    assert found.max_rank == golden["argmaxD_rank"]
    assert found.spread == golden["Spread"]
    assert found.ceiling_bits == pytest.approx(math.log2(100))


@pytest.mark.parametrize("regime", ["plain", "mid", "weak", "random"])
def test_golden_statistics(golden, regime):
    expected = golden.json("reference")[regime]["srd"]
    agrees(rank_statistics(np.array(expected["hist"])), expected)
    proportions = np.array(expected["hist"]) / 1000
    agrees(rank_statistics(proportions, trials=1000), expected)
    bare = rank_statistics(proportions)
    assert (bare.trials, bare.miller_madow_bits) == (None, None)
    assert bare.mean_bits == pytest.approx(expected["MeanD"])


def test_golden_ties(golden):
    expected = golden.json("reference")["tied"]
    better, tied = rank_bounds(golden.scores("tied_eval").astype(float), golden.target)
    mid = rank_histogram(better, tied, 100, "mid")
    assert mid @ np.arange(1, 101) / 1000 == pytest.approx(expected["mid"]["mean_rank"], abs=1e-12)
    for rule in ("optimistic", "pessimistic"):
        agrees(rank_statistics(rank_histogram(better, tied, 100, rule)), expected[rule])
    spread = rank_statistics(rank_histogram(better, tied, 100))
    assert spread.mean_bits == pytest.approx(2.1970946015, abs=1e-10)
    assert spread.miller_madow_bits is None


@pytest.mark.parametrize(
    ("feature", "speakers"),
    [("F0", 11696), ("Phone", 11696), ("Identity", 1251), ("Linguistic", 11696)],
)
def test_table_two_of_the_paper(golden, feature, speakers):
    """IdR and MeanD of Table II determine (alpha, beta); the model then predicts the other rows."""
    from scipy.optimize import root

    table = golden.json("math")["srd_table2_model_refit"][feature]["A"]
    wanted = np.array([table["IdR"] / 100, table["MeanD"]])

    def misfit(logs):
        a, b = np.exp(logs)
        gamma1 = np.exp(log_pmf(a, b, speakers)[0])
        bits = float(mean_disclosure_bits(a, b, speakers))
        return np.array([np.log(gamma1 / wanted[0]), bits - wanted[1]])

    solved = root(misfit, np.log([table["alpha"], table["beta"]]), tol=1e-10)
    a, b = np.exp(solved.x)
    assert np.abs(solved.fun).max() < 1e-8
    assert a == pytest.approx(table["alpha"], abs=5.1e-5)
    assert b == pytest.approx(table["beta"], abs=5.1e-4)
    found = rank_statistics(np.exp(log_pmf(a, b, speakers)))
    assert found.std_bits == pytest.approx(table["StDD"], abs=2e-6)
    assert found.max_bits == pytest.approx(table["MaxD"], abs=1e-6)
    assert 100 * found.spread == pytest.approx(table["Spread"], abs=1e-9)
    assert found.max_rank == 1
    assert found.rank1_bits == pytest.approx(found.max_bits)


def test_the_sign_of_disclosure_and_the_null_bias(golden):
    for each in golden.json("math")["srd_maxd"].values():
        p = np.full(each["N"], (1 - each["p1"]) / (each["N"] - 1))
        p[0] = each["p1"]
        assert rank_statistics(p).max_bits == pytest.approx(each["log2_N_p1"])
    for name, expected in golden.json("math")["miller_madow_null"].items():
        speakers, trials = (int(part[1:]) for part in name.split("_"))
        assert null_bias_bits(speakers, trials) == pytest.approx(expected)


@given(st.lists(st.integers(0, 30), min_size=2, max_size=60).filter(any))
def test_bounds_of_the_statistics(counts):
    found = rank_statistics(np.array(counts))
    assert 0 <= found.mean_bits <= found.ceiling_bits + 1e-12
    assert found.mean_bits <= found.max_bits + 1e-12 <= found.ceiling_bits + 1e-11
    assert found.miller_madow_bits is not None
    assert 0 <= found.miller_madow_bits <= found.mean_bits
    assert 0 <= found.spread < 1
    assert found.std_bits >= 0
    uniform = np.full(len(counts), 1 / len(counts))
    assert kl_bits(np.array(counts), uniform) == pytest.approx(found.mean_bits, abs=1e-9)


def test_statistics_and_divergences_by_hand():
    found = rank_statistics(np.array([0, 3, 1]))
    assert (found.rank1_bits, found.max_rank, found.identification_rate) == (None, 2, 0.0)
    flat = rank_statistics(np.exp(log_pmf(1.0, 1.0, 777)))
    assert flat.spread == 0
    assert flat.mean_bits == pytest.approx(0, abs=1e-12)
    chance = rank_statistics(np.array([2, 2, 2]))
    assert (chance.spread, chance.miller_madow_bits) == (0, 0)
    p = np.array([6.0, 2.0, 0.0])
    assert kl_bits(p, p / 8) == 0
    assert kl_bits(p, np.array([1.0, 0.0, 0.0])) == math.inf
    assert rank1_match_bits(p, np.array([0.375, 0.5, 0.125])) == 1
    assert rank1_match_bits(np.array([0.0, 1.0]), np.array([0.5, 0.5])) == math.inf
    assert rank1_match_bits(np.array([0.0, 1.0]), np.array([0.0, 1.0])) == 0


@pytest.mark.parametrize(
    ("call", "arguments", "words"),
    [
        (rank_bounds, ([0.1, np.nan], 0), "not a number"),
        (rank_bounds, ([0.1, 0.2], 2), "invalid target"),
        (rank_bounds, ([0.1, 0.2], -1), "invalid target"),
        (rank_bounds, ([0.1, 0.2], 0.0), "whole numbers"),
        (rank_histogram, ([0], [1], 2, "random"), "tie rule"),
        (rank_histogram, ([1], [2], 2), "do not fit"),
        (rank_histogram, ([0, 1], [1], 2), "one number for each"),
        (rank_histograms, ([0], [1], 2, np.ones((3, 2))), "do not match"),
        (rank_histogram, ([0], [1], 2, "spread", np.ones((2, 1))), "one weight"),
        *((rank_histogram, ([0], [1], 2, "spread", [weight]), "weight")
          for weight in (-1.0, np.nan, np.inf)),
        (all_rank_bounds, ([0.0, 0.0, 0.0],), "matrix of scores"),
        (all_rank_bounds, ([[0.0, np.nan]],), "matrix of scores"),
        *((rank_statistics, (histogram,), "rank histogram")
          for histogram in ([0.0, 0.0, 0.0], [1.0, -1.0], [1.0, np.nan])),
        (rank_statistics, ([1.0],), "two ranks"),
        (rank_statistics, ([1.0, 1.0], 0), "trial"),
        (kl_bits, ([1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]), "same N"),
        (ceiling_bits, (0,), "number of speakers"),
        (null_bias_bits, (5, 0), "null bias"),
    ],
)  # fmt: skip
def test_refusals(call, arguments, words):
    given = [np.array(each) if isinstance(each, list) else each for each in arguments]
    with pytest.raises(UsageError, match=words):
        call(*given)
