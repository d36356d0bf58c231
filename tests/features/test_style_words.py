"""Lists of words: the English one, those of others, and what is none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.errors import UsageError
from monitor.features.style import Style, StyleTokens, StyleWords, english, read_style_words


def bins(words: StyleWords, *texts: str) -> list[str | None]:
    tokens = StyleTokens()
    units = [u for text in texts for token in tokens.push(text) for u in words.units(token)]
    return [None if unit.place is None else words.bins[unit.place] for unit in units]


FRENCH = """
# elisions and the rest
l'
article le la les
c'
est
ne
negation pas point   # two of them
qu'
number deux
"""


def test_another_language_is_told_by_its_list():
    words = StyleWords(FRENCH)
    found = bins(words, "C\u2019est", "l'homme", "QU'", "la", "point", "2", "L'")
    assert found == ["c'", "est", "l'", None, "qu'", "article", "negation", "number", "l'"]
    assert words.bins == ("l'", "article", "c'", "est", "ne", "negation", "qu'", "number")


PAGE = Path(__file__).resolve().parents[2] / "docs" / "features.md"


def test_the_page_says_how_many_bins_there_are():
    assert f"in {Style().spec.size} bins" in PAGE.read_text("utf-8")


def test_the_list_on_the_page_is_one():
    (text,) = re.findall(r"^```\n(le\n.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    words = StyleWords(text)
    found = bins(words, "L\u2019homme", "pas", "3", "LE", "puis")
    assert found == ["l'", None, "negation", "number", "le", None]


@pytest.mark.parametrize("line", ["un", "zwei W\u00d6RTER", "a = b", "class x y z"])
def test_every_line_changes_the_mark(line):
    assert StyleWords("und\n" + line).mark != StyleWords("und").mark


def test_what_changes_nothing_leaves_the_mark():
    assert StyleWords("UND  # and\n\n").mark == StyleWords("und").mark


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no words"),
        ("# nothing", "has no words"),
        ("und\nder\nsich und", "line 3: 'und' is there twice"),
        ("uh-huh", "line 1: 'uh-huh' is more than one word"),
        ("21", "line 1: '21' is no word"),
        ("...", "line 1: '...' is no word"),
        ("a b = c", "line 1: a line is WORD"),
        ("a =", "line 1: a line is WORD"),
        ("a = b = c", "line 1: a line is WORD"),
    ],
)
def test_what_is_no_list_is_refused_in_a_line(text, said):
    with pytest.raises(UsageError, match=r"list\.txt") as caught:
        StyleWords(text, "list.txt")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_list_comes_from_a_file(tmp_path):
    path = tmp_path / "deutsch.txt"
    path.write_bytes("\ufeffund\nartikel der die das\n".encode())
    assert bins(read_style_words(path), "Die", "und", "Haus") == ["artikel", "und", None]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (None, "No such file"),
        ("\u00fcber".encode("latin-1"), "it is no UTF-8 text"),
        (b"", "has no words"),
        (b"a\n" * 600_000, "more than 1 MB"),
        ("\n".join(f"w{i:x}z" for i in range(20_001)).encode(), "more than 20000 words"),
    ],
)
def test_a_file_that_is_no_list_is_refused_in_a_line(tmp_path, data, said):
    path = tmp_path / "list.txt"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(UsageError, match=said) as caught:
        read_style_words(path)
    assert "list.txt" in str(caught.value)
    assert str(tmp_path) not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_english_list_finds_all_that_it_names():
    words = english()
    assert english() is words
    for name, texts in {
        "the": "THE", "number": "seven 7 hundred", "n't": "n't", "um": "um ummmm uhm",
        "gonna": "gonna ain't", "'s": "'s \u2019s", "self": "mine himself", "you": "you y'all",
    }.items():  # fmt: skip
        assert {*bins(words, *texts.split())} == {name}, name
    for text, expected in {
        "can't": ["can", "n't"], "won't": ["will", "n't"], "let's": ["let", "'s"],
        "shouldn't've": ["should", "n't", "'ve"], "'Twas": ["it", "was"], "cannot": ["can", "not"],
        "alright": ["all", "right"], "o'clock": [None], "ma'am": [None], "mm-hmm": ["mm", "mm"],
    }.items():  # fmt: skip
        assert bins(words, text) == expected, text


@given(st.text(max_size=20))
def test_any_text_is_found_or_not_in_finite_time(text):
    bins(english(), text)
