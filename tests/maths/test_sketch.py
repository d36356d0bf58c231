from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from monitor.errors import UsageError
from monitor.maths.scores import EmbeddingSum, Histogram, are_countable
from monitor.protocols import Sketch

SIZE = 5
bins = st.lists(st.integers(0, SIZE - 1), max_size=30).map(lambda b: np.array(b, dtype=np.int16))
vectors = st.integers(0, 2**31).map(
    lambda seed: np.random.default_rng(seed).normal(size=(seed % 7, SIZE))
)


def learnt(sketch, values):
    sketch.learn_many(values)
    return sketch


def same(one, other):
    assert type(one) is type(other)
    assert one.total.dtype == other.total.dtype
    assert_array_equal(one.total, other.total)
    assert one.frames == other.frames


@given(bins, bins, bins)
def test_histograms_are_a_commutative_monoid(a, b, c):
    x, y, z = (learnt(Histogram(SIZE), values) for values in (a, b, c))
    same((x + y) + z, x + (y + z))
    same(x + y, y + x)
    same(x + Histogram(SIZE), x)
    same(x + y, learnt(Histogram(SIZE), np.concatenate([a, b])))


@given(bins)
def test_many_bins_equal_the_loop(values):
    loop = Histogram(SIZE)
    for value in values:
        loop.learn_one(value)
    same(learnt(Histogram(SIZE), values), loop)
    assert loop.total.tolist() == [values.tolist().count(m) for m in range(SIZE)]
    assert loop.frames == len(values) == loop.total.sum()


def test_counts_stay_exact_beyond_the_precision_of_floats():
    sketch = Histogram(2)
    sketch.total[0] = 2**53
    sketch.learn_many(np.zeros(3, dtype=np.uint8))
    assert (sketch + sketch).total.tolist() == [2 * (2**53 + 3), 0]


@pytest.mark.parametrize(
    "bad",
    [
        np.array([1, -1]),
        np.array([1, SIZE]),
        np.array([1, 10**12]),
        np.array([1, 2**63], dtype=np.uint64),
        np.array([1.0, 2.0]),
        np.array([1.0, np.nan]),
        np.array([True, False]),
        np.array([[1], [2]]),
    ],
    ids=["negative", "beyond", "huge", "unsigned", "floats", "nan", "booleans", "2-d"],
)
def test_bad_bins_are_refused_and_nothing_is_counted(bad):
    sketch = learnt(Histogram(SIZE), np.array([0, 3]))
    with pytest.raises(UsageError, match=r"0\.\.4"):
        sketch.learn_many(bad)
    same(sketch, learnt(Histogram(SIZE), np.array([0, 3])))


def test_unsigned_bins_count():
    sketch = learnt(Histogram(SIZE), np.array([4, 4], dtype=np.uint64))
    assert sketch.total.tolist() == [0, 0, 0, 0, 2]


@given(vectors, vectors, vectors)
def test_embedding_sums_are_a_commutative_monoid(a, b, c):
    x, y, z = (learnt(EmbeddingSum(SIZE), values) for values in (a, b, c))
    assert_allclose(((x + y) + z).total, (x + (y + z)).total, atol=1e-12)
    same(x + y, y + x)
    same(x + EmbeddingSum(SIZE), x)
    assert (x + y).frames == len(a) + len(b)


@given(vectors)
def test_many_embeddings_equal_the_loop_to_the_last_bit(values):
    loop = EmbeddingSum(SIZE)
    for row in values:
        loop.learn_one(row)
    same(learnt(EmbeddingSum(SIZE), values), loop)
    cut = learnt(learnt(EmbeddingSum(SIZE), values[:2]), values[2:])
    same(cut, loop)


@given(vectors, st.floats(1e-3, 1e3))
def test_an_embedding_counts_by_its_length(values, weight):
    lengths = np.linalg.norm(values, axis=1, keepdims=True)
    weights = weight * np.arange(1, len(values) + 1)[:, None]
    expected = np.sum(weights * (values / lengths), axis=0)
    total = learnt(EmbeddingSum(SIZE), values * weights / lengths).total
    assert_allclose(total, expected, rtol=1e-12, atol=1e-12 * weight)


def test_embeddings_without_a_direction_or_a_weight_are_dropped():
    good = np.arange(1.0, 6.0)
    bad = [
        np.zeros(SIZE), np.full(SIZE, np.nan), np.r_[np.inf, np.ones(4)], np.full(SIZE, -np.inf),
        np.full(SIZE, 1e200),
    ]  # fmt: skip
    sketch = learnt(EmbeddingSum(SIZE), np.stack([*bad, good]))
    same(sketch, learnt(EmbeddingSum(SIZE), good[None]))


@pytest.mark.parametrize("shape", [(SIZE,), (2, SIZE + 1), (1, SIZE, 1)])
def test_embeddings_of_another_shape_are_refused(shape):
    sketch = EmbeddingSum(SIZE)
    with pytest.raises(UsageError, match=r"\(k, 5\)"):
        sketch.learn_many(np.ones(shape))
    same(sketch, EmbeddingSum(SIZE))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Histogram(4), Histogram(5)),
        (Histogram(4), Histogram(1)),
        (EmbeddingSum(4), EmbeddingSum(1)),
        (Histogram(4), EmbeddingSum(4)),
        (EmbeddingSum(4), Histogram(4)),
    ],
)
def test_only_sketches_of_one_kind_and_size_add(one, other):
    with pytest.raises(UsageError, match="one kind and size"):
        one + other


def test_adding_leaves_both_alone():
    x, y = learnt(Histogram(2), np.array([0])), learnt(Histogram(2), np.array([1]))
    (x + y).learn_one(1)
    assert x.total.tolist() == [1, 0]
    assert y.total.tolist() == [0, 1]


@pytest.mark.parametrize("sketch", [Histogram, EmbeddingSum])
def test_a_sketch_has_a_size(sketch):
    assert isinstance(sketch(3), Sketch)
    with pytest.raises(UsageError, match="size=0"):
        sketch(0)


def test_embeddings_of_half_precision_count():
    embeddings = np.array([[3.0, 4.0], [0.0, 0.0], [np.inf, 1.0]], np.float16)
    assert are_countable(embeddings).tolist() == [True, False, False]
