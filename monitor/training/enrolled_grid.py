"""Scores of a corpus against enrolled speakers, at every length of test and template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from monitor.errors import CorpusError, UsageError
from monitor.evaluation.input.score_file import ScoreCell
from monitor.evaluation.scores.matrix import ScoreMatrix
from monitor.population.law import Laws
from monitor.population.population import Population
from monitor.stream.attacker import Attacker
from monitor.training.score_grid import check_size, scored_by, systems_by
from monitor.training.scoring import Stretches, stretches
from monitor.training.voices import SpeakerSpeech
from monitor.types import FloatArray

__all__ = ["EnrolledGrid"]


@dataclass(frozen=True)
class EnrolledGrid:
    """Every cell of a corpus compared with templates that were enrolled from other speech.

    Attributes:
        voices: the speech, as `collect` gives it.
        population: the templates.
        features: that are scored.
        laws: that weigh them for their joint score.
        lengths: T, speech seconds; None makes one trial of each session.
        template_lengths: D, likewise; None is what the templates have in common.
        session: ``"cross"`` or ``"same"``.
        scorings: of ``"average"`` and ``"max"``; the joint score is as the law has it.
        problems: a line for everybody who was left out, once `cells` was called.
    """

    voices: Sequence[SpeakerSpeech]
    population: Population
    features: Sequence[str]
    laws: Laws
    lengths: Sequence[float | None]
    template_lengths: Sequence[float | None]
    session: str
    scorings: Sequence[str]
    problems: list[str] = field(default_factory=list)

    def cells(self) -> list[tuple[str, float, float, tuple[Attacker, Stretches]]]:
        """The cells that can be filled: session, T, D, and who compares what.

        Raises:
            UsageError: a length or a feature that makes no sense, no feature has such scoring, or
                it would be too much for one file.
            CorpusError: nobody enrolled says as much.
            StoreError: there is no law for these features.
        """
        found = []
        for template in self.template_lengths:
            attacker = Attacker(
                self.population,
                self.features,
                session=self.session,
                laws=self.laws,
                template_seconds=template,
            )
            compared = [voice for voice in self.voices if voice.name in attacker.names]
            for voice in self.voices:
                if voice.name not in attacker.names:
                    self._note(self._why_out(voice.name, attacker))
            if not compared:
                raise CorpusError(f"nobody who speaks there is compared with: {self.problems[0]}")
            for seconds in self.lengths:
                try:
                    heard = stretches(compared, attacker.names, attacker.features, seconds)
                except CorpusError as error:
                    self.problems.append(str(error))
                    continue
                for problem in heard.problems:
                    self._note(problem)
                test = float(np.median(heard.seconds)) if seconds is None else seconds
                lengths = test, attacker.scoring.seconds
                found.append((self.session, *lengths, (attacker, heard)))
        if not found:
            raise CorpusError(self.problems[-1])
        systems = systems_by(self.population.specs, self.scorings)
        systems = {system: name for system, name in systems.items() if name in self.features}
        if not systems:
            raise UsageError(f"{', '.join(self.features)}: no feature has max scoring")
        scores = sum(len(heard.target) * attacker.speakers for *_, (attacker, heard) in found)
        check_size(scores * (len(systems) + 1))
        return found

    def _note(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)

    def _why_out(self, name: str, attacker: Attacker) -> str:
        """Why somebody who speaks is not among those compared with."""
        if name not in self.population.names:
            return f"{name}: not enrolled, left out"
        have = self.population.template_seconds[self.population.index(name)]
        return (
            f"{name}: {have:g} s are enrolled, and all are compared by "
            f"{attacker.scoring.seconds:g} s: left out (enrol more, or --template-lengths {have:g})"
        )

    def score(
        self, session: str, test: float, template: float, how: tuple[Attacker, Stretches]
    ) -> ScoreCell:
        """Score every trial of one of the `cells`."""
        attacker, heard = how
        specs = {name: self.population.specs[name] for name in attacker.features}
        made = attacker.scores(heard.totals, heard.seconds)
        own = self.population.scorers(attacker.law)
        found: dict[str, FloatArray] = {}
        for scoring in self.scorings:
            ways = scored_by(specs, scoring)
            for system, name in systems_by(specs, (scoring,)).items():
                way = ways[name]
                if way.by_slice == own[name].by_slice:
                    found[system] = made[name]
                    continue
                templates = self.population.prepared(name, attacker.scoring, way)
                found[system] = way.score_each(templates, heard.totals[name])
        if len(specs) > 1:
            found["joint"] = made["joint"]
        matrices = {
            name: ScoreMatrix(each, heard.target, attacker.names, name, heard.names)
            for name, each in found.items()
        }
        weighed = attacker.features if "joint" in found else ()
        return ScoreCell(
            session, test, template, matrices, heard.sessions, heard.start_seconds, weighed
        )
