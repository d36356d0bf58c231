"""monitor forget: take a person out of a population."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from monitor.cli.options import argument, check_outputs, given, option, say, unlocked


@dataclass(frozen=True, slots=True)
class ForgetOptions:
    """Options of the command."""

    name: str = argument("NAME")
    store: Path = option(
        "-p, --population FILE.npz",
        "The population, or rank models in a file of their own.",
        required=True,
    )
    output: Path | None = option(
        "-o, --output FILE.npz",
        "Write the rest there, and leave -p as it is. [default: rewrite -p]",
    )
    replace: bool = option("--replace", "Overwrite -o if it exists.")


@click.command("forget", short_help="Take a person out of a population: template, traces and name.")
@given(ForgetOptions)
def command(asked: ForgetOptions) -> int:
    """Forget NAME: template, fingerprints of the recordings, and what calibration kept.

    \b
    monitor forget ann -p us.npz
    monitor forget ann -p us.npz -o without-ann.npz

    NAME need not be enrolled: whoever was only calibrated with, or is one of a cohort of your own,
    goes too. What was learnt from many together (rank models) cannot be parted; it is said, and
    runs say so until you calibrate again.

    The file is written anew and takes the place of the old one, whose bytes are overwritten. Other
    copies, backups, frames, scores, runs and what a disk keeps of older versions are not reached;
    a ledger has `monitor ledger forget`.
    """
    from contextlib import nullcontext

    from monitor.errors import UsageError
    from monitor.files import alone, wiped
    from monitor.population.forgetting import forget
    from monitor.population.population import Population

    target = asked.store if asked.output is None else asked.output
    if asked.output is not None and asked.output.exists() and asked.output.samefile(asked.store):
        raise UsageError(f"-o {asked.output} is the file itself; leave out -o to rewrite it")
    if not asked.store.exists():
        Population.load(asked.store)  # says what is wrong
    check_outputs([target], replace=asked.replace or asked.output is None)
    with alone(target) as locked, wiped(asked.store) if asked.output is None else nullcontext():
        people = forget(asked.store, asked.name, asked.output)
    if not locked:
        say(unlocked(target))
    for line in people.in_words(asked.name):
        say(line)
    if asked.output is not None:
        say(f"{asked.output} holds the rest; {asked.store} is as it was, with {asked.name} in it")
    return 0
