import math
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from monitor.errors import CalibrationError, UsageError
from monitor.maths import rank_models as quadrature
from monitor.maths.rank_models import (
    LOSSES,
    RankFit,
    RankLoss,
    binomial_log_pmf,
    binomial_log_pmf_at,
    binomial_mean_disclosure_bits,
    fit,
    fit_many,
    log_pmf,
    log_pmf_at,
    mean_disclosure_bits,
)
from monitor.maths.ranks import kl_bits, rank1_match_bits, rank_statistics

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
@given(logs, logs, st.integers(2, 400))
def test_a_rank_model_sums_to_one_has_the_right_mean_and_can_be_turned_around(
    log_alpha, log_beta, speakers
):
    a, b = math.exp(log_alpha), math.exp(log_beta)
    p = np.exp(log_pmf(a, b, speakers))
    assert p.sum() == pytest.approx(1, abs=1e-9)
    mean = (speakers - 1) * a / (a + b)
    assert p @ np.arange(speakers) == pytest.approx(mean, rel=1e-7, abs=1e-12)
    assert_allclose(p, np.exp(log_pmf(b, a, speakers))[::-1], atol=1e-9)


def assert_mean_disclosure_is_that_of_every_rank(alpha, beta, speakers):
    log = log_pmf(alpha, beta, speakers)
    full = np.log2(speakers) + (np.exp(log) * log).sum(axis=-1) / math.log(2)
    assert_allclose(mean_disclosure_bits(alpha, beta, speakers), full, atol=1e-6)


@pytest.mark.parametrize("speakers", [50, 2048, 2049])
def test_mean_disclosure_of_many_rank_models_at_once(speakers):
    alpha, beta = np.exp(np.random.default_rng(2).uniform(-6, 6, (2, 300)))
    assert_mean_disclosure_is_that_of_every_rank(alpha, beta, speakers)


@settings(max_examples=30)
@given(st.lists(st.tuples(logs, logs), min_size=1, max_size=5))
def test_mean_disclosure_through_nodes(pairs):
    alpha, beta = np.exp(np.array(pairs)).T
    assert_mean_disclosure_is_that_of_every_rank(alpha, beta, 11696)


def test_no_evidence_is_exactly_no_disclosure_and_parameters_broadcast():
    assert_allclose(log_pmf(1.0, 1.0, 500), -math.log(500), atol=1e-12)
    assert mean_disclosure_bits(1.0, 1.0, 500) == pytest.approx(0, abs=1e-12)
    assert mean_disclosure_bits(1.0, 1.0, 11696) == pytest.approx(0, abs=1e-7)
    alpha, beta = np.array([[0.5], [2.0]]), np.array([1.0, 3.0, 9.0])
    assert mean_disclosure_bits(alpha, beta, 7).shape == (2, 3)
    assert log_pmf_at(alpha, beta, 7, 2).shape == (2, 3)
    assert_allclose(log_pmf(alpha, beta, 7)[1, 2], log_pmf(2.0, 9.0, 7))


def test_binomials_are_the_limit_and_may_be_certain():
    assert_allclose(log_pmf(3e11, 7e11, 40), binomial_log_pmf(0.3, 40), atol=1e-8)
    for p, place in ((0.0, 0), (1.0, 9)):
        log = binomial_log_pmf(p, 10)
        assert log[place] == 0
        assert np.isneginf(np.delete(log, place)).all()
        assert binomial_log_pmf_at(p, 10, place + 1) == 0
        assert binomial_mean_disclosure_bits(p, 10) == pytest.approx(math.log2(10))
    assert binomial_log_pmf(np.array([0.1, 0.9]), 5).shape == (2, 5)
    assert binomial_mean_disclosure_bits(np.array([0.0, 0.5, 1.0]), 8).shape == (3,)


@given(st.integers(1, 40_000))
def test_weights_of_a_plain_sum_are_those_that_are_gathered_rank_by_rank(count):
    at, weights = quadrature._from_below(count, quadrature.EXACT, quadrature.ORDER)
    assert_array_equal(at, quadrature.nodes(count))
    assert_allclose(weights, quadrature.gather(np.ones(count)), rtol=1e-9)


