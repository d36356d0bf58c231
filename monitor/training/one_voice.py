"""A check that an enrolment is one voice alone, by its window embeddings.

Two people in turn differ before and after some moment. Two at once, or quick turns, make any two
windows unlike. In music the network's attention finds little of a voice. ``python -m benchmarks
one_voice`` reports how often each is noticed, and how often one voice is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from monitor.kinds import FeatureSpec
from monitor.networks.voice import SHA256
from monitor.phrases import format_names
from monitor.training.feature_extraction import SpeechFrames
from monitor.types import TICKS_PER_SECOND, AnyArray

NETWORK = SHA256  # the thresholds are for embeddings of this network
LEAST_WINDOWS = 4  # fewer windows of 3 s are not judged
LEAST_AGREEMENT, LEAST_COHESION, LEAST_ATTENTION = 0.65, 0.55, -0.3
"""Chosen on readers of train-clean-5 and train-clean-100."""


class Unity(NamedTuple):
    """Measures of how alike the consecutive windows of a session are."""

    split: int  # windows before the moment at which the voice changes most
    agreement: float  # mean cosine of windows before and after it, divided by the cohesion
    cohesion: float  # mean cosine of two windows on one side of it
    attention: float  # median logarithm of the lengths of the embeddings

    @property
    def is_turn(self) -> bool:
        """True if the windows before and after the split sound like two people."""
        return self.agreement < LEAST_AGREEMENT

    @property
    def is_mixed(self) -> bool:
        """True if other voices or music sound along with the voice."""
        return self.cohesion < LEAST_COHESION or self.attention < LEAST_ATTENTION


def measure_unity(windows: AnyArray) -> Unity | None:
    """Measure consecutive window embeddings, shape (k, d); None if there are too few.

    Example:
        >>> one, other = np.eye(2)
        >>> measure_unity(np.array([one, one, one, other, other]))
        Unity(split=3, agreement=0.0, cohesion=1.0, attention=0.0)
    """
    windows = np.asarray(windows, np.float64)
    lengths = np.linalg.norm(windows, axis=1)
    units = windows[lengths > 0] / lengths[lengths > 0, None]
    count = len(units)
    if count < LEAST_WINDOWS:
        return None
    fewest = 1 if count < 2 * LEAST_WINDOWS - 2 else 2
    cosines = units @ units.T
    pairs = np.triu(np.ones((count, count), np.bool_), 1)

    def measure(split: int) -> tuple[float, float]:
        is_before = np.arange(count) < split
        together = is_before[:, None] == is_before
        cohesion = float(cosines[pairs & together].mean())
        return float(cosines[pairs & ~together].mean()), cohesion

    across, cohesion, split = min(
        (*measure(split), split) for split in range(fewest, count - fewest + 1)
    )
    agreement = across / cohesion if cohesion > 0 else 1.0
    return Unity(split, agreement, cohesion, float(np.median(np.log(lengths[lengths > 0]))))


def describe_other_voices(
    speaker: str,  # the name
    # label and frames of each recording of the session
    recordings: Sequence[tuple[str, SpeechFrames]],
    specs: Mapping[str, FeatureSpec],  # of the features
    ticks: int,  # of speech that are enrolled; at most one window after them counts
) -> list[str]:
    """Describe what makes an enrolled session more than one voice; empty if nothing does."""
    feature = next((name for name, spec in specs.items() if spec.network == NETWORK), None)
    if feature is None:
        return []
    windows: list[AnyArray] = []
    ends: list[tuple[str, float]] = []
    before, last = 0, ticks + round(specs[feature].frame_seconds * TICKS_PER_SECOND)
    for label, frames in recordings:
        track = frames.tracks[feature]
        for window, tick in zip(track.values, track.at.tolist(), strict=True):
            if before + tick < last:
                windows.append(window)
                ends.append((label, frames.audio_seconds_at(tick)))
        before += frames.speech_ticks
    unity = measure_unity(np.array(windows)) if windows else None
    if unity is None or not (unity.is_turn or unity.is_mixed):
        return []
    if unity.is_turn:
        label, seconds = ends[unity.split - 1]
        what = f"the voice changes about {seconds:.0f} s into {label}"
    else:
        labels = list(dict.fromkeys(label for label, _ in ends))
        what = f"other voices, music or noise in {format_names(labels, 2)}"
    return [
        f"{speaker}: {what}. The template then fits no voice well, and bits read too low. "
        "Enrol one person alone, in a quiet place."
    ]
