"""The feature ``style``: function words, speaking rate and repetitions."""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from monitor.errors import UsageError
from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.lazy import once
from monitor.types import TICKS_PER_SECOND, Track, Words

CUT_OFF = "-"  # the token of a word that was broken off: ``wa-``
NUMBER = "#"  # the token of a number in digits

_APOSTROPHES = "\u2018\u2019\u201b\u02bc\u02b9\u2032\u00b4\u0060\u05f3"
_HYPHENS = "\u2010\u2011\ufe63\uff0d"
_ALIKE = str.maketrans(dict.fromkeys(_APOSTROPHES, "'") | dict.fromkeys(_HYPHENS, "-"))
_DASHES = re.compile(r"[\u2012-\u2015\u2212\u2e3a\u2e3b~]|--+|\.\.+|_")  # they separate words
_CLOSES = {"[": "]", "(": ")", "<": ">", "{": "}"}
_TAG = re.compile(r"\[[^][]*\]|\([^()]*\)|<[^<>]*>|\{[^{}]*\}|\*[^\s*][^*]*\*")
_OPEN = re.compile(r"[\[(<{]")
_HESITATION = ("%hesitation", "uh")  # the spelling of NIST and some recognisers, and ours
_LONGEST_WORD = 1000  # letters: a longer text is not a word
_LONGEST_TAG = 8  # words: a bracket left open for longer does not count


class StyleTokens:
    """Converter of words to tokens that do not depend on the transcriber's spelling.

    Text in brackets, such as ``[noise]``, is the transcriber's and is dropped. Hyphens separate
    words, but a hyphen at the end marks an incomplete word. The rules do not depend on the
    language, unlike `StyleWords`.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Reset: the next word is the first of a recording."""
        self._closes, self._waited = "", 0  # an open bracket, and words within it

    def push(self, text: str) -> list[str]:
        """Return the tokens of a further word; empty for a mark or a tag."""
        text = text[:_LONGEST_WORD].translate(_ALIKE)  # NFKC turns some apostrophes into spaces
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
        text = "".join(c for c in text if unicodedata.category(c) != "Cf")
        text = text.translate(_ALIKE).replace(*_HESITATION)
        tokens: list[str] = []
        for piece in self._spoken(text).split():
            tokens += _parts(piece)
        return tokens

    def _spoken(self, text: str) -> str:
        """Remove tags, which may span several words."""
        if self._closes:
            _, closed, remainder = text.partition(self._closes)
            self._waited += 1
            if not closed and self._waited < _LONGEST_TAG:
                return ""
            text, self._closes = remainder if closed else text, ""
        before = None
        while before != text:  # tags within tags
            before, text = text, _TAG.sub("", text)
        opened = _OPEN.search(text)
        if opened:
            self._closes, self._waited = _CLOSES[opened[0]], 0
            text = text[: opened.start()]
        return _DASHES.sub(" ", text)


def _parts(piece: str) -> Iterator[str]:
    piece = "".join(c if c in "-'" or unicodedata.category(c)[0] in "LMN" else "." for c in piece)
    piece = piece.strip(".")
    cut = piece.endswith("-") and any(c.isalpha() for c in piece)
    *parts, last = piece.rstrip("-").split("-") if piece.strip("-") else [""]
    for token in parts if cut else [*parts, last]:
        if _digits(token):
            yield NUMBER
        else:
            words = (word for word in token.split(".") if word.strip("'"))
            yield from (NUMBER if _digits(word) else word for word in words)
    if cut:
        yield CUT_OFF


def _digits(token: str) -> bool:
    return token.strip(".'")[:1].isdecimal()


NUMBERS = "number"  # the class of numbers: those in digits count in it, and neighbours count once
_RUN = re.compile(r"(.)\1{2,}")
_LONGEST = 64  # letters of a word that count; the rest of a longer word is ignored
_MOST_WORDS = 20_000
_MOST_BYTES = 1 << 20
_FORM = "a line is WORD, CLASS WORD..., or VARIANT = WORD..."


