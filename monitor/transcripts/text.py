"""The text of a file that somebody says is a transcript."""

from __future__ import annotations

import codecs
from pathlib import Path

from monitor.errors import SourceError
from monitor.safe_text import file_name

__all__ = ["MOST_BYTES", "lines_of", "read_text"]

MOST_BYTES = 20_000_000  # a day and a half of words, with a time each, are half of it
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def read_text(path: Path, *, most: int = MOST_BYTES, mends: bool = False) -> str:
    r"""The text of a file: UTF-8, or UTF-16 that says so by its first bytes.

    Args:
        path: the file; ``-`` is standard input, to its end.
        most: bytes that it may have.
        mends: whether the reader of the text puts letters together that were cut within their
            bytes; such bytes are then surrogates, as of the error handler ``surrogateescape``.

    Raises:
        SourceError: there is no such file, it holds no text or nothing, or another encoding.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "talk.srt")
        ...     _ = path.write_text("caf\u00e9", encoding="utf-16")
        ...     read_text(path)
        'café'
    """
    label, piped = file_name(path), str(path) == "-"
    try:
        with open(0, "rb", closefd=False) if piped else path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise SourceError(f"cannot read the words of {label}: {error.strerror}") from None
    if len(data) > most:
        raise SourceError(f"{label} is too large for a transcript: {most // 10**6} MB at most")
    encoding = next((name for mark, name in _MARKS.items() if data.startswith(mark)), "utf-8")
    if encoding == "utf-8" and b"\0" in data:
        order = "BE" if data.startswith(b"\0") else "LE"
        cure = f"iconv -f UTF-16{order} -t UTF-8 makes it so"
        raise SourceError(f"{label} is no text, or UTF-16 without a byte-order mark: {cure}")
    try:
        text = data.decode(encoding, "surrogateescape" if mends else "strict")
    except ValueError as error:
        line = data.count(b"\n", 0, getattr(error, "start", 0)) + 1
        cure = "iconv -f WINDOWS-1252 -t UTF-8 makes it so where it is older Western text"
        raise SourceError(f"{label} line {line} is no UTF-8 text: {cure}") from None
    if "\0" in text:
        raise SourceError(f"{label} is no text")
    if not text.strip():
        raise SourceError(f"{label} is empty: it holds no words")
    return text


def lines_of(text: str) -> list[str]:
    r"""The lines of a text, whoever wrote it; what else parts lines in Unicode is part of a line.

    Example:
        >>> lines_of("so\r\nbe\rit")
        ['so', 'be', 'it']
    """
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
