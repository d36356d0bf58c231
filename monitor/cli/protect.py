"""monitor protect: anonymise recordings, or hold one to a budget of bits."""

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
    note,
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

    from monitor.anonymisers.recording import Journal, ProtectionOutcome, ProtectionTask
    from monitor.run.scrubbing import ScrubbedRecording

_ANY_RATE = 16_000
_PERCENT = 100


@dataclass(frozen=True, slots=True)
class BudgetOptions:
    """Options of a budget of bits."""

    bits: float | None = option(
        "--budget BITS",
        "Keep the part of FILE that leaves every tested attacker under BITS at all times. 6 bits "
        "leave 1 in 64. The rest is cut, silenced or anonymised.",
        type=NumberOfBits(),
    )
    watch: str | None = option("-w, --watch NAME", "Enrolled name of the speaker.")
    store: str | None = option(
        "-p, --population FILE",
        "People the attacker knows (`monitor enrol`). [default: the shipped readers]",
    )
    features: tuple[str, ...] | None = option(
        "--features",
        "Features the attackers use, together and each alone. [default: all calibrated ones]",
        type=Features(),
    )
    speaker_model: ClassVar[Any] = speaker_model_option
    silence: bool = option("--silence", "Replace removed speech with silence. [default: cut it]")
    protected_population: str | None = option(
        "--protected-population FILE",
        "The same people, enrolled and calibrated on speech protected by METHOD. Attackers who "
        "know the method are then tested too.",
    )
    tries: int | None = setting(
        "tries N",
        "Stretches tested one by one. More may keep more speech. [default: 24]",
        minimum=0,
    )
    plot: Path | None = option("--plot FILE.png|.svg|.pdf", "Draw the bits before and after.")


@dataclass(frozen=True, slots=True)
class ProtectOptions:
    """Options of the command."""

    recordings: Path = argument("FILE|DIR|FRAMES")
    output: Path = option(
        "-o, --output OUT",
        "Output file, .wav or .flac, or output folder (files of mode 0600).",
        required=True,
    )
    method: str | None = option(
        "--method NAME[:SETTING]",
        "Anonymiser, such as mcadams:0.8, voice:random, usc:15 or laplace:15. Formants are bent "
        "by mcadams:0.8 (1 leaves them). Pitch is shifted by pitch:4, in semitones. Use "
        "formant:1.15 to scale all formants, and voice:4,1.15 for both. These four take "
        "NAME:random (new values per recording) and NAME:speaker (per speaker). Others: whisper "
        "removes the voice, noise:10 adds white noise at 10 dB, none changes nothing. The codec "
        "usc resynthesises the voice from its private tokens. With usc:15, noise of epsilon 15 is "
        "added per 40 ms token. The method tokens:15 writes such tokens as frames, without sound. "
        "For FRAMES, laplace:15 adds noise of epsilon 15 per frame. In laplace:15,1 the 1 is the "
        "norm to which embeddings are clipped. Each epsilon holds in exact arithmetic. It is not "
        "proved for floating-point numbers.",
    )
    anonymiser_command: str | None = option(
        "--anonymiser-command CMD",
        "Program to use instead, run per channel. It reads WAV from stdin and writes WAV to "
        "stdout, or uses the files {in} and {out}.",
    )
    speaker: str | None = option(
        "--speaker NAME",
        "Speaker of all recordings, for NAME:speaker. [default: from the folder layout]",
    )
    seed: int | None = option(
        "--seed N",
        "Seed of the random draws. Anyone who knows it can repeat them. [default: random]",
        minimum=0,
    )
    command_timeout: float | None = setting(
        "command-timeout S",
        "Time limit of the program for one channel. [default: 60 s plus 60 times the recording]",
        type=Seconds(),
    )
    jobs: int | None = option(
        "--jobs N",
        "Worker processes. [default: one per core for minutes of audio, one for "
        "--anonymiser-command]",
        minimum=1,
    )
    replace: bool = option("--replace", "Overwrite existing files.")
    budget: BudgetOptions = group(BudgetOptions, "Budget of bits")


