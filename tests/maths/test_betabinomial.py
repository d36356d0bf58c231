from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from monitor.errors import UsageError
from monitor.maths import rank_models as quadrature
from monitor.maths.rank_models import (
    binomial_log_pmf,
    binomial_log_pmf_at,
    binomial_mean_disclosure_bits,
    log_pmf,
    log_pmf_at,
    mean_disclosure_bits,
)

logs = st.floats(math.log(1e-6), math.log(1e12))


def exact(alpha: Fraction, beta: Fraction, speakers: int) -> list[float]:
    """The corrected equation (3) in rational numbers."""
    n = speakers - 1

    def rising(x: Fraction, m: int) -> Fraction:
        return math.prod((x + i for i in range(m)), start=Fraction(1))

    return [
        float(math.comb(n, j) * rising(alpha, j) * rising(beta, n - j) / rising(alpha + beta, n))
        for j in range(speakers)
    ]


@pytest.mark.parametrize(
    ("alpha", "beta"),
    [
        (Fraction(1, 3), Fraction(2)),
        (Fraction(1), Fraction(1)),
        (Fraction(1, 10**6), Fraction(10**6)),
        (Fraction(10**12), Fraction(1, 10**6)),
        (Fraction(10**12), Fraction(3 * 10**12)),
        (Fraction(250), Fraction(7, 2)),
    ],
)
@pytest.mark.parametrize("speakers", [2, 3, 17, 50])
def test_against_rational_arithmetic(alpha, beta, speakers):
    expected = exact(alpha, beta, speakers)
    a, b = float(alpha), float(beta)
    # The float nearest to 1e-6 is not 1/10**6: relative errors of 1e-16 in it are not ours.
    assert_allclose(np.exp(log_pmf(a, b, speakers)), expected, rtol=1e-11)
    at = log_pmf_at(a, b, speakers, np.arange(1, speakers + 1))
    assert_allclose(np.exp(at), expected, rtol=1e-10)


@pytest.mark.parametrize("speakers", [2, 50, 11696])
def test_extreme_parameters(speakers):
    for a, b in product(10.0 ** np.arange(-6, 13, 3), repeat=2):
        log = log_pmf(a, b, speakers)
        at = log_pmf_at(a, b, speakers, np.arange(1, speakers + 1))
        assert np.isfinite(log).all()
        assert np.isfinite(at).all()
        assert np.exp(log).sum() == pytest.approx(1, abs=1e-12)
        assert np.exp(at).sum() == pytest.approx(1, abs=1e-9)
        heavy = log > -40
        assert_allclose(at[heavy], log[heavy], atol=2e-9)


@pytest.mark.slow
@settings(deadline=None)
@given(logs, logs, st.integers(2, 400))
def test_a_rank_model_sums_to_one_and_has_the_right_mean(log_alpha, log_beta, speakers):
    a, b = math.exp(log_alpha), math.exp(log_beta)
    p = np.exp(log_pmf(a, b, speakers))
    assert p.sum() == pytest.approx(1, abs=1e-9)
    mean = (speakers - 1) * a / (a + b)
    assert p @ np.arange(speakers) == pytest.approx(mean, rel=1e-7, abs=1e-12)


@pytest.mark.slow
@settings(deadline=None)
@given(logs, logs, st.integers(2, 200))
def test_turning_the_ranks_around_swaps_the_parameters(log_alpha, log_beta, speakers):
    a, b = math.exp(log_alpha), math.exp(log_beta)
    forward, back = np.exp(log_pmf(a, b, speakers)), np.exp(log_pmf(b, a, speakers))
    assert_allclose(forward, back[::-1], atol=1e-9)


def test_no_evidence_is_exactly_no_disclosure():
    assert_allclose(log_pmf(1.0, 1.0, 500), -math.log(500), atol=1e-12)
    assert mean_disclosure_bits(1.0, 1.0, 500) == pytest.approx(0, abs=1e-12)
    assert mean_disclosure_bits(1.0, 1.0, 11696) == pytest.approx(0, abs=1e-7)


