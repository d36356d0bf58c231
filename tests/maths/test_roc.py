from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.optimize import isotonic_regression

from monitor.errors import UsageError
from monitor.lab.evaluation.membership import TopScores
from monitor.maths import roc
from monitor.maths.roc import cell_counts, count_scores, cuts_around, pool

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
def test_replicates_are_pooled_each_for_itself_by_passes_and_by_the_stack(replicates):
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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(roc, "_PASSES", 0)
        stack = pool(padded[..., 0], padded[..., 1])
    for name in ("mated", "non_mated", "replicate"):
        assert_array_equal(getattr(together, name), getattr(stack, name))


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
    assert pool(np.array([0.0, 2.0]), np.array([3.0, 0.0])).odds.tolist() == [0.0, np.inf]


SEEDS = st.integers(0, 2**32 - 1)


@given(SEEDS, st.integers(1, 60), st.integers(1, 9), st.integers(1, 40))
def test_highest_holds_everything_down_to_its_last(seed, keep, rows, levels):
    generator = np.random.default_rng(seed)
    scores = generator.integers(0, levels, (rows, 5)).astype(float)
    owner = generator.integers(0, 3, rows)
    highest = TopScores(keep, speakers=3)
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
