"""monitor show: a recorded run as a picture, a table or a page."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click

from monitor.cli.help import HelpCommand
from monitor.cli.options import (
    CrowdSizes,
    argument,
    check_output,
    check_outputs,
    guides_setting,
    option,
    say,
    setting,
    shared,
    with_options,
)
from monitor.cli.page_options import LOOPBACK, Address, open_page, web_token_setting
from monitor.errors import UsageError

_WAIT_SECONDS = 2.0  # for a run to be read before its page is shown


@dataclass(frozen=True, slots=True)
class ShowOptions:
    """Options of the command."""

    runs: tuple[Path, ...] = argument("RUN.jsonl...", nargs=-1)
    output: Path | None = option(
        "-o, --output FILE",
        "A picture (.png, .svg, .pdf) or a table (.csv, .parquet). [default: a browser page]",
    )
    replace: bool = option("--replace", "Overwrite -o if it exists.")
    csv: bool = option("--csv", "Print a table as CSV.")
    title: str | None = setting("title", "Title of the picture.")
    guides: bool = guides_setting()
    among: tuple[int, ...] | None = option(
        "--among",
        "Draw the watched voice's bits in crowds of these sizes, such as 100,1e4,1e6, as a "
        "picture.",
        type=CrowdSizes(),
    )
    posterior: bool = setting(
        "posterior", "Add a table column for each enrolled person named in a reading."
    )
    web: tuple[str, int] = option(
        "--web",
        "Address of the page. [default: any free port, on this machine only]",
        type=Address(),
        default=f"{LOOPBACK}:0",
        show_default=False,
    )
    web_token: str | None = shared(web_token_setting)
    no_browser: bool = option("--no-browser", "Only print the address of the page.")
    keys: bool = option("--keys", "Explain every key of a run, and exit.")


@click.command("show", cls=HelpCommand, short_help="Plot, view or export a saved run.")
@with_options(ShowOptions)
def command(options: ShowOptions) -> int:
    """Show a run that replay, listen or serve saved: as a page, a picture or a table.

    \b
    monitor show talk.jsonl                          in the browser, until Ctrl-C
    monitor show talk.jsonl -o crowds.png --among 100,1e4,1e6

    \b
    monitor show day1.jsonl day2.jsonl -o days.csv   one row per reading
    monitor show --keys                              every key explained

    Table columns are the keys of a reading, with dots: f0.rank_bits_low. A cell is empty if its
    figure is withheld. The page needs the extra 'web', Parquet the extra 'tables'.
    """
    from monitor.plots.canvas import SUFFIXES as PICTURES
    from monitor.tables import SUFFIXES as TABLES

    if options.keys:
        from monitor.events.schema import RECORDS

        formatter = click.HelpFormatter(width=100)
        for record in RECORDS:
            with formatter.section(record.title):
                formatter.write_dl([(key.name, key.meaning) for key in record.keys if key.meaning])
        click.echo(formatter.getvalue(), nl=False)
        return 0
    if not options.runs:
        raise UsageError("name a RUN.jsonl: monitor replay --jsonl RUN.jsonl writes one")
    suffix = "" if options.output is None else options.output.suffix.lower()
    if options.csv or suffix in TABLES:
        return _write_table(options, suffix)
    if len(options.runs) > 1:
        raise UsageError("several runs make a table: use -o FILE.csv")
    if options.output is None:
        return _open_page(options)
    if suffix not in PICTURES:
        endings = ", ".join((*PICTURES, *TABLES))
        raise UsageError(f"-o {options.output}: let the name end in one of {endings}")
    return _draw(options, options.output)


def _draw(options: ShowOptions, output: Path) -> int:
    from monitor.events.declaration import find_first
    from monitor.events.run import RunStart
    from monitor.events.schema import read_run
    from monitor.plots.curve import plot_crowds, plot_run

    (run,) = options.runs
    check_output(output)
    events = read_run(run)
    if options.among is None:
        plot_run(events, output, title=options.title, guides=options.guides)
        return 0
    start = find_first(events, RunStart)
    if start is not None and start.people is not None:
        raise UsageError(f"{run} has several people: --among draws one voice")
    plot_crowds(events, output, options.among, title=options.title)
    return 0


def _write_table(options: ShowOptions, suffix: str) -> int:
    from monitor.sinks.jsonl import refuse_overwrite
    from monitor.tables import Readings, need, write_csv

    if options.csv and suffix not in ("", ".csv"):
        raise UsageError(f"-o {options.output} is not a CSV: leave out --csv")
    if suffix == ".parquet":
        need("pyarrow.parquet")
    if options.output is None:
        readings = Readings.read(*options.runs)
        columns = readings.columns(posterior=options.posterior)
        write_csv(sys.stdout.buffer, columns, readings.rows())
        return 0
    refuse_overwrite(options.output, options.runs)
    check_outputs([options.output], replace=options.replace)
    readings = Readings.read(*options.runs)
    readings.write(options.output, posterior=options.posterior)
    say(f"monitor: {len(readings)} readings written to {options.output}")
    return 0


def _open_page(options: ShowOptions) -> int:
    import threading
    import time
    import webbrowser

    from monitor.events.schema import follow_run

    events = follow_run(options.runs[0])
    first = next(events)  # refuses other files before anything is opened
    with open_page(options.web, token=options.web_token, recorded=True) as page:

        def show() -> None:
            say(page.url, err=False)
            if not options.no_browser:
                webbrowser.open(page.url)

        page.write(first)
        shown, until = False, time.monotonic() + _WAIT_SECONDS
        with suppress(KeyboardInterrupt):
            for event in events:
                page.write(event)
                if not shown and time.monotonic() > until:
                    show()  # reading a run of days takes minutes: the rest follows as if live
                    shown = True
            if not shown:
                show()
            threading.Event().wait()
    return 0
