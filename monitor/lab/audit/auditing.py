"""Audits of a corpus by speaker and session, of recorded runs, and of an attack's results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, combinations
from pathlib import Path

import numpy as np

from monitor import crowds
from monitor.alerts.figures import round_down
from monitor.corpus.recordings import Corpus, Recording
from monitor.corpus.tables import read_speaker_attributes
from monitor.errors import CorpusError, UsageError
from monitor.events.declaration import Event, find_first
from monitor.events.reading import Reading
from monitor.events.run import NoticeEvent, RunStart
from monitor.features.registry import FEATURES, FeatureSetup, defaults, make, ready, superseded
from monitor.features.registry import caveats as feature_caveats
from monitor.kinds import FeatureSpec
from monitor.lab.attacks.attackers import ATTACKERS
from monitor.lab.attacks.attributes import AttributeRow, Excerpts, find_attribute, judge_value
from monitor.lab.attacks.results import AttackResults, AttackRow, list_caveats
from monitor.lab.attacks.speech import CLEAR
from monitor.lab.audit.audit import (
    CONDITION_NAMES,
    DEFAULTS,
    SESSIONS,
    Audit,
    AuditConfig,
    ConditionRow,
    SoundDifference,
    TestRow,
    format_plain_method,
)
from monitor.lab.audit.exposure import (
    LEAST_PEOPLE,
    LENGTHS,
    MOST_TESTED,
    TRIALS,
    EnrolledPart,
    Exposures,
    LengthRow,
    enrol_part,
    list_other_voices,
    measure_corpus,
    measure_runs,
    summarise_lengths,
)
from monitor.lab.evaluation.evaluating import evaluate
from monitor.lab.evaluation.family import EvaluationSettings
from monitor.lab.scoring import ScoreGrid, largest
from monitor.maths.condition import Condition, condition_of, list_mismatches
from monitor.phrases import plural
from monitor.population.cohort import Cohort
from monitor.population.population import Population, load_rank_models
from monitor.population.rank_model import RankModels
from monitor.training.voices import SpeakerSpeech, collect, units_of

_STRONGER = (
    "Stronger networks than those named, and attackers who train on speech from this product."
)
_TRAINED_MORE = (
    "Stronger networks than those named, and attackers who train longer, or on speech of more "
    "people."
)
_UNTRIED = (
    "Listeners who know the person, and people who are good at recognising voices.",
    _STRONGER,
    "Content such as names, places and topics, and the words themselves unless style is a feature.",
    "Metadata and context: file names, times, accounts, devices, background sounds.",
    "Combination with other data about the same people.",
    "Languages, channels, rooms, illness, emotion and age outside these recordings.",
)


def _report_short_lengths(rows: Sequence[LengthRow], least_people: int) -> Iterator[str]:
    if lengths := [f"{row.seconds:g}" for row in rows if row.speakers < least_people]:
        listed = ", ".join(lengths)
        yield f"Lengths of fewer than {least_people} people are excluded: {listed} s."


def _find_shortest_seconds(specs: Iterable[FeatureSpec]) -> float:
    """Find the speech seconds below which bits are low only because a feature has no frame."""
    return max((spec.kind.span_seconds(spec.frame_seconds) for spec in specs), default=0.0)


def _summarise_conditions(conditions: Iterable[Condition | None]) -> tuple[ConditionRow, ...]:
    sounds = [condition for condition in conditions if condition is not None]
    rows = []
    for name in CONDITION_NAMES:
        figures = [value for sound in sounds if (value := getattr(sound, name)) is not None]
        if figures:
            quantiles = np.quantile(figures, (0.5, 0.1, 0.9)).tolist()
            rows.append(ConditionRow(name, len(figures), *quantiles))
    return tuple(rows)


def _report_unused_features(used: Collection[str], setup: FeatureSetup) -> Iterator[str]:
    more = [name for name in defaults(setup=setup) if not (name in used or superseded(name, used))]
    if more:
        yield (
            f"Recognition by {' and '.join(more)}, which this program can extract from audio. An "
            f"attacker with more features than {', '.join(used)} learns more, and far more with an "
            "embedding."
        )


TEST_LENGTHS = (10.0, 60.0)  # T in tests of ranks and links, if there is enough speech
TEMPLATE_LENGTHS = (60.0, 30.0, 20.0, 10.0)  # D to try, longest first
CROWDS = (5, 10, 20, 50, 100, 1000, 10_000, 1_000_000)
"""Sizes of crowds for the rate of first ranks."""
USUAL_ATTRIBUTES = ("gender", "sex", "accent", "dialect", "native", "l1", "age")
_FAMILIES = ("srd", "among", "linkage", "verification", "anonymity")
_EXCERPTS = 10
_MOST_PAIRED = 200  # maximum sessions for the comparison of acoustic conditions


@dataclass(frozen=True)
class ExtractedCorpus:
    """Features of a corpus, attributes of its speakers, and the rank models for its tests."""

    source: Path
    voices: Sequence[SpeakerSpeech]
    specs: Mapping[str, FeatureSpec]
    attributes: Mapping[str, Mapping[str, str]]  # attributes by column of the speakers' table
    rank_models: RankModels
    cohort: Cohort | None
    learnt_on: frozenset[str]  # names of the speakers that calibrated the rank models
    missing: tuple[str, ...]  # one line for each file that was skipped or has unusable parts

    @property
    def name(self) -> str:
        """Name of the corpus' folder, or of the folder that contains its manifest."""
        path = self.source.resolve()
        return path.parent.name if path.stem in ("manifest", "metadata") else path.name

    @property
    def steps(self) -> int:
        """Maximum calls of ``progress`` by `audit_corpus`."""
        return min(len(self.voices), MOST_TESTED) + 2 * len(TEST_LENGTHS)


