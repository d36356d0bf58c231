"""Two who attack a stream of codes: one has trained on such streams, the other counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.anonymity.excerpts import QUERY, REFERENCE, Excerpt
from benchmarks.anonymity.ranking import enrolled_matrix
from benchmarks.anonymity.streams import Stream, Turn, features
from monitor.kinds import HISTOGRAM
from monitor.lab.evaluation import ScoreMatrix
from monitor.types import AnyArray, FloatArray

__all__ = ["Heard", "counted", "trained"]

Heard = Sequence[AnyArray]


def trained(
    judged: Sequence[Excerpt],
    published: Heard,
    own: Heard,
    turn: Turn,
    stream: Stream,
    count: int,
) -> ScoreMatrix:
    """Cosines of what an attacker has learnt to look at.

    Args:
        judged: queries and references.
        published: what each of them says to everybody.
        own: what the attacker has of the references.
        turn: that was learnt.
        stream: what is published.
        count: utterances of a query.
    """

    def voices(listened: Heard, role: str) -> dict[str, list[AnyArray]]:
        made: dict[str, list[AnyArray]] = {}
        numbers = turn(np.stack([features(stream, each) for each in listened]))
        for each, row in zip(judged, numbers, strict=True):
            if each.role == role:
                made.setdefault(each.speaker, []).append(row)
        return made

    queries = {
        name: [_unit(np.sum(some, axis=0)) for some in _together(rows, count)]
        for name, rows in voices(published, QUERY).items()
    }
    return enrolled_matrix(queries, voices(own, REFERENCE))


def _unit(row: FloatArray) -> FloatArray:
    return np.asarray(row / np.linalg.norm(row))


def _together(rows: Sequence[AnyArray], count: int) -> list[Sequence[AnyArray]]:
    """So many at a time; what is left over is left out, unless it is all that there is."""
    return [rows[i : i + count] for i in range(0, max(1, len(rows) - count + 1), count)]


def counted(
    judged: Sequence[Excerpt], published: Heard, own: Heard, size: int, count: int
) -> ScoreMatrix:
    """Log-likelihoods of a query's codes of C0 under each reader's counts.

    Args:
        judged: queries and references.
        published: what each of them says to everybody.
        own: what the attacker has of the references.
        size: codes of the codebook.
        count: utterances of a query.
    """
    names = tuple(dict.fromkeys(each.speaker for each in judged))
    templates = np.zeros((len(names), size), np.int64)
    said: list[list[AnyArray]] = [[] for _ in names]
    for each, codes, theirs in zip(judged, published, own, strict=True):
        place = names.index(each.speaker)
        if each.role == REFERENCE:
            templates[place] += np.bincount(theirs[:, 0], minlength=size)
        else:
            said[place].append(np.bincount(codes[:, 0], minlength=size))
    grouped = [[np.sum(some, axis=0) for some in _together(rows, count)] for rows in said]
    queries = [query for rows in grouped for query in rows]
    target = np.repeat(np.arange(len(names)), [len(rows) for rows in grouped])
    way = HISTOGRAM.similarity()
    return ScoreMatrix(
        way.score(way.prepare(templates), np.stack(queries)), np.array(target), names
    )