class Unit(NamedTuple):
    """A word or part of a word, as counted.

    ``text`` serves to find repetitions. ``place`` is the index of its bin in the list, or None if
    it is not in the list. A unit that ``leans`` is the end of the word before (``'s``), and counts
    only after a word of the list.
    """

    text: str
    place: int | None
    leans: bool = False


class StyleWords:
    r"""A list of words with the rules that match tokens to it.

    A listed word that begins with an apostrophe, or is ``n't``, is split off the end of longer
    words, so ``what's`` is ``what`` and ``'s``. A listed word that ends with an apostrophe is split
    off their beginning (``l'homme``). UsageError if a line is invalid.

    Args:
        text: lines of the list. ``WORD`` has its own bin. The words of ``CLASS WORD...`` share a
            bin, named after the class. ``VARIANT = WORD...`` counts as those words. A ``#`` begins
            a comment.
        label: name of the list in messages.

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
                self._add_line(content, bins, f"{label} line {number}")
        if not self._places:
            raise UsageError(f"{label} has no words: {_FORM}")
        if len(self._places) > _MOST_WORDS:
            raise UsageError(
                f"{label} has more than {_MOST_WORDS} words: it is not a list of classes"
            )
        self.bins = tuple(bins)  # names of the bins, in order
        self._number = bins.get(NUMBERS)
        words = sorted(self._places, key=len, reverse=True)
        self._ends = dict.fromkeys(w for w in words if w[0] == "'" or w == "n't")
        self._begins = [w for w in words if w[-1] == "'"]
        plain = [self.bins, sorted(self._places.items()), sorted(self._variants.items())]
        # sha256 of everything that changes the result
        self.mark = hashlib.sha256(repr(plain).encode()).hexdigest()

    def _add_line(self, line: str, bins: dict[str, int], where: str) -> None:
        before, equals, right = line.partition("=")
        names = before.split()
        if equals:
            if len(names) != 1 or not right.strip() or "=" in right:
                raise UsageError(f"{where}: {_FORM}")
            self._variants[_word(names[0], where)] = [_word(e, where) for e in right.split()]
            return
        words = [_word(text, where) for text in names[1:] or names]
        index = bins.setdefault(names[0] if len(names) > 1 else words[0], len(bins))
        for word in words:
            if self._places.setdefault(word, index) != index:
                raise UsageError(f"{where}: {word!r} is listed twice")

    def units(self, token: str) -> list[Unit]:
        """Split a token of `StyleTokens` into units, in order."""
        token = token[:_LONGEST]
        if token in (NUMBER, CUT_OFF):
            return [Unit(token, self._number if token == NUMBER else None)]
        units = self._look_up(token)
        if units is not None:
            return units
        for end in self._ends:
            if token.endswith(end) and len(token) > len(end):
                return [*self.units(token[: -len(end)]), self._unit(end)]
        for begin in self._begins:
            if token.startswith(begin) and token[len(begin) :].strip("'"):
                return [self._unit(begin), *self.units(token[len(begin) :])]
        bare = token.strip("'")
        for pattern in (r"\1\1", r"\1"):  # ``sooo`` is ``so`` if the list has it
            shorter = _RUN.sub(pattern, bare)
            if shorter != bare and (units := self._look_up(shorter)):
                return units
        return [Unit(bare, None)]

    def _look_up(self, token: str) -> list[Unit] | None:
        for form in (token, token.strip("'")):
            if form in self._variants:
                return [self._unit(word) for word in self._variants[form]]
            if form in self._places:
                return [self._unit(form)]
        return None

    def _unit(self, word: str) -> Unit:
        return Unit(word, self._places.get(word), word in self._ends)

    def is_number(self, unit: Unit) -> bool:
        """Return whether a unit is a number, in digits or in words."""
        return unit.text == NUMBER or (unit.place is not None and unit.place == self._number)


def _word(text: str, where: str) -> str:
    """Convert a word of a list to a token; UsageError if it is not exactly one word."""
    tokens = StyleTokens().push(text)
    if len(tokens) > 1:
        raise UsageError(f"{where}: {text!r} is more than one word. Write its parts")
    if not tokens or tokens[0] in (CUT_OFF, NUMBER):
        raise UsageError(f"{where}: {text!r} is not a word")
    return tokens[0]


def read_style_words(path: str | os.PathLike[str]) -> StyleWords:
    """Read a list of words from a UTF-8 file; a UsageError names an invalid line."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise UsageError(f"{path.name} is longer than a list of words: more than 1 MB")
        text = data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise UsageError(f"cannot read the words of {path.name}: {reason}") from None
    return StyleWords(text, path.name)


