"""Scores of a corpus against itself or enrolled speakers, at every length (SRD equation 6)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from types import MappingProxyType

import numpy as np

from monitor.corpus.folders import find
from monitor.corpus.recordings import Corpus
from monitor.corpus.tables import table_of
from monitor.errors import CorpusError, StoreError, UsageError
from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup, superseded
from monitor.kinds import FeatureSpec
from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.evaluation.input.files import Rows
from monitor.lab.evaluation.input.groups import Attribute, read_attribute
from monitor.lab.evaluation.input.score_file import ScoreCell
from monitor.lab.normalisation import ScoreNormalisation
from monitor.maths.posterior import weighted_evidence
from monitor.maths.scores import Similarity, unit_vectors
from monitor.population.interpolation import LengthModel, at_template
from monitor.population.population import Population
from monitor.population.rank_model import RankModel, RankModels
from monitor.safe_text import spelled
from monitor.sources.registry import provenance_of
from monitor.stream.attacker import Attacker
from monitor.stream.choice import choose_rank_model, group_rows
from monitor.stream.notices import session_of
from monitor.training.grid import Plan, plans
from monitor.training.voices import UNITS_PER_SECOND, SpeakerSpeech, collect, units_of
from monitor.types import AnyArray, BoolArray, FloatArray, IntArray

_USUAL = ("gender", "sex")
_KALDI = "spk2gender"


def groups_of(
    corpus: Path,
    speakers: Collection[str],
    file: Path | None = None,
    column: str | None = None,
    attributes: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> Attribute | None:
    """Find an attribute of the speakers of a corpus; None if unknown and not requested.

    ``attributes`` has the columns of a data set, by column and speaker.
    """
    if file is None and attributes:
        usual = next((name for name in attributes if name.lower() in _USUAL), None)
        values = attributes.get(column or usual or "")
        if values is not None:
            by_speaker = {name: values[name] for name in speakers if name in values}
            return Attribute(corpus.name, column or usual or "", by_speaker)
    table = file or table_of(corpus)
    if file is None and table is not None:
        if table.name.lower() == "wav.scp":
            kaldi_table = table.parent / _KALDI
            table = kaldi_table if kaldi_table.is_file() else None
        elif column is None:
            head = Rows.from_file(table).head
            column = next((name for name in head if name.lower() in _USUAL), None)
            table = table if column else None
    if table is None:
        if column is None:
            return None
        raise UsageError(f"the {column} of speakers in {corpus.name} is unknown: add --groups")
    attribute = read_attribute(table, column)
    values = {spelled(name): value for name, value in attribute.of.items()}
    named = attribute.name or ("gender" if table.name == _KALDI else "group")
    by_speaker = {name: values[name] for name in speakers if name in values}
    return Attribute(attribute.label, named, by_speaker)


@dataclass(frozen=True)
class JointScores:
    """Weighted sum of feature scores, as in `Monitor`, so that both rank alike."""

    features: tuple[str, ...]
    models: Mapping[frozenset[str], tuple[tuple[str, ...], LengthModel]]
    """Features and weights of the model, by the set of features that have frames."""

    def add(
        self, scores: Mapping[str, FloatArray], has_frames: Mapping[str, BoolArray], seconds: float
    ) -> FloatArray:
        """Compute the joint scores from those of each feature, shape (n, N), at T seconds.

        If a trial has no frames of a feature (``has_frames``, shape (n,)), the model of the other
        features is used if there is one.
        """
        joint = np.zeros_like(scores[self.features[0]])
        patterns = np.stack([has_frames[name] for name in self.features], axis=1)
        complete = self.models[frozenset(self.features)]
        for present, rows in group_rows(self.features, patterns):
            features, rank_model = self.models.get(present, complete)
            weights, _ = rank_model.weighing(np.full(rows.size, seconds), resamples=False)
            stack = np.stack([scores[name][rows] for name in features], axis=1)
            joint[rows] = weighted_evidence(stack, weights[:, 0])
        return joint


@dataclass(frozen=True, slots=True)
class CorpusScores:
    """Scores of a corpus by feature, with the speaker of each trial.

    Attributes:
        matrices: one matrix per feature. With several features, ``"joint"`` is the attacker's
            weighted sum. All matrices have the same trials and speakers.
        session: ``"same"`` if a recording was enrolled, otherwise ``"cross"``.
        problems: one line for each exclusion.
    """

    matrices: Mapping[str, ScoreMatrix]
    session: str
    problems: tuple[str, ...]


def score(
    corpus: Corpus | str | PathLike[str],
    population: Population,
    features: Sequence[str] | None = None,
    *,
    seconds: float = 10.0,
    rank_models: RankModels | None = None,
    allow_overlap: bool = False,
    jobs: int = 1,
    setup: FeatureSetup = AS_ENVIRONMENT,
) -> CorpusScores:
    """Score a corpus, cut into trials, against every enrolled speaker, like `Monitor`.

    To evaluate an anonymiser, enrol the speakers from other recordings and score the anonymised
    ones. Each session is cut into consecutive trials of ``seconds`` speech seconds. Shorter
    remainders and speakers who are not enrolled are excluded.

    Args:
        corpus: recordings or frames by speaker and session, or the path of a corpus.
        population: the templates, and the rank models unless ``rank_models`` are given.
        features: names of features; None uses all that have rank models, templates and frames.
        seconds: length T of a trial in speech seconds, a multiple of 0.1.
        rank_models: replacement for the population's rank models.
        allow_overlap: whether to score recordings that were enrolled.
        jobs: number of worker processes; the result does not depend on it.
        setup: source of the features.

    Raises:
        UsageError: if a length or a feature is invalid.
        CorpusError: if no enrolled speaker has enough speech in the corpus.
        OverlapError: if a recording was enrolled and ``allow_overlap`` is false.
        StoreError: if there is no rank model for these features.

    Example::

        scores = score("anonymised/", population, ["f0", "voice"], seconds=10)
        report = evaluate(scores.matrices["voice"])
    """
    units_of(seconds)
    corpus = corpus if isinstance(corpus, Corpus) else find(corpus)
    provenances = (provenance_of(recording.path) for recording in corpus)
    session = session_of(population, provenances, allow_overlap=allow_overlap)
    voices, specs, missing = collect(corpus, features=features, jobs=jobs, setup=setup)
    models = population.rank_models if rank_models is None else rank_models
    chosen = tuple(features or largest(models, specs))
    attacker = Attacker(population, chosen, session=session, rank_models=rank_models)
    trials = stretches(voices, attacker.names, attacker.features, seconds)
    scores = attacker.scores(trials.totals, trials.seconds)
    matrices = {
        name: ScoreMatrix(matrix, trials.target, attacker.names, name, trials.names)
        for name, matrix in scores.items()
    }
    return CorpusScores(matrices, session, (*missing, *trials.problems))


def embed_utterances(
    voices: Sequence[SpeakerSpeech], feature: str
) -> tuple[dict[str, FloatArray], dict[str, str]]:
    """Return the embedding of each session with frames, shape (M,) and length 1, and its speaker.

    Raises CorpusError if no session has frames.
    """
    embeddings, speakers = dict[str, FloatArray](), dict[str, str]()
    for voice in voices:
        for i, session in enumerate(voice.sessions):
            if np.any(total := session[feature].whole()):
                embeddings[voice.session_name(i)] = unit_vectors(total)
                speakers[voice.session_name(i)] = voice.name
    if not embeddings:
        raise CorpusError(f"no utterance has frames of {feature}")
    return embeddings, speakers


def average_by_speaker(
    embeddings: Mapping[str, FloatArray], speakers: Mapping[str, str]
) -> dict[str, FloatArray]:
    """Return the mean embedding of each speaker, with equal weights for all utterances."""
    rows: dict[str, list[FloatArray]] = {}
    for name, embedding in embeddings.items():
        rows.setdefault(speakers[name], []).append(embedding)
    return {name: np.mean(vectors, axis=0) for name, vectors in rows.items()}


@dataclass(frozen=True, slots=True)
class Stretches:
    """Consecutive stretches of speech of enrolled speakers, n trials in all."""

    totals: Mapping[str, AnyArray]  # by feature, shape (n, M)
    target: IntArray  # index of each trial's speaker among those enrolled, shape (n,)
    names: tuple[str, ...]
    sessions: tuple[str, ...]  # recording session of each trial
    start_seconds: FloatArray  # start of each trial in its session, speech seconds, shape (n,)
    problems: tuple[str, ...]
    seconds: FloatArray  # T of each, speech seconds, shape (n,)


def stretches(
    voices: Sequence[SpeakerSpeech],
    enrolled: Sequence[str],
    features: Sequence[str],
    seconds: float | None,
) -> Stretches:
    """Cut each session into stretches of ``seconds`` speech seconds, without the remainder.

    None takes each session as a whole. Raises UsageError if the length is invalid, and CorpusError
    if no enrolled speaker has enough speech.
    """
    fixed = None if seconds is None else units_of(seconds)
    index = {name: i for i, name in enumerate(enrolled)}
    problems: list[str] = []
    totals: dict[str, list[AnyArray]] = {name: [] for name in features}
    trials: list[tuple[int, str, str, int, int]] = []
    for voice in voices:
        if voice.name not in index:
            problems.append(f"{voice.name}: excluded, not among the enrolled speakers compared")
            continue
        before = len(trials)
        for session_number, session in enumerate(voice.sessions):
            units = fixed or max(voice.length(session_number), 1)
            count = voice.length(session_number) // units
            for name, rows in totals.items():
                rows += (
                    [session[name].total(i * units, units) for i in range(count)]
                    if fixed else [session[name].whole()] * count
                )  # fmt: skip
            for i in range(count):
                names_of_trial = (
                    f"{voice.name} {session_number + 1} {i + 1}",
                    voice.session_name(session_number),
                )
                trials.append((index[voice.name], *names_of_trial, i * units, units))
        if len(trials) == before:
            problems.append(
                f"{voice.name}: no trial, with {_longest_seconds(voice):g} s of speech in the "
                f"longest session, less than T={seconds or 1 / UNITS_PER_SECOND:g}"
            )
    if not trials:
        if problems and not any(voice.name in index for voice in voices):
            raise CorpusError(f"no speaker of the corpus is enrolled: {problems[0]}")
        amount = "" if seconds is None else f" {seconds:g} s of"
        raise CorpusError(f"no enrolled speaker has{amount} speech in one session")
    target, names, sessions, starts, lengths = zip(*trials, strict=True)
    return Stretches(
        {name: np.stack(rows) for name, rows in totals.items()},
        np.array(target),
        names,
        sessions,
        np.array(starts) / UNITS_PER_SECOND,
        tuple(problems),
        np.array(lengths) / UNITS_PER_SECOND,
    )


def _longest_seconds(voice: SpeakerSpeech) -> float:
    return max(map(voice.length, range(len(voice.sessions)))) / UNITS_PER_SECOND


def largest(rank_models: RankModels, present: Iterable[str]) -> tuple[str, ...]:
    """Return the largest set of features that has a rank model, or all if none has.

    On a tie, prefer the set without features that another feature supersedes.
    """
    have = set(present)
    sets = [features for features, _ in rank_models.kinds if have >= set(features)]

    def rank_key(names: Sequence[str]) -> tuple[int, int]:
        return len(names), -sum(superseded(name, have) for name in names)

    return max(sets, key=rank_key, default=tuple(present))


# Source: docs/method.md section 4.
_MOST_NAMED = 5
MOST_BYTES = 2 << 30  # maximum size of scores in one file


def select_similarities(specs: Mapping[str, FeatureSpec], scoring: str) -> dict[str, Similarity]:
    """Return the similarity of each feature for average or max scoring, if it has one.

    ``"average"`` uses a kind's default similarity, ``"max"`` the nearest slice of a template.
    """
    if scoring == "average":
        return {n: spec.kind.similarity() for n, spec in specs.items() if spec.kind.similarities}
    return {
        name: similarity
        for name, spec in specs.items()
        for similarity in spec.kind.similarities.values()
        if similarity.by_slice
    }


def name_systems(specs: Mapping[str, FeatureSpec], scorings: Sequence[str]) -> dict[str, str]:
    """Return the feature of each score matrix, by the name of the matrix."""
    return {
        name if scoring == "average" else f"{name}-{scoring}": name
        for scoring in scorings
        for name in select_similarities(specs, scoring)
    }


def find_joint(
    rank_models: RankModels, specs: Mapping[str, FeatureSpec], scoring: str, session: str,
    template_seconds: float,
) -> tuple[JointScores | None, str]:  # fmt: skip
    """Find the model that combines most features, and a caveat for people.

    Return None if a feature lacks this scoring or there is no model.
    """
    ways = select_similarities(specs, scoring)
    if len(ways) < 2 or ways.keys() != select_similarities(specs, "average").keys():
        return None, ""
    modelled = {name: specs[name] for name in largest(rank_models, ways) if name in ways}
    if len(modelled) < 2:
        return None, f"no joint score, because no rank model has two of {', '.join(ways)}"

    def is_compatible(other: RankModel) -> bool:
        pairs = zip(other.features, other.similarities, strict=True)
        return set(other.features) <= modelled.keys() and all(
            ways[name].name == scorer and specs[name].network == other.network(name)
            for name, scorer in pairs
        )

    def at_length(other: RankModel) -> tuple[tuple[str, ...], LengthModel]:
        additive = np.array([ways[name].additive for name in other.features])
        return other.features, at_template(other, template_seconds, additive)

    try:
        complete, session, _ = choose_rank_model(rank_models, tuple(modelled), session)
        if not is_compatible(complete):
            raise StoreError(
                f"the rank model of {'+'.join(complete.features)} has other similarities or "
                "networks. Calibrate one with monitor calibrate CORPUS -o rank_model.npz"
            )
        others = (
            other for other in rank_models if other.session == session and is_compatible(other)
        )
        models = {frozenset(other.features): at_length(other) for other in (*others, complete)}
    except StoreError as error:
        return None, f"no joint score: {error}"
    names = ", ".join(modelled)
    fewer = f"the joint score is of {names}, because no rank model has more of the features"
    return JointScores(complete.features, models), fewer if len(modelled) < len(ways) else ""


def check_size(scores: int) -> None:
    """Raise a UsageError if this number of scores exceeds one file."""
    if 8 * scores > MOST_BYTES:
        raise UsageError(
            f"{8 * scores / 2**30:.1f} GB of scores, more than {MOST_BYTES / 2**30:g} GB: use "
            "fewer --lengths, --template-lengths, trials or --features"
        )


@dataclass(frozen=True)
class ScoreGrid:
    """Scores of a corpus against itself at every T and D.

    Source: SRD equation 6, docs/method.md section 4.
    """

    voices: Sequence[SpeakerSpeech]
    specs: Mapping[str, FeatureSpec]
    rank_models: RankModels
    lengths: Sequence[float]  # T, speech seconds
    template_lengths: Sequence[float]  # D, speech seconds
    sessions: Sequence[str]  # "same", "cross" or both
    scorings: Sequence[str]  # "average", "max" or both
    trials: int  # per speaker and cell
    problems: list[str] = field(default_factory=list)  # filled by `cells`
    normalisation: ScoreNormalisation | None = None

    def cells(self) -> list[tuple[str, float, float, Plan]]:
        """List the session, T, D and window plan of each cell with enough speech."""
        for seconds in (*self.lengths, *self.template_lengths):
            units_of(seconds)
        systems = name_systems(self.specs, self.scorings)
        if not systems:
            raise UsageError(f"{', '.join(self.specs)}: no feature has max scoring")
        cells = [
            (session, self.lengths[t], self.template_lengths[d], plan)
            for session, t, d, plan in plans(
                self.voices, self.lengths, self.template_lengths, self.trials
            )
            if session in self.sessions and plan.mated.size and plan.candidates.size > 1
        ]
        if not cells:
            raise CorpusError(
                f"no speaker has speech for tests of {min(self.lengths):g} s and templates of "
                f"{min(self.template_lengths):g} s ({'/'.join(self.sessions)} session): use "
                "shorter --lengths and --template-lengths"
            )
        for cell in cells:
            self.problems.extend(self._left_out(*cell))
        scores = sum(p.mated.size * p.shifts * p.candidates.size for _, _, _, p in cells)
        normalised = len(self.normalisation.cohort) if self.normalisation else 0
        check_size(scores * (len(systems) + len(self.scorings) + normalised))
        for session, _, template, _ in cells:
            for scoring in self.scorings:
                _, reason = find_joint(self.rank_models, self.specs, scoring, session, template)
                if reason and reason not in self.problems:
                    self.problems.append(reason)
        return cells

    def _left_out(self, session: str, test: float, template: float, plan: Plan) -> list[str]:
        """Return one line for the speakers without a template in a cell, and one without trials."""
        tested = set(plan.candidates[plan.mated].tolist())
        needed = template if session == "cross" else test + template
        reasons = {
            f"excluded, with less than {needed:g} s of speech in the longest session": [
                f"{voice.name} ({_longest_seconds(voice):g} s)"
                for i, voice in enumerate(self.voices)
                if i not in plan.candidates
            ],
            f"impostors only, without a second session of {test:g} s for a trial": [
                self.voices[i].name for i in plan.candidates.tolist() if i not in tested
            ],
        }
        return [
            f"T={test:g} D={template:g} {session}, {reason}: {', '.join(names[:_MOST_NAMED])}"
            + f" and {len(names) - _MOST_NAMED} more" * (len(names) > _MOST_NAMED)
            for reason, names in reasons.items()
            if names
        ]

    def score(self, session: str, test: float, template: float, plan: Plan) -> ScoreCell:
        """Score every trial of one of the `cells`, grouped by speaker."""
        units = units_of(test), units_of(template)
        mated = plan.candidates[plan.mated]
        order = np.argsort(np.tile(plan.mated, plan.shifts), kind="stable")
        target = np.tile(plan.mated, plan.shifts)[order]
        speakers = tuple(self.voices[i].name for i in plan.candidates)
        scores_by_system: dict[str, FloatArray] = {}
        weighed: tuple[str, ...] = ()
        for scoring in self.scorings:
            ways = select_similarities(self.specs, scoring)
            if not ways:
                continue
            scores, has_frames = self._scores(ways, plan, *units)
            systems = dict(zip(ways, name_systems(self.specs, (scoring,)), strict=True))
            scores_by_system |= {
                systems.get(name, name): matrix[order] for name, matrix in scores.items()
            }
            joint, _ = find_joint(self.rank_models, self.specs, scoring, session, template)
            if joint is not None:
                weighed = joint.features
                name = "joint" if scoring == "average" else f"joint-{scoring}"
                scores_by_system[name] = joint.add(scores, has_frames, test)[order]
        placed = [plan.locate_session(int(i), shift) for shift in range(plan.shifts) for i in mated]
        who = np.tile(mated, plan.shifts)
        names = tuple(f"{self.voices[who[i]].name} {i // mated.size + 1}" for i in order.tolist())
        return ScoreCell(
            session,
            test,
            template,
            {
                name: ScoreMatrix(matrix, target, speakers, name, names)
                for name, matrix in scores_by_system.items()
            },
            [self.voices[who[i]].session_name(placed[i][0]) for i in order.tolist()],
            np.array([placed[i][1] for i in order.tolist()]) / UNITS_PER_SECOND,
            weighed,
        )

    def _scores(
        self, ways: Mapping[str, Similarity], plan: Plan, test: int, template: int
    ) -> tuple[dict[str, FloatArray], dict[str, BoolArray]]:
        """Compute scores, and which trials have frames, by feature, in the order of shifts."""
        mated = plan.candidates[plan.mated]
        sliced = {name: way.by_slice for name, way in ways.items()}
        scores = defaultdict[str, list[FloatArray]](list)
        has_frames: dict[str, list[BoolArray]] = {name: [] for name in ways}
        for shift in range(plan.shifts):
            templates = plan.windows(plan.template, plan.candidates, shift, template, sliced)
            tests = plan.tests(plan.test, mated, shift, test, ways)
            for name, way in ways.items():
                scores[name].append(way.score_each(way.prepare(templates[name]), tests[name]))
                has_frames[name].append(np.any(tests[name], axis=1))
                normalisation = self.normalisation
                if normalisation and name in normalisation.cohort and not way.by_slice:
                    normalised = normalisation.score(name, tests[name], templates[name], way)
                    scores[normalisation.name_system(name)].append(normalised)
        return (
            {name: np.concatenate(rows) for name, rows in scores.items()},
            {name: np.concatenate(rows) for name, rows in has_frames.items()},
        )


@dataclass(frozen=True)
class EnrolledGrid:
    """Scores of a corpus at every T and D against templates enrolled from other speech."""

    voices: Sequence[SpeakerSpeech]
    population: Population
    features: Sequence[str]
    rank_models: RankModels
    lengths: Sequence[float | None]  # T, speech seconds; None for one trial per session
    template_lengths: Sequence[float | None]  # D; None for the length that all templates have
    session: str  # "cross" or "same"
    scorings: Sequence[str]  # "average", "max" or both; the joint score is the rank model's
    problems: list[str] = field(default_factory=list)  # filled by `cells`
    normalisation: ScoreNormalisation | None = None

    def cells(self) -> list[tuple[str, float, float, tuple[Attacker, Stretches]]]:
        """List the session, T, D, attacker and trials of each cell with enough speech."""
        cells = []
        problems: list[str] = []
        for template in self.template_lengths:
            attacker = Attacker(
                self.population,
                self.features,
                session=self.session,
                rank_models=self.rank_models,
                template_seconds=template,
            )
            compared = [voice for voice in self.voices if voice.name in attacker.names]
            others = (voice.name for voice in self.voices if voice.name not in attacker.names)
            problems += (self._explain_missing(name, attacker) for name in others)
            if not compared:
                raise CorpusError(f"no speaker of the corpus has a template: {problems[0]}")
            for seconds in self.lengths:
                try:
                    trials = stretches(compared, attacker.names, attacker.features, seconds)
                except CorpusError as error:
                    problems.append(str(error))
                    continue
                problems += trials.problems
                test = float(np.median(trials.seconds)) if seconds is None else seconds
                lengths = test, attacker.scoring.seconds
                cells.append((self.session, *lengths, (attacker, trials)))
        if not cells:
            raise CorpusError(problems[-1])
        systems = name_systems(self.population.specs, self.scorings)
        systems = {system: name for system, name in systems.items() if name in self.features}
        if not systems:
            raise UsageError(f"{', '.join(self.features)}: no feature has max scoring")
        scores = sum(len(trials.target) * attacker.speakers for *_, (attacker, trials) in cells)
        normalised = len(self.normalisation.cohort) if self.normalisation else 0
        check_size(scores * (len(systems) + 1 + normalised))
        self.problems.extend(dict.fromkeys(problems))
        return cells

    def _explain_missing(self, name: str, attacker: Attacker) -> str:
        if name not in self.population.names:
            return f"{name}: excluded, not enrolled"
        have = self.population.template_seconds[self.population.index(name)]
        return (
            f"{name}: excluded, with {have:g} s enrolled and {attacker.scoring.seconds:g} s needed "
            f"(enrol more, or use --template-lengths {have:g})"
        )

    def score(
        self, session: str, test: float, template: float, parts: tuple[Attacker, Stretches]
    ) -> ScoreCell:
        """Score every trial of one of the `cells`."""
        attacker, trials = parts
        specs = {name: self.population.specs[name] for name in attacker.features}
        joint_scores = attacker.scores(trials.totals, trials.seconds)
        scorers = self.population.scorers(attacker.rank_model)
        scores_by_system: dict[str, FloatArray] = {}
        for scoring in self.scorings:
            ways = select_similarities(specs, scoring)
            for system, name in name_systems(specs, (scoring,)).items():
                way = ways[name]
                if way.by_slice == scorers[name].by_slice:
                    scores_by_system[system] = joint_scores[name]
                    continue
                templates = self.population.prepared(name, attacker.scoring, way)
                scores_by_system[system] = way.score_each(templates, trials.totals[name])
        if self.normalisation is not None:
            for name in self.normalisation.cohort.keys() & specs.keys():
                templates = self.population.templates(name, attacker.scoring)
                scores_by_system[self.normalisation.name_system(name)] = self.normalisation.score(
                    name, trials.totals[name], templates, specs[name].kind.similarity()
                )
        if len(specs) > 1:
            scores_by_system["joint"] = joint_scores["joint"]
        matrices = {
            name: ScoreMatrix(matrix, trials.target, attacker.names, name, trials.names)
            for name, matrix in scores_by_system.items()
        }
        weighed = attacker.features if "joint" in scores_by_system else ()
        return ScoreCell(
            session, test, template, matrices, trials.sessions, trials.start_seconds, weighed
        )
