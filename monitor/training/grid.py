"""Cells of the calibration grid: trials of T against templates of D speech seconds."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import NamedTuple, TypeAlias

import numpy as np

from monitor.errors import UsageError
from monitor.maths import posterior_fit as logit
from monitor.maths.ranks import rank_bounds, score_gaps
from monitor.maths.scores import Similarity
from monitor.population.cohort import CohortScoring, normalise
from monitor.population.templates import SLICE_SECONDS
from monitor.training.voices import UNITS_PER_SECOND, SessionFrames, SpeakerSpeech, join, units_in
from monitor.types import AnyArray, BoolArray, FloatArray, IntArray


def trials_of(cell: Cell, axis: Sequence[int]) -> tuple[logit.Trials, BoolArray] | None:
    """Return trials, and a mask of the features with frames; None if no score differed."""
    _, speaker = np.unique(cell.gap_speaker, return_inverse=True)
    gaps = cell.gaps[:, list(axis)]
    has_frames: BoolArray = np.asarray(gaps.any(axis=(0, 2)))
    return (logit.Trials(gaps[:, has_frames], speaker), has_frames) if has_frames.any() else None


def ranks_of(
    cell: Cell, axis: Sequence[int], evidence: FloatArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Return speaker, better and tied per trial; for several features, of sampled trials only."""
    if len(axis) == 1:
        return cell.speaker, cell.better[axis[0]], cell.tied[axis[0]]
    return cell.gap_speaker, (evidence > 0).sum(axis=1), (evidence == 0).sum(axis=1)


def singles_of(cell: Cell) -> logit.SingleFeatureFits:
    """Fit each feature of a cell alone, as a start for fits of several features."""
    _, speaker = np.unique(cell.gap_speaker, return_inverse=True)
    return logit.SingleFeatureFits(logit.Trials(cell.gaps, speaker))


MOST_SCORES = 4_000_000  # kept for the conditional logit and the null band; ranks use every trial
_CHUNK = 256
_SLICE_UNITS = round(SLICE_SECONDS * UNITS_PER_SECOND)


@dataclass(frozen=True, slots=True)
class CellComparisons:
    """Streams of a cell, each against every template and normalised against a cohort."""

    z: FloatArray  # shape (n, F, N)
    has_frames: BoolArray  # shape (n, F), whether the stream has a frame of the feature
    tester: IntArray  # shape (n,), index of each stream's speaker among all voices
    mated: IntArray  # shape (n,), index of the own template from another recording, otherwise -1
    owner: IntArray  # shape (N,), index of each template's speaker among all voices


@dataclass(frozen=True, slots=True)
class Cell:
    """Trials of one cell."""

    speaker: IntArray  # shape (n,), index of each trial's speaker among all voices
    better: IntArray  # better, tied: shape (F, n), the rank bounds of the true speaker by feature
    tied: IntArray
    candidates: int  # N, templates each trial is compared with
    gaps: FloatArray  # shape (n', F, N), raw scores minus the true speaker's, of sampled trials
    gap_speaker: IntArray  # shape (n',), as ``speaker``
    true_index: IntArray  # shape (n',), position of the true speaker among the N templates
    mated: FloatArray  # shape (n', F), the true speaker's raw score
    frames: FloatArray  # shape (n', F), usable frames of the test
    compared: CellComparisons | None = None

    def tested_on(self, voices: BoolArray) -> Cell:
        """Keep only tests of these voices, a mask, shape (voices,); all remain candidates."""
        tests, samples = voices[self.speaker], voices[self.gap_speaker]
        return Cell(
            self.speaker[tests],
            self.better[:, tests],
            self.tied[:, tests],
            self.candidates,
            self.gaps[samples],
            self.gap_speaker[samples],
            self.true_index[samples],
            self.mated[samples],
            self.frames[samples],
            self.compared,
        )


