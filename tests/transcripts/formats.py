"""The same three words in every format of transcripts."""

from __future__ import annotations

import json

__all__ = ["SAID", "written"]

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
