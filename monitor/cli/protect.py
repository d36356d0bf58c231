"""monitor protect: write recordings anew so that they tell less about who speaks."""

from __future__ import annotations

import secrets
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click

from monitor.cli.help import HelpCommand
from monitor.cli.inputs import check_model, load_speaker_model
from monitor.cli.options import (
    Features,
    NumberOfBits,
    Seconds,
    argument,
    check_new,
    check_output,
    check_picture,
    feature_setup,
    group,
    made_console,
    option,
    progress_over,
    say,
    seconds_of,
    setting,
    speaker_model_option,
    with_options,
    worthwhile_processes,
)
from monitor.errors import SourceError, UsageError
from monitor.phrases import clock_time, plural
from monitor.run import INCOMPLETE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from monitor.anonymisers.recording import Journal, Order, ProtectionOutcome
    from monitor.run.scrubbing import ScrubbedRecording

_ANY_RATE = 16_000
_PERCENT = 100


@dataclass(frozen=True, slots=True)
class BudgetOptions:
    """Options of what a budget of bits keeps of a recording."""

    bits: float | None = option(
        "--budget BITS",
        "Keep of FILE what leaves no attacker who is tried more than that at any second: 6 bits "
        "leave 1 in 64. The rest is cut, silenced or anonymised.",
        type=NumberOfBits(),
    )
    watch: str | None = option("-w, --watch NAME", "Who speaks, as enrolled.")
    store: str | None = option(
        "-p, --population FILE",
        "Whom the attacker knows, from `monitor enrol`. [default: the shipped readers]",
    )
    features: tuple[str, ...] | None = option(
        "--features",
        "What attackers listen for, together and each alone. [default: all that is calibrated]",
        type=Features(),
    )
    speaker_model: ClassVar[Any] = speaker_model_option
    silence: bool = option(
        "--silence", "Leave silence in the place of what is taken out. [default: cut it]"
    )
    protected_population: str | None = option(
        "--protected-population FILE",
        "The same people enrolled from speech protected by METHOD, and calibrated on such speech: "
        "attackers who know the method are then tried, too.",
    )
    tries: int | None = setting(
        "tries N",
        "Stretches that are tried one by one: more may keep more speech. [default: 24]",
        least=0,
    )
    plot: Path | None = option("--plot FILE.png|.svg|.pdf", "Draw the bits before and after.")


@dataclass(frozen=True, slots=True)
class ProtectOptions:
    """Options of the command."""

    recordings: Path = argument("FILE|DIR|FRAMES")
    output: Path = option(
        "-o, --output OUT",
        "The file to write, .wav or .flac; of a folder the folder (files of mode 0600).",
        required=True,
    )
    method: str | None = option(
        "--method NAME[:SETTING]",
        "mcadams:0.8 bends formants (1 leaves them); pitch:4 moves the pitch by semitones, "
        "formant:1.15 multiplies all formants, voice:4,1.15 does both, whisper takes the voice "
        "away; of each but whisper NAME:random draws how far for each recording, NAME:speaker "
        "for each speaker; noise:10 adds white noise at 10 dB; none changes nothing. usc makes "
        "the voice of the private tokens of a small codec anew, usc:15 with noise: epsilon 15 a "
        "token of 40 ms; tokens:15 writes no sound, but such tokens as frames. Of FRAMES "
        "laplace:15 adds noise: epsilon 15 a frame (laplace:15,1 with the norm to which "
        "embeddings are clipped). Each epsilon holds in exact arithmetic; that of floating-point "
        "numbers is not proved.",
    )
    anonymiser_command: str | None = option(
        "--anonymiser-command CMD",
        "Another program instead, run for each channel: WAV on its stdin, WAV on its stdout, or "
        "the files {in} and {out}.",
    )
    speaker: str | None = option(
        "--speaker NAME",
        "Who speaks in all of it, for NAME:speaker. [default: what the folder's layout says]",
    )
    seed: int | None = option(
        "--seed N",
        "The same draws as with this number before: who knows it can draw them, too. [default: "
        "new draws]",
        least=0,
    )
    command_timeout: float | None = setting(
        "command-timeout S",
        "How long the program may take for a channel before it is killed. [default: a minute and "
        "60 times the recording]",
        type=Seconds(),
    )
    jobs: int | None = option(
        "--jobs N",
        "Processes. [default: one a core, where there are minutes of audio; of a program one]",
        least=1,
    )
    replace: bool = option("--replace", "Replace files that are there already.")
    budget: BudgetOptions = group(BudgetOptions, "Budget of bits")


