from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.phrases import odds, plural, verdict
from monitor.sinks.summary import bits_now


@given(st.floats(1.0, 17.0), st.floats(0.0, 1.0), st.booleans())
def test_nobody_is_told_one_in_one(ceiling, share, assumed):
    said = odds(share * ceiling, ceiling, assumed=assumed)
    if said.startswith("1 in "):
        assert float(said[5:].replace(",", "")) >= 1.9


@given(st.floats(1.0, 17.0), st.floats(0.0, 1.0))
def test_a_watched_speaker_is_said_as_a_probability(ceiling, share):
    probability = 2.0 ** (share * ceiling - ceiling)
    said = odds(share * ceiling, ceiling)
    if said.startswith("1 in "):
        assert float(said[5:].replace(",", "")) == pytest.approx(1 / probability, rel=0.06)
    elif said == "over 99 % sure":
        assert probability > 0.995
    else:
        assert int(said.removesuffix(" % sure")) == pytest.approx(100 * probability, abs=0.51)


def test_the_headline_of_a_run_that_ends_near_the_ceiling():
    reading = {"bits": 5.58, "ceiling": math.log2(50), "assumes_enrolled": False}
    assert bits_now(reading) == "5.6 of 5.6 bits, 96 % sure"
    assert bits_now({**reading, "assumes_enrolled": True}) == "5.6 of 5.6 bits, only 1 left"
    assert verdict(5.58, math.log2(50), "1088") == "an attacker is 96 % sure that it is 1088"


def test_one_is_one():
    assert [plural(n, "gap") for n in (0, 1, 2)] == ["0 gaps", "1 gap", "2 gaps"]
    assert plural(1, "entry", "entries") == "1 entry"
    assert plural(2, "entry", "entries") == "2 entries"