@pytest.mark.parametrize("regime", ["mid", "weak", "random"])
@pytest.mark.parametrize("loss", LOSSES)
def test_golden_optima(golden, regime, loss):
    expected = golden.json("betabinom")["fits"][regime][loss]
    histogram = np.array(golden.json("reference")[regime]["srd"]["hist"], float)
    rank_model = fit(histogram, loss)
    assert rank_model.loss == loss
    assert not rank_model.binomial
    assert rank_model.value == pytest.approx(expected["loss"], rel=1e-6)
    tolerance = 1e-2 if loss in ("WMS", "RWMS") else 1e-3
    assert rank_model.alpha == pytest.approx(expected["alpha"], rel=tolerance)
    assert rank_model.beta == pytest.approx(expected["beta"], rel=tolerance)
    gamma = np.exp(rank_model.log_pmf(100))
    found = rank_statistics(gamma)
    assert found.mean_bits == pytest.approx(expected["MeanD"], abs=1e-4)
    assert rank_model.mean_disclosure_bits(100) == pytest.approx(found.mean_bits, abs=1e-9)
    assert found.max_bits == pytest.approx(expected["MaxD"], abs=1e-3)
    assert found.std_bits == pytest.approx(expected["StDD"], abs=1e-4)
    assert found.spread == pytest.approx(expected["Spread"])
    assert kl_bits(histogram, gamma) == pytest.approx(expected["KL_bits"], abs=1e-4)
    match = rank1_match_bits(histogram, gamma)
    assert match == pytest.approx(expected["rank1_match_bits"], abs=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_golden_plain_has_no_finite_optimum(golden, loss):
    always = fit(np.array([30.0, *[0.0] * 9]), loss)
    assert always == RankFit(0.0, 1.0, True, loss, 0.0, ("perfect",))
    assert always.mean_disclosure_bits(64) == pytest.approx(6)
    rank_model = fit(np.array(golden.json("reference")["plain"]["srd"]["hist"], float), loss)
    assert rank_model.binomial
    assert rank_model.notes == ("under-dispersed",)
    assert (rank_model.alpha, rank_model.beta) == pytest.approx((0.002 / 99, 1 - 0.002 / 99))
    assert rank_model.mean_disclosure_bits(100) == pytest.approx(6.623, abs=1e-3)
    assert np.isfinite(rank_model.value)


@pytest.mark.parametrize(
    ("histogram", "loss", "notes"),
    [
        ([3.0, 1, 0, 1, 0, 0], "LL", ("sparse",)),
        ([1.0, 2, 3, 4, 8, 12], "LL", ("reversed",)),
        ([4.0] * 6, "LL", ()),
        ([1 / 6] * 6, "LL", ()),
        ([(1 - 1e-15)] * 6, "LL", ()),  # as many trials as ranks, but for rounding
        ([9.0, 0, 0, 0, 0, 6], "LL", ("at the bound",)),
        # nobody at rank 1, or too few
        ([0.0, 5, 4, 3, 0, 7, 2], "CLL", ("reversed", "LL instead of CLL")),
        ([1.0, 2, 0, 0, 0, 1, 0, 0], "CLL", ("sparse", "LL instead of CLL")),
    ],
)
def test_notes(histogram, loss, notes):
    found = fit(np.array(histogram), loss)
    assert found.notes == notes
    assert found.loss == "LL"
    assert fit(np.array([9.0, 5, 4, 3, 0, 7, 2]), "CLL").loss == "CLL"
    assert "under-dispersed" in fit(np.array([0.0, 0, 9, 9, 0, 0])).notes
    both_ends = fit(np.array([9.0, 0, 0, 0, 0, 6]))
    assert_allclose(np.exp(both_ends.log_pmf(6)), [0.6, 0, 0, 0, 0, 0.4], atol=1e-7)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_no_rank_model_is_likelier(seed):
    """An independent grid finds nothing better, and the slope of scipy's likelihood is flat."""
    from scipy.stats import betabinom

    random = np.random.default_rng(seed)
    speakers = int(random.integers(3, 40))
    alpha, beta = np.exp(random.uniform(-3, 4, 2))
    p = np.exp(log_pmf(alpha, beta, speakers))
    histogram = random.multinomial(int(random.integers(5, 300)), p).astype(float)
    rank_model = fit(histogram)
    shares, j = histogram / histogram.sum(), np.arange(speakers)
    grid = np.exp(np.linspace(-7, 9, 33))
    alpha, beta = (side[..., None] for side in np.meshgrid(grid, grid))
    others = -np.where(shares > 0, shares * log_pmf(alpha[..., 0], beta[..., 0], speakers), 0)
    assert rank_model.value <= others.sum(axis=-1).min() + 1e-9
    if not rank_model.binomial and rank_model.alpha + rank_model.beta < 1e4:
        own = -shares @ betabinom.logpmf(j, speakers - 1, rank_model.alpha, rank_model.beta)
        assert own == pytest.approx(rank_model.value, abs=1e-8)


def test_many_equals_one():
    random = np.random.default_rng(4)
    rank_models = np.exp(random.uniform(-2, 3, (60, 2)))
    histograms = np.stack(
        [random.multinomial(80, np.exp(log_pmf(x[0], x[1], 30))) for x in rank_models]
    )
    histograms[0] = [80, *[0] * 29]
    histograms[1] = [*[0] * 14, 40, 40, *[0] * 14]
    alpha, beta, binomial = fit_many(histograms)
    assert binomial[:2].all()
    for k, histogram in enumerate(histograms):
        rank_model = fit(histogram)
        assert (alpha[k], beta[k]) == pytest.approx((rank_model.alpha, rank_model.beta), rel=1e-5)
        assert binomial[k] == rank_model.binomial


@pytest.mark.parametrize("speakers", [30, 3000])
def test_recovers_a_known_rank_model(speakers):
    """Hundreds of samples from one rank model: the estimates centre on it."""
    random = np.random.default_rng(11)
    truth = (0.6, 2.5)
    samples = random.multinomial(600, np.exp(log_pmf(truth[0], truth[1], speakers)), 300)
    alpha, beta, binomial = fit_many(samples)
    assert not binomial.any()
    for found, true in ((alpha, truth[0]), (beta, truth[1])):
        error = np.log(found / true)
        assert abs(np.median(error)) < 0.02
        assert error.std() < 0.2


def test_parameters_carry_over_to_a_larger_population():
    """Impostor chances drawn from Beta(0.5, 4); calibrated among 40, asked about 1000."""
    random = np.random.default_rng(7)
    chance = random.beta(0.5, 4.0, 40_000)
    small, large = (np.bincount(random.binomial(n - 1, chance), minlength=n) for n in (40, 1000))
    rank_model = fit(small.astype(float))
    measured = rank_statistics(large).miller_madow_bits
    assert rank_model.mean_disclosure_bits(1000) == pytest.approx(measured, abs=0.03)


def test_extreme_histograms_never_give_nan():
    random = np.random.default_rng(3)
    for speakers in (2, 3, 50, 5000):
        rows = random.multinomial(20, random.dirichlet(np.full(speakers, 0.05)), 40).astype(float)
        rows[0] = 0
        rows[0, -1] = 1
        rows[1] = 0
        rows[1, [0, -1]] = 1e-300, 1e-299
        alpha, beta, binomial = fit_many(rows)
        assert np.isfinite(alpha).all()
        assert np.isfinite(beta).all()
        assert (alpha[~binomial] > 0).all()
        assert (beta[~binomial] > 0).all()
        assert ((alpha[binomial] >= 0) & (alpha[binomial] <= 1)).all()


@pytest.mark.parametrize("loss", LOSSES[1:])
def test_slope_and_hessian_are_those_of_the_loss(loss):
    shares = 0.7 * np.exp(log_pmf(0.5, 2.0, 30)) + 0.3 * np.exp(log_pmf(2.0, 0.5, 30))
    objective, point, step = RankLoss(shares, loss, 0.1), np.array([[0.3, -0.2]]), 1e-5
    _, slope, hessian = objective(point)
    sides = [(objective(point + step * d), objective(point - step * d)) for d in np.eye(2)]
    expected = [float(up[0][0] - down[0][0]) / (2 * step) for up, down in sides]
    assert_allclose(slope[0], expected, rtol=1e-5)
    bends = np.array([(up[1][0] - down[1][0]) / (2 * step) for up, down in sides])
    assert_allclose(hessian[0], bends, rtol=1e-5, atol=1e-6 * np.abs(hessian).max())


@pytest.mark.parametrize(
    ("error", "words", "call"),
    [
        *((UsageError, "positive", partial(each, alpha, 1.0, 5))
          for each in (log_pmf, mean_disclosure_bits) for alpha in (0.0, -1.0, np.nan, np.inf)),
        (UsageError, "at least 2", partial(log_pmf, 1.0, 1.0, 1)),
        *((UsageError, "whole number from 1 to 5", partial(log_pmf_at, 1.0, 1.0, 5, rank))
          for rank in (0, 6, 1.0)),
        *((UsageError, "use 0 to 1", partial(binomial_log_pmf, p, 5))
          for p in (-0.1, 1.1, np.nan)),
        (CalibrationError, "no trials", partial(fit, np.zeros(5))),
        (CalibrationError, "no trials", partial(fit_many, np.array([[1.0, 2.0], [0.0, 0.0]]))),
        *((UsageError, "negative or infinite", partial(fit, np.array([1.0, count])))
          for count in (-1.0, math.nan, math.inf)),
        *((UsageError, "at least two ranks", partial(fit, each))
          for each in (np.ones(1), np.ones((2, 3)))),
        (UsageError, "unknown loss", partial(fit, np.ones(5), "L2")),
    ],
)  # fmt: skip
def test_refusals(error, words, call):
    with pytest.raises(error, match=words):
        call()