@once
def english() -> StyleWords:
    """Load the shipped English list."""
    return StyleWords((files("monitor.features") / "style_english.txt").read_text("utf-8"))


_REPEATED, _BROKEN_OFF, _AGAIN = range(3)
_MARKS = ("(repeated)", "(broken off)", "(other, said lately)")
# chosen on the readers of train-clean
_LETTERS = (5, 7, 9)
_RATES = (2.25, 2.5, 2.75, 3.0, 3.25, 3.5)
_RATE_WORDS = 8
_LATELY_WORDS = 50
_LONGEST_GAP = TICKS_PER_SECOND
_WORD_SECONDS = 0.3
_ENOUGH_WORDS = 50
_FEW_LISTED = 0.25  # any 50 words of English readers have at least 0.26; German has 0.055
_VERSION = 1  # of the rules of this file: other frames are another version


class Style:
    """Histogram feature of timed words: function words, disfluencies and speaking rates.

    It counts only words that do not depend on the topic (docs/method.md section 13). A word of the
    list counts in its bin. Repetitions and incomplete words have bins of their own. Any other word
    counts by its number of letters, or as recent if it is among the last 50 such words. Every 8
    words, another frame gives the words per second. A pause counts as at most one second, to
    exclude turns of others.

    A frame is complete when its word is known. Rates add no usable time. Their spans begin with
    their words and are one tick long. ``bins`` names each bin. ``spec.network`` is a hash of the
    list and of these rules.

    Example:
        >>> ends = np.array([10, 40, 60])
        >>> words = Words(("I", "said", "uh,"), ends - 10, ends, known=ends)
        >>> style = Style()
        >>> [style.bins[place] for place in style.process(words).values]
        ['i', '(other, up to 4 letters)', 'uh']
    """

    follow = None  # with few words per minute, a change is noticed too late

    def __init__(self, words: StyleWords | None = None) -> None:
        self._words = english() if words is None else words
        letters = [f"(other, {step} letters)" for step in _steps(_LETTERS, "up to {:.0f}", -1)]
        rates = [f"({step} words a second)" for step in _steps(_RATES, "below {:g}", 0)]
        self.bins = (*_MARKS, *letters, *rates, *self._words.bins)
        self._rate_bins = len(_MARKS) + len(letters)
        self._listed = self._rate_bins + len(rates)
        numbers = (_RATE_WORDS, _LATELY_WORDS, _LONGEST_GAP)
        rules = repr((_VERSION, self.bins, *numbers, self._words.mark))
        mark = hashlib.sha256(rules.encode()).hexdigest()
        size = len(self.bins)
        self.spec = FeatureSpec(
            "style", HISTOGRAM, size, _WORD_SECONDS, network=mark, takes="words"
        )
        self._tokens = StyleTokens()
        self.reset()

    def reset(self) -> None:
        """Reset: the next word is the first of a recording."""
        self._tokens.reset()
        self._last: Unit | None = None
        self._begun: int | None = None  # tick at which the last word began
        self._reached = 0  # end of the words so far
        self._gaps: list[int] = []  # ticks from word to word, since the last rate
        self._gaps_since = 0
        self._lately: deque[str] = deque(maxlen=_LATELY_WORDS)  # words not in the list

    def skip_to(self, tick: int) -> None:
        """Do nothing, since counting words is fast."""

    def doubt(self, label: str, texts: Iterable[str]) -> str:
        """Return a line if a transcript seems to be in another language than the list.

        The line is empty otherwise, and under 50 words. ``label`` names the transcript.
        """
        tokens = StyleTokens()
        units = [u for text in texts for t in tokens.push(text) for u in self._words.units(t)]
        listed = sum(unit.place is not None for unit in units)
        if len(units) < _ENOUGH_WORDS or listed >= _FEW_LISTED * len(units):
            return ""
        percentage = f"{100 * listed / len(units):.0f} % of its words are in the list"
        return f"{label}: {percentage}. Is it another language? (MONITOR_WORD_LIST)"

    def flush(self) -> Track:
        """Return no frames, since incomplete windows do not count."""
        return Track(np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, 2), np.int64))

    def process(self, content: Words) -> Track:
        """Return the frames of further words, in the order in which words became known."""
        rows: list[tuple[int, int, int, int]] = []  # known, bin, span
        times = zip(
            content.begins.tolist(), content.ends.tolist(), content.known.tolist(), strict=True
        )
        for text, (begin, end, arrival) in zip(content.texts, times, strict=True):
            units = [u for token in self._tokens.push(text) for u in self._words.units(token)]
            counted = self._count_bins(units)
            for i, bin_index in enumerate(counted):  # they share the word's time equally
                first = begin + (end - begin) * i // len(counted)
                last = begin + (end - begin) * (i + 1) // len(counted)
                rows.append((arrival, bin_index, *self._span(first, max(last, first + 1))))
                rows += [(arrival, *rate_frame) for rate_frame in self._rate(first)]
        frames = np.array(rows, np.int64).reshape(-1, 4)
        return Track(frames[:, 0], frames[:, 1], frames[:, 2:])

    def _span(self, first: int, last: int) -> tuple[int, int]:
        """Return the span of a word, without ticks that earlier words cover."""
        begin = self._reached if first < self._reached < last else first
        self._reached = max(self._reached, last)
        return begin, last

    def _count_bins(self, units: list[Unit]) -> list[int]:
        bins = []
        for unit in units:
            last = self._last
            if unit.leans and (last is None or last.place is None):
                continue  # such as the 's of a noun
            if last is not None and self._words.is_number(unit) and self._words.is_number(last):
                continue  # neighbouring numbers count once
            self._last = unit
            if unit.text == CUT_OFF:
                bins.append(_BROKEN_OFF)
            elif last is not None and unit.text == last.text:
                bins.append(_REPEATED)
            elif unit.place is not None:
                bins.append(self._listed + unit.place)
            else:
                lately = unit.text in self._lately
                self._lately.append(unit.text)
                letters = bisect_right(_LETTERS, len(unit.text))
                bins.append(_AGAIN if lately else len(_MARKS) + letters)
        return bins

    def _rate(self, begin: int) -> list[tuple[int, int, int]]:
        """Return the rate (bin and span) that a word beginning at this tick completes, or none."""
        if self._begun is not None:
            if not self._gaps:
                self._gaps_since = self._begun
            self._gaps.append(min(max(begin - self._begun, 0), _LONGEST_GAP))
        self._begun = begin
        if len(self._gaps) < _RATE_WORDS:
            return []
        a_second = _RATE_WORDS * TICKS_PER_SECOND / max(sum(self._gaps), 1)
        self._gaps.clear()
        index = self._rate_bins + bisect_right(_RATES, a_second)
        return [(index, self._gaps_since, self._gaps_since + 1)]


def _steps(edges: tuple[float, ...], first: str, shift: int) -> list[str]:
    """Name the ranges below the first edge, between edges, and from the last edge on."""
    between = [f"{low:g} to {high + shift:g}" for low, high in pairwise(edges)]
    return [first.format(edges[0] + shift), *between, f"from {edges[-1]:g}"]
