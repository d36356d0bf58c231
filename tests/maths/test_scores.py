import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cosine

from monitor.errors import UsageError
from monitor.maths.scores import (
    OF_COUNTS,
    OF_VECTORS,
    PSEUDO_FRAMES,
    EmbeddingSum,
    Histogram,
    SessionMixture,
    are_countable,
    embedding_margin,
    find_split,
    histogram_margin,
    level_margin,
    near_one,
    page_cusum,
)
from monitor.training.grid import window_starts

SIMILARITIES = OF_COUNTS | OF_VECTORS
WHOLE = [name for name, each in SIMILARITIES.items() if not each.by_slice]
N, M = 7, 12


@pytest.fixture
def templates():
    counts = np.random.default_rng(0).integers(0, 40, (N, M))
    counts[:, 3] = 0
    counts[0] = 0
    return counts


@pytest.fixture
def heard():
    counts = np.random.default_rng(1).integers(0, 9, M)
    counts[5] = 0
    return counts


def test_log_likelihood_by_its_definition(templates, heard):
    each = OF_COUNTS["log-likelihood"]
    shares = (templates + 0.5) / (templates.sum(axis=1, keepdims=True) + M * 0.5)
    expected = [sum(n * np.log(p) for n, p in zip(heard, row, strict=True)) for row in shares]
    assert_allclose(each.score(each.prepare(templates), heard), expected, rtol=1e-7, atol=1e-9)
    prepared = each.prepare(np.array([[3, 0], [1, 1]]))
    expected = [2 * np.log(3.5 / 4) + np.log(0.5 / 4), 3 * np.log(0.5)]
    assert_allclose(each.score(prepared, np.array([2, 1])), expected, atol=2e-8)


def test_embedding_cosine_against_scipy():
    generator = np.random.default_rng(2)
    templates, heard = generator.normal(size=(N, M)), generator.normal(size=M)
    each = OF_VECTORS["embedding-cosine"]
    expected = [1 - cosine(template, heard) for template in templates]
    assert_allclose(each.score(each.prepare(templates), heard), expected, atol=1e-12)


def test_only_the_log_likelihood_grows_with_the_evidence(templates, heard):
    for each in (SIMILARITIES[name] for name in WHOLE):
        prepared = each.prepare(templates)
        one, two = each.score(prepared, heard), each.score(prepared, 2 * heard)
        assert each.additive == (each.name == "log-likelihood")
        assert_allclose(two, 2 * one if each.additive else one, atol=1e-12)


@given(st.integers(0, 2**31), st.integers(2, 70), st.integers(2, 130))
def test_log_likelihoods_are_exact_sums(seed, n, m):
    """Blocks add up, equal templates tie and batches change nothing, whatever order BLAS takes."""
    generator = np.random.default_rng(seed)
    templates = generator.integers(0, 300, (n, m))
    templates[1::2] = templates[0]
    streams = generator.integers(0, 2000, (5, m))
    each = OF_COUNTS["log-likelihood"]
    prepared = each.prepare(templates)
    batch = each.score(prepared, streams)
    assert batch.shape == (5, n)
    assert_array_equal(each.score(prepared, streams.sum(axis=0)), batch.sum(axis=0))
    for row, stream in zip(batch, streams, strict=True):
        assert_array_equal(row, each.score(prepared, stream))
        assert set(row[1::2].tolist()) == {row[0]}


@pytest.mark.parametrize("name", WHOLE)
def test_a_batch_scores_like_single_streams_and_no_frames_score_nothing(name, templates, heard):
    each = SIMILARITIES[name]
    prepared = each.prepare(templates)
    streams = np.stack([heard, np.zeros_like(heard), heard[::-1]])
    batch = each.score(prepared, streams)
    assert batch.shape == (3, N)
    for row, stream in zip(batch, streams, strict=True):
        assert_allclose(row, each.score(prepared, stream), rtol=1e-13)
    assert each.score(prepared, streams[:0]).shape == (0, N)
    for nothing in (np.zeros(M, dtype=np.int64), np.zeros((3, M))):
        scores = each.score(prepared, nothing)
        assert scores.shape == (*nothing.shape[:-1], N)
        assert not scores.any()
    empty = each.prepare(np.vstack([np.zeros((2, M)), np.eye(2, M) * 1e6]))
    assert np.isfinite(each.score(empty, np.eye(M)[-1])).all()


