"""Calibration speech of each speaker, and cohorts made from it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import groupby
from pathlib import Path

import numpy as np

from monitor.corpus.folders import find_others
from monitor.corpus.recordings import Corpus, Recording
from monitor.datasets.rows import AS_STATED, Columns
from monitor.errors import UsageError
from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup
from monitor.jobs import Jobs
from monitor.kinds import FeatureSpec, comparable_features
from monitor.population.cohort import Cohort, FeatureTemplates
from monitor.population.doubles import FEATURE, Double, doubles_among, group_names
from monitor.population.population import Population
from monitor.population.store import store_kind
from monitor.protocols import Feature
from monitor.training.feature_extraction import (
    ExtractionOutcome,
    FeatureExtractor,
    SpeechFrames,
    extract_in_order,
    summarise_in_order,
)
from monitor.training.starts import HeardStart
from monitor.types import TICKS_PER_SECOND, AnyArray, BoolArray, EarlyFrames, IntArray


@dataclass(frozen=True, slots=True)
class SessionFrames:
    """Usable frames of one feature in one session, placed on the speech clock."""

    values: AnyArray  # shape (k,) bins or (k, d) embeddings, in order
    units: IntArray  # shape (k,), the unit of speech in which each was complete
    length: int  # units of speech in the session
    spec: FeatureSpec
    begins: IntArray | None = None  # unit in which each began; None if complete at once
    span: int = 0  # length of a frame in units; 0 if it is at most one unit
    early: EarlyFrames | None = None  # ticks are units of speech
    starts: Mapping[int, HeardStart] = field(default_factory=dict)  # by unit, with own frames
    rest: AnyArray | None = None  # values of frames complete after the last unit (a final part)
    _addends: list[AnyArray] = field(default_factory=list, init=False, repr=False, compare=False)
    _totals: dict[tuple[int, int], AnyArray] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def total(self, start: int, length: int) -> AnyArray:
        """Compute counts (or a sum of embeddings) over ``length`` units from ``start``, circular.

        It uses frames that began in the interval and were complete within it. Long frames
        (``span``) are at most as many as in a stream that begins at ``start``. Without one, the
        next early frame of a window that began in the interval is used. With one, an early frame of
        the remaining interval is added, weighted by its seconds (docs/method.md section 10).
        """
        start %= max(self.length, 1)
        addends = self._select(start, length)
        complete = len(addends)
        sums = self.spec.kind.added(addends, self.spec.size)
        if self.early is None or complete > (1 if self.span else 0):
            return sums
        since, remaining = start + complete * self.span, length - complete * self.span
        next_frame = self._next_early(self.early, since % max(self.length, 1), remaining)
        addends = self.spec.kind.addends(next_frame.values)
        if complete:
            addends = addends * next_frame.shares(self.span / UNITS_PER_SECOND)[:, None]
        return np.asarray(sums + self.spec.kind.added(addends, self.spec.size))

    def whole(self) -> AnyArray:
        """Compute counts (or a sum of embeddings) over all frames, including ``rest``."""
        values = self.values if self.rest is None else np.concatenate([self.values, self.rest])
        return self.spec.kind.total(values, self.spec.size)

    def compute_total(self, start: int, length: int) -> AnyArray:
        """Compute the total of a stream that begins at ``start``, after ``length`` units.

        Only an extracted start has early frames, which must be complete after ``length`` units.
        """
        start %= max(self.length, 1)
        if start not in self.starts:
            return self.enrolled(start, length)
        key = start, length
        if key not in self._totals:  # cells share their tests
            self._totals[key] = self._compute_total(self.starts[start], start, length)
        return self._totals[key]

    def _compute_total(self, begun: HeardStart, start: int, length: int) -> AnyArray:
        if length * UNIT_TICKS <= begun.length:
            return begun.total(length * UNIT_TICKS)
        remainder = self.enrolled(
            start + begun.resumes // UNIT_TICKS, length - begun.covered // UNIT_TICKS
        )
        return np.asarray(begun.whole() + remainder)

    def enrolled(self, start: int, length: int) -> AnyArray:
        """Compute ``total`` without early frames, as for a template."""
        addends = self._select(start % max(self.length, 1), length)
        return self.spec.kind.added(addends, self.spec.size)

    def _select(self, start: int, length: int) -> AnyArray:
        """Return the addends of whole frames over ``length`` units from ``start``, circular."""
        if length > self.length:
            raise UsageError(f"a session of {self.length} units has no window of {length}")
        end = start + length
        frame_limit = length // self.span if self.span else self.units.size
        addends = self._addends_of(start, min(end, self.length))
        if end > self.length:
            addends = np.concatenate([addends, self._addends_of(0, end - self.length)])
        return np.asarray(addends[:frame_limit])

    @staticmethod
    def _next_early(early: EarlyFrames, start: int, length: int) -> EarlyFrames:
        """Return the next (circular) of the longest early frames that fit, or an empty one."""
        fits = early.seconds[early.seconds * UNITS_PER_SECOND <= length]
        if not fits.size:
            return early.select(slice(0))
        places = np.flatnonzero(early.seconds == fits.max())
        begins = early.ticks[places] + 1 - fits.max() * UNITS_PER_SECOND
        index = places[np.searchsorted(begins, start) % places.size]
        return early.select(slice(index, index + 1))

    def _addends_of(self, start: int, end: int) -> AnyArray:
        if not self._addends:  # made once, because windows overlap
            self._addends.append(self.spec.kind.addends(self.values))
        # bounds of the same dtype, otherwise numpy would convert all units
        low, high = self.units.searchsorted(np.array((start, end), self.units.dtype))
        values = self._addends[0][low:high]
        return values if self.begins is None else values[self.begins[low:high] >= start]


UNITS_PER_SECOND = 10  # calibration windows begin and end on tenths of a speech second
UNIT_TICKS = TICKS_PER_SECOND // UNITS_PER_SECOND
_MOST_UNITS = 1e10  # thirty years; a longer session is a mistake


def units_in(session: dict[str, SessionFrames]) -> int:
    """Tenths of a second of speech in a session."""
    return next(iter(session.values())).length


@dataclass(frozen=True, slots=True)
class SpeakerSpeech:
    """Frames of one calibration speaker, by session.

    Attributes:
        sessions: per session, the frames of every feature, all with the same length in units.
        speech: per session, one voice activity decision per tick; empty if not kept.
        session_names: names of the sessions; empty if unknown.
        sounds: per session, counts of its sound conditions (`monitor.maths.condition`); None if
            unknown, empty if not requested.
    """

    name: str
    sessions: tuple[dict[str, SessionFrames], ...]
    speech: tuple[BoolArray, ...] = ()
    session_names: tuple[str, ...] = ()
    sounds: tuple[AnyArray | None, ...] = ()

    def length(self, session: int) -> int:
        """Return the length of a session in units of 0.1 s."""
        return units_in(self.sessions[session])

    def session_name(self, session: int) -> str:
        """Return a session's name, or its number from 1 if it has no name."""
        return self.session_names[session] if self.session_names else str(session + 1)


