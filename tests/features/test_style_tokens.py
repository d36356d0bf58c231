"""Texts of words as different programs write them, and the tokens that they all stand for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.features.style import StyleTokens


def tokens(*words: str) -> list[str]:
    said = StyleTokens()
    return [token for word in words for token in said.push(word)]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["WHAT'S"], ["what's"]),
        ([" what\u2019s,"], ["what's"]),
        (["what\u00b4s"], ["what's"]),
        (["what`s"], ["what's"]),
        (["\uff37hat\u2019s!"], ["what's"]),  # full width
        (['"Hello,"'], ["hello"]),
        (["well-known"], ["well", "known"]),
        ([" well", "-known"], ["well", "known"]),  # as faster-whisper parts it
        (["well\u2010known"], ["well", "known"]),
        (["No\u2014I"], ["no", "i"]),
        (["no--i..."], ["no", "i"]),
        (["U.S."], ["u", "s"]),  # not the pronoun
        (["wa-"], ["-"]),
        (["I-I-w-,"], ["i", "i", "-"]),
        (["th[e]-"], ["-"]),
        (["-"], []),
        (["\u2014"], []),
        (["\u266a"], []),
        (["[noise]"], []),
        (["(laughs)", "so"], ["so"]),
        (["*coughs*", "<unk>", "{lg}"], []),
        (["<|0.00|>", "so<|2.00|>"], ["so"]),
        (["[background", "noise]", "so"], ["so"]),
        (["20", "$5", "1,995", "10:30", "3.5%", "21st", "'90s"], ["#"] * 7),
        (["20-year"], ["#", "year"]),
        (["mp3", "v1.5"], ["mp3", "v1", "#"]),
        (["so\u00adber", "a\u200bb"], ["sober", "ab"]),  # what nobody sees
        (["STRASSE", "stra\u00dfe"], ["strasse", "strasse"]),
        (["\u0939\u093f\u0928\u094d\u0926\u0940"], ["\u0939\u093f\u0928\u094d\u0926\u0940"]),
        (["%HESITATION", "%um"], ["uh", "um"]),
        (["((", "i", "think", "))", "so"], ["so"]),  # what the transcriber only guessed
        (["background noise"], ["background", "noise"]),
        ([""], []),
    ],
)
def test_what_is_written_differently_is_the_same(words, expected):
    assert tokens(*words) == expected


def test_a_bracket_that_nobody_closes_takes_eight_words_at_most():
    assert tokens("(so", *"abcdefghij") == list("hij")


def test_a_bracket_ends_with_its_recording():
    said = StyleTokens()
    said.push("[so")
    said.reset()
    assert said.push("well") == ["well"]


plain = st.text(st.characters(categories=["Ll"], max_codepoint=0x24F), min_size=1, max_size=9)


@given(
    words=st.lists(plain, max_size=8),
    before=st.sampled_from(["", " ", '"', "\u201c", "\u2026 ", "\u00bf", "- ", "\u266a "]),
    after=st.sampled_from(["", ",", ".", "?!", " ", "\u201d", "\u2026", ";", ":", "\u3002"]),
    upper=st.booleans(),
)
def test_case_and_punctuation_change_nothing(words, before, after, upper):
    written = [before + (word.upper() if upper else word) + after for word in words]
    assert tokens(*written) == tokens(*(word.upper() if upper else word for word in words))
    if not upper:
        assert tokens(*written) == tokens(*(word.title() for word in words)) or any(
            word.title().casefold() != word.casefold() for word in words
        )


@given(st.lists(st.text(max_size=12), max_size=12))
def test_tokens_of_anything_are_clean_and_stay_what_they_are(words):
    found = tokens(*words)
    assert all(token and token == token.casefold() and not token.isspace() for token in found)
    assert all(c.isalnum() or c in "-'#" or not c.isascii() for token in found for c in token)
    assert tokens(*(t for t in found if t not in "-#")) == [t for t in found if t not in "-#"]
