"""What the library refuses in words of Python, in those of the command line."""

from __future__ import annotations

import re

__all__ = ["in_options"]

_OPTIONS = {
    "allow_overlap": "--allow-overlap",
    "among": "--among",
    "features": "--features",
    "on_change": "--on-change",
    "replace": "--replace",
    "resume": "--resume",
    "speaker_in_transcript": "--speaker-in-transcript",
    "start_seconds": "--start",
    "transcript": "--transcript",
    "watch": "--watch",
}
"""Arguments, and the options that stand for them."""
_WORDS = {
    "leave the ledger away": "leave --ledger away",
    ", or calibrate(..., alarms=population)": "",
    "put them beside it (sources.Beside)": "give them with --transcript FILE",
}
_ARGUMENT = re.compile(
    rf"(?P<log>LogFile\(path, )?\b(?P<name>{'|'.join(_OPTIONS)})=(?:True|\"?(?P<value>[\w.+,]*)\"?)"
    r"(?(log)\))"
)


def in_options(message: str) -> str:
    """A message with options where it names arguments.

    Example:
        >>> in_options("overwrite it (LogFile(path, replace=True)), or begin at start_seconds=4")
        'overwrite it (--replace), or begin at --start 4'
    """
    told = _ARGUMENT.sub(_option, message)
    for words, ours in _WORDS.items():
        told = told.replace(words, ours)
    return told


def _option(match: re.Match[str]) -> str:
    name, value = _OPTIONS[match["name"]], match["value"]
    return f"{name} {value}" if value else name
