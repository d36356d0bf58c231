"""Material of an experiment: speech, or ready-made scores."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from monitor.corpus import Corpus, Recording
from monitor.errors import SourceError, UsageError
from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup, defaults
from monitor.files import make_folder, not_written
from monitor.jobs import Jobs
from monitor.kinds import FeatureSpec
from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.evaluation.input.score_file import ScoreEntry, ScoreFile
from monitor.lab.experiment.settings import (
    LENGTHS,
    TEMPLATE_LENGTHS,
    ExperimentSettings,
    Panel,
    select_rows,
    select_speakers,
)
from monitor.lab.scoring import ScoreGrid
from monitor.phrases import plural
from monitor.population.rank_model import RankModels
from monitor.sources.base import file_hash
from monitor.sources.frames import header_of
from monitor.sources.registry import is_frames
from monitor.training.cells import Plan, plans
from monitor.training.frames_folder import HearingOptions, keep, orders, write_manifest
from monitor.training.voices import SpeakerSpeech, collect, units_of

# -------------------------------------------------------------------------------------- score file


@dataclass(frozen=True)
class ScoresAtLengths:
    """A score file as material: scores that anybody's recogniser made, of some systems or all."""

    path: Path
    features: tuple[str, ...] | None = None
    joins: bool = False
    noise: str = ""

    @property
    def entries(self) -> tuple[ScoreEntry, ...]:
        """Matrices of the file.

        Raises:
            UsageError: it is no score file, or has none of these systems.
        """
        entries = _read_score_file(self.path).entries
        chosen = [entry for entry in entries if not self.features or entry.system in self.features]
        if not chosen:
            raise UsageError(f"{self.path.name}: no scores of {', '.join(self.features or ())}")
        return tuple(chosen)

    @property
    def systems(self) -> Sequence[str]:
        """Systems with scores."""
        return list(dict.fromkeys(entry.system for entry in self.entries))

    @property
    def speakers(self) -> Sequence[str]:
        """Speakers of any matrix."""
        matrices = (
            _read_score_file(self.path).matrix(entry, entry.system) for entry in self.entries
        )
        return list(dict.fromkeys(name for matrix in matrices for name in matrix.speakers))

    @property
    def offered(self) -> tuple[Sequence[float], Sequence[float]]:
        """T and D to choose from."""
        return (
            sorted({entry.test_seconds for entry in self.entries}),
            sorted({entry.template_seconds for entry in self.entries}),
        )

    def fills(
        self, session: str, test: float, template: float
    ) -> tuple[Sequence[str], Sequence[str]]:
        """Return speakers of all shorter cells as well, so that a panel has them in each."""
        shorter = [
            entry
            for entry in self.entries
            if entry.session == session
            and entry.test_seconds <= test
            and entry.template_seconds <= template
        ]
        if not any((e.test_seconds, e.template_seconds) == (test, template) for e in shorter):
            return [], []
        matrices = [_read_score_file(self.path).matrix(entry, entry.system) for entry in shorter]
        names = [
            name
            for name in matrices[0].speakers
            if all(name in matrix.speakers for matrix in matrices)
        ]
        return names, [name for name in names if all(name in matrix.people for matrix in matrices)]

    def matrices(self, panel: Panel, test: float, template: float) -> dict[str, ScoreMatrix]:
        """Return scores by system."""
        lengths = panel.session, test, template
        return {
            entry.system: select_speakers(
                _read_score_file(self.path).matrix(entry, entry.system),
                panel.speakers,
                panel.tested,
            )
            for entry in self.entries
            if (entry.session, entry.test_seconds, entry.template_seconds) == lengths
        }

    def content(self, panel: Panel) -> Any:
        """Return what the scores depend on."""
        del panel
        return {"file": file_hash(self.path), "systems": self.features}

    def frame_counts(self, speakers: Sequence[str]) -> Mapping[str, Sequence[int]]:
        """Return how often each bin was counted, by feature."""
        del speakers
        return {}


@lru_cache(maxsize=1)
def _read_score_file(path: Path) -> ScoreFile:
    file = ScoreFile.at(path)
    if file is None:
        raise UsageError(f"{path.name} is no score file; monitor score makes one")
    return file


# ------------------------------------------------------------------------------------------ speech

ENOUGH_BYTES, MOST_BYTES = 1 << 30, 4 << 30
"""Of the scores of one feature in one cell: beyond the first trials are fewer, one at least."""


