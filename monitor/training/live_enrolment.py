"""Enrolment speech from a live source: frames and levels are kept, never the audio."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from monitor.features.condition import CONDITION
from monitor.features.extractor import Extractor
from monitor.features.tracks import join_runs
from monitor.protocols import Feature
from monitor.sources.frames import write_frames
from monitor.types import TICKS_PER_SECOND, Block, Frames

__all__ = ["LiveEnrolment", "Quality"]

RECENT_SECONDS = 5.0
"""Trouble is looked for in so much of what was heard last."""
CLIPPED_SHARE = 1e-3
QUIET_DECIBELS = -45.0
SPEECH_SHARE = 0.3
_FULL = 0.999
_LOUD_SHARE = 0.2  # speech, where there is any
_NOTHING_DECIBELS = -120.0
_ROUNDING = 1e-6  # of sums of seconds


@dataclass(frozen=True, slots=True)
class Quality:
    """How good a stretch of audio is for enrolment.

    Attributes:
        seconds: of audio.
        speech_share: of it, by voice activity.
        level_decibels: of its loudest fifth, relative to full scale.
        clipped_share: samples at full scale.
    """

    seconds: float
    speech_share: float
    level_decibels: float
    clipped_share: float

    @property
    def trouble(self) -> str:
        """What is wrong with it and how to mend it; empty where nothing is.

        Example:
            >>> Quality(5.0, 0.8, -20.0, 0.0).trouble, Quality(5.0, 0.8, -3.0, 0.02).trouble
            ('', 'clipping: turn the input down, or move away from the microphone')
        """
        if self.seconds <= 0:
            return ""
        if self.clipped_share >= CLIPPED_SHARE:
            return "clipping: turn the input down, or move away from the microphone"
        if self.level_decibels < QUIET_DECIBELS:
            return "too quiet: turn the input up, or move nearer (is it the right input?)"
        if self.speech_share < SPEECH_SHARE:
            return "mostly silence: go on speaking"
        return ""


class LiveEnrolment:
    """The enrolment of one speaker from a live source, in progress.

    Args:
        features: what templates are to be made of.

    Attributes:
        speech_seconds: heard so far.
        noticed: what is to be said of the audio, a line each.
    """

    def __init__(self, features: Sequence[Feature]) -> None:
        self._extractor = Extractor(features, conditions=True)
        self._runs: list[Frames] = []
        self._recent: deque[_Stretch] = deque()
        self._recent_seconds = 0.0
        self._stretches: list[_Stretch] = []
        self.speech_seconds = 0.0
        self.noticed: list[str] = []

    def hear(self, block: Block) -> None:
        """Hear some more."""
        frames = self._extractor.process(block)
        self._keep(frames)
        stretch = _measured(block, frames.speech.sum() / TICKS_PER_SECOND)
        self._stretches.append(stretch)
        self._recent.append(stretch)
        self._recent_seconds += stretch.seconds
        while self._recent_seconds - self._recent[0].seconds >= RECENT_SECONDS - _ROUNDING:
            self._recent_seconds -= self._recent.popleft().seconds

    @property
    def recent(self) -> Quality:
        """Of the last few seconds; of nothing until there are as many."""
        if self._recent_seconds < RECENT_SECONDS - _ROUNDING:
            return Quality(0.0, 0.0, _joined([*self._recent]).level, 0.0)
        return _joined([*self._recent]).quality

    @property
    def whole(self) -> Quality:
        """Of everything."""
        return _joined(self._stretches).quality

    def write(self, path: str | os.PathLike[str]) -> None:
        """End the take and write its frames as an ``.npz`` (mode 0600)."""
        self._keep(self._extractor.flush())
        frames = join_runs(self._runs)
        features = self._extractor.features
        tracks = dict(frames.tracks)
        sound = tracks.pop(CONDITION, None)
        total = [] if sound is None else sound.values.sum(axis=0, dtype=np.int64).tolist()
        write_frames(
            path,
            frames.speech,
            tracks,
            {each.spec.name: each.spec.size for each in features},
            {each.spec.name: each.spec.frame_seconds for each in features},
            networks={each.spec.name: each.spec.network for each in features},
            heard={"sound": total},
        )

    def _keep(self, frames: Frames) -> None:
        self._runs.append(frames)
        self.noticed += [notice.text for _, notice in frames.notices]
        self.speech_seconds += float(frames.speech.sum()) / TICKS_PER_SECOND


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Measures of a stretch of audio that add up; powers by tick."""

    seconds: float
    speech: float
    powers: np.ndarray
    samples: int
    clipped: int

    @property
    def level(self) -> float:
        """Of the loudest fifth, in decibels."""
        if not self.powers.size:
            return _NOTHING_DECIBELS
        most = max(1, round(_LOUD_SHARE * self.powers.size))
        loud = float(np.mean(np.partition(self.powers, -most)[-most:]))
        return 10 * math.log10(loud) if loud > 1e-12 else _NOTHING_DECIBELS

    @property
    def quality(self) -> Quality:
        """In words' reach."""
        if not self.samples:
            return Quality(0.0, 0.0, _NOTHING_DECIBELS, 0.0)
        share = self.speech / self.seconds
        return Quality(self.seconds, share, self.level, self.clipped / self.samples)


def _measured(block: Block, speech: float) -> _Stretch:
    samples = np.asarray(block.samples, np.float32).reshape(len(block.samples), -1)
    samples = np.nan_to_num(samples)
    tick = max(1, block.rate // TICKS_PER_SECOND)
    mono = samples.mean(axis=1)
    whole = mono[: len(mono) // tick * tick].reshape(-1, tick)
    clipped = int(np.count_nonzero(np.abs(samples) >= _FULL))
    seconds = len(mono) / block.rate
    return _Stretch(seconds, speech, np.square(whole).mean(axis=1), samples.size, clipped)


def _joined(parts: Sequence[_Stretch]) -> _Stretch:
    return _Stretch(
        sum(part.seconds for part in parts),
        sum(part.speech for part in parts),
        np.concatenate([np.empty(0), *(part.powers for part in parts)]),
        sum(part.samples for part in parts),
        sum(part.clipped for part in parts),
    )
