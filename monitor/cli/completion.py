"""Completion of commands, options and their values by a shell."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

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
        if type(param.type) is click.types.StringParamType:
            offer = _offer(param)
            if offer is not None:
                param.type = Offered(offer)
    for part in getattr(command, "commands", {}).values():
        completed(part)
    return command


def _offer(param: click.Parameter) -> Any:
    """Choose what is offered for a plain text; None where nothing is known."""
    if {"--method", "--protect"} & set(param.opts):
        return _methods
    if "--watch" in param.opts:
        return _enrolled
    if any(_FILE.match(word) for word in (param.metavar or "").split("|")):
        return _files
    return None


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
