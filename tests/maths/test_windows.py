from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from monitor.errors import UsageError
from monitor.maths.sketch import EmbeddingSum, Histogram
from monitor.maths.windows import SessionFrames, window_starts

LONGEST = 20


def units(start, length, available):
    return {(start + i) % available for i in range(length)}


def distance(test, template, available):
    """Fewest steps, either way around, from a unit of one to a unit of the other."""
    return min(min((a - b) % available, (b - a) % available) for a in test for b in template)


def settings(available):
    """Every (T, D, S) that fits."""
    for test, template in product(range(1, available), repeat=2):
        if test + template <= available:
            yield from ((test, template, start) for start in range(available))


def test_test_and_template_never_overlap_and_lie_as_far_apart_as_they_can():
    count = 0
    for available in range(2, LONGEST + 1):
        for test, template, start in settings(available):
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

    overlaps = [bool(printed(s, t, d)) for t, d, s in settings(LONGEST)]
    assert (sum(overlaps), len(overlaps)) == (1755, 3800)


@pytest.mark.parametrize(("test", "template"), [(6, 5), (0, 4), (4, 0), (-1, 4)])
def test_what_does_not_fit_is_refused(test, template):
    with pytest.raises(UsageError, match="do not fit into 10"):
        window_starts(0, test, template, 10)


@st.composite
def sessions(draw, embeddings=False):
    length = draw(st.integers(1, 25))
    where = sorted(draw(st.lists(st.integers(0, length - 1), max_size=40)))
    generator = np.random.default_rng(draw(st.integers(0, 2**31)))
    shape = (len(where), 4) if embeddings else (len(where),)
    values = generator.normal(size=shape) if embeddings else generator.integers(0, 4, shape)
    return SessionFrames(values, np.array(where, dtype=np.int64), length, 4)


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
    values = np.array([[0.0, 0], [np.nan, 1], [np.inf, 1], [3, 4]])
    session = SessionFrames(values, np.arange(4), 4, 2)
    assert_allclose(session.total(0, 4), [0.6, 0.8])


def test_a_window_longer_than_the_session_is_refused():
    session = SessionFrames(np.array([0, 1]), np.array([0, 1]), 2, 2)
    with pytest.raises(UsageError, match="2 units has no window of 3"):
        session.total(0, 3)


def test_a_frame_that_began_before_the_window_is_not_heard():
    session = SessionFrames(
        np.array([0, 1, 2, 3]), np.array([2, 5, 5, 8]), 9, 4, np.array([0, 1, 4, 6])
    )
    assert_array_equal(session.total(0, 9), [1, 1, 1, 1])
    assert_array_equal(session.total(4, 5), [0, 0, 1, 1])
    assert_array_equal(session.total(4, 2), [0, 0, 1, 0])
    assert_array_equal(session.total(6, 6), [1, 0, 0, 1])  # round the end, and from 0 again


@given(st.integers(0, 89), st.integers(0, 90))
def test_long_frames_are_as_many_as_a_listener_would_have(start, length):
    ends = np.arange(29, 90, 30)
    session = SessionFrames(np.eye(3), ends, 90, 3, span=30)
    total = session.total(start, length)
    assert total.sum() == length // 30
    assert total.max(initial=0) <= 1
