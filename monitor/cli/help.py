"""Help of commands: short help, ``--help-all`` and settings."""

from __future__ import annotations

import re
from copy import copy
from typing import Any

import click

RARE = frozenset(
    (
        *("--rank-model", "--speaker-model", "--warn", "--raw", "--speaker-in-transcript"),
        *("--trained", "--replicates", "--seed", "--cohort", "--salt", "--lengths"),
        *("--template-lengths", "--groups", "--criteria", "--enrolment-labels", "--dev-labels"),
        *("--epsilon", "--pairs", "--choose", "--scoring", "--allow-idle-alerts"),
        *("--delay", "--listener"),
    )
)
"""Rarely needed options, shown only by ``--help-all``."""
FULL = "monitor.help_all"
GONE = {
    "--all": "--figures all",
    "--audio-column": "--columns audio=NAME",
    "--end": "--part START-END",
    "--rttm": "--turns FILE",
    "--scheduler": "--jobs tcp://HOST:PORT",
    "--session-column": "--columns session=NAME",
    "--speaker-column": "--columns speaker=NAME",
    "--start": "--part START",
    "--word-list": "MONITOR_WORD_LIST=FILE",
}
"""Replacements of options that earlier versions had."""
_END = re.compile(r"[.!?] (?=[A-Z`'\"])|; |: (?=\w+ \w+ \w+)")
_TAIL = re.compile(r"\s*((?:\[[^\[\]]*(?:\[[^\]]*\][^\[\]]*)*\]\s*)+)$")


class Setting(click.Option):
    """An option for ``--config FILE`` only, too rare for the command line."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.hidden = True

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Leave it out of what can be typed."""

    def get_error_hint(self, ctx: click.Context | None) -> str:
        """Name it as its file does."""
        return f"{self.opts[0].removeprefix('--')} in --config FILE"

    def describe(self, ctx: click.Context) -> tuple[str, str]:
        """Return its name and value, and its help."""
        shown = copy(self)
        shown.hidden = False
        record = click.Option.get_help_record(shown, ctx)
        assert record is not None
        return record[0].removeprefix("--"), record[1]


def typed(command: click.Command) -> list[str]:
    """List what can be typed after a command: long and short names of its options."""
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    return [
        name
        for parameter in options
        if not isinstance(parameter, Setting)
        for name in (*parameter.opts, *parameter.secondary_opts)
    ]


def replacement(error: click.NoSuchOption) -> str:
    """Name the replacement of an option that is not there; empty without one."""
    context, option = error.ctx, error.option_name
    if context is None:
        return ""
    available = {name: parameter for parameter in context.command.params for name in parameter.opts}
    path = context.command_path.removeprefix("monitor ")
    if isinstance(available.get(option), Setting):
        table = path.replace(" ", ".")
        return (
            f"set {option.removeprefix('--')} under [{table}] in FILE, then run: "
            f"monitor --config FILE {path} ..."
        )
    now = GONE.get(option, "")
    name, _, value = now.partition(" ")
    return f"use {now}" if now and (not value or name in available) else ""


class HelpCommand(click.Command):
    """A command with a short ``--help``, and options under the headings of their groups."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.params.append(
            click.Option(
                ["--help-all"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_print_all,
                help="Explain every option and setting in full.",
            )
        )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, a heading a group; rare ones only where all are asked for."""
        full = ctx.meta.get(FULL, False)
        headings = getattr(self.callback, "headings", {})
        sections: dict[str, list[tuple[str, str]]] = {}
        settings: list[tuple[str, str]] = []
        for param in self.get_params(ctx):
            if isinstance(param, click.Argument) or (not full and RARE.intersection(param.opts)):
                continue
            if isinstance(param, Setting):
                if full:
                    settings.append(param.describe(ctx))
            elif record := param.get_help_record(ctx):
                text = record[1] if full else first_sentence(record[1])
                heading = headings.get(param.name, "Options")
                sections.setdefault(heading, []).append((record[0], text))
        for heading, rows in sorted(sections.items(), key=lambda section: section[0] == "Options"):
            with formatter.section(heading):
                formatter.write_dl(rows, col_max=26)
        if settings:
            with formatter.section(f"Settings, under [{ctx.info_name}] in --config FILE"):
                formatter.write_dl(settings, col_max=26)


def first_sentence(text: str) -> str:
    """Return the first sentence of an option's help, and its default.

    Example:
        >>> first_sentence("Stop there. Later sound is not read.  [default: the end]")
        'Stop there.  [default: the end]'
    """
    tail = _TAIL.search(text)
    body = text[: tail.start()] if tail else text
    ends = (end.start() for end in _END.finditer(body))
    closed = (end for end in ends if body[:end].count("(") == body[:end].count(")"))
    body = body[: next(closed, len(body))].rstrip(".")
    return f"{body}.  {tail[1].strip()}" if tail else f"{body}."


def _print_all(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        ctx.meta[FULL] = True
        click.echo(ctx.get_help())
        ctx.exit()
