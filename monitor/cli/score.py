"""monitor score: what every stretch of a corpus scores against every speaker, in one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from monitor.cli.options import (
    Features,
    Numbers,
    check_output,
    ecapa_option,
    jobs_option,
    processes,
    say,
    scheduler_option,
    speaker_model_option,
)
from monitor.cli.transcript_options import in_transcript_option, with_speaker, word_list_option
from monitor.phrases import plural

if TYPE_CHECKING:
    from monitor.evaluation.input.score_file import ScoreCell

_FILE = click.Path(path_type=Path)
LENGTHS = (10.0,)
SECONDS = 120.0
"""Of each speaker's enrolment in a folder with lists."""


@click.command("score", short_help="Score a corpus: trials x speakers, for evaluate.")
@click.argument("corpus", type=_FILE, metavar="FRAMES|DIR|MANIFEST")
@click.option(
    "-o", "--output", required=True, type=_FILE, metavar="FILE.npz",
    help="The file to write (mode 0600).",
)  # fmt: skip
@click.option("--replace", is_flag=True, help="Overwrite -o if it exists.")
@click.option(
    "-p",
    "--population",
    "store",
    metavar="FILE",
    help="Compare with these templates, from `monitor enroll`, such as those of clear speech where "
    "DIR holds anonymised speech. [default: templates from DIR itself]",
)
@click.option(
    "--rank-model",
    "rank_model_file",
    type=_FILE,
    metavar="FILE",
    help="What weighs the features for the joint score, from `monitor calibrate -o model.npz`. "
    "[default: what -p holds, else the shipped rank model]",
)
@click.option(
    "--features",
    type=Features(),
    help="What to score. [default: all that is there; with -p, all that is calibrated too]",
)
@ecapa_option
@speaker_model_option
@in_transcript_option
@word_list_option
@click.option(
    "--lengths",
    type=Numbers(),
    help="Test lengths T, speech seconds. [default: 10; of a folder with a list of trials each "
    "utterance as it is]",
)
@click.option(
    "--template-lengths",
    type=Numbers(),
    help="Template lengths D, speech seconds. [default: 30; with -p, the templates' own]",
)
@click.option(
    "--session",
    type=click.Choice(("cross", "same", "both")),
    help="Whether tests and templates are of different sessions, or parts of one. [default: cross "
    "where speakers have two sessions, else same; with -p, as it is]",
)
@click.option(
    "--scoring",
    type=click.Choice(("average", "max", "both")),
    default="average",
    show_default=True,
    help="Embeddings: cosine with the mean of a template, or with the nearest 5 s of it "
    "(FEATURE-max in the file).",
)
@click.option(
    "--trials",
    default=20,
    show_default=True,
    type=click.IntRange(min=1),
    help="Tests of each speaker at each length, spread over the speech. With -p every stretch is "
    "one.",
)
@click.option(
    "--groups",
    type=_FILE,
    metavar="FILE",
    help="A group of each speaker, kept for `evaluate --group-by`: Kaldi's spk2gender, or a table. "
    "[default: gender or sex in MANIFEST]",
)
@click.option("--group-by", metavar="COLUMN", help="The column of that table.")
@click.option("--allow-overlap", is_flag=True, help="With -p: score what was enrolled, too.")
@jobs_option
@scheduler_option
def command(
    corpus: Path,
    output: Path,
    replace: bool,
    store: str | None,
    rank_model_file: Path | None,
    features: tuple[str, ...] | None,
    speaker_in_transcript: str | None,
    lengths: tuple[float, ...] | None,
    template_lengths: tuple[float, ...] | None,
    session: str | None,
    scoring: str,
    trials: int,
    groups: Path | None,
    group_by: str | None,
    allow_overlap: bool,
    jobs: int | None,
) -> int:
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
    from monitor.cli.enroll import lists_of, own_templates
    from monitor.cli.inputs import check_model, load_identity, plan_of
    from monitor.cli.options import progress_over
    from monitor.corpus.finding import find
    from monitor.errors import UsageError
    from monitor.evaluation.input.labels import SCORINGS
    from monitor.evaluation.input.score_file import write_score_file
    from monitor.features.registry import caveats
    from monitor.population.population import Population, load_rank_models
    from monitor.run.status import INCOMPLETE
    from monitor.sinks.jsonl import refuse_overwrite
    from monitor.sources.provenance import provenance_of
    from monitor.stream.notices import session_of
    from monitor.training.scoring import EnrolledGrid, ScoreGrid, groups_of, largest
    from monitor.training.voices import collect

    if output.suffix.lower() != ".npz":
        raise UsageError(f"-o {output.name}: let the name end in .npz")
    if store is None and allow_overlap:
        raise UsageError("--allow-overlap goes with -p")
    if store is not None and session is not None:
        raise UsageError("--session goes without -p: what was enrolled says which it is")
    if output.exists() and not replace:
        raise UsageError(f"{output} exists; use --replace to overwrite it")
    check_output(output)
    refuse_overwrite(output, [corpus, store, rank_model_file, groups])
    population = None if store is None else Population.load(store)
    if population is not None:
        check_model(population, store)
    if rank_model_file is not None:
        rank_models, _ = load_rank_models(rank_model_file)
    elif population is not None and tuple(population.rank_models):
        rank_models = population.rank_models
    else:
        rank_models = Population.reference().rank_models
    found = with_speaker(find(corpus), speaker_in_transcript)
    lists = lists_of(corpus)
    whole = lists is not None and lengths is None
    if lists is not None:
        if session is not None:
            raise UsageError("--session goes without a list of trials, which says what is compared")
        everything, found = found, lists.trials(found)
        for line in lists.notes(everything):
            say(f"monitor: note: {line}")
    try:
        attribute = groups_of(corpus, found.speakers, groups, group_by)
    except UsageError as error:
        if groups is not None or group_by is not None:
            raise
        attribute = None  # nobody asked
        say(f"monitor: note: no groups: {error}")
    files = [recording.path for recording in found.recordings]
    for line in plan_of(found):
        say(line)
    if lists is not None and population is None:
        seconds = max(template_lengths or (SECONDS,))
        population = own_templates(corpus, lists, everything, features, seconds, jobs)
    if lists is not None and population is not None:
        absent = [name for name in lists.speakers if name not in population.names]
        for name in absent:
            say(f"monitor: note: {name}: in {', '.join(lists.names)}, but not enrolled: left out")
        population = population.chosen(name for name in lists.speakers if name not in absent)
    if population is not None:  # before anything is heard
        parts = map(provenance_of, files)
        session = session_of(population, parts, allow_overlap=allow_overlap)
    load_identity(features, files)
    with progress_over(len(found.recordings), "listening") as step:
        voices, specs, missing = collect(
            found,
            features=features,
            progress=lambda r: step(r.speaker, 1),
            jobs=processes(jobs, files),
        )
    scorings = SCORINGS if scoring == "both" else (scoring,)
    grid: ScoreGrid | EnrolledGrid
    if population is not None:
        there = [name for name in specs if name in population.features]
        chosen, lengths_of = features or largest(rank_models, there), template_lengths or (None,)
        tests = (None,) if whole else lengths or LENGTHS
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
            lengths or LENGTHS,
            template_lengths or (30.0,),
            kinds,
            scorings,
            trials,
        )
    todo: list[Any] = grid.cells()
    cells = []
    with progress_over(len(todo), "scoring") as step:
        for cell in todo:
            cells.append(grid.score(*cell))
            step(f"T={cell[1]:g} D={cell[2]:g} {cell[0]}", 1)
    write_score_file(output, cells, attribute)
    for problem in missing:
        say(f"monitor: skipped: {problem}")
    for note in (*grid.problems, *caveats(specs)):
        say(f"monitor: note: {note}")
    if whole:
        say("monitor: note: each trial is one utterance as it is; T is the length in the middle")
    for cell in cells:
        say(_told(cell))
    say(f"{output} is biometric: keep it private; to measure it: monitor evaluate {output}")
    return INCOMPLETE if missing else 0


def _told(cell: ScoreCell) -> str:
    """A line about a cell."""
    shared = cell.matrix
    return (
        f"T={cell.test_seconds:g} D={cell.template_seconds:g} {cell.session}: "
        f"{plural(shared.trials, 'trial')} of {plural(len(shared.tested), 'speaker')} against "
        f"{shared.population}; {' '.join(cell.matrices)}"
    )
