"""Help of commands: short help, ``--help-all``, settings, and values that a shell completes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from copy import copy
from typing import TYPE_CHECKING, Any

import click

from monitor.errors import MonitorError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


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
VARIABLE = "_MONITOR_COMPLETE"
"""Environment variable through which the script of `monitor doctor --completion` asks the
program."""
_FILE = re.compile(r"\[?(FILE|DIR|MANIFEST|FRAMES|RECORDING|RUN|CORPUS|SCORES)\b")
"""Words of a metavar that stand for a file."""


class Setting(click.Option):
    """An option for ``--config FILE`` only, too rare for the command line."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.hidden = True

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Keep it off the command line."""

    def get_error_hint(self, ctx: click.Context | None) -> str:
        """Name it as in FILE."""
        return f"{self.opts[0].removeprefix('--')} in --config FILE"

    def describe(self, ctx: click.Context) -> tuple[str, str]:
        """Return its name and value, and its help."""
        shown = copy(self)
        shown.hidden = False
        record = click.Option.get_help_record(shown, ctx)
        assert record is not None
        return record[0].removeprefix("--"), record[1]


def typed(command: click.Command) -> list[str]:
    """List the long and short names of a command's options, without settings."""
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    return [
        name
        for parameter in options
        if not isinstance(parameter, Setting)
        for name in (*parameter.opts, *parameter.secondary_opts)
    ]


def replacement(error: click.NoSuchOption) -> str:
    """Describe the replacement of an unknown option, or return an empty text."""
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
        """Write the options under a heading per group; rare ones only for ``--help-all``."""
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


class ChoiceHint(click.types.StringParamType):
    """A text option for which the shell offers values."""

    def __init__(self, offer: Callable[[click.Context, str], Iterable[CompletionItem]]) -> None:
        self._offer = offer

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the possible completions."""
        return list(self._offer(ctx, incomplete))


def completed(command: click.Command) -> click.Command:
    """Add completions to the options and arguments of a command."""
    for param in command.params:
        if type(param.type) is not click.types.StringParamType:
            continue
        if {"--method", "--protect"} & set(param.opts):
            param.type = ChoiceHint(_methods)
        elif "--watch" in param.opts:
            param.type = ChoiceHint(_enrolled)
        elif any(_FILE.match(word) for word in (param.metavar or "").split("|")):
            param.type = ChoiceHint(_files)
    for subcommand in getattr(command, "commands", {}).values():
        completed(subcommand)
    return command


def _files(_: click.Context, typed: str) -> Iterable[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(typed, type="file")]


def _methods(_: click.Context, typed: str) -> Iterable[CompletionItem]:
    from monitor.anonymisers.registry import ANONYMISERS

    return _beginning(typed, (name for name in ANONYMISERS if name != "command"))


def _enrolled(context: click.Context, typed: str) -> Iterable[CompletionItem]:
    from monitor.population import Population

    store = context.params.get("store")
    try:
        people = Population.reference() if store is None else Population.load(store)
    except MonitorError:  # reported when the command runs
        return []
    return _beginning(typed, people.names)


def _beginning(typed: str, names: Iterable[str]) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(name) for name in names if name.startswith(typed)]


def script_for(shell: str, cli: click.Command) -> str:
    """Make the script with which a shell (bash, zsh, fish) completes `monitor` commands."""
    from click.shell_completion import get_completion_class

    completion = get_completion_class(shell)
    assert completion is not None
    script = completion(cli, {}, "monitor", VARIABLE).source()
    # fish would cut a list of features at its first comma
    return script.replace('(string split "," ', '(string split -m 1 "," ')
