"""The audit of a corpus: recordings of people, by speaker and session."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from monitor import crowds
from monitor.corpus import Corpus, Recording, read_speaker_attributes
from monitor.errors import CorpusError, UsageError
from monitor.features.registry import caveats as feature_caveats
from monitor.kinds import FeatureSpec
from monitor.lab.attacks.extraction import CLEAR
from monitor.lab.attributes import AttributeRow, Excerpts, find_attribute, judge_value
from monitor.lab.audit.audit import (
    DEFAULTS,
    SESSIONS,
    UNTRIED,
    Audit,
    AuditConfig,
    SoundDifference,
    TestRow,
    get_shortest_seconds,
    report_short_lengths,
    report_unused_features,
    summarise_conditions,
)
from monitor.lab.audit.exposure import (
    LEAST_PEOPLE,
    LENGTHS,
    MOST_TESTED,
    TRIALS,
    EnrolledPart,
    Exposures,
    enrol_part,
    measure_corpus,
    summarise_lengths,
)
from monitor.lab.evaluation.evaluating import evaluate
from monitor.lab.evaluation.family import EvaluationSettings
from monitor.lab.scoring import ScoreGrid
from monitor.maths.condition import Condition, condition_of, list_mismatches
from monitor.phrases import plural
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


@dataclass(frozen=True)
class ExtractedCorpus:
    """Features of a corpus, and attributes of its speakers.

    Attributes:
        place: where it lies.
        voices, specs: as `monitor.training.collect` gives them.
        attributes: of the speakers, by column of their table.
        rank_models, cohort: by which it is going to be tested.
        learnt_on: names of those whom the rank models were learnt from.
        missing: a line for each file that was skipped or has unusable parts.
    """

    place: Path
    voices: Sequence[SpeakerSpeech]
    specs: Mapping[str, FeatureSpec]
    attributes: Mapping[str, Mapping[str, str]]
    rank_models: RankModels
    cohort: Cohort | None
    learnt_on: frozenset[str]
    missing: tuple[str, ...]

    @property
    def steps(self) -> int:
        """Most calls of ``progress`` by `audit_corpus`."""
        return min(len(self.voices), MOST_TESTED) + 2 * len(TEST_LENGTHS)


def extract_corpus(
    corpus: Corpus,
    place: Path,
    config: AuditConfig = DEFAULTS,
    progress: Callable[[Recording], None] = lambda _: None,
) -> ExtractedCorpus:
    """Extract recordings of people, by speaker and session, for `audit_corpus`.

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
    models = _load_models(config)  # what cannot be met is refused before the long work
    attributes = _read_table(corpus, place, config)
    voices, specs, missing = collect(
        corpus, features=config.features, jobs=config.jobs, setup=config.setup, sounds=True,
        progress=progress,
    )  # fmt: skip
    return ExtractedCorpus(place, voices, specs, attributes, *models, missing)


