"""Hear the recordings of a corpus, each once, by one process or several."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TypeVar

from monitor.corpus.recordings import Recording
from monitor.errors import MonitorError, UsageError
from monitor.features.registry import marks_of, takes
from monitor.kinds import FeatureSpec
from monitor.population.population import SLICE_SECONDS
from monitor.sources.fingerprints import recording_hashes
from monitor.sources.registry import is_frames
from monitor.training.listening import Listener, SpeechFrames
from monitor.types import TICKS_PER_SECOND
from monitor.workers import Jobs, absolute, each_in_order, here

__all__ = ["SLICE_TICKS", "HearingOutcome", "hear_in_order", "speakers_in_order"]

SLICE_TICKS = round(SLICE_SECONDS * TICKS_PER_SECOND)

_Result = TypeVar("_Result")


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
    recordings: Sequence[Recording], listener: Listener, *, jobs: Jobs = 1
) -> Generator[HearingOutcome, None, None]:
    """Every recording, in order, with its frames; what comes out does not depend on ``jobs``.

    Args:
        recordings: by speaker and session.
        listener: knows the features; afterwards what their frames look like.
        jobs: processes, or a cluster. Ready-made frames, and features that are objects, are heard
            in this one.

    Raises:
        UsageError: the features cannot be made.
        MonitorError: a process was ended from outside, or workers elsewhere are lost or unfit.
    """
    groups = [(recording,) for recording in recordings]
    heard = _each(groups, listener, None, _all_of_it, jobs)
    for (recording,), (outcome,) in zip(groups, heard, strict=True):
        yield replace(outcome, recording=recording)


def speakers_in_order(
    recordings: Sequence[Recording],
    listener: Listener,
    summed: Callable[[Sequence[HearingOutcome], Mapping[str, FeatureSpec]], _Result],
    *,
    slices: int | None = None,
    jobs: Jobs = 1,
) -> Generator[tuple[tuple[Recording, ...], _Result], None, None]:
    """Every speaker, in order, with sketches of what was heard: no frame leaves who has heard it.

    Args:
        recordings: by speaker and session.
        listener: as of `hear_in_order`.
        summed: makes the sketches of one speaker's outcomes, which are in the order of the
            recordings, and of what the frames look like; a function that another process can
            import. The recordings of the outcomes have absolute paths.
        slices: for templates: of each speaker only as much is heard as so many slices take, which
            no two sessions share. None hears everything.
        jobs: as of `hear_in_order`.

    Raises:
        UsageError: the features cannot be made.
        MonitorError: a process was ended from outside, or workers elsewhere are lost or unfit.
    """
    groups = [tuple(group) for _, group in groupby(recordings, lambda r: r.speaker)]
    yield from zip(groups, _each(groups, listener, slices, summed, jobs), strict=True)


def _each(
    groups: Sequence[tuple[Recording, ...]],
    listener: Listener,
    slices: int | None,
    summed: Callable[[Sequence[HearingOutcome], Mapping[str, FeatureSpec]], _Result],
    jobs: Jobs,
) -> Generator[_Result, None, None]:
    """What comes of each group of recordings of one speaker."""
    tasks = [tuple(map(_absolute, group)) for group in groups]
    names = listener.names
    given = any(is_frames(recording.path) for group in groups for recording in group)
    if names is None or given or here(jobs, tasks):
        for outcomes in each_in_order(partial(_hear, listener, slices), tasks):
            yield summed(outcomes, listener.specs)
        return
    made = each_in_order(
        partial(_hear_apart, names, listener.channel, slices, summed),
        tasks,
        jobs,
        reads=partial(_read, "words" in map(takes, names)),
        alike=partial(marks_of, names),
    )
    with closing(made) as results:
        for specs, result in results:
            listener.specs = listener.specs or specs
            yield result


def _absolute(recording: Recording) -> Recording:
    """As it is found from any working folder."""
    return replace(recording, path=absolute(recording.path), words=recording.words.made_absolute())


def _read(words: bool, recordings: Sequence[Recording]) -> list[Path]:
    """The files that are read of these recordings, and of their words."""
    files = [each.path for each in recordings]
    if words:
        files += [place for each in recordings if (place := each.words.found(each.path))]
    return files


def _all_of_it(
    outcomes: Sequence[HearingOutcome], _: Mapping[str, FeatureSpec]
) -> Sequence[HearingOutcome]:
    return outcomes


def _hear_apart(
    names: tuple[str, ...],
    channel: int | None,
    slices: int | None,
    summed: Callable[[Sequence[HearingOutcome], Mapping[str, FeatureSpec]], _Result],
    recordings: Sequence[Recording],
) -> tuple[dict[str, FeatureSpec], _Result]:
    """As `_hear`, in another process, with what the frames look like."""
    listener = Listener(names, channel)
    outcomes = _hear(listener, slices, recordings)
    return listener.specs, summed(outcomes, listener.specs)


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
        heard = listener.hear(
            recording.path,
            speech_seconds=seconds,
            words=recording.words,
            speaker=recording.speaker,
            landmarks=left is not None,
        )
    except UsageError:  # of the call, not of this file
        raise
    except MonitorError as error:
        return HearingOutcome(recording, problem=str(error))
    return HearingOutcome(recording, heard, hashes, heard.lost)
