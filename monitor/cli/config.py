"""The option --config: options from a TOML file, which can run commands, as a script can.

If others can write the file, only harmless options are accepted.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from monitor.cli.options import note
from monitor.errors import UsageError
from monitor.files import is_ours

_MOST_BYTES = 1 << 20
_MOST_DOTS = 500  # per line: the time to parse a dotted key grows with the cube of its length
HARMLESS = frozenset(
    ("alert", "bell", "json", "no-browser", "pairs", "speed", "title", "top", "warn")
)
"""Harmless options: no file, address, program or secret, and no effect on figures.

All others are refused from a file that others can write.
"""
_RUNS = {"on-alert", "anonymiser-command", "webhook", "notify", "mqtt"}
"""Options by which a file runs a program or sends data elsewhere."""
_RUNS_AS = re.compile(r"command:|\w+://").match
"""Matches a method that is a program, or jobs of a scheduler."""


def defaults_from(
    path: Path, names: list[str], command: click.Command, *, trusted: bool = False
) -> dict[str, Any]:
    """Read a command's table as defaults for click."""
    import tomllib

    try:
        with path.open("rb") as file:  # a device may be endless
            others = _opened_to_others(os.fstat(file.fileno()))
            text = file.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise UsageError(f"--config {path} is larger than 1 MiB: use a file of options")
        if any(line.count(b".") > _MOST_DOTS for line in text.split(b"\n")):
            raise RecursionError
        read = tomllib.loads(text.decode("utf-8-sig"))
    except OSError as error:
        raise UsageError(
            f"cannot read --config {path}: {error.strerror}. Check the name."
        ) from None
    except UsageError:  # a ValueError, too
        raise
    except ValueError as error:  # no TOML, or no UTF-8
        raise UsageError(f"--config {path} is not valid TOML: {error}") from None
    except RecursionError:
        raise UsageError(f"--config {path} nests too deeply for options") from None
    for name in read:
        if name not in names:
            raise UsageError(
                f"--config {path}: unknown command {name!r}{_nearest(name, names, '[', ']')}. Put "
                "options in a table of their command, such as [replay]."
            )
    table = read.get(command.name or "", {})
    defaults = _defaults(path, command, table, str(command.name))
    entries = list(_items(table))
    harmful = ", ".join(sorted({name for name, _ in entries} - HARMLESS))
    if harmful and others and not trusted:
        raise UsageError(
            f"--config {path} sets {harmful}, and others can write to that file: read it, then "
            f"make it yours alone ({others} {path}), or use --trust-config"
        )
    acting = {n for n, texts in entries if n in _RUNS or any(map(_RUNS_AS, texts))}
    runs = ", ".join(sorted(acting))
    if runs and not trusted:
        note(f"{path} runs commands or sends alerts: {runs} (--trust-config hides this note)")
    return defaults


def _opened_to_others(status: os.stat_result) -> str:
    """Return the command that makes a file private; empty if only we and root can write to it."""
    if not is_ours(status) and status.st_uid != 0:
        return "chown $USER"
    writable = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and os.name == "posix"
    return "chmod 600" if writable else ""


def _items(table: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Yield the options in a table and its subtables, with their values as texts."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _items(value)
        else:
            yield name, [str(text) for text in (value if isinstance(value, list) else [value])]


def _defaults(path: Path, command: click.Command, table: Any, where: str) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise UsageError(f"--config {path}: {where!r} is not a table (use [{where}])")
    options = {
        name.lstrip("-"): option
        for option in command.params
        if isinstance(option, click.Option)
        for name in option.opts
        if name.startswith("--")
    }
    further = command.commands if isinstance(command, click.Group) else {}
    defaults: dict[str, Any] = {}
    for name, value in table.items():
        if name in further:
            defaults[name] = _defaults(path, further[name], value, f"{where}.{name}")
        elif name in options and not isinstance(value, dict):
            option = options[name]
            if option.is_flag and isinstance(option.flag_value, str):  # one of several flags
                if value is True:
                    defaults[str(option.name)] = option.flag_value
            else:
                defaults[str(option.name)] = _given(path, option, value)
        else:
            keys = sorted({*further, *options} - {"help-all"})
            raise UsageError(
                f"--config {path}: [{where}] has no key {name}{_nearest(name, keys)}. Its keys are "
                + ", ".join(keys)
            )
    return defaults


def _nearest(name: str, names: list[str], before: str = "", after: str = "") -> str:
    from difflib import get_close_matches

    near = [match for match in get_close_matches(name.replace("_", "-"), names, 1) if match != name]
    return f" (did you mean {before}{near[0]}{after}?)" if near else ""


def _given(path: Path, option: click.Option, value: Any) -> Any:
    """Convert a value to what the command line would pass: a text, or several."""
    if option.is_flag:
        if not isinstance(value, bool):
            raise UsageError(f"--config {path}: {option.opts[-1]} must be true or false")
        return value
    if isinstance(value, list):
        texts = [str(item) for item in value]
        return texts if option.multiple or option.nargs > 1 else ",".join(texts)
    return [str(value)] if option.multiple else str(value)
