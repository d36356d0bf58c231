"""A test of anonymisers with readers, a background, every method and every attacker."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from monitor.anonymisers.filters import Utterance
from monitor.anonymisers.registry import make
from monitor.corpus.folders import find, find_others
from monitor.corpus.recordings import Corpus
from monitor.datasets.rows import AS_STATED, Columns
from monitor.errors import CalibrationError, CorpusError, SourceError, UsageError
from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup, caveats, defaults, takes
from monitor.features.registry import make as make_features
from monitor.files import make_folder, writing
from monitor.jobs import Jobs, in_order, one_thread, threads_here
from monitor.kinds import FeatureSpec
from monitor.lab.adapting import check_torch
from monitor.lab.adapting.training import TrainingPlan
from monitor.lab.attacks.attackers import (
    ATTACKERS,
    NETWORKS,
    AttackContext,
    Background,
    ThreatModel,
    check_background,
    check_readers,
    get_attacker,
)
from monitor.lab.attacks.attributes import (
    AttributeRow,
    AttributeTest,
    check_attributes,
    judge_attributes,
    prepare_attributes,
)
from monitor.lab.attacks.challenge import CHALLENGE, choose_embedding, choose_listed
from monitor.lab.attacks.control import CONTROL, measure_control
from monitor.lab.attacks.readers import PARTS, Amounts, Piece, Reader, Readers, choose_readers
from monitor.lab.attacks.results import (
    FIGURES,
    AttackResults,
    AttackRow,
    Settings,
    describe_exclusions,
    method_name,
)
from monitor.lab.attacks.sides import Side, choose_normalisation, collect_sides, describe_choice
from monitor.lab.attacks.speech import CLEAR, PieceExtractor, extract_protected, join_speech
from monitor.lab.evaluation.listed import ListedTrials
from monitor.lab.report.model import Figure
from monitor.lab.result_cache import ResultCache
from monitor.lab.scoring import JointScores, find_joint, select_similarities
from monitor.lab.utility import FAILURE, MEASURES, PROGRAM, get_measure
from monitor.maths.statistics import REPLICATES
from monitor.phrases import plural
from monitor.population.population import Population
from monitor.protocols import Feature
from monitor.sources.base import hash_of_whole
from monitor.training.calibrating import FEWEST_SPEAKERS, CalibrationSettings, calibrate
from monitor.training.voices import SpeakerSpeech
from monitor.types import BoolArray, FloatArray

_ANY_RATE = 16_000
_MOST_READERS = 30
"""Background readers for models, alternating between corpora; more do not improve the weights."""
_WORDS_SECONDS = 10.0  # of a trial for checking the recogniser
_LEARNING_TRIALS = 2  # of each background reader


@dataclass(frozen=True)
class AttackConfig:
    """Settings of a test."""

    methods: tuple[str, ...] = (CLEAR,)  # of protection; ``none`` is always tried first
    attackers: tuple[str, ...] = ("ignorant", "lazy-informed")  # empty for all that can run here
    features: tuple[str, ...] = ()  # empty for the installed ones, and ``f0_robust``
    amounts: Amounts = field(default_factory=Amounts)
    segments: tuple[int, ...] = (1, 3, 30)  # L, in the table of enrolments
    session: str | None = None  # "cross" or "same"; None for either
    seed: int = 0
    jobs: Jobs = 1
    replicates: int = REPLICATES  # resampled sets of readers, for the intervals
    training: TrainingPlan = field(default_factory=TrainingPlan)
    attributes: tuple[str, ...] = ()  # to infer too, such as ``gender`` or ``age<16``
    attribute_table: Path | None = None  # table of attributes; None for the corpora's manifests
    setup: FeatureSetup = AS_ENVIRONMENT
    columns: Columns = AS_STATED  # column names in data sets
    asr_command: str = ""  # speech recogniser for the word error: WAV on stdin, text on stdout
    voiceprivacy: bool = False  # attack the lists of trials of a VoicePrivacy folder (`challenge`)


@dataclass(frozen=True)
class Preparation:
    """Methods (each once, ``none`` first), attackers and readers of a test."""

    corpus: str
    config: AttackConfig
    context: AttackContext
    attackers: tuple[ThreatModel, ...]
    attribute_test: AttributeTest | None
    problems: tuple[str, ...]
    listed: ListedTrials | None = None

    @property
    def seconds(self) -> float:
        """Seconds of audio to extract or read from the cache, for the requested features."""
        return sum(request.piece.seconds for request in self.context.list_requests(self.tried))

    @property
    def tried(self) -> dict[str, list[ThreatModel]]:
        """Attackers worth trying, by method."""
        return {method: select_attackers(self.attackers, method) for method in self.config.methods}

    def describe(self, methods: Collection[str]) -> Settings:
        """Return the settings of the test, with those of its methods that worked."""
        config, context = self.config, self.context
        readers = context.background.readers if context.background else None
        return Settings(
            self.corpus,
            tuple(method for method in config.methods if method in methods),
            tuple(attacker.name for attacker in self.attackers),
            context.features,
            config.amounts.seconds,
            config.amounts.template_seconds,
            config.amounts.least_segments,
            config.segments,
            context.judged.session,
            len(context.judged),
            len(readers) if readers else 0,
            config.seed,
        )


def prepare(
    corpus: Path,
    config: AttackConfig,
    *,
    folder: Path,
    background: Sequence[Path] = (),
    fresh: bool = False,
    progress: Callable[[str], object] = lambda _: None,
) -> Preparation:
    """Choose readers, and check that the test can run.

    The private ``folder`` stores results from which an interrupted test resumes; ``fresh`` clears
    it. ``progress`` is called with the name of each reader after the search for their speech.

    Raises:
        UsageError: if a method, an attacker or a feature is invalid.
        CorpusError: if there is too little speech.
        SourceError: if a program does not work.
        StoreError: if the folder cannot be written.
    """
    chosen = [get_attacker(name) for name in dict.fromkeys(config.attackers)]
    config = replace(config, methods=tuple(dict.fromkeys((CLEAR, *config.methods))))
    features = _choose_features(config)
    _check_config(config, chosen, features, has_background=bool(background))
    recordings = find(corpus, columns=config.columns)
    check_attributes(recordings, corpus, background, config.attributes, config.attribute_table)
    listed = ListedTrials.from_folder(corpus) if config.voiceprivacy else None
    judged = (
        choose_listed(listed, recordings) if listed is not None
        else choose_readers(recordings, corpus, config.amounts, session=config.session,
                            jobs=config.jobs, progress=progress)
    )  # fmt: skip
    others = _prepare_background(background, judged, config, progress) if background else None
    attackers, unable = _select_able(
        chosen, others, make_features(features, config.setup), CHALLENGE if listed else ATTACKERS
    )
    problems = (*judged.problems, *(others.problems if others else ()), *unable)
    if listed is not None and config.asr_command and not listed.texts:
        raise UsageError(f"{corpus.name} has no text for the word error: leave out --asr-command")
    _check_programs(config, judged)
    attribute_test = None
    if config.attributes:
        attribute_test = prepare_attributes(
            recordings, corpus, others.corpora if others else (), config.attributes,
            config.amounts, config.attribute_table,
        )  # fmt: skip
    with writing(folder):  # private, after all checks
        make_folder(folder)
    if fresh:
        ResultCache(folder / NETWORKS, fresh=True)
    cache = ResultCache(folder / "heard", fresh=fresh)
    usual = () if config.voiceprivacy else MEASURES  # the challenge measures the word error only
    program = [PROGRAM + config.asr_command] * bool(config.asr_command)
    context = AttackContext(
        judged, others, features, (*usual, *program), config.amounts,
        PieceExtractor(cache, config.jobs, config.setup), config.seed, folder, config.training,
    )  # fmt: skip
    return Preparation(
        corpus.resolve().name, config, context, attackers, attribute_test, problems, listed
    )


def _choose_features(config: AttackConfig) -> tuple[str, ...]:
    if config.voiceprivacy:
        return choose_embedding(config.features, config.setup)
    if config.features:
        return config.features
    first, *more = defaults(setup=config.setup)
    return first, "f0_robust", *more  # robust to filters


def _check_programs(config: AttackConfig, judged: Readers) -> None:
    """Run each program on seconds of speech, before hours of work."""
    piece = judged.pieces("trials")[0]

    def shorten(seconds: float) -> Piece:
        return replace(piece, end_seconds=min(piece.end_seconds, piece.start_seconds + seconds))

    for method in config.methods:
        if method.startswith("command:"):
            extract_protected(shorten(1.0), method, config.seed, [])
    if config.asr_command:
        name = PROGRAM + config.asr_command
        counts = extract_protected(shorten(_WORDS_SECONDS), CLEAR, 0, [], [name]).measured[name]
        if FAILURE in counts:
            raise SourceError(f"{piece.name}: {counts[FAILURE]}")


def _check_config(
    config: AttackConfig, chosen: Sequence[ThreatModel], features: Sequence[str],
    *, has_background: bool,
) -> None:  # fmt: skip
    """Raise UsageError for invalid settings, before anything is extracted."""
    for method in config.methods:
        make(method, Utterance(_ANY_RATE, "name", "speaker"))
    others = [a.name for a in chosen if a.name not in CHALLENGE]
    if config.voiceprivacy and others:
        raise UsageError(
            f"--voiceprivacy has no table for {others[0]}: use {', '.join(CHALLENGE)}, or leave "
            "out --voiceprivacy"
        )
    missing = [a.name for a in chosen if a.needs_background and not has_background]
    if missing:
        raise UsageError(f"{missing[0]} needs speech of background speakers: add --background")
    if any(attacker.trains for attacker in chosen):
        check_torch()
    extractors = make_features(features, config.setup)
    if config.attributes and not any(feature.spec.kind.pointed for feature in extractors):
        raise UsageError("attributes need an embedding: add voice to --features")


def _prepare_background(
    folders: Sequence[Path],
    judged: Readers,
    config: AttackConfig,
    progress: Callable[[str], object],
) -> Background:
    """Choose background readers, excluding the judged ones by name and by recording."""
    names = {reader.name for reader in judged.everybody}
    hashes = {hash_of_whole(piece.path) for piece in judged.pieces(*PARTS)}
    problems: list[str] = []
    corpora: list[tuple[Corpus, Path]] = []
    readers_by_corpus: list[tuple[Reader, ...]] = []
    count = config.amounts.least_segments
    amounts = Amounts(config.amounts.seconds, _LEARNING_TRIALS, count, count)
    for folder in folders:
        corpus = find_others(folder, config.columns)
        shared = {
            r.speaker for r in corpus if r.speaker in names or hash_of_whole(r.path) in hashes
        }
        if shared:
            problems.append(
                f"{folder.name}: {plural(len(shared), 'background reader')} excluded because they "
                f"are judged, or in another background ({', '.join(sorted(shared)[:5])})"
            )
        recordings = tuple(r for r in corpus.recordings if r.speaker not in shared)
        corpora.append((replace(corpus, recordings=recordings), folder))
        names.update(corpora[-1][0].speakers)
        try:
            chosen = choose_readers(
                corpora[-1][0], folder, amounts, jobs=config.jobs, progress=progress
            )
            readers_by_corpus.append(chosen.everybody)
        except CorpusError as error:
            problems.append(f"{folder.name}: {error}")
    in_turn = [
        reader
        for readers_in_turn in zip_longest(*readers_by_corpus)
        for reader in readers_in_turn
        if reader is not None
    ]
    readers = Readers(tuple(in_turn[:_MOST_READERS]), "same") if in_turn else None
    return Background(tuple(corpora), readers, tuple(problems))


def _select_able(
    chosen: Sequence[ThreatModel], background: Background | None, features: Sequence[Feature],
    possible: Collection[str],
) -> tuple[tuple[ThreatModel, ...], list[str]]:  # fmt: skip
    """Return the requested attackers, or all that can run, and the reasons why others cannot.

    Attackers with several draws are slow, and run only if requested.
    """
    has_embedding = any(feature.spec.kind.pointed for feature in features)
    able, unable = [], []
    available = [ATTACKERS[name] for name in possible if ATTACKERS[name].draws == 1]
    for attacker in chosen or available:
        if attacker.needs_background and background is None:
            continue
        if attacker.only_embeddings and not has_embedding:
            if chosen:
                raise UsageError(f"{attacker.name} compares embeddings: add voice to --features")
            continue
        try:
            if attacker.fits is not None and background is not None:
                check_readers(background)
            if attacker.trains and background is not None:
                check_background(background)
        except UsageError as error:
            if chosen:
                raise
            unable.append(f"{attacker.name} was not tried: {error}")
            continue
        able.append(attacker)
    return tuple(able), unable


def select_attackers(attackers: Sequence[ThreatModel], method: str) -> list[ThreatModel]:
    """Return the attackers that can have different results on a method.

    On clear speech, knowledge of the method does not help an attacker. Own features do, and so does
    a fitted map, because it also centres embeddings.
    """
    if method != CLEAR:
        return list(attackers)
    equals = [a for a in attackers if a.features is None and not a.only_embeddings]
    own_features = [a for a in attackers if a.features is not None and not a.trains]
    fitted = [a for a in attackers if a.fits is not None]
    first = equals[:1] if equals or own_features else [ATTACKERS["ignorant"]]
    return [*first, *own_features, *fitted]


def attack(
    corpus: str | PathLike[str],
    methods: Sequence[str],
    *,
    background: Sequence[str | PathLike[str]] = (),
    folder: str | PathLike[str] | None = None,
    config: AttackConfig = AttackConfig(),
) -> AttackResults:
    """Protect a corpus by each method, and attack the result with every attacker.

    Args:
        corpus: path of clear recordings by reader and session. The test applies the methods itself.
        methods: anonymisers, such as ``"mcadams:0.8"``.
        background: paths of corpora for attackers to train on.
        folder: private folder for resuming an interrupted test; None stores nothing.
        config: attackers, features, amounts of speech and other settings.

    Raises:
        MonitorError: as in `prepare` and `try_methods`.

    Example::

        results = attack("voices/", ["mcadams:0.8"], background=["others/"])
        print(results.strongest("mcadams:0.8").bits)
    """
    config = replace(config, methods=tuple(methods))
    with TemporaryDirectory() if folder is None else nullcontext(folder) as used_folder:
        others = [Path(path) for path in background]
        return try_methods(
            prepare(Path(corpus), config, folder=Path(used_folder), background=others)
        )


def try_methods(
    prepared: Preparation,
    *,
    on_progress: Callable[[str], object] = lambda _: None,
    on_seconds: Callable[[float], None] = lambda _: None,
) -> AttackResults:
    """Try every attacker on every method, with reports of each step and of extracted seconds.

    Raises:
        CorpusError: if no method could be tried.
    """
    config = prepared.config

    def report(activity: str) -> None:
        on_progress(activity)
        on_seconds(0.0)

    notes: list[str] = []
    extractor = prepared.context.extractor
    context = replace(prepared.context, on_progress=report, notes=notes, clear_bits={})
    rows: list[AttackRow] = []
    measured: dict[str, Sequence[Figure]] = {}
    attributes: dict[str, list[AttributeRow]] = {}
    problems = list(prepared.problems)
    report("all methods")
    replace(extractor, progress=on_seconds).prefetch(
        context.list_requests(prepared.tried), context.features
    )
    for method, attackers in prepared.tried.items():
        try:
            for attacker in attackers:
                on_progress(f"{method}, {attacker.name}")
                rows += attack_method(
                    context, method, attacker, config.segments, replicates=config.replicates
                )
                if prepared.attribute_test is not None and not attacker.only_embeddings:
                    judged = judge_attributes(
                        context, method, attacker, prepared.attribute_test,
                        replicates=config.replicates,
                    )  # fmt: skip
                    for name, row in judged:
                        attributes.setdefault(name, []).append(row)
            measured[method] = measure_utility(context, method)
        except CorpusError as error:
            problems.append(f"{method_name(method)}: {error}")
    problems += [f"excluded: {reason}" for reason in dict.fromkeys(extractor.missing.values())]
    methods = {row.method for row in rows}
    if methods <= {CLEAR} != set(config.methods):
        raise CorpusError(f"no method could be tried: {'; '.join(problems[-3:])}")
    notes += caveats(context.features)
    if "words" in map(takes, context.features):
        notes.append("no method changes the words: anonymisers only change the sound")
    return AttackResults(
        prepared.describe(methods),
        tuple(rows),
        {method: tuple(figures) for method, figures in measured.items() if figures},
        attributes,
        notes=tuple(dict.fromkeys(notes)),
        clear_bits=dict(context.clear_bits),
        problems=tuple(problems),
    )


def measure_utility(context: AttackContext, method: str) -> list[Figure]:
    """Measure utility on the published trials."""
    if not context.measures:
        return []
    trials = context.extract_trials(method, context.features)
    figures: list[Figure] = []
    for name in context.measures:
        measurements = {
            reader.name: [trials[p].measured[name] for p in reader.trials if p in trials]
            for reader in context.judged.everybody
        }
        figures += get_measure(name).figures(measurements)
        failures = [
            f"{p.name} ({trials[p].measured[name][FAILURE]})"
            for p in context.judged.pieces("trials")
            if p in trials and FAILURE in trials[p].measured[name]
        ]
        if failures:
            context.notes.append(describe_exclusions(method, failures))
    return figures


def attack_method(
    context: AttackContext,
    method: str,
    attacker: ThreatModel,
    counts: Sequence[int],
    *,
    replicates: int = REPLICATES,
) -> Iterator[AttackRow]:
    """Attack one method; yield rows by feature, number of enrolled segments and scoring.

    The counts are L, further numbers of segments per template. There is no row for a count that no
    reader reaches.
    """
    features, specs, names = _choose_specs(context, attacker, method)
    sides, held_back = collect_sides(context, attacker, method, features, specs)
    speech, *outside = (side.speech for side in sides)
    main = context.amounts.least_segments
    normalised = _choose_normalisations(context, attacker, method, held_back, specs)

    def measure(
        feature: str, scores: Sequence[FloatArray], count: int, scoring: str, silent: BoolArray,
        rank_model: str = "",
    ) -> AttackRow:  # fmt: skip
        figures = dict(speech.measure(scores[0], feature, replicates, context.seed))
        if outside:
            outsiders = np.concatenate([side.target for side in outside])
            counts = np.bincount(speech.target)
            figures[CONTROL] = measure_control(
                np.concatenate(scores[1:]), outsiders, counts, context.seed
            )
        complete = sum(segments >= count for segments in speech.counts)
        return AttackRow(
            method, attacker.name, feature, count, scoring,
            {key: figures[key] for key in FIGURES if key in figures},
            len(speech.names), len(speech.target), complete, int(silent.sum()), rank_model,
        )  # fmt: skip

    def score() -> Iterator[tuple[Any, ...]]:
        for count, scoring in list_enrolments(main, counts, max(speech.counts)):
            ways = select_similarities(specs, scoring)
            scores = [{name: side.speech.score(name, way, count) for name, way in ways.items()}
                      for side in sides]  # fmt: skip
            for name in ways:
                silent = ~speech.has_frames[name]
                yield names[name], [of[name] for of in scores], count, scoring, silent
            for name, way in normalised.items() if scoring == "average" else ():
                relative = [side.score(name, ways[name], count, way) for side in sides]
                silent = ~speech.has_frames[name]
                yield f"{names[name]}-{way}norm", relative, count, scoring, silent
            if len(specs) > 1 and (count, scoring) == (main, "average"):
                joint, origin = _choose_weighting(context, attacker, method, features, specs)
                if joint is not None:
                    joined = [joint.add(of, side.speech.has_frames, context.amounts.seconds)
                              for of, side in zip(scores, sides, strict=True)]  # fmt: skip
                    silent = ~np.any([speech.has_frames[name] for name in joint.features], 0)
                    yield "joint", joined, count, scoring, silent, origin

    threads = threads_here(context.extractor.jobs)
    with one_thread(), ThreadPoolExecutor(threads) as pool:
        yield from in_order(
            score(), lambda task: pool.submit(measure, *task), lambda row, _: row.result(),
            lambda: threads, None,
        )  # fmt: skip


def _choose_specs(
    context: AttackContext, attacker: ThreatModel, method: str
) -> tuple[tuple[str | Feature, ...], dict[str, FeatureSpec], dict[str, str]]:
    """Return the attacker's features, the specs to score by name, and the names in rows."""
    features_by_name = context.get_features(attacker, method)
    features = tuple(features_by_name.values())
    extractors = make_features(features, context.extractor.setup)
    specs = {feature.spec.name: feature.spec for feature in extractors}
    names = dict(zip(specs, features_by_name, strict=True))
    if attacker.only_embeddings:
        specs = {name: spec for name, spec in specs.items() if spec.kind.pointed}
    return features, specs, names