def doubles_of_voices(voices: Sequence[SpeakerSpeech]) -> list[Double]:
    """Find pairs of names that are probably one speaker."""
    sessions = [(who, frames) for who, voice in enumerate(voices) for frames in voice.sessions]
    if not all(FEATURE in frames for _, frames in sessions) or not sessions:
        return []
    totals = np.zeros((len(voices), sessions[0][1][FEATURE].spec.size))
    seconds = np.zeros(len(voices))
    for who, features in sessions:
        frames = features[FEATURE]
        totals[who] += frames.spec.kind.added(frames.values, frames.spec.size)
        seconds[who] += frames.length / UNITS_PER_SECOND
    return doubles_among([voice.name for voice in voices], totals, seconds)


def without_doubles(
    voices: Sequence[SpeakerSpeech], doubles: Sequence[Double], response: str
) -> list[SpeakerSpeech]:
    """Merge second names into first names (merge), drop them (drop), or keep both (note)."""
    people = {voice.name: voice for voice in voices}
    groups = group_names(list(people), doubles, response)
    return [reduce(_joined, (people[name] for name in group)) for group in groups.values()]


def _joined(voice: SpeakerSpeech, more: SpeakerSpeech) -> SpeakerSpeech:
    names = [[who.session_name(i) for i in range(len(who.sessions))] for who in (voice, more)]
    return SpeakerSpeech(
        voice.name,
        voice.sessions + more.sessions,
        voice.speech + more.speech,
        (*names[0], *(f"{more.name} {name}" for name in names[1])),
        voice.sounds + more.sounds,
    )


def units_of(seconds: float) -> int:
    """Return a length in units of 0.1 s.

    Example:
        >>> units_of(0.3)
        3
    """
    units = seconds * UNITS_PER_SECOND
    if not 0.5 < units < _MOST_UNITS or abs(units - round(units)) > 1e-6:
        raise UsageError(f"a length of {seconds:g} s must be a positive multiple of 0.1 s")
    return round(units)


