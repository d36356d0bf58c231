"""monitor score: score every stretch of a corpus against every speaker, in one file."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from monitor.cli.help import HelpCommand
from monitor.cli.inputs import (
    check_model,
    check_two,
    frames_option,
    keep_frames,
    load_speaker_model,
    plan_of,
)
from monitor.cli.options import (
    Features,
    JobOptions,
    Numbers,
    argument,
    check_outputs,
    feature_setup,
    group,
    option,
    progress_over,
    say,
    setting,
    shared,
    with_options,
)
from monitor.cli.transcript_options import CorpusOptions
from monitor.errors import CorpusError, UsageError
from monitor.phrases import plural
from monitor.run import INCOMPLETE

if TYPE_CHECKING:
    from monitor.corpus.recordings import Corpus
    from monitor.corpus.trials import TrialLists
    from monitor.kinds import FeatureSpec
    from monitor.lab.evaluation.input.groups import Attribute
    from monitor.lab.evaluation.input.score_file import ScoreCell
    from monitor.lab.normalisation import ScoreNormalisation
    from monitor.lab.scoring import EnrolledGrid, ScoreGrid
    from monitor.population.population import Population
    from monitor.population.rank_model import RankModels
    from monitor.training.voices import SpeakerSpeech
    from monitor.virtual_files import Readable

    Grid: TypeAlias = ScoreGrid | EnrolledGrid

LENGTHS = (10.0,)
SECONDS = 120.0  # seconds of each speaker's enrolment in a folder with lists
_ALL = 36_000.0  # seconds, more than all utterances in enrolls, as in the challenge


@dataclass(frozen=True, slots=True)
class ScoreOptions:
    """Options of the command."""

    corpus: Path = argument("FRAMES|DIR|MANIFEST")
    output: Path = option("-o, --output FILE.npz", "Output file (mode 0600).", required=True)
    replace: bool = option("--replace", "Overwrite -o if it exists.")
    store: str | None = option(
        "-p, --population FILE",
        "Templates to compare with, from `monitor enrol`, such as those of clear speech for "
        "anonymised DIR. [default: templates from DIR itself]",
    )
    rank_model_file: Path | None = option(
        "--rank-model FILE",
        "Rank model for the joint score, from `monitor calibrate -o model.npz`. [default: that of "
        "-p, otherwise the shipped one]",
    )
    features: tuple[str, ...] | None = option(
        "--features",
        "Features to score. [default: all available, and calibrated with -p]",
        type=Features(),
    )
    frames: Path | None = shared(frames_option)
    corpus_options: CorpusOptions = group(CorpusOptions, "Corpus")
    lengths: tuple[float, ...] | None = option(
        "--lengths",
        "Test lengths T in speech seconds. [default: 10, or whole utterances with a list of "
        "trials]",
        type=Numbers(),
    )
    template_lengths: tuple[float, ...] | None = option(
        "--template-lengths",
        "Template lengths D in speech seconds. [default: 30, or the templates' own with -p]",
        type=Numbers(),
    )
    session: str | None = option(
        "--session",
        "Whether tests and templates are of different sessions. [default: cross if speakers have "
        "two sessions, otherwise same, or as enrolled with -p]",
        type=click.Choice(("cross", "same", "both")),
    )
    scoring: str = option(
        "--scoring",
        "Cosine of embeddings with the mean of a template, or with its nearest 5 s (FEATURE-max "
        "in the file).",
        type=click.Choice(("average", "max", "both")),
        default="average",
    )
    normalise: str | None = option(
        "--normalise",
        "Also score speaker embeddings relative to background speakers (FEATURE-asnorm in the "
        "file): z-norm, t-norm, s-norm or adaptive s-norm.",
        type=click.Choice(("z", "t", "s", "as")),
    )
    cohort: Path | None = setting(
        "cohort FILE", "Background speakers, from `monitor enrol`. [default: the shipped ones]"
    )
    trials: int = setting(
        "trials",
        "Tests per speaker and length, spread over the speech. With -p, every stretch is a test.",
        minimum=1,
        default=20,
    )
    voiceprivacy: bool = option(
        "--voiceprivacy",
        "Also print the EERs of a VoicePrivacy folder's trials, in the format of the challenge's "
        "results, with all impostors. With --normalise, those of normalised scores.",
    )
    groups: Path | None = option(
        "--groups FILE",
        "Group of each speaker for `evaluate --group-by`, as Kaldi's spk2gender or a table. "
        "[default: gender or sex in MANIFEST]",
    )
    group_by: str | None = setting("group-by COLUMN", "Column of the --groups table.")
    allow_overlap: bool = setting("allow-overlap", "With -p, also score enrolled audio.")
    workers: JobOptions = group(JobOptions, "Processes")


@click.command("score", cls=HelpCommand, short_help="Compare every trial with every speaker.")
@with_options(ScoreOptions)
def command(options: ScoreOptions) -> int:
    """Score speech of DIR, MANIFEST or FRAMES against every speaker, for `monitor evaluate`.

    \b
    monitor score voices/ -o scores.npz
    monitor score frames -o scores.npz --lengths 1,3,10,30 --template-lengths 30,100

    \b
    monitor score anonymised/ -p clear.npz -o scores.npz    templates of clear speech
    monitor score libri_dev -o scores.npz --voiceprivacy    VoicePrivacy's trials

    Each speaker's speech is cut into tests of T and templates of D speech seconds that do not
    overlap (similarity rank disclosure, eq. 6). With -p it is cut into consecutive tests of T. The
    file has one matrix of trials x speakers per feature, and one for all together (joint), for
    every T and D. It also lists speakers, sessions and groups. Audio is processed once. FRAMES, a
    folder written with --frames, replace audio. Broken files are skipped and named (exit status 4).

    In a VoicePrivacy folder (wav.scp, utt2spk, trials), the utterances in `trials` are the tests.
    Templates come from -p, or from `enrolls` there or in the folder beside it (libri_dev_enrolls).
    Excluded speakers are named, with the reason.

    Scores show which voices are alike, so keep the file private.
    """
    from monitor.corpus.trials import read_trial_lists
    from monitor.features.registry import caveats
    from monitor.lab.evaluation.input.score_file import write_score_file
    from monitor.population.population import Population
    from monitor.sources.registry import provenance_of
    from monitor.stream.notices import session_of

    _check_options(options)
    population = None if options.store is None else Population.load(options.store)
    if population is not None:
        check_model(feature_setup().speaker, population, options.store)
    rank_models = _rank_models(options, population)
    everything = corpus = options.corpus_options.find(options.corpus)
    lists = read_trial_lists(options.corpus)
    if lists is None and options.voiceprivacy:
        raise UsageError(f"{options.corpus.name} has no list of trials: leave out --voiceprivacy")
    if lists is not None:
        if options.session is not None:
            raise UsageError("a list of trials sets the sessions: leave out --session")
        corpus = lists.trials(everything, impostors=options.voiceprivacy)
        say(*(f"monitor: note: {line}" for line in lists.notes(everything)))
    attribute = _groups(options, corpus)
    files = [recording.path for recording in corpus.recordings]
    say(*plan_of(corpus))
    normalisation = _normalisation(options, corpus.speakers, _list_specs(options, files))
    if lists is not None:
        population = _listed(options, lists, everything, population)
    session = options.session
    if population is None:
        check_two(corpus)
    else:  # before anything is extracted
        parts = map(provenance_of, files)
        session = session_of(population, parts, allow_overlap=options.allow_overlap)
    load_speaker_model(options.features, files)
    voices, specs, missing = _listen(options, corpus)
    normalisation = normalisation or _normalisation(options, corpus.speakers, specs)
    tests: Sequence[float | None] = options.lengths or ((None,) if lists is not None else LENGTHS)
    if lists is not None and population is not None and options.voiceprivacy:
        table = _format_eers(options, voices, specs, normalisation)
        voices = _without_impostors(voices, lists)
    grid = _grid(options, voices, specs, rank_models, population, tests, session, normalisation)
    cells = _score_cells(grid)
    write_score_file(options.output, cells, attribute)
    if options.voiceprivacy:
        click.echo(table, nl=False)
    say(*(f"monitor: note: {note}" for note in (*grid.problems, *caveats(specs))))
    if None in tests:
        say("monitor: note: each trial is one unchanged utterance, and T is the median length")
    say(*map(_describe, cells))
    say(
        f"{options.output} is biometric: keep it private. To measure it, use monitor evaluate "
        f"{options.output}"
    )
    return INCOMPLETE if missing else 0


def _score_cells(grid: Grid) -> list[ScoreCell]:
    pending: list[Any] = grid.cells()
    cells: list[ScoreCell] = []
    with progress_over(len(pending), "scoring") as step:
        for session, test, template, plan in pending:
            cells.append(grid.score(session, test, template, plan))
            step(f"T={test:g} D={template:g} {session}", 1)
    return cells


def _listen(
    options: ScoreOptions, corpus: Corpus
) -> tuple[Sequence[SpeakerSpeech], Mapping[str, FeatureSpec], Sequence[str]]:
    """Return the speech of a corpus, the specs of its features, and one line per skipped file."""
    if options.frames is not None:
        corpus = keep_frames(
            corpus, options.corpus, options.frames, options.features, options.workers
        )
    voices, specs, missing = _extract(options, corpus, options.features, "listening")
    if not voices:
        raise CorpusError("no recording could be processed: see the skipped files")
    return voices, specs, missing


def _extract(
    options: ScoreOptions, corpus: Corpus, features: Sequence[str] | None, label: str
) -> tuple[Sequence[SpeakerSpeech], Mapping[str, FeatureSpec], Sequence[str]]:
    from monitor.training.voices import collect

    files = [recording.path for recording in corpus]
    with progress_over(len(files), label) as step:
        voices, specs, missing = collect(
            corpus, features=features, progress=lambda recording: step(recording.speaker, 1),
            jobs=options.workers.for_recordings(files), setup=feature_setup(),
        )  # fmt: skip
    say(*(f"monitor: skipped: {problem}" for problem in missing))
    return voices, specs, missing


def _check_options(options: ScoreOptions) -> None:
    from monitor.features.registry import make
    from monitor.sinks.jsonl import refuse_overwrite

    if options.output.suffix.lower() != ".npz":
        raise UsageError(f"-o {options.output.name}: let the name end in .npz")
    if options.voiceprivacy and options.store is not None:
        raise UsageError("--voiceprivacy enrols the speech in enrolls: leave out -p")
    if options.voiceprivacy and options.features is not None:
        extractors = make(options.features, feature_setup())
        if not any(extractor.spec.kind.pointed for extractor in extractors):
            raise UsageError("--voiceprivacy needs a speaker embedding: add voice to --features")
    if options.cohort is not None and options.normalise is None:
        raise UsageError("cohort needs --normalise")
    if options.store is None and options.allow_overlap:
        raise UsageError("allow-overlap needs -p")
    if options.store is not None and options.session is not None:
        raise UsageError("with -p the enrolment sets the session: leave out --session")
    check_outputs([options.output], replace=options.replace)
    refuse_overwrite(
        options.output,
        [options.corpus, options.store, options.rank_model_file, options.groups, options.cohort],
    )


def _rank_models(options: ScoreOptions, population: Population | None) -> RankModels:
    from monitor.population.population import Population, load_rank_models

    if options.rank_model_file is not None:
        return load_rank_models(options.rank_model_file)[0]
    if population is not None and tuple(population.rank_models):
        return population.rank_models
    return Population.reference().rank_models


def _groups(options: ScoreOptions, corpus: Corpus) -> Attribute | None:
    from monitor.lab.scoring import groups_of

    try:
        return groups_of(
            options.corpus, corpus.speakers, options.groups, options.group_by, corpus.attributes
        )
    except UsageError as error:
        if options.groups is not None or options.group_by is not None:
            raise
        say(f"monitor: note: no groups: {error}")
        return None


def _listed(
    options: ScoreOptions, lists: TrialLists, corpus: Corpus, population: Population | None
) -> Population:
    """Return the listed speakers' templates; enrol them if there is no population."""
    from monitor.cli.inputs import own_templates

    if population is None:
        longest = _ALL if options.voiceprivacy else SECONDS
        seconds = max(options.template_lengths or (longest,))
        population = own_templates(
            options.corpus, lists, corpus, options.features, seconds, options.workers
        )
    absent = [name for name in lists.speakers if name not in population.names]
    for name in absent:
        say(f"monitor: note: {name} is excluded: in {', '.join(lists.names)}, but not enrolled")
    return population.chosen(name for name in lists.speakers if name not in absent)


