"""What every reader of transcripts must do with any file: read it, or refuse it in one line."""

from __future__ import annotations

from collections.abc import Callable

from monitor.errors import SourceError
from monitor.stream.front_end import check_words
from monitor.transcripts import Transcript

__all__ = ["check_read_or_refused"]


def check_read_or_refused(read: Callable[[], Transcript]) -> None:
    """Fail unless it gives words that the monitor takes, or one line of an error."""
    try:
        words = read().words()
    except SourceError as error:
        told = str(error)
        if "\n" in told or not told.isprintable():
            raise AssertionError(told) from error
        return
    check_words(words)
    assert words.texts
