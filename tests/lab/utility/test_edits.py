"""Edit distances of words everybody knows, and the rank models of a distance."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from monitor.lab.utility import edits

WORDS = st.text("abc", max_size=8)


def test_edits_are_counted_as_few_as_will_do():
    assert edits(list("kitten"), list("sitting")) == 3
    assert edits([], list("abc")) == edits(list("abc"), []) == 3
    assert edits(list("abc"), list("abc")) == 0


@given(WORDS, WORDS, WORDS)
def test_it_is_a_distance(one, other, third):
    assert edits(one, other) == edits(other, one)
    assert (edits(one, other) == 0) == (one == other)
    assert edits(one, third) <= edits(one, other) + edits(other, third)
    assert abs(len(one) - len(other)) <= edits(one, other) <= max(len(one), len(other))
