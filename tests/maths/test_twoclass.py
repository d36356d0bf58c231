"""Known truth: Gaussian scores have a linear log ratio, whatever the design."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from monitor.maths import likelihood_ratios as twoclass
from monitor.maths.likelihood_ratios import (
    PriorCoefficients,
    ScorePairs,
    TemplateComparisons,
    cross_fit,
    fit_each,
    pair_count,
)
from monitor.maths.statistics import speaker_weights


def gaussian(speakers: int, lead: float, trials: int = 4, seed: int = 0, features: int = 1):
    """Mated scores N(lead, 1), others N(0, 1): log LR = lead z - lead^2 / 2 for one feature."""
    generator = np.random.default_rng(seed)
    tester, owner = (x.ravel() for x in np.indices((speakers, speakers)))
    tester, owner = np.tile(tester, trials), np.tile(owner, trials)
    z = generator.normal(size=(tester.size, features))
    z[tester == owner] += lead / np.sqrt(features)
    return TemplateComparisons(z, ScorePairs(tester, owner))


def test_recovers_a_known_ratio():
    ((a, b),) = fit_each(gaussian(200, 2.0))
    assert (a, b) == pytest.approx((-2.0, 2.0), abs=0.12)


def test_two_features_that_say_the_same_share_it():
    ((a, b, c),) = fit_each(gaussian(200, 2.0, features=2))
    assert (a, b, c) == pytest.approx((-2.0, np.sqrt(2), np.sqrt(2)), abs=0.15)


def test_a_misleading_feature_has_no_say():
    made = gaussian(60, 2.0, features=2)
    made.z[:, 1] *= -1
    ((_, b, c),) = fit_each(made)
    assert b > 0.5
    assert c == 0.0


@pytest.mark.parametrize("worth", [0.0, 40.0])
def test_against_a_general_optimiser(worth):
    made, told = gaussian(15, 1.5, seed=3, features=2), np.array([[-1.0, 0.5, 0.1]])
    x = np.column_stack([np.ones(len(made.z)), made.z])
    weight = made.weights() * (15 + worth) * np.where(made.mated, 1, twoclass.OTHERS)
    offset = np.append(np.log(twoclass.OTHERS), [0, 0])
    own = 1 / (1 + np.exp(-(x @ (told[0] - offset))))
    goal = (15 * made.mated + worth * own) / (15 + worth)
    held = np.array([1e-3, 1, 1])
    centre = told[0] if worth else np.zeros(3)

    def loss(point):
        margin = x @ (point - offset)
        nats = weight @ (np.logaddexp(0, margin) - goal * margin)
        return nats + (held * (point - centre) ** 2).sum() / 2

    best = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-6})
    found = fit_each(made, prior=PriorCoefficients(told, worth) if worth else None)
    assert_allclose(found[0], best.x, atol=1e-4)


def test_classes_that_separate_stay_finite_and_a_prior_rank_model_holds_them():
    made = gaussian(10, 40.0)
    alone = fit_each(made)
    assert np.isfinite(alone).all()
    assert 0 < alone[0, 1] < 5
    told = np.array([[-3.0, 0.2]])
    near = [
        abs(fit_each(made, prior=PriorCoefficients(told, m))[0, 1] - 0.2)
        for m in (1.0, 20.0, 1000.0)
    ]
    assert near == sorted(near, reverse=True)
    assert near[-1] < 0.2


def test_people_and_pairs_weigh_the_same_however_often_they_are_compared():
    made = gaussian(12, 2.0)
    theirs = np.flatnonzero((made.test_speaker == 3) | (made.template_speaker == 3))
    often = np.concatenate([np.arange(made.test_speaker.size), *[theirs] * 9])
    assert_allclose(fit_each(made.select(often)), fit_each(made), atol=1e-6)
    assert pair_count(made) == 66


def test_a_resample_is_a_fit_on_those_speakers():
    made, drawn = gaussian(8, 2.0), np.array([2.0, 1, 1, 0, 1, 1, 1, 1])
    found = fit_each(made, drawn[None])[0]
    weights = made.weights(drawn[None])[0]
    low, high = (
        np.minimum(made.test_speaker, made.template_speaker),
        np.maximum(made.test_speaker, made.template_speaker),
    )
    pair = (low == 0) & (high == 1)
    once = (low == 1) & (high == 2)
    assert weights[pair].sum() == pytest.approx(2 * weights[once].sum())
    assert weights[(made.test_speaker == 3) | (made.template_speaker == 3)].sum() == 0
    assert weights[made.mated].sum() == pytest.approx(1)
    assert not np.allclose(found, fit_each(made)[0])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.floats(0, 30), st.integers(1, 3), st.integers(3, 12))
def test_always_finite_and_never_falling_in_a_score(seed, lead, features, speakers):
    made = gaussian(speakers, lead, 1, seed, features)
    made.z[:] *= np.random.default_rng(seed).choice([1e-3, 1.0, 1e3])
    found = fit_each(made, speaker_weights(speakers, 20, seed))
    assert np.isfinite(found).all()
    assert (found[:, 1:] >= 0).all()


def test_cross_fits_have_not_seen_either():
    made = gaussian(16, 2.0)
    found, fold = cross_fit(made)
    one, two = fold[0], fold[5]
    there = [
        ~np.isin(fold[each], (one, two)) for each in (made.test_speaker, made.template_speaker)
    ]
    rest = made.select(there[0] & there[1])
    expected = fit_each(TemplateComparisons(rest.z, rest.pairs))
    assert_allclose(found[one, two], expected[0], atol=1e-4)
    assert_allclose(found, found.transpose(1, 0, 2))


def test_thinning_keeps_every_pair_and_speaker():
    made = gaussian(20, 2.0, trials=40)
    few = made.subsample(1000)
    assert few.test_speaker.size < 2000
    assert pair_count(few) == pair_count(made)
    assert set(few.test_speaker[few.mated]) == set(range(20))
    assert made.subsample(10**6) is made