def test_max_scoring_is_the_best_of_the_slices():
    generator = np.random.default_rng(2)
    slices, heard = generator.normal(size=(4, 3, 5)), generator.normal(size=(2, 5))
    largest, mean = OF_VECTORS["embedding-max"], OF_VECTORS["embedding-cosine"]
    expected = [[max(1 - cosine(h, s) for s in speaker) for speaker in slices] for h in heard]
    prepared = largest.prepare(slices)
    assert_allclose(largest.score(prepared, heard), expected)
    assert_allclose(largest.score(prepared, heard[0]), expected[0])
    one = slices[:, :1]  # one slice: nothing to choose from
    assert_allclose(
        largest.score(largest.prepare(one), heard), mean.score(mean.prepare(one[:, 0]), heard)
    )
    assert_array_equal(largest.score(prepared, np.zeros(5)), np.zeros(4))


@given(st.lists(st.integers(0, 3), min_size=1, max_size=7), st.integers(0, 2**32 - 1))
def test_several_templates_of_a_person_say_the_mean_of_what_each_says(owner, seed):
    mixture = SessionMixture(4, np.array(owner))
    rows = np.random.default_rng(seed).normal(0, 20, (3, mixture.rows))
    told, place = mixture.mix(rows)
    for person in range(4):
        own = [person, *(4 + k for k, whose in enumerate(owner) if whose == person)]
        expected = np.log(np.exp(rows[:, own] - 50.0).mean(axis=1)) + 50.0
        assert_allclose(told[:, person], expected, atol=1e-9)
        assert place[:, person].tolist() == [own[k] for k in rows[:, own].argmax(axis=1)]
    scores = np.stack([rows, -rows], axis=1)
    taken = mixture.select(scores, place)
    assert_array_equal(taken[:, 0], np.take_along_axis(rows, place, axis=1))
    assert_array_equal(taken[:, 1], -taken[:, 0])


SIZE = 5
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


@given(vectors, vectors)
def test_sketches_of_parts_add_up(a, b):
    x, y = (learnt(EmbeddingSum(SIZE), each) for each in (a, b))
    loop = EmbeddingSum(SIZE)
    for row in np.concatenate([a, b]):
        loop.learn_one(row)
    assert_allclose((x + y).total, loop.total, atol=1e-12)
    assert (x + y).frames == loop.frames == len(a) + len(b)
    same(learnt(x, b), loop)
    bins = [np.abs(each[:, 0] * 9).astype(np.uint64) % SIZE for each in (a, b)]
    whole = learnt(Histogram(SIZE), np.concatenate(bins))
    same(learnt(Histogram(SIZE), bins[0]) + learnt(Histogram(SIZE), bins[1]), whole)
    assert whole.total.tolist() == [np.concatenate(bins).tolist().count(m) for m in range(SIZE)]
    assert whole.frames == len(a) + len(b)
    whole.total[0] = 2**53  # beyond which floats would round
    whole.learn_many(np.zeros(3, dtype=np.uint8))
    assert (whole + whole).total[0] == 2 * (2**53 + 3)
    kinds: list[Any] = [Histogram, EmbeddingSum]
    for kind, other in (kinds, kinds[::-1]):
        for wrong in (kind(1), other(SIZE)):
            with pytest.raises(UsageError, match="one kind and size"):
                kind(SIZE) + wrong
        with pytest.raises(UsageError, match="size=0"):
            kind(0)


