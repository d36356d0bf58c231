"""Settings, speakers and lengths of an experiment, and its speech or ready-made scores."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from functools import cache, lru_cache
from itertools import product
from pathlib import Path
from typing import TypeAlias

import numpy as np

from monitor.corpus import Corpus, Recording
from monitor.errors import CorpusError, SourceError, UsageError
from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup, defaults
from monitor.files import make_folder, writing
from monitor.jobs import Jobs
from monitor.kinds import FeatureSpec
from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.evaluation.input.score_file import ScoreEntry, ScoreFile
from monitor.lab.scoring import ScoreGrid
from monitor.maths.statistics import REPLICATES
from monitor.phrases import plural
from monitor.population.rank_model import RankModels
from monitor.sources.base import file_hash
from monitor.sources.frames import header_of
from monitor.sources.registry import is_frames
from monitor.training.frames_folder import ExtractionOptions, keep, orders, write_manifest
from monitor.training.grid import Plan, plans
from monitor.training.voices import SpeakerSpeech, collect, units_of
from monitor.types import BoolArray

FEWEST_REPLICATES = 20  # minimum replicates to distinguish a result from no evidence
SESSIONS = ("cross", "same")


@dataclass(frozen=True)
class ExperimentSettings:
    """Settings of an experiment; None chooses by the corpus.

    Attributes:
        features: features to score; None for all that were extracted.
        lengths, template_lengths: T and D of the sweep, speech seconds.
        tables_at: T and D of the tables and of figures 5 to 7.
        sessions: ``"cross"``, ``"same"`` or both.
        trials: tests per speaker and cell.
        replicates, seed: number and seed of the resamples of speakers, for the intervals.
        trained: training speakers of each feature's network, by name. Their tests do not count for
            it.
    """

    features: tuple[str, ...] | None = None
    lengths: tuple[float, ...] | None = None
    template_lengths: tuple[float, ...] | None = None
    tables_at: tuple[float, float] | None = None
    sessions: tuple[str, ...] = SESSIONS
    trials: int = 20
    replicates: int = REPLICATES
    seed: int = 0
    trained: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.trials < 1 or self.replicates < FEWEST_REPLICATES:
            raise UsageError(
                f"an experiment needs at least 1 trial and {FEWEST_REPLICATES} resamples"
            )
        if unknown := sorted(set(self.sessions) - set(SESSIONS)):
            raise UsageError(f"invalid session {unknown[0]!r}: use {', '.join(SESSIONS)}")

    def get_trainers(self, system: str, features: Sequence[str]) -> frozenset[str]:
        """Return the training speakers of a system's networks (a feature's, or the joint's)."""
        names = features if system == "joint" else (system,)
        return frozenset().union(*(self.trained.get(name, frozenset()) for name in names))

    def plain(self) -> dict[str, object]:
        """Return settings for JSON, with the number of training speakers, not their names."""
        trained = {name: len(names) for name, names in sorted(self.trained.items())}
        return {**vars(self), "trained": trained}