def extract_corpus(
    corpus: Corpus,
    source: Path,
    config: AuditConfig = DEFAULTS,
    progress: Callable[[Recording], None] = lambda _: None,
) -> ExtractedCorpus:
    """Extract recordings of people, by speaker and session, for `audit_corpus`.

    ``source`` is the path of the corpus, which has its table of speakers and its name.

    Raises:
        CorpusError: if there are fewer than five people.
        UsageError: if an option is invalid.
        StoreError: if the rank models cannot be read.
    """
    _check_people(len(corpus.speakers))
    # check all options before the long work
    if config.rank_model is None:
        reference = Population.reference()
        rank_models, cohort = reference.rank_models, reference.cohort
        learnt_on = frozenset(reference.names)
    else:
        rank_models, cohort = load_rank_models(config.rank_model)
        learnt_on = frozenset(name for model in rank_models for name in model.learnt_from)
    if config.attribute_table is not None and not config.attribute_table.is_file():
        raise UsageError(f"{config.attribute_table.name} does not exist; check the name")
    attributes = corpus.attributes
    if config.attribute_table is not None or not attributes:
        attributes = read_speaker_attributes(config.attribute_table or source)
    for name in config.attributes or ():
        find_attribute(name, attributes, corpus.speakers)
    if cohort is not None:
        names = config.features or defaults(setup=config.setup)
        features = largest(rank_models, names)
        models = (rank_models.find(features, session) for session in SESSIONS)
        fitted = [model.evidence for model in models if model is not None]
        _check_budget(config, [None if fit is None else fit.most_bits for fit in fitted])
    voices, specs, missing = collect(
        corpus, features=config.features, jobs=config.jobs, setup=config.setup, sounds=True,
        progress=progress,
    )  # fmt: skip
    return ExtractedCorpus(
        source, voices, specs, attributes, rank_models, cohort, learnt_on, missing
    )


def _check_budget(config: AuditConfig, supports: Sequence[float | None]) -> None:
    limits = [bits for bits in supports if bits is not None]
    if limits and len(limits) == len(supports) and config.budget > max(limits):
        raise UsageError(
            f"invalid budget {config.budget:g}: calibration supports at most "
            f"{round_down(max(limits))} bits, so use fewer"
        )


