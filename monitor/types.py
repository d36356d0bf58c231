"""Immutable values that sources, features and monitors exchange."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "GAP_REASONS",
    "NOTICE_KINDS",
    "TICKS_PER_SECOND",
    "TICK_SECONDS",
    "AnyArray",
    "Block",
    "BoolArray",
    "FloatArray",
    "Frames",
    "Gap",
    "IntArray",
    "Item",
    "Notice",
    "Record",
    "Track",
    "Tracks",
    "Words",
]

FloatArray: TypeAlias = NDArray[np.floating[Any]]
"""A numpy array of floats of any precision."""
DoubleArray: TypeAlias = NDArray[np.float64]
"""Array of doubles."""
IntArray: TypeAlias = NDArray[np.integer[Any]]
"""A numpy array of integers of any size."""
BoolArray: TypeAlias = NDArray[np.bool_]
"""A numpy array of truth values."""
AnyArray: TypeAlias = NDArray[Any]
"""A numpy array of any type."""
Record: TypeAlias = Mapping[str, Any]
"""A record of a run, or an object within one, as in JSON; docs/records.md lists the keys."""

TICKS_PER_SECOND = 100
"""Ticks per second of audio. A tick, 10 ms, is the unit of time in the whole program."""
TICK_SECONDS = 1 / TICKS_PER_SECOND
"""Seconds of one tick."""
GAP_REASONS: Mapping[str, str] = {
    "not finite": "samples or frames that are not finite",
    "not a bin": "given frames outside the bins of their histogram",
    "broken file": "a recording ends early or cannot be decoded",
    "broken pipe": "piped audio ends early or cannot be decoded",
    "overflow": "live: lost by the audio system",
    "dropped": "live: not processed in time",
    "device lost": "live: the input device was lost",
    "words ended": "live: the speech recogniser has ended, but no audio is lost",
    "turns ended": "live: the diariser has ended, so later speech is excluded",
    "late turns": "live: the turns arrived too late, so that speech is excluded",
    "thinned": "live: one feature (see `detail`) skipped it because the machine could not keep up",
}
"""All values of `Gap.reason` in this package, with their meanings."""
NOTICE_KINDS: Mapping[str, str] = {
    "bits withheld": "no figure yet, or none for these features, and the reason",
    "template length": "templates are cut, or their length was not calibrated",
    "not compared": "people with too little enrolled speech are excluded",
    "empty templates": "the templates lack a feature",
    "feature caveat": "a limit of a feature in use",
    "feature not used": "an attacker may use a feature that is not used here",
    "crowd unsupported": "the names of `bystanders` need more bits than calibration supports",
    "noisy frames": "the frames have noise",
    "changes unnoticed": "no feature in use can detect a new voice",
    "same-session rank model": "the same-session rank model is used, since there is no other",
    "enrolled too": "another part of this recording was enrolled; effect on its model",
    "shipped rank model": "the rank model is that of the shipped readers",
    "mismatched rank model": "some of these speakers were not in the calibration",
    "calibration contradicted": "the enrolled people are more alike than the evidence assumes",
    "inseparable": "an enrolled person cannot be told apart from the watched speaker",
    "prior": "fraction of the rank model that comes from the shipped readers",
    "one feature alone": "one feature discloses more than all combined",
    "forgotten": "forgotten people still affect the rank model",
    "evidence partial": "only some of the features have evidence",
    "no evidence": "bits apply only among the enrolled",
    "few learnt from": "far more people are enrolled than were in the calibration",
    "transcript": "a fault in a transcript, or a mismatch between it and the speech",
    "other language": "words in another language than the feature's",
    "protected": "meaning and limits of the figures of a protected side",
    "protected recording": "this program changed the voice in a recording; effect on the bits",
    "declared": "the guarantee of a mechanism",
    "rule": "a limit of an alert rule",
    "late warning": "a warning that can hardly precede its threshold",
    "nothing sent": "no rule can send an alert",
    "carried on": "the bits continue from earlier sessions of a ledger, or from some of them",
    "conditions differ": "the stream sounds unlike the templates: its band, noise, echo, pitch",
    "poor sound": (
        "the stream is so noisy, clipped, quiet or interrupted that its voice is hard to recognise"
    ),
    "conditions unknown": "noise and echo could not be estimated from the audio so far",
    "samples out of range": "the samples are far outside -1 to 1, like integers",
    "copy": "this audio was used for enrolment",
    "repeated": "this audio repeats earlier audio of the stream and adds no evidence",
    "channels differ": "the mixed channels contain different speech",
    "channels cancel": "the mean of the channels is far weaker than each of them",
    "turns": "a fault in the speaker turns",
    "no speech": "a recording has no speech",
    "another voice": "another voice takes turns with the watched one, and lowers the whole figure",
    "another person": "a recording sounds like another person than those before it",
    "evidence against": "the voice is not the watched speaker's, or was changed",
}
"""All values of `Notice.kind` in this package, with their meanings."""


@dataclass(frozen=True, slots=True)
class Block:
    """A run of consecutive audio samples.

    Attributes:
        samples: shape (n,) or (n, channels), floats in [-1, 1].
        rate: samples per second.
        recording: index in the stream. A new index restarts resampling and voice activity
            detection.
    """

    samples: FloatArray
    rate: int
    recording: int = 0

    @property
    def seconds(self) -> float:
        """Length in seconds."""
        return len(self.samples) / self.rate


@dataclass(frozen=True, slots=True)
class Gap:
    """Missing audio.

    Attributes:
        reason: a key of `GAP_REASONS`. Your own source may use others.
        lost_seconds: seconds of lost audio; None if unknown.
        recording: index in the stream.
        detail: further explanation for people, one line.
    """

    reason: str
    lost_seconds: float | None
    recording: int = 0
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Notice:
    """Notice about a stream's figures; ``str(notice)`` is its sentence.

    Attributes:
        kind: a key of `NOTICE_KINDS`. Your own parts may use others.
        text: one line with the fact and the remedy.
        recording: index in the stream.
        level: ``"warning"`` if figures may mislead, otherwise ``"info"``.
        fields: figures in the text by name, as JSON values.
        seconds: stream second at which it was noticed; None for the setup and whole recordings.
    """

    kind: str
    text: str
    recording: int = 0
    level: str = "warning"
    fields: Record = field(default_factory=dict)
    seconds: float | None = None

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class EarlyFrames:
    """Provisional frames of incomplete windows.

    Totals never include them. Before a feature's first whole frame, an early frame replaces it.
    Until the second, an early frame is added to the first.
    """

    ticks: IntArray  # shape (k,), non-decreasing, as in a `Track`
    values: AnyArray  # shape (k, d)
    seconds: IntArray  # shape (k,), whole seconds of speech in each frame

    def select(self, which: AnyArray | slice) -> EarlyFrames:
        """Select frames by index or by truth values."""
        return EarlyFrames(self.ticks[which], self.values[which], self.seconds[which])

    def shares(self, window: float) -> FloatArray:
        """Return weights relative to a whole frame of ``window`` seconds, shape (k,)."""
        return np.minimum(self.seconds / window, 1.0)

    def joined(self, after: EarlyFrames) -> EarlyFrames:
        """Return these frames followed by ``after``."""
        return EarlyFrames(
            np.concatenate((self.ticks, after.ticks)),
            np.concatenate((self.values, after.values)),
            np.concatenate((self.seconds, after.seconds)),
        )


@dataclass(frozen=True, slots=True, eq=False)
class SpeechWindow:
    """Speech from which an embedding was made. It is never stored."""

    ticks: IntArray  # shape (n,), increasing, counted as in a `Track`
    samples: FloatArray  # shape (n, s), mono, s samples per tick
    # shape (r, d), embeddings of the runs of its slots; None unless the network is a
    # `monitor.protocols.RunEmbedder`
    runs: FloatArray | None = None

    @property
    def has_sound(self) -> bool:
        """False after resuming from a snapshot, which contains no samples."""
        return bool(self.samples.size)

    def __deepcopy__(self, memo: object) -> SpeechWindow:
        """Return the same object, which never changes."""
        return self


def round_to_16_bits(samples: FloatArray) -> IntArray:
    """Round samples of full scale 1, any shape, to little-endian 16 bits, with clipping."""
    return np.asarray(np.clip(np.rint(samples * 32768), -32768, 32767), "<i2")


def find_runs(marked: BoolArray) -> list[tuple[int, int]]:
    """List the runs of true values, shape (n,), as (begin, end).

    Example:
        >>> find_runs(np.array([True, True, False, True]))
        [(0, 2), (3, 4)]
    """
    edges = np.flatnonzero(np.diff(marked, prepend=False, append=False)).tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))


def list_runs(slots: int) -> list[tuple[int, int]]:
    """List all runs of two or more adjacent slots as (begin, end), sorted by begin."""
    return [run for run in combinations(range(slots + 1), 2) if run[1] - run[0] > 1]


@dataclass(frozen=True, slots=True)
class Track:
    """The usable frames of one feature.

    Attributes:
        ticks: shape (k,), non-decreasing; the tick of the stream at which each frame is complete.
        values: shape (k,) integers (bins of a histogram) or (k, d) floats (embeddings).
        spans: shape (k, 2), the audio [begin, end) of each frame in ticks of the stream. None if
            each frame covers the ``frame_seconds`` before its tick.
        early: further provisional frames, or None.
        windows: speech of each embedding, or None.
    """

    ticks: IntArray
    values: AnyArray
    spans: IntArray | None = None
    early: EarlyFrames | None = None
    windows: tuple[SpeechWindow, ...] | None = None

    def select(self, which: AnyArray | slice) -> Track:
        """Select frames by index or by truth values, without early frames."""
        spans = None if self.spans is None else self.spans[which]
        windows = self.windows
        if windows is not None:
            windows = tuple(windows[i] for i in np.arange(len(windows))[which].tolist())
        return Track(self.ticks[which], self.values[which], spans, windows=windows)

    @property
    def is_empty(self) -> bool:
        """True if there are neither frames nor early frames."""
        return not self.ticks.size and self.early is None

    @property
    def first_ticks(self) -> IntArray:
        """First tick of each frame's audio; without spans, the tick that completes it."""
        return self.ticks if self.spans is None else self.spans[:, 0] + 1

    def within(self, low: int, high: int) -> Track:
        """Return the frames that are complete after tick ``low`` and by tick ``high``."""
        first, last = self.ticks.searchsorted([low, high], side="right")
        if self.early is None:
            is_all = first == 0 and last == self.ticks.size
            return self if is_all else self.select(slice(first, last))
        track = self.select(slice(first, last))
        inside = slice(*self.early.ticks.searchsorted([low, high], side="right"))
        return replace(track, early=self.early.select(inside))

    def shifted(self, ticks: int) -> Track:
        """Return the same frames, shifted by ``ticks``."""
        if not ticks:
            return self
        spans = None if self.spans is None else self.spans + ticks
        early = self.early
        if early is not None:
            early = EarlyFrames(early.ticks + ticks, early.values, early.seconds)
        windows = self.windows
        if windows is not None:
            windows = tuple(replace(window, ticks=window.ticks + ticks) for window in windows)
        return Track(self.ticks + ticks, self.values, spans, early, windows)


