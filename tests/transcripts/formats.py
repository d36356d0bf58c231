"""The same three words in every format of transcripts, and what a reader of any file must do."""

import json
from collections.abc import Callable

from monitor.errors import SourceError
from monitor.stream.clocks import check_words
from monitor.transcripts import Transcript

SAID = [("So", 0.2, 0.4), ("it's", 0.4, 0.7), ("gone.", 1.0, 1.31)]


def stamp(seconds: float, comma: str = ".") -> str:
    return f"00:00:{seconds:06.3f}".replace(".", comma)


def written(kind: str) -> str:
    """Those words, each with its time, in a format."""
    if kind == "vtt":
        cues = [f"{stamp(b)} --> {stamp(e)}\n{text}\n" for text, b, e in SAID]
        return "\n".join(["WEBVTT\n", *cues])
    if kind == "srt":
        return "\n".join(
            f"{i}\n{stamp(b, ',')} --> {stamp(e, ',')}\n{text}\n"
            for i, (text, b, e) in enumerate(SAID, 1)
        )
    if kind == "ctm":
        return "".join(f"talk 1 {b:.3f} {e - b:.3f} {text} 0.9\n" for text, b, e in SAID)
    if kind == "tsv":
        return "start\tend\ttext\n" + "".join(f"{b:.3f}\t{e:.3f}\t{t}\n" for t, b, e in SAID)
    if kind == "words":
        rows = [{"word": text, "begin": b, "end": e} for text, b, e in SAID]
        return "\n".join(map(json.dumps, rows))
    return json.dumps({"words": [{"word": text, "start": b, "end": e} for text, b, e in SAID]})


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


__all__ = ["SAID", "check_read_or_refused", "written"]
