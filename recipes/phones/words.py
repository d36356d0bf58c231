"""Words to phones by the CMU dictionary, and for other words by rules derived from it.

For the rules, letters and phones of the dictionary's words are aligned by Viterbi training, with 0
to 2 phones per letter. A letter in a new word then has the phones that are most frequent between
the same neighbours, for the widest context in the dictionary (backing off; A. van den Bosch and W.
Daelemans, "Data-oriented methods for grapheme-to-phoneme conversion", EACL 1993).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cached_property
from math import log
from pathlib import Path
from typing import Self

Pronunciation = tuple[str, ...]
_EVERY = 6  # step through the dictionary's words that train the alignment
_ROUNDS = 3
_CONTEXTS = ((3, 3), (2, 3), (2, 2), (1, 2), (1, 1), (0, 1), (0, 0))
_UNSEEN = -12.0


class Words:
    """Pronunciations: the first one in the dictionary, otherwise by the rules.

    Args:
        pronunciations: phones of each word; words are in lower case.

    Example:
        >>> words = Words({"see": ("S", "IY"), "tea": ("T", "IY")})
        >>> words.phones("SEE TEA")
        ('S', 'IY', 'T', 'IY')
    """

    def __init__(self, pronunciations: dict[str, Pronunciation]) -> None:
        self.pronunciations = pronunciations

    @classmethod
    def cmu(cls) -> Self:
        """Read the CMUdict of pocketsphinx, which has no stress."""
        from pocketsphinx import get_model_path

        pronunciations: dict[str, Pronunciation] = {}
        dictionary = Path(get_model_path("en-us/cmudict-en-us.dict")).read_text(encoding="utf-8")
        for line in dictionary.splitlines():
            word, *phones = line.split()
            if "(" not in word:
                pronunciations[word] = tuple(phones)
        return cls(pronunciations)

    def contains_all(self, text: str) -> bool:
        """Return whether all words are in the dictionary."""
        return all(word in self.pronunciations for word in text.lower().split())

    def phones(self, text: str) -> Pronunciation:
        """Return the phones of a text, word by word."""
        words = (
            self.pronunciations.get(word) or self._guess(word) for word in text.lower().split()
        )
        return tuple(phone for word in words for phone in word)

    def _guess(self, word: str) -> Pronunciation:
        if word.endswith("'s") and word[:-2] in self.pronunciations:
            return (*self.pronunciations[word[:-2]], "Z")
        return tuple(
            phone
            for i in range(len(word))
            for phone in next(
                (self._rules[context] for context in _contexts(word, i) if context in self._rules),
                (),
            )
        )

    @cached_property
    def _rules(self) -> dict[tuple[str, str, str], Pronunciation]:
        """Most frequent phones of a letter by its context."""
        sample = [
            each for i, each in enumerate(sorted(self.pronunciations.items())) if i % _EVERY == 0
        ]
        scores: dict[tuple[str, Pronunciation], float] = {}
        aligned: list[tuple[str, list[Pronunciation]]] = []
        for _ in range(_ROUNDS):
            aligned = [(word, _align(word, phones, scores)) for word, phones in sample]
            counts = Counter(
                pair for word, parts in aligned for pair in zip(word, parts, strict=True)
            )
            letters = Counter(letter for word, _ in aligned for letter in word)
            scores = {pair: log(n / letters[pair[0]]) for pair, n in counts.items()}
        seen: dict[tuple[str, str, str], Counter[Pronunciation]] = defaultdict(Counter)
        for word, phones in self.pronunciations.items():
            for i, part in enumerate(_align(word, phones, scores)):
                for context in _contexts(word, i):
                    seen[context][part] += 1
        return {context: parts.most_common(1)[0][0] for context, parts in seen.items()}


def _contexts(word: str, i: int) -> list[tuple[str, str, str]]:
    """Return a letter's contexts, from the widest to none."""
    framed = f"<<<{word}>>>"
    at = i + 3
    return [
        (framed[at - left : at], framed[at], framed[at + 1 : at + 1 + right])
        for left, right in _CONTEXTS
    ]


def _align(
    word: str, phones: Pronunciation, scores: dict[tuple[str, Pronunciation], float]
) -> list[Pronunciation]:
    """Return each letter's phones on the likeliest path; if none, the last letter has all."""
    n = len(phones)
    before: dict[int, tuple[float, list[Pronunciation]]] = {0: (0.0, [])}
    for i, letter in enumerate(word):
        after: dict[int, tuple[float, list[Pronunciation]]] = {}
        left = len(word) - i - 1
        for at, (score, parts) in before.items():
            for count in (0, 1, 2):
                end = at + count
                if end > n or n - end > 2 * left:
                    continue
                part = phones[at:end]
                # at first, phones spread evenly over the letters
                guess = -abs((i + 0.5) / len(word) - (at + count / 2) / n) * 3 - 0.5 * abs(
                    1 - count
                )
                new = score + (scores.get((letter, part), _UNSEEN) if scores else guess)
                if end not in after or new > after[end][0]:
                    after[end] = (new, [*parts, part])
        before = after
    if n not in before:
        return [()] * (len(word) - 1) + [phones]
    return before[n][1]
