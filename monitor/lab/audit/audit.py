"""What an audit found, of a corpus, of recorded runs or of an attack's results, and its sentences.

Three ways to learn who or what somebody is are told apart, as the Article 29 Working Party did in
opinion 05/2014 (WP216): singling out, linkability, inference. An audit says what attackers who were
tried learn, and who was not tried; never whether data are anonymous, which is a question of law.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from monitor import crowds
from monitor.corpus.finding import read_speaker_attributes
from monitor.corpus.recordings import Corpus, Recording
from monitor.errors import CorpusError, UsageError
from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup, defaults, superseded
from monitor.features.registry import caveats as feature_caveats
from monitor.jobs import Jobs
from monitor.kinds import FeatureSpec
from monitor.lab.attacks.attackers import ATTACKERS, CLEAR
from monitor.lab.attacks.results import BITS, AttackResults, AttackRow, caveats, method_name
from monitor.lab.attributes import Excerpts, attribute, judged, log_odds
from monitor.lab.audit.exposure import (
    EXPOSED,
    HEADLINE_PEOPLE,
    LEAST_PEOPLE,
    LENGTHS,
    MOST_TESTED,
    TRIALS,
    EnrolledPart,
    Exposures,
    LengthRow,
    Retention,
    corpus_exposures,
    enrolled_part,
    length_rows,
    other_voices,
    retention,
    run_exposures,
)
from monitor.lab.evaluation.evaluating import evaluate
from monitor.lab.evaluation.family import Figure
from monitor.lab.evaluation.report.report import format_limits, format_value
from monitor.lab.scoring import ScoreGrid
from monitor.maths.condition import Condition, condition_of, list_mismatches
from monitor.maths.statistics import REPLICATES
from monitor.phrases import length_in_words, plural
from monitor.population.cohort import Cohort
from monitor.population.population import Population, load_rank_models
from monitor.population.rank_model import RankModels
from monitor.training.voices import SpeakerSpeech, collect, units_of

TEST_LENGTHS = (10.0, 60.0)
"""T of the tests of ranks and of links, as far as there is speech."""
TEMPLATE_LENGTHS = (60.0, 30.0, 20.0, 10.0)
"""D that are tried, the longest first."""
CROWDS = (5, 10, 20, 50, 100, 1000, 10_000, 1_000_000)
"""Sizes of crowds that first ranks are told in."""
USUAL_ATTRIBUTES = ("gender", "sex", "accent", "dialect", "native", "l1", "age")
_FAMILIES = ("srd", "among", "linkage", "verification", "anonymity")
_EXCERPTS = 10
_MOST_PAIRED = 200
"""Sessions whose sound is compared with each other."""
_STRONGER = (
    "Stronger networks than those named, and attackers who train on speech of this very product."
)
_UNTRIED = (
    "Listeners who know the person, and people who are good at voices.",
    _STRONGER,
    "What is said: names, places, topics; and the words themselves, unless style is among the "
    "features.",
    "What comes with the audio: file names, times, accounts, devices, background sounds.",
    "Combination with other data about the same people.",
    "Other languages, channels, rooms, illness, emotion and age than these recordings have.",
)


# ---------------------------------------------------------------------------------------- findings


@dataclass(frozen=True, slots=True)
class TestRow:
    """What one attacker learnt in one test.

    Attributes:
        method: of protection; empty where nothing was protected.
        attacker: what it knows, or empty.
        feature: by what it recognises voices; ``"joint"`` by all of them.
        seconds, template_seconds: T and D, speech seconds.
        session: ``"cross"`` or ``"same"``.
        speakers: N, whom each trial was compared with.
        trials, tested: how many trials there are, and of how many speakers.
        figures: by key, as ``monitor evaluate`` calls them.
    """

    method: str
    attacker: str
    feature: str
    seconds: float
    template_seconds: float
    session: str
    speakers: int
    trials: int
    tested: int
    figures: Mapping[str, Figure]

    @property
    def bits(self) -> float:
        """By which attackers are compared."""
        found = self.figures.get(BITS)
        return 0.0 if found is None or found.value is None else found.value


@dataclass(frozen=True, slots=True)
class ConditionRow:
    """One figure of how the sessions sound: its middle, and where four in five lie."""

    name: str
    known: int
    middle: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class SoundsApart:
    """How often two sessions differ in how they sound: by who speaks in them.

    Attributes:
        same, different: share of pairs of sessions of one speaker, and of two; None without pairs.
    """

    same: float | None
    different: float | None


@dataclass(frozen=True)
class Audit:
    """Everything that an audit found.

    Attributes:
        name: of what was tested.
        kind: ``"corpus"``, ``"runs"`` or ``"attack"``.
        facts: what was tested, by what it is of.
        among: M, the crowd that people are singled out of.
        budget: bits.
        exposures: of stretches of speech; None of an attack.
        rows: by length of them, of however few people.
        tests: of ranks and links.
        attributes: by name, rows as `monitor.lab.attacks.attributes.attribute_rows` gives them.
        conditions: how the sessions sound.
        apart: whether speakers sound apart by their recordings alone.
        not_tested: who and what was not tried, a sentence each.
        notes: what a reader has to know.
        problems: what could not be used.
        commands: that give the same figures.
        skipped: files that could not be used, or not whole.
        replicates, seed: of the resamples of speakers behind limits.
    """

    name: str
    kind: str
    facts: Mapping[str, str]
    among: int
    budget: float
    exposures: Exposures | None = None
    rows: tuple[LengthRow, ...] = ()
    tests: tuple[TestRow, ...] = ()
    attributes: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    conditions: tuple[ConditionRow, ...] = ()
    apart: SoundsApart | None = None
    not_tested: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    skipped: int = 0
    replicates: int = REPLICATES
    seed: int = 0

    @property
    def least_people(self) -> int:
        """Of how many people something is said, at least: of all where no more were tested."""
        people = 0 if self.exposures is None else len(self.exposures.speakers)
        return min(LEAST_PEOPLE, people)

    @property
    def kept(self) -> Retention | None:
        """How long speech may be kept; None where no lengths were tested."""
        return retention(self.rows, self.budget, self.least_people) if self.rows else None

    @property
    def shown(self) -> tuple[LengthRow, ...]:
        """Rows of lengths that enough people reached for something to be said of them."""
        return tuple(row for row in self.rows if row.speakers >= self.least_people)

    @property
    def _enough(self) -> Sequence[LengthRow]:
        """Rows of lengths that ten people reach; those shown where no length has so many."""
        return [row for row in self.shown if row.speakers >= HEADLINE_PEOPLE] or self.shown

    @property
    def headline(self) -> LengthRow | None:
        """The length at which most is disclosed on average, by ten people where so many reach it.

        Of longer stretches there are often few, and of other people.
        """
        return max(self._enough, key=lambda row: (row.mean.value or 0.0, row.seconds), default=None)

    @cached_property
    def same_people(self) -> tuple[LengthRow, ...]:
        """Rows by which lengths compare: of those who reach each of them, everybody counted once.

        Up to the longest length that ten people reach, or all that there are of fewer.
        """
        rows = self._enough
        if self.exposures is None or not rows:
            return ()
        found = self.exposures.of_everybody_at([row.seconds for row in rows])
        if len(set(found.owner.tolist())) < self.least_people:
            return ()
        return length_rows(found.by_person(), replicates=self.replicates, seed=self.seed)

    def strongest(self, session: str | None = None, method: str | None = None) -> TestRow | None:
        """The test that tells most, of one kind of session or method where that is asked for."""
        some = [
            row
            for row in self.tests
            if session in (None, row.session) and method in (None, row.method)
        ]
        return max(some, key=lambda row: row.bits, default=None)

    @property
    def methods(self) -> tuple[str, ...]:
        """Of protection, those of tests."""
        return tuple(dict.fromkeys(row.method for row in self.tests))


def hash_of(speaker: str, salt: str = "") -> str:
    """Twelve hexadecimal digits that stand for a speaker's name.

    Whoever has the list of names and the salt can find out whose it is.

    Example:
        >>> hash_of("ann"), hash_of("ann", "x") != hash_of("ann")
        ('49915e0d7d4b', True)
    """
    return hashlib.sha256(f"{salt}{speaker}".encode()).hexdigest()[:12]


# ------------------------------------------------------------------------------------- of a corpus


@dataclass(frozen=True)
class AuditConfig:
    """What is asked for.

    Attributes:
        budget: bits that one person's speech may disclose.
        among: M, the crowd that people are singled out of.
        lengths: T, of stretches.
        template_seconds: D; None for a minute, or what half of the speakers have.
        features: names; None for those that are ready.
        attributes: columns of the speakers' table, ``COLUMN<NUMBER``; None for usual ones.
        attribute_table: that says them; None for that of the corpus.
        rank_model: file of rank models, with their cohort; None for the shipped ones.
        replicates, seed: of the resamples of speakers.
        jobs: processes that listen.
        setup: from where features are made.
    """

    budget: float = 6.0
    among: int = 1_000_000
    lengths: tuple[float, ...] = LENGTHS
    template_seconds: float | None = None
    features: tuple[str, ...] | None = None
    attributes: tuple[str, ...] | None = None
    attribute_table: Path | None = None
    rank_model: Path | None = None
    replicates: int = REPLICATES
    seed: int = 0
    jobs: Jobs = 1
    setup: FeatureSetup = AS_ENVIRONMENT


_USUAL = AuditConfig()


@dataclass(frozen=True)
class HeardCorpus:
    """A corpus that was heard, and what is known of its speakers.

    Attributes:
        place: where it lies.
        voices, specs: as `monitor.training.collect` gives them.
        said: of the speakers, by column of their table.
        rank_models, cohort: by which it is going to be tested.
        learnt_on: names of those whom the rank models were learnt from.
        missing: a line for each file that was skipped or has unusable parts.
    """

    place: Path
    voices: Sequence[SpeakerSpeech]
    specs: Mapping[str, FeatureSpec]
    said: Mapping[str, Mapping[str, str]]
    rank_models: RankModels
    cohort: Cohort | None
    learnt_on: frozenset[str]
    missing: tuple[str, ...]

    @property
    def steps(self) -> int:
        """How often `audit_corpus` calls its ``progress``, at most."""
        return min(len(self.voices), MOST_TESTED) + 2 * len(TEST_LENGTHS)


def hear_corpus(
    corpus: Corpus,
    place: Path,
    config: AuditConfig = _USUAL,
    progress: Callable[[Recording], None] = lambda _: None,
) -> HeardCorpus:
    """Hear recordings of people, by speaker and session, for `audit_corpus`.

    Args:
        corpus: the recordings.
        place: where it lies, for its table of speakers and its name.
        config: what is asked for.
        progress: called after each recording.

    Raises:
        CorpusError: it is of fewer than five people.
        UsageError: an option makes no sense.
        StoreError: the rank models cannot be read.
    """
    _check_people(len(corpus.speakers))
    models = _models(config)  # what cannot be met is refused before the long work
    said = _table(corpus, place, config)
    voices, specs, missing = collect(
        corpus, features=config.features, jobs=config.jobs, setup=config.setup, sounds=True,
        progress=progress,
    )  # fmt: skip
    return HeardCorpus(place, voices, specs, said, *models, missing)


def audit_corpus(
    heard: HeardCorpus,
    config: AuditConfig = _USUAL,
    progress: Callable[[str], object] = lambda _: None,
) -> Audit:
    """Audit recordings of people that were heard.

    Args:
        heard: by `hear_corpus`.
        config: what is asked for, the same.
        progress: called with what was tested: each speaker, and a few tests of all.

    Raises:
        CorpusError: fewer than five speakers say enough.
        UsageError: an option makes no sense.
        StoreError: the rank models do not fit.
    """
    voices, specs, rank_models = heard.voices, heard.specs, heard.rank_models
    _check_people(len(voices))
    shortest = hearing_seconds(specs)
    lengths = tuple(each for each in config.lengths if each >= shortest)
    if not lengths:
        raise UsageError(
            f"nothing is heard of a stretch under {shortest:g} s by {', '.join(specs)}: give "
            "longer --lengths"
        )
    part = chosen_part(voices, specs, config.template_seconds, min(lengths))
    exposures = corpus_exposures(part, rank_models, heard.cohort, lengths, progress=progress)
    rows = length_rows(exposures, config.budget, replicates=config.replicates, seed=config.seed)
    tests, problems = _tests(voices, specs, rank_models, part, config, progress)
    told, unable = _attributes(voices, specs, heard.said, config)
    sounds = [
        [None if row is None else condition_of(row) for row in voice.sounds or ()]
        for voice in voices
    ]
    known = {voice.name for voice in voices} & heard.learnt_on
    notes = [
        f"{plural(len(known), 'of these speakers is', 'of these speakers are')} among those whom "
        "the rank models were learnt from: their evidence may read a little high."
    ] * bool(known)
    notes += [f"Of {plural(len(part.rest), 'speaker')} {MOST_TESTED} were watched, evenly taken."
              ] * (len(part.rest) > MOST_TESTED)  # fmt: skip
    notes += _few(rows, LEAST_PEOPLE)
    notes += list(feature_caveats(specs))
    if exposures.why:
        notes.append(f"There is no evidence: {exposures.why}. Bits are those among the enrolled.")
    return Audit(
        _name_of(heard.place),
        "corpus",
        _facts_of_corpus(voices, specs, part, exposures, tests, config),
        config.among,
        config.budget,
        exposures,
        rows,
        tests,
        told,
        _condition_rows(sounds),
        sounds_apart(sounds, config.seed),
        (*_left_out(specs, config.setup), *_untested(part, told, shortest)),
        (*notes, *unable),
        (*heard.missing, *problems),
        _commands(heard.place, part, tests, config),
        skipped=len(heard.missing),
        replicates=config.replicates,
        seed=config.seed,
    )


def _check_people(count: int) -> None:
    if count < LEAST_PEOPLE:
        raise CorpusError(
            f"{plural(count, 'speaker')} with speech: an audit is of {LEAST_PEOPLE} people or "
            "more; of one voice measure runs (monitor replay --watch NAME --jsonl RUN.jsonl) and "
            "audit those"
        )


def _few(rows: Sequence[LengthRow], least_people: int) -> list[str]:
    """Which lengths nothing is said of, for want of people."""
    few = [f"{row.seconds:g}" for row in rows if row.speakers < least_people]
    return [f"Lengths that fewer than {least_people} people reach are left out: "
            f"{', '.join(few)} s."] * bool(few)  # fmt: skip


def _name_of(place: Path) -> str:
    """What a corpus is called: its folder, of which a manifest says who speaks."""
    whole = place.resolve()
    return whole.parent.name if whole.stem == "manifest" else whole.name


def hearing_seconds(specs: Mapping[str, FeatureSpec]) -> float:
    """Speech seconds below which one of the features hears nothing, and an attacker is too weak.

    A stretch that is shorter would read low for want of an attacker, not of disclosure.
    """
    return max((spec.kind.span_seconds(spec.frame_seconds) for spec in specs.values()), default=0.0)


def chosen_part(
    voices: Sequence[SpeakerSpeech],
    specs: Mapping[str, FeatureSpec],
    template_seconds: float | None = None,
    least_seconds: float = LENGTHS[0],
) -> EnrolledPart:
    """Enrol everybody from D seconds: as asked, else a minute, or what half of the speakers have.

    Templates of another session come first.
    """
    if template_seconds is not None:
        return enrolled_part(voices, specs, template_seconds, least_seconds)
    found: list[EnrolledPart] = []
    problem: CorpusError | None = None
    for seconds in TEMPLATE_LENGTHS:
        try:
            found.append(enrolled_part(voices, specs, seconds, least_seconds))
        except CorpusError as error:
            problem = error
    if not found:
        assert problem is not None
        raise problem
    kind = "cross" if any(part.session == "cross" for part in found) else "same"
    found = [part for part in found if part.session == kind]
    most = max(len(part.rest) for part in found)
    return next(part for part in found if 2 * len(part.rest) >= most)


def _models(config: AuditConfig) -> tuple[RankModels, Cohort | None, frozenset[str]]:
    """Rank models, the cohort of their evidence, and whom they were learnt from."""
    reference = Population.reference()
    if config.rank_model is None:
        return reference.rank_models, reference.cohort, frozenset(reference.names)
    rank_models, cohort = load_rank_models(config.rank_model)
    known = frozenset(name for each in rank_models for name in each.learnt_from)
    return rank_models, cohort, known


def _tests(
    voices: Sequence[SpeakerSpeech],
    specs: Mapping[str, FeatureSpec],
    rank_models: RankModels,
    part: EnrolledPart,
    config: AuditConfig,
    progress: Callable[[str], object],
) -> tuple[tuple[TestRow, ...], list[str]]:
    """Ranks and links within a session and across, as `monitor score` and `evaluate` have them."""
    grid = ScoreGrid(
        voices, specs, rank_models, TEST_LENGTHS, (part.template_seconds,), ("same", "cross"),
        ("average",), TRIALS,
    )  # fmt: skip
    try:
        cells = grid.cells()
    except CorpusError as error:
        return (), [str(error)]
    rows, few = [], list[str]()
    for cell in cells:
        session, seconds, template, plan = cell
        if plan.mated.size < 2:
            continue
        made = grid.score(*cell)
        for name, matrix in made.matrices.items():
            if len(matrix.tested) < LEAST_PEOPLE:
                few.append(f"{seconds:g} s, {SESSIONS[session]}")
                continue
            report = evaluate(
                matrix, replicates=config.replicates, seed=config.seed,
                among=sorted({*CROWDS, config.among}), only=_FAMILIES,
            )  # fmt: skip
            rows.append(
                TestRow("", "", name, seconds, template, session, matrix.population,
                        matrix.trials, len(matrix.tested), report.figures)
            )  # fmt: skip
        progress(f"T={seconds:g} {session}")
    # who has no trial is told by numbers: a document names nobody
    problems = [each for each in grid.problems if not each.startswith("T=")]
    if few:
        problems.append(
            f"Tests of fewer than {LEAST_PEOPLE} people are left out: "
            f"{'; '.join(dict.fromkeys(few))}."
        )
    return tuple(rows), problems


# ------------------------------------------------------------------------------------- attributes


def _table(corpus: Corpus, place: Path, config: AuditConfig) -> dict[str, dict[str, str]]:
    """What is said of the speakers; refuses what was asked for and is not there."""
    if config.attribute_table is not None and not config.attribute_table.is_file():
        raise UsageError(f"{config.attribute_table.name} does not exist; check the name")
    said = read_speaker_attributes(config.attribute_table or place)
    for asked in config.attributes or ():
        attribute(asked, said, corpus.speakers)
    return said


def _attributes(
    voices: Sequence[SpeakerSpeech],
    specs: Mapping[str, FeatureSpec],
    said: Mapping[str, Mapping[str, str]],
    config: AuditConfig,
) -> tuple[dict[str, list[Mapping[str, Any]]], list[str]]:
    """What else a voice tells, learnt on some of the speakers and tried on the others."""
    names = tuple(voice.name for voice in voices)
    notes: list[str] = []
    asked = config.attributes
    if asked is None:
        asked = tuple(_usual(said, names))
    vectors = {name: spec for name, spec in specs.items() if spec.kind.pointed}
    if asked and not vectors:
        notes.append("Attributes are told by an embedding, and none was heard: none is told.")
    found: dict[str, list[Mapping[str, Any]]] = {}
    for feature in vectors:
        excerpts = _excerpts(voices, feature)
        for one in asked:
            about = attribute(one, said, names)
            known = excerpts.of(frozenset(about.of))
            # of two values one says it all: the equal error rate is of both
            for value in about.values if len(about.values) > 2 else about.values[:1]:
                has = {who: each == value for who, each in about.of.items()}
                try:
                    told = judged(
                        log_odds(known, known, has, config.seed), known.whose, has,
                        replicates=config.replicates, seed=config.seed,
                    )  # fmt: skip
                except UsageError as error:  # so few are no reason to lose all else
                    notes.append(f"{value} ({about.name}) is not told: {error}.")
                    continue
                having = sum(has[who] for who in set(known.whose))
                found.setdefault(about.name, []).append({
                    "method": CLEAR, "attacker": "ignorant", "feature": feature, "value": value,
                    "version": "relaxed", "readers_apart": False, "seconds": TEST_LENGTHS[0],
                    "learnt_with": having, "learnt_without": len(set(known.whose)) - having,
                    **asdict(told),
                })  # fmt: skip
    return found, notes


def _usual(said: Mapping[str, Mapping[str, str]], names: Sequence[str]) -> Iterator[str]:
    """Attributes that people would ask of a table: numbers are split at their median."""
    for column, of in said.items():
        if column.lower() not in USUAL_ATTRIBUTES:
            continue
        values = [of[name] for name in names if name in of]
        try:
            numbers = [float(value) for value in values]
        except ValueError:
            asked = column
        else:
            asked = f"{column}<{float(np.median(numbers)):g}" if numbers else column
        try:
            attribute(asked, said, names)
        except UsageError:  # all are alike, or it has too many values
            continue
        yield asked


def _excerpts(voices: Sequence[SpeakerSpeech], feature: str) -> Excerpts:
    """Consecutive stretches of each speaker, at most `_EXCERPTS`."""
    units = units_of(TEST_LENGTHS[0])
    rows, whose = [], []
    for voice in voices:
        totals = [
            session[feature].total(i * units, units)
            for place, session in enumerate(voice.sessions)
            for i in range(voice.length(place) // units)
        ]
        kept = [total for total in totals if total.any()][:_EXCERPTS]
        rows += kept
        whose += [voice.name] * len(kept)
    return Excerpts(np.array(rows), tuple(whose))


# ------------------------------------------------------------------------------------- conditions

CONDITION_NAMES = {
    "bandwidth_hz": ("band", "Hz"),
    "snr_db": ("speech above noise", "dB"),
    "reverberation_seconds": ("reverberation (RT60)", "s"),
    "clipping": ("clipped samples", "share"),
    "level_db": ("level", "dB"),
}


def _condition_rows(sounds: Sequence[Sequence[Condition | None]]) -> tuple[ConditionRow, ...]:
    every = [each for voice in sounds for each in voice if each is not None]
    return _summed(every)


def _summed(every: Sequence[Condition]) -> tuple[ConditionRow, ...]:
    rows = []
    for name in CONDITION_NAMES:
        known = [value for each in every if (value := getattr(each, name)) is not None]
        if known:
            low, middle, high = np.quantile(known, (0.1, 0.5, 0.9)).tolist()
            rows.append(ConditionRow(name, len(known), middle, low, high))
    return tuple(rows)


def sounds_apart(sounds: Sequence[Sequence[Condition | None]], seed: int = 0) -> SoundsApart | None:
    """How often the sound of two sessions differs, of one speaker and of two.

    Where sessions of two speakers differ far more often, the recordings tell people apart, and not
    their voices alone. None where no sound is known.

    Example:
        >>> office, hall = Condition(bandwidth_hz=8000.0), Condition(bandwidth_hz=3500.0)
        >>> sounds_apart([[office, office], [hall, hall]])
        SoundsApart(same=0.0, different=1.0)
    """
    known = [(i, each) for i, voice in enumerate(sounds) for each in voice if each is not None]
    if not known:
        return None
    if len(known) > _MOST_PAIRED:
        some = np.random.default_rng(seed).permutation(len(known))[:_MOST_PAIRED]
        known = [known[i] for i in sorted(some.tolist())]
    same, different = list[bool](), list[bool]()
    for place, (one, mine) in enumerate(known):
        for other, theirs in known[place + 1 :]:
            (same if one == other else different).append(bool(list_mismatches(mine, theirs)))
    return SoundsApart(*(float(np.mean(each)) if each else None for each in (same, different)))


# ------------------------------------------------------------------------------------ what was done


def _facts_of_corpus(
    voices: Sequence[SpeakerSpeech],
    specs: Mapping[str, FeatureSpec],
    part: EnrolledPart,
    exposures: Exposures,
    tests: Sequence[TestRow],
    config: AuditConfig,
) -> dict[str, str]:
    lengths = [v.length(i) / 10 for v in voices for i in range(len(v.sessions))]
    sessions = len(lengths)
    several = sum(len(voice.sessions) > 1 for voice in voices)
    source = "the shipped ones" if config.rank_model is None else config.rank_model.name
    people = [(t, len(set(exposures.at(t).owner.tolist()))) for t in exposures.lengths]
    lengths_said = [t for t, count in people if count >= LEAST_PEOPLE]
    return {
        "Speech": f"{plural(len(voices), 'speaker')}, {plural(sessions, 'session')}, "
        f"{sum(lengths) / 60:.1f} min of speech; {several} with two sessions or more. A "
        f"session has {np.median(lengths):.0f} s in the median.",
        "Population": f"Of {plural(len(voices), 'speaker')} {exposures.candidates} have "
        f"{part.template_seconds:g} s for a template and are enrolled: evidence has N = "
        f"{exposures.candidates}. {len(exposures.speakers)} of them have speech beside it and are "
        f"tested. {_sizes(tests)}People are singled out of {crowds.crowd_of(config.among)}.",
        "Attackers": f"Know of no protection. They recognise voices by {_networks(specs)}, and "
        f"weigh them by rank models ({source}).",
        "Templates": f"{part.template_seconds:g} s of speech of each person, "
        + ("from another session than what is tested."
           if part.session == "cross"
           else "from the same session as what is tested: a voice is easier to recognise so."),
        "Lengths": f"{', '.join(f'{each:g}' for each in lengths_said)} s of speech; at most "
        f"{TRIALS} stretches of each speaker at each. Ranks and links: of each speaker "
        f"{plural(TRIALS, 'trial')}, which overlap where there is less speech"
        + ("; sessions take turns as the template." if part.session == "cross" else "."),
        "Limits": f"95 %, over {config.replicates} resamples of speakers (seed {config.seed}).",
    }  # fmt: skip


def _sizes(tests: Sequence[TestRow]) -> str:
    """Say why tests of ranks and links have another N."""
    said = []
    for session in SESSIONS:
        of = [test for test in tests if test.session == session]
        if of:
            people = " or ".join(map(str, sorted({test.speakers for test in of})))
            tested = " or ".join(map(str, sorted({test.tested for test in of})))
            where = "across sessions" if session == "cross" else "within one"
            said.append(f"N = {people} {where}, {tested} tested")
    if not said:
        return ""
    return (
        "Ranks and links enrol a speaker from every session that is long enough, and so have "
        f"{'; '.join(said)}. "
    )


def _column(attribute: str) -> str:
    """The column of a table that an attribute is told by: of ``age<30`` it is ``age``."""
    return attribute.partition("<")[0].lower()


def _networks(specs: Mapping[str, FeatureSpec]) -> str:
    named = [name + (f" (network {spec.network[:12]})" if spec.network else "")
             for name, spec in specs.items()]  # fmt: skip
    return ", ".join(named)


def _left_out(used: Collection[str], setup: FeatureSetup) -> Iterator[str]:
    """Features that could have been heard: without them figures may be far too low."""
    more = [name for name in defaults(setup=setup) if not (name in used or superseded(name, used))]
    if more:
        yield (
            f"Recognition by {' and '.join(more)}, which this program can hear in audio: whoever "
            f"uses more than {', '.join(used)} learns more, by an embedding far more."
        )


def _untested(
    part: EnrolledPart,
    told: Mapping[str, object],
    shortest: float,
) -> Iterator[str]:
    if part.session == "same":
        yield (
            "Linking recordings of different days, rooms or devices: every speaker has one session."
        )
    if shortest:
        yield (
            f"Stretches shorter than {shortest:g} s, of which these embeddings hear nothing: an "
            "attacker with others may."
        )
    if not told:
        yield (
            "Inference: no table of these recordings says an attribute in which enough speakers "
            "differ (--attributes, --groups)."
        )
    else:
        known = {_column(name) for name in told}
        left = [each for each in ("health", "mood", "origin", "age") if each not in known]
        yield f"Attributes other than {', '.join(told)}: {', '.join(left)}."
    yield f"More enrolled speech than {part.template_seconds:g} s of a person: it tells more."
    yield "Protected speech: nothing was anonymised (monitor attack tests an anonymiser)."
    yield from _UNTRIED


def _commands(
    place: Path, part: EnrolledPart, tests: Sequence[TestRow], config: AuditConfig
) -> tuple[str, ...]:
    name = _name_of(place)
    lengths = ",".join(f"{each:g}" for each in dict.fromkeys(row.seconds for row in tests))
    more = f" --features {','.join(config.features)}" if config.features else ""
    model = f" --rank-model {config.rank_model.name}" if config.rank_model else ""
    weighed = model or " --rank-model reference"
    return (
        f"monitor score {name} -o scores.npz --session both --lengths {lengths} "
        f"--template-lengths {part.template_seconds:g}{more}{model}",
        f"monitor evaluate scores.npz --all "
        f"--among {','.join(map(str, sorted({*CROWDS, config.among})))} "
        f"--replicates {config.replicates} --seed {config.seed}",
        f"monitor replay RECORDING -p us.npz{weighed} --watch SPEAKER, once the people are "
        f"enrolled from other sessions (monitor enrol PEOPLE --seconds "
        f"{part.template_seconds:g}{more} -o us.npz): the evidence of a recording's first T "
        "seconds",
    )


# -------------------------------------------------------------------------------------- of runs


def audit_runs(
    runs: Sequence[tuple[str, Sequence[Mapping[str, Any]]]], config: AuditConfig = _USUAL
) -> Audit:
    """Audit recorded runs of watched speakers, by what their readings say.

    Args:
        runs: by name, records as `monitor.records.schema.read_run` gives them.
        config: what is asked for.

    Raises:
        StoreError: nobody is watched, or runs cannot be put together.
    """
    starts = [records[0] for _, records in runs]
    features = [tuple(start.get("features") or ()) for start in starts]
    shortest = _shortest_heard(features)
    lengths = tuple(each for each in config.lengths if each >= shortest)
    found = run_exposures(runs, lengths)
    rows = length_rows(found, config.budget, replicates=config.replicates, seed=config.seed)
    ends = [[r for r in records if r["type"] == "reading"][-1:] for _, records in runs]
    last = [each[0] for each in ends if each]
    sounds = [Condition.parse(each.get("conditions")) for each in last]
    speech = sum(float(each["speech"]) for each in last)
    said = dict.fromkeys(
        str(record["text"])
        for _, records in runs
        for record in records
        if record["type"] == "notice" and record.get("level") == "warning"
    )
    told = dict.fromkeys(
        str(text) for start in starts for text in start.get("notices") or () if text
    )
    mixed = sum(bool(other_voices(records)) for _, records in runs)
    others = (
        f"In {mixed} of {plural(len(runs), 'run')} another voice or channel was noticed: what came "
        "with it is left out.",
    )
    among = {int(start.get("speakers", 0)) for start in starts}
    prints = sorted({_fingerprint(start) for start in starts} - {""})
    protected = any(start.get("protected") for start in starts)
    facts = {
        "Speech": f"{plural(len(runs), 'run')} of "
        f"{plural(len(found.speakers), 'watched speaker')}, {speech / 60:.1f} min of speech.",
        "Population": f"N = {' or '.join(map(str, sorted(among)))} people enrolled. People are "
        f"singled out of {crowds.crowd_of(config.among)}.",
        "Attackers": "As the runs have them: by "
        + "; ".join(dict.fromkeys(", ".join(each) for each in features)) + ".",
        "Templates": ("from another session than what is tested."
                      if found.session == "cross"
                      else "of the same session, in one run at least: a voice is easier to "
                      "recognise so."),
        "Lengths": f"{', '.join(f'{each:g}' for each in found.lengths)} s of speech, the first "
        "reading of each run with as much.",
        "Limits": f"95 %, over {config.replicates} resamples of watched speakers "
        f"(seed {config.seed})." if len(found.speakers) > 1
        else "95 %, of calibration: one speaker was watched.",
    }  # fmt: skip
    if prints:
        facts["Files"] = f"Templates and rank models: {', '.join(prints)}."
    used = [name for name in features[0] if all(name in each for each in features)]
    not_tested = [
        *_left_out(used, config.setup),
        "Linkability as an error rate: runs watch one person each and hear no impostor. Audit the "
        "recordings themselves for it.",
        "Inference: a run tells no attribute of its speaker.",
        *(["The protected side of the runs: test the anonymiser (monitor attack)."] * protected),
        *_UNTRIED,
    ]
    return Audit(
        runs[0][0] if len(runs) == 1 else f"{len(runs)} runs",
        "runs", facts, config.among, config.budget, found, rows,
        conditions=_summed([each for each in sounds if each is not None]),
        not_tested=tuple(not_tested),
        notes=(*(others if mixed else ()), *_few(rows, min(LEAST_PEOPLE, len(found.speakers))),
               *said, *told),
        commands=("monitor show RUN.jsonl --csv",),
        replicates=config.replicates,
        seed=config.seed,
    )  # fmt: skip


def _shortest_heard(features: Sequence[Sequence[str]]) -> float:
    from monitor.features.registry import FEATURES, make, ready

    names = sorted({name for each in features for name in each if name in FEATURES})
    made = make([name for name in names if ready(name)])
    return hearing_seconds({each.spec.name: each.spec for each in made})


def _fingerprint(start: Mapping[str, Any]) -> str:
    given = start.get("fingerprint")
    if isinstance(given, Mapping):
        return ", ".join(f"{key} {str(value)[:12]}" for key, value in given.items())
    return str(given or "")[:12]


# ------------------------------------------------------------------------------------ of an attack

_TRAINED_MORE = (
    "Stronger networks than those named, and attackers who train longer, or on speech of more "
    "people."
)


def audit_attack(results: AttackResults, config: AuditConfig = _USUAL) -> Audit:
    """Audit what `monitor attack` found."""
    settings = results.settings
    rows = [row for method in settings.methods for row in results.main(method)]
    for method in settings.methods:
        best = results.strongest(method)
        if best is not None and best not in rows:
            rows.append(best)
    tests = tuple(_as_test(row, results) for row in rows)
    trained = any(ATTACKERS[each].trains for each in settings.attackers)
    apart = settings.background
    facts = {
        "Speech": f"{settings.corpus}: {plural(settings.readers, 'reader')}; protected by "
        + (", ".join(plain_name(m) for m in settings.methods if m != CLEAR) or "nothing") + ".",
        "Population": f"N = {max(row.speakers for row in results.rows)} readers, each compared "
        "with all.",
        "Attackers": f"{', '.join(settings.attackers)}; they recognise voices by "
        f"{', '.join(settings.features)}"
        + (f", and learn from {plural(apart, 'reader')} apart." if apart else "."),
        "Templates": f"{settings.template_seconds:g} s of speech, "
        + ("of another session." if settings.session == "cross" else "of the same session: a "
           "voice is easier to recognise so."),
        "Lengths": f"Trials of {settings.seconds:g} s of speech.",
        "Limits": "95 %, over resamples of readers.",
    }  # fmt: skip
    not_tested = [
        *(["Inference: no attribute was asked for (monitor attack --attributes)."]
          * (not results.attributes)),
        "Other lengths of speech than these trials'.",
        *(_TRAINED_MORE if each == _STRONGER and trained else each for each in _UNTRIED),
    ]  # fmt: skip
    return Audit(
        settings.corpus, "attack", facts, config.among, config.budget,
        tests=tests, attributes=results.attributes, not_tested=tuple(not_tested),
        notes=(*results.notes, *caveats(results)), problems=results.problems,
        commands=("monitor attack, as it was run: results.json and index.html in its folder",),
    )  # fmt: skip


def _as_test(row: AttackRow, results: AttackResults) -> TestRow:
    settings = results.settings
    feature = row.feature + (", max scoring" if row.scoring == "max" else "")
    each = settings.template_seconds / max(settings.main_segments, 1)
    poor = ATTACKERS[row.attacker].trains and row.method in results.undertrained
    attacker = row.attacker + " (undertrained)" * poor
    return TestRow(
        row.method, attacker, feature, settings.seconds, each * row.segments, settings.session,
        row.speakers, row.trials, row.speakers, row.figures,
    )  # fmt: skip


# --------------------------------------------------------------------------------------- sentences

SESSIONS = {"cross": "another session", "same": "the same session"}


def plain_name(method: str) -> str:
    """A method for people who read no Markdown."""
    return method_name(method).strip("`")


def summary(audit: Audit) -> dict[str, list[str]]:
    """What was found, by area, a sentence each. Every figure is the strongest attacker's tried."""
    return {
        "singling out": list(_singling_out(audit)),
        "linkability": list(_linkability(audit)),
        "inference": list(_inference(audit)),
        "retention": list(_retention(audit)),
    }


