"""monitor protect: write recordings anew so that they tell less about who speaks."""

from __future__ import annotations

import secrets
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import click

from monitor.cli.help import HelpCommand
from monitor.cli.options import Seconds, argument, option, say, with_options

_ANY_RATE = 16_000


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
        "Another program instead, run for each channel: WAV on its stdin, WAV on its stdout.",
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
    command_timeout: float | None = option(
        "--command-timeout S",
        "How long the program may take for a channel before it is killed. [default: a minute and "
        "60 times the recording]",
        type=Seconds(),
    )
    jobs: int | None = option(
        "--jobs N",
        "Processes; the files do not depend on it. [default: one a core, where there are minutes "
        "of audio; of a program one, since it may use several cores itself]",
        least=1,
    )
    replace: bool = option("--replace", "Replace files that are there already.")


@click.command("protect", cls=HelpCommand, short_help="Anonymise recordings.")
@with_options(ProtectOptions)
def command(asked: ProtectOptions) -> int:
    """Write FILE, or every recording below DIR under the same name, with the voice protected.

    \b
    monitor protect talk.flac -o safe.flac --method mcadams:0.8
    monitor protect voices/ -o safe/ --method voice:random     interrupted, it goes on where it was
    monitor protect talk.wav -o safe.wav --anonymiser-command my-anonymiser
    monitor protect voices/ -o safe/ --method usc:15
    monitor protect voices/ -o tokens --method tokens:15     no sound, the tokens alone
    monitor protect frames -o noisy --method laplace:15      embeddings of monitor hear

    WAV and FLAC stay what they are, others become WAV. What an anonymiser of sound is worth
    `monitor attack` measures, against those who know it too; of laplace, `monitor score NOISY -p
    CLEAR.npz` and `monitor experiment` do, with clear templates: noisy ones tell less
    (docs/anonymisers.md). A broken file is named and skipped (exit status 4).

    Of a folder that was interrupted or killed half-way, the same command again does what is
    missing, with the same draws; until then OUT has a file .unfinished-protect, which is secret.
    """
    from contextlib import ExitStack

    from monitor.anonymisers.recording import (
        NAME,
        Journal,
        ProtectionSettings,
        plan_orders,
        protect_all,
    )
    from monitor.anonymisers.registry import make
    from monitor.anonymisers.utterance import Utterance
    from monitor.cli.options import progress_over, seconds_of, worthwhile_processes
    from monitor.errors import SourceError, UsageError
    from monitor.phrases import plural
    from monitor.run.status import INCOMPLETE

    method = asked.method
    seed = asked.seed
    jobs = asked.jobs
    if (method is None) == (asked.anonymiser_command is None):
        raise UsageError("give either --method, such as mcadams:0.8, or --anonymiser-command")
    if asked.command_timeout is not None and not (
        asked.command_timeout and asked.anonymiser_command
    ):
        raise UsageError("--command-timeout is the time of a --anonymiser-command, above 0")
    method = f"command:{asked.anonymiser_command}" if method is None else method
    name, _, setting = method.partition(":")
    if name in ("laplace", "tokens"):
        from monitor.cli.protect_frames import protect_frames, protect_tokens

        protect = protect_frames if name == "laplace" else protect_tokens
        return protect(
            asked.recordings,
            asked.output,
            setting,
            speaker=asked.speaker,
            seed=seed,
            replace=asked.replace,
        )
    going_on = (asked.output / NAME).is_file()
    wanted = plan_orders(
        asked.recordings, asked.output, speaker=asked.speaker, replace=asked.replace or going_on
    )
    for order in wanted:  # what makes no sense is refused before anything is written
        make(method, Utterance(_ANY_RATE, order.name, order.speaker, 0, 0, asked.command_timeout))
    lengths = {order: seconds_of(order.source) or 0.0 for order in wanted}
    wanted = sorted(wanted, key=lambda order: -lengths[order])  # else the last works alone
    if jobs is None and asked.anonymiser_command:
        jobs = 1
    problems: list[str] = []
    seconds, clipped, unchanged = 0.0, 0, 0
    with ExitStack() as stack:
        journal = None
        if asked.recordings.is_dir():
            journal = stack.enter_context(Journal(asked.output, (method, asked.speaker), seed))
            seed = journal.seed
        seed = secrets.randbits(128) if seed is None else seed
        settings = ProtectionSettings(
            method, seed, asked.command_timeout, journal.path if journal else None
        )
        minutes = sum(lengths.values()) / 60
        step = stack.enter_context(progress_over(minutes, "protecting", "min"))
        digests = journal.made if journal else {}
        several = jobs or worthwhile_processes(lengths.values())
        results = stack.enter_context(closing(protect_all(wanted, settings, digests, several)))
        try:
            for done in results:
                problems += [done.problem] if done.problem else []
                seconds, clipped = seconds + done.seconds, clipped + done.clipped
                unchanged += done.is_done
                step(done.order.name, lengths[done.order] / 60)
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
