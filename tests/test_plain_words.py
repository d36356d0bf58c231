"""The README and its guides are for a speaker at a laptop who has not read the papers."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
OWN_PEOPLE = (ROOT / "docs" / "own-people.md").read_text(encoding="utf-8")
GUIDES = ("README", *(f"docs/{name}" for name in (
    "monitoring", "own-people", "features", "evaluate", "python", "index",
)))  # fmt: skip
MOST_WORDS = 1500
LONGEST_SENTENCE = 34
"""Words; a command, a file name or a formula is one."""
TERMS = (
    "bits of identity", "templates", "enrolled", "phones", "speaker embedding", "ceiling",
    "speech seconds",
)  # fmt: skip
LATER = ("rank law", "borrowed")
"""Terms of the page on own people."""
TWICE = (
    "law of their own", "law of its own", "is then borrowed", "score posterior", "flatters",
    "left out of the fit", "has no say", "is of one posterior", "calibration uncertainty",
    "naive sum",
)  # fmt: skip
"""Wordings that had to be read twice."""


def prose(text: str) -> str:
    """Without code, tables, pictures and headings; a link is its words, a command is one word."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    text = re.sub(r"^(\||#|!\[).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"`[^`]*`", "X", text)


def sentences(text: str) -> list[str]:
    """Of prose; a list's item and what stands between semicolons is one too."""
    parts = re.split(r"\n\s*\n|\n- |(?<=[.:;!?])\s", prose(text))
    return [" ".join(part.split()) for part in parts if part.strip()]


def test_it_does_not_grow():
    assert len(README.split()) <= MOST_WORDS


@pytest.mark.parametrize("page", GUIDES)
def test_no_sentence_is_too_long(page):
    text = (ROOT / f"{page}.md").read_text(encoding="utf-8")
    assert [s for s in sentences(text) if len(s.split()) > LONGEST_SENTENCE] == []


@pytest.mark.parametrize("page", GUIDES)
@pytest.mark.parametrize("words", TWICE)
def test_nothing_has_to_be_read_twice(page, words):
    assert words not in " ".join((ROOT / f"{page}.md").read_text(encoding="utf-8").split())


@pytest.mark.parametrize("term", [*TERMS, *LATER])
def test_a_term_is_explained_where_it_first_appears(term):
    """There it is set apart, in the sentence that says what it is."""
    text = " ".join(prose(README if term in TERMS else OWN_PEOPLE).split())
    first = text.index(term)
    apart = text[:first].endswith("*") and text[first + len(term) :].startswith("*")
    assert apart, text[max(0, first - 60) : first + 60]


def test_the_splitter_of_sentences_can_split():
    text = "One, `a b c` two.\n\n- Three [four five](x.md)\n- six: seven\n\n| a | b |\n"
    assert sentences(text) == ["One, X two.", "- Three four five", "six:", "seven"]
    assert all(a != b for a, b in pairwise(sentences(README)))