def collect(
    corpus: Corpus,
    *,
    features: Sequence[str | Feature] | None = None,
    progress: Callable[[Recording], None] = lambda _: None,
    jobs: Jobs = 1,
    notify: Callable[[str], object] = lambda _: None,
    setup: FeatureSetup = AS_ENVIRONMENT,
    sounds: bool = False,
) -> tuple[list[SpeakerSpeech], dict[str, FeatureSpec], tuple[str, ...]]:
    """Extract the features of a whole corpus, for `calibrate`.

    Args:
        corpus: recordings by speaker and session.
        features: names or `Feature` objects. None uses the defaults for audio, and all features of
            frames.
        progress: called after each recording.
        jobs: number of worker processes, or a cluster. The result does not depend on it.
        notify: called with a message for people, for example about a doubtful transcript.
        setup: files and networks of the features.
        sounds: whether to measure the sound conditions of each session.

    Returns:
        the voices, the spec of each feature, and one line per file that was skipped or has unusable
            parts.
    """
    extractor = FeatureExtractor(features, setup=setup, sounds=sounds, starts=True)
    problems = list(corpus.problems)
    voices = []
    with closing(extract_in_order(corpus.recordings, extractor, jobs=jobs)) as outcomes:
        for name, of_speaker in groupby(outcomes, key=lambda o: o.recording.speaker):
            sessions = []
            for session_name, of_session in groupby(of_speaker, key=lambda o: o.recording.session):
                recordings = []
                for outcome in of_session:
                    if outcome.frames is not None:
                        recordings.append(outcome.frames)
                        for line in outcome.frames.messages:
                            notify(line)
                    problems += [outcome.problem] if outcome.problem else []
                    progress(outcome.recording)
                session = {f: session_frames(recordings, s) for f, s in extractor.specs.items()}
                if recordings and units_in(session) > 0:
                    speech = np.concatenate([frames.speech for frames in recordings])
                    rows = [frames.sound for frames in recordings if frames.sound is not None]
                    sound = np.sum(rows, axis=0) if rows else None
                    sessions.append((session, speech, session_name, sound))
            if sessions:
                frames, decisions, names, sums = zip(*sessions, strict=True)
                voices.append(SpeakerSpeech(name, frames, decisions, names, sums if sounds else ()))
    return voices, extractor.specs, tuple(problems)