Window: TypeAlias = tuple[dict[str, SessionFrames], int]
"""A session, and the first unit of a window in it."""
Locate: TypeAlias = Callable[[int, int], Window]  # finds the window of a voice at a shift
_Without: TypeAlias = Callable[[int, int | None], dict[str, SessionFrames]]
"""Joins all sessions of a voice except one."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Positions of the windows of one cell."""

    candidates: IntArray  # shape (N,), indices of the voices that provide a template
    mated: IntArray  # positions in ``candidates`` of the voices that also provide tests
    shifts: int  # how many tests each mated speaker provides
    template: Locate
    test: Locate
    # index of the session in which a test begins, and the unit in that session
    locate_session: Callable[[int, int], tuple[int, int]]
    strays: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))  # voices, see `stray`
    stray: Locate | None = None  # windows of voices that are compared only with others

    def run(
        self,
        similarities: dict[str, Similarity],
        test_units: int,
        template_units: int,
        *,
        cohort: Mapping[str, CohortScoring] | None = None,
    ) -> Cell:
        """Score every trial of the cell.

        Args:
            similarities: by feature, in the order of the axis F.
            test_units: T in units of speech.
            template_units: D, likewise.
            cohort: by feature, for normalising streams; without it there are no comparisons.
        """
        trials = self.mated.size * self.shifts
        stride = max(1, -(-trials * self.candidates.size * len(similarities) // MOST_SCORES))
        batches: list[tuple[AnyArray, ...]] = []
        comparisons: list[tuple[AnyArray, ...]] = []
        sliced = {f: s.by_slice for f, s in similarities.items()}
        mated_voices = self.candidates[self.mated]
        for shift in range(self.shifts):
            templates = self.windows(self.template, self.candidates, shift, template_units, sliced)
            tests = self.tests(self.test, mated_voices, shift, test_units, similarities)
            prepared = {f: s.prepare(templates[f]) for f, s in similarities.items()}
            for start in range(0, self.mated.size, _CHUNK):
                rows = np.arange(start, min(start + _CHUNK, self.mated.size))
                totals = {f: tests[f][rows] for f in similarities}
                target, is_sampled = self.mated[rows], (rows + shift) % stride == 0
                scores = np.stack(
                    [s.score(prepared[f], totals[f]) for f, s in similarities.items()]
                )
                batches.append(self._rank(scores, totals, target, is_sampled))
                if cohort and is_sampled.any():
                    streams = {f: total[is_sampled] for f, total in totals.items()}
                    sampled_target = target[is_sampled]
                    block = _normalise(scores[:, is_sampled], streams, cohort)
                    comparisons.append((*block, self.candidates[sampled_target], sampled_target))
            strays = self.strays[shift % stride :: stride]
            if cohort and strays.size and self.stray is not None:
                tests = self.tests(self.stray, strays, shift, test_units, similarities)
                scores = np.stack([s.score(prepared[f], tests[f]) for f, s in similarities.items()])
                block = _normalise(scores, tests, cohort)
                comparisons.append((*block, strays, np.full(strays.size, -1)))
        compared = None
        if comparisons:
            z, has_frames, tester, mated = _concatenate(comparisons)
            compared = CellComparisons(z, has_frames, tester, mated, self.candidates)
        speaker, better, tied, gaps, gap_speaker, sampled_target, mated, frames = _concatenate(
            batches
        )
        return Cell(
            speaker, better.T, tied.T, self.candidates.size, gaps, gap_speaker, sampled_target,
            mated, frames,
            compared,
        )  # fmt: skip

    def _rank(
        self,
        scores: FloatArray,
        tests: Mapping[str, FloatArray],
        target: IntArray,
        is_sampled: BoolArray,
    ) -> tuple[AnyArray, ...]:
        """Rank scores (F, n, N); return speakers, rank bounds and data of sampled trials."""
        gaps = score_gaps(scores, target)
        bounds = [rank_bounds(feature_gaps, target) for feature_gaps in gaps]
        counts = [np.abs(totals).sum(axis=1) for totals in tests.values()]
        sampled_target = target[is_sampled]
        return (
            self.candidates[target],
            np.stack([better for better, _ in bounds], axis=1),
            np.stack([tied for _, tied in bounds], axis=1),
            np.moveaxis(gaps, 0, 1)[is_sampled],
            self.candidates[sampled_target],
            sampled_target,
            scores[:, is_sampled, sampled_target].T,
            np.stack(counts, axis=1)[is_sampled],
        )

    @staticmethod
    def tests(
        locate: Locate, voices: IntArray, shift: int, units: int, features: Iterable[str]
    ) -> dict[str, FloatArray]:
        """Sum up each test by feature, shape (n, M), as a stream has it after ``units``."""
        located = [locate(int(voice), shift) for voice in voices]
        return {
            feature: np.stack(
                [session[feature].compute_total(start, units) for session, start in located]
            )
            for feature in features
        }

    @staticmethod
    def windows(
        locate: Locate, voices: IntArray, shift: int, units: int, sliced: dict[str, bool]
    ) -> dict[str, FloatArray]:
        """Sum up each template by feature, shape (n, M), or its slices, (n, S, M)."""
        rows: dict[str, list[FloatArray]] = {feature: [] for feature in sliced}
        step = min(_SLICE_UNITS, units)
        for voice in voices:
            session, start = locate(int(voice), shift)
            firsts = range(start, start + units - step + 1, step)
            for feature, totals in rows.items():
                if sliced[feature]:
                    totals.append(np.stack([session[feature].enrolled(at, step) for at in firsts]))
                else:
                    totals.append(session[feature].enrolled(start, units))
        return {feature: np.stack(totals) for feature, totals in rows.items()}


def _normalise(
    scores: FloatArray, tests: Mapping[str, FloatArray], cohort: Mapping[str, CohortScoring]
) -> tuple[FloatArray, BoolArray]:
    """Normalise scores (F, n, N) by a cohort; return z, (n, F, N), and has_frames, (n, F)."""
    features, streams, candidates = scores.shape
    z = np.zeros((streams, features, candidates), np.float32)
    has_frames = np.zeros((streams, features), bool)
    for f, (name, totals) in enumerate(tests.items()):
        if name in cohort:
            mean, spread = cohort[name].compute_score_stats(totals)
            z[:, f] = normalise(scores[f], mean, spread)
            has_frames[:, f] = totals.any(axis=1) & (spread > 0)
    return z, has_frames


def _concatenate(batches: Sequence[tuple[AnyArray, ...]]) -> list[AnyArray]:
    return [np.concatenate(arrays) for arrays in zip(*batches, strict=True)]


def _plan_same(voices: Sequence[SpeakerSpeech], test: int, template: int, shifts: int) -> Plan:
    """Plan template and test by eq. (6) within each voice's longest session."""
    places = [max(range(len(v.sessions)), key=v.length) for v in voices]
    sessions = [v.sessions[i] for v, i in zip(voices, places, strict=True)]
    # a long frame of one may have begun in the other: separate them by such a frame
    guard = max((s.span for v in voices for s in v.sessions[0].values()), default=0)
    fits = [units_in(session) >= test + template + 2 * guard for session in sessions]
    candidates = np.flatnonzero(fits)

    def locate(voice: int, shift: int) -> tuple[int, int]:
        available = units_in(sessions[voice])
        offset = shift * available // shifts
        start = start_after(sessions[voice], offset)
        begin = window_starts(offset, test, template, available)[1]
        later = (start - offset) % available
        if later + test + guard > (begin - offset) % available:  # it would reach into the template
            begin = window_starts(start, test, template, available)[1]
        return start, begin

    return Plan(
        candidates,
        np.arange(candidates.size),
        shifts,
        template=lambda voice, shift: (sessions[voice], locate(voice, shift)[1]),
        test=lambda voice, shift: (sessions[voice], locate(voice, shift)[0]),
        locate_session=lambda voice, shift: (places[voice], locate(voice, shift)[0]),
    )


def start_after(session: dict[str, SessionFrames], unit: int) -> int:
    """Find the next start of a session, circular; ``unit`` itself if the session has none."""
    units = max((list(frames.starts) for frames in session.values()), key=len)
    return units[bisect_left(units, unit) % len(units)] if units else unit


def _plan_cross(
    voices: Sequence[SpeakerSpeech], test: int, template: int, shifts: int, without: _Without
) -> Plan:
    """Plan the template from one session in turn, and the test from the speaker's others.

    Speakers with too little speech for both are compared only with others, by all sessions.
    """
    lengths = [[v.length(i) for i in range(len(v.sessions))] for v in voices]
    long = [
        [i for i, units in enumerate(session_lengths) if units >= template]
        for session_lengths in lengths
    ]
    # sessions without which enough speech remains for a test
    paired = [
        [i for i in choices if sum(session_lengths) - session_lengths[i] >= test]
        for session_lengths, choices in zip(lengths, long, strict=True)
    ]
    total = np.array([sum(session_lengths) for session_lengths in lengths])
    candidates = np.flatnonzero(total >= template)
    mated = np.flatnonzero([len(paired[voice]) > 0 for voice in candidates])
    strays = np.setdiff1d(np.flatnonzero(total >= test), candidates[mated])

    def turn_of(voice: int, shift: int) -> int:
        choices = paired[voice] or long[voice]
        return choices[shift % len(choices)]

    def place(session: dict[str, SessionFrames], shift: int) -> Window:
        return session, shift * units_in(session) // shifts

    def place_test(session: dict[str, SessionFrames], shift: int) -> Window:
        return session, start_after(*place(session, shift))

    def locate_template(voice: int, shift: int) -> Window:
        if not long[voice]:
            return place(without(voice, None), shift)
        return place(voices[voice].sessions[turn_of(voice, shift)], shift)

    def locate_test(voice: int, shift: int) -> Window:
        return place_test(without(voice, turn_of(voice, shift)), shift)

    def locate_session(voice: int, shift: int) -> tuple[int, int]:
        turn, start = turn_of(voice, shift), locate_test(voice, shift)[1]
        for session, units in enumerate(lengths[voice]):
            length = 0 if session == turn else units
            if start < length:
                return session, start
            start -= length
        raise IndexError(start)

    return Plan(
        candidates, mated, shifts, locate_template, locate_test, locate_session, strays,
        lambda voice, shift: place_test(without(voice, None), shift),
    )  # fmt: skip


class GridCell(NamedTuple):
    """A cell of the grid: kind of session, index of T, index of D, and plan of its windows."""

    session: str
    length: int
    template_length: int
    plan: Plan


def plans(
    voices: Sequence[SpeakerSpeech],
    lengths: Sequence[float],
    template_lengths: Sequence[float],
    shifts: int,
) -> Iterator[GridCell]:
    """Plan every cell of the grid, for both kinds of session."""

    @cache  # all cells join the same sessions
    def without(voice: int, turn: int | None) -> dict[str, SessionFrames]:
        others = [session for i, session in enumerate(voices[voice].sessions) if i != turn]
        return {f: join([session[f] for session in others]) for f in others[0]}

    across = partial(_plan_cross, without=without)
    for session, plan in (("same", _plan_same), ("cross", across)):
        for d, template in enumerate(template_lengths):
            for t, test in enumerate(lengths):
                units = round(test * UNITS_PER_SECOND), round(template * UNITS_PER_SECOND)
                yield GridCell(session, t, d, plan(voices, *units, shifts))


def window_starts(start: int, test: int, template: int, available: int) -> tuple[int, int]:
    """Place the test and the template, in units of speech, circular in ``available``.

    The test is ``start + [0, test)``. The template is ``start + test + gap + [0, template)`` with
    ``gap = floor((available - test - template) / 2)``. Both are modulo ``available``. They never
    overlap and are as far apart as possible (docs/method.md section 4). The offset printed in the
    paper overlaps.

    Example:
        >>> window_starts(3, test=2, template=4, available=10)
        (3, 7)
    """
    if test + template > available or min(test, template) < 1:
        raise UsageError(f"test {test} and template {template} do not fit into {available} units")
    gap = (available - test - template) // 2
    return start % available, (start + test + gap) % available
