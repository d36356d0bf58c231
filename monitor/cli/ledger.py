"""monitor ledger: show, export and delete the sessions of a ledger."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from monitor.cli.options import say
from monitor.errors import StoreError, UsageError
from monitor.phrases import clock_time, plural

if TYPE_CHECKING:
    from monitor.ledger import Ledger
    from monitor.ledger.ledger import SessionSummary

_file = click.argument("file", type=click.Path(path_type=Path), metavar="FILE.db")
_speaker: Callable[..., Any] = click.option("--speaker", metavar="NAME", help="Only this speaker.")


@click.group(
    "ledger", short_help="Show, export or delete disclosure across sessions.", no_args_is_help=False
)
def command() -> None:
    """Show, export or delete what watched speakers have disclosed, session by session.

    \b
    monitor ledger show me.db
    monitor ledger export me.db --speaker me -o me.jsonl
    monitor ledger forget me.db me --session 3

    For each session a ledger stores readings, alerts and the names of the recordings. It also
    stores counts of pitch and phones, or a sum of voice embeddings. These are biometric data, but
    not audio.
    """


@command.command("show")
@_file
@_speaker
def show(file: Path, speaker: str | None) -> int:
    """Show the sessions as a table, or as JSON lines if standard output is not a terminal."""
    from monitor.ledger import Ledger

    with Ledger(file, create=False, write=False) as ledger:
        _check_known(ledger, speaker)
        sessions = ledger.sessions(speaker)
    if sys.stdout.isatty():
        _print_table(sessions)
    else:
        from monitor.sinks.jsonl import line_of

        for session in sessions:
            click.echo(line_of(session.record()), nl=False)
    return 0


@command.command("export")
@_file
@_speaker
@click.option(
    "-o",
    "--output",
    metavar="FILE|-",
    help="Required. Use - for standard output, unless it is a terminal.",
)
def export(file: Path, speaker: str | None, output: str | None) -> int:
    """Write everything as JSON lines: sessions, sketches, readings, alerts.

    Sketches are biometric data like templates. Keep the exported file private.
    """
    from monitor.ledger import Ledger
    from monitor.sinks.jsonl import JsonLines

    if output is None or (output == "-" and sys.stdout.isatty()):
        raise UsageError(
            "sketches are biometric data: use -o FILE.jsonl for a private file, or -o - if "
            "standard output is not a terminal"
        )
    with Ledger(file, create=False, write=False) as ledger:
        _check_known(ledger, speaker)
        lines = JsonLines(output)
        try:
            lines.begin()  # an empty ledger makes an empty file
            for record in ledger.export(speaker):
                lines.write_record(record)
        finally:
            lines.close()
    return 0


@command.command("forget", short_help="Delete a speaker or a session permanently.")
@_file
@click.argument("speaker")
@click.option("--session", type=int, metavar="N", help="Only this session. [default: all]")
def forget(file: Path, speaker: str, session: int | None) -> int:
    """Delete SPEAKER permanently. Rows are overwritten and the file is rebuilt.

    Copies, backups and older versions that a disk keeps remain.
    """
    from monitor.ledger import Ledger

    with Ledger(file, create=False) as ledger:
        count = ledger.forget(speaker, session)
    say(f"monitor: {plural(count, 'session')} of {speaker} forgotten")
    return 0


@command.command("scrub")
@_file
def scrub(file: Path) -> int:
    """Finish an interrupted `forget`."""
    from monitor.ledger import Ledger

    with Ledger(file, create=False) as ledger:
        ledger.scrub()
    return 0


def _check_known(ledger: Ledger, speaker: str | None) -> None:
    """Refuse an unknown name, since an empty table would look like no disclosure."""
    if speaker is not None and not ledger.sessions(speaker):
        raise StoreError(
            f"{ledger.path.name} has no speaker {speaker}. `monitor ledger show` lists them."
        )


def _print_table(sessions: Sequence[SessionSummary]) -> None:
    from rich.table import Table
    from rich.text import Text

    from monitor.events.phrases import clean
    from monitor.sinks.console import PlainConsole

    console = PlainConsole(highlight=False)
    if not sessions:
        console.print("no sessions")
        return
    table = Table(box=None, pad_edge=False)
    for name in ("session", "speaker", "listener", "begun", "speech"):
        table.add_column(name, justify="right" if name in ("session", "speech") else "left")
    for name in ("bits so far", "closed-set", "alerts", "recordings"):
        table.add_column(name)
    for session in sessions:
        begun = session.started.replace("T", " ").removesuffix("Z")
        row = [
            str(session.session),
            clean(session.speaker, 20),
            clean(session.listener, 20),
            begun + ("" if session.ended else ", not ended"),
            clock_time(session.speech),
            _with_limits(session.bits, session.bits_low, session.bits_high),
            _with_limits(
                session.closed_set_bits, session.closed_set_bits_low, session.closed_set_bits_high
            ),
            str(session.alerts),
            clean(", ".join(session.recordings), 30),
        ]
        table.add_row(*map(Text, row))
    console.print(table)


def _with_limits(bits: float | None, low: float | None, high: float | None) -> str:
    from monitor.events.phrases import number

    limits = "" if low is None else f" ({number(low)} to {number(high)})"
    return number(bits) + limits