def bits_said(figure: Figure, *, least: bool = False) -> str:
    """Bits with their limits."""
    between = format_limits(replace(figure, unit="bits")) if figure.low is not None else ""
    value = figure.value or 0.0
    ends = ""
    if between and figure.low is not None and figure.high is not None:
        ends = f" ({figure.low:.1f} to {figure.high:.1f})"
    return f"{'at least ' * least}{value:.1f} bits{ends}"


def left_of(bits: float, among: int) -> str:
    """How many people of a crowd are left by so many bits.

    Example:
        >>> left_of(11.3, 10**6), left_of(25.0, 10**6), left_of(-1.0, 10**6)
        ('about 400 of a million', 'one of a million', 'all of a million')
    """
    crowd = crowds.people(among)
    if bits <= 0:
        return f"all of {crowd}"
    count = among * 2.0**-bits
    return f"one of {crowd}" if count < crowds.NEARLY_ONE else (
        f"about {crowds.rounded(count)} of {crowd}"
    )  # fmt: skip


def _singling_out(audit: Audit) -> Iterator[str]:
    row = audit.headline
    if row is not None and audit.exposures is not None:
        kind = audit.exposures.kind
        told = f"{_counted(row)} "
        told += "disclose" if row.stretches > 1 else "discloses"
        told += f" on average {bits_said(row.mean, least=row.clipped > 0.05)}"
        if kind == "evidence":
            told += f" of evidence: {left_of(row.mean.value or 0.0, audit.among)} people would fit "
            told += "as well. "
            if row.stretches >= round(1 / EXPOSED):
                told += f"The most exposed tenth disclose {row.exposed:.1f} bits or more: "
                told += f"{left_of(row.exposed, audit.among)} or fewer."
        else:
            told += f" of {math.log2(audit.exposures.candidates):.1f} among the enrolled."
        yield told.strip()
        if row.speakers < HEADLINE_PEOPLE:
            yield (
                f"Only {plural(row.speakers, 'person was', 'people were')} tested at that length: "
                "others may disclose far more."
            )
    elif audit.rows:
        yield f"Nothing is said of evidence: fewer than {LEAST_PEOPLE} people reach any length."
    for best in _strongest_each(audit):
        if audit.kind == "attack":
            yield (
                f"{_whose(best, audit)}{best.seconds:g} s disclose {bits_said(best.figures[BITS])} "
                f"of {math.log2(best.speakers):.1f} among {best.speakers} readers ({_how(best)})."
            )
        first = best.figures.get("srd.idr")
        if first is not None and first.value is not None:
            yield (
                f"{_whose(best, audit)}{best.seconds:g} s of speech put the right person of "
                f"{best.speakers} first in {_value(first)} of the trials "
                f"({_how(best)}); chance is {format_value(1 / best.speakers, 'share')}."
            )
        wide = best.figures.get(f"among.idr_{audit.among}")
        if wide and wide.text == "supported" and wide.low is not None and wide.high is not None:
            yield (
                f"Among {crowds.people(audit.among)} people the right one would come first in "
                f"{format_value(wide.low, 'share')} to {format_value(wide.high, 'share')}."
            )


