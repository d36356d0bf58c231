"""One cell of the calibration grid: trials of T against templates of D speech seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from monitor.features.embeddings import EARLY_EVERY, EARLY_WINDOWS
from monitor.maths.ranks import rank_bounds, score_gaps
from monitor.maths.scores import Similarity, window_starts
from monitor.population.cohort import CohortScoring, normalise
from monitor.population.population import SLICE_SECONDS
from monitor.training.voices import UNITS_PER_SECOND, SessionFrames, SpeakerSpeech, join
from monitor.types import AnyArray, BoolArray, FloatArray, IntArray

MOST_SCORES = 4_000_000  # kept for the conditional logit and the null band; ranks use every trial
_CHUNK = 256
_SLICE_UNITS = round(SLICE_SECONDS * UNITS_PER_SECOND)


@dataclass(frozen=True, slots=True)
class CellComparisons:
    """Streams of a cell, each against every template and normalised against a cohort."""

    z: FloatArray  # shape (n, F, N)
    has_frames: BoolArray  # shape (n, F), whether the stream has a frame of the feature
    tester: IntArray  # shape (n,), index of each stream's speaker among all voices
    # shape (n,), position of the speaker's own template among the N where it is another recording
    # than the stream's, so that the two are a mated comparison; else -1
    mated: IntArray
    owner: IntArray  # shape (N,), index of each template's speaker among all voices


@dataclass(frozen=True, slots=True)
class Cell:
    """Trials of one cell."""

    speaker: IntArray  # shape (n,), index of each trial's speaker among all voices
    better: IntArray  # better, tied: shape (F, n), the rank bounds of the true speaker by feature
    tied: IntArray
    candidates: int  # N, templates each trial is compared with
    # shape (n', F, N), raw scores minus the true speaker's, of an even part of them
    gaps: FloatArray
    gap_speaker: IntArray  # shape (n',), as ``speaker``
    own: IntArray  # shape (n',), position of the true speaker among the N templates
    mated: FloatArray  # shape (n', F), the true speaker's raw score
    frames: FloatArray  # shape (n', F), usable frames of the test
    compared: CellComparisons | None = None

    def tested_on(self, voices: BoolArray) -> Cell:
        """Keep the tests of some voices alone, shape (voices,); all stay candidates."""
        tests, samples = voices[self.speaker], voices[self.gap_speaker]
        return Cell(
            self.speaker[tests],
            self.better[:, tests],
            self.tied[:, tests],
            self.candidates,
            self.gaps[samples],
            self.gap_speaker[samples],
            self.own[samples],
            self.mated[samples],
            self.frames[samples],
            self.compared,
        )


class Plan:
    """Plan of where the windows of one cell lie.

    Args:
        candidates: indices of the voices that provide a template, shape (N,).
        mated: positions among the candidates of those that provide tests too.
        shifts: how many tests each mated speaker provides.
    """

    def __init__(
        self, candidates: IntArray, mated: IntArray, shifts: int, strays: IntArray | None = None
    ) -> None:
        self.candidates, self.mated, self.shifts = candidates, mated, shifts
        self.strays = np.zeros(0, np.int64) if strays is None else strays

    def template(self, voice: int, shift: int) -> tuple[dict[str, SessionFrames], int]:
        """Return the session a template is drawn from, and its first unit."""
        raise NotImplementedError

    def test(self, voice: int, shift: int) -> tuple[dict[str, SessionFrames], int]:
        """Return the session a test is drawn from, and its first unit."""
        raise NotImplementedError

    def heard(self, voice: int, shift: int) -> tuple[int, int]:
        """Return the index of the session that a test begins in, and the unit of it."""
        raise NotImplementedError

    def stray(self, voice: int, shift: int) -> tuple[dict[str, SessionFrames], int]:
        """Return the session a stray's stream is drawn from, and its first unit."""
        raise NotImplementedError

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
            cohort: by feature, what streams are normalised against; without it there are no
                comparisons.
        """
        trials = self.mated.size * self.shifts
        stride = max(1, -(-trials * self.candidates.size * len(similarities) // MOST_SCORES))
        batches: list[tuple[AnyArray, ...]] = []
        comparisons: list[tuple[AnyArray, ...]] = []
        sliced = {f: s.by_slice for f, s in similarities.items()}
        unsliced = dict.fromkeys(similarities, False)
        mated_voices = self.candidates[self.mated]
        for shift in range(self.shifts):
            templates = self.windows(self.template, self.candidates, shift, template_units, sliced)
            tests = self.windows(self.test, mated_voices, shift, test_units, unsliced)
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
                    own = target[is_sampled]
                    block = _normalise(scores[:, is_sampled], streams, cohort)
                    comparisons.append((*block, self.candidates[own], own))
            strays = self.strays[shift % stride :: stride]
            if cohort and strays.size:
                tests = self.windows(self.stray, strays, shift, test_units, unsliced)
                scores = np.stack([s.score(prepared[f], tests[f]) for f, s in similarities.items()])
                block = _normalise(scores, tests, cohort)
                comparisons.append((*block, strays, np.full(strays.size, -1)))
        compared = None
        if comparisons:
            z, has_frames, tester, mated = _concatenate(comparisons)
            compared = CellComparisons(z, has_frames, tester, mated, self.candidates)
        speaker, better, tied, gaps, gap_speaker, own, mated, frames = _concatenate(batches)
        return Cell(
            speaker, better.T, tied.T, self.candidates.size, gaps, gap_speaker, own, mated, frames,
            compared,
        )  # fmt: skip

    def _rank(
        self,
        scores: FloatArray,
        tests: Mapping[str, FloatArray],
        target: IntArray,
        is_sampled: BoolArray,
    ) -> tuple[AnyArray, ...]:
        """Return speaker, ranks, and what is kept of sampled trials, of scores (F, n, N)."""
        gaps = score_gaps(scores, target)
        bounds = [rank_bounds(feature_gaps, target) for feature_gaps in gaps]
        counts = [np.abs(totals).sum(axis=1) for totals in tests.values()]
        own = target[is_sampled]
        return (
            self.candidates[target],
            np.stack([better for better, _ in bounds], axis=1),
            np.stack([tied for _, tied in bounds], axis=1),
            np.moveaxis(gaps, 0, 1)[is_sampled],
            self.candidates[own],
            own,
            scores[:, is_sampled, own].T,
            np.stack(counts, axis=1)[is_sampled],
        )

    @staticmethod
    def windows(
        locate: Callable[[int, int], tuple[dict[str, SessionFrames], int]],
        voices: IntArray,
        shift: int,
        units: int,
        sliced: dict[str, bool],
    ) -> dict[str, FloatArray]:
        """Sum up each window by feature, shape (n, M), or its slices, (n, S, M)."""
        rows: dict[str, list[FloatArray]] = {feature: [] for feature in sliced}
        step = min(_SLICE_UNITS, units)
        for voice in voices:
            session, start = locate(int(voice), shift)
            firsts = range(start, start + units - step + 1, step)
            for feature, totals in rows.items():
                if sliced[feature]:
                    totals.append(np.stack([session[feature].total(at, step) for at in firsts]))
                else:
                    totals.append(session[feature].total(start, units))
        return {feature: np.stack(totals) for feature, totals in rows.items()}


def _normalise(
    scores: FloatArray, tests: Mapping[str, FloatArray], cohort: Mapping[str, CohortScoring]
) -> tuple[FloatArray, BoolArray]:
    """Set scores (F, n, N) of streams against a cohort: z, (n, F, N), and has_frames, (n, F)."""
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


class _Same(Plan):
    """Template and test from one session: eq. (6) within each voice's longest session."""

    def __init__(
        self, voices: Sequence[SpeakerSpeech], test: int, template: int, shifts: int
    ) -> None:
        self._places = [max(range(len(v.sessions)), key=v.length) for v in voices]
        self._sessions = [v.sessions[i] for v, i in zip(voices, self._places, strict=True)]
        # a long frame of the one may have begun in the other: keep them that far apart
        guard = max((s.span for v in voices for s in v.sessions[0].values()), default=0)
        # some windows have no early frame: what takes one reaches further
        reach = (EARLY_EVERY - EARLY_WINDOWS) * guard
        self._test, self._template = (
            units + reach if units < 2 * guard else units for units in (test, template)
        )
        fits = [_length(s) >= self._test + self._template + 2 * guard for s in self._sessions]
        candidates = np.flatnonzero(fits)
        super().__init__(candidates, np.arange(candidates.size), shifts)

    def _starts(self, voice: int, shift: int) -> tuple[int, int]:
        available = _length(self._sessions[voice])
        first = shift * available // self.shifts
        return window_starts(first, self._test, self._template, available)

    def template(self, voice: int, shift: int) -> tuple[dict[str, SessionFrames], int]:
        return self._sessions[voice], self._starts(voice, shift)[1]

    def test(self, voice: int, shift: int) -> tuple[dict[str, SessionFrames], int]:
        return self._sessions[voice], self._starts(voice, shift)[0]

    def heard(self, voice: int, shift: int) -> tuple[int, int]:
        return self._places[voice], self._starts(voice, shift)[0]


