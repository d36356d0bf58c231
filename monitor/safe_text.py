"""Names, files and commands as texts that can steer neither a terminal nor a shell."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

LONGEST_NAME = 200
"""Characters of a name."""


def printable(text: object) -> str:
    r"""Return a text of one line that cannot steer a terminal, nor be no text at all in JSON.

    Examples:
        >>> printable("a\x1b[2Jb"), printable("caf\u00e9"), printable("t\udcffk.wav")
        ('a?[2Jb', 'café', 't?k.wav')
    """
    return "".join(c if c.isprintable() else "?" for c in str(text))


def is_name(text: object) -> bool:
    """Return whether a person, a session or a file can be called so: printed on one line."""
    return (
        isinstance(text, str)
        and bool(text.strip())
        and text.isprintable()
        and len(text) <= LONGEST_NAME
    )


def file_name(path: str | os.PathLike[str]) -> str:
    """Return the name of a file, without its folder, as it is shown and written down."""
    return printable(Path(path).name)


def short_name(name: object, longest: int = 24) -> str:
    """Return a name as one line of printable text, cut to fit beside a line."""
    text = "".join(c if c.isprintable() else " " for c in str(name))
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
    """Return the command that measures samples without a header, of a format to be changed."""
    return f"monitor replay - --raw 16000:1:s16le < {shlex.quote(os.fspath(path))}"


def _quote(path: str | os.PathLike[str]) -> str:
    """Quote a path as a shell gives it to ffmpeg, to which -x is an option and a:b an address."""
    name = os.fspath(path)
    return shlex.quote(f"file:{name}" if name.startswith("-") or ":" in name else name)
