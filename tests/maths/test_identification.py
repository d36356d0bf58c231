import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import integrate, stats

from monitor.errors import UsageError
from monitor.maths.identification import (
    FORMS,
    beta_mass,
    fit_rates,
    mean_bits,
    pitman_yor,
    probit_mass,
)
from monitor.maths.rank_models import log_pmf, mean_disclosure_bits

SIZES = np.array([1.0, 2, 3, 10, 50, 1e4, 1e6, 1e10])
NAMES = sorted(FORMS)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60)
@given(data=st.data())
def test_rates_fall_with_the_crowd_and_stay_shares(name, data):
    form = FORMS[name]
    inside = st.tuples(*map(st.floats, form.low, form.high))
    rates = form.rate(np.array([data.draw(inside)]), SIZES)[0]
    assert ((rates >= 0) & (rates <= 1 + 1e-9)).all()
    assert (np.diff(rates) <= 1e-8).all()  # log-gammas of some 1e6 leave 1e-9
    if name != "probit":  # a miss stays one
        assert rates[0] == pytest.approx(1.0, abs=1e-6)


def test_beta_binomial_is_the_rank_model_at_rank_1():
    points = np.log([[0.6, 1.7], [0.006, 6.7], [3.0, 0.4]])
    rates = FORMS["beta_binomial"].rate(points, np.array([2.0, 50, 11_696]))
    for (a, b), row in zip(np.exp(points), rates, strict=True):
        rank_model = [float(np.exp(log_pmf(a, b, n)[0])) for n in (2, 50, 11_696)]
        assert_allclose(row, rank_model, rtol=1e-9)


@pytest.mark.parametrize("strength", [0.0, 1.0, 3.0, 6.0])
def test_probit_is_the_chance_to_be_the_highest_of_n_normal_scores(strength):
    for n in (2, 50, 10**6, 10**10):
        exact, _ = integrate.quad(
            lambda z, n=n: stats.norm.pdf(z - strength) * np.exp((n - 1) * stats.norm.logcdf(z)),
            strength - 9, strength + 9, limit=400, points=[strength, stats.norm.isf(1 / n)],
        )  # fmt: skip
        found = FORMS["probit"].rate(np.array([[0.0, strength]]), np.array([float(n)]))[0, 0]
        assert found == pytest.approx(0.5 * exact, rel=1e-5)


def test_pitman_yor_counts_the_distinct_values_of_its_process():
    """By the recurrence: the next value is new with probability (t + d K) / (t + n)."""
    for d, t in [(0.3, 5.0), (0.9, 0.05), (0.01, 400.0), (0.6, 0.001), (3e-4, 1e6)]:
        values, expected = 1.0, [1.0]
        for n in range(1, 3000):
            values += (t + d * values) / (t + n)
            expected.append(values / (n + 1))
        point = np.array([[np.log(d / (1 - d)), np.log(t)]])
        found = pitman_yor(point, np.arange(1.0, 3001.0))[0]
        assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_no_evidence_is_one_of_n_and_rates_at_the_edge_stay_there(name):
    form, sizes = FORMS[name], np.array([2.0, 5, 10, 20, 50])
    nothing = fit_rates(form, sizes, 1 / sizes)
    assert_allclose(form.rate(nothing[None], np.array([1e4, 1e6]))[0], [1e-4, 1e-6], rtol=0.01)
    assert np.isfinite(fit_rates(form, sizes, 0 * sizes)).all()
    always = fit_rates(form, sizes, sizes / sizes)
    assert np.isfinite(always).all()
    assert form.rate(always[None], np.array([1e6]))[0, 0] > 0.99


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25)
@given(data=st.data())
def test_a_fit_finds_what_the_rates_were_made_of(name, data):
    form = FORMS[name]
    low, high = np.array(form.low), np.array(form.high)
    place = data.draw(st.tuples(st.floats(0.35, 0.6), st.floats(0.4, 0.6)))
    point = low + np.array(place) * (high - low)
    sizes = np.array([2.0, 4, 8, 16, 32, 64])
    rates = form.rate(point[None], sizes)[0]
    point = fit_rates(form, sizes, rates)
    assert_allclose(form.rate(point[None], sizes)[0], rates, atol=2e-4)
    many = fit_rates(form, sizes, np.stack([1 / sizes, rates]))
    assert_allclose(many[1], point, atol=1e-9)
    again = fit_rates(form, sizes, rates[None], point)  # from where one is
    assert_allclose(form.rate(again, sizes)[0], form.rate(point[None], sizes)[0], atol=1e-5)


