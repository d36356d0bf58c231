"""monitor score: what every stretch of a corpus scores against every speaker, in one file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from monitor.cli.help import Command
from monitor.cli.options import (
    Features,
    JobOptions,
    Numbers,
    argument,
    check_outputs,
    feature_setup,
    given,
    group,
    option,
    say,
)
from monitor.cli.transcript_options import CorpusOptions
from monitor.phrases import plural

if TYPE_CHECKING:
    from monitor.lab.evaluation.input.score_file import ScoreCell

_FILE = click.Path(path_type=Path)
LENGTHS = (10.0,)
SECONDS = 120.0
"""Of each speaker's enrolment in a folder with lists."""


@dataclass(frozen=True, slots=True)
class ScoreOptions:
    """What was asked for."""

    corpus: Path = argument("FRAMES|DIR|MANIFEST")
    output: Path = option("-o, --output FILE.npz", "The file to write (mode 0600).", required=True)
    replace: bool = option("--replace", "Overwrite -o if it exists.")
    store: str | None = option(
        "-p, --population FILE",
        "Compare with these templates, from `monitor enrol`, such as those of clear speech where "
        "DIR holds anonymised speech. [default: templates from DIR itself]",
    )
    rank_model_file: Path | None = option(
        "--rank-model FILE",
        "What weighs the features for the joint score, from `monitor calibrate -o model.npz`. "
        "[default: what -p holds, else the shipped rank model]",
    )
    features: tuple[str, ...] | None = option(
        "--features",
        "What to score. [default: all that is there; with -p, all that is calibrated too]",
        type=Features(),
    )
    hearing: CorpusOptions = group(CorpusOptions, "Corpus")
    lengths: tuple[float, ...] | None = option(
        "--lengths",
        "Test lengths T, speech seconds. [default: 10; of a folder with a list of trials each "
        "utterance as it is]",
        type=Numbers(),
    )
    template_lengths: tuple[float, ...] | None = option(
        "--template-lengths",
        "Template lengths D, speech seconds. [default: 30; with -p, the templates' own]",
        type=Numbers(),
    )
    session: str | None = option(
        "--session",
        "Whether tests and templates are of different sessions, or parts of one. [default: cross "
        "where speakers have two sessions, else same; with -p, as it is]",
        type=click.Choice(("cross", "same", "both")),
    )
    scoring: str = option(
        "--scoring",
        "Embeddings: cosine with the mean of a template, or with the nearest 5 s of it "
        "(FEATURE-max in the file).",
        type=click.Choice(("average", "max", "both")),
        default="average",
    )
    trials: int = option(
        "--trials",
        "Tests of each speaker at each length, spread over the speech. With -p every stretch is "
        "one.",
        least=1,
        default=20,
    )
    groups: Path | None = option(
        "--groups FILE",
        "A group of each speaker, kept for `evaluate --group-by`: Kaldi's spk2gender, or a table. "
        "[default: gender or sex in MANIFEST]",
    )
    group_by: str | None = option("--group-by COLUMN", "The column of that table.")
    allow_overlap: bool = option("--allow-overlap", "With -p: score what was enrolled, too.")
    workers: JobOptions = group(JobOptions, "Processes")


