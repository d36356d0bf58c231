"""Segments, templates and trials of heard readers, and the scores of all trials against all.

VoxGuard section 4.2: a template is the mean of L segments (average scoring), or each of them by
itself, of which the nearest counts (max scoring).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from monitor.attacks.heard import HeardPiece
from monitor.attacks.readers import SEGMENT_SECONDS, Amounts, Piece, Reader
from monitor.kinds import FeatureSpec
from monitor.maths.scores import Similarity
from monitor.training.session_frames import SessionFrames
from monitor.training.voices import session_frames, units_of
from monitor.types import AnyArray, BoolArray, FloatArray, IntArray

__all__ = ["ProtectedTrials", "Segments", "scores", "segments_of", "speech", "trials_of"]


@dataclass(frozen=True, slots=True)
class Segments:
    """Enrolled segments of N readers.

    Attributes:
        names: of the readers.
        totals: by feature, of each reader, shape (segments, M).
    """

    names: tuple[str, ...]
    totals: Mapping[str, tuple[AnyArray, ...]]

    def most(self) -> int:
        """Segments of the reader who has most."""
        return max(len(each) for each in next(iter(self.totals.values())))

    def with_all(self, count: int) -> int:
        """How many readers have so many."""
        return sum(len(each) >= count for each in next(iter(self.totals.values())))


@dataclass(frozen=True, slots=True)
class ProtectedTrials:
    """Consecutive stretches of T speech seconds.

    Attributes:
        totals: by feature, shape (n, M).
        heard: by feature, whether a trial has any frame of it, shape (n,).
        target: position of each one's reader, shape (n,).
        names: of each.
    """

    totals: Mapping[str, AnyArray]
    heard: Mapping[str, BoolArray]
    target: IntArray
    names: tuple[str, ...]


def speech(
    pieces: Sequence[Piece],
    heard: Mapping[Piece, HeardPiece],
    specs: Mapping[str, FeatureSpec],
) -> dict[str, SessionFrames] | None:
    """The frames of consecutive pieces; None where one of them could not be heard.

    Pieces are heard by themselves, and each long frame counts where it was complete: there are as
    many in a stretch as somebody has who hears it alone.
    """
    if any(piece not in heard for piece in pieces):
        return None
    frames = [heard[piece].frames for piece in pieces]
    made = {name: session_frames(frames, spec) for name, spec in specs.items()}
    return {name: replace(each, begins=None) for name, each in made.items()}


def segments_of(
    reader: Reader, heard: Mapping[Piece, HeardPiece], specs: Mapping[str, FeatureSpec]
) -> dict[str, AnyArray] | None:
    """A reader's segments by feature, shape (segments, M); None where a piece is missing."""
    sessions = [speech(pieces, heard, specs) if pieces else {} for pieces in reader.enrolment]
    if any(session is None for session in sessions):
        return None
    units = units_of(SEGMENT_SECONDS)
    made: dict[str, list[AnyArray]] = {name: [] for name in specs}
    for session, place in reader.segments:
        found = sessions[session] or {}
        for name, rows in made.items():
            if (place + 1) * units <= found[name].length:
                rows.append(found[name].total(place * units, units))
    return {name: np.stack(rows) for name, rows in made.items() if rows} or None


def trials_of(
    reader: Reader,
    heard: Mapping[Piece, HeardPiece],
    specs: Mapping[str, FeatureSpec],
    amounts: Amounts,
) -> dict[str, AnyArray] | None:
    """A reader's trials by feature, shape (trials, M); None where a piece is missing."""
    session = speech(reader.trials, heard, specs)
    if session is None:
        return None
    units = units_of(amounts.seconds)
    count = min(amounts.trials, next(iter(session.values())).length // units)
    if not count:
        return None
    return {
        name: np.stack([each.total(i * units, units) for i in range(count)])
        for name, each in session.items()
    }


def scores(
    way: Similarity, segments: Sequence[AnyArray], trials: AnyArray, count: int
) -> FloatArray:
    """Every trial against every reader's first segments, shape (n, N).

    Args:
        way: how they are compared: with the sum of segments, or ``by_slice`` with each.
        segments: of each reader, shape (S, M).
        trials: shape (n, M).
        count: L; all that a reader has where that is less.
    """
    first = [each[:count] for each in segments]
    if way.by_slice:
        most = max(map(len, first))
        # a segment more of what is there changes no maximum
        templates = np.stack([np.concatenate([s, s[:1].repeat(most - len(s), 0)]) for s in first])
    else:
        templates = np.stack([each.sum(axis=0) for each in first])
    return way.score_each(way.prepare(templates), trials)
