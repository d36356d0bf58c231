from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.errors import UsageError
from monitor.maths.rank_models import log_pmf, mean_disclosure_bits
from monitor.maths.ranks import (
    RankStatistics,
    ceiling_bits,
    kl_bits,
    null_bias_bits,
    rank1_match_bits,
    rank_bounds,
    rank_histogram,
    rank_statistics,
)


@pytest.fixture(scope="module")
def reference(golden):
    return golden.json("reference")


@pytest.fixture(scope="module")
def facts(golden):
    return golden.json("math")


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
def test_golden_statistics(reference, regime):
    golden = reference[regime]["srd"]
    agrees(rank_statistics(np.array(golden["hist"])), golden)
    proportions = np.array(golden["hist"]) / 1000
    agrees(rank_statistics(proportions, trials=1000), golden)
    bare = rank_statistics(proportions)
    assert bare.trials is None
    assert bare.miller_madow_bits is None
    assert bare.mean_bits == pytest.approx(golden["MeanD"])


def test_golden_ties(golden, reference):
    better, tied = rank_bounds(golden.scores("tied_eval").astype(float), golden.target)
    for rule in ("optimistic", "pessimistic"):
        agrees(rank_statistics(rank_histogram(better, tied, 100, rule)), reference["tied"][rule])
    spread = rank_statistics(rank_histogram(better, tied, 100))
    assert spread.mean_bits == pytest.approx(2.1970946015, abs=1e-10)
    assert spread.miller_madow_bits is None


@pytest.mark.parametrize(
    ("feature", "speakers"),
    [("F0", 11696), ("Phone", 11696), ("Identity", 1251), ("Linguistic", 11696)],
)
def test_table_two_of_the_paper(facts, feature, speakers):
    """IdR and MeanD of Table II determine (alpha, beta); the model then predicts the other rows."""
    from scipy.optimize import root

    golden = facts["srd_table2_model_refit"][feature]["A"]
    wanted = np.array([golden["IdR"] / 100, golden["MeanD"]])

    def misfit(logs):
        a, b = np.exp(logs)
        gamma1 = np.exp(log_pmf(a, b, speakers)[0])
        bits = float(mean_disclosure_bits(a, b, speakers))
        return np.array([np.log(gamma1 / wanted[0]), bits - wanted[1]])

    solved = root(misfit, np.log([golden["alpha"], golden["beta"]]), tol=1e-10)
    a, b = np.exp(solved.x)
    assert np.abs(solved.fun).max() < 1e-8
    assert a == pytest.approx(golden["alpha"], abs=5.1e-5)
    assert b == pytest.approx(golden["beta"], abs=5.1e-4)
    found = rank_statistics(np.exp(log_pmf(a, b, speakers)))
    assert found.std_bits == pytest.approx(golden["StDD"], abs=2e-6)
    assert found.max_bits == pytest.approx(golden["MaxD"], abs=1e-6)
    assert 100 * found.spread == pytest.approx(golden["Spread"], abs=1e-9)
    assert found.max_rank == 1
    assert found.rank1_bits == pytest.approx(found.max_bits)


def test_the_sign_of_disclosure(facts):
    for golden in facts["srd_maxd"].values():
        p = np.full(golden["N"], (1 - golden["p1"]) / (golden["N"] - 1))
        p[0] = golden["p1"]
        assert rank_statistics(p).max_bits == pytest.approx(golden["log2_N_p1"])


def test_null_bias(facts):
    for name, expected in facts["miller_madow_null"].items():
        speakers, trials = (int(part[1:]) for part in name.split("_"))
        assert null_bias_bits(speakers, trials) == pytest.approx(expected)


def test_null_bias_is_what_no_evidence_reads():
    random = np.random.default_rng(1)
    histograms = random.multinomial(1000, np.full(50, 0.02), 400)
    found = [rank_statistics(histogram) for histogram in histograms]
    assert np.mean([f.mean_bits for f in found]) == pytest.approx(
        null_bias_bits(50, 1000), rel=0.03
    )
    corrected = np.mean([f.miller_madow_bits for f in found])
    assert corrected < 0.15 * null_bias_bits(50, 1000)


def test_empty_rank_one_and_a_uniform_rank_model():
    found = rank_statistics(np.array([0, 3, 1]))
    assert found.rank1_bits is None
    assert (found.max_rank, found.identification_rate) == (2, 0.0)
    flat = rank_statistics(np.exp(log_pmf(1.0, 1.0, 777)))
    assert flat.spread == 0
    assert flat.mean_bits == pytest.approx(0, abs=1e-12)
    chance = rank_statistics(np.array([2, 2, 2]))
    assert (chance.spread, chance.miller_madow_bits) == (0, 0)


@settings(deadline=None)
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


def test_divergences():
    p = np.array([6.0, 2.0, 0.0])
    assert kl_bits(p, p / 8) == 0
    assert kl_bits(p, np.array([1.0, 0.0, 0.0])) == math.inf
    assert rank1_match_bits(p, np.array([0.375, 0.5, 0.125])) == 1
    assert rank1_match_bits(np.array([0.0, 1.0]), np.array([0.5, 0.5])) == math.inf
    assert rank1_match_bits(np.array([0.0, 1.0]), np.array([0.0, 1.0])) == 0


def test_refusals():
    for histogram in (np.zeros(3), np.array([1.0, -1.0]), np.array([1.0, np.nan])):
        with pytest.raises(UsageError, match="rank histogram"):
            rank_statistics(histogram)
    with pytest.raises(UsageError, match="two ranks"):
        rank_statistics(np.ones(1))
    with pytest.raises(UsageError, match="trials"):
        rank_statistics(np.ones(3), trials=0)
    with pytest.raises(UsageError, match="same N"):
        kl_bits(np.ones(3), np.ones(4))
    with pytest.raises(UsageError, match="ceiling"):
        ceiling_bits(0)
    with pytest.raises(UsageError, match="null bias"):
        null_bias_bits(5, 0)
