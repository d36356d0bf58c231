from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor import phrases
from monitor.events import phrases as event_phrases
from monitor.events.declaration import decode
from monitor.events.phrases import bits_now
from monitor.events.reading import Reading
from monitor.events.run import Change, DelayRow, LevelReached, RunStart
from monitor.phrases import odds, plural, verdict
from tests.records import event


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
    assert bits_now(event(reading)) == "5.6 of 5.6 bits, 96 % sure"
    assert bits_now(event({**reading, "assumes_enrolled": True})) == "5.6 of 5.6 bits, only 1 left"
    assert verdict(5.58, math.log2(50), "1088") == "the attacker is 96 % sure that it is 1088"


def test_one_is_one():
    assert [plural(n, "gap") for n in (0, 1, 2)] == ["0 gaps", "1 gap", "2 gaps"]
    assert plural(1, "entry", "entries") == "1 entry"
    assert plural(2, "entry", "entries") == "2 entries"


CROSSED = LevelReached(24.0, 3.0, "protected", 19.0, 15.0)
ROW = decode(DelayRow, {
    "bits": 2.0, "clear": {"seconds": 4.0, "crossed": True}, "delay_seconds": 56.0,
    "at_least": True, "protected": {"seconds": 60.0, "crossed": False},
})  # fmt: skip
BACK = Change(9.0, 9.0, ("f0",), 0.1, 0.2, back=True)
ATTACKED = {"by": "ignorant", "attackers": {"ignorant": {}}}
PROMISE = {"windows": 250, "basic_nats": 25.0, "optimal_nats": 6.27, "advanced_nats": None}


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("clock_time", (3661.5,), "1:01:01"),
        ("length_in_words", (600.0,), "10 minutes"),
        ("length_in_words", (0.5,), "0.5 seconds"),
        ("percent", (0.125,), "12.5 %"),
        ("usable_in_words", ("f0", 8.8), "8.8 s voiced"),
        ("voice_since", (BACK,), "the first voice is back since 0:09"),
        ("enrolment", (event({"enrolled": 0.998}),), "over 99 % likely"),
        ("enrolment", (event({"enrolled": None, "enrolled_withheld": "a; b"}),), "not known: b"),
        ("crossing_words", (CROSSED,), "were reached through the anonymiser at 0:19: 15 s later"),
        ("delay_cells", (ROW,), ("2 bits", "0:04", "not by 1:00", "at least 56 s")),
        ("allowed_in_words", (54100.7,), "54,101 bits"),
        ("poor_in_words", (["clipping"], {"clipping": 0.02}),
         "Speech is 2 % clipped. Bits may read too low. Lower the input level."),
        ("composed_in_words",
         (RunStart.from_record({"declared": {"epsilon_nats": 0.1, "delta": 1e-4}}),
          Reading.from_record({"declared": PROMISE})),
         "250 times epsilon 0.1 are 25 together, 6.27 by optimal composition (delta 0.0001)"),
        ("attacker_of", (event({"protected": ATTACKED}),),
         "an attacker who does not know the anonymiser: no measure of protection"),
    ],
)  # fmt: skip
def test_figures_as_people_read_them(name, arguments, words):
    home = phrases if hasattr(phrases, name) else event_phrases
    assert getattr(home, name)(*arguments) == words