def _counted(row: LengthRow) -> str:
    """Say what a row is of: how many stretches, and by how many people.

    Example:
        >>> from types import SimpleNamespace
        >>> _counted(SimpleNamespace(stretches=109, speakers=13, seconds=3.0))
        '109 stretches of 3 seconds by 13 people'
    """
    people = plural(row.speakers, "person", "people")
    stretches = plural(row.stretches, "stretch", "stretches")
    return f"{stretches} of {length_in_words(row.seconds)} by {people}"


def _linkability(audit: Audit) -> Iterator[str]:
    if audit.kind == "runs" and audit.exposures is not None:
        for row in (audit.headline,):
            if row is not None:
                yield (
                    f"At {row.seconds:g} s the voice was linked to the right one of "
                    f"{audit.exposures.candidates} templates in "
                    f"{round((row.first.value or 0.0) * row.stretches)} of "
                    f"{plural(row.stretches, 'run')}."
                )
        return
    for best in _strongest_each(audit, key="verification.eer_rocch", least=True):
        eer = best.figures["verification.eer_rocch"]
        system = best.figures.get("linkage.d_sys")
        more = f", D_sys {format_value(system.value, '')}" if system and system.value else ""
        yield (
            f"{_whose(best, audit)}{best.seconds:g} s are linked with a known recording of the "
            f"speaker with an equal error rate of {_value(eer)}{more} ({_how(best)}); 50 % would "
            "be no link."
        )
    same = _best([t for t in audit.tests if t.session == "same"])
    cross = _best([t for t in audit.tests if t.session == "cross"])
    if audit.kind == "corpus" and cross is None:
        yield "Whether recordings of different sessions can be linked was not tested."
    elif audit.kind == "corpus" and same is not None and cross is not None:
        yield (
            f"{same.seconds:g} s within one session tell {same.bits:.1f} bits of "
            f"{math.log2(same.speakers):.1f}, across sessions {cross.bits:.1f} of "
            f"{math.log2(cross.speakers):.1f}."
        )