def audit_corpus(
    corpus: ExtractedCorpus,
    config: AuditConfig = DEFAULTS,
    progress: Callable[[str], object] = lambda _: None,
) -> Audit:
    """Audit extracted recordings of people, with the same settings.

    ``progress`` is called with the name of each speaker, and of a few tests of all speakers.

    Raises:
        CorpusError: if fewer than five speakers have enough speech.
        UsageError: if an option is invalid.
        StoreError: if the rank models do not match.
    """
    voices, specs = corpus.voices, corpus.specs
    _check_people(len(voices))
    shortest = _find_shortest_seconds(specs.values())
    lengths = tuple(seconds for seconds in config.lengths if seconds >= shortest)
    if not lengths:
        raise UsageError(f"invalid --lengths: use at least {shortest:g} s for {', '.join(specs)}")
    enrolled = choose_part(voices, specs, config.template_seconds, min(lengths))
    exposures = measure_corpus(
        enrolled, corpus.rank_models, corpus.cohort, lengths, progress=progress
    )
    rows = summarise_lengths(exposures, config.budget, config.replicates, config.seed)
    tests, problems = _run_tests(corpus, enrolled, config, progress)
    attributes, warnings = _judge_attributes(corpus, config)
    sounds = [[None if c is None else condition_of(c) for c in v.sounds or ()] for v in voices]
    untested = _list_untested(enrolled, attributes, shortest)
    return Audit(
        corpus.name,
        "corpus",
        _describe_corpus(corpus, enrolled, exposures, tests, config),
        config,
        exposures,
        rows,
        tests,
        attributes,
        _summarise_conditions(chain.from_iterable(sounds)),
        compare_sounds(sounds, config.seed),
        (*_report_unused_features(specs, config.setup), *untested),
        (*_list_notes(corpus, enrolled, exposures, rows), *warnings),
        (*corpus.missing, *problems),
        _list_commands(corpus.name, enrolled, tests, config),
        skipped=len(corpus.missing),
    )


def _list_notes(
    corpus: ExtractedCorpus, enrolled: EnrolledPart, exposures: Exposures,
    rows: Sequence[LengthRow],
) -> Iterator[str]:  # fmt: skip
    if trained := {voice.name for voice in corpus.voices} & corpus.learnt_on:
        yield (
            f"{len(trained)} of these speakers also calibrated the rank models, so their evidence "
            "may be slightly too high."
        )
    if len(enrolled.remaining) > MOST_TESTED:
        yield (
            f"{MOST_TESTED} of {plural(len(enrolled.remaining), 'speaker')} were tested, at even "
            "intervals."
        )
    yield from _report_short_lengths(rows, LEAST_PEOPLE)
    yield from feature_caveats(corpus.specs)
    if exposures.reason:
        yield f"There is no evidence ({exposures.reason}). Bits are those among the enrolled."


def _check_people(count: int) -> None:
    if count < LEAST_PEOPLE:
        raise CorpusError(
            f"{plural(count, 'speaker')} with speech, but an audit needs at least {LEAST_PEOPLE}. "
            "For one voice, record runs with monitor replay --watch NAME --jsonl RUN.jsonl and "
            "audit those"
        )


def choose_part(
    voices: Sequence[SpeakerSpeech],
    specs: Mapping[str, FeatureSpec],
    template_seconds: float | None = None,
    least_seconds: float = LENGTHS[0],
) -> EnrolledPart:
    """Enrol all speakers from D seconds of speech.

    By default D is a minute, or the length that half of the speakers have. Templates from another
    session are preferred.
    """
    candidates: list[EnrolledPart] = []
    if template_seconds is None:
        for seconds in TEMPLATE_LENGTHS:
            with suppress(CorpusError):
                candidates.append(enrol_part(voices, specs, seconds, least_seconds))
    if not candidates:
        return enrol_part(voices, specs, template_seconds or TEMPLATE_LENGTHS[-1], least_seconds)
    candidates = [c for c in candidates if c.session == "cross"] or candidates
    largest = max(len(candidate.remaining) for candidate in candidates)
    return next(candidate for candidate in candidates if 2 * len(candidate.remaining) >= largest)


