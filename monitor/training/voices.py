"""The calibration speech of each speaker, and a cohort of such."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

import numpy as np

from monitor.corpus.finding import find
from monitor.corpus.recordings import Corpus, Recording
from monitor.errors import UsageError
from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup
from monitor.jobs import Jobs
from monitor.kinds import FeatureSpec, comparable_features
from monitor.population.cohort import Cohort, FeatureTemplates
from monitor.population.population import Population
from monitor.population.store import store_kind
from monitor.protocols import Feature
from monitor.training.feature_extraction import (
    HearingOutcome,
    Listener,
    SpeechFrames,
    hear_in_order,
    speakers_in_order,
)
from monitor.types import TICKS_PER_SECOND, AnyArray, BoolArray, EarlyFrames, IntArray


@dataclass(frozen=True, slots=True)
class SessionFrames:
    """The usable frames of one feature in one session, placed on the speech clock.

    Attributes:
        values: shape (k,) bins or (k, d) embeddings, in order.
        units: shape (k,), the unit of speech in which each frame was complete, non-decreasing.
        length: units of speech in the session.
        begins: shape (k,), the unit in which each frame's audio begins; None where a frame is heard
            at once.
        span: units of speech one frame takes, where that is longer than a unit: who hears that many
            has at most one frame.
        early: early frames, their ticks units of speech; None where there are none.
    """

    values: AnyArray
    units: IntArray
    length: int
    spec: FeatureSpec
    begins: IntArray | None = None
    span: int = 0
    early: EarlyFrames | None = None
    _addends: list[AnyArray] = field(default_factory=list, init=False, repr=False, compare=False)

    def total(self, start: int, length: int) -> AnyArray:
        """Counts (or sum of embeddings) over ``length`` units from ``start``, circular.

        What somebody has who begins to listen at ``start``: frames that were complete in time and
        had not begun before. Long frames (``span``) lie where the session has them, not where the
        listener would, so as many are taken as the listener would have. Where that is none, the
        next early frame of a window that began since stands in; where it is one, an early frame
        of the rest is added, weighted by its seconds (docs/method.md section 10).

        Returns:
            shape (M,), int64 counts or float64 sums.
        """
        if length > self.length:
            raise UsageError(f"a session of {self.length} units has no window of {length}")
        start %= max(self.length, 1)
        end = start + length
        most = length // self.span if self.span else self.units.size
        heard = self._heard(start, min(end, self.length))
        if end > self.length:
            heard = np.concatenate([heard, self._heard(0, end - self.length)])
        whole = len(heard[:most])
        made = self.spec.kind.added(heard[:most], self.spec.size)
        if self.early is None or whole > (1 if self.span else 0):
            return made
        since, left = start + whole * self.span, length - whole * self.span
        part = self._next_early(self.early, since % max(self.length, 1), left)
        addends = self.spec.kind.addends(part.values)
        if whole:
            addends = addends * part.shares(self.span / UNITS_PER_SECOND)[:, None]
        return np.asarray(made + self.spec.kind.added(addends, self.spec.size))

    @staticmethod
    def _next_early(early: EarlyFrames, start: int, length: int) -> EarlyFrames:
        """The next one of as many whole seconds, circular; or none."""
        fits = early.seconds[early.seconds * UNITS_PER_SECOND <= length]
        if not fits.size:
            return early.some(slice(0))
        places = np.flatnonzero(early.seconds == fits.max())
        begins = early.ticks[places] + 1 - fits.max() * UNITS_PER_SECOND
        place = places[np.searchsorted(begins, start) % places.size]
        return early.some(slice(place, place + 1))

    def _heard(self, start: int, end: int) -> AnyArray:
        """The frames of these units, ready to be added up."""
        if not self._addends:  # windows overlap
            self._addends.append(self.spec.kind.addends(self.values))
        # of its own type, or all units would be converted
        low, high = self.units.searchsorted(np.array((start, end), self.units.dtype))
        values = self._addends[0][low:high]
        return values if self.begins is None else values[self.begins[low:high] >= start]


# ------------------------------------------------------------------------------------------ voices

UNITS_PER_SECOND = 10  # calibration windows begin and end on tenths of a speech second
_UNIT_TICKS = 10
_MOST_UNITS = 1e10  # thirty years: what is longer is a mistake


@dataclass(frozen=True, slots=True)
class SpeakerSpeech:
    """What one calibration speaker said, session by session.

    Attributes:
        sessions: for each session the frames of every feature, all of the same length in units.
        speech: for each session the decisions on its audio, one a tick; empty where nobody kept
            them.
        session_names: empty where nobody said.
        sounds: what each session sounds like, as counts (`monitor.maths.condition`); None where
            nobody knows, empty where nobody asked.
    """

    name: str
    sessions: tuple[dict[str, SessionFrames], ...]
    speech: tuple[BoolArray, ...] = ()
    session_names: tuple[str, ...] = ()
    sounds: tuple[AnyArray | None, ...] = ()

    def length(self, session: int) -> int:
        """Units of speech in a session."""
        return next(iter(self.sessions[session].values())).length

    def session_name(self, session: int) -> str:
        """What a session is called; its number from 1 where it has no name."""
        return self.session_names[session] if self.session_names else str(session + 1)


def units_of(seconds: float) -> int:
    """Units of speech in a length.

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
    told: Callable[[str], object] = lambda _: None,
    setup: FeatureSetup = AS_ENVIRONMENT,
    sounds: bool = False,
) -> tuple[list[SpeakerSpeech], dict[str, FeatureSpec], tuple[str, ...]]:
    """Listen to a whole corpus; the result does not depend on ``jobs``.

    Args:
        corpus: recordings by speaker and session.
        features: names, or features; None takes the defaults for audio, and what frames hold.
        progress: called after each recording.
        jobs: processes that listen, or a cluster.
        told: called with a line for people: a transcript seems to be of another recording, say.
        setup: from where features are made.
        sounds: whether to find out what the sessions sound like.

    Returns:
        the voices, the spec of each feature, and a line for each file that was skipped or has
            unusable parts.

    Raises:
        UsageError: there is no such feature.
    """
    listener = Listener(features, setup=setup, sounds=sounds)
    problems = list(corpus.problems)
    voices = []
    with closing(hear_in_order(corpus.recordings, listener, jobs=jobs)) as outcomes:
        for name, of_speaker in groupby(outcomes, key=lambda o: o.recording.speaker):
            sessions, speech, called, sound = [], [], [], []
            for session_name, group in groupby(of_speaker, key=lambda o: o.recording.session):
                heard = []
                for outcome in group:
                    if outcome.heard is not None:
                        heard.append(outcome.heard)
                        for line in outcome.heard.told:
                            told(line)
                    if outcome.problem:
                        problems.append(outcome.problem)
                    progress(outcome.recording)
                session = {f: session_frames(heard, spec) for f, spec in listener.specs.items()}
                if heard and next(iter(session.values())).length > 0:
                    sessions.append(session)
                    speech.append(np.concatenate([each.speech for each in heard]))
                    called.append(session_name)
                    rows = [each.sound for each in heard if each.sound is not None]
                    sound.append(np.sum(rows, axis=0) if rows else None)
            if sessions:
                told_apart = tuple(sessions), tuple(speech), tuple(called)
                voices.append(SpeakerSpeech(name, *told_apart, tuple(sound) if sounds else ()))
    return voices, listener.specs, tuple(problems)