@pytest.mark.parametrize(
    ("sizes", "rates", "said"),
    [
        ([5.0], [0.5], "two crowd sizes"),
        ([1.0, 5.0], [1.0, 0.5], "at least 2"),
        ([2.0, 5.0], [0.5], "for each size"),
        ([2.0, 5.0], [0.5, 1.2], "from 0 to 1"),
        ([2.0, 5.0], [0.5, np.nan], "from 0 to 1"),
    ],
)
def test_what_cannot_be_fitted_is_refused(sizes, rates, said):
    with pytest.raises(UsageError, match=said):
        fit_rates(FORMS["logit"], sizes, rates)


@pytest.mark.parametrize("people", [2, 10, 50, 128, 513, 11_696, 200_000])
@pytest.mark.parametrize(
    ("alpha", "beta"), [(0.62, 1.74), (0.22, 0.86), (0.006, 6.7), (1, 1), (3, 40), (0.001, 50)]
)
def test_meand_of_a_beta_is_that_of_the_rank_model(alpha, beta, people):
    found = mean_bits(beta_mass(np.log([[alpha, beta]])), people)[0]
    assert found == pytest.approx(float(mean_disclosure_bits(alpha, beta, people)), abs=5e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("seen", "strength"), [(0.9, 2.0), (0.5, 4.0), (1 - 1e-9, 1.0)])
@pytest.mark.parametrize("people", [50, 1000])
def test_meand_of_normal_scores_is_that_of_their_ranks(seen, strength, people):
    own = np.arange(strength - 9, strength + 9, 0.01)
    weight = stats.norm.pdf(own - strength) * 0.01
    ranks = np.array([weight @ stats.binom.pmf(j, people - 1, stats.norm.sf(own))
                      for j in range(people)])  # fmt: skip
    ranks = seen * ranks + (1 - seen) / people
    expected = np.log2(people) + float(ranks @ np.log2(ranks))
    mass = probit_mass(np.array([[np.log(seen / (1 - seen)), strength]]))
    assert mass.sum() == pytest.approx(1.0, abs=1e-6)
    assert mean_bits(mass, people)[0] == pytest.approx(expected, abs=1e-3)


@settings(max_examples=25)
@pytest.mark.slow
@given(a=st.floats(-6, 2), b=st.floats(-1, 4), w=st.floats(-3, 8), d=st.floats(0, 8))
def test_it_never_falls_with_the_crowd_nor_gains_more_than_the_crowd_grows(a, b, w, d):
    mass = np.concatenate([beta_mass(np.array([[a, b]])), probit_mass(np.array([[w, d]]))])
    sizes = (2, 10, 50, 400, 600, 10_000, 10**6, 10**10)
    bits = np.array([mean_bits(mass, people) for people in sizes])
    grown = np.diff(np.log2(sizes))[:, None]
    assert (np.diff(bits, axis=0) >= -5e-3).all()
    assert (np.diff(bits, axis=0) <= grown + 5e-3).all()


def test_no_evidence_is_no_bits_and_certainty_all():
    nothing = np.concatenate([beta_mass(np.zeros((1, 2))), probit_mass(np.array([[0.0, 0.0]]))])
    for people in (2, 50, 10**6):
        assert_allclose(mean_bits(nothing, people), 0.0, atol=1e-6)
        sure = mean_bits(beta_mass(np.array([[-16.0, 10.0]])), people)[0]
        assert sure == pytest.approx(np.log2(people), abs=1e-3)
