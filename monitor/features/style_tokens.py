"""From the words of any transcript to plain tokens: case, punctuation, tags and numbers are alike.

Recognisers and captioners write the same speech differently: ``WHAT'S``, ``What’s,``, ``what's``.
What `StyleTokens` gives is the same, so that templates and streams may come from different formats.
It knows no language; a list of words (`monitor.features.style_words`) does.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

__all__ = ["CUT_OFF", "NUMBER", "StyleTokens"]

CUT_OFF = "-"
"""The token of a word that was broken off: ``wa-``."""
NUMBER = "#"
"""The token of a number in digits."""

_APOSTROPHES = "\u2018\u2019\u201b\u02bc\u02b9\u2032\u00b4\u0060\u05f3"
_HYPHENS = "\u2010\u2011\ufe63\uff0d"
_ALIKE = str.maketrans(dict.fromkeys(_APOSTROPHES, "'") | dict.fromkeys(_HYPHENS, "-"))
_DASHES = re.compile(r"[\u2012-\u2015\u2212\u2e3a\u2e3b~]|--+|\.\.+|_")  # they part words
_CLOSES = {"[": "]", "(": ")", "<": ">", "{": "}"}
_TAG = re.compile(r"\[[^][]*\]|\([^()]*\)|<[^<>]*>|\{[^{}]*\}|\*[^\s*][^*]*\*")
_OPEN = re.compile(r"[\[(<{]")
_HESITATION = ("%hesitation", "uh")  # as NIST and some recognisers write any of them
_LONGEST_WORD = 1000
"""Letters: the rest of a longer text is no word of anybody."""
_LONGEST_TAG = 8
"""Words: a bracket that nobody closes by then was none."""


class StyleTokens:
    """Turns the texts of words, in order, into tokens.

    What stands in brackets is the transcriber's, not the speaker's, and is dropped, be it one word
    (``[noise]``) or several. Hyphens part words, but for one at a word's end, which breaks it off.

    Example:
        >>> said = StyleTokens()
        >>> [*said.push(" What’s"), *said.push("WELL-KNOWN,"), *said.push("[NOISE]")]
        ["what's", 'well', 'known']
        >>> [*said.push("I-I"), *said.push("wa-"), *said.push("1,995")]
        ['i', 'i', '-', '#']
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """The next word is the first of a recording."""
        self._closes, self._waited = "", 0  # an open bracket, and words within it

    def push(self, text: str) -> list[str]:
        """The tokens of a further word; none where it is only a mark or a tag."""
        text = text[:_LONGEST_WORD].translate(_ALIKE)  # NFKC makes a space of some apostrophes
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
        text = "".join(c for c in text if unicodedata.category(c) != "Cf")
        text = text.translate(_ALIKE).replace(*_HESITATION)
        found: list[str] = []
        for piece in self._spoken(text).split():
            found += _parts(piece)
        return found

    def _spoken(self, text: str) -> str:
        """Without tags; one may go on over several words."""
        if self._closes:
            _, closed, rest = text.partition(self._closes)
            self._waited += 1
            if not closed and self._waited < _LONGEST_TAG:
                return ""
            text, self._closes = rest if closed else text, ""
        before = None
        while before != text:  # tags within tags
            before, text = text, _TAG.sub("", text)
        opened = _OPEN.search(text)
        if opened:
            self._closes, self._waited = _CLOSES[opened[0]], 0
            text = text[: opened.start()]
        return _DASHES.sub(" ", text)


def _parts(piece: str) -> Iterator[str]:
    """The tokens of what no space parts."""
    piece = "".join(c if c in "-'" or unicodedata.category(c)[0] in "LMN" else "." for c in piece)
    piece = piece.strip(".")
    cut = piece.endswith("-") and any(c.isalpha() for c in piece)
    *whole, last = piece.rstrip("-").split("-") if piece.strip("-") else [""]
    for part in whole if cut else [*whole, last]:
        if _digits(part):
            yield NUMBER
        else:
            each_own = (each for each in part.split(".") if each.strip("'"))
            yield from (NUMBER if _digits(each) else each for each in each_own)
    if cut:
        yield CUT_OFF


def _digits(part: str) -> bool:
    return part.strip(".'")[:1].isdecimal()