def audit_corpus(
    corpus: ExtractedCorpus,
    config: AuditConfig = DEFAULTS,
    progress: Callable[[str], object] = lambda _: None,
) -> Audit:
    """Audit extracted recordings of people.

    Args:
        corpus: by `extract_corpus`.
        config: what is asked for, the same.
        progress: called with what was tested: each speaker, and a few tests of all.

    Raises:
        CorpusError: fewer than five speakers say enough.
        UsageError: an option makes no sense.
        StoreError: the rank models do not fit.
    """
    voices, specs, rank_models = corpus.voices, corpus.specs, corpus.rank_models
    _check_people(len(voices))
    shortest = get_shortest_seconds(specs)
    lengths = tuple(seconds for seconds in config.lengths if seconds >= shortest)
    if not lengths:
        raise UsageError(
            f"nothing is heard of a stretch under {shortest:g} s by {', '.join(specs)}: give "
            "longer --lengths"
        )
    part = choose_part(voices, specs, config.template_seconds, min(lengths))
    exposures = measure_corpus(part, rank_models, corpus.cohort, lengths, progress=progress)
    rows = summarise_lengths(
        exposures, config.budget, replicates=config.replicates, seed=config.seed
    )
    tests, problems = _run_tests(voices, specs, rank_models, part, config, progress)
    attributes, warnings = _judge_attributes(voices, specs, corpus.attributes, config)
    sounds = [
        [None if row is None else condition_of(row) for row in voice.sounds or ()]
        for voice in voices
    ]
    trained = {voice.name for voice in voices} & corpus.learnt_on
    notes = [
        f"{plural(len(trained), 'of these speakers is', 'of these speakers are')} among those whom "
        "the rank models were learnt from: their evidence may read a little high."
    ] * bool(trained)
    notes += [f"Of {plural(len(part.rest), 'speaker')} {MOST_TESTED} were watched, evenly taken."
              ] * (len(part.rest) > MOST_TESTED)  # fmt: skip
    notes += report_short_lengths(rows, LEAST_PEOPLE)
    notes += list(feature_caveats(specs))
    if exposures.why:
        notes.append(f"There is no evidence: {exposures.why}. Bits are those among the enrolled.")
    return Audit(
        _get_corpus_name(corpus.place),
        "corpus",
        _describe_corpus(voices, specs, part, exposures, tests, config),
        config.among,
        config.budget,
        exposures,
        rows,
        tests,
        attributes,
        summarise_conditions(chain.from_iterable(sounds)),
        compare_sounds(sounds, config.seed),
        (*report_unused_features(specs, config.setup), *_list_untested(part, attributes, shortest)),
        (*notes, *warnings),
        (*corpus.missing, *problems),
        _list_commands(corpus.place, part, tests, config),
        skipped=len(corpus.missing),
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


def _get_corpus_name(place: Path) -> str:
    """Return the corpus' folder name; of a manifest its folder's."""
    path = place.resolve()
    return path.parent.name if path.stem == "manifest" else path.name


def choose_part(
    voices: Sequence[SpeakerSpeech],
    specs: Mapping[str, FeatureSpec],
    template_seconds: float | None = None,
    least_seconds: float = LENGTHS[0],
) -> EnrolledPart:
    """Enrol everybody from D seconds: as asked, else a minute, or what half of the speakers have.

    Templates of another session come first.
    """
    if template_seconds is not None:
        return enrol_part(voices, specs, template_seconds, least_seconds)
    parts: list[EnrolledPart] = []
    for seconds in TEMPLATE_LENGTHS:
        try:
            parts.append(enrol_part(voices, specs, seconds, least_seconds))
        except CorpusError:
            if not parts and seconds == TEMPLATE_LENGTHS[-1]:
                raise
    parts = [part for part in parts if part.session == "cross"] or parts
    largest = max(len(part.rest) for part in parts)
    return next(part for part in parts if 2 * len(part.rest) >= largest)


def _load_models(config: AuditConfig) -> tuple[RankModels, Cohort | None, frozenset[str]]:
    """Load rank models and their cohort; return also the names they were fitted on."""
    reference = Population.reference()
    if config.rank_model is None:
        return reference.rank_models, reference.cohort, frozenset(reference.names)
    rank_models, cohort = load_rank_models(config.rank_model)
    names = frozenset(name for rank_model in rank_models for name in rank_model.learnt_from)
    return rank_models, cohort, names


def _run_tests(
    voices: Sequence[SpeakerSpeech],
    specs: Mapping[str, FeatureSpec],
    rank_models: RankModels,
    part: EnrolledPart,
    config: AuditConfig,
    progress: Callable[[str], object],
) -> tuple[tuple[TestRow, ...], list[str]]:
    """Score ranks and links within a session and across, as `monitor score` and `evaluate`."""
    grid = ScoreGrid(
        voices, specs, rank_models, TEST_LENGTHS, (part.template_seconds,), ("same", "cross"),
        ("average",), TRIALS,
    )  # fmt: skip
    try:
        cells = grid.cells()
    except CorpusError as error:
        return (), [str(error)]
    rows, left_out = [], list[str]()
    for cell in cells:
        session, seconds, template, plan = cell
        if plan.mated.size < 2:
            continue
        scored = grid.score(*cell)
        for name, matrix in scored.matrices.items():
            if len(matrix.tested) < LEAST_PEOPLE:
                left_out.append(f"{seconds:g} s, {SESSIONS[session]}")
                continue
            crowds = sorted({*CROWDS, config.among})
            settings = EvaluationSettings(
                config.replicates, config.seed, among=crowds, only=_FAMILIES
            )
            report = evaluate(matrix, settings=settings)
            rows.append(
                TestRow("", "", name, seconds, template, session, matrix.population,
                        matrix.trials, len(matrix.tested), report.figures)
            )  # fmt: skip
        progress(f"T={seconds:g} {session}")
    # who has no trial is told by numbers: a document names nobody
    problems = [problem for problem in grid.problems if not problem.startswith("T=")]
    if left_out:
        problems.append(
            f"Tests of fewer than {LEAST_PEOPLE} people are left out: "
            f"{'; '.join(dict.fromkeys(left_out))}."
        )
    return tuple(rows), problems


# ------------------------------------------------------------------------------------- attributes


def _read_table(corpus: Corpus, place: Path, config: AuditConfig) -> dict[str, dict[str, str]]:
    """Read the speakers' attributes; refuse missing ones."""
    if config.attribute_table is not None and not config.attribute_table.is_file():
        raise UsageError(f"{config.attribute_table.name} does not exist; check the name")
    attributes = read_speaker_attributes(config.attribute_table or place)
    for name in config.attributes or ():
        find_attribute(name, attributes, corpus.speakers)
    return attributes


def _judge_attributes(
    voices: Sequence[SpeakerSpeech],
    specs: Mapping[str, FeatureSpec],
    tables: Mapping[str, Mapping[str, str]],
    config: AuditConfig,
) -> tuple[dict[str, list[AttributeRow]], list[str]]:
    """Judge attributes learnt on some of the speakers and tried on the others."""
    names = tuple(voice.name for voice in voices)
    notes: list[str] = []
    requests = config.attributes
    if requests is None:
        requests = tuple(_list_default_attributes(tables, names))
    vectors = {name: spec for name, spec in specs.items() if spec.kind.pointed}
    if requests and not vectors:
        notes.append("Attributes are told by an embedding, and none was heard: none is told.")
    rows: dict[str, list[AttributeRow]] = {}
    for feature in vectors:
        excerpts = _collect_excerpts(voices, feature)
        for request in requests:
            attribute = find_attribute(request, tables, names)
            # of two values one says it all: the equal error rate is of both
            for value in attribute.values if len(attribute.values) > 2 else attribute.values[:1]:
                has = {who: group == value for who, group in attribute.of.items()}
                try:
                    judgement = judge_value(
                        excerpts, excerpts, has, replicates=config.replicates, seed=config.seed
                    )
                except UsageError as error:  # so few are no reason to lose all else
                    notes.append(f"{value} ({attribute.name}) is not told: {error}.")
                    continue
                rows.setdefault(attribute.name, []).append(
                    AttributeRow(CLEAR, "ignorant", feature, value, "relaxed", False,
                                 TEST_LENGTHS[0], *judgement)
                )  # fmt: skip
    return rows, notes


def _list_default_attributes(
    tables: Mapping[str, Mapping[str, str]], names: Sequence[str]
) -> Iterator[str]:
    """Return the usual attributes of a table: numbers are split at their median."""
    for column, by_speaker in tables.items():
        if column.lower() not in USUAL_ATTRIBUTES:
            continue
        values = [by_speaker[name] for name in names if name in by_speaker]
        try:
            numbers = [float(value) for value in values]
        except ValueError:
            request = column
        else:
            request = f"{column}<{float(np.median(numbers)):g}" if numbers else column
        try:
            find_attribute(request, tables, names)
        except UsageError:  # all are alike, or it has too many values
            continue
        yield request


def _collect_excerpts(voices: Sequence[SpeakerSpeech], feature: str) -> Excerpts:
    """Return consecutive stretches of each speaker, at most `_EXCERPTS`."""
    units = units_of(TEST_LENGTHS[0])
    rows, whose = [], []
    for voice in voices:
        totals = [
            session[feature].total(i * units, units)
            for session_index, session in enumerate(voice.sessions)
            for i in range(voice.length(session_index) // units)
        ]
        voiced = [total for total in totals if total.any()][:_EXCERPTS]
        rows += voiced
        whose += [voice.name] * len(voiced)
    return Excerpts(np.array(rows), tuple(whose))


def compare_sounds(
    sounds: Sequence[Sequence[Condition | None]], seed: int = 0
) -> SoundDifference | None:
    """Return how often two sessions sound different, of one speaker and of two.

    Where sessions of two speakers differ far more often, the recordings tell people apart, and not
    their voices alone. None where no sound is known.

    Example:
        >>> office, hall = Condition(bandwidth_hz=8000.0), Condition(bandwidth_hz=3500.0)
        >>> compare_sounds([[office, office], [hall, hall]])
        SoundDifference(same=0.0, different=1.0)
    """
    conditions = [
        (i, condition)
        for i, voice in enumerate(sounds)
        for condition in voice
        if condition is not None
    ]
    if not conditions:
        return None
    if len(conditions) > _MOST_PAIRED:
        sample = np.random.default_rng(seed).permutation(len(conditions))[:_MOST_PAIRED]
        conditions = [conditions[i] for i in sorted(sample.tolist())]
    same, different = list[bool](), list[bool]()
    for index, (speaker, first) in enumerate(conditions):
        for other, second in conditions[index + 1 :]:
            (same if speaker == other else different).append(bool(list_mismatches(first, second)))
    return SoundDifference(
        *(float(np.mean(condition)) if condition else None for condition in (same, different))
    )


def _describe_corpus(
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
    people = [(t, len(set(exposures.select_length(t).owner.tolist()))) for t in exposures.lengths]
    lengths_said = [t for t, count in people if count >= LEAST_PEOPLE]
    return {
        "Speech": f"{plural(len(voices), 'speaker')}, {plural(sessions, 'session')}, "
        f"{sum(lengths) / 60:.1f} min of speech; {several} with two sessions or more. A "
        f"session has {np.median(lengths):.0f} s in the median.",
        "Population": f"Of {plural(len(voices), 'speaker')} {exposures.candidates} have "
        f"{part.template_seconds:g} s for a template and are enrolled: evidence has N = "
        f"{exposures.candidates}. {len(exposures.speakers)} of them have speech beside it and are "
        f"tested. {_describe_sizes(tests)}People are singled out of "
        f"{crowds.crowd_of(config.among)}.",
        "Attackers": f"Know of no protection. They recognise voices by {_networks(specs)}, and "
        f"weigh them by rank models ({source}).",
        "Templates": f"{part.template_seconds:g} s of speech of each person, "
        + ("from another session than what is tested."
           if part.session == "cross"
           else "from the same session as what is tested: a voice is easier to recognise so."),
        "Lengths": f"{', '.join(f'{seconds:g}' for seconds in lengths_said)} s of speech; at most "
        f"{TRIALS} stretches of each speaker at each. Ranks and links: of each speaker "
        f"{plural(TRIALS, 'trial')}, which overlap where there is less speech"
        + ("; sessions take turns as the template." if part.session == "cross" else "."),
        "Limits": f"95 %, over {config.replicates} resamples of speakers (seed {config.seed}).",
    }  # fmt: skip


def _describe_sizes(tests: Sequence[TestRow]) -> str:
    """Say why tests of ranks and links have another N."""
    parts = []
    for session in SESSIONS:
        rows = [test for test in tests if test.session == session]
        if rows:
            people = " or ".join(map(str, sorted({test.speakers for test in rows})))
            tested = " or ".join(map(str, sorted({test.tested for test in rows})))
            where = "across sessions" if session == "cross" else "within one"
            parts.append(f"N = {people} {where}, {tested} tested")
    if not parts:
        return ""
    return (
        "Ranks and links enrol a speaker from every session that is long enough, and so have "
        f"{'; '.join(parts)}. "
    )


def _column(attribute: str) -> str:
    """Return the column of an attribute: of ``age<30`` it is ``age``."""
    return attribute.partition("<")[0].lower()


def _networks(specs: Mapping[str, FeatureSpec]) -> str:
    named = [name + (f" (network {spec.network[:12]})" if spec.network else "")
             for name, spec in specs.items()]  # fmt: skip
    return ", ".join(named)


def _list_untested(
    part: EnrolledPart,
    attributes: Mapping[str, object],
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
    if not attributes:
        yield (
            "Inference: no table of these recordings says an attribute in which enough speakers "
            "differ (--attributes, --groups)."
        )
    else:
        columns = {_column(name) for name in attributes}
        others = [topic for topic in ("health", "mood", "origin", "age") if topic not in columns]
        yield f"Attributes other than {', '.join(attributes)}: {', '.join(others)}."
    yield f"More enrolled speech than {part.template_seconds:g} s of a person: it tells more."
    yield "Protected speech: nothing was anonymised (monitor attack tests an anonymiser)."
    yield from UNTRIED


def _list_commands(
    place: Path, part: EnrolledPart, tests: Sequence[TestRow], config: AuditConfig
) -> tuple[str, ...]:
    name = _get_corpus_name(place)
    lengths = ",".join(f"{seconds:g}" for seconds in dict.fromkeys(row.seconds for row in tests))
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
