from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from monitor.maths.identification import beta_mass, mean_bits, probit_mass
from monitor.maths.rank_models import mean_disclosure_bits


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


@settings(deadline=None, max_examples=25)
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
        np.testing.assert_allclose(mean_bits(nothing, people), 0.0, atol=1e-6)
        sure = mean_bits(beta_mass(np.array([[-16.0, 10.0]])), people)[0]
        assert sure == pytest.approx(np.log2(people), abs=1e-3)
