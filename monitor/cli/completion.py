"""Values that a shell completes: files, features, methods, enrolled people."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

from monitor.errors import MonitorError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


VARIABLE = "_MONITOR_COMPLETE"
"""Environment variable through which the script of `monitor doctor --completion` asks the
program."""
_FILE = re.compile(r"\[?(FILE|DIR|MANIFEST|FRAMES|RECORDING|RUN|CORPUS|SCORES)\b")
"""A metavar, or one of the words in it, that stands for a file."""


class ChoiceHint(click.types.StringParamType):
    """A text option for which the shell offers values."""

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
    """Make the script that lets a shell (bash, zsh, fish) complete what `monitor` takes."""
    from click.shell_completion import get_completion_class

    completion = get_completion_class(shell)
    assert completion is not None
    script = completion(cli, {}, "monitor", VARIABLE).source()
    # fish would cut a list of features at its first comma
    return script.replace('(string split "," ', '(string split -m 1 "," ')