def _format_eers(
    options: ScoreOptions, voices: Sequence[SpeakerSpeech], specs: Mapping[str, FeatureSpec],
    normalisation: ScoreNormalisation | None,
) -> str:  # fmt: skip
    """Format the EERs of the listed trials by the speaker embedding, as in the challenge.

    A template is the mean of a speaker's utterances. Anonymised trials are compared with the
    original enrolment too, if it is there.
    """
    import numpy as np

    from monitor.lab.evaluation.listed import ListedTrials
    from monitor.lab.evaluation.voiceprivacy import EVALUATOR, ChallengeRow, format_rows
    from monitor.lab.scoring import average_by_speaker, embed_utterances

    listed = ListedTrials.from_folder(options.corpus)
    embeddings = [name for name, spec in specs.items() if spec.kind.pointed]
    if not embeddings:
        raise UsageError("--voiceprivacy needs a speaker embedding: add voice to --features")
    name, similarity = embeddings[-1], specs[embeddings[-1]].kind.similarity()
    tests, spoken_by = embed_utterances(voices, name)
    rows: list[ChallengeRow] = []
    for sides, folder in listed.enrolments.items():
        enrolled = _collect_enrolment(options, folder, name, listed.lists.speakers)
        templates = average_by_speaker(*embed_utterances(enrolled, name))
        say(*(f"monitor: {folder.name}: {line}" for line in listed.notes(templates, tests)))
        both = np.stack([*tests.values()]), np.stack([*templates.values()])
        scores = (
            normalisation.score(name, *both, similarity) if normalisation is not None
            else similarity.score(similarity.prepare(both[1]), both[0])
        )  # fmt: skip
        columns, lines = ({key: i for i, key in enumerate(of)} for of in (templates, tests))
        rows += listed.rows(EVALUATOR, sides, scores, columns, lines, spoken_by)
    return format_rows(rows)


