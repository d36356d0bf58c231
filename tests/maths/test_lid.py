from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from monitor.errors import UsageError
from monitor.maths.posterior import (
    local_information_bits,
    log_likelihood_ratios,
    normalise_rows,
    normalised_ceiling_bits,
)


@pytest.fixture(scope="module")
def example(golden):
    return golden.json("math")["lid_worked_example"]


@pytest.mark.parametrize("ddof", [0, 1])
def test_golden_worked_example(example, ddof):
    golden, row = example[f"ddof{ddof}"], np.array(example["scores"])
    assert_allclose(normalise_rows(row, ddof), golden["z"], atol=1e-12)
    steps = {"weight": example["w"], "bias": example["b"], "prior_odds": example["prior_odds"]}
    ratios = log_likelihood_ratios(row, ddof=ddof, **steps)
    assert_allclose(ratios, golden["llr"], atol=1e-12)
    posterior = [
        2.0 ** float(local_information_bits(row, k, ddof=ddof, **steps)) / 6 for k in range(6)
    ]
    assert_allclose(posterior, golden["posterior"], atol=1e-12)
    bits = local_information_bits(row, example["target"], ddof=ddof, **steps)
    assert bits == pytest.approx(golden["LID_bits"], abs=1e-12)
    assert round(float(bits), 1) == example["paper_rounded"]["LID"]


@pytest.mark.parametrize("regime", ["plain", "mid", "weak", "random"])
def test_golden_matrices(golden, regime):
    lid = golden.json("reference")[regime]["lid"]
    scores = golden.scores(f"{regime}_eval").astype(float)
    for name, ddof in (("repo_ddof1_balanced_C1", 1), ("paper_ddof0_balanced_C1", 0)):
        expected = lid[name]
        bits = local_information_bits(
            scores, golden.target, expected["w"], expected["b"], ddof=ddof
        )
        assert_allclose(bits[:5], expected["LID_first5"], atol=1e-5)
        assert bits.mean() == pytest.approx(expected["ALID"], abs=1e-5)
        assert bits.max() == pytest.approx(expected["LIDmax"], abs=1e-5)
        ceiling = normalised_ceiling_bits(100, expected["w"], ddof)
        assert ceiling == pytest.approx(expected["ceiling"], abs=1e-8)
        assert bits.max() <= ceiling


@pytest.mark.parametrize("ddof", [0, 1])
def test_a_row_that_says_nothing(ddof):
    rows = np.array([[0.1] * 7, [0.3] * 7, [0.0] * 7])
    assert not normalise_rows(rows, ddof).any()
    assert not local_information_bits(rows, 2, 4.0, -1.0, 0.1, ddof).any()


@settings(deadline=None)
@given(
    st.lists(st.floats(-50, 50), min_size=2, max_size=30),
    st.floats(-8, 8),
    st.sampled_from([0, 1]),
)
def test_bias_and_prior_cancel_and_the_ceiling_holds(row, weight, ddof):
    scores = np.array(row)
    bits = [float(local_information_bits(scores, k, weight, 0.0)) for k in range(scores.size)]
    moved = local_information_bits(scores, 0, weight, -7.0, prior_odds=0.01)
    assert moved == pytest.approx(bits[0], abs=1e-9)
    assert max(bits) <= normalised_ceiling_bits(scores.size, weight) + 1e-9
    assert np.mean(2.0 ** np.array(bits)) == pytest.approx(1)
    one = float(local_information_bits(scores, 0, weight, 0.0, ddof=ddof))
    assert one <= normalised_ceiling_bits(scores.size, weight, ddof) + 1e-9


def test_the_ceiling_is_reached_by_one_high_score():
    row = np.array([1.0, *[0.0] * 9])
    for ddof in (0, 1):
        reached = local_information_bits(row, 0, 0.7, 0.0, ddof=ddof)
        assert reached == pytest.approx(normalised_ceiling_bits(10, 0.7, ddof), abs=1e-12)
    assert normalised_ceiling_bits(10, 100.0) == pytest.approx(math.log2(10))


def test_refusals():
    row = np.array([0.1, 0.2])
    with pytest.raises(UsageError, match="ddof"):
        normalise_rows(row, 2)
    with pytest.raises(UsageError, match="two candidates"):
        normalise_rows(np.ones((3, 1)), 0)
    with pytest.raises(UsageError, match="not finite"):
        normalise_rows(np.array([0.1, np.inf]), 0)
    with pytest.raises(UsageError, match="prior odds"):
        log_likelihood_ratios(row, 1.0, 0.0, prior_odds=0.0)
    for target in (2, -1):
        with pytest.raises(UsageError, match="outside"):
            local_information_bits(row, target, 1.0, 0.0)
    with pytest.raises(UsageError, match="at least 2"):
        normalised_ceiling_bits(1, 1.0)
