"""Makes material of what somebody names: a score file, frames, or audio that is to be heard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from monitor.atomic import not_written
from monitor.corpus.recordings import Corpus, Recording
from monitor.errors import SourceError, UsageError
from monitor.evaluation.input.score_file import ScoreFile
from monitor.experiment.material.score_file import ScoresAtLengths
from monitor.experiment.material.speech import Speech
from monitor.experiment.settings import ExperimentSettings
from monitor.features.registry import defaults
from monitor.sources.frames import header_of
from monitor.sources.registry import is_frames
from monitor.training.frames_folder import HearingOptions, keep, orders, write_manifest
from monitor.workers import Jobs

__all__ = ["hear_corpus", "make_private", "scores_at", "speech_of"]


def scores_at(path: Path, settings: ExperimentSettings) -> ScoresAtLengths | None:
    """A score file as material; None where the path is something else.

    Raises:
        StoreError: it is a damaged score file.
        UsageError: it has none of the systems that are asked for.
    """
    if path.suffix.lower() != ".npz" or not path.is_file() or ScoreFile.at(path) is None:
        return None
    found = ScoresAtLengths(path.resolve(), settings.features)
    _ = found.entries
    return found


def hear_corpus(
    path: Path,
    found: Corpus,
    folder: Path,
    features: Sequence[str] | None,
    jobs: Jobs = 1,
    progress: Callable[[Recording], object] = lambda _: None,
) -> tuple[Corpus, tuple[str, ...]]:
    """Hear what is not heard yet of a corpus; a corpus of frames is as it is.

    Args:
        path: of the corpus.
        found: what lies there.
        folder: where frames are kept (as `monitor hear` does), so that audio is heard once.
        features: to hear; None for those that are heard by default.
        jobs: who hears.
        progress: called with each recording.

    Returns:
        the corpus of frames, and a line for each file that could not be used.

    Raises:
        SourceError: nothing of it can be heard.
        UsageError: audio and frames are mixed, or the folder is within the corpus.
    """
    ready = [is_frames(recording.path) for recording in found.recordings]
    if all(ready):
        return found, found.problems
    if any(ready):
        raise UsageError(f"{path} mixes audio and ready-made frames: give the one or the other")
    wanted = orders(found, path, folder)
    manner = HearingOptions(tuple(features or defaults()))
    problems, heard = list(found.problems), []
    make_private(folder.parent)
    by_source = {recording.path: recording for recording in found.recordings}
    with closing(keep(wanted, manner, jobs)) as results:
        for kept in results:
            progress(by_source[kept.order.source])
            problems += [kept.problem] if kept.problem else []
            heard += [kept.order] if kept.whole else []
    if not heard:
        raise SourceError("nothing could be heard: " + "; ".join(problems[:3]))
    write_manifest(folder, heard)
    made = [Recording(order.speaker, order.session, order.target) for order in heard]
    return Corpus(tuple(made), (), found.told_by), tuple(problems)


def make_private(folder: Path) -> None:
    """Make a folder that only its owner can look into, where there is none.

    Raises:
        StoreError: it cannot be made.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise not_written(folder, error) from error


def _check_features(corpus: Corpus, features: Sequence[str]) -> None:
    """Refuse a feature that no file holds, once, and not for every file."""
    lacking, held = set(features), set[str]()
    for recording in corpus.recordings:
        if not lacking:
            return
        sizes = header_of(recording.path).sizes
        if not sizes:  # broken, or without a header: reading it tells
            return
        held |= sizes.keys()
        lacking -= sizes.keys()
    if lacking:
        strange = next(name for name in features if name in lacking)
        raise UsageError(f"no frames of {strange}: there are those of {', '.join(sorted(held))}")


def speech_of(corpus: Corpus, settings: ExperimentSettings) -> Speech:
    """The frames of a corpus as material.

    Raises:
        UsageError: no feature can be scored, or no file holds one that is asked for.
        SourceError: no file can be read.
    """
    _check_features(corpus, settings.features or ())
    made = Speech(corpus.recordings, settings.features, settings.trials)
    if not made.voices:
        raise SourceError("nothing could be used: " + "; ".join(made.problems[:3]))
    if not made.specs:
        raise UsageError("no feature of these frames can be compared")
    return made
