"""monitor forget: take a person out of a population."""

from __future__ import annotations

from pathlib import Path

import click

from monitor.cli.options import check_output, say, unlocked


@click.command("forget", short_help="Take a person out of a population: template, traces and name.")
@click.argument("name")
@click.option(
    "-p",
    "--population",
    "store",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE.npz",
    help="The population, or rank models in a file of their own.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE.npz",
    help="Write the rest there, and leave -p as it is. [default: rewrite -p]",
)
@click.option("--replace", is_flag=True, help="Overwrite -o if it exists.")
def command(name: str, store: Path, output: Path | None, replace: bool) -> int:
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

    target = store if output is None else output
    if output is not None and output.exists() and output.samefile(store):
        raise UsageError(f"-o {output} is the file itself; leave out -o to rewrite it")
    if output is not None and output.exists() and not replace:
        raise UsageError(f"{output} exists; use --replace to overwrite it")
    if not store.exists():
        Population.load(store)  # says what is wrong
    check_output(target)
    with alone(target) as locked, wiped(store) if output is None else nullcontext():
        found = forget(store, name, output)
    if not locked:
        say(unlocked(target))
    for line in found.in_words(name):
        say(line)
    if output is not None:
        say(f"{output} holds the rest; {store} is as it was, with {name} in it")
    return 0
