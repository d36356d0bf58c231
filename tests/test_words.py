"""Figures and evidence in words, for who must not be misled; errors, and what they name."""

import math
import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor import errors, how_much, phrases
from monitor.cli.options import in_options
from monitor.crowds import crowd_of, rounded, sizes
from monitor.errors import Argument, Message, MonitorError, UsageError
from monitor.events import phrases as event_phrases
from monitor.events.declaration import decode
from monitor.events.phrases import CHANGED, bits_now, narrowed_sentence
from monitor.events.reading import Reading
from monitor.events.run import Change, DelayRow, LevelReached, RunStart
from monitor.phrases import odds, verdict
from tests.records import event

# -------------------------------------------------------------------------------- closed-set bits


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
        ("rough_time", (59.0,), "less than 1 min"),
        ("rough_time", (700.0,), "about 12 min"),
        ("rough_time", (9000.0,), "about 2.5 h"),
        ("percent", (0.125,), "12.5 %"),
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


# -------------------------------------------------------------------------------------- evidence


def told(bits, people=10**6, spread=1.0, **more):
    entry = {"people": people, "bits": bits, "bits_low": bits - spread, "bits_high": bits + spread}
    return {"bits": bits, "headline": "evidence", "at_least": False, "among": [entry], **more}


@given(st.floats(-30, 19.9), st.sampled_from([50, 10**4, 10**6, 8 * 10**9]), st.booleans())
def test_every_sentence_is_one_that_claims_no_certainty(bits, people, clipped):
    said = narrowed_sentence(event(told(bits, people, at_least=clipped)), "ann")
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
    ("reading", "watch", "sentence"),
    [
        (told(11.3), "me", "about 400 people in a city of a million match as well as you"),
        (told(14.2, at_least=True), "4088",
         "at most 50 people in a city of a million match as well as 4088"),
        (told(11.3, spread=2.0), "4088",
         "between 100 and 1,600 people in a city of a million match as well as 4088"),
        (told(1.5, spread=2.0), "4088",
         "about 400,000 people, perhaps all, in a city of a million match as well as 4088"),
        (told(13.2, 10**4), "4088", "hardly anyone but 4088 matches in a town of ten thousand"),
        (told(0.0, 50), "me",
         "no evidence yet: everyone in an office of 50 matches as well as you"),
        (told(-1.0), "4088", "this voice is evidence against 4088"),
        (told(-3.0), "4088", f"this voice is evidence against 4088: {CHANGED}"),
        ({**told(3.0), "among": None}, "4088", ""),
        ({}, "4088", ""),
    ],
)  # fmt: skip
def test_what_the_evidence_says_in_each_case(reading, watch, sentence):
    assert narrowed_sentence(event(reading), watch) == sentence


# ---------------------------------------------------------------------------- how much is much


@pytest.mark.parametrize("purpose", [p for p in how_much.PURPOSES if p.people])
def test_at_the_threshold_of_a_purpose_two_or_three_of_its_crowd_match(purpose):
    """The next whole bit would leave fewer than two: the speaker alone."""
    assert 2 <= purpose.people / 2**purpose.bits < 4
    assert purpose.bits < 13.7, "an alert beyond what calibration supports is never raised"


def test_the_guide_fits_a_terminal_and_says_what_markdown_says():
    text, markdown = "\n".join(how_much.to_text()), how_much.to_markdown()
    assert max(map(len, text.splitlines())) <= 80
    for table in how_much.tables():
        for cell in {cell for row in table.rows for cell in row}:
            assert cell in text
            assert cell in markdown
    assert " ".join(text.split()).endswith(how_much.ADVICE[-1])
    assert markdown.endswith(how_much.ADVICE[-1])


def test_bits_as_people():
    rows = {row[0]: row[1:] for row in how_much.tables()[0].rows}
    assert rows["6"] == ("1 in 64", "an office of 64", "16,000")
    assert rows["10"] == ("1 in 1,000", "a village of a thousand", "1,000")


# ---------------------------------------------------------------------------- errors and reasons


@pytest.mark.parametrize("asked", [[1], [1e11], [math.inf], []])
def test_sizes_that_are_none(asked):
    with pytest.raises(UsageError, match="such as 1e"):
        sizes(asked)


def test_every_error_has_a_code_of_its_own_below_that_of_its_base():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    raised = [kind for kind in kinds if issubclass(kind, MonitorError)]
    codes = [kind.code for kind in raised]
    assert len(set(codes)) == len(codes) == len(errors.__all__) - 2
    for kind in raised:
        for base in kind.__mro__[1:]:
            assert not issubclass(base, MonitorError) or kind.code.startswith(base.code)


def test_a_message_names_options_on_the_command_line_even_from_another_process():
    replace = Argument("replace", "True", "LogFile(path, replace=True)")
    error = UsageError(
        Message("watch=me.wav is there: name one with ", Argument("watch"), " or ", replace)
    )
    said = "watch=me.wav is there: name one with watch= or LogFile(path, replace=True)"
    for each in (error, pickle.loads(pickle.dumps(error))):
        assert str(each) == said
        assert in_options(each) == "watch=me.wav is there: name one with --watch or --replace"
    assert in_options(UsageError("watch=me.wav is no name")) == "watch=me.wav is no name"
