"""The command line. Each command has its own file, which connects objects and has no logic."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import sys
from importlib import import_module
from importlib.util import find_spec

import click

from monitor import lazy, log_lines
from monitor.cli.help import VARIABLE, completed, replacement
from monitor.cli.options import in_options, say
from monitor.errors import MonitorError, StoreError
from monitor.run import FAILED, INTERRUPTED, status_of_error
from monitor.version import __version__

__all__ = ["cli", "main"]

_GROUPS = {
    "Watch a voice": ("demo", "listen", "replay", "serve", "show"),
    "Your people": ("enrol", "calibrate", "people"),
    "Test recordings and anonymisers": (
        "score",
        "evaluate",
        "attack",
        "protect",
        "audit",
        "experiment",
    ),
    "Housekeeping": ("ledger", "doctor"),
}
_LABORATORY = ("score", "evaluate", "experiment", "attack", "audit")
COMMANDS = tuple(
    name
    for names in _GROUPS.values()
    for name in names
    if name not in _LABORATORY or find_spec("monitor.lab")
)
_ALIASES = {"enroll": "enrol"}
_MOVED = {
    "plot": "show RUN.jsonl -o FILE.png",
    "view": "show RUN.jsonl",
    "export": "show RUN.jsonl -o FILE.csv",
    "forget": "people FILE.npz --forget NAME",
    "hear": "enrol DIR --frames FRAMES, as of calibrate and score",
    "scrub": "protect FILE --budget BITS",
    "label": "audit CORPUS --card -o FILE.md",
    "devices": "doctor --devices",
    "completion": "doctor --completion SHELL",
}
"""Commands of earlier versions, and their replacements."""


class _Lazy(click.Group):
    """Loads a command's file on demand; none of the files imports anything heavy."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for title, names in _GROUPS.items():
            commands = [(name, self.get_command(ctx, name)) for name in names]
            with formatter.section(title):
                formatter.write_dl(
                    [
                        (f"{name:<{width}}", command.get_short_help_str(limit=80))
                        for name, command in commands
                        if command is not None
                    ]
                )

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        cmd_name = _ALIASES.get(cmd_name, cmd_name)
        if cmd_name not in COMMANDS:
            return None
        home = "monitor.lab.cli" if cmd_name in _LABORATORY else "monitor.cli"
        command: click.Command = import_module(f"{home}.{cmd_name}").command
        return completed(command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            if args[0] in _MOVED:
                message = f"{args[0]} is now: monitor {_MOVED[args[0]]}"
                raise click.UsageError(message, ctx) from None
            if near := get_close_matches(args[0], COMMANDS, 1):
                message = f"{error.message.rstrip('.')} (did you mean {near[0]!r}?)"
                raise click.UsageError(message, ctx) from None
            raise


@click.group(
    cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="monitor")
@click.option(
    "--debug", is_flag=True, expose_value=False, help="Show a traceback when something fails."
)
@click.option(
    "--config",
    type=click.Path(),
    metavar="FILE.toml",
    help="Read options from FILE.toml, one table per command. The command line wins. The file can "
    "run commands (--on-alert, --anonymiser-command): trust it like a script.",
)
@click.option(
    "--trust-config",
    is_flag=True,
    help="Accept every option from that file, even if others can write to it.",
)
@click.option(
    "--log",
    type=click.Choice(log_lines.FORMS),
    default="text",
    help="Form of the lines on standard error. quiet leaves warnings, alerts and errors. "
    "[default: text]",
)
@click.pass_context
def cli(context: click.Context, config: str | None, trust_config: bool, log: str) -> None:
    """Measure, in bits, how much a voice reveals about who is speaking.

    Exit status: 0 success, 1 failure, 2 usage error, 3 alert raised, 4 incomplete, 130
    interrupted. If several apply: 1, then 3, then 4.
    """
    log_lines.form = log
    name = context.invoked_subcommand
    command = cli.get_command(context, name) if name else None
    if config is not None and command is not None:
        from pathlib import Path

        from monitor.cli.config import defaults_from

        defaults = defaults_from(Path(config), list(COMMANDS), command, trusted=trust_config)
        context.default_map = {str(name): defaults}


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and leave with its exit status."""
    is_process = arguments is None  # a separate process, which owns its descriptors
    if is_process:
        lazy.take_process()
    arguments = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in arguments  # in any position
    log_lines.form = "text"
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by the shell, as in >&-
            setattr(sys, name, open(os.devnull, mode))  # noqa: PTH123, SIM115
    if is_process:
        _keep_stdout_for_data()
    for stream in (sys.stdout, sys.stderr):  # unsupported characters become question marks
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        sys.exit(_run([argument for argument in arguments if argument != "--debug"]))
    except BrokenPipeError:
        _give_up_stdout()  # the reader of our output has gone (head): leave quietly
        sys.exit(0)
    except KeyboardInterrupt:
        _say("interrupted")
        sys.exit(INTERRUPTED)
    except MonitorError as error:
        if debug:
            raise
        _say(in_options(error))
        _give_up_stdout()
        sys.exit(status_of_error(error))
    except Exception as error:
        if debug:
            raise
        _say(f"unexpected {type(error).__name__}: {error}. Run again with --debug and report it.")
        _give_up_stdout()
        sys.exit(FAILED)


_CURES = {
    errno.ENOSPC: "cannot write: {}. Make room.",
    errno.EROFS: "cannot write: {}. Choose another folder.",
    errno.EMFILE: "{}: raise the limit (ulimit -n 1024), or use fewer --jobs",
    errno.ENFILE: "{} on this machine: use fewer --jobs, or try again later",
}


def _run(arguments: list[str]) -> int:
    try:
        status = cli.main(arguments or ["--help"], prog_name="monitor", standalone_mode=False)
        sys.stdout.flush()
    except SystemExit as left:
        if VARIABLE in os.environ:  # a shell asks for completions
            return int(left.code or 0)
        raise BrokenPipeError from None  # click exits by itself only for this
    except click.Abort:
        raise KeyboardInterrupt from None
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        option_name = getattr(error, "option_name", "")
        if context and option_name in {name for option in cli.params for name in option.opts}:
            command = context.command_path.partition(" ")[2]
            value = {"--config": " FILE.toml", "--log": " json"}.get(option_name, "")
            _say(
                f"{option_name} goes before the command: monitor {option_name}{value} {command} ..."
            )
            return error.exit_code
        if isinstance(error, click.NoSuchOption) and (advice := replacement(error)):
            _say(f"unknown option {option_name}: {advice}")
            return error.exit_code
        where = f"; see {context.command_path} --help" if context is not None else ""
        _say(error.format_message().rstrip(".") + where)
        return error.exit_code
    except OSError as error:
        if error.errno in _CURES:
            raise StoreError(_CURES[error.errno].format(error.strerror)) from None
        if error.filename is None:
            if error.errno == errno.ENOENT:  # as from os.getcwd
                raise StoreError(
                    "the current folder no longer exists: change to another"
                ) from error
            raise
        name = os.fsdecode(error.filename) if isinstance(error.filename, bytes) else error.filename
        raise StoreError(
            f"{str(name)[:100]}: {error.strerror}. Check the name and its permissions."
        ) from error
    return status if isinstance(status, int) else 0


def _keep_stdout_for_data() -> None:
    """Redirect what libraries write to file descriptor 1, bypassing Python, to standard error."""
    before = sys.stdout
    if not isinstance(before, io.TextIOWrapper) or before.fileno() != 1:
        return
    with contextlib.suppress(OSError):
        data = os.dup(1)
        os.dup2(2, 1)
        sys.stdout = open(data, "w", encoding=before.encoding)  # noqa: PTH123, SIM115
        sys.stdout.reconfigure(
            line_buffering=before.line_buffering, write_through=before.write_through
        )
        sys.__stdout__ = sys.stdout  # type: ignore[misc]  # Python asks it for the terminal's width


def _give_up_stdout() -> None:
    """Flush standard output; if that fails, discard the rest, which Python would retry at exit."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(message: str) -> None:
    line = re.sub(r"\s*\n\s*", " ", message.strip())
    say(f"monitor: {line}", level="error")
