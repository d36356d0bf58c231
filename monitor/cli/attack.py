"""monitor attack: test an anonymiser of voices, with attackers who know more and more of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from monitor.cli.options import (
    Features,
    Names,
    ecapa_option,
    for_workers,
    jobs_option,
    made_console,
    processes,
    say,
    scheduler_option,
    speaker_model_option,
)
from monitor.cli.transcript_options import word_list_option

if TYPE_CHECKING:
    from rich.table import Table

    from monitor.attacks.results import AttackResults, AttackRow

# ---------------------------------------------------------------------------------------- attacked
# What an attack found, on a terminal: the headline, and one line for each attacker and feature.

_WIDE = 100
_COLUMNS = ("method", "attacker", "feature", "bits", "limits", "first", "EER", "N", "trials")


def print_attacks(results: AttackResults) -> None:
    """Print to stdout."""
    from rich.text import Text

    from monitor.attacks.results import caveats, headline, told_attributes

    console = made_console(_WIDE)
    for line in headline(results):
        console.print(Text(line, style="bold"))
    console.print()
    main = [_cells(row) for method in results.settings.methods for row in results.main(method)]
    console.print(_table(_COLUMNS, main, names=3))
    console.print()
    for name, rows in results.attributes.items():
        head, lines = told_attributes(rows)
        console.print(Text(f"Told of a reader: {name}", style="bold"))
        console.print(_table(head, lines, names=5))
        console.print(Text("*: too few readers or excerpts to tell of that rate\n", style="dim"))
    settings = results.settings
    told = f"Templates of {settings.template_seconds:g} s of speech, trials of "
    told += f"{settings.seconds:g} s, bits (MeanD) with 95 % interval. All figures: the page."
    console.print(Text(told))
    for line in caveats(results):
        console.print(Text(line, style="dim"))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], names: int) -> Table:
    """Columns of names to the left, of numbers to the right."""
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, header_style="dim", pad_edge=False)
    for i, name in enumerate(head):
        made.add_column(name, justify="left" if i < names else "right")
    for row in rows:
        made.add_row(*map(Text, row))
    return made


def _cells(row: AttackRow) -> list[str]:
    from monitor.attacks.results import BITS, method_name
    from monitor.evaluation.report.report import format_value

    low, high = row.figures[BITS].limits
    rates = [row.figures.get(key) for key in ("srd.idr", "verification.eer_rocch")]
    return [
        method_name(row.method),
        row.attacker,
        row.feature,
        f"{row.bits:.2f}",
        "" if low is None or high is None else f"{low:.2f} to {high:.2f}",
        *("-" if each is None else format_value(each.value, each.unit) for each in rates),
        str(row.speakers),
        str(row.trials),
    ]


# ------------------------------------------------------------------------------------------ attack
# monitor attack: test an anonymiser of voices, with attackers who know more and more of it.

_DIR = click.Path(path_type=Path)


@click.command("attack", short_help="Test an anonymiser: what attackers learn of protected speech.")
@click.argument("corpus", type=_DIR, metavar="DIR|MANIFEST")
@click.option(
    "-o", "--output", required=True, type=_DIR, metavar="DIR",
    help="Folder for index.html, results.json, results.csv and pictures, and for what an "
    "interrupted run goes on from (mode 0600).",
)  # fmt: skip
@click.option(
    "--method",
    "methods",
    multiple=True,
    metavar="NAME[:SETTING]",
    help="A method of `monitor protect`, such as mcadams:0.8; may be given several times. none, "
    "the baseline, is always tried too.",
)
@click.option(
    "--anonymiser-command",
    "commands",
    multiple=True,
    metavar="CMD",
    help="Any other program: WAV on its stdin, WAV on its stdout; may be given several times.",
)
@click.option(
    "--attackers",
    type=Names(),
    metavar="NAME[,NAME]",
    help="Who attacks, weaker ones first. [default: all that the options and what is installed "
    "allow]",
)
@click.option(
    "--features",
    type=Features(),
    help="By what they recognise a voice. [default: f0, f0_robust, which finds the pitch behind "
    "filters too, phones and the best speaker embedding]",
)
@ecapa_option
@speaker_model_option
@word_list_option
@click.option(
    "--background",
    multiple=True,
    type=_DIR,
    metavar="DIR",
    help="Speech of other readers, that attackers learn from; may be given several times. Whoever "
    "is judged is left out of it.",
)
@click.option(
    "--training-steps",
    type=click.IntRange(min=1),
    metavar="N",
    help="How long the semi-informed attacker trains its network: a step takes a third to half a "
    "second of a core. Equal seeds give equal networks. [default: 200]",
)
@click.option(
    "--training-minutes",
    type=click.FloatRange(min=0, min_open=True),
    metavar="M",
    help="The same by time, whatever the machine.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.1),
    default=10.0,
    show_default=True,
    metavar="S",
    help="Speech in each trial.",
)
@click.option(
    "--template",
    type=click.FloatRange(min=6.0),
    default=30.0,
    show_default=True,
    metavar="S",
    help="Enrolled speech of everybody in the main table, a multiple of 6 s.",
)
@click.option(
    "--segments",
    type=Names(),
    default="1,3,30",
    show_default=True,
    metavar="L[,L]",
    help="Enrolled segments of 6 s in the table of enrolments.",
)
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    metavar="N",
    help="Trials of each reader, at most.",
)
@click.option(
    "--session",
    type=click.Choice(("cross", "same")),
    help="Whether templates and trials are of different sessions. [default: cross where two "
    "readers have two sessions, else same]",
)
@click.option(
    "--attributes",
    type=Names(),
    metavar="NAME[,NAME]",
    help="What else the voice may tell, learnt from --background, else from some of DIR's readers "
    "and judged on the others: columns of manifest.csv, such as gender, or two groups of numbers, "
    "such as 'age<16'.",
)
@click.option(
    "--groups",
    type=_DIR,
    metavar="FILE",
    help="The table that says them, of all readers. [default: manifest.csv of each DIR]",
)
@jobs_option
@scheduler_option
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Of what anonymisers draw; attackers draw by another.",
)
@click.option("--fresh", is_flag=True, help="Forget what an earlier run has kept.")
def command(
    corpus: Path,
    output: Path,
    methods: tuple[str, ...],
    commands: tuple[str, ...],
    attackers: tuple[str, ...] | None,
    features: tuple[str, ...] | None,
    background: tuple[Path, ...],
    training_steps: int | None,
    training_minutes: float | None,
    seconds: float,
    template: float,
    segments: tuple[str, ...],
    trials: int,
    session: str | None,
    attributes: tuple[str, ...] | None,
    groups: Path | None,
    jobs: int | None,
    seed: int,
    fresh: bool,
) -> int:
    """Protect the speech of DIR in memory, and let attackers recognise who speaks.

    \b
    monitor attack voices/ -o tested --method mcadams:0.8
    monitor attack voices/ -o tested --anonymiser-command my-anonymiser --background others/
    monitor attack voices/ -o tested --method mcadams:0.8 --method mcadams:random --jobs 2

    ignorant attackers have templates of clear speech; lazy-informed ones protect the speech that
    they enrol, with draws of their own; semi-informed ones train a network on protected speech of
    the --background, too, where the extra identity is installed. Of the figures the strongest
    attacker's is what protects: the page DIR/index.html begins with it. DIR is laid out by reader
    and session; of ten readers with two recordings of a minute each there is something to say, of
    fifty more.

    No audio is written. Run again, an interrupted test goes on where it was; exit status 4 where
    something could not be used.
    """
    from monitor.adapting.adapted import FINE_TUNING_STEPS, Length
    from monitor.attacks.attackers import SEGMENT_SECONDS, Amounts
    from monitor.attacks.results import KEPT, check_folder, write_results
    from monitor.attacks.trying import AttackConfig, prepare, try_methods
    from monitor.cli.inputs import load_identity
    from monitor.cli.options import progress_over
    from monitor.corpus.finding import find
    from monitor.errors import UsageError
    from monitor.run.status import INCOMPLETE

    if groups is not None and not attributes:
        raise UsageError("--groups goes with --attributes")
    count = template / SEGMENT_SECONDS
    if abs(count - round(count)) > 1e-9:
        raise UsageError(f"--template {template:g} is no multiple of {SEGMENT_SECONDS:g} s")
    counts = _counts(segments)
    if training_steps is not None and training_minutes is not None:
        raise UsageError("give --training-steps or --training-minutes, not both")
    training = Length(training_steps or FINE_TUNING_STEPS)
    if training_minutes is not None:
        training = Length(seconds=60 * training_minutes)
    check_folder(output)
    corpus, background = for_workers(corpus), tuple(map(for_workers, background))
    corpora = [find(place) for place in (corpus, *background)]
    files = [recording.path for recording in corpora[0]]
    load_identity(features, files)
    amounts = Amounts(seconds, trials, round(count), max(round(count), *counts))
    config = AttackConfig(
        (*methods, *(f"command:{each}" for each in commands)),
        attackers or (), features or (), amounts, counts, session, seed, processes(jobs, files),
        training=training, attributes=attributes or (), attribute_table=groups,
    )  # fmt: skip
    options: dict[str, Any] = {"folder": output / KEPT, "background": background, "fresh": fresh}
    with progress_over(sum(len(each.speakers) for each in corpora), "looking for speech") as step:
        prepared = prepare(corpus, config, **options, progress=lambda name: step(name, 1))
    with progress_over(prepared.seconds / 60, "hearing", "min") as step:
        label = ""

        def told(what: str) -> None:
            nonlocal label
            label = what

        results = try_methods(prepared, told=told, heard=lambda s: step(label, s / 60))
    write_results(results, output)
    print_attacks(results)
    for note in results.notes:
        say(f"monitor: {note}")
    for problem in results.problems:
        say(f"monitor: note: {problem}")
    say(f"{output / 'index.html'} has the report; {output / KEPT} is biometric: keep it private")
    incomplete = prepared.bench.hearing.missing or len(results.settings.methods) < len(
        prepared.config.methods
    )
    return INCOMPLETE if incomplete else 0


def _counts(segments: tuple[str, ...]) -> tuple[int, ...]:
    from monitor.errors import UsageError

    if not all(each.isdigit() and int(each) for each in segments):
        raise UsageError(f"--segments {','.join(segments)}: give whole numbers such as 1,3,30")
    return tuple(sorted({int(each) for each in segments}))