@click.command("protect", cls=HelpCommand, short_help="Anonymise recordings.")
@with_options(ProtectOptions)
def command(options: ProtectOptions) -> int:
    """Write FILE, or every recording in DIR under the same name, with the voice protected.

    \b
    monitor protect talk.flac -o safe.flac --method mcadams:0.8
    monitor protect voices/ -o safe/ --method voice:random
    monitor protect talk.wav -o safe.wav --anonymiser-command my-anonymiser

    \b
    monitor protect frames -o noisy --method laplace:15      frames with embeddings
    monitor protect talk.flac -o out.wav --budget 6 -w me -p us.npz

    WAV and FLAC keep their format, others become WAV. `monitor attack` tests an anonymiser of
    sound. For laplace, use `monitor score NOISY -p CLEAR.npz` (docs/anonymisers.md). Broken files
    are skipped and named (exit status 4).

    To continue an interrupted folder, run the same command again. It protects the rest with the
    same draws. Until then, OUT contains the file .unfinished-protect, which is secret.

    --budget cuts FILE at its pauses and keeps the most speech found that stays under the budget for
    every attacker tried. `monitor replay` of the result shows the same figure. A voice discloses
    much in seconds. If no stretch stays under the budget, no file is written (exit status 1).
    """
    method = options.method
    if method is not None and options.anonymiser_command is not None:
        raise UsageError("give either --method NAME or --anonymiser-command CMD")
    if options.anonymiser_command is not None:
        method = f"command:{options.anonymiser_command}"
    if options.budget.bits is not None:
        return _hold_to_budget(options, method)
    for name in BudgetOptions.__slots__:
        if getattr(options.budget, name) not in (None, False):
            written = {"store": "--population"}.get(name, f"--{name.replace('_', '-')}")
            raise UsageError(f"{written} needs --budget BITS")
    if method is None:
        raise UsageError("give --method, such as mcadams:0.8, --anonymiser-command or --budget")
    if options.command_timeout is not None and not (
        options.command_timeout and options.anonymiser_command
    ):
        raise UsageError("command-timeout needs --anonymiser-command, and more than 0 seconds")
    name, _, setting = method.partition(":")
    if name in ("laplace", "tokens"):
        from monitor.cli.protect_frames import protect_frames

        return protect_frames(
            options.recordings, options.output, name, setting, speaker=options.speaker,
            seed=options.seed,
            replace=options.replace,
        )  # fmt: skip
    return _protect_sound(options, method)


def _protect_sound(options: ProtectOptions, method: str) -> int:
    from monitor.anonymisers.filters import Utterance
    from monitor.anonymisers.recording import JOURNAL, Journal, plan_orders
    from monitor.anonymisers.registry import make

    going_on = (options.output / JOURNAL).is_file()
    wanted = plan_orders(
        options.recordings,
        options.output,
        speaker=options.speaker,
        replace=options.replace or going_on,
    )
    for order in wanted:  # invalid settings are refused before writing
        make(method, Utterance(_ANY_RATE, order.name, order.speaker, 0, 0, options.command_timeout))
    problems: list[str] = []
    seconds, clipped, unchanged = 0.0, 0, 0
    with ExitStack() as stack:
        journal = None
        if options.recordings.is_dir():
            journal = stack.enter_context(
                Journal(options.output, (method, options.speaker), options.seed)
            )
        try:
            for done in _protect_each(stack, options, method, wanted, journal):
                problems += [done.problem] if done.problem else []
                seconds, clipped = seconds + done.seconds, clipped + done.clipped
                unchanged += done.is_done
        except KeyboardInterrupt:
            if journal:
                say(
                    "monitor: Interrupted. Finished recordings are kept. To continue, run the "
                    "same command again."
                )
            raise
        if journal:
            journal.finish()
    if len(problems) == len(wanted):
        raise SourceError("nothing was protected: " + "; ".join(problems[:3]))
    say(*(f"monitor: skipped: {problem}" for problem in problems))
    if clipped:
        note(f"{plural(clipped, 'sample')} clipped. Use quieter recordings.")
    count = plural(len(wanted) - len(problems) - unchanged, "recording")
    before = f"; {unchanged} there already" if unchanged else ""
    shown = options.method or "the program"  # its path and options stay private
    say(f"protected {count} ({seconds / 60:.1f} min) with {shown}{before}")
    return INCOMPLETE if problems else 0


