"""The feature ``style``: which little words somebody says, how fast, and how often the same ones.

Of what is said it counts only what is said whatever the subject: words of closed classes, fillers,
repetitions, words broken off, and how many words a second and how many different ones there are.
"""

from __future__ import annotations

import hashlib

import numpy as np

from monitor.features.style_tokens import CUT_OFF, StyleTokens
from monitor.features.style_words import StyleWords, Unit, english
from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.types import TICKS_PER_SECOND, Track, Words

__all__ = ["Style"]

OTHER, REPEATED, BROKEN_OFF = "(other)", "(repeated)", "(broken off)"
_RATES = (1.5, 2.0, 2.25, 2.5, 2.75, 3.0, 3.25, 3.5, 4.0)
_RATE_WORDS = 16
_LONGEST_GAP = TICKS_PER_SECOND
_KINDS = (34, 36, 38, 40, 42, 44, 46)
_KINDS_WORDS = 50
_WORD_SECONDS = 0.35


class Style:
    """Histogram feature: little words, disfluencies and rates, of timed words.

    A word of the list counts in its bin, one that repeats the word before it or is broken off in
    the bin of that, and any other in one bin for all. Every 16 words one more frame says how many
    were said a second (a pause counts a second at most, so that turns of others do not), and every
    50 words one says how many different ones there were. How many words there are in a cue of
    captions is not counted: that is chosen by who made them.

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
        ['i', '(other)', 'uh']
    """

    follow = None  # by so few words a minute nobody else is noticed in time

    def __init__(self, words: StyleWords | None = None) -> None:
        self._words = english() if words is None else words
        rates = [f"({low:g} to {high:g} words a second)" for low, high in _steps(_RATES)]
        kinds = [f"({low:g} to {high:g} of 50 words differ)" for low, high in _steps(_KINDS)]
        self.bins = (OTHER, REPEATED, BROKEN_OFF, *rates, *kinds, *self._words.bins)
        self._kinds = 3 + len(rates)
        self._listed = self._kinds + len(kinds)
        rules = repr((1, self.bins, _RATE_WORDS, _LONGEST_GAP, _KINDS_WORDS, self._words.mark))
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
        self._gaps: list[int] = []  # from word to word, in this window
        self._gaps_since = 0
        self._different: set[str] = set()
        self._counted = 0  # words, in this window
        self._counted_since = 0

    def skip_to(self, tick: int) -> None:
        """Words are counted in a moment: none is left out."""

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
            for i, (unit, place) in enumerate(counted):  # each has its share of the word's time
                first = begin + (end - begin) * i // len(counted)
                last = begin + (end - begin) * (i + 1) // len(counted)
                rows.append((known, place, first, max(last, first + 1)))
                rows += [(known, *frame) for frame in self._rates(unit, first)]
        made = np.array(rows, np.int64).reshape(-1, 4)
        return Track(made[:, 0], made[:, 1], made[:, 2:])

    def _counting(self, units: list[Unit]) -> list[tuple[Unit, int]]:
        """Those that count, each with its bin."""
        made = []
        for unit in units:
            last = self._last
            if unit.leans and (last is None or last.place is None):
                continue  # the 's of any noun
            if last is not None and self._words.is_number(unit) and self._words.is_number(last):
                continue  # one number: digits or words, however many
            if unit.text == CUT_OFF:
                place = 2
            elif last is not None and unit.text == last.text:
                place = 1
            else:
                place = 0 if unit.place is None else self._listed + unit.place
            made.append((unit, place))
            self._last = unit
        return made

    def _rates(self, unit: Unit, begin: int) -> list[tuple[int, int, int]]:
        """Frames that a further word, begun at a tick, completes: bin, and span."""
        made = []
        if self._begun is not None:
            if not self._gaps:
                self._gaps_since = self._begun
            self._gaps.append(min(max(begin - self._begun, 0), _LONGEST_GAP))
        self._begun = begin
        if len(self._gaps) == _RATE_WORDS:
            a_second = _RATE_WORDS * TICKS_PER_SECOND / max(sum(self._gaps), 1)
            place = 3 + int(np.searchsorted(_RATES, a_second, side="right"))
            made.append((place, self._gaps_since, self._gaps_since + 1))
            self._gaps.clear()
        if not self._counted:
            self._counted_since = begin
        self._counted += 1
        self._different.add(unit.text)
        if self._counted == _KINDS_WORDS:
            place = self._kinds + int(np.searchsorted(_KINDS, len(self._different), side="right"))
            made.append((place, self._counted_since, self._counted_since + 1))
            self._counted = 0
            self._different.clear()
        return made


def _steps(edges: tuple[float, ...]) -> list[tuple[float, float]]:
    """From edge to edge, and below the first and above the last."""
    return list(zip((0.0, *edges), (*edges, np.inf), strict=True))