def _collect_enrolment(
    options: ScoreOptions, folder: Path, feature: str, speakers: Collection[str]
) -> Sequence[SpeakerSpeech]:
    """Extract the embeddings of the listed speakers' enrolment."""
    from monitor.cli.inputs import select_enrolment
    from monitor.corpus.folders import find

    corpus = select_enrolment(folder, find(folder))
    corpus = replace(corpus, recordings=tuple(r for r in corpus if r.speaker in speakers))
    return _extract(options, corpus, [feature], f"embedding {folder.name}")[0]


def _without_impostors(
    voices: Sequence[SpeakerSpeech], lists: TrialLists
) -> Sequence[SpeakerSpeech]:
    from monitor.training.voices import SpeakerSpeech

    targets = []
    for voice in voices:
        indices = [i for i, name in enumerate(voice.session_names) if name in lists.spoken_by]
        if indices:
            sessions = tuple(voice.sessions[i] for i in indices)
            names = tuple(voice.session_names[i] for i in indices)
            targets.append(SpeakerSpeech(voice.name, sessions, session_names=names))
    return targets


def _list_specs(options: ScoreOptions, files: Sequence[Readable]) -> dict[str, FeatureSpec]:
    """List the specs of audio features, if normalising; empty for frames, which have specs."""
    from monitor.features.registry import defaults, make
    from monitor.sources.registry import is_frames

    if options.normalise is None or any(map(is_frames, files)):
        return {}
    setup = feature_setup()
    features = make(options.features or defaults(setup=setup), setup)
    return {feature.spec.name: feature.spec for feature in features}


