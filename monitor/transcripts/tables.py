"""Transcripts as tables: a line a stretch of text, tabs between its columns (`.tsv`)."""

from __future__ import annotations

from monitor.errors import SourceError
from monitor.transcripts.cues import Cue, spread_words
from monitor.transcripts.transcript import Transcript

__all__ = ["read_table"]

_NEEDED = ("start", "end", "text")


def read_table(label: str, text: str) -> Transcript:
    r"""The words of a table whose first line names ``start``, ``end``, ``text``, also ``speaker``.

    Times are seconds. Whisper writes such tables in milliseconds: whole numbers in all lines.

    Raises:
        SourceError: it has no such columns, or a line of it is malformed.

    Example:
        >>> talk = read_table("talk.tsv", "start\tend\ttext\n0.50\t1.50\tso be it\n")
        >>> [(word.text, round(word.begin, 2)) for word in talk.said]
        [('so', 0.5), ('be', 0.83), ('it', 1.17)]
    """
    head, *lines = text.splitlines()
    columns = [name.strip().lower() for name in head.split("\t")]
    if not set(_NEEDED) <= set(columns):
        raise SourceError(f"{label}: its first line must name start, end and text, with tabs")
    rows = []
    for number, line in enumerate(lines, 2):
        if not line.strip():
            continue
        cells = dict(zip(columns, line.split("\t"), strict=False))
        if len(cells) < len(columns):
            raise SourceError(f"{label} line {number} has {len(cells)} of {len(columns)} columns")
        rows.append((number, cells))
    whole = all(cells[name].strip().isdecimal() for _, cells in rows for name in _NEEDED[:2])
    cues = [_cue(f"{label} line {number}", cells, 1000 if whole else 1) for number, cells in rows]
    cues.sort(key=lambda cue: (cue.begin, cue.end))
    return Transcript(label, tuple(spread_words(cues)))


def _cue(where: str, cells: dict[str, str], a_second: int) -> Cue:
    try:
        begin, end = (float(cells[name]) / a_second for name in _NEEDED[:2])
    except ValueError:
        raise SourceError(f"{where}: start and end must be numbers") from None
    if not 0 <= begin < end < 1e6:
        raise SourceError(f"{where}: a text begins before it ends")
    return Cue(cells["text"], begin, end, cells.get("speaker", "").strip())