def _protect_each(
    stack: ExitStack, options: ProtectOptions, method: str, orders: Sequence[ProtectionTask],
    journal: Journal | None,
) -> Iterator[ProtectionOutcome]:  # fmt: skip
    from monitor.anonymisers.recording import ProtectionSettings, protect_all

    lengths = {order: seconds_of(order.source) or 0.0 for order in orders}
    by_length = sorted(orders, key=lambda order: -lengths[order])  # so that none ends alone
    jobs = options.jobs or (
        1 if options.anonymiser_command else worthwhile_processes(lengths.values())
    )
    seed = options.seed if journal is None else journal.seed
    settings = ProtectionSettings(
        method,
        secrets.randbits(128) if seed is None else seed,
        options.command_timeout,
        None if journal is None else journal.path,
    )
    step = stack.enter_context(progress_over(sum(lengths.values()) / 60, "protecting", "min"))
    digests = {} if journal is None else journal.made
    outcomes = protect_all(by_length, settings, digests, jobs)
    for outcome in stack.enter_context(closing(outcomes)):
        yield outcome
        step(outcome.order.name, lengths[outcome.order] / 60)


def _hold_to_budget(options: ProtectOptions, method: str | None) -> int:
    """Write the part of a recording that a budget of bits allows."""
    from monitor.population.population import Population
    from monitor.run.scrub_attackers import ScrubSettings
    from monitor.run.scrubbing import scrub

    budget = options.budget
    _check_budget(options, method)
    load_speaker_model(budget.features, [options.recordings])
    people = Population.reference() if budget.store is None else Population.load(budget.store)
    check_model(feature_setup().speaker, people, budget.store)
    safe = budget.protected_population
    settings = ScrubSettings(
        features=budget.features,
        silence=budget.silence,
        anonymiser=method,
        protected=None if safe is None else Population.load(safe),
        seed=options.seed,
        setup=feature_setup(),
        **({} if budget.tries is None else {"tries": budget.tries}),
    )
    done = 0.0
    with progress_over(_PERCENT, "protecting", "%") as step:

        def progress(label: str, fraction: float) -> None:
            nonlocal done
            step(label, max(_PERCENT * fraction - done, 0.0))
            done = max(_PERCENT * fraction, done)

        assert budget.bits is not None
        scrubbed = scrub(
            options.recordings, options.output, people, budget.watch or "", budget.bits, settings,
            progress=progress,
        )  # fmt: skip
    _print(scrubbed)
    note(*scrubbed.notices(informed=safe is not None))
    if budget.plot is not None:
        from monitor.plots.recording import plot_scrubbed

        plot_scrubbed(budget.plot, scrubbed.curves())
    _, curve = scrubbed.strongest(scrubbed.after)
    say(
        f"{options.output}: {scrubbed.kept_seconds:.1f} of {scrubbed.speech_seconds:.1f} s of "
        f"speech unchanged. Peak {curve.peak:.2f} bits at {clock_time(curve.peak_seconds)}, of "
        f"{scrubbed.budget:g} allowed."
    )
    return 0


def _check_budget(options: ProtectOptions, method: str | None) -> None:
    from monitor.sinks.jsonl import refuse_overwrite

    budget = options.budget
    if budget.watch is None:
        raise UsageError("--budget counts bits of one speaker: add --watch NAME")
    if budget.silence and method is not None:
        raise UsageError("--silence removes stretches, --method changes them: use one")
    if method is None and budget.protected_population is not None:
        raise UsageError("--protected-population needs --method NAME")
    if method is None and options.seed is not None:
        raise UsageError("--seed needs --method NAME")
    for name in ("speaker", "command_timeout", "jobs"):
        if getattr(options, name) is not None:
            raise UsageError(f"{name.replace('_', '-')} does not apply to --budget: leave it out")
    sources = [options.recordings, budget.store, budget.protected_population]
    refuse_overwrite(options.output, sources)
    check_output(options.output) if options.replace else check_new(options.output, "-o")
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
    for name in ("features", "sound", "templates"):
        table.add_column(name)
    for name in ("peak before", "after"):
        table.add_column(name, justify="right")
    for cells in scrubbed.rows():
        table.add_row(*map(Text, cells))
    console.print(table)
