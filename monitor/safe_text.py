"""Names, files and commands as texts that can steer neither a terminal nor a shell."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

__all__ = ["LONGEST_NAME", "as_pipe", "as_raw", "as_wav", "file_name", "is_name", "printable"]

LONGEST_NAME = 200
"""Characters of a name."""


def printable(text: object) -> str:
    r"""A text of one line that cannot steer a terminal, nor be no text at all in JSON.

    Examples:
        >>> printable("a\x1b[2Jb"), printable("caf\u00e9"), printable("t\udcffk.wav")
        ('a?[2Jb', 'café', 't?k.wav')
    """
    return "".join(c if c.isprintable() else "?" for c in str(text))


def is_name(text: object) -> bool:
    r"""Whether a person, a session or a file can be called so: printed on one line.

    Examples:
        >>> is_name("Zoë"), is_name("a\nb"), is_name(" "), is_name(7)
        (True, False, False, False)
    """
    return (
        isinstance(text, str)
        and bool(text.strip())
        and text.isprintable()
        and len(text) <= LONGEST_NAME
    )


def file_name(path: str | os.PathLike[str]) -> str:
    r"""The name of a file, without its folder, as it is shown and written down.

    Examples:
        >>> file_name("talks/a.wav"), file_name("t\udcffk\x07.wav")
        ('a.wav', 't?k?.wav')
    """
    return printable(Path(path).name)


def as_wav(path: str | os.PathLike[str], options: str = "") -> str:
    """The command that makes a WAV of a recording that only ffmpeg reads.

    Examples:
        >>> print(as_wav("me/my talk.m4a"))
        ffmpeg -i 'me/my talk.m4a' 'me/my talk.wav'
    """
    return f"ffmpeg {options}-i {_given(path)} {_given(Path(path).with_suffix('.wav'))}"


def as_pipe(path: str | os.PathLike[str]) -> str:
    """The command that hears a recording that only ffmpeg reads.

    Examples:
        >>> print(as_pipe("film.m4a"))
        ffmpeg -i film.m4a -f wav - | monitor replay -
    """
    return f"ffmpeg -i {_given(path)} -f wav - | monitor replay -"


def as_raw(path: str | os.PathLike[str]) -> str:
    """Return the command that measures samples without a header, of a format to be changed.

    Examples:
        >>> print(as_raw("my talk.pcm"))
        monitor replay - --raw 16000:1:s16le < 'my talk.pcm'
    """
    return f"monitor replay - --raw 16000:1:s16le < {shlex.quote(os.fspath(path))}"


def _given(path: str | os.PathLike[str]) -> str:
    """A path as a shell gives it to ffmpeg, which takes -x for an option and a:b for an address."""
    name = os.fspath(path)
    return shlex.quote(f"file:{name}" if name.startswith("-") or ":" in name else name)
