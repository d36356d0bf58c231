"""monitor attack: test an anonymiser of voices, with attackers who know more and more of it."""

from __future__ import annotations

from collections.abc import Sequence
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
    feature_setup,
    group,
    made_console,
    option,
    say,
    speaker_model_option,
    with_options,
)
from monitor.cli.transcript_options import word_list_option

if TYPE_CHECKING:
    from rich.table import Table

    from monitor.lab.attacks.results import AttackResults, AttackRow
    from monitor.lab.attacks.scoreboard import Scoreboard
    from monitor.lab.attacks.trying import AttackConfig

# --- What an attack found, on a terminal: the headline, and one line for each attacker and feature.

_WIDE = 100
_COLUMNS = ("method", "attacker", "feature", "bits", "limits", "first", "EER", "N", "trials")


def print_attacks(results: AttackResults) -> None:
    """Print to stdout."""
    from rich.text import Text

    from monitor.lab.attacks.results import format_headline, list_caveats, summarise_attributes

    console = made_console(_WIDE)
    for line in format_headline(results):
        console.print(Text(line, style="bold"))
    console.print()
    main = [_format_row(row) for method in results.settings.methods for row in results.main(method)]
    console.print(_make_table(_COLUMNS, main, names=3))
    console.print()
    for name, rows in results.attributes.items():
        head, lines = summarise_attributes(rows)
        console.print(Text(f"Told of a reader: {name}", style="bold"))
        console.print(_make_table(head, lines, names=5))
        console.print(Text("*: too few readers or excerpts to tell of that rate\n", style="dim"))
    settings = results.settings
    note = f"Templates of {settings.template_seconds:g} s of speech, trials of "
    note += f"{settings.seconds:g} s, bits (MeanD) with 95 % interval. All figures: the page."
    console.print(Text(note))
    for line in list_caveats(results):
        console.print(Text(line, style="dim"))


