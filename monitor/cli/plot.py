"""monitor plot: draw a recorded run."""

from __future__ import annotations

from pathlib import Path

import click

from monitor.cli.options import check_output

__all__ = ["command"]


@click.command("plot", short_help="Draw a recorded run: bits against speech seconds.")
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN.jsonl")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE.png|.svg|.pdf",
    help="The picture to write.",
)
@click.option("--title", help="A title of your own.")
def command(run: Path, output: Path, title: str | None) -> int:
    """Draw RUN.jsonl: the curve with its limits, guides, ceiling, plateau and peak.

    \b
    monitor plot talk.jsonl -o talk.png

    The axis also says what the bits mean: 1 in k of the people an attacker would consider.
    """
    from monitor.figures.canvas import check_suffix
    from monitor.figures.curve import plot_run
    from monitor.sinks.schema import read_run

    check_suffix(output)
    check_output(output)
    plot_run(read_run(run), output, title=title)
    return 0