def session_frames(heard: Sequence[SpeechFrames], spec: FeatureSpec) -> SessionFrames:
    """The frames of one feature in the recordings of a session, one after the other."""
    values, units, begins, before = [], [], [], 0
    early: EarlyFrames | None = None
    for each in heard:
        track = each.tracks[spec.name]
        values.append(track.values)
        units.append(np.maximum(track.at + before - 1, 0) // _UNIT_TICKS)
        if track.since is not None or not track.at.size:  # of no frames nothing is known
            since = track.at if track.since is None else track.since
            begins.append((since + before) // _UNIT_TICKS)
        if track.early is not None:
            placed = np.maximum(track.early.ticks + before - 1, 0) // _UNIT_TICKS
            more = replace(track.early, ticks=placed)
            early = more if early is None else early.joined(more)
        before += each.speech_ticks
    length = before // _UNIT_TICKS
    if not values:
        return SessionFrames(spec.kind.none(spec.size), np.zeros(0, dtype=np.int64), 0, spec)
    all_units = np.concatenate(units)
    keep = slice(0, int(np.searchsorted(all_units, length)))
    span = round(spec.kind.span_seconds(spec.frame_seconds) * UNITS_PER_SECOND)
    return SessionFrames(
        spec.kind.narrow(np.concatenate(values)[keep], spec.size),
        all_units[keep].astype(np.int32),
        length,
        spec,
        np.concatenate(begins)[keep].astype(np.int32) if len(begins) == len(values) else None,
        span if span > 1 else 0,
        early,
    )


def join(sessions: Sequence[SessionFrames]) -> SessionFrames:
    """Several sessions one after the other."""
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
    return SessionFrames(
        np.concatenate([session.values for session in sessions]),
        np.concatenate([s.units + start for s, start in placed]),
        int(starts[-1]),
        sessions[0].spec,
        np.concatenate(begins) if len(begins) == len(sessions) else None,
        sessions[0].span,
        early,
    )


# ------------------------------------------------------------------------------------------ cohort

FEWEST = 10  # people of a cohort


def cohort_from(
    path: Path,
    specs: Mapping[str, FeatureSpec],
    known: Collection[str],
    jobs: Jobs = 1,
    setup: FeatureSetup = AS_ENVIRONMENT,
) -> tuple[Cohort, tuple[str, ...], tuple[str, ...]]:
    """A population's cohort, or one made of a corpus.

    Returns:
        the cohort; names of those left out; and a line for each file that was skipped.
    """
    left: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    if path.is_file() and store_kind(path) == "population":
        found = Population.load(path).cohort
        if found is None:
            raise UsageError(f"{path} has no cohort; name a corpus of other people instead")
    else:
        corpus = find(path)
        left = tuple(sorted({each.speaker for each in corpus.recordings}.intersection(known)))
        others = tuple(each for each in corpus.recordings if each.speaker not in left)
        if len({each.speaker for each in others}) < FEWEST:
            raise UsageError(
                f"--cohort {path}: fewer than {FEWEST} people are neither enrolled nor calibrated; "
                "name a corpus of others"
            )
        corpus = replace(corpus, recordings=others)
        found, problems = cohort_of(corpus, features=list(specs), jobs=jobs, setup=setup)
    if lacking := sorted(specs.keys() - comparable_features(specs, found.specs)):
        raise UsageError(
            f"--cohort {path}: its {', '.join(lacking)} is missing or not made as that of the "
            "speakers; hear both with one version, or choose --features"
        )
    return found, left, problems


def cohort_of(
    corpus: Corpus,
    *,
    features: Sequence[str] | None = None,
    about: str = "",
    jobs: Jobs = 1,
    setup: FeatureSetup = AS_ENVIRONMENT,
) -> tuple[Cohort, tuple[str, ...]]:
    """All that each speaker of a corpus said in one sketch, in the order of the speakers.

    Returns:
        counts in as few bytes as hold them, and means of embeddings in half precision (a cosine
            moves by less than 1e-4); and a line for each file that was skipped or has unusable
            parts.

    Raises:
        UsageError: there is no such feature.
        StoreError: nobody could be heard.
    """
    listener = Listener(features, setup=setup)
    problems = list(corpus.problems)
    seconds, rows, names = [], [], []
    with closing(speakers_in_order(corpus.recordings, listener, _summed, jobs=jobs)) as results:
        for recordings, (sketches, ticks, unusable) in results:
            problems += unusable
            if ticks is not None:
                names.append(recordings[0].speaker)
                seconds.append(ticks / TICKS_PER_SECOND)
                rows.append(sketches)
    made = {
        name: FeatureTemplates(
            spec, spec.kind.packed_background(np.stack([row[name] for row in rows]))
        )
        for name, spec in listener.specs.items()
    }
    return Cohort(np.array(seconds), made, about, tuple(names)), tuple(problems)


def _summed(
    outcomes: Sequence[HearingOutcome], specs: Mapping[str, FeatureSpec]
) -> tuple[dict[str, AnyArray], int | None, list[str]]:
    """A speaker's sketch of each feature, ticks of speech (None: unusable), and problems."""
    problems = [o.problem for o in outcomes if o.problem]
    heard = [o.heard for o in outcomes if o.heard is not None]
    if not heard:
        return {}, None, problems
    rows = {}
    for name, spec in specs.items():
        sketch = spec.sketch()
        for each in heard:
            sketch.learn_many(each.tracks[name].values)
        rows[name] = spec.kind.background_row(sketch)
    return rows, sum(each.speech_ticks for each in heard), problems
