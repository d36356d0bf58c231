"""Hear the recordings of a corpus, each once, by one process or several."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

from monitor.corpus.recordings import Recording
from monitor.errors import MonitorError, UsageError
from monitor.features.registry import marks_of
from monitor.kinds import FeatureSpec
from monitor.population.population import SLICE_SECONDS
from monitor.sources.fingerprints import recording_hashes
from monitor.sources.registry import is_frames
from monitor.training.listening import Listener, SpeechFrames
from monitor.types import TICKS_PER_SECOND
from monitor.workers import Jobs, absolute, each_in_order, here

__all__ = ["SLICE_TICKS", "HearingOutcome", "hear_in_order"]

SLICE_TICKS = round(SLICE_SECONDS * TICKS_PER_SECOND)


@dataclass(frozen=True, slots=True)
class HearingOutcome:
    """What became of one recording.

    Attributes:
        recording: which one.
        heard: its frames; None where it was not needed, or could not be heard.
        hashes: its fingerprints, where it was heard for a template.
        problem: a line on what could not be used; empty where there is nothing to tell.
    """

    recording: Recording
    heard: SpeechFrames | None = None
    hashes: tuple[str, ...] = ()
    problem: str = ""


def hear_in_order(
    recordings: Sequence[Recording],
    listener: Listener,
    *,
    slices: int | None = None,
    jobs: Jobs = 1,
) -> Generator[HearingOutcome, None, None]:
    """Every recording, in order; what comes out does not depend on ``jobs``.

    Args:
        recordings: by speaker and session.
        listener: knows the features; afterwards what their frames look like.
        slices: for templates: of each speaker only as much is heard as so many slices take, which
            no two sessions share. None hears everything.
        jobs: processes, or a cluster. Ready-made frames, and features that are objects, are heard
            in this one.

    Raises:
        UsageError: the features cannot be made.
        MonitorError: a process was ended from outside, or workers elsewhere are lost or unfit.
    """
    whole = slices is None
    groups = [
        list(group)
        for _, group in groupby(enumerate(recordings), lambda r: r[0] if whole else r[1].speaker)
    ]
    tasks = [tuple(recording for _, recording in group) for group in groups]
    names = listener.names
    given = any(is_frames(recording.path) for recording in recordings)
    if names is None or given or here(jobs, tasks):
        for outcomes in each_in_order(partial(_hear, listener, slices), tasks):
            yield from outcomes
        return
    work = partial(_hear_apart, names, slices)
    away = [tuple(replace(r, path=absolute(r.path)) for r in task) for task in tasks]
    made = each_in_order(
        work,
        away,
        jobs,
        reads=lambda task: [recording.path for recording in task],
        alike=partial(marks_of, names),
    )
    with closing(made) as results:
        for task, (specs, outcomes) in zip(tasks, results, strict=True):
            listener.specs = listener.specs or specs
            for recording, outcome in zip(task, outcomes, strict=True):
                yield replace(outcome, recording=recording)


def _hear_apart(
    names: tuple[str, ...], slices: int | None, recordings: Sequence[Recording]
) -> tuple[dict[str, FeatureSpec], list[HearingOutcome]]:
    """As `_hear`, in another process, with what the frames look like."""
    listener = Listener(names)
    outcomes = _hear(listener, slices, recordings)
    return listener.specs, outcomes


def _hear(
    listener: Listener, slices: int | None, recordings: Sequence[Recording]
) -> list[HearingOutcome]:
    """Recordings of one speaker, as far as they are needed."""
    outcomes = []
    count = 0
    for _, session in groupby(recordings, lambda r: r.session):
        ticks = 0
        for recording in session:
            left = None if slices is None else (slices - count) * SLICE_TICKS - ticks
            outcome = _outcome(listener, recording, left)
            if outcome.heard is not None:
                ticks += outcome.heard.speech_ticks
            outcomes.append(outcome)
        if slices is not None:
            count += min(ticks // SLICE_TICKS, slices - count)
    return outcomes


def _outcome(listener: Listener, recording: Recording, left: int | None) -> HearingOutcome:
    """One recording, heard as far as so many ticks of speech."""
    if left is not None and left <= 0:
        return HearingOutcome(recording)
    try:
        hashes = () if left is None else recording_hashes(recording.path)
        seconds = None if left is None else left / TICKS_PER_SECOND
        heard = listener.hear(recording.path, speech_seconds=seconds)
    except UsageError:  # of the call, not of this file
        raise
    except MonitorError as error:
        return HearingOutcome(recording, problem=str(error))
    return HearingOutcome(recording, heard, hashes, heard.lost)
