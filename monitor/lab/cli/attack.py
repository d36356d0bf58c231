"""monitor attack: test an anonymiser of voices with increasingly informed attackers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click

from monitor.cli.help import HelpCommand
from monitor.cli.options import (
    Features,
    FiniteRange,
    JobOptions,
    Names,
    argument,
    check_output,
    columns_option,
    feature_setup,
    group,
    made_console,
    option,
    progress_over,
    say,
    setting,
    shared,
    speaker_model_option,
    with_options,
)
from monitor.errors import UsageError
from monitor.phrases import plural, rough_time
from monitor.run import INCOMPLETE

if TYPE_CHECKING:
    from monitor.datasets.rows import Columns
    from monitor.lab.attacks.attackers import AttackContext
    from monitor.lab.attacks.attacking import AttackConfig, Preparation
    from monitor.lab.attacks.results import AttackResults
    from monitor.lab.attacks.scoreboard import Scoreboard
    from monitor.virtual_files import Readable

_WIDE = 100
_AGAIN = "To continue, run the same command again"


def print_attacks(results: AttackResults) -> None:
    """Print the headline, one line per attacker and feature, and caveats."""
    from monitor.lab.attacks.report import tabulate_attributes, tabulate_main
    from monitor.lab.attacks.results import format_headline, list_caveats
    from monitor.lab.report.model import Document, Paragraphs, Section, Table
    from monitor.lab.report.renderers import print_document

    def narrow(table: Table, *titles: str) -> Table:
        """Select the columns that name rows, and the first of each title."""
        heads = [column.title for column in table.columns]
        return table.select([*range(table.names), *map(heads.index, titles)])

    settings = results.settings
    note = (
        f"Templates of {settings.template_seconds:g} s of speech, trials of {settings.seconds:g} "
        "s, bits (MeanD) with 95 % interval. All figures: the page."
    )
    attributes = {name: tabulate_attributes(rows) for name, rows in results.attributes.items()}
    columns = "TPR at FPR 1e-2", "readers with / without"
    sections = [
        Section("", [narrow(tabulate_main(results), "bits", "first", "EER", "N", "trials")]),
        *(
            Section(f"Inferred attribute: {name}", [narrow(table, "EER", *columns)])
            for name, table in attributes.items()
        ),
        Section("", [Paragraphs([note]), Paragraphs(list_caveats(results), muted=True)]),
    ]
    print_document(Document("", format_headline(results), sections), made_console(_WIDE))


@dataclass(frozen=True, slots=True)
class AttackOptions:
    """Options of the command."""

    corpus: Path = argument("DIR|MANIFEST")
    output: Path = option(
        "-o, --output DIR",
        "Folder for the report, results.json, results.csv, pictures and the cache of an "
        "interrupted run (mode 0600).",
        required=True,
    )
    methods: tuple[str, ...] = option(
        "--method NAME[:SETTING]",
        "A method of `monitor protect`, such as mcadams:0.8; may be given several times. none, "
        "the baseline, is always tried too.",
    )
    commands: tuple[str, ...] = option(
        "--anonymiser-command CMD",
        "Also test this program. It reads a WAV on stdin and writes a WAV on stdout, or uses the "
        "files {in} and {out}. May be given several times.",
    )
    attackers: tuple[str, ...] | None = option(
        "--attackers NAME[,NAME]",
        "Attackers, weaker ones first. [default: all that the options and installed extras allow]",
        type=Names(),
    )
    features: tuple[str, ...] | None = option(
        "--features",
        "Features by which attackers recognise a voice. [default: f0, f0_robust, which finds the "
        "pitch behind filters too, phones and the best speaker embedding]",
        type=Features(),
    )
    speaker_model: ClassVar[Any] = speaker_model_option
    columns: Columns = shared(columns_option)
    background: tuple[Path, ...] = option(
        "--background DIR",
        "Speech of other readers to train attackers on. May be repeated. Judged readers are left "
        "out of it.",
    )
    training_steps: int | None = setting(
        "training-steps N",
        "Training steps of the semi-informed attacker's network, two or three seconds of a core "
        "each. Equal seeds give equal networks on one kind of device (CPU or CUDA). "
        "[default: 200]",
        minimum=1,
    )
    training_minutes: float | None = setting(
        "training-minutes M",
        "Training time instead of steps, on any machine.",
        type=FiniteRange(min=0, min_open=True),
    )
    seconds: float = option("--seconds S", "Speech in each trial.", minimum=0.1, default=10.0)
    template: float = option(
        "--template S",
        "Enrolled speech per reader in the main table, a multiple of 6 s.",
        minimum=6.0,
        default=30.0,
    )
    segments: tuple[str, ...] = option(
        "--segments L[,L]",
        "Enrolled segments of 6 s in the table of enrolments.",
        type=Names(),
        default="1,3,30",
    )
    trials: int = option("--trials N", "Maximum trials per reader.", minimum=1, default=10)
    session: str | None = setting(
        "session",
        "Whether templates and trials are of different sessions. [default: cross if two readers "
        "have two sessions, otherwise same]",
        type=click.Choice(("cross", "same")),
    )
    attributes: tuple[str, ...] | None = option(
        "--attributes NAME[,NAME]",
        "Attributes to infer, as columns of manifest.csv, such as gender, or two ranges of "
        "numbers, such as 'age<16'. The attacker is trained on --background, or otherwise on some "
        "of DIR's readers and judged on the others.",
        type=Names(),
    )
    asr_command: str | None = option(
        "--asr-command CMD",
        "Also measure the word error of protected speech, by any speech recogniser. It reads a WAV "
        "on its stdin, or the file {in}, and prints text.",
    )
    groups: Path | None = setting(
        "groups FILE", "Table of the attributes of all readers. [default: manifest.csv of each DIR]"
    )
    workers: JobOptions = group(JobOptions, "Processes")
    seed: int = setting(
        "seed N", "Seed of the anonymisers' draws. Attackers use another.", minimum=0, default=0
    )
    voiceprivacy: bool = option(
        "--voiceprivacy",
        "Attack the trials of a VoicePrivacy folder, and print only its table of EERs. DIR has "
        "wav.scp and trials, and enrolls there or in the folder beside it.",
    )
    fresh: bool = option("--fresh", "Delete the cache of an earlier run.")
    scoreboard: Path | None = setting(
        "scoreboard FILE",
        "Also write the table of common voice changers with your methods, as .html, .md or .json. "
        "An existing .json is extended. Otherwise the shipped rows are used.",
        type=click.Path(path_type=Path, dir_okay=False),
    )


def _describe_work(context: AttackContext) -> str:
    """Format the amounts of audio that were processed and attacked."""
    seconds = context.extractor.seconds
    enrolled, trials = (
        sum(piece.seconds for piece in context.judged.pieces(role)) / 60
        for role in ("enrolment", "trials")
    )
    return (
        f"monitor: processed {seconds.computed / 60:.1f} min of audio, and read "
        f"{seconds.cached / 60:.1f} min from the cache. Each method has {trials:.1f} min of "
        f"trials. Each method that an attacker knows has {enrolled:.1f} min of enrolment"
    )


@click.command(
    "attack", cls=HelpCommand, short_help="Test an anonymiser against simulated attackers."
)
@with_options(AttackOptions)
def command(options: AttackOptions) -> int:
    """Protect the speech of DIR in memory, and test whether attackers recognise the readers.

    \b
    monitor attack voices/ -o tested --method mcadams:0.8 --method mcadams:random
    monitor attack voices/ -o tested --anonymiser-command my-anonymiser --background others/

    \b
    monitor attack libri_dev -o tested --method mcadams:0.8 --voiceprivacy

    Ignorant attackers have templates of clear speech. Aligned attackers also rotate protected
    embeddings onto clear ones, as fitted to --background. Lazy-informed attackers protect the
    speech that they enrol, with their own draws. Semi-informed attackers also train a network on
    protected speech of --background (extra 'training'). Simulating attackers protect it four times
    (only if named in --attackers). Judge a method by its strongest attacker, which DIR/index.html
    shows first. With --background, a control attack uses speakers outside DIR. Only bits above the
    control's show disclosure.

    DIR contains recordings by reader and session, as for `monitor enrol`. The test needs ten
    readers with two one-minute recordings each. Fifty are better. No audio is written. To continue
    an interrupted test, run the same command again. Exit status 4 if a method or a recording could
    not be used.
    """
    from monitor.corpus.folders import find, find_others
    from monitor.lab.attacks.attacking import prepare, try_methods
    from monitor.lab.attacks.challenge import try_lists
    from monitor.lab.attacks.report import KEPT, TABLES, check_folder, write_results

    counts = _check_options(options)
    check_folder(options.output)
    resumes = (options.output / KEPT).exists() and not options.fresh
    board = _read_board(options.scoreboard)
    corpus_path, *background = map(options.workers.path, (options.corpus, *options.background))
    corpora = [find(corpus_path, columns=options.columns)]
    corpora += [find_others(path, options.columns) for path in background]
    files = [recording.path for recording in corpora[0]]
    config = _make_config(options, counts, files)
    try:
        with progress_over(sum(len(c.speakers) for c in corpora), "looking for speech") as step:
            prepared = prepare(
                corpus_path, config, folder=options.output / KEPT, background=background,
                fresh=options.fresh, progress=lambda name: step(name, 1),
            )  # fmt: skip
        _say_plan(prepared, resumes=resumes)
        with progress_over(prepared.seconds / 60, "processing", "min") as step:
            label = ""

            def show(activity: str) -> None:
                nonlocal label
                label = activity

            def count(seconds: float) -> None:
                step(label, seconds / 60)

            if prepared.listed is not None:
                tables = try_lists(
                    prepared.context, prepared.listed, prepared.tried, on_progress=show,
                    on_seconds=count,
                )  # fmt: skip
                return _write_tables(tables, prepared, options.output / TABLES)
            results = try_methods(prepared, on_progress=show, on_seconds=count)
    except KeyboardInterrupt:
        say(f"monitor: progress is kept. {_AGAIN}{', without --fresh' * options.fresh}")
        raise
    write_results(results, options.output)
    print_attacks(results)
    say(_describe_work(prepared.context))
    if board is not None and options.scoreboard is not None:
        _extend_board(board, results, options.scoreboard)
    say(*(f"monitor: {note}" for note in results.notes))
    say(*(f"monitor: note: {problem}" for problem in results.problems))
    say(
        f"{options.output / 'index.html'} has the report. {options.output / KEPT} is biometric: "
        "keep it private"
    )
    tried = len(results.settings.methods) == len(prepared.config.methods)
    extractor = prepared.context.extractor
    return 0 if tried and not extractor.missing and not extractor.unmeasured else INCOMPLETE


def _say_plan(prepared: Preparation, *, resumes: bool) -> None:
    from monitor.jobs import threads_here
    from monitor.lab.attacks.durations import describe_device, predict_seconds

    processes = plural(threads_here(prepared.config.jobs), "process", "processes")
    parts = [rough_time(predict_seconds(prepared)), processes, describe_device(prepared)]
    parts += ["less if an earlier run left results"] if resumes else []
    say(f"plan: {', '.join(filter(None, parts))}")


def _write_tables(tables: dict[str, str], prepared: Preparation, path: Path) -> int:
    """Write and print the challenge's table of each method; return the exit status."""
    from monitor.files import write_text
    from monitor.lab.attacks.results import method_name
    from monitor.lab.attacks.speech import CLEAR

    if len(tables) > 1:  # every table also has the original speech
        tables.pop(CLEAR)
    many = len(tables) > 1
    text = "\n".join(
        (f"== {method_name(method)} ==\n" if many else "") + table
        for method, table in tables.items()
    )
    write_text(text, path)
    click.echo(text, nl=False)
    missing = prepared.context.extractor.missing.values()
    say(*(f"monitor: note: {problem}" for problem in (*prepared.problems, *dict.fromkeys(missing))))
    say(*(f"monitor: {note}" for note in dict.fromkeys(prepared.context.notes)))
    say(f"{path} has the table. {path.parent / 'kept'} is biometric: keep it private")
    return INCOMPLETE if missing else 0


