from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from monitor.maths.composition import clopper_pearson
from monitor.maths.statistics import Estimate, difference_reach


def mean_of(speakers, trials_each=8, replicates=4000):
    """The mean over speakers, with its resamples."""
    speakers = np.asarray(speakers, dtype=float)
    count = speakers.size
    picks = np.random.default_rng(0).integers(0, count, (replicates, count))
    left_out = (speakers.sum() - speakers) / (count - 1)
    return Estimate(
        speakers.mean(), speakers[picks].mean(axis=1), left_out, count, count * trials_each
    )


def test_a_share_over_speakers():
    speakers = np.random.default_rng(3).uniform(0.2, 0.8, 30)
    low, high = mean_of(speakers).share_limits(0.0, 1.0)
    student = stats.t.interval(0.95, 29, speakers.mean(), stats.sem(speakers))
    assert (low, high) == pytest.approx(student, abs=0.015)
    scaled = mean_of(4 * speakers - 2).share_limits(-2.0, 2.0)
    assert scaled == pytest.approx((4 * low - 2, 4 * high - 2))


def test_everybody_found_says_no_more_than_thirty_speakers_can():
    assert mean_of(np.ones(30)).share_limits(0.0, 1.0) == pytest.approx(clopper_pearson(30, 30))


def test_one_who_is_missed_opens_the_limits():
    low, _ = mean_of([*np.ones(29), 0.0]).share_limits(0.0, 1.0)
    assert low == pytest.approx(clopper_pearson(29, 30)[0], abs=0.02)


def test_signed_limits_reach_below_zero_and_not_beyond_the_ceiling():
    speakers = np.random.default_rng(0).normal(0.02, 0.3, 30)
    low, high = mean_of(speakers).signed_limits(5.0)
    assert low < 0 < high
    assert mean_of(speakers - 9).signed_limits(5.0)[1] < -8
    low, high = mean_of(np.full(30, 5.0)).signed_limits(5.0)
    assert low == pytest.approx(5 * clopper_pearson(30, 30)[0])
    assert high == 5.0


def test_what_is_fitted_loses_its_bias():
    """Resamples that read more than the value tell that the value reads more than the truth."""
    found = mean_of(np.random.default_rng(0).uniform(0.2, 0.6, 30))
    shifted = Estimate(found.value, found.replicates + 0.05, found.left_out, 30, 240)
    low, high = found.share_limits(0.0, 1.0)
    assert shifted.share_limits(0.0, 1.0) == pytest.approx((low, high))
    corrected = shifted.share_limits(0.0, 1.0, fitted=True)
    assert corrected == pytest.approx((low - 0.05, high - 0.05), abs=0.005)
    error = Estimate(0.0, np.zeros(200), np.zeros(30), 30, 240)
    assert error.share_limits(0.0, 1.0, fitted=True) == pytest.approx(clopper_pearson(0, 30))


def test_too_few_resamples_are_not_enough():
    replicates = np.r_[np.full(150, np.nan), np.ones(50)]
    assert not Estimate(0.5, replicates, np.ones(30), 30, 240).exists
    assert not Estimate(0.5, np.ones(200), np.ones(1), 1, 8).exists
    assert mean_of([0.0, 1.0]).exists


def test_two_systems_with_other_speakers():
    """Welch's limits of a difference of two means."""
    generator = np.random.default_rng(5)
    one, other = generator.normal(0, 1, 25), generator.normal(0, 3, 40)
    reach = difference_reach(mean_of(one), mean_of(other), 0.025)
    expected = stats.ttest_ind(one, other, equal_var=False).confidence_interval()
    assert reach == pytest.approx((expected.high - expected.low) / 2, rel=0.06)
    assert difference_reach(mean_of(np.ones(9)), mean_of(np.ones(9)), 0.025) == 0.0
