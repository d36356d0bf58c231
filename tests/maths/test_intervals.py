from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from monitor.errors import UsageError
from monitor.maths.composition import clopper_pearson
from monitor.maths.statistics import freedom, quantile_limits, share_limits, t_limits

SHARES = st.integers(0, 1000).map(lambda thousandths: thousandths / 1000)


@pytest.mark.parametrize(("hits", "trials"), [(0, 30), (30, 30), (3, 40), (17, 29)])
def test_independent_trials_have_clopper_and_pearsons(hits, trials):
    """One trial a speaker: the variance is that of a binomial, and as well known."""
    share = hits / trials
    found = share_limits(share, share * (1 - share) / trials, trials, trials, trials - 1.0)
    assert found == pytest.approx(clopper_pearson(hits, trials))


def test_at_the_edges_a_speaker_is_a_trial():
    assert share_limits(0.0, 0.0, 30, 240, 29.0) == pytest.approx(clopper_pearson(0, 30))
    assert share_limits(1.0, 0.0, 30, 240, 29.0) == pytest.approx(clopper_pearson(30, 30))


def test_trials_that_are_alike_count_for_less():
    apart = share_limits(0.3, 0.21 / 240, 30, 240, 29.0)
    alike = share_limits(0.3, 0.21 / 60, 30, 240, 29.0)
    one = share_limits(0.3, 0.21 / 30, 30, 240, 29.0)
    assert one[0] < alike[0] < apart[0] < 0.3 < apart[1] < alike[1] < one[1]


@given(SHARES, st.floats(1e-9, 0.3), st.integers(2, 60), st.integers(1, 30), st.floats(1.0, 59.0))
def test_limits_of_a_share_hold_it_within_its_range(share, variance, units, each, degrees):
    low, high = share_limits(share, variance, units, units * each, min(degrees, units - 1.0))
    assert 0.0 <= low <= share <= high <= 1.0
    narrowest = clopper_pearson(units, units)[0]
    assert low <= max(share, narrowest)
    mirrored = share_limits(1 - share, variance, units, units * each, min(degrees, units - 1.0))
    assert (1 - mirrored[1], 1 - mirrored[0]) == pytest.approx((low, high), abs=1e-6)


def test_a_wilder_variance_reaches_further():
    steady = share_limits(0.9, 0.0005, 30, 240, 29.0)
    wild = share_limits(0.9, 0.0005, 30, 240, 3.0)
    assert wild[0] < steady[0]
    assert wild[1] > steady[1]


def test_freedom_is_that_of_a_variance():
    """Satterthwaite: a variance of d degrees varies by 2 / d of its square."""
    generator = np.random.default_rng(0)
    assert freedom(generator.normal(size=100_000)) == pytest.approx(99_999, rel=0.05)
    skewed = generator.exponential(size=(20_000, 400))
    spread = np.var(skewed.var(axis=1, ddof=1)) / np.mean(skewed.var(axis=1, ddof=1)) ** 2
    assert freedom(skewed[:50].ravel()) / 50 == pytest.approx(2 / spread, rel=0.1)


def test_freedom_where_one_speaker_decides():
    assert freedom(np.eye(30)[4]) == pytest.approx(2.2, abs=0.1)
    assert freedom(np.full(30, 0.7)) == 29.0
    assert freedom(np.append(np.eye(30)[4], np.nan)) == freedom(np.eye(30)[4])
    assert freedom(np.array([0.1, 0.2])) == 1.0


def test_students_limits_of_a_mean():
    """The spread of resampled means, short by (S - 1) / S, makes the textbook's limits."""
    values = np.random.default_rng(1).normal(3.0, 2.0, 20)
    picks = np.random.default_rng(2).integers(0, 20, (40_000, 20))
    found = t_limits(values.mean(), values[picks].mean(axis=1), 20, 19.0)
    expected = stats.t.interval(0.95, 19, values.mean(), values.std(ddof=1) / np.sqrt(20))
    assert found == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("share", [0.01, 0.05, 0.5, 0.95])
@pytest.mark.parametrize("count", [5, 30, 100, 400])
def test_limits_of_a_quantile_cover_exactly(share, count):
    """Of uniform values the quantile is the share: an order statistic is a beta variable."""
    values = np.arange(1.0, count + 1)
    low, high = quantile_limits(values, share, 0.0, count + 1.0)
    missed_below = stats.beta.sf(share, low, count + 1 - low) if low > 0 else 0.0
    missed_above = stats.beta.cdf(share, high, count + 1 - high) if high <= count else 0.0
    assert missed_below <= 0.025
    assert missed_above <= 0.025
    if low < count:
        assert stats.beta.sf(share, low + 1, count - low) > 0.025
    if high > 1:
        assert stats.beta.cdf(share, high - 1, count + 2 - high) > 0.025


def test_refusals():
    with pytest.raises(UsageError, match="a share from 0 to 1"):
        share_limits(1.2, 0.0, 3, 9, 2.0)
    with pytest.raises(UsageError, match="a trial of each unit"):
        share_limits(0.5, 0.0, 9, 3, 2.0)
    with pytest.raises(UsageError, match="take values"):
        quantile_limits(np.empty(0), 0.5, 0.0, 1.0)
    with pytest.raises(UsageError, match="between 0 and 1"):
        quantile_limits(np.ones(3), 1.0, 0.0, 1.0)
