from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from monitor.errors import UsageError
from monitor.maths.statistics import (
    interpolated_quantile,
    limits,
    limits_of_each,
    weighted_quantile,
)

SAMPLES = st.lists(st.integers(-9, 9), min_size=1, max_size=20).map(lambda each: np.array(each) / 7)


def weightings(sample: np.ndarray, seed: int) -> np.ndarray:
    weights = np.random.default_rng(seed).integers(0, 4, (6, sample.size)).astype(float)
    weights[:, 0] += 1
    return weights


def repeated(sample: np.ndarray, weights: np.ndarray) -> list[np.ndarray]:
    return [np.repeat(sample, row.astype(int)) for row in weights]


@pytest.mark.slow
@given(st.lists(st.floats(-9, 9), min_size=1, max_size=400).map(np.array))
def test_limits_are_the_order_statistics_nearest_to_the_percentiles(values):
    before = values.copy()
    low, high = limits(values)
    ordered, place = sorted(values), 0.025 * (len(values) - 1)
    assert low in (ordered[int(np.floor(place))], ordered[int(np.ceil(place))])
    assert low == ordered[round(place)]
    assert high == ordered[len(values) - 1 - round(place)]
    assert low <= high
    assert_array_equal(values, before)


def test_limits_turn_with_the_sign():
    values = np.random.default_rng(0).normal(size=77)
    low, high = limits(values)
    assert limits(-values) == (-high, -low)


def test_limits_of_many_are_those_of_each():
    values = np.random.default_rng(0).normal(size=(3, 4, 50))
    found = limits_of_each(values)
    assert found.shape == (3, 4, 2)
    assert tuple(found[1, 2]) == limits(values[1, 2])


@pytest.mark.slow
@given(SAMPLES, st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_interpolated_equals_the_repeated_sample(sample, share, seed):
    weights = weightings(sample, seed)
    expected = [np.quantile(each, share) for each in repeated(sample, weights)]
    assert_allclose(interpolated_quantile(sample, weights, share), expected, atol=1e-12)


@pytest.mark.slow
@given(SAMPLES, st.sampled_from([0.0, 0.1, 0.5, 0.95, 1.0]), st.integers(0, 2**32 - 1))
def test_weighted_inverts_the_distribution_function(sample, share, seed):
    weights = weightings(sample, seed)
    found = weighted_quantile(sample, weights, share)
    expected = [
        np.sort(each)[max(int(np.ceil(share * each.size - 1e-9)) - 1, 0)]
        for each in repeated(sample, weights)
    ]
    # nothing weighs nothing: a share of 0 is reached by the lowest value, heard or not
    assert_array_equal(found, expected if share else np.full(len(weights), sample.min()))
    assert_array_equal(weighted_quantile(sample, weights / 8, share), found)


@pytest.mark.parametrize("quantile", [interpolated_quantile, weighted_quantile])
def test_refusals(quantile):
    with pytest.raises(UsageError, match="between shares of 0 and 1"):
        quantile(np.ones(2), np.ones((1, 2)), 1.01)
    with pytest.raises(UsageError, match="takes values"):
        quantile(np.ones(2), np.ones((1, 3)), 0.5)
    with pytest.raises(UsageError, match="no value"):
        quantile(np.ones(2), np.array([[1.0, 1.0], [0.0, 0.0]]), 0.5)