class _Cross(Plan):
    """Template from one session, test from the speaker's others; the sessions take turns.

    Who has too little for that is compared with others alone, all sessions taken together.
    """

    def __init__(
        self, voices: Sequence[SpeakerSpeech], test: int, template: int, shifts: int
    ) -> None:
        self._voices = voices
        self._long = [
            [i for i in range(len(v.sessions)) if v.length(i) >= template] for v in voices
        ]
        # the sessions that leave enough in the others for a test
        self._paired = [
            [i for i in long if sum(v.length(j) for j in range(len(v.sessions)) if j != i) >= test]
            for v, long in zip(voices, self._long, strict=True)
        ]
        self._rests: dict[tuple[int, int | None], dict[str, SessionFrames]] = {}
        total = np.array([sum(map(_length, v.sessions)) for v in voices])
        candidates = np.flatnonzero(total >= template)
        mated = np.flatnonzero([len(self._paired[voice]) > 0 for voice in candidates])
        strays = np.setdiff1d(np.flatnonzero(total >= test), candidates[mated])
        super().__init__(candidates, mated, shifts, strays)

    def stray(self, voice: int, shift: int) -> tuple[dict[str, SessionFrames], int]:
        session = self._without(voice, None)
        return session, shift * _length(session) // self.shifts

    def _turn(self, voice: int, shift: int) -> int:
        choices = self._paired[voice] or self._long[voice]
        return choices[shift % len(choices)]

    def template(self, voice: int, shift: int) -> tuple[dict[str, SessionFrames], int]:
        if self._long[voice]:
            session = self._voices[voice].sessions[self._turn(voice, shift)]
        else:
            session = self._without(voice, None)
        return session, shift * _length(session) // self.shifts

    def test(self, voice: int, shift: int) -> tuple[dict[str, SessionFrames], int]:
        session = self._without(voice, self._turn(voice, shift))
        return session, shift * _length(session) // self.shifts

    def _without(self, voice: int, turn: int | None) -> dict[str, SessionFrames]:
        """Return all sessions of a voice but one."""
        if (voice, turn) not in self._rests:
            rest = [s for i, s in enumerate(self._voices[voice].sessions) if i != turn]
            self._rests[voice, turn] = {f: join([s[f] for s in rest]) for f in rest[0]}
        return self._rests[voice, turn]

    def heard(self, voice: int, shift: int) -> tuple[int, int]:
        turn, (_, start) = self._turn(voice, shift), self.test(voice, shift)
        for place in range(len(self._voices[voice].sessions)):
            length = 0 if place == turn else self._voices[voice].length(place)
            if start < length:
                return place, start
            start -= length
        raise IndexError(start)


def _length(session: dict[str, SessionFrames]) -> int:
    return next(iter(session.values())).length


class GridCell(NamedTuple):
    """A cell of the grid: kind of session, index of T, index of D, and where its windows lie."""

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
    for session, plan in (("same", _Same), ("cross", _Cross)):
        for d, template in enumerate(template_lengths):
            for t, test in enumerate(lengths):
                units = round(test * UNITS_PER_SECOND), round(template * UNITS_PER_SECOND)
                yield GridCell(session, t, d, plan(voices, *units, shifts))
