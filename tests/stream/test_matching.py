"""Voices matched to people one to one: the best of all matches, and how sure each is."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from monitor.stream.people import one_to_one

SHARES = st.tuples(st.integers(1, 4), st.integers(1, 4)).flatmap(
    lambda shape: arrays(float, shape, elements=st.floats(0.001, 1.0)).map(
        lambda rows: rows / (rows.sum(axis=1, keepdims=True) + 0.3)
    )
)


def likelihood(shares, match):
    nobody = 1 - shares.sum(axis=1)
    return np.prod([nobody[v] if p is None else shares[v, p] for v, p in enumerate(match)])


@given(SHARES)
def test_no_other_match_is_likelier(shares):
    voices, people = shares.shape
    found = [person for person, _ in one_to_one(shares)]
    named = [person for person in found if person is not None]
    assert len({*named}) == len(named)
    best = max(
        likelihood(shares, match)
        for match in itertools.product([None, *range(people)], repeat=voices)
        if len({*match} - {None}) == sum(person is not None for person in match)
    )
    assert likelihood(shares, found) == pytest.approx(best)


@given(SHARES)
def test_the_probability_is_bayes_over_what_the_others_leave(shares):
    found = one_to_one(shares)
    for voice, (person, probability) in enumerate(found):
        others = {other for k, (other, _) in enumerate(found) if k != voice} - {None}
        free = [j for j in range(shares.shape[1]) if j not in others]
        total = shares[voice, free].sum() + 1 - shares[voice].sum()
        own = 1 - shares[voice].sum() if person is None else shares[voice, person]
        assert probability == pytest.approx(own / total)


def test_a_voice_that_is_certainly_nobody_and_two_that_are_certainly_one():
    assert one_to_one(np.zeros((1, 3)))[0] == (None, 1.0)
    both = one_to_one(np.array([[1.0, 0.0], [1.0, 0.0]]))
    assert {person for person, _ in both} in ({0, None}, {0, 1})
    assert min(probability for _, probability in both) == 0.0  # one of the two is a contradiction