# Speakers, and lengths T of tests and D of templates. All cells of a panel have the same speakers.
# Otherwise long cells would have fewer and other people than short ones, and would differ not only
# in length.
LENGTHS = (1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0)
"""T to choose from, speech seconds."""
TEMPLATE_LENGTHS = (3.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
"""D to choose from, speech seconds."""
TABLES_SECONDS = 30.0  # T and D of the tables if there is enough speech; SRD's unit of speech
_START_SECONDS = 10.0
_FEWEST = 2

Filled: TypeAlias = tuple[Sequence[str], Sequence[str]]
"""Speakers with a template in a cell, and those of them with tests."""
Fills: TypeAlias = Callable[[str, float, float], Filled]
"""Returns the speakers of a session, T and D."""


@dataclass(frozen=True)
class Panel:
    """Speakers of several cells, the same in each."""

    purpose: str  # ``"tables"`` for one cell, or ``"sweep"`` for all pairs of lengths
    session: str  # ``"cross"`` or ``"same"``
    speakers: tuple[str, ...]  # the N speakers with a template
    tested: tuple[str, ...]  # those of them with tests
    # lengths, template_lengths: T and D, speech seconds
    lengths: tuple[float, ...]
    template_lengths: tuple[float, ...]

    @property
    def cells(self) -> list[tuple[float, float]]:
        """T and D of each cell."""
        return list(product(self.lengths, self.template_lengths))

    def plain(self) -> dict[str, object]:
        """Return the panel for JSON, with numbers of speakers, not names."""
        return {**asdict(self), "speakers": len(self.speakers), "tested": len(self.tested)}


def choose_panels(
    fills: Fills, offered: tuple[Sequence[float], Sequence[float]], settings: ExperimentSettings
) -> list[Panel]:
    """Choose the panels of tables and sweep, for each kind of session.

    The reference is the speakers with tests and templates of 10 s. The sweep ends at the longest
    lengths that half of them reach. The tables are at 30 s and 30 s, or at the longest lengths of
    the sweep. T and D are chosen from ``offered`` unless the settings have them. Raises CorpusError
    if no speaker can be tested.
    """
    lengths = settings.lengths or offered[0]
    templates = settings.template_lengths or offered[1]
    corners = sorted({  # the longest cell within each square of lengths
        (max((t for t in lengths if t <= side), default=min(lengths)),
         max((d for d in templates if d <= side), default=min(templates)))
        for side in (*lengths, *templates)
    })  # fmt: skip
    panels, has_tables = [], settings.tables_at is None
    for session in settings.sessions:
        counts = {corner: len(fills(session, *corner)[1]) for corner in corners}
        filled = [corner for corner in corners if counts[corner] >= _FEWEST]
        if not filled:
            continue
        start = next((corner for corner in filled if min(corner) >= _START_SECONDS), filled[-1])
        widest = [corner for corner in filled if 2 * counts[corner] >= counts[start]][-1]
        if settings.lengths and settings.template_lengths:
            widest = corners[-1]
            if counts[widest] < _FEWEST:
                continue
        at = settings.tables_at
        if at is None:
            at = max(c for c in corners if max(c) <= TABLES_SECONDS or c == corners[0])
            at = widest if sum(at) > sum(widest) else at
        if len(fills(session, *at)[1]) >= _FEWEST:
            has_tables = True
            panels.append(_make_panel(fills, "tables", session, at, (at[0],), (at[1],)))
        tests = tuple(t for t in lengths if t <= widest[0])
        depths = tuple(d for d in templates if d <= widest[1])
        panels.append(_make_panel(fills, "sweep", session, widest, tests, depths))
    if not panels or not has_tables:
        kinds = " or ".join(f"{session} session" for session in settings.sessions)
        lengths_of = "tables-at" if panels else "--lengths and --template-lengths"
        raise CorpusError(
            f"fewer than two speakers have enough speech for a test and a template ({kinds}): "
            f"add speech, or use shorter {lengths_of}"
        )
    return panels


def _make_panel(
    fills: Fills, purpose: str, session: str, widest: tuple[float, float],
    lengths: tuple[float, ...], templates: tuple[float, ...],
) -> Panel:  # fmt: skip
    speakers, tested = fills(session, *widest)
    return Panel(purpose, session, tuple(speakers), tuple(tested), lengths, templates)


def select_rows(matrix: ScoreMatrix, rows: BoolArray) -> ScoreMatrix:
    """Select the trials where ``rows``, shape (T,), is true."""
    if rows.all():
        return matrix
    names = tuple(np.array(matrix.trial_names)[rows].tolist()) if matrix.trial_names else ()
    scores, target = matrix.scores[rows], matrix.target[rows]
    return ScoreMatrix(scores, target, matrix.speakers, matrix.name, names)


def exclude_speakers(matrix: ScoreMatrix, names: frozenset[str]) -> ScoreMatrix | None:
    """Exclude these speakers' trials but keep them as candidates; None if no trials remain."""
    rows = np.array([matrix.speakers[column] not in names for column in matrix.target])
    return select_rows(matrix, rows) if rows.any() else None


def select_speakers(
    matrix: ScoreMatrix, speakers: Sequence[str], tested: Sequence[str]
) -> ScoreMatrix:
    """Select trials of the tested speakers against these speakers, in this order."""
    column = {name: i for i, name in enumerate(matrix.speakers)}
    chosen = [column[name] for name in speakers]
    selected = select_rows(matrix, np.isin(matrix.target, [column[name] for name in tested]))
    positions = np.full(matrix.population, -1)
    positions[chosen] = np.arange(len(chosen))
    return ScoreMatrix(
        np.asarray(selected.scores)[:, chosen], positions[selected.target], tuple(speakers),
        selected.name, selected.trial_names,
    )  # fmt: skip


@dataclass(frozen=True)
class ScoresAtLengths:
    """Scores of any recogniser from a score file, for some of its systems or all."""

    path: Path
    features: tuple[str, ...] | None = None
    joins: bool = False
    noise: str = ""
    problems: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of the file."""
        return self.path.stem

    @property
    def entries(self) -> list[ScoreEntry]:
        """Matrices of the file.

        Raises UsageError if it is not a score file, or lacks these systems.
        """
        entries = _read_score_file(self.path).entries
        chosen = [entry for entry in entries if not self.features or entry.system in self.features]
        if not chosen:
            raise UsageError(f"{self.path.name}: no scores of {', '.join(self.features or ())}")
        return chosen

    def _matrix(self, entry: ScoreEntry) -> ScoreMatrix:
        return _read_score_file(self.path).matrix(entry, entry.system)

    @property
    def systems(self) -> Sequence[str]:
        """Systems with scores."""
        return list(dict.fromkeys(entry.system for entry in self.entries))

    @property
    def speakers(self) -> Sequence[str]:
        """Speakers of all matrices."""
        matrices = map(self._matrix, self.entries)
        return list(dict.fromkeys(name for matrix in matrices for name in matrix.speakers))

    @property
    def offered(self) -> tuple[Sequence[float], Sequence[float]]:
        """T and D to choose from."""
        tests = {entry.test_seconds for entry in self.entries}
        templates = {entry.template_seconds for entry in self.entries}
        return sorted(tests), sorted(templates)

    def fills(self, session: str, test: float, template: float) -> Filled:
        """Return the speakers of this cell who are also in all shorter cells of a panel."""
        shorter = [
            e
            for e in self.entries
            if e.session == session and e.test_seconds <= test and e.template_seconds <= template
        ]
        if not any((e.test_seconds, e.template_seconds) == (test, template) for e in shorter):
            return [], []
        first, *others = map(self._matrix, shorter)
        names = [name for name in first.speakers if all(name in m.speakers for m in others)]
        return names, [n for n in names if all(n in m.people for m in (first, *others))]

    def matrices(self, panel: Panel, test: float, template: float) -> dict[str, ScoreMatrix]:
        """Return scores by system."""
        lengths = panel.session, test, template
        return {
            entry.system: select_speakers(self._matrix(entry), panel.speakers, panel.tested)
            for entry in self.entries
            if (entry.session, entry.test_seconds, entry.template_seconds) == lengths
        }

    def content(self, _panel: Panel) -> object:
        """Return the inputs of the scores."""
        return {"file": file_hash(self.path), "systems": self.features}

    def frame_counts(self, _speakers: Sequence[str]) -> Mapping[str, Sequence[int]]:
        """Return how often each bin was counted, by feature."""
        return {}


@lru_cache(maxsize=1)
def _read_score_file(path: Path) -> ScoreFile:
    file = ScoreFile.from_file(path)
    if file is None:
        raise UsageError(f"invalid score file {path.name}: make one with monitor score")
    return file


ENOUGH_BYTES, MOST_BYTES = 1 << 30, 4 << 30
"""Sizes of one feature's scores in a cell: from which trials are reduced, and the maximum."""


@dataclass(frozen=True)
class Speech:
    """Frames of a corpus to score against itself; each process reads them once.

    ``skipped`` has one line for each file without usable frames.
    """

    recordings: tuple[Recording, ...]
    features: tuple[str, ...] | None
    trials: int
    joins: bool = True
    setup: FeatureSetup = AS_ENVIRONMENT
    name: str = ""
    skipped: tuple[str, ...] = ()

    @property
    def voices(self) -> dict[str, SpeakerSpeech]:
        """Speech by speaker."""
        return _collect(self)[0]

    @property
    def specs(self) -> dict[str, FeatureSpec]:
        """Specifications of the frames."""
        return _collect(self)[1]

    @property
    def problems(self) -> tuple[str, ...]:
        """One line for each unusable file."""
        return (*self.skipped, *_collect(self)[2])

    @property
    def noise(self) -> str:
        """Noise added to embeddings, from the first file that states it, or empty."""
        paths = (recording.path for recording in self.recordings)
        notes = (header_of(path).noise for path in paths if isinstance(path, Path))
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

    def fills(self, session: str, test: float, template: float) -> Filled:
        """Return the speakers with a template of D, and those of them with tests of T.

        Raises UsageError if a length is not a multiple of 0.1 s.
        """
        _ = units_of(test), units_of(template)
        voices = list(self.voices.values())
        plan = _make_plan(voices, session, test, template, 1)
        speakers = [voices[i].name for i in plan.candidates]
        return speakers, [speakers[i] for i in plan.mated]

    def matrices(self, panel: Panel, test: float, template: float) -> dict[str, ScoreMatrix]:
        """Return scores by feature for SRD's windows (equation 6, docs/method.md section 4).

        Raises UsageError if they would not fit into memory.
        """
        trials = self.count_trials(panel)
        voices = [self.voices[name] for name in panel.speakers]
        plan = _make_plan(voices, panel.session, test, template, trials)
        grid = ScoreGrid(
            voices, self.specs, RankModels([]), (test,), (template,), (panel.session,),
            ("average",), trials,
        )  # fmt: skip
        cell = grid.score(panel.session, test, template, plan)
        tested = set(panel.tested)
        rows = np.array([panel.speakers[column] in tested for column in cell.matrix.target])
        return {name: select_rows(matrix, rows) for name, matrix in cell.matrices.items()}

    def count_trials(self, panel: Panel) -> int:
        """Return the trials per speaker, fewer for many speakers."""
        once = 8 * len(panel.speakers) * len(panel.tested)
        if once > MOST_BYTES:
            raise UsageError(
                f"{plural(len(panel.speakers), 'speaker')} against each other need more than "
                f"{MOST_BYTES >> 30} GB per feature: use a manifest with fewer speakers"
            )
        return min(self.trials, max(ENOUGH_BYTES // once, 1))

    def content(self, panel: Panel) -> object:
        """Return the inputs of the scores: hashes of voices, and feature specifications."""
        return {
            "specs": {name: spec.plain() for name, spec in self.specs.items()},
            "voices": [_hash_speaker(self, name) for name in panel.speakers],
            "trials": self.count_trials(panel),
        }

    def frame_counts(self, speakers: Sequence[str]) -> Mapping[str, Sequence[int]]:
        """Return how often each bin was counted, by feature."""
        counts, voices = {}, self.voices
        for name, spec in self.specs.items():
            if spec.kind.counted:
                sessions = [session[name] for who in speakers for session in voices[who].sessions]
                totals = [spec.kind.total(frames.values, spec.size) for frames in sessions]
                counts[name] = np.sum(totals, axis=0).tolist()
        return counts


@lru_cache(maxsize=1)
def _collect(
    speech: Speech,
) -> tuple[dict[str, SpeakerSpeech], dict[str, FeatureSpec], tuple[str, ...]]:
    corpus = Corpus(speech.recordings, ())
    voices, specs, problems = collect(corpus, features=speech.features, setup=speech.setup)
    scored = {name: spec for name, spec in specs.items() if spec.kind.similarities}
    return {voice.name: voice for voice in voices}, scored, problems


@cache
def _hash_speaker(speech: Speech, name: str) -> str:
    digest = hashlib.sha256(name.encode())
    for session in speech.voices[name].sessions:
        for feature in sorted(session):
            frames = session[feature]
            digest.update(f"{feature} {frames.length} {frames.span}".encode())
            for array in (frames.values, frames.units, frames.begins):
                if array is not None:
                    digest.update(f"{array.dtype}{array.shape}".encode())
                    digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _make_plan(
    voices: Sequence[SpeakerSpeech], session: str, test: float, template: float, trials: int
) -> Plan:
    available = plans(voices, (test,), (template,), trials)
    return next(plan for kind, _, _, plan in available if kind == session)


Material: TypeAlias = Speech | ScoresAtLengths
"""Extracted speech, or ready-made scores. Both have the same interface to speakers, lengths and
scores of a panel, and are small when pickled."""


def read_scores(path: Path, settings: ExperimentSettings) -> ScoresAtLengths | None:
    """Read a score file; None for other paths.

    Raises:
        StoreError: if the score file is damaged.
        UsageError: if it lacks the requested systems.
    """
    if path.suffix.lower() != ".npz" or not path.is_file() or ScoreFile.from_file(path) is None:
        return None
    scores = ScoresAtLengths(path.resolve(), settings.features)
    _ = scores.entries
    return scores


def read_speech(
    path: Path,
    corpus: Corpus,
    folder: Path,
    settings: ExperimentSettings,
    jobs: Jobs = 1,
    progress: Callable[[Recording], object] = lambda _: None,
    setup: FeatureSetup = AS_ENVIRONMENT,
) -> Speech:
    """Read frames of the corpus at ``path``; audio is first extracted into a folder of frames.

    ``progress`` is called with each extracted recording. Raises SourceError if no recording can be
    extracted or read. Raises UsageError if audio and frames are mixed, or the folder is within the
    corpus. It is also raised if no feature can be scored, or no file has a requested one.
    """
    ready = [is_frames(recording.path) for recording in corpus.recordings]
    if any(ready) and not all(ready):
        raise UsageError(f"{path} mixes audio and ready-made frames: use only one of them")
    recordings, problems = corpus.recordings, list(corpus.problems)
    if not all(ready):
        requests = orders(corpus, path, folder)
        options = ExtractionOptions(tuple(settings.features or defaults(setup=setup)), setup=setup)
        with writing(folder.parent):
            make_folder(folder.parent)
        by_source = {recording.path: recording for recording in recordings}
        orders_done = []
        with closing(keep(requests, options, jobs)) as results:
            for outcome in results:
                progress(by_source[outcome.order.source])
                problems += [outcome.problem] if outcome.problem else []
                orders_done += [outcome.order] if outcome.is_complete else []
        if not orders_done:
            raise SourceError("no recording could be extracted: " + "; ".join(problems[:3]))
        write_manifest(folder, orders_done)
        recordings = tuple(Recording(o.speaker, o.session, o.target) for o in orders_done)
    _check_features(recordings, settings.features or ())
    speech = Speech(
        recordings, settings.features, settings.trials, setup=setup, name=path.resolve().stem,
        skipped=tuple(problems),
    )  # fmt: skip
    if not speech.voices:
        raise SourceError("no recording could be used: " + "; ".join(speech.problems[:3]))
    if not speech.specs:
        raise UsageError("no feature of these frames can be compared")
    return speech


def _check_features(recordings: Sequence[Recording], features: Sequence[str]) -> None:
    """Raise UsageError, once for all files, if a feature is in none of them."""
    missing, present = set(features), set[str]()
    for recording in recordings:
        if not missing:
            return
        assert isinstance(recording.path, Path)
        sizes = header_of(recording.path).sizes
        if not sizes:  # damaged or without a header: reading it reports that
            return
        present |= sizes.keys()
        missing -= sizes.keys()
    if missing:
        unknown = next(name for name in features if name in missing)
        raise UsageError(f"no frames of {unknown}: use {', '.join(sorted(present))}")