def test_broadcasting():
    alpha, beta = np.array([[0.5], [2.0]]), np.array([1.0, 3.0, 9.0])
    assert log_pmf(alpha, beta, 7).shape == (2, 3, 7)
    assert mean_disclosure_bits(alpha, beta, 7).shape == (2, 3)
    assert log_pmf_at(alpha, beta, 7, 2).shape == (2, 3)
    assert_allclose(log_pmf(alpha, beta, 7)[1, 2], log_pmf(2.0, 9.0, 7))
    assert binomial_log_pmf(np.array([0.1, 0.9]), 5).shape == (2, 5)
    assert binomial_mean_disclosure_bits(np.array([0.0, 0.5, 1.0]), 8).shape == (3,)


def test_the_binomial_is_the_limit():
    assert_allclose(log_pmf(3e11, 7e11, 40), binomial_log_pmf(0.3, 40), atol=1e-8)


def test_a_certain_rank():
    for p, place in ((0.0, 0), (1.0, 9)):
        log = binomial_log_pmf(p, 10)
        assert log[place] == 0
        assert np.isneginf(np.delete(log, place)).all()
        assert binomial_log_pmf_at(p, 10, place + 1) == 0
        assert binomial_mean_disclosure_bits(p, 10) == pytest.approx(math.log2(10))


@settings(deadline=None)
@given(st.floats(0, 1), st.integers(2, 300))
def test_the_binomial_sums_to_one(p, speakers):
    assert np.exp(binomial_log_pmf(p, speakers)).sum() == pytest.approx(1, abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(logs, logs), min_size=1, max_size=5))
def test_mean_disclosure_through_nodes_is_that_of_every_rank(pairs):
    speakers = 11696
    alpha, beta = np.exp(np.array(pairs)).T
    log = log_pmf(alpha, beta, speakers)
    full = np.log2(speakers) + (np.exp(log) * log).sum(axis=-1) / math.log(2)
    assert_allclose(mean_disclosure_bits(alpha, beta, speakers), full, atol=1e-6)


def test_mean_disclosure_of_many_rank_models_at_once():
    random = np.random.default_rng(2)
    alpha, beta = np.exp(random.uniform(-6, 6, (2, 300)))
    for speakers in (50, 2048, 2049):
        log = log_pmf(alpha, beta, speakers)
        full = np.log2(speakers) + (np.exp(log) * log).sum(axis=-1) / math.log(2)
        assert_allclose(mean_disclosure_bits(alpha, beta, speakers), full, atol=1e-6)


@settings(deadline=None)
@given(st.integers(1, 40_000))
def test_weights_of_a_plain_sum_are_those_that_are_gathered_rank_by_rank(count):
    at, weights = quadrature._from_below(count, quadrature.EXACT, quadrature.ORDER)
    assert_array_equal(at, quadrature.nodes(count))
    assert_allclose(weights, quadrature.gather(np.ones(count)), rtol=1e-9)


@pytest.mark.slow
@settings(deadline=None)
@given(st.floats(1e-9, 1e9), st.integers(1, 20000))
def test_thinned_sums(offset, count):
    i = np.arange(count)
    at, weights = quadrature.nodes(count), quadrature.gather(np.linspace(1, 0, count) ** 2)
    assert at.shape == weights.shape
    for f in (np.log, np.reciprocal, lambda x: x**-2.0):
        full = np.linspace(1, 0, count) ** 2 @ f(offset + i)
        scale = np.abs(np.linspace(1, 0, count) ** 2 @ np.abs(f(offset + i)))
        assert abs(weights @ f(offset + at) - full) <= 1e-10 * scale


def test_refusals():
    for alpha in (0.0, -1.0, np.nan, np.inf):
        for call in (log_pmf, mean_disclosure_bits):
            with pytest.raises(UsageError, match="positive"):
                call(alpha, 1.0, 5)
    with pytest.raises(UsageError, match="at least 2"):
        log_pmf(1.0, 1.0, 1)
    for rank in (0, 6, 1.0):
        with pytest.raises(UsageError, match="whole number from 1 to 5"):
            log_pmf_at(1.0, 1.0, 5, rank)
    for p in (-0.1, 1.1, np.nan):
        with pytest.raises(UsageError, match="probability"):
            binomial_log_pmf(p, 5)
