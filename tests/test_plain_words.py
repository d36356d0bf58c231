"""The README and the page on own people explain each term where it first appears."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
OWN_PEOPLE = (ROOT / "docs" / "own-people.md").read_text(encoding="utf-8")
TERMS = (
    "bits of identity", "templates", "enrolled", "phones", "speaker embedding", "ceiling",
    "speech seconds",
)  # fmt: skip
LATER = ("rank model", "mismatched")
"""Terms of the page on own people."""


def prose(text: str) -> str:
    """Without code, tables, pictures and headings; a link is its words, a command is one word."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    text = re.sub(r"^(\||#|!\[).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"`[^`]*`", "X", text)


@pytest.mark.parametrize("term", [*TERMS, *LATER])
def test_a_term_is_explained_where_it_first_appears(term):
    """There it is set apart, in the sentence that says what it is."""
    text = " ".join(prose(README if term in TERMS else OWN_PEOPLE).split())
    first = text.index(term)
    apart = text[:first].endswith("*") and text[first + len(term) :].startswith("*")
    assert apart, text[max(0, first - 60) : first + 60]
