"""The command line: wires objects, holds no logic. Each command is a file of its own."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

import click

from monitor.errors import MonitorError, UsageError
from monitor.version import __version__

__all__ = ["FAILED", "INCOMPLETE", "RAISED", "cli", "main"]

FAILED, USAGE, RAISED, INCOMPLETE, INTERRUPTED = 1, 2, 3, 4, 130
COMMANDS = ("demo", "replay", "enroll", "calibrate", "plot")


class _Lazy(click.Group):
    """Loads a command's file when it is asked for; none of them imports anything heavy."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"monitor.cli.{cmd_name}").command
        return command


@click.group(
    cls=_Lazy,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="monitor")
@click.option("--debug", is_flag=True, help="Show a traceback when something fails.")
def cli(debug: bool) -> None:
    """How many bits of identity a voice gives away, measured while it is heard.

    \b
    monitor demo                        see it work, nothing else needed
    monitor replay talk.flac            measure a recording against the shipped readers
    monitor enroll PEOPLE -o us.npz     make templates of your own speakers
    monitor calibrate PEOPLE -o us.npz  learn what a rank among them means

    Exit status: 0 fine, 1 failed, 2 wrong usage, 3 an alert was raised, 4 something was incomplete
    (audio lost, a file skipped), 130 interrupted.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and leave with its exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in arguments
    try:
        sys.exit(_run(arguments))
    except BrokenPipeError:
        # the reader of our output has gone (head): leave quietly
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except KeyboardInterrupt:
        _say("interrupted")
        sys.exit(INTERRUPTED)
    except MonitorError as error:
        if debug:
            raise
        _say(str(error))
        sys.exit(USAGE if isinstance(error, UsageError) else FAILED)
    except Exception as error:
        if debug:
            raise
        _say(f"unexpected {type(error).__name__}: {error}; run again with --debug and report it")
        sys.exit(FAILED)


def _run(arguments: list[str]) -> Any:
    try:
        status = cli.main(arguments, prog_name="monitor", standalone_mode=False)
        sys.stdout.flush()
    except click.Abort:
        raise KeyboardInterrupt from None
    except click.ClickException as error:
        error.show()
        return error.exit_code
    return status if isinstance(status, int) else 0


def _say(message: str) -> None:
    click.echo(f"monitor: {' '.join(message.split())}", err=True)
