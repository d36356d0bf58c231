"""Who is told from whom: a template of 30 s and tests of one length, and what an embedder scores.

Templates and tests are cut into windows of 3 s, as they come, pauses included; the mean of their
embeddings stands for them and the cosine compares.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from monitor.errors import CorpusError
from monitor.evaluation import ScoreMatrix
from monitor.networks.layers import RATE
from monitor.types import FloatArray
from recipes.voice.cache import Cache, Piece

__all__ = ["Embed", "Enrolled", "Heard", "score", "several", "templates"]

Embed = Callable[[FloatArray], FloatArray]
"""Windows, shape (b, n), to embeddings of length 1, shape (b, m)."""
Heard = Callable[[FloatArray], FloatArray]
"""What becomes of a test on its way: noise, a telephone, or nothing."""
WINDOW_SECONDS = 3.0
TEMPLATE_SECONDS = 30.0
_MOST_TESTS = 8
"""Of a speaker, evenly spread."""


@dataclass(frozen=True, slots=True)
class Enrolled:
    """A speaker of a trial: the template's recording, and those of the tests, if there are any."""

    voice: str
    gender: str
    adult: bool
    template: Piece
    tests: tuple[Piece, ...]


def several(cache: Cache, role: str) -> list[Enrolled]:
    """The speakers of a role; tests of those with two sessions come from other sessions.

    Speakers with one session are templates alone, but those held out: their tests are of the same
    session, after the template.
    """
    by_voice: dict[str, list[Piece]] = defaultdict(list)
    for piece in cache.of(role):
        by_voice[piece.voice].append(piece)
    found = []
    least = TEMPLATE_SECONDS * RATE
    for voice, pieces in sorted(by_voice.items()):
        first, *others = sorted(pieces, key=lambda piece: -piece.samples)
        if first.samples < least:
            continue
        if role == "held out":
            after = round(least)
            rest = replace(first, start=first.start + after, samples=first.samples - after)
            others = [rest]
        found.append(Enrolled(voice, first.gender, first.adult, first, tuple(others)))
    return found


def templates(cache: Cache, people: Sequence[Enrolled], embed: Embed) -> FloatArray:
    """A template each, shape (N, m)."""
    heard = (cache.sound(each.template, 0, TEMPLATE_SECONDS) for each in people)
    return np.stack([_mean(sound, embed) for sound in heard])


def score(
    cache: Cache,
    people: Sequence[Enrolled],
    enrolled: FloatArray,
    seconds: float,
    embed: Embed,
    heard: Heard = lambda sound: sound,
) -> ScoreMatrix:
    """Score every test of a length against every one of `templates`.

    Raises:
        CorpusError: nobody has a test so long.
    """
    scores, target = [], []
    for column, each in enumerate(people):
        cuts = [
            (piece, at * seconds)
            for piece in each.tests
            for at in range(int(piece.samples / RATE // seconds))
        ]
        chosen = np.unique(np.linspace(0, len(cuts) - 1, min(len(cuts), _MOST_TESTS)).astype(int))
        for index in chosen if cuts else ():
            piece, start = cuts[index]
            scores.append(enrolled @ _mean(heard(cache.sound(piece, start, seconds)), embed))
            target.append(column)
    if not scores:
        raise CorpusError(f"no speaker has a test of {seconds:g} s")
    return ScoreMatrix(np.stack(scores), np.array(target), tuple(each.voice for each in people))


def _mean(sound: FloatArray, embed: Embed) -> FloatArray:
    width = round(WINDOW_SECONDS * RATE)
    whole = len(sound) // width * width
    mean = embed(sound[:whole].reshape(-1, width)).mean(axis=0)
    return np.asarray(mean / np.linalg.norm(mean))
