from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from monitor.errors import CalibrationError, UsageError
from monitor.maths.rank_models import LOSSES, RankFit, fit, fit_many, log_pmf
from monitor.maths.ranks import kl_bits, rank1_match_bits, rank_statistics


@pytest.fixture(scope="module")
def optima(golden):
    """The losses' optima by regime, and the histograms that they are of."""
    fits, reference = golden.json("betabinom")["fits"], golden.json("reference")
    return fits, {name: np.array(reference[name]["srd"]["hist"], float) for name in fits}


@pytest.mark.parametrize("regime", ["mid", "weak", "random"])
@pytest.mark.parametrize("loss", LOSSES)
def test_golden_optima(optima, regime, loss):
    expected, histogram = optima[0][regime][loss], optima[1][regime]
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
def test_golden_plain_has_no_finite_optimum(optima, loss):
    rank_model = fit(optima[1]["plain"], loss)
    assert rank_model.binomial
    assert rank_model.notes == ("under-dispersed",)
    assert (rank_model.alpha, rank_model.beta) == pytest.approx((0.002 / 99, 1 - 0.002 / 99))
    assert rank_model.mean_disclosure_bits(100) == pytest.approx(6.623, abs=1e-3)
    assert np.isfinite(rank_model.value)


@pytest.mark.parametrize("loss", LOSSES)
def test_always_rank_one(loss):
    rank_model = fit(np.array([30.0, *[0.0] * 9]), loss)
    assert rank_model == RankFit(0.0, 1.0, True, loss, 0.0, ("perfect",))
    assert rank_model.mean_disclosure_bits(64) == pytest.approx(6)


def test_notes():
    assert fit(np.array([3.0, 1, 0, 1, 0, 0])).notes == ("sparse",)
    thirds = np.full(6, 1 / 3) * 3 * (1 - 1e-15)  # as many trials as ranks, but for rounding
    assert thirds.sum() < 6
    assert "sparse" not in fit(thirds).notes
    assert fit(np.array([1.0, 2, 3, 4, 8, 12])).notes == ("reversed",)
    assert fit(np.full(6, 4.0)).notes == ()
    assert fit(np.full(6, 1 / 6)).notes == ()
    assert "under-dispersed" in fit(np.array([0.0, 0, 9, 9, 0, 0])).notes
    both_ends = fit(np.array([9.0, 0, 0, 0, 0, 6]))
    assert both_ends.notes == ("at the bound",)
    assert_allclose(np.exp(both_ends.log_pmf(6)), [0.6, 0, 0, 0, 0, 0.4], atol=1e-7)


def test_constrained_likelihood_without_its_constraint():
    unseen = fit(np.array([0.0, 5, 4, 3, 0, 7, 2]), "CLL")
    assert unseen.loss == "LL"
    assert "LL instead of CLL" in unseen.notes
    few = fit(np.array([1.0, 2, 0, 0, 0, 1, 0, 0]), "CLL")
    assert few.loss == "LL"
    assert few.notes == ("sparse", "LL instead of CLL")
    assert fit(np.array([9.0, 5, 4, 3, 0, 7, 2]), "CLL").loss == "CLL"


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
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


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_finds_a_rank_model_that_the_histogram_follows_exactly(loss):
    rank_model = fit(np.exp(log_pmf(0.8, 3.0, 60)), loss)
    assert (rank_model.alpha, rank_model.beta) == pytest.approx((0.8, 3.0), rel=1e-3)
    assert rank_model.notes == ()


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


def test_refusals():
    with pytest.raises(CalibrationError, match="no trials"):
        fit(np.zeros(5))
    with pytest.raises(CalibrationError, match="no trials"):
        fit_many(np.array([[1.0, 2.0], [0.0, 0.0]]))
    for count in (-1.0, math.nan, math.inf):
        with pytest.raises(UsageError, match="negative or infinite"):
            fit(np.array([1.0, count]))
    for histogram in (np.ones(1), np.ones((2, 3))):
        with pytest.raises(UsageError, match="at least two ranks"):
            fit(histogram)
    with pytest.raises(UsageError, match="no loss"):
        fit(np.ones(5), "L2")
