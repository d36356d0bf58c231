"""The values that flow from one stage to the next; all frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "GAP_REASONS",
    "TICKS_PER_SECOND",
    "TICK_SECONDS",
    "AnyArray",
    "Block",
    "BoolArray",
    "FloatArray",
    "Frames",
    "Gap",
    "IntArray",
    "Track",
    "Tracks",
    "Words",
]

FloatArray: TypeAlias = NDArray[np.floating[Any]]
"""A numpy array of floats of any precision."""
IntArray: TypeAlias = NDArray[np.integer[Any]]
"""A numpy array of integers of any size."""
BoolArray: TypeAlias = NDArray[np.bool_]
"""A numpy array of truth values."""
AnyArray: TypeAlias = NDArray[Any]
"""A numpy array of anything."""

TICKS_PER_SECOND = 100
"""The clock of the whole program: one tick is 10 ms of audio."""
TICK_SECONDS = 1 / TICKS_PER_SECOND
"""Seconds of one tick."""
GAP_REASONS: Mapping[str, str] = {
    "not finite": "samples, or frames, that are no numbers",
    "not a bin": "ready-made frames that fit no bin of their histogram",
    "broken file": "a recording ends early or cannot be decoded",
    "broken pipe": "what came through a pipe ends early or cannot be decoded",
    "overflow": "live: the sound system lost it",
    "dropped": "live: nobody took it in time",
    "device lost": "live: the input was gone",
    "words ended": "live: the recogniser whose words are heard has ended; no audio is lost",
    "thinned": "live: one feature left it out, see `detail`, since the machine could not keep up",
}
"""Why the package's own parts miss audio: the `Gap.reason`, and what it means."""


@dataclass(frozen=True, slots=True)
class Block:
    """A run of consecutive audio samples.

    Attributes:
        samples: shape (n,) or (n, channels), floats in [-1, 1].
        rate: samples per second.
        recording: which recording of the stream this is; another number starts resampling and
            voice activity afresh.
    """

    samples: FloatArray
    rate: int
    recording: int = 0


@dataclass(frozen=True, slots=True)
class Gap:
    """Audio that should be here and is not.

    Attributes:
        reason: a few words, one of `GAP_REASONS`; a source of your own may have others.
        lost_seconds: audio seconds lost; None where nobody can know.
        recording: which recording of the stream.
        detail: one line for a person.
    """

    reason: str
    lost_seconds: float | None
    recording: int = 0
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Track:
    """The usable frames of one feature.

    Attributes:
        ticks: shape (k,), non-decreasing; the frame is complete once that many ticks of the
            stream have been heard.
        values: shape (k,) integers (bins of a histogram) or (k, d) floats (embeddings).
        spans: shape (k, 2), the stretch of audio [begin, end) each frame was made of, in ticks of
            the stream; None where a frame stands for its feature's ``frame_seconds``, complete as
            soon as it was heard.
    """

    ticks: IntArray
    values: AnyArray
    spans: IntArray | None = None


@dataclass(frozen=True, slots=True)
class Frames:
    """What the features made of a run of consecutive ticks.

    Attributes:
        speech: shape (n,), one decision of the voice activity detector for each tick.
        tracks: the usable frames of each feature; ticks count from the start of the stream.
        gaps: losses that fall into this run, as (tick, Gap).
        recording: which recording of the stream.
    """

    speech: BoolArray
    tracks: Mapping[str, Track]
    gaps: tuple[tuple[int, Gap], ...] = field(default=())
    recording: int = 0


@dataclass(frozen=True, slots=True)
class Tracks:
    """Ready-made frames that lie beside audio, or beside frames that keep the clock.

    Attributes:
        tracks: by feature; ticks and spans count from the start of the recording.
        recording: which recording of the stream.
    """

    tracks: Mapping[str, Track]
    recording: int = 0


@dataclass(frozen=True, slots=True)
class Words:
    """Words that somebody recognised, or wrote down, with when they were said.

    A word counts from the tick at which it is known, which may be long after it was said; where
    that has gone by when it comes, from then on.

    Attributes:
        texts: the k words.
        begins, ends: shape (k,), when each was said, in ticks of the recording.
        known: shape (k,), when each was known, non-decreasing; never before its end.
        recording: which recording of the stream.
    """

    texts: tuple[str, ...] = field(repr=False)  # what is printed may be logged
    begins: IntArray
    ends: IntArray
    known: IntArray
    recording: int = 0
