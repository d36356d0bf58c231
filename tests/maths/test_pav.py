from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.optimize import isotonic_regression

from monitor.maths import roc as pav
from monitor.maths.roc import pool

CELLS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), min_size=1, max_size=40).filter(
    lambda cells: any(a + b for a, b in cells)
)


def columns(cells):
    return np.array(cells, dtype=np.float64).T


@pytest.mark.slow
@given(CELLS)
def test_agrees_with_isotonic_regression(cells):
    hits, misses = columns(cells)
    full = hits + misses > 0
    total = (hits + misses)[full]
    expected = isotonic_regression(hits[full] / total, weights=total)
    blocks = pool(hits, misses)
    share = blocks.mated / (blocks.mated + blocks.non_mated)
    sizes = np.searchsorted(np.cumsum(total), np.cumsum(blocks.mated + blocks.non_mated)) + 1
    assert sizes[-1] == len(total)
    assert np.repeat(share, np.diff(sizes, prepend=0)) == pytest.approx(expected.x)
    assert blocks.mated.sum() == hits.sum()
    assert (np.diff(share) > 0).all()


@pytest.mark.slow
@given(st.lists(CELLS, min_size=1, max_size=5))
def test_replicates_are_pooled_each_for_itself(replicates):
    width = max(map(len, replicates))
    padded = np.array(
        [cells + [(0, 0)] * (width - len(cells)) for cells in replicates], dtype=float
    )
    together = pool(padded[..., 0], padded[..., 1])
    assert together.replicates == len(replicates)
    for number, cells in enumerate(replicates):
        alone = pool(*columns(cells))
        mine = together.replicate == number
        assert_array_equal(together.mated[mine], alone.mated)
        assert_array_equal(together.non_mated[mine], alone.non_mated)
    assert together.sums(together.mated).tolist() == padded[..., 0].sum(axis=1).tolist()


@pytest.mark.slow
@settings(max_examples=50)
@given(st.lists(CELLS, min_size=1, max_size=3))
def test_the_stack_and_the_passes_agree(replicates):
    width = max(map(len, replicates))
    padded = np.array(
        [cells + [(0, 0)] * (width - len(cells)) for cells in replicates], dtype=float
    )
    with pytest.MonkeyPatch.context() as patch:
        passes = pool(padded[..., 0], padded[..., 1])
        patch.setattr(pav, "_PASSES", 0)
        stack = pool(padded[..., 0], padded[..., 1])
    for name in ("mated", "non_mated", "replicate"):
        assert_array_equal(getattr(passes, name), getattr(stack, name))


def test_a_staircase_that_falls_at_the_end_needs_the_stack():
    hits = np.append(np.arange(1.0, 2001.0), 0.0)
    misses = np.append(np.arange(2000.0, 0.0, -1), 1e6)
    blocks = pool(hits, misses)
    assert blocks.mated[:-1].tolist() == hits[: len(blocks.mated) - 1].tolist()
    assert 500 < len(blocks.mated) < 1500  # one more is pooled in each pass
    assert (np.diff(blocks.odds) > 0).all()
    assert blocks.mated.sum() == hits.sum()


def test_whole_numbers_are_compared_exactly():
    thirds = pool(np.array([1.0, 333333333.0]), np.array([2.0, 666666666.0]))
    assert thirds.mated.tolist() == [333333334.0]
    assert pool(np.array([1.0, 333333334.0]), np.array([2.0, 666666666.0])).mated.size == 2


def test_odds_run_to_infinity():
    blocks = pool(np.array([0.0, 2.0]), np.array([3.0, 0.0]))
    assert blocks.odds.tolist() == [0.0, np.inf]
