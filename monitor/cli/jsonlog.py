"""Options for the JSON lines of a run."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from monitor.cli.options import grouped

if TYPE_CHECKING:
    from monitor.run import LogFile

__all__ = ["JsonLog", "jsonl_options"]


@dataclass(frozen=True, slots=True)
class JsonLog:
    """What was asked for; a command gets it as ``log``.

    Attributes:
        jsonl: the file, ``-``, or None.
        replace: overwrite what it holds.
    """

    jsonl: str | None
    replace: bool

    @property
    def name(self) -> str | None:
        """Where the lines go: standard output where no file was named, and no terminal is there."""
        return "-" if self.jsonl is None and not sys.stdout.isatty() else self.jsonl

    def file(self, spared: Iterable[object | None], *, resume: bool = False) -> LogFile | None:
        """For a `Run`.

        Args:
            spared: files that the run reads.
            resume: go on with the run that the file holds.

        Raises:
            UsageError: there is nothing to resume, or it is to be overwritten.
        """
        from monitor.errors import UsageError
        from monitor.run import LogFile

        if resume and self.name in (None, "-"):
            raise UsageError("--resume needs the file of the interrupted run: --jsonl FILE")
        if resume and self.replace:
            raise UsageError("--resume goes on with a run, --replace begins it anew: give one")
        if self.name is None:
            return None
        read = tuple(str(each) for each in spared if each)
        return LogFile(self.name, self.replace, resume, read)


def _one(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> str | None:
    """Of one file and another the last would be written in silence."""
    if len(given) > 1:
        raise click.BadParameter(
            f"given {len(given)} times ({', '.join(given)}): a run has one file", context, option
        )
    return given[0] if given else None


_OPTIONS = (
    click.option(
        "--jsonl",
        metavar="FILE|-",
        multiple=True,
        callback=_one,
        help="Write JSON lines there. [default: to standard output if it is no terminal]",
    ),
    click.option(
        "--replace", is_flag=True, help="Overwrite what --jsonl FILE holds, or --summary."
    ),
)

jsonl_options = grouped("log", JsonLog, _OPTIONS)
"""Adds them to a command, as its argument ``log``."""
