"""Help of commands: short help, ``--help-all``, and what a shell can complete."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# --- Help: short by default, under headings.

RARE = frozenset(
    (
        *("--rank-model", "--template-seconds", "--enrolled-prior", "--bystanders", "--word-list"),
        *("--speaker-model", "--horizon", "--protect-seed", "--turns-delay", "--scheduler"),
        *(
            "--ledger-every",
            "--web-token",
            "--mqtt-ca",
            "--mqtt-name",
            "--warn",
            "--raw",
            "--speaker-in-transcript",
            "--allow-overlap",
            "--allow-idle-alerts",
        ),
        *("--reconnect", "--bell", "--no-bell", "--alert-for", "--trained", "--replicates"),
        *("--seed", "--trials", "--cohort", "--no-prior", "--delta"),
        *("--command-timeout", "--salt", "--top", "--step", "--lengths"),
        *("--template-lengths", "--groups", "--criteria", "--enrolment-labels", "--dev-labels"),
        *("--epsilon", "--pairs", "--figures", "--choose", "--scoring"),
    )
)
"""Options that few people need: they stand under ``--help-all`` alone."""
FULL = "monitor.help_all"
_END = re.compile(r"[.!?] (?=[A-Z`'\"])|; |: (?=\w+ \w+ \w+)")
_TAIL = re.compile(r"\s*((?:\[[^\[\]]*(?:\[[^\]]*\][^\[\]]*)*\]\s*)+)$")


class HelpCommand(click.Command):
    """A command whose ``--help`` is short, with options under the headings of their groups."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.params.append(
            click.Option(
                ["--help-all"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_print_all,
                help="Explain every option in full.",
            )
        )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, a heading a group; rare ones only where all are asked for."""
        full = ctx.meta.get(FULL, False)
        headings = getattr(self.callback, "headings", {})
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if isinstance(param, click.Argument) or (not full and RARE.intersection(param.opts)):
                continue
            if record := param.get_help_record(ctx):
                text = record[1] if full else first_sentence(record[1])
                heading = headings.get(param.name, "Options")
                sections.setdefault(heading, []).append((record[0], text))
        for heading, rows in sorted(sections.items(), key=lambda section: section[0] == "Options"):
            with formatter.section(heading):
                formatter.write_dl(rows, col_max=26)


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


# --- What a shell offers for the value of an option: files, features, methods, enrolled people.

VARIABLE = "_MONITOR_COMPLETE"
"""Of the environment: through it the script of `monitor doctor --completion` asks the program."""

_FILE = re.compile(r"\[?(FILE|DIR|MANIFEST|FRAMES|RECORDING|RUN|CORPUS|SCORES)\b")
"""A metavar, or one of the words in it, that stands for a file."""


class Offered(click.types.StringParamType):
    """A text, for which something can be offered."""

    def __init__(self, offer: Callable[[click.Context, str], Iterable[CompletionItem]]) -> None:
        self._offer = offer

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return what a shell may put in the place of what was typed."""
        return list(self._offer(ctx, incomplete))


def completed(command: click.Command) -> click.Command:
    """Offer something for every option and argument of a command that has something."""
    for param in command.params:
        if type(param.type) is not click.types.StringParamType:
            continue
        if {"--method", "--protect"} & set(param.opts):
            param.type = Offered(_methods)
        elif "--watch" in param.opts:
            param.type = Offered(_enrolled)
        elif any(_FILE.match(word) for word in (param.metavar or "").split("|")):
            param.type = Offered(_files)
    for part in getattr(command, "commands", {}).values():
        completed(part)
    return command


def _files(_: click.Context, typed: str) -> Iterable[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(typed, type="file")]


def _methods(_: click.Context, typed: str) -> Iterable[CompletionItem]:
    from monitor.anonymisers.registry import ANONYMISERS

    return _beginning(typed, (name for name in ANONYMISERS if name != "command"))


def _enrolled(context: click.Context, typed: str) -> Iterable[CompletionItem]:
    from monitor.errors import MonitorError
    from monitor.population import Population

    store = context.params.get("store")
    try:
        people = Population.reference() if store is None else Population.load(store)
    except MonitorError:  # said when the command runs
        return []
    return _beginning(typed, people.names)


def _beginning(typed: str, names: Iterable[str]) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(name) for name in names if name.startswith(typed)]


def script_for(shell: str, cli: click.Command) -> str:
    """Make the script that lets a shell (bash, zsh, fish) complete what `monitor` takes."""
    from click.shell_completion import get_completion_class

    completion = get_completion_class(shell)
    assert completion is not None
    script = completion(cli, {}, "monitor", VARIABLE).source()
    # fish would cut a list of features at its first comma
    return script.replace('(string split "," ', '(string split -m 1 "," ')
