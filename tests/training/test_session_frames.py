from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from monitor.errors import UsageError
from monitor.kinds import EMBEDDING, HISTOGRAM, FeatureSpec
from monitor.maths.scores import EmbeddingSum, Histogram
from monitor.training.voices import SessionFrames, join
from monitor.types import EarlyFrames


def bins(size):
    return FeatureSpec("x", HISTOGRAM, size, 0.1)


@st.composite
def sessions(draw, embeddings=False):
    length = draw(st.integers(1, 25))
    where = sorted(draw(st.lists(st.integers(0, length - 1), max_size=40)))
    generator = np.random.default_rng(draw(st.integers(0, 2**31)))
    shape = (len(where), 4) if embeddings else (len(where),)
    values = generator.normal(size=shape) if embeddings else generator.integers(0, 4, shape)
    spec = FeatureSpec("x", EMBEDDING if embeddings else HISTOGRAM, 4, 0.1)
    return SessionFrames(values, np.array(where, dtype=np.int64), length, spec)


def naive(session, start, length, sketch):
    """Frame by frame, unit by unit."""
    for step in range(length):
        unit = (start + step) % session.length
        for value, where in zip(session.values, session.units, strict=True):
            if where == unit:
                sketch.learn_one(value)
    return sketch.total


@given(sessions(), st.integers(0, 60), st.data())
def test_circular_counts_equal_the_naive_loop(session, start, data):
    length = data.draw(st.integers(0, session.length))
    total = session.total(start, length)
    assert total.shape == (4,)
    assert total.dtype == np.int64
    assert_array_equal(total, naive(session, start, length, Histogram(4)))


@given(sessions(embeddings=True), st.integers(0, 60), st.data())
def test_circular_sums_of_embeddings_equal_the_naive_loop(session, start, data):
    length = data.draw(st.integers(0, session.length))
    expected = naive(session, start, length, EmbeddingSum(4))
    assert_allclose(session.total(start, length), expected, atol=1e-12)


@given(sessions(), st.integers(0, 24))
def test_a_test_and_the_rest_make_the_whole(session, start):
    test = session.length // 2
    rest = session.total(start + test, session.length - test)
    assert_array_equal(session.total(start, test) + rest, session.total(0, session.length))


def test_embeddings_without_direction_are_dropped():
    values = np.array([[0.0, 0], [np.nan, 1], [np.inf, 1], [1e200, 1], [3, 4]])
    session = SessionFrames(values, np.arange(5), 5, FeatureSpec("x", EMBEDDING, 2, 0.1))
    assert_allclose(session.total(0, 5), [3, 4])


def test_a_window_longer_than_the_session_is_refused():
    session = SessionFrames(np.array([0, 1]), np.array([0, 1]), 2, bins(2))
    with pytest.raises(UsageError, match="2 units has no window of 3"):
        session.total(0, 3)


def test_a_frame_that_began_before_the_window_is_not_heard():
    session = SessionFrames(
        np.array([0, 1, 2, 3]), np.array([2, 5, 5, 8]), 9, bins(4), np.array([0, 1, 4, 6])
    )
    assert_array_equal(session.total(0, 9), [1, 1, 1, 1])
    assert_array_equal(session.total(4, 5), [0, 0, 1, 1])
    assert_array_equal(session.total(4, 2), [0, 0, 1, 0])
    assert_array_equal(session.total(6, 6), [1, 0, 0, 1])  # round the end, and from 0 again


@given(st.integers(0, 89), st.integers(0, 90))
def test_long_frames_are_as_many_as_a_listener_would_have(start, length):
    ends, spec = np.arange(29, 90, 30), FeatureSpec("x", EMBEDDING, 3, 3.0)
    session = SessionFrames(np.eye(3), ends, 90, spec, span=30)
    total = session.total(start, length)
    assert total.sum() == length // 30
    assert total.max(initial=0) <= 1


def test_a_test_shorter_than_a_window_takes_the_next_early_frame():
    spec = FeatureSpec("x", EMBEDDING, 2, 3.0)
    values = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
    early = EarlyFrames(np.array([9, 19, 99, 109]), values, np.array([1, 2, 1, 2]))
    session = SessionFrames(
        np.full((4, 2), 0.8), np.arange(29, 120, 30), 120, spec, None, 30, early
    )

    def at(start, length):
        return session.total(start, length).round(3).tolist()

    assert at(0, 10) == [1.0, 0.0]
    assert at(0, 19) == [1.0, 0.0]
    assert at(0, 20) == [0.0, 1.0]
    assert at(1, 20) == [0.5, 0.5]  # the window that begins at 90
    assert at(91, 29) == [0.0, 1.0]  # and around the end
    assert at(91, 10) == [1.0, 0.0]
    assert at(0, 9) == [0.0, 0.0]
    assert_array_equal(session.total(0, 30), replace(session, early=None).total(0, 30))
    late = replace(session, units=session.units + 1)  # a window that ends a tenth late
    assert late.total(0, 30).round(3).tolist() == [0.0, 1.0]
    # beside one window (0.8, 0.8) the next of what is left, by its seconds
    assert at(0, 45) == [1.133, 0.8]
    assert at(0, 50) == [1.133, 1.133]
    twice = join([session, session]).early
    assert twice is not None
    assert twice.ticks.tolist() == [9, 19, 99, 109, 129, 139, 219, 229]