@click.command("protect", cls=HelpCommand, short_help="Anonymise recordings.")
@with_options(ProtectOptions)
def command(asked: ProtectOptions) -> int:
    """Write FILE, or every recording below DIR under the same name, with the voice protected.

    \b
    monitor protect talk.flac -o safe.flac --method mcadams:0.8
    monitor protect voices/ -o safe/ --method voice:random     interrupted, it goes on where it was
    monitor protect talk.wav -o safe.wav --anonymiser-command my-anonymiser
    monitor protect voices/ -o tokens --method tokens:15     no sound, the tokens alone
    monitor protect frames -o noisy --method laplace:15      frames with embeddings
    monitor protect talk.flac -o out.wav --budget 6 -w me -p us.npz    as much as 6 bits allow
    monitor protect talk.flac -o out.wav --budget 6 -w me -p us.npz --method usc

    WAV and FLAC stay what they are, others become WAV. What an anonymiser of sound is worth
    `monitor attack` measures; of laplace, `monitor score NOISY -p CLEAR.npz` does
    (docs/anonymisers.md). A broken file is named and skipped (exit status 4).

    Of a folder that was interrupted or killed half-way, the same command again does what is
    missing, with the same draws; until then OUT has a file .unfinished-protect, which is secret.

    --budget divides FILE at its pauses and keeps what a search finds of it, whatever the attacker
    listens for; `monitor replay` of the file says the same figure. A voice tells much in seconds.
    Exit status 1, and no file, where no stretch stays under the budget.
    """
    method = asked.method
    if method is not None and asked.anonymiser_command is not None:
        raise UsageError("give either --method NAME or --anonymiser-command CMD")
    if asked.anonymiser_command is not None:
        method = f"command:{asked.anonymiser_command}"
    if asked.budget.bits is not None:
        return _hold_to_budget(asked, method)
    for name in BudgetOptions.__slots__:
        if getattr(asked.budget, name) not in (None, False):
            written = {"store": "--population"}.get(name, f"--{name.replace('_', '-')}")
            raise UsageError(f"{written} goes with --budget BITS")
    if method is None:
        raise UsageError("give --method, such as mcadams:0.8, --anonymiser-command or --budget")
    if asked.command_timeout is not None and not (
        asked.command_timeout and asked.anonymiser_command
    ):
        raise UsageError("command-timeout is the time of a --anonymiser-command, above 0")
    name, _, setting = method.partition(":")
    if name in ("laplace", "tokens"):
        from monitor.cli.protect_frames import protect_frames

        return protect_frames(
            asked.recordings, asked.output, name, setting, speaker=asked.speaker, seed=asked.seed,
            replace=asked.replace,
        )  # fmt: skip
    return _protect_sound(asked, method)


def _protect_sound(asked: ProtectOptions, method: str) -> int:
    from monitor.anonymisers.filters import Utterance
    from monitor.anonymisers.recording import NAME, Journal, plan_orders
    from monitor.anonymisers.registry import make

    going_on = (asked.output / NAME).is_file()
    wanted = plan_orders(
        asked.recordings, asked.output, speaker=asked.speaker, replace=asked.replace or going_on
    )
    for order in wanted:  # what makes no sense is refused before anything is written
        make(method, Utterance(_ANY_RATE, order.name, order.speaker, 0, 0, asked.command_timeout))
    problems: list[str] = []
    seconds, clipped, unchanged = 0.0, 0, 0
    with ExitStack() as stack:
        journal = None
        if asked.recordings.is_dir():
            journal = stack.enter_context(
                Journal(asked.output, (method, asked.speaker), asked.seed)
            )
        try:
            for done in _protect_each(stack, asked, method, wanted, journal):
                problems += [done.problem] if done.problem else []
                seconds, clipped = seconds + done.seconds, clipped + done.clipped
                unchanged += done.is_done
        except KeyboardInterrupt:
            if journal:
                say("monitor: what was made is kept; to go on, run the same command again")
            raise
        if journal:
            journal.finish()
    if len(problems) == len(wanted):
        raise SourceError("nothing was protected: " + "; ".join(problems[:3]))
    for problem in problems:
        say(f"monitor: skipped: {problem}")
    if clipped:
        say(f"monitor: note: {plural(clipped, 'sample')} clipped; give quieter recordings")
    count = plural(len(wanted) - len(problems) - unchanged, "recording")
    before = f"; {unchanged} there already" if unchanged else ""
    shown = asked.method or "the program"  # whose path and options stay private
    say(f"protected {count} ({seconds / 60:.1f} min) with {shown}{before}")
    return INCOMPLETE if problems else 0


