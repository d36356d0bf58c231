"""Checks that an enrolled session is one voice alone, and that sessions are of one person.

Within a session, window embeddings decide. If two people speak in turn, windows before and after
some moment differ. If they overlap or alternate quickly, any two windows differ. In music, the
network's attention finds little voice. ``python -m benchmarks one_voice`` reports rates of
detection and of false alarms.

Between sessions, each is compared, as a stream, with a template of the speaker's others among
other people, and the reverse. If the mean local bits are clearly negative, two people may have been
enrolled as one (benchmarks/results/sessions.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from monitor.errors import StoreError, UsageError
from monitor.kinds import FeatureSpec
from monitor.networks.voice import SHA256
from monitor.phrases import format_names
from monitor.population.people import Speaker
from monitor.population.population import Population
from monitor.population.templates import SLICE_SECONDS
from monitor.stream.attacker import Attacker
from monitor.stream.totals import RunningTotals
from monitor.training.feature_extraction import SpeechFrames
from monitor.types import TICKS_PER_SECOND, AnyArray, IntArray

NETWORK = SHA256  # the thresholds are for embeddings of this network
LEAST_WINDOWS = 4  # fewer windows of 3 s are not judged
LEAST_AGREEMENT, LEAST_COHESION, LEAST_ATTENTION = 0.65, 0.55, -0.3
"""Chosen on readers of train-clean-5 and train-clean-100."""
LEAST_SECONDS = 30.0  # minimum speech of a session, and of the others together
UNLIKE_BITS = -1.0  # mean local bits of both directions; below this, they sound like two people


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
    speaker: str,
    # label and frames of each recording of the session
    recordings: Sequence[tuple[str, SpeechFrames]],
    specs: Mapping[str, FeatureSpec],  # of the features
    ticks: int,  # of enrolled speech; at most one window after it counts
) -> list[str]:
    """Describe signs of other voices in an enrolled session; empty without signs."""
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
        finding = f"the voice changes about {seconds:.0f} s into {label}"
    else:
        labels = list(dict.fromkeys(label for label, _ in ends))
        finding = f"other voices, music or noise in {format_names(labels, 2)}"
    return [
        f"{speaker}: {finding}. The template then fits no voice well, and bits read too low. "
        "Enrol one person alone, in a quiet place."
    ]


@dataclass(frozen=True, slots=True)
class UnlikeSession:
    """A session that does not sound like the speaker's others."""

    speaker: str
    session: str
    bits: float  # local bits of the speaker, mean of both directions


def find_outlier_sessions(
    population: Population, sessions: Mapping[str, Sequence[tuple[str, int]]], others: Population
) -> list[UnlikeSession]:
    """Find sessions that sound unlike their speaker's others."""
    outliers: list[UnlikeSession] = []
    try:
        for name in population.names:
            if name not in others.names:
                slices = _slices_of(population, name)
                outliers += _find_unlike(name, sessions.get(name, ()), slices, population, others)
    except (StoreError, UsageError):  # no rank model, or no speaker with enough speech
        return []
    return outliers


def unlike_additions(
    before: Population, after: Population, sessions: Mapping[str, Sequence[tuple[str, int]]]
) -> list[UnlikeSession]:
    """Find additional sessions that sound unlike the earlier ones."""
    additions: list[UnlikeSession] = []
    for name in (name for name in sessions if name in before.names):
        parts = (("", int(np.diff(before.offsets)[before.index(name)])), *sessions[name])
        with suppress(StoreError, UsageError):  # no rank model, or no speaker with enough speech
            slices = _slices_of(after, name)
            outliers = _find_unlike(name, parts, slices, after, before.without(name))
            additions += [session for session in outliers if session.session]
    return additions


def _slices_of(population: Population, name: str) -> dict[str, AnyArray]:
    index = population.index(name)
    rows = slice(population.offsets[index], population.offsets[index + 1])
    return {key: templates.slices[rows] for key, templates in population.features.items()}


def _find_unlike(
    name: str,
    parts: Sequence[tuple[str, int]],
    slices: Mapping[str, AnyArray],
    population: Population,
    others: Population,
) -> list[UnlikeSession]:
    """Find the session that differs most, repeatedly, until the remaining ones are alike."""
    owner = np.repeat(np.arange(len(parts)), [count for _, count in parts])
    outliers: list[UnlikeSession] = []
    while True:
        bits = {}
        for i in np.unique(owner[owner >= 0]).tolist():
            session_rows, other_rows = (
                np.flatnonzero(owner == i),
                np.flatnonzero((owner >= 0) & (owner != i)),
            )
            if min(session_rows.size, other_rows.size) * SLICE_SECONDS >= LEAST_SECONDS:
                directions = [
                    _compute_bits(slices, *pair, population, others)
                    for pair in ((other_rows, session_rows), (session_rows, other_rows))
                ]
                bits[i] = float(np.mean(directions))
        lowest = min(bits, key=bits.__getitem__, default=None)
        if lowest is None or bits[lowest] >= UNLIKE_BITS:
            return outliers
        # two sessions do not show which one is wrong
        suspects = bits if len(bits) == 2 else [lowest]
        outliers += [UnlikeSession(name, parts[i][0], bits[i]) for i in suspects]
        owner[np.isin(owner, list(suspects))] = -1


def _compute_bits(
    slices: Mapping[str, AnyArray],
    template: IntArray,
    test: IntArray,
    population: Population,
    others: Population,
) -> float:
    name = "the speaker"
    while name in others.names:
        name += "'"
    alone = Population(
        [Speaker(name)],
        np.array([0, template.size]),
        {
            key: replace(templates, slices=slices[key][template])
            for key, templates in population.features.items()
        },
    )
    attacker = Attacker(others.joined(alone), tuple(population.features), name)
    if not attacker.watched:
        raise UsageError(attacker.withheld)
    totals = {}
    for key, templates in population.features.items():
        total = slices[key][test].astype(float).sum(axis=0)[None]
        frames = np.abs(total).sum(axis=1).round().astype(np.int64)
        totals[key] = RunningTotals(total, frames, frames * templates.spec.frame_seconds)
    seconds = np.array([test.size * SLICE_SECONDS])
    local = attacker.assess_each(totals, seconds)[0].local
    assert local is not None
    return local.value