@dataclass(frozen=True)
class Speech:
    """Frames of a corpus, scored against itself; each process reads them once.

    Features are all that are there where none are given; trials are tests of each speaker in each
    cell.
    """

    recordings: tuple[Recording, ...]
    features: tuple[str, ...] | None
    trials: int
    joins: bool = True
    setup: FeatureSetup = AS_ENVIRONMENT

    @property
    def voices(self) -> dict[str, SpeakerSpeech]:
        """Speech by speaker."""
        return _collect(self.recordings, self.features, self.setup)[0]

    @property
    def specs(self) -> dict[str, FeatureSpec]:
        """Specifications of the frames."""
        return _collect(self.recordings, self.features, self.setup)[1]

    @property
    def problems(self) -> tuple[str, ...]:
        """A line for each file that could not be used."""
        return _collect(self.recordings, self.features, self.setup)[2]

    @property
    def noise(self) -> str:
        """Noise added to embeddings, as the first file states it; else empty."""
        notes = (header_of(recording.path).noise for recording in self.recordings)
        return next(filter(None, notes), "")

    @property
    def systems(self) -> Sequence[str]:
        """The features."""
        return list(self.specs)

    @property
    def speakers(self) -> Sequence[str]:
        """Speakers with frames."""
        return list(self.voices)

    @property
    def offered(self) -> tuple[Sequence[float], Sequence[float]]:
        """T and D to choose from."""
        return LENGTHS, TEMPLATE_LENGTHS

    def fills(
        self, session: str, test: float, template: float
    ) -> tuple[Sequence[str], Sequence[str]]:
        """Return the speakers with a template of D, and those of them with tests of T.

        Raises:
            UsageError: a length is no multiple of 0.1 s.
        """
        _ = units_of(test), units_of(template)
        names, voices = list(self.voices), list(self.voices.values())
        plan = _make_plan(voices, session, test, template, 1)
        speakers = [names[i] for i in plan.candidates]
        return speakers, [speakers[i] for i in plan.mated]

    def matrices(self, panel: Panel, test: float, template: float) -> dict[str, ScoreMatrix]:
        """Return scores by feature, of SRD's windows (eq. 6, docs/method.md section 4).

        Raises:
            UsageError: it would not fit into memory.
        """
        trials = self.count_trials(panel)
        voices = [self.voices[name] for name in panel.speakers]
        plan = _make_plan(voices, panel.session, test, template, trials)
        grid = ScoreGrid(
            voices, self.specs, RankModels([]),
            (test,), (template,), (panel.session,), ("average",),
            trials,
        )  # fmt: skip
        cell = grid.score(panel.session, test, template, plan)
        tested = set(panel.tested)
        rows = np.array([panel.speakers[column] in tested for column in cell.matrix.target])
        return {name: select_rows(matrix, rows) for name, matrix in cell.matrices.items()}

    def count_trials(self, panel: Panel) -> int:
        """Return the trials of each speaker: fewer where speakers are many."""
        once = 8 * len(panel.speakers) * len(panel.tested)
        if once > MOST_BYTES:
            raise UsageError(
                f"{plural(len(panel.speakers), 'speaker')} against each other are more than "
                f"{MOST_BYTES >> 30} GB a feature: give a manifest of fewer speakers"
            )
        return min(self.trials, max(ENOUGH_BYTES // once, 1))

    def content(self, panel: Panel) -> Any:
        """Return the voices, and what their features are."""
        specs = {name: spec.plain() for name, spec in self.specs.items()}
        voices = [
            _hash_speaker(self.recordings, self.features, self.setup, name)
            for name in panel.speakers
        ]
        return {"specs": specs, "voices": voices, "trials": self.count_trials(panel)}

    def frame_counts(self, speakers: Sequence[str]) -> Mapping[str, Sequence[int]]:
        """Return how often each bin was counted, by feature."""
        counts = {}
        for name, spec in self.specs.items():
            if spec.kind.counted:
                sessions = [s[name] for who in speakers for s in self.voices[who].sessions]
                totals = [spec.kind.total(s.values, spec.size) for s in sessions]
                counts[name] = np.sum(totals, axis=0).tolist()
        return counts


@lru_cache(maxsize=1)
def _collect(
    recordings: tuple[Recording, ...], features: tuple[str, ...] | None, setup: FeatureSetup
) -> tuple[dict[str, SpeakerSpeech], dict[str, FeatureSpec], tuple[str, ...]]:
    voices, specs, problems = collect(Corpus(recordings, ()), features=features, setup=setup)
    scored = {name: spec for name, spec in specs.items() if spec.kind.similarities}
    return {voice.name: voice for voice in voices}, scored, problems


@cache
def _hash_speaker(
    recordings: tuple[Recording, ...],
    features: tuple[str, ...] | None,
    setup: FeatureSetup,
    name: str,
) -> str:
    """Return a hash of all frames of one speaker."""
    digest = hashlib.sha256(name.encode())
    for session in _collect(recordings, features, setup)[0][name].sessions:
        for feature in sorted(session):
            frames = session[feature]
            digest.update(f"{feature} {frames.length} {frames.span}".encode())
            for part in (frames.values, frames.units, frames.begins):
                if part is not None:
                    digest.update(f"{part.dtype}{part.shape}".encode())
                    digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


def _make_plan(
    voices: Sequence[SpeakerSpeech], session: str, test: float, template: float, trials: int
) -> Plan:
    available = plans(voices, (test,), (template,), trials)
    return next(plan for kind, _, _, plan in available if kind == session)


# --------------------------------------------------------------------------------- making material


def read_scores(path: Path, settings: ExperimentSettings) -> ScoresAtLengths | None:
    """Read a score file; None where the path is something else.

    Raises:
        StoreError: it is a damaged score file.
        UsageError: it has none of the systems that are asked for.
    """
    if path.suffix.lower() != ".npz" or not path.is_file() or ScoreFile.at(path) is None:
        return None
    scores = ScoresAtLengths(path.resolve(), settings.features)
    _ = scores.entries
    return scores


def extract_frames(
    path: Path,
    corpus: Corpus,
    folder: Path,
    features: Sequence[str] | None,
    jobs: Jobs = 1,
    progress: Callable[[Recording], object] = lambda _: None,
    setup: FeatureSetup = AS_ENVIRONMENT,
) -> tuple[Corpus, tuple[str, ...]]:
    """Extract frames not yet extracted of a corpus; a corpus of frames is as it is.

    Args:
        path: of the corpus.
        corpus: what lies there.
        folder: where frames are kept (as `monitor hear` does), so that audio is heard once.
        features: to hear; None for those that are heard by default.
        jobs: who hears.
        progress: called with each recording.
        setup: from where features are made.

    Returns:
        the corpus of frames, and a line for each file that could not be used.

    Raises:
        SourceError: nothing of it can be heard.
        UsageError: audio and frames are mixed, or the folder is within the corpus.
    """
    ready = [is_frames(recording.path) for recording in corpus.recordings]
    if all(ready):
        return corpus, corpus.problems
    if any(ready):
        raise UsageError(f"{path} mixes audio and ready-made frames: give the one or the other")
    requests = orders(corpus, path, folder)
    options = HearingOptions(tuple(features or defaults(setup=setup)), setup=setup)
    problems, orders_done = list(corpus.problems), []
    make_private(folder.parent)
    by_source = {recording.path: recording for recording in corpus.recordings}
    with closing(keep(requests, options, jobs)) as results:
        for outcome in results:
            progress(by_source[outcome.order.source])
            problems += [outcome.problem] if outcome.problem else []
            orders_done += [outcome.order] if outcome.is_complete else []
    if not orders_done:
        raise SourceError("nothing could be heard: " + "; ".join(problems[:3]))
    write_manifest(folder, orders_done)
    recordings = [Recording(order.speaker, order.session, order.target) for order in orders_done]
    return Corpus(tuple(recordings), (), corpus.identified_by), tuple(problems)


def make_private(folder: Path) -> None:
    """Make a folder that only its owner can look into, where there is none.

    Raises:
        StoreError: it cannot be made.
    """
    try:
        make_folder(folder)
    except OSError as error:
        raise not_written(folder, error) from error


def _check_features(corpus: Corpus, features: Sequence[str]) -> None:
    """Refuse a feature that no file holds, once, and not for every file."""
    missing, present = set(features), set[str]()
    for recording in corpus.recordings:
        if not missing:
            return
        sizes = header_of(recording.path).sizes
        if not sizes:  # broken, or without a header: reading it tells
            return
        present |= sizes.keys()
        missing -= sizes.keys()
    if missing:
        unknown = next(name for name in features if name in missing)
        raise UsageError(f"no frames of {unknown}: there are those of {', '.join(sorted(present))}")


def read_speech(
    corpus: Corpus, settings: ExperimentSettings, setup: FeatureSetup = AS_ENVIRONMENT
) -> Speech:
    """Read the frames of a corpus.

    Raises:
        UsageError: no feature can be scored, or no file holds one that is asked for.
        SourceError: no file can be read.
    """
    _check_features(corpus, settings.features or ())
    speech = Speech(corpus.recordings, settings.features, settings.trials, setup=setup)
    if not speech.voices:
        raise SourceError("nothing could be used: " + "; ".join(speech.problems[:3]))
    if not speech.specs:
        raise UsageError("no feature of these frames can be compared")
    return speech


# ---------------------------------------------------------------------------------------- protocol
# What an experiment is made of: something that has trials x speakers at several lengths.

Material: TypeAlias = Speech | ScoresAtLengths
"""Speech that was heard, or scores that somebody made of it; small when it is pickled. Both say
alike who there is, at which lengths, and what the scores of a panel are."""
