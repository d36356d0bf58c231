"""Enrolment of one speaker, live."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np

from monitor.corpus import Corpus, Recording
from monitor.errors import CorpusError
from monitor.features.extractor import Extractor
from monitor.features.landmarks import Landmarks
from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup
from monitor.population.population import Population
from monitor.population.templates import SLICE_SECONDS
from monitor.protocols import Feature
from monitor.training.enrolling import Enrolment, sum_slices, templates_of, whole_slices
from monitor.training.feature_extraction import ExtractionOutcome, SpeechFrames, speech_frames
from monitor.types import TICKS_PER_SECOND, Block, FloatArray, Frames

RECENT_SECONDS = 5.0  # audio in which problems are detected
CLIPPED_SHARE = 1e-3
QUIET_DECIBELS = -45.0
SPEECH_SHARE = 0.3
_FULL = 0.999
_LOUD_SHARE = 0.2  # loudest fraction of ticks, which is taken for speech
_NOTHING_DECIBELS = -120.0
_ROUNDING = 1e-6  # tolerance for sums of seconds


@dataclass(frozen=True, slots=True)
class Quality:
    """Level, clipping and speech of a stretch of audio for enrolment."""

    seconds: float
    speech_share: float
    level_decibels: float  # of its loudest fifth, relative to full scale
    clipped_share: float  # samples at full scale

    @property
    def trouble(self) -> str:
        """Fault and its remedy; empty if the audio is good.

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
            return "mostly silence: continue speaking"
        return ""


class LiveEnrolment:
    """Enrolment of one speaker from a live source, in progress."""

    def __init__(self, features: Sequence[Feature]) -> None:
        self._specs = {feature.spec.name: feature.spec for feature in features}
        self._extractor = Extractor([*features, Landmarks()], conditions=True, template=np.inf)
        self._runs: list[Frames] = []
        self._recent: deque[_Stretch] = deque()
        self._recent_seconds = 0.0
        self._stretches: list[_Stretch] = []
        self.speech_seconds = 0.0
        self.noticed: list[str] = []

    def push(self, block: Block) -> None:
        """Process the next block of the take."""
        frames = self._extractor.process(block)
        self._keep(frames)
        stretch = _measure(block, frames.speech.sum() / TICKS_PER_SECOND)
        self._stretches.append(stretch)
        self._recent.append(stretch)
        self._recent_seconds += stretch.seconds
        while self._recent_seconds - self._recent[0].seconds >= RECENT_SECONDS - _ROUNDING:
            self._recent_seconds -= self._recent.popleft().seconds

    @property
    def recent(self) -> Quality:
        """Quality of the last `RECENT_SECONDS`; only the level until there are as many."""
        quality = _assess(self._recent)
        if self._recent_seconds < RECENT_SECONDS - _ROUNDING:
            return Quality(0.0, 0.0, quality.level_decibels, 0.0)
        return quality

    @property
    def whole(self) -> Quality:
        """Quality of the whole take."""
        return _assess(self._stretches)

    def enrolment(
        self, speaker: str, heard_by: str, seconds: float, setup: FeatureSetup = AS_ENVIRONMENT
    ) -> Enrolment:
        """End the take and make a template; the session is named by ``heard_by`` and the time."""
        slice_limit = whole_slices(seconds)
        if self.speech_seconds < SLICE_SECONDS:
            raise CorpusError(
                f"{self.speech_seconds:.0f} s of speech are too short for a template, which needs "
                f"at least {SLICE_SECONDS:g} s. Nothing was enrolled. Try again, or use another "
                "input."
            )
        session = f"{heard_by}-{datetime.now().astimezone():%Y-%m-%dT%H%M%S}"
        specs = self._specs
        frames = self.end(session)
        recording = Recording(speaker, session, Path(session))
        outcome = ExtractionOutcome(recording, frames, problem=frames.lost)
        summary = sum_slices(slice_limit, [outcome], specs)
        enrolled, sessions, slices, problems, _, doubts = summary
        offsets = np.array([0, sum(count for _, count in sessions)])
        return Enrolment(
            Population([enrolled], offsets, templates_of(slices, specs)),
            tuple(problems),
            {speaker: sessions},
            corpus=Corpus((recording,), ()),
            features=tuple(specs),
            setup=setup,
            notes=tuple(doubts),
        )

    def end(self, label: str) -> SpeechFrames:
        """End the take and return its frames; ``label`` names the take in messages."""
        self._keep(self._extractor.flush())
        return speech_frames(label, self._runs, self._specs)

    def _keep(self, frames: Frames) -> None:
        self._runs.append(frames)
        self.noticed += [notice.text for _, notice in frames.notices]
        self.speech_seconds += float(frames.speech.sum()) / TICKS_PER_SECOND


class _Stretch(NamedTuple):
    """Measures of a stretch of audio, with one power per tick."""

    seconds: float
    speech: float
    powers: FloatArray
    samples: int
    clipped: int


def _measure(block: Block, speech: float) -> _Stretch:
    samples = np.asarray(block.samples, np.float32).reshape(len(block.samples), -1)
    samples = np.nan_to_num(samples)
    tick = max(1, block.rate // TICKS_PER_SECOND)
    mono = samples.mean(axis=1)
    full_ticks = mono[: len(mono) // tick * tick].reshape(-1, tick)
    clipped = int(np.count_nonzero(np.abs(samples) >= _FULL))
    seconds = len(mono) / block.rate
    return _Stretch(seconds, speech, np.square(full_ticks).mean(axis=1), samples.size, clipped)


def _assess(stretches: Collection[_Stretch]) -> Quality:
    """Assess stretches together, the level by their loudest fifth."""
    powers = np.concatenate([np.empty(0), *(stretch.powers for stretch in stretches)])
    samples = sum(stretch.samples for stretch in stretches)
    if not samples:
        return Quality(0.0, 0.0, _NOTHING_DECIBELS, 0.0)
    level = _NOTHING_DECIBELS
    if powers.size:
        count = max(1, round(_LOUD_SHARE * powers.size))
        loud = float(np.mean(np.partition(powers, -count)[-count:]))
        level = 10 * math.log10(loud) if loud > 1e-12 else level
    seconds = sum(stretch.seconds for stretch in stretches)
    speech = sum(stretch.speech for stretch in stretches)
    clipped = sum(stretch.clipped for stretch in stretches)
    return Quality(seconds, speech / seconds, level, clipped / samples)
