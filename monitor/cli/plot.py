"""monitor plot: draw a recorded run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from monitor.cli.options import CrowdSizes, argument, check_output, given, option, say


@dataclass(frozen=True, slots=True)
class PlotOptions:
    """Options of the command."""

    run: Path = argument("RUN.jsonl")
    output: Path | None = option(
        "-o, --output FILE.png|.svg|.pdf",
        "The picture to write. [default: a new RUN.png beside RUN.jsonl]",
    )
    title: str | None = option("--title", "A title of your own.")
    guides: bool = option(
        "--guides",
        "Draw composition beside the evidence: linear and square-root growth of an average voice, "
        "what calibration supports, and what a declared epsilon allows.",
    )
    among: tuple[int, ...] | None = option(
        "--among",
        "Draw instead what the watched speaker's voice was worth among so many people, a line for "
        "each, such as 100,1e4,1e6.",
        type=CrowdSizes(),
    )


@click.command("plot", short_help="Draw a recorded run: bits against speech seconds.")
@given(PlotOptions)
def command(asked: PlotOptions) -> int:
    """Draw RUN.jsonl: the curve with its limits, ceiling, plateau and peak.

    \b
    monitor plot talk.jsonl                       talk.png, unless it is there
    monitor plot talk.jsonl -o talk.svg --guides
    monitor plot talk.jsonl -o crowds.png --among 100,1e4,1e6

    Evidence stands on a scale of crowds: so many bits leave one person of a town. Without any, the
    axis says 1 in k of the people an attacker would consider, and guides are drawn.
    """
    from monitor.errors import UsageError
    from monitor.plots.canvas import check_suffix
    from monitor.plots.curve import plot_crowds, plot_run
    from monitor.records.schema import read_run

    output = asked.output
    named = output is not None
    output = output or asked.run.with_suffix(".png")
    if not named and output.exists():
        raise UsageError(f"{output} exists; name the picture with -o")
    check_suffix(output)
    check_output(output)
    records = read_run(asked.run)
    if asked.among is not None and "people" in records[0]:
        raise UsageError(f"{asked.run} is of several people: --among draws one voice")
    if asked.among is None:
        plot_run(records, output, title=asked.title, guides=asked.guides)
    else:
        plot_crowds(records, output, asked.among, title=asked.title)
    if not named:
        say(f"the picture is {output}")
    return 0
