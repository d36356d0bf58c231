from __future__ import annotations

import numpy as np
import pytest

from monitor.errors import UsageError
from monitor.maths.ranks import all_rank_bounds, rank_bounds


@pytest.mark.parametrize("values", [3, 50, 10**6])
def test_every_column_as_if_it_were_the_target(values):
    scores = np.random.default_rng(values).integers(0, values, (40, 17)).astype(np.float32)
    better, tied = all_rank_bounds(scores)
    for column in range(17):
        one = rank_bounds(scores, column)
        assert np.array_equal(better[:, column], one[0])
        assert np.array_equal(tied[:, column], one[1])


def test_refusals():
    with pytest.raises(UsageError, match="matrix of scores"):
        all_rank_bounds(np.zeros(3))
    with pytest.raises(UsageError, match="matrix of scores"):
        all_rank_bounds(np.array([[0.0, np.nan]]))