def _inference(audit: Audit) -> Iterator[str]:
    for name, rows in audit.attributes.items():
        by_method: dict[str, Mapping[str, Any]] = {}
        for row in rows:
            before = by_method.get(row["method"])
            if before is None or row["eer"] < before["eer"]:
                by_method[row["method"]] = row
        for method, row in by_method.items():
            figure = Figure("", "", row["eer"], "share", low=row["eer_low"], high=row["eer_high"])
            whose = "" if len(by_method) < 2 and method == CLEAR else f"{plain_name(method)}: "
            yield (
                f"{whose}{row['seconds']:g} s tell {name} ({row['value']}) with an equal error "
                f"rate of {_value(figure)}, by {row['feature']}; 50 % would be a guess."
            )
    if not audit.attributes:
        yield "What else a voice tells of its speaker was not tested."


def _retention(audit: Audit) -> Iterator[str]:
    budget = f"{audit.budget:g} bits"
    kept = audit.kept
    if kept is None:
        yield from _retention_of_attack(audit, budget)
        return
    assert audit.exposures is not None
    many = plural(len(audit.exposures.speakers), "speaker")
    if audit.exposures.kind != "evidence" and audit.budget > math.log2(audit.exposures.candidates):
        yield (
            f"Whether {budget} are kept cannot be told: among {audit.exposures.candidates} people "
            f"no more than {math.log2(audit.exposures.candidates):.1f} bits can be shown."
        )
        return
    if kept.reached is None and kept.under is None:
        yield f"Nothing is said: fewer than {LEAST_PEOPLE} people reach any length."
        return
    if kept.reached is None:
        longest = (
            "the longest that was tested"
            if audit.shown == audit.rows
            else f"the longest that {audit.least_people} people or more reach"
        )
        yield (
            f"Up to {kept.under:g} s of speech of one person, {longest}, no "
            f"stretch of {many} disclosed {budget}. Nothing is known of more speech."
        )
    elif kept.under is None:
        reason = "calibration can say no more there" if kept.may else "a stretch disclosed as much"
        yield (
            f"No length that was tested keeps everybody under {budget}: at {kept.reached:g} s, the "
            f"shortest, {reason}."
        )
    else:
        may = "may have disclosed" if kept.may else "disclosed"
        yield (
            f"Under {budget}: no more than {kept.under:g} s of speech of one person in all. At "
            f"{kept.reached:g} s a stretch of the {many} {may} as much."
        )
    if kept.on_average is not None:
        row = next(row for row in audit.rows if row.seconds == kept.on_average)
        told = "mean" if (row.mean.value or 0.0) >= audit.budget else "upper limit of the mean"
        yield f"The {told} reaches {budget} at {kept.on_average:g} s."
    yield (
        "Bits of one person add up over recordings: the length is that of all speech that is kept "
        "of a person, and of who was tested here; others may be more exposed."
    )