def _normalisation(
    options: ScoreOptions, speakers: Collection[str], specs: Mapping[str, FeatureSpec]
) -> ScoreNormalisation | None:
    from monitor.lab.normalisation import ScoreNormalisation

    if options.normalise is None or not specs:
        return None
    return ScoreNormalisation.load(options.normalise, options.cohort, specs, speakers)


def _grid(
    options: ScoreOptions, voices: Sequence[SpeakerSpeech], specs: Mapping[str, FeatureSpec],
    rank_models: RankModels, population: Population | None, tests: Sequence[float | None],
    session: str | None, normalisation: ScoreNormalisation | None,
) -> Grid:  # fmt: skip
    """Set up the comparison with a population, or of the corpus with itself."""
    from monitor.lab.evaluation.input.enrolments import SCORINGS
    from monitor.lab.scoring import EnrolledGrid, ScoreGrid, largest

    scorings = SCORINGS if options.scoring == "both" else (options.scoring,)
    if population is not None:
        available = [name for name in specs if name in population.features]
        features = options.features or largest(rank_models, available)
        templates = options.template_lengths or (None,)
        return EnrolledGrid(
            voices, population, features, rank_models, tests, templates, session or "cross",
            scorings, normalisation=normalisation,
        )  # fmt: skip
    several = any(len(voice.sessions) > 1 for voice in voices)
    session = session or ("cross" if several else "same")
    sessions = ("same", "cross") if session == "both" else (session,)
    return ScoreGrid(
        voices, specs, rank_models, options.lengths or LENGTHS, options.template_lengths or (30.0,),
        sessions, scorings, options.trials, normalisation=normalisation,
    )  # fmt: skip


def _describe(cell: ScoreCell) -> str:
    shared = cell.matrix
    return (
        f"T={cell.test_seconds:g} D={cell.template_seconds:g} {cell.session}: "
        f"{plural(shared.trials, 'trial')} of {plural(len(shared.tested), 'speaker')} against "
        f"{shared.population}; {' '.join(cell.matrices)}"
    )
