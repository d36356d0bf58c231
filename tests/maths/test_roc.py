from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from monitor.errors import UsageError
from monitor.maths.roc import cell_counts, count_scores, cuts_around

SCORES = st.lists(st.integers(-5, 5), min_size=1, max_size=30)


@pytest.mark.slow
@given(SCORES, SCORES)
def test_each_level_and_each_gap_is_counted(mated, non_mated):
    counts = count_scores(mated, non_mated)
    levels = np.unique(mated)
    assert counts.mated[1::2].tolist() == [mated.count(level) for level in levels]
    assert counts.non_mated[1::2].tolist() == [non_mated.count(level) for level in levels]
    assert not counts.mated[::2].any()
    ends = [-np.inf, *levels, np.inf]
    between = [sum(low < s < high for s in non_mated) for low, high in pairwise(ends)]
    assert counts.non_mated[::2].tolist() == between
    assert [counts.mated_total, counts.non_mated_total] == [len(mated), len(non_mated)]


@given(SCORES, SCORES)
def test_both_ways_of_looking_up_agree(scores, levels):
    cuts = cuts_around(np.unique(levels).astype(float))
    ordered = np.sort(scores).astype(float)
    once = cell_counts(ordered, cuts)
    assert_array_equal(cell_counts(np.repeat(ordered, 40), cuts), 40 * once)


def test_neighbouring_numbers_have_no_gap():
    low = 1.0
    high = np.nextafter(low, 2.0)
    counts = count_scores([low, high], [low, high, high])
    assert counts.non_mated.tolist() == [0, 1, 0, 2, 0]


@pytest.mark.parametrize(
    ("mated", "non_mated", "words"),
    [([], [1.0], "at least one"), ([1.0], [], "at least one"), ([np.nan], [1.0], "not finite")],
)
def test_refusals(mated, non_mated, words):
    with pytest.raises(UsageError, match=words):
        count_scores(mated, non_mated)
