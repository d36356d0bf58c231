"""Evidence in words: for somebody who has not read the papers, and whom they must not mislead."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.crowds import SCALE, crowd_of, rounded, sizes
from monitor.errors import UsageError
from monitor.events.phrases import CHANGED, best_match, format_matches, narrowed_sentence
from tests.records import event


def reading(bits, people=10**6, spread=1.0, **more):
    entry = {"people": people, "bits": bits, "bits_low": bits - spread, "bits_high": bits + spread}
    return {"bits": bits, "headline": "evidence", "at_least": False, "among": [entry], **more}


@given(st.floats(-30, 19.9), st.sampled_from([50, 10**4, 10**6, 8 * 10**9]), st.booleans())
def test_every_sentence_is_one_that_claims_no_certainty(bits, people, clipped):
    said = narrowed_sentence(event(reading(bits, people, at_least=clipped)), "ann")
    assert not re.search(r"\b1 people|  |None|nan|\b0 people|e\+", said)
    assert "ann" in said
    assert "certain" not in said
    assert len(said) <= 110
    assert (crowd_of(people) in said) == (bits > -0.05)


@given(st.floats(1, 1e10))
def test_rough_numbers_are_not_off_by_more_than_a_quarter(count):
    words = {"a": 1.0, "ten": 10.0, "hundred": 100.0}
    scales = {"thousand": 1e3, "million": 1e6, "billion": 1e9}
    value = 1.0
    for word in rounded(count).split():
        value *= scales.get(word) or words.get(word) or float(word.replace(",", ""))
    if count >= 10:
        assert 0.8 <= value / count <= 1.25
    else:
        assert abs(value - count) <= 0.5


@pytest.mark.parametrize(
    ("told", "watch", "sentence"),
    [
        (reading(11.3), "me", "about 400 people in a city of a million match as well as you"),
        (reading(14.2, at_least=True), "4088",
         "about 50 people or fewer in a city of a million match as well as 4088"),
        (reading(11.3, spread=2.0), "4088",
         "between 100 and 1,600 people in a city of a million match as well as 4088"),
        (reading(1.5, spread=2.0), "4088",
         "about 400,000 people, perhaps all, in a city of a million match as well as 4088"),
        (reading(13.2, 10**4), "4088", "hardly anybody but 4088 matches in a town of ten thousand"),
        (reading(0.0, 50), "me",
         "no evidence yet: anybody in an office of 50 matches as well as you"),
        (reading(-1.0), "4088", "this voice is evidence against 4088"),
        (reading(-3.0), "4088", f"this voice is evidence against 4088: {CHANGED}"),
        ({**reading(3.0), "among": None}, "4088", ""),
        ({}, "4088", ""),
    ],
)  # fmt: skip
def test_what_the_evidence_says_in_each_case(told, watch, sentence):
    assert narrowed_sentence(event(told), watch) == sentence


def test_few_words_for_a_line():
    assert format_matches(event(reading(11.3))) == "about 400 in a million"
    assert format_matches(event(reading(14.2, at_least=True))) == "at most 50 in a million"
    assert format_matches(event({"among": []})) == ""


def test_nobody_watched_is_a_chance_and_no_evidence():
    entry = {"people": 10**6, "bits": 0.01, "favourite": ["ann", 1e-6]}
    assert best_match(event({"among": [entry]}), 50).startswith(
        "in a city of a million: 1 in a million "
    )


def test_the_scale_grows_and_each_crowd_is_named_by_itself():
    assert [crowd.name for crowd in SCALE][:2] == ["household", "office"]
    assert sorted(crowd.size for crowd in SCALE) == [crowd.size for crowd in SCALE]
    for crowd in SCALE:
        assert f" {crowd.name} of " in crowd_of(crowd.size)
        assert crowd.bits == math.log2(crowd.size)


@pytest.mark.parametrize("asked", [[1], [0.5], [1e11], [math.inf], [-50], []])
def test_sizes_that_are_none(asked):
    with pytest.raises(UsageError) as caught:
        sizes(asked)
    assert "such as 1e" in str(caught.value)
    assert "\n" not in str(caught.value)
