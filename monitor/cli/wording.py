"""What the library refuses in words of Python, in those of the command line."""

from __future__ import annotations

import re
from collections.abc import Iterable

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

_FILE = re.compile(rf"[^\s:;,()]*\b(?:{'|'.join(_OPTIONS)})=[^\s:;,()]*\.[A-Za-z]\w*")
"""A name with a suffix, or in a folder."""


def in_options(message: str, typed: Iterable[str] = ()) -> str:
    """A message with options where it names arguments; names of files stay as they are.

    Args:
        message: of the library.
        typed: the words of the command: those that hold such an argument are names.

    Examples:
        >>> in_options("overwrite it (LogFile(path, replace=True)), or begin at start_seconds=4")
        'overwrite it (--replace), or begin at --start 4'
        >>> in_options("watch=me.wav: no audio; name one with watch=", ["x/watch=me.wav"])
        'watch=me.wav: no audio; name one with --watch'
    """
    names = {name for each in typed for name in (each, *each.split("/")) if _ARGUMENT.search(name)}
    names |= set(_FILE.findall(message))  # in a folder that was typed
    anyone = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    parts = re.split(f"({anyone})", message) if names else [message]
    told = "".join(each if each in names else _ARGUMENT.sub(_option, each) for each in parts)
    for words, ours in _WORDS.items():
        told = told.replace(words, ours)
    return told


def _option(match: re.Match[str]) -> str:
    name, value = _OPTIONS[match["name"]], match["value"]
    return f"{name} {value}" if value else name