@pytest.mark.parametrize(
    ("kind", "bad", "words"),
    [
        *(
            (Histogram, values, r"0\.\.4")
            for values in (
                np.array([1, -1]),
                np.array([1, SIZE]),
                np.array([1, 10**12]),
                np.array([1, 2**63], dtype=np.uint64),
                np.array([1.0, np.nan]),
                np.array([True, False]),
                np.array([[1], [2]]),
            )
        ),
        *(
            (EmbeddingSum, np.ones(shape), r"\(k, 5\)")
            for shape in ((SIZE,), (2, SIZE + 1), (1, SIZE, 1))
        ),
    ],
)
def test_what_cannot_be_learnt_is_refused_and_nothing_is_counted(kind, bad, words):
    sketch = kind(SIZE)
    with pytest.raises(UsageError, match=words):
        sketch.learn_many(bad)
    same(sketch, kind(SIZE))


def test_embeddings_without_a_direction_or_a_weight_are_dropped():
    good = np.arange(1.0, 6.0)
    bad = [
        np.zeros(SIZE), np.full(SIZE, np.nan), np.r_[np.inf, np.ones(4)], np.full(SIZE, -np.inf),
        np.full(SIZE, 1e200),
    ]  # fmt: skip
    sketch = learnt(EmbeddingSum(SIZE), np.stack([*bad, good]))
    same(sketch, learnt(EmbeddingSum(SIZE), good[None]))
    half = np.array([[3.0, 4.0], [0.0, 0.0], [np.inf, 1.0]], np.float16)
    assert are_countable(half).tolist() == [True, False, False]


@given(arrays(float, (3, 4), elements=st.floats(-1e300, 1e300)))
def test_the_largest_lies_from_a_half_to_one_and_nothing_else_changes(rows):
    found = near_one(rows)
    largest = np.abs(found).max(axis=1)
    used = np.abs(rows).max(axis=1) > 0
    assert ((largest[used] >= 0.5) & (largest[used] < 1)).all()
    assert not found[~used].any()
    factor = np.abs(rows[used]).max(axis=1) / largest[used]
    back = found[used] * factor[:, None]
    big = np.abs(found[used]) > 1e-200  # what is smaller may round
    assert np.array_equal(back[big], rows[used][big])


SHARES = np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]])
LOG_TEMPLATES = np.log(SHARES)
OTHERS = LOG_TEMPLATES, SHARES.mean(axis=0)
COUNTS = arrays(np.int64, 3, elements=st.integers(0, 1000))
PEOPLE = np.eye(4)
VECTORS = arrays(np.float64, 4, elements=st.floats(-10, 10).map(lambda x: round(x, 6)))


def naive(new, own, independent):
    mine = (own + PSEUDO_FRAMES * SHARES.mean(axis=0)) / (own.sum() + PSEUDO_FRAMES)
    share = new / new.sum()
    likelihoods = [math.prod(row**share) ** independent for row in SHARES]
    return math.log(math.prod(mine**share)) - math.log(np.mean(likelihoods)) / independent


@given(COUNTS.filter(lambda c: c.sum() > 0), COUNTS, st.floats(0.5, 30))
def test_histogram_margin_is_the_mean_log_ratio_of_own_and_mixture(new, own, independent):
    margin = histogram_margin(new, own, *OTHERS, independent)
    assert margin == pytest.approx(naive(new, own, independent), abs=1e-9)


@given(VECTORS, VECTORS, st.integers(0, 4))
def test_embedding_margin_is_bounded_and_does_not_mind_lengths(new, own, count):
    others = PEOPLE[:count]
    margin = embedding_margin(new, own, others)
    assert -2 - 1e-9 <= margin <= 2 + 1e-9
    assert embedding_margin(4 * new, 2 * own, others) == pytest.approx(margin, abs=1e-9)


