from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from monitor.errors import UsageError
from monitor.maths.composition import clopper_pearson
from monitor.maths.roc import Highest

SEEDS = st.integers(0, 2**32 - 1)


@given(SEEDS, st.integers(1, 60), st.integers(1, 9), st.integers(1, 40))
def test_highest_holds_everything_down_to_its_last(seed, keep, rows, levels):
    generator = np.random.default_rng(seed)
    scores = generator.integers(0, levels, (rows, 5)).astype(float)
    owner = generator.integers(0, 3, rows)
    highest = Highest(keep, speakers=3)
    for row in range(0, rows, 2):
        highest.add(scores[row : row + 2], owner[row : row + 2])
    tail = highest.tail()
    lowest = tail.values[-1]
    assert lowest <= np.sort(scores, axis=None)[::-1][min(keep, scores.size) - 1]
    kept = [(value, who) for value, who in zip(scores.ravel(), np.repeat(owner, 5), strict=True)]
    expected = sorted(pair for pair in kept if pair[0] >= lowest)
    found = np.repeat(np.column_stack([tail.values, tail.speaker]), tail.counts, axis=0)
    assert sorted(map(tuple, found.tolist())) == expected
    assert (np.diff(tail.values) <= 0).all()
    assert tail.total == scores.size
    assert_array_equal(tail.first_of(np.array([lowest])), [np.count_nonzero(tail.values > lowest)])


def test_limits_of_a_proportion(golden_bounds):
    for row in golden_bounds:
        low, _ = clopper_pearson(row["tp"], row["n_tar"])
        _, high = clopper_pearson(row["fp"], row["n_non"])
        assert low == pytest.approx(row["cp"]["tpr_lo"], rel=1e-12)
        assert high == pytest.approx(row["cp"]["fpr_hi"], rel=1e-12)
    assert clopper_pearson(5, 5)[1] == 1
    for wrong in [(6, 5, 0.025), (-1, 5, 0.025), (0, 0, 0.025), (1, 2, 0.5)]:
        with pytest.raises(UsageError):
            clopper_pearson(*wrong)


@pytest.fixture(scope="module")
def golden_bounds(golden):
    return golden.json("math")["voxguard_eps_hat"]
