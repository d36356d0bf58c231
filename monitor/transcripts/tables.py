"""Transcripts as tables: a line a stretch of text, tabs between its columns (`.tsv`)."""

from __future__ import annotations

from monitor.errors import SourceError
from monitor.safe_text import printable
from monitor.transcripts.cues import Cue
from monitor.transcripts.gathering import gather
from monitor.transcripts.text import lines_of
from monitor.transcripts.transcript import Transcript

__all__ = ["read_table"]

_COLUMNS = ("start", "end", "text")


def read_table(label: str, text: str) -> Transcript:
    r"""The words of a table of start, end and text, a line each.

    The first line may name the columns, in another order then, and ``speaker`` as well. Times are
    seconds; whole numbers in all lines are milliseconds, as Whisper writes such tables.

    Raises:
        SourceError: it is no such table, or a line of it is malformed.

    Example:
        >>> talk = read_table("talk.tsv", "start\tend\ttext\n0.50\t1.50\tso be it\n")
        >>> [(word.text, round(word.begin, 2)) for word in talk.said]
        [('so', 0.5), ('be', 0.83), ('it', 1.17)]
    """
    lines = [(n, line) for n, line in enumerate(lines_of(text), 1) if line.strip()]
    columns = [name.strip().lower() for name in lines[0][1].split("\t")]
    if set(_COLUMNS) <= set(columns):
        lines = lines[1:]
    else:
        columns = list(_COLUMNS)
    rows = []
    for number, line in lines:
        cells = dict(zip(columns, line.split("\t"), strict=False))
        if len(cells) < len(columns):
            needed = printable(", ".join(columns))
            raise SourceError(f"{label} line {number} must be {needed}, with tabs between them")
        rows.append((f"{label} line {number}", cells))
    whole = all(cells[name].strip().isdecimal() for _, cells in rows for name in _COLUMNS[:2])
    return gather(label, [_cue(where, cells, 1000 if whole else 1) for where, cells in rows])


def _cue(where: str, cells: dict[str, str], a_second: int) -> Cue:
    try:
        begin, end = (float(cells[name]) / a_second for name in _COLUMNS[:2])
    except (ValueError, OverflowError):
        raise SourceError(f"{where}: start and end must be numbers") from None
    return Cue(cells["text"], begin, end, cells.get("speaker", "").strip())
