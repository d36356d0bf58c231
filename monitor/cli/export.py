"""monitor export: recorded runs as a table."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from monitor.cli.options import check_outputs, say


@click.command("export", short_help="Recorded runs as a table: CSV or Parquet.")
@click.argument(
    "runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN.jsonl..."
)
@click.option("--csv", "form", flag_value=".csv", help="Write CSV.")
@click.option(
    "--parquet", "form", flag_value=".parquet", help="Write Parquet. Needs the extra 'tables'."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE.csv|.parquet",
    help="The table to write. [default: standard output]",
)
@click.option("--replace", is_flag=True, help="Overwrite -o if it exists.")
@click.option(
    "--posterior",
    is_flag=True,
    help="With a column for everybody whom a reading names (posterior.NAME, bystander.NAME) and "
    "the favourites among the crowds: names of enrolled people.",
)
def command(
    runs: tuple[Path, ...], form: str | None, output: Path | None, replace: bool, posterior: bool
) -> int:
    """Write what RUN.jsonl (replay, listen) says as a table: a row a reading, a column a figure.

    \b
    monitor export talk.jsonl -o talk.parquet
    monitor export day1.jsonl day2.jsonl --csv > days.csv

    Columns are called as in docs/records.md, with dots into a reading: f0.rank_bits_low,
    among.1e6.bits; `run` and `watch` say whose they are. Figures are in bits, lengths in seconds;
    in Parquet each column says its unit. A cell is empty where a figure is withheld. In Python
    monitor.Readings gives the same as a data frame.
    """
    from monitor.errors import UsageError
    from monitor.sinks.jsonl import refuse_overwrite
    from monitor.tables import SUFFIXES, Readings, need, write_csv, write_parquet

    suffix = form if output is None else output.suffix.lower()
    if suffix is None or suffix not in SUFFIXES:
        raise UsageError("say which table: --csv or --parquet, or -o FILE.csv or FILE.parquet")
    if form is not None and form != suffix:
        raise UsageError(f"{output} is no {form}: leave out --{form.removeprefix('.')}")
    if suffix == ".parquet":
        need("pyarrow.parquet")
        if output is None and sys.stdout.isatty():
            raise UsageError("Parquet is not for a terminal: name a file, -o FILE.parquet")
    if output is not None:
        refuse_overwrite(output, runs)
        check_outputs([output], replace=replace)
    readings = Readings.read(*runs)
    if output is not None:
        readings.write(output, posterior=posterior)
        say(f"monitor: {len(readings)} readings written to {output}")
        return 0
    to_file = write_csv if suffix == ".csv" else write_parquet
    to_file(sys.stdout.buffer, readings.columns(posterior=posterior), readings.rows())
    return 0
