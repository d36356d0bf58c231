from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cosine

from monitor.maths.scores import OF_COUNTS, OF_VECTORS, SessionMixture

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


def brute_log_likelihood(h, c):
    a, score = 0.5, 0.0
    for m in range(len(c)):
        score += h[m] * np.log((c[m] + a) / (sum(c) + len(c) * a))
    return score


def test_against_a_slow_reference(templates, heard):
    each = OF_COUNTS["log-likelihood"]
    expected = [brute_log_likelihood(heard, template) for template in templates]
    assert_allclose(each.score(each.prepare(templates), heard), expected, rtol=1e-7, atol=1e-9)


def test_embedding_cosine_against_scipy():
    generator = np.random.default_rng(2)
    templates, heard = generator.normal(size=(N, M)), generator.normal(size=M)
    each = OF_VECTORS["embedding-cosine"]
    expected = [1 - cosine(template, heard) for template in templates]
    assert_allclose(each.score(each.prepare(templates), heard), expected, atol=1e-12)


def test_log_likelihood_by_hand():
    each = OF_COUNTS["log-likelihood"]
    prepared = each.prepare(np.array([[3, 0], [1, 1]]))
    expected = [2 * np.log(3.5 / 4) + np.log(0.5 / 4), 3 * np.log(0.5)]
    assert_allclose(each.score(prepared, np.array([2, 1])), expected, atol=2e-8)


def test_only_the_log_likelihood_grows_with_the_evidence(templates, heard):
    for each in (SIMILARITIES[name] for name in WHOLE):
        prepared = each.prepare(templates)
        one, two = each.score(prepared, heard), each.score(prepared, 2 * heard)
        assert each.additive == (each.name == "log-likelihood")
        assert_allclose(two, 2 * one if each.additive else one, atol=1e-12)


@given(st.integers(0, 2**31))
def test_log_likelihoods_add_over_blocks_to_the_last_bit(seed):
    generator = np.random.default_rng(seed)
    each = OF_COUNTS["log-likelihood"]
    prepared = each.prepare(generator.integers(0, 500, (N, M)))
    first, second = generator.integers(0, 2000, (2, M))
    whole = each.score(prepared, first + second)
    assert_array_equal(whole, each.score(prepared, first) + each.score(prepared, second))


@given(st.integers(0, 2**31), st.integers(2, 70), st.integers(2, 130))
def test_equal_templates_tie_and_a_batch_scores_like_single_streams(seed, n, m):
    # BLAS sums in an order that depends on the row and on the batch
    generator = np.random.default_rng(seed)
    templates = generator.integers(0, 300, (n, m))
    templates[1::2] = templates[0]
    streams = generator.integers(0, 100, (5, m))
    each = OF_COUNTS["log-likelihood"]
    prepared = each.prepare(templates)
    batch = each.score(prepared, streams)
    assert batch.shape == (5, n)
    for row, stream in zip(batch, streams, strict=True):
        assert_array_equal(row, each.score(prepared, stream))
        assert set(row[1::2].tolist()) == {row[0]}


@pytest.mark.parametrize("name", WHOLE)
def test_a_batch_scores_like_single_streams(name, templates, heard):
    each = SIMILARITIES[name]
    prepared = each.prepare(templates)
    streams = np.stack([heard, np.zeros_like(heard), heard[::-1]])
    batch = each.score(prepared, streams)
    assert batch.shape == (3, N)
    for row, stream in zip(batch, streams, strict=True):
        assert_allclose(row, each.score(prepared, stream), rtol=1e-13)
    assert each.score(prepared, streams[:0]).shape == (0, N)


@pytest.mark.parametrize("name", WHOLE)
def test_no_frames_no_score(name, templates):
    each = SIMILARITIES[name]
    prepared = each.prepare(templates)
    for nothing in (np.zeros(M, dtype=np.int64), np.zeros((3, M))):
        scores = each.score(prepared, nothing)
        assert scores.shape == (*nothing.shape[:-1], N)
        assert not scores.any()


def test_a_voice_is_most_like_itself():
    shapes = np.array([[90, 9, 1, 0], [1, 9, 90, 0], [0, 1, 9, 90]])
    each = OF_COUNTS["log-likelihood"]
    scores = each.score(each.prepare(shapes), shapes // 3)
    assert scores.argmax(axis=1).tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", WHOLE)
def test_scores_are_finite_even_for_empty_templates_and_single_frames(name):
    each = SIMILARITIES[name]
    prepared = each.prepare(np.vstack([np.zeros((2, M)), np.eye(2, M) * 1e6]))
    assert np.isfinite(each.score(prepared, np.eye(M)[-1])).all()


def test_max_scoring_is_the_best_of_the_slices():
    generator = np.random.default_rng(2)
    slices, heard = generator.normal(size=(4, 3, 5)), generator.normal(size=(2, 5))
    largest, mean = (
        OF_VECTORS["embedding-max"],
        OF_VECTORS["embedding-cosine"],
    )
    expected = [[max(1 - cosine(h, s) for s in speaker) for speaker in slices] for h in heard]
    prepared = largest.prepare(slices)
    assert_allclose(largest.score(prepared, heard), expected)
    assert_allclose(largest.score(prepared, heard[0]), expected[0])
    one = slices[:, :1]  # one slice: nothing to choose from
    assert_allclose(
        largest.score(largest.prepare(one), heard), mean.score(mean.prepare(one[:, 0]), heard)
    )
    assert_array_equal(largest.score(prepared, np.zeros(5)), np.zeros(4))


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=7),
    st.integers(0, 2**32 - 1),
)
def test_several_templates_of_a_person_say_the_mean_of_what_each_says(owner, seed):
    mixture = SessionMixture(4, np.array(owner))
    rows = np.random.default_rng(seed).normal(0, 20, (3, mixture.rows))
    told, place = mixture.mix(rows)
    for person in range(4):
        own = [person, *(4 + k for k, whose in enumerate(owner) if whose == person)]
        expected = np.log(np.exp(rows[:, own] - 50.0).mean(axis=1)) + 50.0
        np.testing.assert_allclose(told[:, person], expected, atol=1e-9)
        assert place[:, person].tolist() == [own[k] for k in rows[:, own].argmax(axis=1)]
    scores = np.stack([rows, -rows], axis=1)
    taken = mixture.select(scores, place)
    np.testing.assert_array_equal(taken[:, 0], np.take_along_axis(rows, place, axis=1))
    np.testing.assert_array_equal(taken[:, 1], -taken[:, 0])