def _make_table(head: Sequence[str], rows: Sequence[Sequence[str]], names: int) -> Table:
    """Make a table: names to the left, numbers to the right."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="dim", pad_edge=False)
    for i, name in enumerate(head):
        table.add_column(name, justify="left" if i < names else "right")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _format_row(row: AttackRow) -> list[str]:
    from monitor.lab.attacks.context import BITS
    from monitor.lab.attacks.results import method_name
    from monitor.lab.report.model import format_value

    low, high = row.figures[BITS].limits
    rates = [row.figures.get(key) for key in ("srd.idr", "verification.eer_rocch")]
    return [
        method_name(row.method),
        row.attacker,
        row.feature,
        f"{row.bits:.2f}",
        "" if low is None or high is None else f"{low:.2f} to {high:.2f}",
        *("-" if figure is None else format_value(figure.value, figure.unit) for figure in rates),
        str(row.speakers),
        str(row.trials),
    ]


@dataclass(frozen=True, slots=True)
class AttackOptions:
    """Options of the command."""

    corpus: Path = argument("DIR|MANIFEST")
    output: Path = option(
        "-o, --output DIR",
        "Folder for index.html, results.json, results.csv and pictures, and for what an "
        "interrupted run goes on from (mode 0600).",
        required=True,
    )
    methods: tuple[str, ...] = option(
        "--method NAME[:SETTING]",
        "A method of `monitor protect`, such as mcadams:0.8; may be given several times. none, "
        "the baseline, is always tried too.",
    )
    commands: tuple[str, ...] = option(
        "--anonymiser-command CMD",
        "Any other program: WAV on its stdin, WAV on its stdout; may be given several times.",
    )
    attackers: tuple[str, ...] | None = option(
        "--attackers NAME[,NAME]",
        "Who attacks, weaker ones first. [default: all that the options and what is installed "
        "allow]",
        type=Names(),
    )
    features: tuple[str, ...] | None = option(
        "--features",
        "By what they recognise a voice. [default: f0, f0_robust, which finds the pitch behind "
        "filters too, phones and the best speaker embedding]",
        type=Features(),
    )
    speaker_model: ClassVar[Any] = speaker_model_option
    word_list: ClassVar[Any] = word_list_option
    background: tuple[Path, ...] = option(
        "--background DIR",
        "Speech of other readers, that attackers learn from; may be given several times. Whoever "
        "is judged is left out of it.",
    )
    training_steps: int | None = option(
        "--training-steps N",
        "How long the semi-informed attacker trains its network: a step takes two or three "
        "seconds of a core. Equal seeds give equal networks. [default: 200]",
        least=1,
    )
    training_minutes: float | None = option(
        "--training-minutes M",
        "The same by time, whatever the machine.",
        type=FiniteRange(min=0, min_open=True),
    )
    seconds: float = option("--seconds S", "Speech in each trial.", least=0.1, default=10.0)
    template: float = option(
        "--template S",
        "Enrolled speech of everybody in the main table, a multiple of 6 s.",
        least=6.0,
        default=30.0,
    )
    segments: tuple[str, ...] = option(
        "--segments L[,L]",
        "Enrolled segments of 6 s in the table of enrolments.",
        type=Names(),
        default="1,3,30",
    )
    trials: int = option("--trials N", "Trials of each reader, at most.", least=1, default=10)
    session: str | None = option(
        "--session",
        "Whether templates and trials are of different sessions. [default: cross where two "
        "readers have two sessions, else same]",
        type=click.Choice(("cross", "same")),
    )
    attributes: tuple[str, ...] | None = option(
        "--attributes NAME[,NAME]",
        "What else the voice may tell, learnt from --background, else from some of DIR's readers "
        "and judged on the others: columns of manifest.csv, such as gender, or two groups of "
        "numbers, such as 'age<16'.",
        type=Names(),
    )
    groups: Path | None = option(
        "--groups FILE",
        "The table that says them, of all readers. [default: manifest.csv of each DIR]",
    )
    workers: JobOptions = group(JobOptions, "Processes")
    seed: int = option(
        "--seed N", "Of what anonymisers draw; attackers draw by another.", least=0, default=0
    )
    fresh: bool = option("--fresh", "Forget what an earlier run has kept.")
    scoreboard: Path | None = option(
        "--scoreboard FILE",
        "Also write the table of voice changers that people use, your methods among them, as "
        ".html, .md or .json. A .json that is there already is read, and goes on growing; else the "
        "rows that ship are taken.",
        type=click.Path(path_type=Path, dir_okay=False),
    )


@click.command(
    "attack", cls=HelpCommand, short_help="Test an anonymiser against simulated attackers."
)
@with_options(AttackOptions)
def command(asked: AttackOptions) -> int:
    """Protect the speech of DIR in memory, and let attackers recognise who speaks.

    \b
    monitor attack voices/ -o tested --method mcadams:0.8
    monitor attack voices/ -o tested --anonymiser-command my-anonymiser --background others/
    monitor attack voices/ -o tested --method mcadams:0.8 --method mcadams:random --jobs 2
    monitor attack voices/ -o tested --anonymiser-command my-anonymiser --scoreboard table.html

    ignorant attackers have templates of clear speech; lazy-informed ones protect the speech that
    they enrol, with draws of their own; semi-informed ones train a network on protected speech of
    the --background, too, where the extra training is installed. Of the figures the strongest
    attacker's is what protects: the page DIR/index.html begins with it. DIR is laid out by reader
    and session; of ten readers with two recordings of a minute each there is something to say, of
    fifty more.

    No audio is written. Run again, an interrupted test goes on where it was; exit status 4 where
    something could not be used.
    """
    from monitor.cli.inputs import load_speaker_model
    from monitor.cli.options import progress_over
    from monitor.corpus import find
    from monitor.lab.attacks.readers import PARTS
    from monitor.lab.attacks.results import KEPT, check_folder, write_results
    from monitor.lab.attacks.trying import prepare, try_methods
    from monitor.run import INCOMPLETE

    _check_options(asked)
    counts = _parse_counts(asked.segments)
    check_folder(asked.output)
    board = _read_board(asked.scoreboard)
    place, *background = map(asked.workers.path, (asked.corpus, *asked.background))
    corpora = [find(folder) for folder in (place, *background)]
    files = [recording.path for recording in corpora[0]]
    load_speaker_model(asked.features, files)
    config = _make_config(asked, counts, files)
    try:
        speakers = sum(len(corpus.speakers) for corpus in corpora)
        with progress_over(speakers, "looking for speech") as step:
            prepared = prepare(
                place, config, folder=asked.output / KEPT, background=background,
                fresh=asked.fresh, progress=lambda name: step(name, 1),
            )  # fmt: skip
        with progress_over(prepared.seconds / 60, "hearing", "min") as step:
            label = ""

            def show(activity: str) -> None:
                nonlocal label
                label = activity

            results = try_methods(
                prepared, on_progress=show, on_seconds=lambda seconds: step(label, seconds / 60)
            )
    except KeyboardInterrupt:
        fresh = ", without --fresh" * asked.fresh
        say(f"monitor: what was heard is kept; to go on, run the same command again{fresh}")
        raise
    write_results(results, asked.output)
    print_attacks(results)
    judged, done = prepared.context.judged, prepared.context.extractor.seconds
    enrolled, trials = (sum(p.seconds for p in judged.pieces(part)) / 60 for part in PARTS)
    say(
        f"monitor: heard {done.computed / 60:.1f} min of audio, and read {done.cached / 60:.1f} "
        f"from the cache: {trials:.1f} min of trials under each method, and {enrolled:.1f} of "
        "enrolment under each method that an attacker knows"
    )
    if board is not None and asked.scoreboard is not None:
        _extend_board(board, results, asked.scoreboard)
    for note in results.notes:
        say(f"monitor: {note}")
    for problem in results.problems:
        say(f"monitor: note: {problem}")
    say(
        f"{asked.output / 'index.html'} has the report; {asked.output / KEPT} is biometric: keep "
        "it private"
    )
    tried = len(results.settings.methods) == len(prepared.config.methods)
    return 0 if tried and not prepared.context.extractor.missing else INCOMPLETE


def _make_config(asked: AttackOptions, counts: tuple[int, ...], files: list[Path]) -> AttackConfig:
    from monitor.lab.adapting.training import FINE_TUNING_STEPS, Length
    from monitor.lab.attacks.readers import SEGMENT_SECONDS, Amounts
    from monitor.lab.attacks.trying import AttackConfig

    count = round(asked.template / SEGMENT_SECONDS)
    training = Length(asked.training_steps or FINE_TUNING_STEPS)
    if asked.training_minutes is not None:
        training = Length(seconds=60 * asked.training_minutes)
    return AttackConfig(
        (*asked.methods, *(f"command:{program}" for program in asked.commands)),
        asked.attackers or (), asked.features or (),
        Amounts(asked.seconds, asked.trials, count, max(count, *counts)), counts, asked.session,
        asked.seed, asked.workers.for_recordings(files),
        training=training, attributes=asked.attributes or (), attribute_table=asked.groups,
        setup=feature_setup(),
    )  # fmt: skip


def _check_options(asked: AttackOptions) -> None:
    from monitor.errors import UsageError
    from monitor.lab.attacks.readers import SEGMENT_SECONDS

    if asked.groups is not None and not asked.attributes:
        raise UsageError("--groups goes with --attributes")
    count = asked.template / SEGMENT_SECONDS
    if abs(count - round(count)) > 1e-9:
        raise UsageError(f"--template {asked.template:g} is no multiple of {SEGMENT_SECONDS:g} s")
    if asked.training_steps is not None and asked.training_minutes is not None:
        raise UsageError("give --training-steps or --training-minutes, not both")


def _read_board(path: Path | None) -> Scoreboard | None:
    """Read the scoreboard to extend; the one that ships where there is none."""
    from monitor.cli.options import check_output
    from monitor.lab.attacks.scoreboard import Scoreboard, check_suffix

    if path is None:
        return None
    check_suffix(path)
    check_output(path)
    extends = path.suffix.lower() == ".json" and path.exists()
    return Scoreboard.read(path) if extends else Scoreboard.shipped()


def _extend_board(board: Scoreboard, results: AttackResults, path: Path) -> None:
    """Write the scoreboard with the results' rows, and print it."""
    from monitor.lab.attacks.scoreboard import describe_comparison, make_rows

    rows = make_rows(results)
    board = board.beside(rows)
    board.save(path)
    head, lines = board.table()
    made_console(_WIDE).print(_make_table(head, lines, names=1))
    say(f"monitor: {path}: {describe_comparison(board, rows)}")


def _parse_counts(segments: tuple[str, ...]) -> tuple[int, ...]:
    from monitor.errors import UsageError

    if not all(count.isdigit() and int(count) for count in segments):
        raise UsageError(f"--segments {','.join(segments)}: give whole numbers such as 1,3,30")
    return tuple(sorted({int(count) for count in segments}))