@click.command("score", cls=Command, short_help="Compare every trial with every speaker.")
@given(ScoreOptions)
def command(asked: ScoreOptions) -> int:
    """Score stretches of speech of DIR, MANIFEST or FRAMES against every speaker, for evaluate.

    \b
    monitor score voices/ -o scores.npz
    monitor evaluate scores.npz
    monitor score frames -o scores.npz --lengths 1,3,10,30 --template-lengths 30,100
    monitor score anonymised/ -p clear.npz -o scores.npz    templates of the clear speech
    monitor score libri_dev -o scores.npz                   as its enrolls and trials have it
    monitor score libri_dev_trials_f_mine -p clear.npz -o scores.npz

    Each speaker's speech is cut into tests of T and templates of D speech seconds that do not
    overlap (similarity rank disclosure, eq. 6); with -p into consecutive tests of T. There is a
    matrix of trials x speakers for each feature and for all together (joint), for every T and D,
    in one file with who spoke, sessions and groups. Speech is heard once; FRAMES, from
    `monitor hear`, are not heard again. A file that is broken is named and skipped (exit status 4).

    In a folder of VoicePrivacy's (wav.scp, utt2spk, trials) the utterances that `trials` lists are
    the tests; templates are -p, or made of what `enrolls` lists there or in the folder beside it
    (libri_dev_enrolls). Who is left out is named, with the reason.

    Scores say who sounds like whom: keep the file private.
    """
    from monitor.cli.enrol import lists_of, own_templates
    from monitor.cli.inputs import check_model, check_two, load_speaker_model, plan_of
    from monitor.cli.options import progress_over
    from monitor.corpus.finding import find
    from monitor.errors import CorpusError, UsageError
    from monitor.features.registry import caveats
    from monitor.lab.evaluation.input.labels import SCORINGS
    from monitor.lab.evaluation.input.score_file import write_score_file
    from monitor.lab.scoring import EnrolledGrid, ScoreGrid, groups_of, largest
    from monitor.population.population import Population, load_rank_models
    from monitor.run.status import INCOMPLETE
    from monitor.sinks.jsonl import refuse_overwrite
    from monitor.sources.registry import provenance_of
    from monitor.stream.notices import session_of
    from monitor.training.voices import collect

    session = asked.session
    if asked.output.suffix.lower() != ".npz":
        raise UsageError(f"-o {asked.output.name}: let the name end in .npz")
    if asked.store is None and asked.allow_overlap:
        raise UsageError("--allow-overlap goes with -p")
    if asked.store is not None and session is not None:
        raise UsageError("--session goes without -p: what was enrolled says which it is")
    check_outputs([asked.output], replace=asked.replace)
    refuse_overwrite(asked.output, [asked.corpus, asked.store, asked.rank_model_file, asked.groups])
    population = None if asked.store is None else Population.load(asked.store)
    if population is not None:
        check_model(feature_setup().speaker, population, asked.store)
    if asked.rank_model_file is not None:
        rank_models, _ = load_rank_models(asked.rank_model_file)
    elif population is not None and tuple(population.rank_models):
        rank_models = population.rank_models
    else:
        rank_models = Population.reference().rank_models
    found = asked.hearing.of(find(asked.corpus))
    lists = lists_of(asked.corpus)
    whole = lists is not None and asked.lengths is None
    if lists is not None:
        if session is not None:
            raise UsageError("--session goes without a list of trials, which says what is compared")
        everything, found = found, lists.trials(found)
        for line in lists.notes(everything):
            say(f"monitor: note: {line}")
    try:
        attribute = groups_of(asked.corpus, found.speakers, asked.groups, asked.group_by)
    except UsageError as error:
        if asked.groups is not None or asked.group_by is not None:
            raise
        attribute = None  # nobody asked
        say(f"monitor: note: no groups: {error}")
    files = [recording.path for recording in found.recordings]
    for line in plan_of(found):
        say(line)
    if lists is not None and population is None:
        seconds = max(asked.template_lengths or (SECONDS,))
        population = own_templates(
            asked.corpus, lists, everything, asked.features, seconds, asked.workers
        )
    if lists is not None and population is not None:
        absent = [name for name in lists.speakers if name not in population.names]
        for name in absent:
            say(f"monitor: note: {name}: in {', '.join(lists.names)}, but not enrolled: left out")
        population = population.chosen(name for name in lists.speakers if name not in absent)
    if population is None:
        check_two(found)
    else:  # before anything is heard
        parts = map(provenance_of, files)
        session = session_of(population, parts, allow_overlap=asked.allow_overlap)
    load_speaker_model(asked.features, files)
    with progress_over(len(found.recordings), "listening") as step:
        voices, specs, missing = collect(
            found,
            features=asked.features,
            progress=lambda r: step(r.speaker, 1),
            jobs=asked.workers.for_recordings(files),
            setup=feature_setup(),
        )
    for problem in missing:
        say(f"monitor: skipped: {problem}")
    if not voices:
        raise CorpusError("nothing of this could be heard: see what was skipped")
    scorings = SCORINGS if asked.scoring == "both" else (asked.scoring,)
    grid: ScoreGrid | EnrolledGrid
    if population is not None:
        there = [name for name in specs if name in population.features]
        chosen, lengths_of = (
            asked.features or largest(rank_models, there),
            asked.template_lengths or (None,),
        )
        tests = (None,) if whole else asked.lengths or LENGTHS
        grid = EnrolledGrid(
            voices, population, chosen, rank_models, tests, lengths_of, session or "cross", scorings
        )
    else:
        several = any(len(voice.sessions) > 1 for voice in voices)
        usual = "cross" if several else "same"
        kinds = ("same", "cross") if session == "both" else (session or usual,)
        grid = ScoreGrid(
            voices,
            specs,
            rank_models,
            asked.lengths or LENGTHS,
            asked.template_lengths or (30.0,),
            kinds,
            scorings,
            asked.trials,
        )
    todo: list[Any] = grid.cells()
    cells = []
    with progress_over(len(todo), "scoring") as step:
        for cell in todo:
            cells.append(grid.score(*cell))
            step(f"T={cell[1]:g} D={cell[2]:g} {cell[0]}", 1)
    write_score_file(asked.output, cells, attribute)
    for note in (*grid.problems, *caveats(specs)):
        say(f"monitor: note: {note}")
    if whole:
        say("monitor: note: each trial is one utterance as it is; T is the length in the middle")
    for cell in cells:
        say(_told(cell))
    say(
        f"{asked.output} is biometric: keep it private; to measure it: monitor evaluate "
        f"{asked.output}"
    )
    return INCOMPLETE if missing else 0


def _told(cell: ScoreCell) -> str:
    """A line about a cell."""
    shared = cell.matrix
    return (
        f"T={cell.test_seconds:g} D={cell.template_seconds:g} {cell.session}: "
        f"{plural(shared.trials, 'trial')} of {plural(len(shared.tested), 'speaker')} against "
        f"{shared.population}; {' '.join(cell.matrices)}"
    )
