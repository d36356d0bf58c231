"""One cell of the calibration grid: trials of T against templates of D speech seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from monitor.features.embeddings import EARLY_EVERY, EARLY_WINDOWS
from monitor.maths.ranks import rank_bounds, score_gaps
from monitor.maths.scores import Similarity
from monitor.maths.sketch import window_starts
from monitor.population.cohort import CohortScoring, normalise
from monitor.population.population import SLICE_SECONDS
from monitor.training.voices import UNITS_PER_SECOND, SessionFrames, SpeakerSpeech, join
from monitor.types import AnyArray, BoolArray, FloatArray, IntArray

MOST_SCORES = 4_000_000  # kept for the conditional logit and the null band; ranks use every trial
_CHUNK = 256
_SLICE_UNITS = round(SLICE_SECONDS * UNITS_PER_SECOND)


@dataclass(frozen=True, slots=True)
class CellComparisons:
    """Streams of a cell, each against every template and normalised against a cohort.

    Attributes:
        z: shape (n, F, N).
        heard: shape (n, F), whether the stream has a frame of the feature.
        tester: shape (n,), index of each stream's speaker among all voices.
        mated: shape (n,), position of the speaker's own template among the N where it is another
            recording than the stream's, so that the two are a mated comparison; else -1.
        owner: shape (N,), index of each template's speaker among all voices.
    """

    z: FloatArray
    heard: BoolArray
    tester: IntArray
    mated: IntArray
    owner: IntArray


@dataclass(frozen=True, slots=True)
class Cell:
    """The trials of one cell.

    Attributes:
        speaker: shape (n,), index of each trial's speaker among all voices.
        better, tied: shape (F, n), the rank bounds of the true speaker by feature.
        candidates: N, templates each trial is compared with.
        behind: shape (n', F, N), raw scores minus the true speaker's, of an even part of them.
        behind_speaker: shape (n',), as ``speaker``.
        own: shape (n',), position of the true speaker among the N templates.
        mated: shape (n', F), the true speaker's raw score.
        frames: shape (n', F), usable frames of the test.
    """

    speaker: IntArray
    better: IntArray
    tied: IntArray
    candidates: int
    behind: FloatArray
    behind_speaker: IntArray
    own: IntArray
    mated: FloatArray
    frames: FloatArray
    compared: CellComparisons | None = None

    def tested_on(self, voices: BoolArray) -> Cell:
        """The same with the tests of some voices alone, shape (voices,); all stay candidates."""
        some, rest = voices[self.speaker], voices[self.behind_speaker]
        return Cell(
            self.speaker[some],
            self.better[:, some],
            self.tied[:, some],
            self.candidates,
            self.behind[rest],
            self.behind_speaker[rest],
            self.own[rest],
            self.mated[rest],
            self.frames[rest],
            self.compared,
        )


class Plan:
    """Where the windows of one cell lie.

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
        """The session a template is drawn from, and its first unit."""
        raise NotImplementedError

    def test(self, voice: int, shift: int) -> tuple[dict[str, SessionFrames], int]:
        """The session a test is drawn from, and its first unit."""
        raise NotImplementedError

    def heard(self, voice: int, shift: int) -> tuple[int, int]:
        """Index of the session that a test begins in, and the unit of it."""
        raise NotImplementedError

    def stray(self, voice: int, shift: int) -> tuple[dict[str, SessionFrames], int]:
        """The session a stray's stream is drawn from, and its first unit."""
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
        parts: list[tuple[AnyArray, ...]] = []
        compared: list[tuple[AnyArray, ...]] = []

        def compare(
            scores: FloatArray, tests: Mapping[str, FloatArray], tester: IntArray, own: IntArray
        ) -> None:
            """Set streams against the cohort: scores (F, n, N), totals by feature (n, M)."""
            if not cohort or not tester.size:
                return
            z = np.zeros((tester.size, len(scores), scores.shape[2]), np.float32)
            heard = np.zeros((tester.size, len(scores)), bool)
            for f, name in enumerate(similarities):
                if name in cohort:
                    mean, spread = cohort[name].compute_score_stats(tests[name])
                    z[:, f] = normalise(scores[f], mean, spread)
                    heard[:, f] = tests[name].any(axis=1) & (spread > 0)
            compared.append((z, heard, tester, own))

        sliced = {f: s.by_slice for f, s in similarities.items()}
        whole = dict.fromkeys(similarities, False)
        for shift in range(self.shifts):
            templates = self.windows(self.template, self.candidates, shift, template_units, sliced)
            tests = self.windows(self.test, self.candidates[self.mated], shift, test_units, whole)
            prepared = {f: s.prepare(templates[f]) for f, s in similarities.items()}
            for start in range(0, self.mated.size, _CHUNK):
                rows = np.arange(start, min(start + _CHUNK, self.mated.size))
                target = self.mated[rows]
                scores = np.stack(
                    [s.score(prepared[f], tests[f][rows]) for f, s in similarities.items()]
                )
                gaps = score_gaps(scores, target)
                bounds = [rank_bounds(each, target) for each in gaps]
                some = (rows + shift) % stride == 0
                own = target[some]
                counts = [np.abs(tests[f][rows]).sum(axis=1) for f in similarities]
                parts.append(
                    (
                        self.candidates[target],
                        np.stack([better for better, _ in bounds], axis=1),
                        np.stack([tied for _, tied in bounds], axis=1),
                        np.moveaxis(gaps, 0, 1)[some],
                        self.candidates[own],
                        own,
                        scores[:, some, own].T,
                        np.stack(counts, axis=1)[some],
                    )
                )
                streams = {f: tests[f][rows[some]] for f in similarities}
                compare(scores[:, some], streams, self.candidates[own], own)
            few = self.strays[shift % stride :: stride]
            if cohort and few.size:
                tests = self.windows(self.stray, few, shift, test_units, whole)
                scores = np.stack([s.score(prepared[f], tests[f]) for f, s in similarities.items()])
                compare(scores, tests, few, np.full(few.size, -1))
        comparisons = None
        if compared:
            z, there, tester, place = (np.concatenate(each) for each in zip(*compared, strict=True))
            comparisons = CellComparisons(z, there, tester, place, self.candidates)
        speaker, better, tied, behind, behind_speaker, truth, mated, frames = (
            np.concatenate(each) for each in zip(*parts, strict=True)
        )
        count = self.candidates.size
        return Cell(
            speaker,
            better.T,
            tied.T,
            count,
            behind,
            behind_speaker,
            truth,
            mated,
            frames,
            comparisons,
        )

    @staticmethod
    def windows(
        where: Callable[[int, int], tuple[dict[str, SessionFrames], int]],
        voices: IntArray,
        shift: int,
        units: int,
        sliced: dict[str, bool],
    ) -> dict[str, FloatArray]:
        """Total of each window by feature, shape (n, M), or of its slices, (n, S, M)."""
        rows: dict[str, list[FloatArray]] = {feature: [] for feature in sliced}
        step = min(_SLICE_UNITS, units)
        for voice in voices:
            session, start = where(int(voice), shift)
            firsts = range(start, start + units - step + 1, step)
            for feature, made in rows.items():
                if sliced[feature]:
                    made.append(np.stack([session[feature].total(at, step) for at in firsts]))
                else:
                    made.append(session[feature].total(start, units))
        return {feature: np.stack(made) for feature, made in rows.items()}


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
        more = (EARLY_EVERY - EARLY_WINDOWS) * guard
        self._test, self._template = (
            each + more if each < 2 * guard else each for each in (test, template)
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
        whole = np.array([sum(map(_length, v.sessions)) for v in voices])
        candidates = np.flatnonzero(whole >= template)
        mated = np.flatnonzero([len(self._paired[voice]) > 0 for voice in candidates])
        strays = np.setdiff1d(np.flatnonzero(whole >= test), candidates[mated])
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
        """All sessions of a voice but one."""
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


def plans(
    voices: Sequence[SpeakerSpeech],
    lengths: Sequence[float],
    template_lengths: Sequence[float],
    shifts: int,
) -> Iterator[tuple[str, int, int, Plan]]:
    """Every cell of the grid, both kinds of session: (session, index of T, index of D, plan)."""
    for session, plan in (("same", _Same), ("cross", _Cross)):
        for d, template in enumerate(template_lengths):
            for t, test in enumerate(lengths):
                units = round(test * UNITS_PER_SECOND), round(template * UNITS_PER_SECOND)
                yield session, t, d, plan(voices, *units, shifts)
