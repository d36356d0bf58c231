"""Names, files and commands as texts that can steer neither a terminal nor a shell."""

from __future__ import annotations

import os
import re
import shlex
import unicodedata
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

LONGEST_NAME = 200  # characters of a name


JOINERS = "\u200c\u200d"  # zero width non-joiner and joiner, of Persian, Sinhala and emoji
_VIRAMA = 9
"""Combining class of the sign that a joiner may follow at the end of a word, as in Malayalam."""


def _plain(text: str, replaced: Callable[[str], str]) -> str:
    """Replace unprintable characters; keep joiners that join, and make every space a plain one."""
    if text.isprintable():
        return text
    characters = []
    for index, character in enumerate(text):
        if unicodedata.category(character) == "Zs":
            character = " "
        elif not character.isprintable() and not _joins(text, index):
            character = replaced(character)
        characters.append(character)
    return "".join(characters)


def _joins(text: str, index: int) -> bool:
    """Return whether this is a joiner between letters, marks, digits or emoji."""
    if text[index] not in JOINERS or not index:
        return False
    before, after = text[index - 1], text[index + 1 : index + 2]
    return unicodedata.category(before)[0] in "LMNS" and (
        unicodedata.combining(before) == _VIRAMA
        or (after != "" and unicodedata.category(after)[0] in "LMNS")
    )


def printable(text: object, mark: str = "?") -> str:
    r"""Return one line of text that cannot steer a terminal and is valid in JSON.

    Each unprintable character becomes ``mark``. Joiners within words and emoji are kept.

    Examples:
        >>> printable("a\x1b[2Jb"), printable("caf\u00e9"), printable("t\udcffk.wav")
        ('a?[2Jb', 'café', 't?k.wav')
    """
    return _plain(str(text), lambda _: mark)


def escaped(text: str) -> str:
    r"""Return one line of text, with unprintable characters escaped.

    Example:
        >>> escaped("talks/a\nb.wav")
        'talks/a\\nb.wav'
    """
    return _plain(text, lambda character: ascii(character)[1:-1])


def is_printable(text: str) -> bool:
    """Return whether a text has neither control characters nor marks that change its direction.

    Spaces of every script are printable, and so are joiners within words and emoji.
    """
    return text.isprintable() or "\n" not in _plain(text, lambda _: "\n")


def is_name(text: object) -> bool:
    """Return whether a person, session or file can have this name: one printable line."""
    return (
        isinstance(text, str)
        and bool(text.strip())
        and is_printable(text)
        and len(text) <= LONGEST_NAME
    )


def spelled(name: str) -> str:
    """Return a name in the spelling used for comparisons.

    Letters are composed (NFC), all spaces are plain, and outer spaces are removed.

    Example:
        >>> spelled("Zoe\u0308\u3000Lee ") == "Zo\u00eb Lee"
        True
    """
    return _plain(unicodedata.normalize("NFC", name), lambda character: character).strip()


def spelled_all(names: Iterable[Any]) -> tuple[Any, ...]:
    """Apply `spelled` to the names in a store; values other than text are unchanged."""
    return tuple(spelled(name) if isinstance(name, str) else name for name in names)


def find_name(name: str, names: Collection[str]) -> str | None:
    """Find a name among others, exactly or in another spelling; None if it is missing."""
    if name in names:
        return name
    wanted = spelled(name)
    if wanted in names:
        return wanted
    accented = (other for other in names if not other.isascii())
    return next((other for other in accented if spelled(other) == wanted), None)


_EMPTY_CELLS = frozenset({"", "nan", "NaN", "None", "null", "NULL", "<NA>"})


def is_empty_cell(text: str) -> bool:
    """Return whether programs write this text for a missing value.

    Examples:
        >>> [is_empty_cell(text) for text in (" ", "nan", "None", "Nan", "0")]
        [True, True, True, False, False]
    """
    return text.strip() in _EMPTY_CELLS


def is_number(text: str) -> bool:
    """Return whether a cell is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def fold_name(name: str) -> str:
    """Return a name without case, invisible characters and leading zeros."""
    text = unicodedata.normalize("NFKC", name).casefold()
    text = " ".join("".join(c for c in text if c.isprintable()).split())
    number = text.removesuffix(".0")
    return re.sub(r"(?<![\d.])0+(?=\d)", "", number if number.isdecimal() else text)


def find_twin(names: Collection[str], strange: Collection[str]) -> str:
    """Describe a strange name that looks like another spelling of a name; empty without one.

    A table with empty cells writes 1272.0 for 1272, and a spreadsheet 19 for 0019.

    Example:
        >>> find_twin(["1272.0", "1272", "ann"], ["1272.0"])
        '1272.0 is also written 1272: use one spelling, or rename one of the two'
    """
    if not strange:
        return ""
    others: dict[str, str] = {}
    for name in sorted(names):
        if (other := others.setdefault(fold_name(name), name)) != name and {name, other} & {
            *strange
        }:
            first, second = (n if n.isprintable() else ascii(n)[1:-1] for n in (name, other))
            return f"{first} is also written {second}: use one spelling, or rename one of the two"
    return ""


def file_name(path: str | os.PathLike[str]) -> str:
    """Return the printable name of a file, without its folder."""
    return printable(Path(path).name)


def short_name(name: object, longest: int = 24) -> str:
    """Return a name as one line of printable text, cut to fit beside a line."""
    text = printable(name, " ")
    return text if len(text) <= longest else text[: longest - 1] + "…"


def as_wav(path: str | os.PathLike[str], options: str = "") -> str:
    """Return the command that makes a WAV of a recording that only ffmpeg reads.

    Examples:
        >>> print(as_wav("me/my talk.m4a"))
        ffmpeg -i 'me/my talk.m4a' 'me/my talk.wav'
    """
    return f"ffmpeg {options}-i {_quote(path)} {_quote(Path(path).with_suffix('.wav'))}"


def as_pipe(path: str | os.PathLike[str]) -> str:
    """Return the command that measures a recording that only ffmpeg reads."""
    return f"ffmpeg -i {_quote(path)} -f wav - | monitor replay -"


def as_raw(path: str | os.PathLike[str]) -> str:
    """Return the command that measures samples without a header; its format is an example."""
    return f"monitor replay - --raw 16000:1:s16le < {shlex.quote(os.fspath(path))}"


def _quote(path: str | os.PathLike[str]) -> str:
    """Quote a path for a shell and ffmpeg, which reads -x as an option and a:b as an address."""
    name = os.fspath(path)
    return shlex.quote(f"file:{name}" if name.startswith("-") or ":" in name else name)