def _run_tests(
    corpus: ExtractedCorpus,
    enrolled: EnrolledPart,
    config: AuditConfig,
    progress: Callable[[str], object],
) -> tuple[tuple[TestRow, ...], list[str]]:
    """Test ranks and links within and across sessions, like `monitor score` and `evaluate`."""
    grid = ScoreGrid(
        corpus.voices, corpus.specs, corpus.rank_models, TEST_LENGTHS, (enrolled.template_seconds,),
        ("same", "cross"), ("average",), TRIALS,
    )  # fmt: skip
    try:
        cells = grid.cells()
    except CorpusError as error:
        return (), [str(error)]
    rows, left_out = [], list[str]()
    among = sorted({*CROWDS, config.among})
    settings = EvaluationSettings(config.replicates, config.seed, among=among, only=_FAMILIES)
    for cell in cells:
        session, seconds, template, plan = cell
        if plan.mated.size < 2:
            continue
        for name, matrix in grid.score(*cell).matrices.items():
            if len(matrix.tested) < LEAST_PEOPLE:
                left_out.append(f"{seconds:g} s, {SESSIONS[session]}")
                continue
            rows.append(
                TestRow("", "", name, seconds, template, session, matrix.population, matrix.trials,
                        len(matrix.tested), evaluate(matrix, settings=settings).figures)
            )  # fmt: skip
        progress(f"T={seconds:g} {session}")
    # the document has no names: speakers without trials are only counted
    problems = [problem for problem in grid.problems if not problem.startswith("T=")]
    if left_out:
        problems.append(
            f"Tests of fewer than {LEAST_PEOPLE} people are excluded: "
            f"{'; '.join(dict.fromkeys(left_out))}."
        )
    return tuple(rows), problems


def _judge_attributes(
    corpus: ExtractedCorpus, config: AuditConfig
) -> tuple[dict[str, list[AttributeRow]], list[str]]:
    """Judge attributes by cross-validation over the speakers."""
    names = tuple(voice.name for voice in corpus.voices)
    notes: list[str] = []
    requests = config.attributes
    if requests is None:
        requests = tuple(_list_default_attributes(corpus.attributes, names))
    embeddings = [name for name, spec in corpus.specs.items() if spec.kind.pointed]
    if requests and not embeddings:
        notes.append("Attributes need an embedding, which is not among the features.")
    rows: dict[str, list[AttributeRow]] = {}
    for feature in embeddings:
        excerpts = _collect_excerpts(corpus.voices, feature)
        for request in requests:
            attribute = find_attribute(request, corpus.attributes, names)
            # one of two values is enough: both have the same equal error rate
            for value in attribute.values if len(attribute.values) > 2 else attribute.values[:1]:
                has = {who: group == value for who, group in attribute.of.items()}
                try:
                    judgement = judge_value(
                        excerpts, excerpts, has, replicates=config.replicates, seed=config.seed
                    )
                except UsageError as error:  # too few speakers: keep the other values
                    notes.append(f"{value} ({attribute.name}) was not judged: {error}.")
                    continue
                rows.setdefault(attribute.name, []).append(
                    AttributeRow(CLEAR, "ignorant", feature, value, "relaxed", False,
                                 TEST_LENGTHS[0], *judgement)
                )  # fmt: skip
    return rows, notes


def _list_default_attributes(
    tables: Mapping[str, Mapping[str, str]], names: Sequence[str]
) -> Iterator[str]:
    """Return the usual attributes of a table, with numbers split at their median."""
    for column, by_speaker in tables.items():
        if column.lower() not in USUAL_ATTRIBUTES:
            continue
        values = [by_speaker[name] for name in names if name in by_speaker]
        request = column
        with suppress(ValueError):
            if values:
                request = f"{column}<{float(np.median([float(value) for value in values])):g}"
        with suppress(UsageError):  # one value only, or too many
            find_attribute(request, tables, names)
            yield request