def test_what_has_no_direction_has_no_cosine():
    one, none, nobody = np.array([1.0, 0]), np.zeros(2), np.empty((0, 2))
    assert embedding_margin(one, none, nobody) == 0
    assert embedding_margin(one, none, np.array([one, one])) == -1
    assert embedding_margin(none, one, np.array([one, one])) == 0


def test_the_people_most_like_the_new_embeddings_count_most():
    voice, like_it, unlike_it = np.eye(3)
    crowd = np.vstack([voice, like_it, np.repeat(unlike_it[None], 30, axis=0)])
    alone = np.vstack([voice, np.repeat(unlike_it[None], 31, axis=0)])
    assert embedding_margin(like_it, voice, crowd) < embedding_margin(like_it, voice, alone) - 0.5
    # the voice itself, enrolled, does not speak against itself
    enrolled = embedding_margin(voice, voice, crowd)
    assert enrolled == pytest.approx(embedding_margin(voice, voice, crowd[1:]), abs=0.01)


@given(arrays(np.float64, st.integers(0, 30), elements=st.floats(-5, 5)))
def test_pages_sum_is_that_of_the_recursion(rises):
    total, before = 0.0, 0
    for i, rise in enumerate(rises, 1):
        total = max(0.0, total + rise)
        before = i if total == 0 else before
    evidence, at = page_cusum(rises)
    assert evidence == pytest.approx(total, abs=1e-9)
    assert float(rises[at:].sum()) == pytest.approx(total, abs=1e-9)
    assert 0 <= at <= len(rises)


@pytest.mark.slow
@given(arrays(np.float64, st.integers(2, 30), elements=st.floats(-5, 5)))
def test_split_is_the_best_of_all_cuts(margins):
    def rest(at):
        return sum(float(((part - part.mean()) ** 2).sum()) for part in np.split(margins, [at]))

    at = find_split(margins)
    assert 1 <= at < margins.size
    assert rest(at) <= min(map(rest, range(1, margins.size))) + 1e-9


@given(VECTORS, VECTORS)
def test_level_margin_is_a_distance(new, own):
    assert level_margin(new, new) == 0
    assert level_margin(new, own) == level_margin(own, new) <= 0
    assert level_margin(new, new + 2.0) == pytest.approx(-2.0)


LONGEST = 20


def units(start, length, available):
    return {(start + i) % available for i in range(length)}


def distance(test, template, available):
    """Fewest steps, either way around, from a unit of one to a unit of the other."""
    return min(min((a - b) % available, (b - a) % available) for a in test for b in template)


def windows(available):
    """Every (T, D, S) that fits."""
    for test, template in product(range(1, available), repeat=2):
        if test + template <= available:
            yield from ((test, template, start) for start in range(available))


def test_test_and_template_never_overlap_and_lie_as_far_apart_as_they_can():
    count = 0
    for available in range(2, LONGEST + 1):
        for test, template, start in windows(available):
            first, second = window_starts(start, test, template, available)
            a, b = units(first, test, available), units(second, template, available)
            assert first == start
            assert not a & b
            # the rest lies on both sides: the nearer one can have half of it at most
            assert distance(a, b, available) == (available - test - template) // 2 + 1
            if start == 0 and available <= 12:
                others = [units(place, template, available) for place in range(available)]
                assert distance(a, b, available) == max(
                    distance(a, other, available) for other in others if not a & other
                )
            count += available == LONGEST
    assert count == 3800


def test_the_printed_offset_overlaps_in_1755_of_3800_settings():
    def printed(start, test, template):
        gap = (LONGEST - start - test) // 2
        return units(start, test, LONGEST) & units(start + test + gap, template, LONGEST)

    overlaps = [bool(printed(s, t, d)) for t, d, s in windows(LONGEST)]
    assert (sum(overlaps), len(overlaps)) == (1755, 3800)
    for test, template in ((6, 5), (0, 4), (4, 0), (-1, 4)):
        with pytest.raises(UsageError, match="do not fit into 10"):
            window_starts(0, test, template, 10)
