"""Speech as the material of an experiment: frames of a corpus, scored against itself."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from monitor.corpus.recordings import Corpus, Recording
from monitor.errors import UsageError
from monitor.evaluation.scores.matrix import ScoreMatrix
from monitor.experiment.cells.rows import of_rows
from monitor.experiment.panels import LENGTHS, TEMPLATE_LENGTHS, Panel
from monitor.kinds import FeatureSpec
from monitor.phrases import plural
from monitor.population.law import Laws
from monitor.sources.frames import header_of
from monitor.training.cells import Plan, plans
from monitor.training.score_grid import ScoreGrid
from monitor.training.voices import SpeakerSpeech, collect, units_of

__all__ = ["ENOUGH_BYTES", "MOST_BYTES", "Speech"]

ENOUGH_BYTES, MOST_BYTES = 1 << 30, 4 << 30
"""Of the scores of one feature in one cell: beyond the first trials are fewer, one at least."""


@dataclass(frozen=True)
class Speech:
    """Frames of a corpus; each process reads them once.

    Attributes:
        recordings: files of frames.
        features: that are scored; None for all that are there.
        trials: tests of each speaker in each cell.
    """

    recordings: tuple[Recording, ...]
    features: tuple[str, ...] | None
    trials: int
    joins: bool = True

    @property
    def voices(self) -> dict[str, SpeakerSpeech]:
        """What everybody said."""
        return _heard(self.recordings, self.features)[0]

    @property
    def specs(self) -> dict[str, FeatureSpec]:
        """What the frames look like."""
        return _heard(self.recordings, self.features)[1]

    @property
    def problems(self) -> tuple[str, ...]:
        """A line for each file that could not be used."""
        return _heard(self.recordings, self.features)[2]

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
            voices, self.specs, Laws([]), (test,), (template,), (panel.session,), ("average",),
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
        voices = [_mark(self.recordings, self.features, name) for name in panel.speakers]
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
    recordings: tuple[Recording, ...], features: tuple[str, ...] | None
) -> tuple[dict[str, SpeakerSpeech], dict[str, FeatureSpec], tuple[str, ...]]:
    voices, specs, problems = collect(Corpus(recordings, ()), features=features)
    scored = {name: spec for name, spec in specs.items() if spec.kind.similarities}
    return {voice.name: voice for voice in voices}, scored, problems


@cache
def _mark(recordings: tuple[Recording, ...], features: tuple[str, ...] | None, name: str) -> str:
    """A hash of all frames of one speaker."""
    made = hashlib.sha256(name.encode())
    for session in _heard(recordings, features)[0][name].sessions:
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
