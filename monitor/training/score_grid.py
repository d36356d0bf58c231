"""Scores of a corpus against itself, at every length of test and template: SRD eq. (6).

Source: docs/method.md section 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from monitor.errors import CorpusError, StoreError, UsageError
from monitor.evaluation.input.score_file import ScoreCell
from monitor.evaluation.scores.matrix import ScoreMatrix
from monitor.kinds import FeatureSpec
from monitor.maths.scores import Similarity
from monitor.population.law import Laws
from monitor.training.cells import Plan, plans
from monitor.training.joint import JointScores
from monitor.training.scoring import largest
from monitor.training.voices import UNITS_PER_SECOND, SpeakerSpeech, units_of
from monitor.types import BoolArray, FloatArray

__all__ = [
    "MOST_BYTES",
    "ScoreGrid",
    "check_size",
    "scored_by",
    "systems_by",
]

_MOST_NAMED = 5
MOST_BYTES = 2 << 30
"""Of scores in one file."""


def scored_by(specs: Mapping[str, FeatureSpec], scoring: str) -> dict[str, Similarity]:
    """How each feature is compared by average or by max scoring, if that is something else.

    Args:
        specs: of the features.
        scoring: ``"average"``, each kind's usual similarity, or ``"max"``, the nearest slice of a
            template.

    Returns:
        by feature; for ``"max"`` those that have it.
    """
    if scoring == "average":
        return {n: spec.kind.similarity() for n, spec in specs.items() if spec.kind.similarities}
    return {
        name: way
        for name, spec in specs.items()
        for way in spec.kind.similarities.values()
        if way.by_slice
    }


def systems_by(specs: Mapping[str, FeatureSpec], scorings: Sequence[str]) -> dict[str, str]:
    """What the matrices of these features are called, and the feature that each is of."""
    return {
        name if scoring == "average" else f"{name}-{scoring}": name
        for scoring in scorings
        for name in scored_by(specs, scoring)
    }


def check_size(scores: int) -> None:
    """See to it that so many scores go into one file.

    Raises:
        UsageError: they do not.
    """
    if 8 * scores > MOST_BYTES:
        raise UsageError(
            f"{8 * scores / 2**30:.1f} GB of scores, more than {MOST_BYTES / 2**30:g} GB: give "
            "fewer --lengths, --template-lengths, --trials or --features"
        )


@dataclass(frozen=True)
class ScoreGrid:
    """Every cell that a corpus has trials for.

    Attributes:
        voices: the speech, as `collect` gives it.
        specs: of the features.
        laws: that weigh the features for their joint score.
        lengths: T, speech seconds.
        template_lengths: D, likewise.
        sessions: of ``"same"`` and ``"cross"``.
        scorings: of ``"average"`` and ``"max"``.
        trials: of each speaker, in each cell.
        problems: who is left out and why, and what cells lack of a joint score, once `cells` was
            called.
    """

    voices: Sequence[SpeakerSpeech]
    specs: Mapping[str, FeatureSpec]
    laws: Laws
    lengths: Sequence[float]
    template_lengths: Sequence[float]
    sessions: Sequence[str]
    scorings: Sequence[str]
    trials: int
    problems: list[str] = field(default_factory=list)

    def cells(self) -> list[tuple[str, float, float, Plan]]:
        """The cells that can be filled: session, T, D, and where the windows lie.

        Raises:
            UsageError: no feature has such scoring, a length is no multiple of 0.1, or it would be
                too much for one file.
            CorpusError: no cell has a speaker to look for, and another one to compare with.
        """
        for seconds in (*self.lengths, *self.template_lengths):
            units_of(seconds)
        systems = systems_by(self.specs, self.scorings)
        if not systems:
            raise UsageError(f"{', '.join(self.specs)}: no feature has max scoring")
        found = [
            (session, self.lengths[t], self.template_lengths[d], plan)
            for session, t, d, plan in plans(
                self.voices, self.lengths, self.template_lengths, self.trials
            )
            if session in self.sessions and plan.mated.size and plan.candidates.size > 1
        ]
        if not found:
            raise CorpusError(
                f"nobody says enough for tests of {min(self.lengths):g} s and templates of "
                f"{min(self.template_lengths):g} s ({'/'.join(self.sessions)} session): give "
                "shorter --lengths and --template-lengths"
            )
        for cell in found:
            self.problems.extend(self._left_out(*cell))
        scores = sum(p.mated.size * p.shifts * p.candidates.size for _, _, _, p in found)
        check_size(scores * (len(systems) + len(self.scorings)))
        for session, _, template, _ in found:
            for scoring in self.scorings:
                _, why = self.joint(scoring, session, template)
                if why and why not in self.problems:
                    self.problems.append(why)
        return found

    def _left_out(self, session: str, test: float, template: float, plan: Plan) -> list[str]:
        """Who has no trial in a cell, or is not even compared with, and why: a line each sort."""
        where = f"T={test:g} D={template:g} {session}"
        longest = {
            voice.name: max(map(voice.length, range(len(voice.sessions)))) / UNITS_PER_SECOND
            for voice in self.voices
        }
        out = [v.name for i, v in enumerate(self.voices) if i not in plan.candidates]
        tested = set(plan.candidates[plan.mated].tolist())
        mute = [self.voices[i].name for i in plan.candidates.tolist() if i not in tested]
        lines = []
        if out:
            some = ", ".join(f"{name} ({longest[name]:g} s)" for name in out[:_MOST_NAMED])
            more = f" and {len(out) - _MOST_NAMED} more" if len(out) > _MOST_NAMED else ""
            needed = template if session == "cross" else test + template
            lines.append(
                f"{where}: left out, with less than {needed:g} s of speech in the longest session: "
                f"{some}{more}"
            )
        if mute:
            some = ", ".join(mute[:_MOST_NAMED])
            more = f" and {len(mute) - _MOST_NAMED} more" if len(mute) > _MOST_NAMED else ""
            lines.append(
                f"{where}: compared with, but without a trial, for want of a second session with "
                f"{test:g} s: {some}{more}"
            )
        return lines

    def score(self, session: str, test: float, template: float, plan: Plan) -> ScoreCell:
        """Score every trial of one of the `cells`; trials of a speaker stand together."""
        units = units_of(test), units_of(template)
        mated = plan.candidates[plan.mated]
        order = np.argsort(np.tile(plan.mated, plan.shifts), kind="stable")
        target = np.tile(plan.mated, plan.shifts)[order]
        speakers = tuple(self.voices[i].name for i in plan.candidates)
        found: dict[str, FloatArray] = {}
        weighed: tuple[str, ...] = ()
        for scoring in self.scorings:
            ways = scored_by(self.specs, scoring)
            if not ways:
                continue
            scores, heard = self._scores(ways, plan, *units)
            called = dict(zip(ways, systems_by(self.specs, (scoring,)), strict=True))
            found |= {called[name]: each[order] for name, each in scores.items()}
            joint, _ = self.joint(scoring, session, template)
            if joint is not None:
                weighed = joint.features
                name = "joint" if scoring == "average" else f"joint-{scoring}"
                found[name] = joint.add(scores, heard, test)[order]
        placed = [plan.heard(int(voice), shift) for shift in range(plan.shifts) for voice in mated]
        who = np.tile(mated, plan.shifts)
        names = tuple(f"{self.voices[who[i]].name} {i // mated.size + 1}" for i in order.tolist())
        return ScoreCell(
            session,
            test,
            template,
            {
                name: ScoreMatrix(each, target, speakers, name, names)
                for name, each in found.items()
            },
            [self.voices[who[i]].session_name(placed[i][0]) for i in order.tolist()],
            np.array([placed[i][1] for i in order.tolist()]) / UNITS_PER_SECOND,
            weighed,
        )

    def joint(self, scoring: str, session: str, template: float) -> tuple[JointScores | None, str]:
        """What weighs a cell's features, as many as a law knows together; None where nothing does.

        Returns:
            that, and what a person should know of it; mostly nothing.
        """
        ways = scored_by(self.specs, scoring)
        if len(ways) < 2 or ways.keys() != scored_by(self.specs, "average").keys():
            return None, ""
        names = largest(self.laws, ways)
        specs = {name: self.specs[name] for name in names if name in ways}
        if len(specs) < 2:
            return None, f"no joint score: there is no law for any two of {', '.join(ways)}"
        try:
            found = JointScores(self.laws, specs, ways, session, template)
        except StoreError as error:
            return None, f"no joint score: {error}"
        fewer = f"the joint score is of {', '.join(specs)}: no law knows more of them together"
        return found, fewer if len(specs) < len(ways) else ""

    def _scores(
        self, ways: Mapping[str, Similarity], plan: Plan, test: int, template: int
    ) -> tuple[dict[str, FloatArray], dict[str, BoolArray]]:
        """Scores by feature and whether each trial has a frame of it, in the order of shifts."""
        mated = plan.candidates[plan.mated]
        sliced = {name: way.by_slice for name, way in ways.items()}
        whole = dict.fromkeys(ways, False)
        scores: dict[str, list[FloatArray]] = {name: [] for name in ways}
        heard: dict[str, list[BoolArray]] = {name: [] for name in ways}
        for shift in range(plan.shifts):
            templates = plan.windows(plan.template, plan.candidates, shift, template, sliced)
            tests = plan.windows(plan.test, mated, shift, test, whole)
            for name, way in ways.items():
                scores[name].append(way.score_each(way.prepare(templates[name]), tests[name]))
                heard[name].append(np.any(tests[name], axis=1))
        return (
            {name: np.concatenate(each) for name, each in scores.items()},
            {name: np.concatenate(each) for name, each in heard.items()},
        )
