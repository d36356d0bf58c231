"""The feature ``style``: which little words somebody says, how fast, and how often the same ones.

Of what is said it counts only what is said whatever the subject: words of closed classes, fillers,
repetitions, words broken off, and how many words a second and how many different ones there are
(docs/method.md section 13).
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from monitor.features.style_tokens import CUT_OFF, StyleTokens
from monitor.features.style_words import StyleWords, Unit, english
from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.types import TICKS_PER_SECOND, Track, Words

__all__ = ["Style"]

_REPEATED, _BROKEN_OFF, _AGAIN = range(3)
_MARKS = ("(repeated)", "(broken off)", "(other, said lately)")
# chosen on the readers of train-clean (benchmarks/style_settings.py)
_LETTERS = (5, 7, 9)
_RATES = (2.25, 2.5, 2.75, 3.0, 3.25, 3.5)
_RATE_WORDS = 8
_LATELY_WORDS = 50
_LONGEST_GAP = TICKS_PER_SECOND
_WORD_SECONDS = 0.3
_ENOUGH_WORDS = 50
_FEW_LISTED = 0.25  # the least of any 50 words of English readers is 0.26; of German all have 0.055
_VERSION = 1
"""Of the rules, here and in `style_tokens` and `style_words`: other frames are another version."""


class Style:
    """Histogram feature: little words, disfluencies and rates, of timed words.

    A word of the list counts in its bin; one that repeats the word before it, or is broken off, in
    the bin of that. Any other counts by its number of letters alone, or, where it is among the
    newest 50 of these, as said lately: that is how many different words somebody uses. Every 8
    words one more frame says how many were said a second; a pause counts a second at most, so that
    turns of others do not. How many words there are in a cue of captions is not counted: that is
    chosen by who made them.

    A frame is complete when its word is known. Rates take no usable time of their own: their spans
    begin where their words do and are a tick long.

    Args:
        words: another list than the package's English one, as of `read_style_words`.

    Attributes:
        bins: what each bin counts.
        spec: with a mark of the list and of these rules in the place of a network's: frames by two
            lists are never compared.

    Example:
        >>> ends = np.array([10, 40, 60])
        >>> heard = Words(("I", "said", "uh,"), ends - 10, ends, known=ends)
        >>> style = Style()
        >>> [style.bins[place] for place in style.process(heard).values]
        ['i', '(other, up to 4 letters)', 'uh']
    """

    follow = None  # by so few words a minute nobody else is noticed in time

    def __init__(self, words: StyleWords | None = None) -> None:
        self._words = english() if words is None else words
        letters = [f"(other, {step} letters)" for step in _steps(_LETTERS, "up to {:.0f}", -1)]
        rates = [f"({step} words a second)" for step in _steps(_RATES, "below {:g}", 0)]
        self.bins = (*_MARKS, *letters, *rates, *self._words.bins)
        self._rate_bins = len(_MARKS) + len(letters)
        self._listed = self._rate_bins + len(rates)
        rules = repr(
            (_VERSION, self.bins, _RATE_WORDS, _LATELY_WORDS, _LONGEST_GAP, self._words.mark)
        )
        mark = hashlib.sha256(rules.encode()).hexdigest()
        self.spec = FeatureSpec(
            "style", HISTOGRAM, len(self.bins), _WORD_SECONDS, network=mark, takes="words"
        )
        self._tokens = StyleTokens()
        self.reset()

    def reset(self) -> None:
        """Forget everything heard: the next word is the first of a recording."""
        self._tokens.reset()
        self._last: Unit | None = None
        self._begun: int | None = None  # when the last word did
        self._reached = 0  # the end of the words so far
        self._gaps: list[int] = []  # from word to word, in this window
        self._gaps_since = 0
        self._lately: deque[str] = deque(maxlen=_LATELY_WORDS)  # words that the list lacks

    def skip_to(self, tick: int) -> None:
        """Words are counted in a moment: none is left out."""

    def doubt(self, label: str, texts: Iterable[str]) -> str:
        """Whether the words of a transcript are of another language than the list, in a line.

        Args:
            label: of the transcript.
            texts: all of its words; of less than 50 nothing is said.

        Example:
            >>> Style().doubt("talk.vtt", ["Haus", "und", "Hof"] * 20)
            'talk.vtt: 0 % of its words are in the list: another language? (--word-list)'
            >>> Style().doubt("talk.vtt", ["it", "is", "so", "near"] * 20)
            ''
        """
        tokens = StyleTokens()
        units = [u for text in texts for t in tokens.push(text) for u in self._words.units(t)]
        listed = sum(unit.place is not None for unit in units)
        if len(units) < _ENOUGH_WORDS or listed >= _FEW_LISTED * len(units):
            return ""
        share = f"{100 * listed / len(units):.0f} % of its words are in the list"
        return f"{label}: {share}: another language? (--word-list)"

    def flush(self) -> Track:
        """Windows that are not full say nothing."""
        return Track(np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, 2), np.int64))

    def process(self, heard: Words) -> Track:
        """Frames of further words, in the order in which they were known."""
        rows: list[tuple[int, int, int, int]] = []  # known, bin, span
        times = zip(heard.begins.tolist(), heard.ends.tolist(), heard.known.tolist(), strict=True)
        for text, (begin, end, known) in zip(heard.texts, times, strict=True):
            units = [u for token in self._tokens.push(text) for u in self._words.units(token)]
            counted = self._counting(units)
            for i, place in enumerate(counted):  # each has its share of the word's time
                first = begin + (end - begin) * i // len(counted)
                last = begin + (end - begin) * (i + 1) // len(counted)
                rows.append((known, place, *self._span(first, max(last, first + 1))))
                rows += [(known, *frame) for frame in self._rate(first)]
        made = np.array(rows, np.int64).reshape(-1, 4)
        return Track(made[:, 0], made[:, 1], made[:, 2:])

    def _span(self, first: int, last: int) -> tuple[int, int]:
        """Of a word: a tick that it shares with the one before is usable once."""
        begin = self._reached if first < self._reached < last else first
        self._reached = max(self._reached, last)
        return begin, last

    def _counting(self, units: list[Unit]) -> list[int]:
        """The bins of those that count."""
        made = []
        for unit in units:
            last = self._last
            if unit.leans and (last is None or last.place is None):
                continue  # the 's of any noun
            if last is not None and self._words.is_number(unit) and self._words.is_number(last):
                continue  # one number: digits or words, however many
            self._last = unit
            if unit.text == CUT_OFF:
                made.append(_BROKEN_OFF)
            elif last is not None and unit.text == last.text:
                made.append(_REPEATED)
            elif unit.place is not None:
                made.append(self._listed + unit.place)
            else:
                made.append(self._other(unit.text))
        return made

    def _other(self, text: str) -> int:
        """The bin of a word that the list does not have."""
        lately = text in self._lately
        self._lately.append(text)
        return _AGAIN if lately else len(_MARKS) + bisect_right(_LETTERS, len(text))

    def _rate(self, begin: int) -> list[tuple[int, int, int]]:
        """The frame, bin and span, that a further word begun at this tick completes; or none."""
        if self._begun is not None:
            if not self._gaps:
                self._gaps_since = self._begun
            self._gaps.append(min(max(begin - self._begun, 0), _LONGEST_GAP))
        self._begun = begin
        if len(self._gaps) < _RATE_WORDS:
            return []
        a_second = _RATE_WORDS * TICKS_PER_SECOND / max(sum(self._gaps), 1)
        self._gaps.clear()
        place = self._rate_bins + bisect_right(_RATES, a_second)
        return [(place, self._gaps_since, self._gaps_since + 1)]


def _steps(edges: tuple[float, ...], first: str, less: int) -> list[str]:
    """In words: below the first edge, from edge to edge, from the last on."""
    between = [f"{low:g} to {high + less:g}" for low, high in pairwise(edges)]
    return [first.format(edges[0] + less), *between, f"from {edges[-1]:g}"]
