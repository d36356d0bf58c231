from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.errors import UsageError
from monitor.population.false_alarms import conformal_threshold, fewest_maxima

SHARES = st.sampled_from([0.01, 0.05, 0.07, 0.1, 0.2, 0.29, 1 / 3, 0.5, 0.9])
VALUES = st.one_of(st.integers(-3, 3).map(float), st.floats(-50, 50), st.just(-np.inf))


@given(st.lists(VALUES, min_size=2, max_size=130), SHARES)
def test_of_exchangeable_streams_at_most_a_share_crosses(values, share):
    """Each of n + 1 is as likely the last: the share who exceed what the others give, exactly."""
    if len(values) - 1 < fewest_maxima(share):
        return
    every = np.array(values)
    crossed = [
        value > conformal_threshold(np.delete(every, i), share) for i, value in enumerate(every)
    ]
    assert sum(crossed) <= share * len(values) * (1 + 1e-9)
    if len(set(values)) == len(values):  # without ties: no more cautious than it must be
        assert sum(crossed) == int(share * len(values) * (1 + 1e-9))


@given(st.lists(st.floats(-9, 9), min_size=9, max_size=60), SHARES, st.randoms())
def test_order_says_nothing_and_a_larger_share_never_raises_it(values, share, random):
    if len(values) < fewest_maxima(share):
        return
    found = conformal_threshold(np.array(values), share)
    assert found in values
    random.shuffle(values)
    assert conformal_threshold(np.array(values), share) == found
    assert conformal_threshold(np.array(values), share + (1 - share) / 2) <= found
    assert conformal_threshold(np.exp(values), share) == pytest.approx(np.exp(found))


@pytest.mark.parametrize(("n", "share"), [(19, 0.05), (22, 0.05), (50, 0.1), (40, 0.2)])
def test_coverage_is_what_the_theorem_says(n, share):
    """Correlated walks with heavy tails: only that streams are exchangeable matters."""
    rng = np.random.default_rng(1)
    trials = 20_000
    common = rng.standard_normal((trials, 1))
    maxima = common + rng.standard_t(2, (trials, n + 1))
    crossed = [row[-1] > conformal_threshold(row[:-1], share) for row in maxima]
    expected = int((n + 1) * share * (1 + 1e-9)) / (n + 1)
    assert np.mean(crossed) == pytest.approx(expected, abs=4 * np.sqrt(expected / trials))


def test_maxima_that_stop_at_a_bound_are_not_crossed():
    clipped = np.array([8.5] * 15 + [1.0] * 4)
    assert conformal_threshold(clipped, 0.05) == 8.5
    assert conformal_threshold(clipped, 0.2) == 8.5


@pytest.mark.parametrize(
    ("share", "needed"),
    [(0.05, 19), (0.01, 99), (0.1, 9), (0.2, 4), (1 / 3, 2), (0.5, 1), (0.9, 1), (0.07, 14)],
)
def test_how_many_are_needed(share, needed):
    assert fewest_maxima(share) == needed
    assert 1 / (needed + 1) <= share * (1 + 1e-9)
    assert needed == 1 or 1 / needed > share
    conformal_threshold(np.zeros(needed), share)
    if needed > 1:
        with pytest.raises(UsageError, match=f": {needed} are needed"):
            conformal_threshold(np.zeros(needed - 1), share)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, 1.5, np.nan])
def test_a_share_is_one(share):
    with pytest.raises(UsageError, match="over 0 and under 1"):
        fewest_maxima(share)


@pytest.mark.parametrize("maxima", [[np.nan, 1.0], [[1.0], [2.0]]])
def test_maxima_are_numbers(maxima):
    with pytest.raises(UsageError, match="one maximum of each stream"):
        conformal_threshold(np.array(maxima), 0.5)
