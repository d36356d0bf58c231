"""monitor people: list who is enrolled, or delete a person."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import click

from monitor.cli.help import HelpCommand
from monitor.cli.options import argument, check_outputs, option, say, unlocked, with_options
from monitor.errors import UsageError


@dataclass(frozen=True, slots=True)
class PeopleOptions:
    """Options of the command."""

    store: Path = argument("FILE.npz")
    forget: str | None = option("--forget NAME", "Delete NAME from the file.")
    output: Path | None = option(
        "-o, --output FILE.npz",
        "With --forget: write the rest there, and leave the file as it is. [default: rewrite it]",
    )
    replace: bool = option("--replace", "Overwrite -o if it exists.")


@click.command("people", cls=HelpCommand, short_help="List enrolled speakers, or delete one.")
@with_options(PeopleOptions)
def command(asked: PeopleOptions) -> int:
    """List the speakers enrolled in FILE.npz, or delete one with all that is known of them.

    \b
    monitor people us.npz                            name, speech seconds, sessions
    monitor people us.npz --forget ann
    monitor people us.npz --forget ann -o without-ann.npz

    --forget deletes the template, the fingerprints of the recordings, and what calibration kept,
    also of a speaker of the calibration or of your own cohort. Rank models fitted to many together
    cannot be parted: runs say so until you calibrate again. The old bytes are overwritten. Other
    copies, frames, scores and runs are not reached; a ledger has `monitor ledger forget`.
    """
    if asked.forget is not None:
        return _forget(asked.store, asked.forget, asked.output, replace=asked.replace)
    if asked.output is not None:
        raise UsageError("-o goes with --forget NAME")
    from monitor.population.population import Population

    population = Population.load(asked.store)
    terminal, width = sys.stdout.isatty(), max(len(name) for name in population.names)
    if terminal:
        say(f"{'name':<{width}}  speech  sessions", err=False)
    lengths = map(float, population.template_seconds)
    for name, seconds, speaker in zip(population.names, lengths, population.speakers, strict=True):
        sessions = max(len(speaker.sessions), 1)
        if terminal:
            say(f"{name:<{width}}  {seconds:>4.0f} s  {sessions:>8}", err=False)
        else:
            row = {"name": name, "speech_seconds": seconds, "sessions": sessions}
            click.echo(json.dumps(row))
    return 0


def _forget(store: Path, name: str, output: Path | None, *, replace: bool) -> int:
    from monitor.files import alone, wiped
    from monitor.population.forgetting import forget
    from monitor.population.population import Population

    target = store if output is None else output
    if output is not None and output.exists() and output.samefile(store):
        raise UsageError(f"-o {output} is the file itself; leave out -o to rewrite it")
    if not store.exists():
        Population.load(store)  # says what is wrong
    check_outputs([target], replace=replace or output is None)
    with alone(target) as locked, wiped(store) if output is None else nullcontext():
        people = forget(store, name, output)
    if not locked:
        say(unlocked(target))
    for line in people.in_words(name):
        say(line)
    if output is not None:
        say(f"{output} holds the rest; {store} is as it was, with {name} in it")
    return 0