def session_frames(recordings: Sequence[SpeechFrames], spec: FeatureSpec) -> SessionFrames:
    """Join the frames of one feature in the recordings of a session."""
    values, units, begins, ticks = [], [], [], 0
    early: EarlyFrames | None = None
    starts: dict[int, HeardStart] = {}
    span = round(spec.kind.span_seconds(spec.frame_seconds) * UNITS_PER_SECOND)
    span = span if span > 1 else 0
    for frames in recordings:
        track = frames.tracks[spec.name]
        values.append(track.values)
        units.append(np.maximum(track.at + ticks - 1, 0) // UNIT_TICKS)
        if track.since is not None or not track.at.size:  # an empty track fits either way
            since = track.at if track.since is None else track.since
            begins.append((since + ticks) // UNIT_TICKS)
        clock = ticks + np.concatenate(([0], np.cumsum(frames.speech)))
        provisional = [] if track.early is None else [track.early]
        if frames.starts is not None:
            begun = [
                (at, start) for at, start in frames.starts.split() if spec.name in start.tracks
            ]
            for at, start in begun:
                begun_at = int(clock[at]) // UNIT_TICKS
                starts[begun_at] = HeardStart.from_frames(start, spec, clock[at:], span > 0)
            parts = [(at, start.tracks[spec.name].early) for at, start in begun]
            provisional = [
                replace(
                    early_frames,
                    ticks=clock[np.minimum(at + early_frames.ticks, clock.size - 1)] - ticks,
                )
                for at, early_frames in parts
                if early_frames is not None
            ]
        for early_frames in provisional:
            placed = np.maximum(early_frames.ticks + ticks - 1, 0) // UNIT_TICKS
            moved = replace(early_frames, ticks=placed)
            early = moved if early is None else early.joined(moved)
        ticks += frames.speech_ticks
    length = ticks // UNIT_TICKS
    if not values:
        return SessionFrames(spec.kind.none(spec.size), np.zeros(0, dtype=np.int64), 0, spec)
    all_units, all_values = np.concatenate(units), np.concatenate(values)
    keep = slice(0, int(np.searchsorted(all_units, length)))
    return SessionFrames(
        spec.kind.narrow(all_values[keep], spec.size),
        all_units[keep].astype(np.int32),
        length,
        spec,
        np.concatenate(begins)[keep].astype(np.int32) if len(begins) == len(values) else None,
        span,
        early,
        {unit: begun for unit, begun in starts.items() if unit < length},
        spec.kind.narrow(all_values[keep.stop :], spec.size),
    )


def join(sessions: Sequence[SessionFrames]) -> SessionFrames:
    """Join several sessions, one after the other."""
    if len(sessions) == 1:
        return sessions[0]
    starts = np.cumsum([0] + [session.length for session in sessions])
    placed = list(zip(sessions, starts[:-1], strict=True))
    begins = [s.begins + start for s, start in placed if s.begins is not None]
    early: EarlyFrames | None = None
    for session, start in placed:
        if session.early is not None:
            more = replace(session.early, ticks=session.early.ticks + start)
            early = more if early is None else early.joined(more)
    begun = {u + int(at): start for session, at in placed for u, start in session.starts.items()}
    return SessionFrames(
        np.concatenate([session.values for session in sessions]),
        np.concatenate([s.units + start for s, start in placed]),
        int(starts[-1]),
        sessions[0].spec,
        np.concatenate(begins) if len(begins) == len(sessions) else None,
        sessions[0].span,
        early,
        begun,
    )


FEWEST = 10  # people in a cohort


def cohort_from(
    path: Path,
    specs: Mapping[str, FeatureSpec],
    known_names: Collection[str],
    jobs: Jobs = 1,
    setup: FeatureSetup = AS_ENVIRONMENT,
    columns: Columns = AS_STATED,
) -> tuple[Cohort, tuple[str, ...], tuple[str, ...]]:
    """Load a population's cohort, or make one from a corpus, with ``columns`` of a data set.

    Returns the cohort, names of excluded people, and a line for each skipped file.
    """
    excluded: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    if path.is_file() and store_kind(path) == "population":
        cohort = Population.load(path).cohort
        if cohort is None:
            raise UsageError(f"{path} has no cohort: name a corpus of other people")
    else:
        corpus = find_others(path, columns)
        excluded = tuple(sorted(set(corpus.speakers).intersection(known_names)))
        others = tuple(r for r in corpus.recordings if r.speaker not in excluded)
        if len(corpus.speakers) - len(excluded) < FEWEST:
            raise UsageError(
                f"--cohort {path} has fewer than {FEWEST} people who are neither enrolled nor "
                "calibrated: name a corpus of others"
            )
        corpus = replace(corpus, recordings=others)
        cohort, problems = cohort_of(corpus, features=list(specs), jobs=jobs, setup=setup)
    if missing := sorted(specs.keys() - comparable_features(specs, cohort.specs)):
        raise UsageError(
            f"--cohort {path} lacks comparable {', '.join(missing)}: extract both with one "
            "version, or choose --features"
        )
    return cohort, excluded, problems


def cohort_of(
    corpus: Corpus,
    *,
    features: Sequence[str] | None = None,
    about: str = "",
    jobs: Jobs = 1,
    setup: FeatureSetup = AS_ENVIRONMENT,
) -> tuple[Cohort, tuple[str, ...]]:
    """Make a cohort from the speech of each speaker of a corpus, in their order.

    Counts have the narrowest type that fits, and means of embeddings half precision. Also returns
    one line for each file that was skipped or has unusable parts.
    """
    extractor = FeatureExtractor(features, setup=setup)
    problems = list(corpus.problems)
    seconds, rows, names = [], [], []
    with closing(summarise_in_order(corpus.recordings, extractor, _sum_up, jobs=jobs)) as results:
        for recordings, (sketches, ticks, unusable) in results:
            problems += unusable
            if ticks is not None:
                names.append(recordings[0].speaker)
                seconds.append(ticks / TICKS_PER_SECOND)
                rows.append(sketches)
    templates = {
        name: FeatureTemplates(
            spec, spec.kind.packed_background(np.stack([row[name] for row in rows]))
        )
        for name, spec in extractor.specs.items()
    }
    return Cohort(np.array(seconds), templates, about, tuple(names)), tuple(problems)


def _sum_up(
    outcomes: Sequence[ExtractionOutcome], specs: Mapping[str, FeatureSpec]
) -> tuple[dict[str, AnyArray], int | None, list[str]]:
    """Sum up a speaker as sketches, ticks of speech (None if unusable) and problems."""
    problems = [o.problem for o in outcomes if o.problem]
    frames = [o.frames for o in outcomes if o.frames is not None]
    if not frames:
        return {}, None, problems
    rows = {}
    for name, spec in specs.items():
        sketch = spec.sketch()
        for recording in frames:
            sketch.learn_many(recording.tracks[name].values)
        rows[name] = spec.kind.background_row(sketch)
    return rows, sum(recording.speech_ticks for recording in frames), problems
