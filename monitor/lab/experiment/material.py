"""What an experiment is made of: heard speech, or scores that somebody made of it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from monitor.corpus.recordings import Corpus, Recording
from monitor.errors import SourceError, UsageError
from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup, defaults
from monitor.files import make_folder, not_written
from monitor.jobs import Jobs
from monitor.kinds import FeatureSpec
from monitor.lab.evaluation.input.score_file import ScoreEntry, ScoreFile
from monitor.lab.evaluation.scores.comparisons import ScoreMatrix
from monitor.lab.experiment.settings import (
    LENGTHS,
    TEMPLATE_LENGTHS,
    ExperimentSettings,
    Panel,
    among,
    of_rows,
)
from monitor.lab.scoring import ScoreGrid
from monitor.phrases import plural
from monitor.population.rank_model import RankModels
from monitor.sources.frames import header_of
from monitor.sources.provenance import file_hash
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
        """Its matrices.

        Raises:
            UsageError: it is no score file, or has none of these systems.
        """
        found = _file(self.path).entries
        chosen = [each for each in found if not self.features or each.system in self.features]
        if not chosen:
            raise UsageError(f"{self.path.name}: no scores of {', '.join(self.features or ())}")
        return tuple(chosen)

    @property
    def systems(self) -> Sequence[str]:
        """Whatever has scores."""
        return list(dict.fromkeys(entry.system for entry in self.entries))

    @property
    def speakers(self) -> Sequence[str]:
        """Everybody who is compared with in any matrix."""
        found = (_file(self.path).matrix(entry, entry.system) for entry in self.entries)
        return list(dict.fromkeys(name for each in found for name in each.speakers))

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
        """Those who are in all shorter cells as well, so that a panel finds everybody in each."""
        some = [
            entry
            for entry in self.entries
            if entry.session == session
            and entry.test_seconds <= test
            and entry.template_seconds <= template
        ]
        if not any((e.test_seconds, e.template_seconds) == (test, template) for e in some):
            return [], []
        found = [_file(self.path).matrix(entry, entry.system) for entry in some]
        names = [name for name in found[0].speakers if all(name in each.speakers for each in found)]
        return names, [name for name in names if all(name in each.people for each in found)]

    def matrices(self, panel: Panel, test: float, template: float) -> dict[str, ScoreMatrix]:
        """Scores by system."""
        lengths = panel.session, test, template
        return {
            entry.system: among(
                _file(self.path).matrix(entry, entry.system), panel.speakers, panel.tested
            )
            for entry in self.entries
            if (entry.session, entry.test_seconds, entry.template_seconds) == lengths
        }

    def content(self, panel: Panel) -> Any:
        """What the scores depend on."""
        del panel
        return {"file": file_hash(self.path), "systems": self.features}

    def frame_counts(self, speakers: Sequence[str]) -> Mapping[str, Sequence[int]]:
        """How often each bin was heard, by feature."""
        del speakers
        return {}


@lru_cache(maxsize=1)
def _file(path: Path) -> ScoreFile:
    found = ScoreFile.at(path)
    if found is None:
        raise UsageError(f"{path.name} is no score file; monitor score makes one")
    return found


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
        """What everybody said."""
        return _heard(self.recordings, self.features, self.setup)[0]

    @property
    def specs(self) -> dict[str, FeatureSpec]:
        """What the frames look like."""
        return _heard(self.recordings, self.features, self.setup)[1]

    @property
    def problems(self) -> tuple[str, ...]:
        """A line for each file that could not be used."""
        return _heard(self.recordings, self.features, self.setup)[2]

    @property
    def noise(self) -> str:
        """What was added to embeddings, as the first file says that tells of any; else empty."""
        told = (header_of(recording.path).noise for recording in self.recordings)
        return next(filter(None, told), "")

    @property
    def systems(self) -> Sequence[str]:
        """The features."""
        return list(self.specs)

    @property
    def speakers(self) -> Sequence[str]:
        """Everybody who was heard."""
        return list(self.voices)

    @property
    def offered(self) -> tuple[Sequence[float], Sequence[float]]:
        """T and D to choose from."""
        return LENGTHS, TEMPLATE_LENGTHS

    def fills(
        self, session: str, test: float, template: float
    ) -> tuple[Sequence[str], Sequence[str]]:
        """Who has a template of D, and who of them has tests of T.

        Raises:
            UsageError: a length is no multiple of 0.1 s.
        """
        _ = units_of(test), units_of(template)
        names, voices = list(self.voices), list(self.voices.values())
        plan = _plan(voices, session, test, template, 1)
        speakers = [names[i] for i in plan.candidates]
        return speakers, [speakers[i] for i in plan.mated]

    def matrices(self, panel: Panel, test: float, template: float) -> dict[str, ScoreMatrix]:
        """Scores by feature, of SRD's windows (eq. 6, docs/method.md section 4).

        Raises:
            UsageError: it would not fit into memory.
        """
        trials = self.trials_of(panel)
        voices = [self.voices[name] for name in panel.speakers]
        plan = _plan(voices, panel.session, test, template, trials)
        grid = ScoreGrid(
            voices, self.specs, RankModels([]),
            (test,), (template,), (panel.session,), ("average",),
            trials,
        )  # fmt: skip
        cell = grid.score(panel.session, test, template, plan)
        tested = set(panel.tested)
        rows = np.array([panel.speakers[column] in tested for column in cell.matrix.target])
        return {name: of_rows(matrix, rows) for name, matrix in cell.matrices.items()}

    def trials_of(self, panel: Panel) -> int:
        """How many trials each speaker has: fewer than asked for where speakers are many."""
        once = 8 * len(panel.speakers) * len(panel.tested)
        if once > MOST_BYTES:
            raise UsageError(
                f"{plural(len(panel.speakers), 'speaker')} against each other are more than "
                f"{MOST_BYTES >> 30} GB a feature: give a manifest of fewer speakers"
            )
        return min(self.trials, max(ENOUGH_BYTES // once, 1))

    def content(self, panel: Panel) -> Any:
        """The voices, and what their features are."""
        specs = {name: spec.plain() for name, spec in self.specs.items()}
        voices = [
            _mark(self.recordings, self.features, self.setup, name) for name in panel.speakers
        ]
        return {"specs": specs, "voices": voices, "trials": self.trials_of(panel)}

    def frame_counts(self, speakers: Sequence[str]) -> Mapping[str, Sequence[int]]:
        """How often each bin was heard, by feature."""
        found = {}
        for name, spec in self.specs.items():
            if spec.kind.counted:
                sessions = [s[name] for who in speakers for s in self.voices[who].sessions]
                totals = [spec.kind.total(s.values, spec.size) for s in sessions]
                found[name] = np.sum(totals, axis=0).tolist()
        return found


@lru_cache(maxsize=1)
def _heard(
    recordings: tuple[Recording, ...], features: tuple[str, ...] | None, setup: FeatureSetup
) -> tuple[dict[str, SpeakerSpeech], dict[str, FeatureSpec], tuple[str, ...]]:
    voices, specs, problems = collect(Corpus(recordings, ()), features=features, setup=setup)
    scored = {name: spec for name, spec in specs.items() if spec.kind.similarities}
    return {voice.name: voice for voice in voices}, scored, problems


@cache
def _mark(
    recordings: tuple[Recording, ...],
    features: tuple[str, ...] | None,
    setup: FeatureSetup,
    name: str,
) -> str:
    """A hash of all frames of one speaker."""
    made = hashlib.sha256(name.encode())
    for session in _heard(recordings, features, setup)[0][name].sessions:
        for feature in sorted(session):
            frames = session[feature]
            made.update(f"{feature} {frames.length} {frames.span}".encode())
            for part in (frames.values, frames.units, frames.begins):
                if part is not None:
                    made.update(f"{part.dtype}{part.shape}".encode())
                    made.update(np.ascontiguousarray(part).data)
    return made.hexdigest()


def _plan(
    voices: Sequence[SpeakerSpeech], session: str, test: float, template: float, trials: int
) -> Plan:
    found = plans(voices, (test,), (template,), trials)
    return next(plan for kind, _, _, plan in found if kind == session)


# --------------------------------------------------------------------------------- making material


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
    setup: FeatureSetup = AS_ENVIRONMENT,
) -> tuple[Corpus, tuple[str, ...]]:
    """Hear what is not heard yet of a corpus; a corpus of frames is as it is.

    Args:
        path: of the corpus.
        found: what lies there.
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
    ready = [is_frames(recording.path) for recording in found.recordings]
    if all(ready):
        return found, found.problems
    if any(ready):
        raise UsageError(f"{path} mixes audio and ready-made frames: give the one or the other")
    wanted = orders(found, path, folder)
    manner = HearingOptions(tuple(features or defaults(setup=setup)), setup=setup)
    problems, heard = list(found.problems), []
    make_private(folder.parent)
    by_source = {recording.path: recording for recording in found.recordings}
    with closing(keep(wanted, manner, jobs)) as results:
        for kept in results:
            progress(by_source[kept.order.source])
            problems += [kept.problem] if kept.problem else []
            heard += [kept.order] if kept.is_complete else []
    if not heard:
        raise SourceError("nothing could be heard: " + "; ".join(problems[:3]))
    write_manifest(folder, heard)
    made = [Recording(order.speaker, order.session, order.target) for order in heard]
    return Corpus(tuple(made), (), found.identified_by), tuple(problems)


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


def speech_of(
    corpus: Corpus, settings: ExperimentSettings, setup: FeatureSetup = AS_ENVIRONMENT
) -> Speech:
    """The frames of a corpus as material.

    Raises:
        UsageError: no feature can be scored, or no file holds one that is asked for.
        SourceError: no file can be read.
    """
    _check_features(corpus, settings.features or ())
    made = Speech(corpus.recordings, settings.features, settings.trials, setup=setup)
    if not made.voices:
        raise SourceError("nothing could be used: " + "; ".join(made.problems[:3]))
    if not made.specs:
        raise UsageError("no feature of these frames can be compared")
    return made


# ---------------------------------------------------------------------------------------- protocol
# What an experiment is made of: something that has trials x speakers at several lengths.

Material: TypeAlias = Speech | ScoresAtLengths
"""Speech that was heard, or scores that somebody made of it; small when it is pickled. Both say
alike who there is, at which lengths, and what the scores of a panel are."""