def _retention_of_attack(audit: Audit, budget: str) -> Iterator[str]:
    for best in _strongest_each(audit):
        figure = best.figures[BITS]
        most = math.log2(best.speakers)
        whose = _whose(best, audit)
        if most < audit.budget:
            yield (
                f"{whose}whether {best.seconds:g} s keep under {budget} cannot be told: among "
                f"{best.speakers} readers no more than {most:.1f} bits can be shown. "
                f"{bits_said(figure)} were."
            )
            continue
        high = max(figure.value or 0.0, figure.high or 0.0)
        under = "stay under" if high < audit.budget else "do not surely stay under"
        yield (
            f"{whose}{best.seconds:g} s {under} {budget} on average: {bits_said(figure)} to the "
            "strongest attacker tried. Single readers may disclose more."
        )


def _strongest_each(audit: Audit, key: str = BITS, *, least: bool = False) -> list[TestRow]:
    """Of each method the test that tells most; across sessions where there is one."""
    found = []
    for method in audit.methods:
        some = [t for t in audit.tests if t.method == method and _has(t, key)]
        some = [t for t in some if t.session == "cross"] or some
        if some:
            sign = -1.0 if least else 1.0
            found.append(max(some, key=lambda t: sign * (t.figures[key].value or 0.0)))
    return found


def _has(test: TestRow, key: str) -> bool:
    figure = test.figures.get(key)
    return figure is not None and figure.value is not None


def _best(tests: Sequence[TestRow]) -> TestRow | None:
    """At the shortest length that there is, so that kinds of session compare."""
    if not tests:
        return None
    shortest = min(t.seconds for t in tests)
    return max((t for t in tests if t.seconds == shortest), key=lambda t: t.bits)


def _whose(test: TestRow, audit: Audit) -> str:
    return f"{plain_name(test.method)}: " if audit.kind == "attack" else ""


def _how(test: TestRow) -> str:
    attacker = f"{test.attacker}, " if test.attacker else ""
    return f"{attacker}{test.feature}, {SESSIONS[test.session]}"


def _value(figure: Figure) -> str:
    limits = format_limits(figure)
    said = format_value(figure.value, figure.unit, figure.text)
    return f"{said} ({limits})" if limits else said
