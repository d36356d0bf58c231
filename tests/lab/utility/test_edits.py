"""Edit distances of words everybody knows, and the rank models of a distance."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from monitor.lab.utility import count_edits

WORDS = st.text("abc", max_size=8)


def test_edits_are_counted_as_few_as_will_do():
    assert count_edits(list("kitten"), list("sitting")) == 3
    assert count_edits([], list("abc")) == count_edits(list("abc"), []) == 3
    assert count_edits(list("abc"), list("abc")) == 0


@given(WORDS, WORDS, WORDS)
def test_it_is_a_distance(one, other, third):
    assert count_edits(one, other) == count_edits(other, one)
    assert (count_edits(one, other) == 0) == (one == other)
    assert count_edits(one, third) <= count_edits(one, other) + count_edits(other, third)
    assert abs(len(one) - len(other)) <= count_edits(one, other) <= max(len(one), len(other))
