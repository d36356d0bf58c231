"""Transcripts as CTM, the time-marked words of NIST's scoring tools and of Kaldi (`.ctm`)."""

from __future__ import annotations

from pathlib import PurePath

from monitor.errors import SourceError
from monitor.safe_text import printable
from monitor.transcripts.cues import Cue
from monitor.transcripts.gathering import gather
from monitor.transcripts.text import lines_of
from monitor.transcripts.transcript import Transcript

__all__ = ["read_ctm"]

_NO_WORD = frozenset({"non-lex", "misc", "noise", "other"})  # types; lex, fp and frag are words
_NO_TEXT = frozenset({"<eps>", "SIL", "<sil>", "@"})


def read_ctm(label: str, text: str) -> Transcript:
    r"""The words of a CTM: a line is recording, channel, begin, duration, word.

    Confidence, type and speaker may follow. Of several recordings that is taken which the file is
    named after; of several channels each is a speaker.

    Raises:
        SourceError: a line is malformed, or nothing says which recording is meant.

    Example:
        >>> talk = read_ctm("talk.ctm", "talk 1 0.31 0.21 well 0.98\n")
        >>> talk.said[0].text, round(talk.said[0].end, 2), talk.speakers
        ('well', 0.52, ())
    """
    rows = []
    for number, line in enumerate(lines_of(text), 1):
        cells = line.split()
        if not cells or line.startswith(";;") or (len(cells) > 2 and cells[2] == "*"):
            continue  # a comment, or the bounds of alternatives
        try:
            begin, lasts, _ = float(cells[2]), float(cells[3]), cells[4]
        except (ValueError, IndexError):
            must = "must be recording, channel, begin, duration, word"
            raise SourceError(f"{label} line {number} {must}") from None
        rows.append((cells, begin, begin + lasts))
    recordings = dict.fromkeys(cells[0] for cells, *_ in rows)
    own = PurePath(label).stem if len(recordings) > 1 else next(iter(recordings), "")
    if own not in recordings and rows:
        named = printable(", ".join(list(recordings)[:5]))
        raise SourceError(f"{label} is of {len(recordings)} recordings, {named}; none is {own}")
    rows = [row for row in rows if row[0][0] == own]
    many = len({cells[1] for cells, *_ in rows}) > 1
    return gather(label, [_cue(*row, many) for row in rows if _is_word(row[0])])


def _is_word(cells: list[str]) -> bool:
    kind = cells[6].lower() if len(cells) > 6 else "lex"
    return cells[4] not in _NO_TEXT and kind not in _NO_WORD


def _cue(cells: list[str], begin: float, end: float, many: bool) -> Cue:
    named = cells[7] if len(cells) > 7 and cells[7].lower() not in ("unknown", "<na>") else ""
    return Cue(cells[4], begin, end, named or (cells[1] if many else ""))
