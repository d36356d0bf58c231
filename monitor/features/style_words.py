"""Lists of little words, which tell how somebody speaks and not what about, and their bins.

The English one of the package is ``style_english.txt``, written by us; one of another language is a
file of the user's, of the same form.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from monitor.errors import UsageError
from monitor.features.style_tokens import CUT_OFF, NUMBER, StyleTokens

__all__ = ["NUMBERS", "StyleWords", "english", "read_style_words"]

NUMBERS = "number"
"""The class of numbers: those in digits count in it, and neighbours count once."""
_RUN = re.compile(r"(.)\1{2,}")
_LONGEST = 64
"""Letters of a word: the rest of a longer one makes no difference."""
_MOST_WORDS = 20_000
_MOST_BYTES = 1 << 20
_FORM = "a line is WORD, CLASS WORD..., or VARIANT = WORD..."


class Unit(NamedTuple):
    """A word as it is counted.

    Attributes:
        text: what it is, for repetitions and for how many different words there are.
        place: of its bin among those of the list; None where the list does not have it.
        leans: whether it is the end of the word before it (``'s``): it counts only after a word of
            the list.
    """

    text: str
    place: int | None
    leans: bool = False


class StyleWords:
    r"""A list of words, and how tokens are found in it.

    A word that begins with an apostrophe, or is ``n't``, is split off the end of longer ones
    (``what's`` is ``what`` and ``'s``); one that ends with an apostrophe off their beginning
    (``l'homme``).

    Args:
        text: its lines. ``WORD`` has a bin of its own; ``CLASS WORD...`` share one, named by the
            class; ``VARIANT = WORD...`` is counted as those words. A ``#`` begins a comment.
        label: what to call it in messages.

    Attributes:
        bins: the names of its bins, in order.
        mark: sha256 of all that makes a difference.

    Raises:
        UsageError: it is no such list; the message names the line.

    Example:
        >>> words = StyleWords("the\nbe is are\n's\nain't = is not\nnot")
        >>> words.bins
        ('the', 'be', "'s", 'not')
        >>> [unit.text for unit in words.units("ain't")], words.units("moon")[0].place
        (['is', 'not'], None)
    """

    def __init__(self, text: str, label: str = "the list of words") -> None:
        self._places: dict[str, int] = {}
        self._variants: dict[str, list[str]] = {}
        bins: dict[str, int] = {}
        for number, line in enumerate(text.splitlines(), 1):
            content = line.split("#", 1)[0]
            if content.strip():
                self._learn(content, bins, f"{label} line {number}")
        if not self._places:
            raise UsageError(f"{label} has no words: {_FORM}")
        if len(self._places) > _MOST_WORDS:
            raise UsageError(f"{label} has more than {_MOST_WORDS} words: it is no list of classes")
        self.bins = tuple(bins)
        self._number = bins.get(NUMBERS)
        own = list(self._places)
        self._ends = _longest_first(w for w in own if w[0] == "'" or w == "n't")
        self._begins = _longest_first(w for w in own if w[-1] == "'")
        plain = [self.bins, sorted(self._places.items()), sorted(self._variants.items())]
        self.mark = hashlib.sha256(repr(plain).encode()).hexdigest()

    def _learn(self, line: str, bins: dict[str, int], where: str) -> None:
        left, equals, right = line.partition("=")
        said = left.split()
        if equals:
            if len(said) != 1 or not right.strip() or "=" in right:
                raise UsageError(f"{where}: {_FORM}")
            self._variants[_word(said[0], where)] = [_word(e, where) for e in right.split()]
            return
        words = [_word(each, where) for each in said[1:] or said]
        place = bins.setdefault(said[0] if len(said) > 1 else words[0], len(bins))
        for word in words:
            if self._places.setdefault(word, place) != place:
                raise UsageError(f"{where}: {word!r} is there twice")

    def units(self, token: str) -> list[Unit]:
        """What a token of `StyleTokens` is counted as, in order."""
        token = token[:_LONGEST]
        if token in (NUMBER, CUT_OFF):
            return [Unit(token, self._number if token == NUMBER else None)]
        found = self._whole(token)
        if found is not None:
            return found
        for end in self._ends:
            if token.endswith(end) and len(token) > len(end):
                return [*self.units(token[: -len(end)]), self._unit(end)]
        for begin in self._begins:
            if token.startswith(begin) and token[len(begin) :].strip("'"):
                return [self._unit(begin), *self.units(token[len(begin) :])]
        bare = token.strip("'")
        return self._lengthened(bare) or [Unit(bare, None)]

    def _whole(self, token: str) -> list[Unit] | None:
        for each in (token, token.strip("'")):
            if each in self._variants:
                return [self._unit(word) for word in self._variants[each]]
            if each in self._places:
                return [self._unit(each)]
        return None

    def _lengthened(self, word: str) -> list[Unit] | None:
        """``sooo`` is ``so``, where the list has it."""
        for kept in (r"\1\1", r"\1"):
            shorter = _RUN.sub(kept, word)
            if shorter != word and (found := self._whole(shorter)):
                return found
        return None

    def _unit(self, word: str) -> Unit:
        return Unit(word, self._places.get(word), word in self._ends)

    def is_number(self, unit: Unit) -> bool:
        """Whether it is a number, in digits or in words."""
        return unit.text == NUMBER or (unit.place is not None and unit.place == self._number)


def _longest_first(words: Iterable[str]) -> dict[str, None]:
    return dict.fromkeys(sorted(words, key=len, reverse=True))


def _word(text: str, where: str) -> str:
    """A word of a list, written as tokens are.

    Raises:
        UsageError: it could never be met with.
    """
    tokens = StyleTokens().push(text)
    if len(tokens) > 1:
        raise UsageError(f"{where}: {text!r} is more than one word, write its parts")
    if not tokens or tokens[0] in (CUT_OFF, NUMBER):
        raise UsageError(f"{where}: {text!r} is no word")
    return tokens[0]


def read_style_words(path: str | os.PathLike[str]) -> StyleWords:
    """A list of words from a file of UTF-8 text; `StyleWords` says what its lines are.

    Raises:
        UsageError: it cannot be read, or is no such list; the message names the line.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise UsageError(f"{path.name} is longer than a list of words: more than 1 MB")
        text = data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no UTF-8 text"
        raise UsageError(f"cannot read the words of {path.name}: {reason}") from None
    return StyleWords(text, path.name)


@cache
def english() -> StyleWords:
    """The package's own list, of English."""
    return StyleWords((files("monitor.features") / "style_english.txt").read_text("utf-8"))