@dataclass(frozen=True, slots=True)
class Frames:
    """Frames of all features for consecutive ticks of a stream.

    Attributes:
        speech: shape (n,), one decision of the voice activity detector for each tick.
        tracks: the usable frames of each feature; ticks count from the start of the stream.
        gaps, notices: pairs (tick, Gap) and (tick, Notice) within these ticks.
        recording: index in the stream.
    """

    speech: BoolArray
    tracks: Mapping[str, Track]
    gaps: tuple[tuple[int, Gap], ...] = field(default=())
    recording: int = 0
    notices: tuple[tuple[int, Notice], ...] = field(default=())

    def between(self, low: int, high: int) -> Frames:
        """Return the ticks after ``low`` up to ``high``, renumbered from ``low``, without gaps."""
        tracks = {name: track.within(low, high) for name, track in self.tracks.items()}
        cut = Frames(self.speech[low:high], tracks, recording=self.recording)
        return cut.shifted(-low)

    def shifted(self, ticks: int) -> Frames:
        """Return the same frames, ``ticks`` later."""
        tracks = {name: track.shifted(ticks) for name, track in self.tracks.items()}
        return replace(self, tracks=tracks)


@dataclass(frozen=True, slots=True)
class Starts:
    """Streams that begin at several points of one recording, extracted separately."""

    at: IntArray  # shape (k,), the tick of the recording at which each begins
    ends: IntArray  # shape (k,), the tick of ``frames`` at which each ends
    frames: Frames  # frames of all streams, one after the other

    def split(self) -> Iterator[tuple[int, Frames]]:
        """Yield each stream's first tick, and its frames with ticks counted from there."""
        begin = 0
        for at, end in zip(self.at.tolist(), self.ends.tolist(), strict=True):
            yield at, self.frames.between(begin, end)
            begin = end


@dataclass(frozen=True, slots=True)
class Tracks:
    """Ready-made frames that accompany audio or `Frames`.

    Ticks and spans of the ``tracks`` count from the start of the recording.
    """

    tracks: Mapping[str, Track]
    recording: int = 0


@dataclass(frozen=True, slots=True)
class Words:
    """Recognised or transcribed words with their times.

    A word counts from the tick at which it is known, which may be long after it was spoken. A word
    that arrives later than that counts from its arrival.

    Attributes:
        texts: the k words.
        begins, ends: shape (k,), begin and end of each word in ticks of the recording.
        known: shape (k,), tick at which each is known, non-decreasing and never before its end.
        recording: index in the stream.
    """

    texts: tuple[str, ...] = field(repr=False)  # hidden, since printed values may be logged
    begins: IntArray
    ends: IntArray
    known: IntArray
    recording: int = 0


Item: TypeAlias = Block | Frames | Gap | Words | Tracks
"""Item of a source's stream."""