def _protect_each(
    stack: ExitStack, asked: ProtectOptions, method: str, orders: Sequence[Order],
    journal: Journal | None,
) -> Iterator[ProtectionOutcome]:  # fmt: skip
    """Give the outcome of each order, the longest recording first."""
    from monitor.anonymisers.recording import ProtectionSettings, protect_all

    lengths = {order: seconds_of(order.source) or 0.0 for order in orders}
    by_length = sorted(orders, key=lambda order: -lengths[order])  # else the last works alone
    jobs = asked.jobs or (1 if asked.anonymiser_command else worthwhile_processes(lengths.values()))
    seed = asked.seed if journal is None else journal.seed
    settings = ProtectionSettings(
        method,
        secrets.randbits(128) if seed is None else seed,
        asked.command_timeout,
        None if journal is None else journal.path,
    )
    step = stack.enter_context(progress_over(sum(lengths.values()) / 60, "protecting", "min"))
    digests = {} if journal is None else journal.made
    outcomes = protect_all(by_length, settings, digests, jobs)
    for outcome in stack.enter_context(closing(outcomes)):
        yield outcome
        step(outcome.order.name, lengths[outcome.order] / 60)


def _hold_to_budget(asked: ProtectOptions, method: str | None) -> int:
    """Write as much of a recording as may be heard before an attacker has so many bits."""
    from monitor.population.population import Population
    from monitor.run.scrubbing import ScrubSettings, scrub

    budget = asked.budget
    _check_budget(asked, method)
    load_speaker_model(budget.features, [asked.recordings])
    people = Population.reference() if budget.store is None else Population.load(budget.store)
    check_model(feature_setup().speaker, people, budget.store)
    safe = budget.protected_population
    settings = ScrubSettings(
        features=budget.features,
        silence=budget.silence,
        anonymiser=method,
        protected=None if safe is None else Population.load(safe),
        seed=asked.seed,
        setup=feature_setup(),
        **({} if budget.tries is None else {"tries": budget.tries}),
    )
    done = 0.0
    with progress_over(_PERCENT, "protecting", "%") as step:

        def progress(label: str, share: float) -> None:
            nonlocal done
            step(label, max(_PERCENT * share - done, 0.0))
            done = max(_PERCENT * share, done)

        assert budget.bits is not None
        scrubbed = scrub(
            asked.recordings, asked.output, people, budget.watch or "", budget.bits, settings,
            progress=progress,
        )  # fmt: skip
    _print(scrubbed)
    for notice in scrubbed.notices(informed=safe is not None):
        say(f"monitor: note: {notice}")
    if budget.plot is not None:
        from monitor.plots.recording import plot_scrubbed

        plot_scrubbed(budget.plot, scrubbed.curves())
    _, curve = scrubbed.strongest(scrubbed.after)
    say(
        f"{asked.output}: {scrubbed.kept_seconds:.1f} of {scrubbed.speech_seconds:.1f} s of "
        f"speech as it was; at most {curve.peak:.2f} bits, at {clock_time(curve.peak_seconds)}, of "
        f"the {scrubbed.budget:g} allowed"
    )
    return 0


def _check_budget(asked: ProtectOptions, method: str | None) -> None:
    """Refuse options that do not go together, and files that would be overwritten."""
    from monitor.sinks.jsonl import refuse_overwrite

    budget = asked.budget
    if budget.watch is None:
        raise UsageError("--budget counts bits of one speaker: add --watch NAME")
    if budget.silence and method is not None:
        raise UsageError("--silence takes stretches out, --method changes them: give one")
    if method is None and budget.protected_population is not None:
        raise UsageError("--protected-population goes with --method NAME")
    if method is None and asked.seed is not None:
        raise UsageError("--seed goes with --method NAME")
    for name in ("speaker", "command_timeout", "jobs"):
        if getattr(asked, name) is not None:
            raise UsageError(f"--{name.replace('_', '-')} goes without --budget")
    sources = [asked.recordings, budget.store, budget.protected_population]
    refuse_overwrite(asked.output, sources)
    check_output(asked.output) if asked.replace else check_new(asked.output, "-o")
    if budget.plot is not None:
        refuse_overwrite(budget.plot, sources)
        check_picture(budget.plot)


def _print(scrubbed: ScrubbedRecording) -> None:
    from rich.table import Table
    from rich.text import Text

    console = made_console(100)
    for line in scrubbed.describe():
        console.print(Text(line))
    console.print()
    table = Table(box=None, header_style="dim", pad_edge=False)
    for name in ("features", "hears", "templates"):
        table.add_column(name)
    for name in ("most bits before", "after"):
        table.add_column(name, justify="right")
    for cells in scrubbed.rows():
        table.add_row(*map(Text, cells))
    console.print(table)
