"""monitor enroll: make templates of speakers."""

from __future__ import annotations

from pathlib import Path

import click

from monitor.cli.options import Names, Seconds

__all__ = ["command"]


@click.command("enroll", short_help="Make templates of your own speakers.")
@click.argument("corpus", type=click.Path(path_type=Path), metavar="DIR|MANIFEST")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE.npz",
    help="The population to write (private to you, mode 0600).",
)
@click.option(
    "--seconds",
    type=Seconds(),
    default="120",
    show_default=True,
    metavar="D",
    help="Speech seconds of each speaker to use, at most.",
)
@click.option("--add", is_flag=True, help="Add these speakers to the population in -o.")
@click.option(
    "--base",
    metavar="FILE|reference",
    help="Add these speakers to that population instead, and write both to -o.",
)
@click.option("--replace", is_flag=True, help="Overwrite -o if it exists.")
@click.option(
    "--features",
    type=Names(),
    help="What to enrol. [default: f0; of ready-made frames whatever they hold]",
)
def command(
    corpus: Path,
    output: Path,
    seconds: float,
    add: bool,
    base: str | None,
    replace: bool,
    features: tuple[str, ...] | None,
) -> int:
    """Make a template of every speaker in DIR or MANIFEST and store them as a population.

    \b
    DIR may hold a folder for each speaker (with a sub-folder for each session, or one file a
    session), LibriSpeech's SPEAKER/CHAPTER folders, or Kaldi's wav.scp + utt2spk. MANIFEST is a
    .csv or .tsv with the columns path, speaker and, if you have it, session.

    \b
    monitor enroll voices/ -o us.npz
    monitor enroll me/ --base reference -o me.npz     among the shipped readers

    A template is biometric data, even without the audio: keep the file private, and delete it when
    it is not needed any more. Nothing of the audio itself is stored.
    """
    from monitor.cli import INCOMPLETE
    from monitor.cli.progress import progress_over
    from monitor.corpus.finding import find
    from monitor.errors import UsageError
    from monitor.population.population import Population
    from monitor.training.enrolling import enrol

    if add and base is not None:
        raise UsageError("--add goes into -o itself; leave out --base")
    if output.exists() and not (add or replace):
        raise UsageError(f"{output} exists; use --add to add speakers or --replace to overwrite it")
    before = None
    if add:
        before = Population.load(output)
    elif base is not None:
        before = Population.reference() if base == "reference" else Population.load(base)
    if before is not None and features is None:
        features = tuple(before.features)
    found = find(corpus)
    with progress_over(len(found.recordings), "enrolling") as step:
        made = enrol(
            found, features=features, seconds=seconds, progress=lambda r: step(f"{r.speaker}")
        )
    population = made.population if before is None else before.joined(made.population)
    population.save(output)
    for problem in made.problems:
        click.echo(f"monitor: skipped: {problem}", err=True)
    lengths = made.population.template_seconds
    click.echo(
        f"{len(made.population)} speakers enrolled, {lengths.min():g} to {lengths.max():g} s of "
        f"speech each; {output} holds {len(population)}",
        err=True,
    )
    if before is not None and population.borrowed:
        click.echo(
            "monitor: the rank law is borrowed from the speakers that were there before; another "
            "microphone makes a voice easier to tell from the rest",
            err=True,
        )
    elif not len(population.laws):
        click.echo(
            f"next: learn what a rank means with  monitor calibrate CORPUS -o {output}", err=True
        )
    scoring = population.scoring()
    for name, member in zip(population.names, scoring.members, strict=True):
        if not member:
            click.echo(
                f"monitor: {name} has much less speech than the others ({scoring.seconds:g} s) and "
                "will not be ranked among them",
                err=True,
            )
    return INCOMPLETE if made.problems else 0
