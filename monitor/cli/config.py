"""The option --config: values of options from a TOML file, a table for each command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from monitor.errors import UsageError

__all__ = ["defaults_from"]


def defaults_from(path: Path, names: list[str], command: click.Command) -> dict[str, Any]:
    """What the table of a command says, as click takes defaults.

    Args:
        path: the file.
        names: of all commands; other tables are refused.
        command: the one that is called.

    Returns:
        values by name of the parameter; for a group of commands, such tables by command.

    Raises:
        UsageError: it cannot be read, or says what no option is called.
    """
    import tomllib

    try:
        read = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"--config {path}: {error.strerror}; check the name") from None
    except ValueError as error:  # no TOML, or no UTF-8
        raise UsageError(f"--config {path} is no TOML: {error}") from None
    for name in read:
        if name not in names:
            raise UsageError(
                f"--config {path}: there is no command {name!r}; options stand in a table of their "
                "command, such as [replay]"
            )
    return _defaults(path, command, read.get(command.name or "", {}), str(command.name))


def _defaults(path: Path, command: click.Command, table: Any, where: str) -> dict[str, Any]:
    """Of one table, and those below it."""
    if not isinstance(table, dict):
        raise UsageError(f"--config {path}: {where} is no table, such as [{where}]")
    options = {
        name.lstrip("-"): option
        for option in command.params
        if isinstance(option, click.Option)
        for name in option.opts
        if name.startswith("--")
    }
    further = command.commands if isinstance(command, click.Group) else {}
    found: dict[str, Any] = {}
    for name, value in table.items():
        if name in further:
            found[name] = _defaults(path, further[name], value, f"{where}.{name}")
        elif name in options and not isinstance(value, dict):
            option = options[name]
            if option.is_flag and isinstance(option.flag_value, str):  # one of several
                if value is True:
                    found[str(option.name)] = option.flag_value
            else:
                found[str(option.name)] = _given(option, value)
        else:
            raise UsageError(
                f"--config {path}: monitor {where.replace('.', ' ')} takes no such --{name}"
            )
    return found


def _given(option: click.Option, value: Any) -> Any:
    """A value as the command line would have it: text, or several of them."""
    if option.is_flag:
        return value
    if isinstance(value, list):
        texts = [str(each) for each in value]
        return texts if option.multiple else ",".join(texts)
    return [str(value)] if option.multiple else str(value)
