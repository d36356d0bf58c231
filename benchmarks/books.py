"""Which chapters of LibriSpeech are of one book, and how sure that is.

Its manifest names chapters by their numbers at LibriVox, which numbers the sections of a book one
after the other; books it does not name. Numbers near each other are taken for one book. That is
checked by what was read: the words of the chapters that `style` does not count, weighed by how few
chapters have them (cosine of TF-IDF), without any function word.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from monitor.features.style import StyleTokens, english
from monitor.types import AnyArray, FloatArray

NEAR = 75
"""Chapters of one reader are 23 numbers apart at most or more than 400; of two readers, two of
cookery that are 60 apart share their words as one book does, and two 89 apart do not."""
_SHORTEST = 4


class Chapter(NamedTuple):
    """One recording."""

    reader: str
    number: int


def one_book(one: Chapter, other: Chapter) -> bool:
    """Whether two chapters are of one book, by their numbers."""
    return abs(one.number - other.number) < NEAR


def content(texts: Sequence[str]) -> Counter[str]:
    """How often each word stands there, but for those of the list of `style` and short ones."""
    tokens, words = StyleTokens(), english()
    units = [unit for text in texts for each in tokens.push(text) for unit in words.units(each)]
    plain = [unit.text for unit in units if unit.place is None]
    return Counter(word for word in plain if len(word) >= _SHORTEST and word.isalpha())


def likeness(said: Mapping[Chapter, Counter[str]]) -> dict[tuple[Chapter, Chapter], float]:
    """Cosine of what each two chapters are about."""
    rare = Counter(word for words in said.values() for word in words)
    weigh = {
        chapter: {w: (1 + math.log(n)) * math.log(len(said) / rare[w]) for w, n in words.items()}
        for chapter, words in said.items()
    }
    length = {chapter: math.hypot(*weights.values()) for chapter, weights in weigh.items()}
    found = {}
    for one, other in combinations(said, 2):
        shared = weigh[one].keys() & weigh[other].keys()
        product = sum(weigh[one][word] * weigh[other][word] for word in sorted(shared))
        found[one, other] = product / (length[one] * length[other])
    return found


def print_check(said: Mapping[Chapter, Counter[str]]) -> None:
    """How well the numbers of chapters and what they are about agree."""
    cosines = likeness(said)
    within = {pair for pair in cosines if pair[0].reader == pair[1].reader}
    near = {pair for pair in within if one_book(*pair)}
    shared = {pair for pair in cosines if one_book(*pair)} - within
    apart = sorted(abs(a.number - b.number) for a, b in within)
    print(f"numbers of two chapters of one reader: {apart} apart\n")
    impostors = values(cosines, cosines.keys() - within - shared)
    bar = float(np.quantile(impostors, 0.99))
    rows = (
        ("one reader, numbers near", near),
        ("one reader, numbers far apart", within - near),
        ("two readers, numbers near", shared),
    )
    print("| chapters | pairs | of readers | alike above 99 % of two readers' with far numbers |")
    print("| --- | ---: | ---: | ---: |")
    for name, pairs in rows:
        readers = len({chapter.reader for pair in pairs for chapter in pair})
        above = int((values(cosines, pairs) > bar).sum())
        print(f"| {name} | {len(pairs)} | {readers} | {above} |")
    area, low, high = told_apart(cosines, near, within - near)
    print(
        f"\nTwo chapters of one reader with near numbers are more alike than two with far ones in "
        f"{100 * area:.0f} % of comparisons ({100 * low:.0f} to {100 * high:.0f} over readers)."
    )
    sets = [sorted({c for pair in shared for c in pair}, key=lambda c: c.number)]
    for chapters in sets:
        print("books of several readers:", ", ".join(f"{c.number} ({c.reader})" for c in chapters))


def values(
    cosines: Mapping[tuple[Chapter, Chapter], float], pairs: Collection[tuple[Chapter, Chapter]]
) -> FloatArray:
    """Of some pairs, in an order that does not depend on a set's."""
    return np.array([cosines[pair] for pair in sorted(pairs)])


def told_apart(
    cosines: Mapping[tuple[Chapter, Chapter], float],
    near: Collection[tuple[Chapter, Chapter]],
    far: Collection[tuple[Chapter, Chapter]],
    replicates: int = 1000,
) -> tuple[float, float, float]:
    """Area under the ROC curve of two sets of pairs, with limits over resampled readers."""

    def area(ups: AnyArray, downs: AnyArray) -> float:
        return float(np.mean((ups[:, None] > downs) + 0.5 * (ups[:, None] == downs)))

    readers = sorted({pair[0].reader for pair in (*near, *far)})
    by = [
        [np.array([cosines[p] for p in sorted(pairs) if p[0].reader == r]) for r in readers]
        for pairs in (near, far)
    ]
    generator = np.random.default_rng(0)
    drawn = []
    for _ in range(replicates):
        picks = generator.integers(0, len(readers), len(readers))
        ups, downs = (np.concatenate([of[pick] for pick in picks]) for of in by)
        if ups.size and downs.size:
            drawn.append(area(ups, downs))
    low, high = np.quantile(drawn, (0.025, 0.975))
    return area(*(np.concatenate(of) for of in by)), float(low), float(high)