def _collect_excerpts(voices: Sequence[SpeakerSpeech], feature: str) -> Excerpts:
    """Return consecutive stretches of each speaker, at most `_EXCERPTS`."""
    units = units_of(TEST_LENGTHS[0])
    rows, owners = [], []
    for voice in voices:
        totals = [
            session[feature].total(i * units, units)
            for session_index, session in enumerate(voice.sessions)
            for i in range(voice.length(session_index) // units)
        ]
        voiced = [total for total in totals if total.any()][:_EXCERPTS]
        rows += voiced
        owners += [voice.name] * len(voiced)
    return Excerpts(np.array(rows), tuple(owners))


def compare_sounds(
    sounds: Sequence[Sequence[Condition | None]], seed: int = 0
) -> SoundDifference | None:
    """Return how often two sessions sound different, for one speaker and for two.

    If sessions of two speakers differ far more often, not only voices but also recordings separate
    people. Return None if no acoustic conditions are known.

    Example:
        >>> office, hall = Condition(bandwidth_hz=8000.0), Condition(bandwidth_hz=3500.0)
        >>> compare_sounds([[office, office], [hall, hall]])
        SoundDifference(same_speaker=0.0, two_speakers=1.0)
    """
    conditions = [(i, sound) for i, voice in enumerate(sounds) for sound in voice if sound]
    if not conditions:
        return None
    sample = np.random.default_rng(seed).permutation(len(conditions))[:_MOST_PAIRED]
    conditions = [conditions[i] for i in sorted(sample.tolist())]
    same, different = list[bool](), list[bool]()
    for (speaker, first), (other, second) in combinations(conditions, 2):
        (same if speaker == other else different).append(bool(list_mismatches(first, second)))
    return SoundDifference(*(float(np.mean(x)) if x else None for x in (same, different)))


def _describe_corpus(
    corpus: ExtractedCorpus,
    enrolled: EnrolledPart,
    exposures: Exposures,
    tests: Sequence[TestRow],
    config: AuditConfig,
) -> dict[str, str]:
    voices = corpus.voices
    lengths = [v.length(i) / 10 for v in voices for i in range(len(v.sessions))]
    several = sum(len(voice.sessions) > 1 for voice in voices)
    source = "the shipped ones" if config.rank_model is None else config.rank_model.name
    networks = ", ".join(
        name + (f" (network {spec.network[:12]})" if spec.network else "")
        for name, spec in corpus.specs.items()
    )
    people = [(t, len(set(exposures.select_length(t).owner.tolist()))) for t in exposures.lengths]
    reported_lengths = [t for t, count in people if count >= LEAST_PEOPLE]
    return {
        "Speech": f"{plural(len(voices), 'speaker')}, {plural(len(lengths), 'session')}, "
        f"{sum(lengths) / 60:.1f} min of speech. {several} with at least two sessions. Median "
        f"session: {np.median(lengths):.0f} s.",
        "Population": f"{exposures.candidates} of {plural(len(voices), 'speaker')} have "
        f"{enrolled.template_seconds:g} s for a template and are enrolled, so evidence has N = "
        f"{exposures.candidates}. {len(exposures.speakers)} of them have other speech and are "
        f"tested. {_describe_sizes(tests)}The crowd to single people out from is "
        f"{crowds.crowd_of(config.among)}.",
        "Attackers": f"Do not know of any protection. They recognise voices by {networks}, and "
        f"weight them by rank models ({source}).",
        "Templates": f"{enrolled.template_seconds:g} s of speech per person, "
        + ("from another session than the tests."
           if enrolled.session == "cross"
           else "from the same session as the tests, which makes a voice easier to recognise."),
        "Lengths": f"{', '.join(f'{seconds:g}' for seconds in reported_lengths)} s of speech, with "
        f"at most {TRIALS} stretches per speaker and length. Ranks and links use "
        f"{plural(TRIALS, 'trial')} per speaker, which overlap if there is less speech."
        + (" Sessions alternate as the template." if enrolled.session == "cross" else ""),
        "Limits": f"95 %, over {config.replicates} resamples of speakers (seed {config.seed}).",
    }  # fmt: skip


def _describe_sizes(tests: Sequence[TestRow]) -> str:
    sizes = []
    for session, where in (("cross", "across sessions"), ("same", "within one")):
        rows = [test for test in tests if test.session == session]
        if rows:
            people = " or ".join(map(str, sorted({test.speakers for test in rows})))
            tested = " or ".join(map(str, sorted({test.tested for test in rows})))
            sizes.append(f"N = {people} {where}, {tested} tested")
    if not sizes:
        return ""
    return (
        "Ranks and links enrol a speaker from every sufficient session, and so have "
        f"{' and '.join(sizes)}. "
    )


def _list_untested(
    enrolled: EnrolledPart, attributes: Mapping[str, object], shortest: float
) -> Iterator[str]:
    if enrolled.session == "same":
        yield (
            "Linking recordings of different days, rooms or devices: every speaker has one session."
        )
    if shortest:
        yield (
            f"Stretches shorter than {shortest:g} s, which are too short for these embeddings. An "
            "attacker with others may use them."
        )
    if not attributes:
        yield (
            "Inference: no table of these recordings has an attribute in which enough speakers "
            "differ (--attributes, --groups)."
        )
    else:
        columns = {name.partition("<")[0].lower() for name in attributes}
        others = [topic for topic in ("health", "mood", "origin", "age") if topic not in columns]
        yield f"Attributes other than {', '.join(attributes)}: {', '.join(others)}."
    yield f"Templates longer than {enrolled.template_seconds:g} s, which identify people better."
    yield "Protected speech, since nothing was anonymised (monitor attack tests an anonymiser)."
    yield from _UNTRIED


def _list_commands(
    name: str, enrolled: EnrolledPart, tests: Sequence[TestRow], config: AuditConfig
) -> tuple[str, ...]:
    lengths = ",".join(f"{seconds:g}" for seconds in dict.fromkeys(row.seconds for row in tests))
    more = f" --features {','.join(config.features)}" if config.features else ""
    model = f" --rank-model {config.rank_model.name}" if config.rank_model else ""
    seed = f" (seed = {config.seed} under [evaluate] in --config FILE)" if config.seed else ""
    return (
        f"monitor score {name} -o scores.npz --session both --lengths {lengths} "
        f"--template-lengths {enrolled.template_seconds:g}{more}{model}",
        f"monitor evaluate scores.npz --figures all "
        f"--among {','.join(map(str, sorted({*CROWDS, config.among})))} "
        f"--replicates {config.replicates}{seed}",
        f"monitor enrol PEOPLE --seconds {enrolled.template_seconds:g}{more} -o us.npz, with "
        "people's other sessions",
        f"monitor replay RECORDING -p us.npz{model or ' --rank-model reference'} --watch SPEAKER, "
        "for the evidence of a recording's first T seconds",
    )


def audit_runs(
    runs: Sequence[tuple[str, Sequence[Event]]], config: AuditConfig = DEFAULTS
) -> Audit:
    """Audit recorded runs of watched speakers, by their readings.

    Raises:
        StoreError: if a run has no watched speaker, or the runs cannot be combined.
        UsageError: if the budget exceeds the bits that calibration supports.
    """
    starts = [find_first(events, RunStart) or RunStart.from_record({}) for _, events in runs]
    evidence = (start.support_bits if start.headline == "evidence" else None for start in starts)
    _check_budget(config, list(evidence))
    features = [tuple(start.features or ()) for start in starts]
    names = sorted({name for names in features for name in names if name in FEATURES})
    features_here = make([name for name in names if ready(name)])
    shortest = _find_shortest_seconds(feature.spec for feature in features_here)
    exposures = measure_runs(runs, [t for t in config.lengths if t >= shortest])
    rows = summarise_lengths(exposures, config.budget, config.replicates, config.seed)
    by_run = ([event for event in events if isinstance(event, Reading)] for _, events in runs)
    readings = [readings[-1] for readings in by_run if readings]
    mixed = sum(bool(list_other_voices(events)) for _, events in runs)
    notes = [
        f"Another voice or channel was detected in {mixed} of {plural(len(runs), 'run')}. Its "
        "speech is excluded."
    ] * bool(mixed)
    notes += _report_short_lengths(rows, min(LEAST_PEOPLE, len(exposures.speakers)))
    notices = (event for _, events in runs for event in events if isinstance(event, NoticeEvent))
    notes += dict.fromkeys(notice.text for notice in notices if notice.level == "warning")
    notes += dict.fromkeys(text for start in starts for text in start.notices or () if text)
    used = [name for name in features[0] if all(name in names for names in features)]
    protected = any(start.protected is not None for start in starts)
    not_tested = (
        *_report_unused_features(used, config.setup),
        "Linkability as an error rate: runs watch one person each and have no impostors. Audit the "
        "recordings themselves for it.",
        "Inference: runs have no attributes of their speakers.",
        *(["The protected side of the runs: test the anonymiser (monitor attack)."] * protected),
        *_UNTRIED,
    )
    speech = sum(reading.speech for reading in readings)
    return Audit(
        runs[0][0] if len(runs) == 1 else f"{len(runs)} runs",
        "runs", _describe_runs(starts, exposures, speech, config), config, exposures, rows,
        conditions=_summarise_conditions(reading.conditions for reading in readings),
        not_tested=not_tested, notes=tuple(notes), commands=("monitor show RUN.jsonl --csv",),
    )  # fmt: skip


def _describe_runs(
    starts: Sequence[RunStart], exposures: Exposures, speech: float, config: AuditConfig
) -> dict[str, str]:
    among = {start.speakers or 0 for start in starts}
    attackers = dict.fromkeys(", ".join(start.features or ()) for start in starts)
    facts = {
        "Speech": f"{plural(len(starts), 'run')} of "
        f"{plural(len(exposures.speakers), 'watched speaker')}, {speech / 60:.1f} min of speech.",
        "Population": f"N = {' or '.join(map(str, sorted(among)))} people enrolled. The crowd to "
        f"single people out from is {crowds.crowd_of(config.among)}.",
        "Attackers": f"Those of the runs, with features {' or '.join(attackers)}.",
        "Templates": ("From another session than the tests."
                      if exposures.session == "cross"
                      else "From the same session in at least one run, which makes a voice easier "
                      "to recognise."),
        "Lengths": f"{', '.join(f'{t:g}' for t in exposures.lengths)} s of speech, at the first "
        "reading of each run with this much.",
        "Limits": f"95 %, over {config.replicates} resamples of watched speakers "
        f"(seed {config.seed})." if len(exposures.speakers) > 1
        else "95 %, from calibration, since one speaker was watched.",
    }  # fmt: skip
    prints = {
        ", ".join(f"{key} {digest[:12]}" for key, digest in (start.fingerprint or {}).items())
        for start in starts
    }
    if any(prints):
        facts["Files"] = f"Templates and rank models: {', '.join(sorted(prints - {''}))}."
    return facts


def audit_attack(results: AttackResults, config: AuditConfig = DEFAULTS) -> Audit:
    """Audit the results of `monitor attack`."""
    settings = results.settings
    rows = [row for method in settings.methods for row in results.main(method)]
    for method in settings.methods:
        best = results.strongest(method)
        if best is not None and best not in rows:
            rows.append(best)
    trained = any(ATTACKERS[name].trains for name in settings.attackers)
    background = settings.background
    facts = {
        "Speech": f"{plural(settings.readers, 'reader')} of {settings.corpus}, protected by "
        + (", ".join(format_plain_method(m) for m in settings.methods if m != CLEAR) or "nothing")
        + ".",
        "Population": f"N = {max(row.speakers for row in results.rows)} readers, each compared "
        "with all.",
        "Attackers": f"{', '.join(settings.attackers)}. They recognise voices by "
        f"{', '.join(settings.features)}."
        + (f" Their models use {plural(background, 'other reader')}." if background else ""),
        "Templates": f"{settings.template_seconds:g} s of speech, "
        + ("from another session." if settings.session == "cross" else "from the same session, "
           "which makes a voice easier to recognise."),
        "Lengths": f"Trials of {settings.seconds:g} s of speech.",
        "Limits": "95 %, over resamples of readers.",
    }  # fmt: skip
    not_tested = (
        *(["Inference: no attributes were requested (monitor attack --attributes)."]
          * (not results.attributes)),
        "Trials of other lengths.",
        *(_TRAINED_MORE if line == _STRONGER and trained else line for line in _UNTRIED),
    )  # fmt: skip
    return Audit(
        settings.corpus, "attack", facts, config,
        tests=tuple(_make_test(row, results) for row in rows), attributes=results.attributes,
        not_tested=not_tested, notes=(*results.notes, *list_caveats(results)),
        problems=results.problems,
        commands=("monitor attack with the same options; its folder has results.json, index.html",),
    )  # fmt: skip


def _make_test(row: AttackRow, results: AttackResults) -> TestRow:
    settings = results.settings
    segment_seconds = settings.template_seconds / max(settings.main_segments, 1)
    undertrained = ATTACKERS[row.attacker].trains and row.method in results.undertrained
    return TestRow(
        row.method, row.attacker + " (undertrained)" * undertrained,
        row.feature + ", max scoring" * (row.scoring == "max"), settings.seconds,
        segment_seconds * row.segments, settings.session, row.speakers, row.trials, row.speakers,
        row.figures,
    )  # fmt: skip
