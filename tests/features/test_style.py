"""Little words to frames: by hand, and by properties."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.features.style import Style
from monitor.types import Words


def said(text: str, every: int = 30) -> Words:
    texts = tuple(text.split())
    begins = every * np.arange(len(texts))
    return Words(texts, begins, begins + every, begins + every)


def bins(text: str, style: Style | None = None) -> list[str]:
    style = style or Style()
    return [style.bins[place] for place in style.process(said(text)).values]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The moon, I s- I said", "the (other) i (broken off) i (other)"),
        ("what's WHAT\u2019S what 's", "what 's " * 3),
        ("Quilter's Quilter 's moon", "(other) (repeated) (other)"),
        ("don't do n't can't cannot", "do n't do n't can n't can not"),
        ("who'd've", "who 'd 've"),
        ("uh, um... uhm ummm er", "uh um (other) um uh"),
        ("I I-I am", "i (repeated) (repeated) am"),
        ("no no moon moon", "no (repeated) (other) (repeated)"),
        ("21 twenty-one [noise] 1", "number"),
        ("in 1995 nineteen ninety five", "in number"),
        ("sooo", "so"),
        ("'em 'tis 'hello'", "them it is hello"),
        ("'s", ""),
    ],
)
def test_each_word_counts_in_its_bin(text, expected):
    assert " ".join(bins(text)) == expected.strip()
