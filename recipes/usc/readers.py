"""How well the codes of C0 tell background speakers, who are templates of codes themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from monitor.types import FloatArray, IntArray

__all__ = ["CodedPiece", "ranks"]

_SMOOTHED = 200.0
"""Codes of everybody that a template has besides its own."""
_MOST = 750
"""Codes that a template counts for at most, 30 s: more of one reader is no advantage."""


@dataclass(frozen=True, slots=True)
class CodedPiece:
    """Some seconds of one reader.

    Attributes:
        voice: whose.
        recording: which of hers.
        counts: shape (codes,), how often each code comes.
    """

    voice: str
    recording: int
    counts: IntArray


def ranks(pieces: Sequence[CodedPiece]) -> dict[str, IntArray]:
    """The ranks, from 1, of the right reader for each of her pieces, by reader.

    A template is of all other pieces of a reader: of other recordings than the piece's, where she
    has several, else of the same one, which favours who tells background speakers. The score is the
    logarithm of how much likelier the codes are by the template than by everybody's.
    Readers with one piece are nobody's right one, but rivals.

    Example:
        >>> one, other = np.array([9, 1, 0]), np.array([0, 1, 9])
        >>> said = [("a", one), ("a", one), ("b", other), ("b", other)]
        >>> pieces = [CodedPiece(who, i, counts) for i, (who, counts) in enumerate(said)]
        >>> {who: each.tolist() for who, each in ranks(pieces).items()}
        {'a': [1, 1], 'b': [1, 1]}
    """
    everybody = np.sum([each.counts for each in pieces], axis=0) + 0.5
    usual = everybody / everybody.sum()
    voices = sorted({each.voice for each in pieces})
    of = {voice: [each for each in pieces if each.voice == voice] for voice in voices}
    templates = {voice: _template(own, usual) for voice, own in of.items()}
    found: dict[str, list[int]] = {}
    for piece in pieces:
        others = [each for each in of[piece.voice] if each is not piece]
        apart = [each for each in others if each.recording != piece.recording]
        if not others:
            continue
        own = piece.counts @ _template(apart or others, usual)
        rivals = [piece.counts @ templates[voice] for voice in voices if voice != piece.voice]
        found.setdefault(piece.voice, []).append(1 + int(np.sum(np.array(rivals) >= own)))
    return {voice: np.array(each, np.int64) for voice, each in found.items()}


def _template(pieces: Sequence[CodedPiece], usual: FloatArray) -> FloatArray:
    """For each code, how much likelier it is by the pieces than usual: logarithms."""
    counts = np.sum([each.counts for each in pieces], axis=0)
    counts = counts * min(1.0, _MOST / counts.sum())
    likely = (counts + _SMOOTHED * usual) / (counts.sum() + _SMOOTHED)
    return np.asarray(np.log(likely / usual))
