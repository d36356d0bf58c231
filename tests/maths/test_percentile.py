from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from monitor.errors import UsageError
from monitor.maths.percentile import weighted_percentile


@given(
    st.lists(st.integers(-9, 9), min_size=1, max_size=20),
    st.floats(0, 100),
    st.integers(0, 2**32 - 1),
)
def test_equals_the_repeated_sample(values, percent, seed):
    sample = np.array(values) / 7
    weights = np.random.default_rng(seed).integers(0, 4, (6, sample.size)).astype(float)
    weights[:, 0] += 1
    expected = [np.percentile(np.repeat(sample, row.astype(int)), percent) for row in weights]
    assert_allclose(weighted_percentile(sample, weights, percent), expected, atol=1e-12)


def test_refusals():
    with pytest.raises(UsageError, match="between 0 and 100"):
        weighted_percentile(np.ones(2), np.ones((1, 2)), 101)
    with pytest.raises(UsageError, match="takes values"):
        weighted_percentile(np.ones(2), np.ones((1, 3)), 50)
    with pytest.raises(UsageError, match="no value"):
        weighted_percentile(np.ones(2), np.array([[1.0, 1.0], [0.0, 0.0]]), 50)