def _check_options(options: AttackOptions) -> tuple[int, ...]:
    from monitor.lab.attacks.readers import SEGMENT_SECONDS
    from monitor.lab.utility import check_recogniser

    if options.voiceprivacy and (options.attributes or options.scoreboard):
        raise UsageError(
            "--voiceprivacy prints a table of its own: leave out --attributes and the setting "
            "scoreboard"
        )
    if options.asr_command is not None:
        check_recogniser(options.asr_command)
    if options.groups is not None and not options.attributes:
        raise UsageError("groups needs --attributes")
    count = options.template / SEGMENT_SECONDS
    if abs(count - round(count)) > 1e-9:
        raise UsageError(
            f"--template {options.template:g} is not a multiple of {SEGMENT_SECONDS:g} s"
        )
    if options.training_steps is not None and options.training_minutes is not None:
        raise UsageError("training-steps and training-minutes: set one of them")
    if not all(count.isdigit() and int(count) for count in options.segments):
        raise UsageError(
            f"--segments {','.join(options.segments)}: give whole numbers such as 1,3,30"
        )
    return tuple(sorted({int(count) for count in options.segments}))


def _make_config(
    options: AttackOptions, counts: tuple[int, ...], files: list[Readable]
) -> AttackConfig:
    from monitor.cli.inputs import load_speaker_model
    from monitor.lab.adapting.training import FINE_TUNING_STEPS, Length, TrainingPlan
    from monitor.lab.attacks.attacking import AttackConfig
    from monitor.lab.attacks.readers import SEGMENT_SECONDS, Amounts

    load_speaker_model(options.features, files)
    count = round(options.template / SEGMENT_SECONDS)
    length = Length(options.training_steps or FINE_TUNING_STEPS)
    if options.training_minutes is not None:
        length = Length(seconds=60 * options.training_minutes)
    return AttackConfig(
        (*options.methods, *(f"command:{program}" for program in options.commands)),
        options.attackers or (), options.features or (),
        Amounts(options.seconds, options.trials, count, max(count, *counts)), counts,
        options.session,
        options.seed, options.workers.for_recordings(files), training=TrainingPlan(length),
        attributes=options.attributes or (), attribute_table=options.groups, setup=feature_setup(),
        columns=options.columns, asr_command=options.asr_command or "",
        voiceprivacy=options.voiceprivacy,
    )  # fmt: skip


def _read_board(path: Path | None) -> Scoreboard | None:
    """Read the scoreboard to extend, or the shipped one without a file."""
    from monitor.lab.attacks.scoreboard import Scoreboard, check_suffix

    if path is None:
        return None
    check_suffix(path)
    check_output(path)
    extends = path.suffix.lower() == ".json" and path.exists()
    return Scoreboard.read(path) if extends else Scoreboard.shipped()


def _extend_board(board: Scoreboard, results: AttackResults, path: Path) -> None:
    from monitor.lab.attacks.scoreboard import ScoreRow, describe_comparison
    from monitor.lab.report.renderers import print_table

    rows = [ScoreRow.from_results(results, method) for method in results.settings.methods]
    board = board.beside(rows)
    board.save(path)
    print_table(board.table(), made_console(_WIDE))
    say(f"monitor: {path}: {describe_comparison(board, rows)}")
