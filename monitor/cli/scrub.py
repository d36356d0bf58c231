"""monitor scrub: write as much of a recording as a budget of bits allows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click

from monitor.cli.help import HelpCommand
from monitor.cli.options import (
    Features,
    NumberOfBits,
    argument,
    feature_setup,
    made_console,
    option,
    say,
    speaker_model_option,
    with_options,
)

if TYPE_CHECKING:
    from monitor.run.scrubbing import ScrubbedRecording

_FILE = click.Path(path_type=Path, dir_okay=False)
_WIDE = 100


@dataclass(frozen=True, slots=True)
class ScrubOptions:
    """Options of monitor scrub."""

    recording: Path = argument("RECORDING")
    output: Path = option(
        "-o, --output FILE", "The file to write, .wav or .flac (mode 0600).", required=True
    )
    budget: float = option(
        "--budget BITS",
        "What no attacker that is tried may exceed at any second: 6 bits leave 1 in 64.",
        type=NumberOfBits(),
        required=True,
    )
    watch: str = option("-w, --watch NAME", "Who speaks, as enrolled.", required=True)
    store: str | None = option(
        "-p, --population FILE",
        "Whom the attacker knows, from `monitor enrol`. [default: the shipped readers]",
    )
    features: tuple[str, ...] | None = option(
        "--features",
        "What attackers listen for, together and each alone. [default: all that is installed and "
        "calibrated]",
        type=Features(),
    )
    speaker_model: ClassVar[Any] = speaker_model_option
    silence: bool = option(
        "--silence", "Leave silence in the place of what is taken out. [default: cut it]"
    )
    anonymiser: str | None = option(
        "--anonymiser METHOD",
        "Protect those stretches instead, by a method of `monitor protect`, such as usc.",
    )
    anonymiser_command: str | None = option(
        "--anonymiser-command CMD", "The same by another program: WAV on its stdin and stdout."
    )
    protected_population: str | None = option(
        "--protected-population FILE",
        "The same people enrolled from speech protected by METHOD, and calibrated on such speech: "
        "attackers who know the method are then tried, too. [default: they are not, and learn "
        "more]",
    )
    seed: int | None = option("--seed N", "Of a METHOD that draws. [default: new draws]", least=0)
    tries: int = option(
        "--tries N",
        "Stretches that are tried one by one beside what was found quickly: more may keep more "
        "speech.",
        least=0,
        default=24,
    )
    plot: Path | None = option("--plot FILE.png|.svg|.pdf", "Draw the bits before and after.")
    labels: Path | None = option(
        "--labels FILE",
        "Write which stretches were kept, as a label track of Audacity, on the recording's clock.",
        type=_FILE,
    )
    replace: bool = option("--replace", "Overwrite -o, and --labels, if they exist.")


@click.command("scrub", cls=HelpCommand, short_help="Keep recordings under a bit budget.")
@with_options(ScrubOptions)
def command(options: ScrubOptions) -> int:
    """Write as much of RECORDING as may be heard before an attacker has so many bits.

    \b
    monitor scrub talk.flac --budget 6 -p us.npz --watch me -o out.wav
    monitor scrub talk.flac --budget 6 -p us.npz -w me --silence -o out.wav --plot out.png
    monitor scrub talk.flac --budget 6 -p us.npz -w me --anonymiser usc \\
        --protected-population safe.npz -o out.wav

    The recording is divided at its pauses. Stretches are cut, silenced (--silence) or protected
    (--anonymiser), as few seconds of speech as a search finds, until no attacker that is tried has
    more than the budget at any second: with all features and with each alone, of the whole file
    and, where something was changed and not cut, of what is left as it was. `monitor replay` of
    the file says the same figure. A voice tells much in seconds: of 6 bits a few seconds are left.

    Exit status 1, and no file, where it cannot be done: no stretch stays under the budget alone, or
    what the anonymiser makes of all of it does not.
    """
    from monitor.cli.inputs import check_model, load_speaker_model
    from monitor.cli.options import progress_over
    from monitor.phrases import clock_time
    from monitor.population.population import Population
    from monitor.run.scrubbing import ScrubSettings, scrub

    method = options.anonymiser
    if options.anonymiser_command is not None:
        method = f"command:{options.anonymiser_command}"
    _check_options(options)
    _check_files(options)
    load_speaker_model(options.features, [options.recording])
    people = Population.reference() if options.store is None else Population.load(options.store)
    check_model(feature_setup().speaker, people, options.store)
    safe = options.protected_population
    settings = ScrubSettings(
        features=options.features,
        silence=options.silence,
        anonymiser=method,
        protected=None if safe is None else Population.load(safe),
        seed=options.seed,
        tries=options.tries,
        setup=feature_setup(),
    )
    done = 0.0
    with progress_over(100, "scrubbing", "%") as step:

        def progress(label: str, share: float) -> None:
            nonlocal done
            step(label, max(100 * share - done, 0.0))
            done = max(100 * share, done)

        scrubbed = scrub(
            options.recording, options.output, people, options.watch, options.budget, settings,
            progress=progress,
        )  # fmt: skip
    _print(scrubbed)
    for notice in scrubbed.notices(informed=safe is not None):
        say(f"monitor: note: {notice}")
    _write_extras(scrubbed, options)
    _, curve = scrubbed.strongest(scrubbed.after)
    say(
        f"{options.output}: {scrubbed.kept_seconds:.1f} of {scrubbed.speech_seconds:.1f} s of "
        f"speech as it was; at most {curve.peak:.2f} bits, at {clock_time(curve.peak_seconds)}, of "
        f"the {scrubbed.budget:g} allowed"
    )
    return 0


def _check_options(options: ScrubOptions) -> None:
    from monitor.errors import UsageError

    method = options.anonymiser or options.anonymiser_command
    if options.anonymiser and options.anonymiser_command:
        raise UsageError("give either --anonymiser METHOD or --anonymiser-command CMD")
    if options.silence and method is not None:
        raise UsageError("--silence takes stretches out, --anonymiser changes them: give one")
    for name, value in (
        ("--protected-population", options.protected_population),
        ("--seed", options.seed),
    ):
        if value is not None and method is None:
            raise UsageError(f"{name} goes with --anonymiser METHOD")


def _check_files(options: ScrubOptions) -> None:
    from monitor.cli.options import check_new, check_output
    from monitor.sinks.jsonl import refuse_overwrite

    sources = [options.recording, options.store, options.protected_population]
    for path in (options.output, options.labels, options.plot):
        if path is not None:
            refuse_overwrite(path, sources)
    for path, name in ((options.output, "-o"), (options.labels, "--labels")):
        if path is not None:
            check_output(path) if options.replace else check_new(path, name)
    if options.plot is not None:
        from monitor.plots.canvas import check_drawing, check_suffix

        check_suffix(options.plot)
        check_drawing()
        check_output(options.plot)


def _write_extras(scrubbed: ScrubbedRecording, options: ScrubOptions) -> None:
    if options.labels is not None:
        from monitor.files import write_text

        write_text(scrubbed.labels, options.labels)
    if options.plot is not None:
        from monitor.plots.scrubbed import plot_scrubbed

        plot_scrubbed(options.plot, scrubbed.curves())


def _print(scrubbed: ScrubbedRecording) -> None:
    """Print the bits of each attacker before and after."""
    from rich.table import Table
    from rich.text import Text

    console = made_console(_WIDE)
    for line in scrubbed.describe():
        console.print(Text(line))
    console.print()
    head = ("features", "hears", "templates", "most bits before", "after")
    table = Table(box=None, header_style="dim", pad_edge=False)
    for n, name in enumerate(head):
        table.add_column(name, justify="left" if n < len(head) - 2 else "right")
    for cells in scrubbed.rows():
        table.add_row(*map(Text, cells))
    console.print(table)