def _choose_normalisations(
    context: AttackContext, attacker: ThreatModel, method: str, held_back: Sequence[Side],
    specs: Mapping[str, FeatureSpec],
) -> dict[str, str]:  # fmt: skip
    """Return the normalisation of each embedding for which one wins on held-back readers."""
    chosen: dict[str, str] = {}
    readers = sum(len(side.speech.names) for side in held_back)
    for name, spec in specs.items():
        if readers and spec.kind.pointed:
            way = choose_normalisation(
                held_back, name, spec.kind.similarity(), context.amounts.least_segments
            )
            context.notes.append(
                f"{method_name(method)}: {describe_choice(attacker.name, name, way, readers)}"
            )
            chosen |= {name: way} if way else {}
    return chosen


def list_enrolments(main: int, counts: Sequence[int], maximum: int) -> list[tuple[int, str]]:
    """List numbers of enrolled segments, each with its scorings."""
    return [
        (count, scoring)
        for count in sorted({main, *counts})
        if count <= maximum
        for scoring in (("average", "max") if count > 1 else ("average",))
    ]


def _choose_weighting(
    context: AttackContext, attacker: ThreatModel, method: str,
    features: Sequence[str | Feature], specs: Mapping[str, FeatureSpec],
) -> tuple[JointScores | None, str]:  # fmt: skip
    """Return an attacker's joint scorer, or None, and the origin of its rank model."""
    voices = _collect_background(context, attacker, method, features, specs)
    seconds, template_seconds = context.amounts.seconds, context.amounts.template_seconds
    rank_models, reason = None, "there is no background"
    if len(voices) >= FEWEST_SPEAKERS:
        settings = CalibrationSettings(
            lengths=[seconds],
            template_lengths=[template_seconds],
            replicates=2,  # intervals come from the judged readers
            seed=context.seed,
            prior=None,  # the shipped rank models are of clear speech
            cohort=None,
        )
        try:
            rank_models = calibrate(voices, specs, settings).rank_models
        except CalibrationError as error:
            reason = str(error)
    elif context.background is not None:
        reason = f"{len(voices)} background readers have enough speech, but a rank model needs ten"
    if rank_models is None:
        rank_models = Population.reference().rank_models
        origin = f"shipped, of clear speech ({reason})"
    else:
        condition = method_name(method) if attacker.protects else "clear"
        origin = f"fitted to {len(voices)} background speakers, {condition} speech"
    joint, fewer = find_joint(rank_models, specs, "average", "cross", template_seconds)
    if joint is not None and fewer:
        origin = f"{origin}, with its only features {', '.join(joint.features)}"
    return joint, origin


def _collect_background(
    context: AttackContext, attacker: ThreatModel, method: str,
    features: Sequence[str | Feature], specs: Mapping[str, FeatureSpec],
) -> list[SpeakerSpeech]:  # fmt: skip
    """Extract background readers, with enrolment and trials as separately protected sessions."""
    readers = context.get_calibration_readers(attacker)
    if readers is None:
        return []
    extracted = context.extract_own(readers.pieces(*PARTS), attacker, method, features)
    voices = []
    for reader in readers.everybody:
        enrolment = [piece for session in reader.enrolment for piece in session]
        enrolled = join_speech(enrolment, extracted, specs)
        trials = join_speech(reader.trials, extracted, specs)
        if enrolled is not None and trials is not None:
            voices.append(SpeakerSpeech(reader.name, (enrolled, trials)))
    return voices
