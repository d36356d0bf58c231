"""Readers of turns in every known format: RTTM, labels, annotations and transcripts."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

from monitor.errors import SourceError
from monitor.phrases import format_names, plural
from monitor.safe_text import file_name, find_name, printable, spelled
from monitor.transcripts.formats import SUFFIXES, read_transcript
from monitor.transcripts.transcript import (
    Transcript,
    check_content,
    check_times,
    is_nobody,
    lines_of,
    read_text,
    rows_in,
    speaker_of,
    text_of,
    times_of,
)
from monitor.transcripts.turns import Turn, Turns
from monitor.virtual_files import VirtualFile, readable

PAUSE_SECONDS = 0.5  # longest pause between words within a turn


_NAMED = 5


def read_turns(
    path: str | os.PathLike[str] | VirtualFile, *, recording: str | None = None
) -> Turns:
    """Read speaker turns from a file, in the format of its suffix.

    Args:
        path: RTTM (``.rttm``) of pyannote, NeMo or Kaldi, or tab-separated Audacity labels
            (``.txt``) with start, end and label. JSON rows have ``start``, ``end`` and ``speaker``.
            ELAN (``.eaf``) and Praat (``.TextGrid``) files have one tier per person. A transcript
            must name its speakers (`read_transcript`). ``-`` reads RTTM from standard input.
        recording: name of the recording in an RTTM of several; None for the file's name.

    Raises:
        SourceError: it cannot be read, or has no speakers; with a one-line reason.
    """
    path = readable(path)
    name = file_name(path.name)
    suffix = path.suffix.lower()
    stem = Path(name if recording is None else recording).stem
    if path.is_dir():
        raise SourceError(f"{name} is a folder: use the turns in it")
    if suffix == ".json":
        text = read_text(path, holds="turns", mends=True)
        return _parse_json(name, text) or _turns_from_words(read_transcript(path))
    if suffix in SUFFIXES:
        return _turns_from_words(read_transcript(path))
    if suffix in (".eaf", ".textgrid"):
        if isinstance(path, VirtualFile):
            raise SourceError(f"{name} is an ELAN or Praat file: save its turns as RTTM")
        return _read_annotations(path, stem)
    if path == Path("-"):
        return read_rttm("standard input", read_text(path, holds="turns"), stem)
    if suffix == ".rttm":
        return read_rttm(name, read_text(path, holds="turns"), stem)
    if suffix == ".txt":
        return read_labels(name, read_text(path, holds="turns"))
    check_content(path)
    raise SourceError(
        f"unknown turn format of {name}: use RTTM (.rttm), Audacity labels (.txt), JSON (.json), "
        f"ELAN (.eaf), Praat (.TextGrid) or a transcript ({', '.join(SUFFIXES)})"
    )


_RTTM_TYPES = frozenset(
    {"SPEAKER", "SEGMENT", "NOSCORE", "NO_RT_METADATA", "LEXEME", "NON-LEX", "NON-SPEECH"}
    | {"FILLER", "EDIT", "SU", "IP", "CB", "A/P", "SPKR-INFO"}
)
_NOT_APPLICABLE = "<NA>"
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
_SCORE = re.compile(rf"<NA>|{_NUMBER.pattern}", re.ASCII)
_SPEAKER_CELLS = "SPEAKER, recording, channel, start, duration, <NA>, <NA>, label"


def read_rttm(name: str, text: str, recording: str = "") -> Turns:
    """Read the SPEAKER lines of an RTTM (NIST, RT-09 evaluation plan, appendix A), and no others.

    ``name`` is the file's name in messages. ``recording`` selects one of several recordings.
    """
    turns_by_recording: dict[str, list[Turn]] = {}
    empty = 0
    for number, line in enumerate(lines_of(text), 1):
        if (fields := _speaker_fields(f"{name} line {number}", line)) is None:
            continue
        name_of, turn = fields
        if turn is None:
            empty += 1
        else:
            turns_by_recording.setdefault(name_of, []).append(turn)
    chosen = find_name(recording, turns_by_recording)
    if len(turns_by_recording) > 1 and chosen is None:
        names = printable(", ".join(list(turns_by_recording)[:_NAMED]))
        which = f"none is {printable(recording)}" if recording else "say which"
        raise SourceError(f"{name} is of {len(turns_by_recording)} recordings, {names}; {which}")
    turns = turns_by_recording.get(chosen or "") or next(iter(turns_by_recording.values()), [])
    return Turns.from_turns(turns, name, _left_out(name, empty))


def parse_turn(where: str, line: bytes | str) -> Turn | None:
    """Parse the turn of one line of an RTTM; None for a line without a turn."""
    if isinstance(line, bytes):
        try:
            line = line.decode("utf-8-sig")
        except ValueError:
            raise SourceError(f"{where} is not UTF-8 text") from None
    fields = _speaker_fields(where, line)
    return None if fields is None else fields[1]


def _speaker_fields(where: str, line: str) -> tuple[str, Turn | None] | None:
    """Return the recording and the turn of a SPEAKER line; None for other lines.

    A turn without duration or speaker is None. Names of recordings and labels may contain blanks,
    because the two <NA> between times and label separate them.
    """
    cells = line.split()
    if not cells or cells[0] != "SPEAKER":
        if cells and cells[0] not in _RTTM_TYPES and not cells[0].startswith(";"):
            raise SourceError(f"{where} is not RTTM: {_SPEAKER_CELLS}")
        return None
    pairs = (i for i in range(5, len(cells) - 2) if cells[i] == cells[i + 1] == _NOT_APPLICABLE)
    anchor = next(pairs, None)
    if anchor is None:
        raise SourceError(f"{where} must be {_SPEAKER_CELLS}")
    start, lasts = (_seconds(where, cell) for cell in cells[anchor - 2 : anchor])
    label = _without_scores(where, cells[anchor + 2 :])
    nobody = lasts == 0 or is_nobody(label)
    turn = None if nobody else _turn(where, start, start + lasts, label)
    return " ".join(cells[1 : anchor - 3]), turn


def _without_scores(where: str, cells: Sequence[str]) -> str:
    """Return the label at the end of an RTTM line, without confidence and look-ahead."""
    last = cells[:0:-1][:2]
    scores = len(list(takewhile(lambda cell: _SCORE.fullmatch(cell), last)))
    if scores and cells[-scores].isdigit():  # "Speaker 1", or a confidence of 1
        text = printable(" ".join(cells))[:40]
        raise SourceError(f"{where}: unclear end of the label in {text!r}. Add <NA> <NA>")
    return " ".join(cells[: len(cells) - scores])


def read_labels(name: str, text: str) -> Turns:
    """Read Audacity labels, with tab-separated start, end and label per line.

    Lines that begin with a backslash have a frequency range and are ignored. Labels without text or
    duration are ignored, too.
    """
    turns, points = [], 0
    for number, line in enumerate(lines_of(text), 1):
        if not line.strip() or line.startswith("\\"):
            continue
        cells = line.split("\t")
        if len(cells) < 3:
            raise SourceError(
                f"{name} line {number} must be start, end and label with tabs between; an RTTM "
                "is named .rttm"
            )
        start, end = (_seconds(f"{name} line {number}", cell) for cell in cells[:2])
        label = " ".join(cells[2].split())
        if is_nobody(label) or start == end:
            points += 1
            continue
        turns.append(_turn(f"{name} line {number}", start, end, label))
    return Turns.from_turns(turns, name, _left_out(name, points))


def _left_out(name: str, count: int, what: str = "line") -> list[str]:
    return (
        [f"{name}: {plural(count, what)} without a name or a duration, excluded"] if count else []
    )


def _seconds(where: str, cell: str) -> float:
    seconds = float(cell) if len(cell) < 100 and _NUMBER.fullmatch(cell) else math.nan
    if not math.isfinite(seconds):
        raise SourceError(f"{where}: {printable(cell)[:40]!r} is not a number of seconds")
    return seconds


def _turn(where: str, start: float, end: float, label: str) -> Turn:
    try:
        return Turn(start, end, printable(spelled(label)))
    except SourceError as error:
        raise SourceError(f"{where}: {error}") from None


def _turns_from_words(transcript: Transcript) -> Turns:
    if not transcript.speakers:
        raise SourceError(
            f"{transcript.label} names no speakers: use a transcript with speakers, or an RTTM file"
        )
    words = sorted(transcript.timed_words, key=lambda word: (word.begin, word.end))
    turns: list[Turn] = []
    before = ""
    for word in words:
        same, before = word.speaker == before, word.speaker
        if not word.speaker or word.end <= word.begin:
            continue
        if same and turns and word.begin - turns[-1].end_seconds <= PAUSE_SECONDS:
            end = max(turns[-1].end_seconds, word.end)
            turns[-1] = replace(turns[-1], end_seconds=end)
        else:
            turns.append(Turn(word.begin, word.end, word.speaker))
    nobody = sum(not word.speaker for word in words)
    notices = (
        [f"{transcript.label}: excluded {plural(nobody, 'word')} without a speaker"]
        if nobody
        else []
    )
    return Turns.from_turns(turns, transcript.label, [*transcript.notices, *notices])


def _parse_json(name: str, text: str) -> Turns | None:
    """Return the turns of rows of start, end and speaker without words; None for other content."""
    try:
        document: Any = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    for key in ("output", "diarization"):
        document = document[key] if isinstance(document, dict) and key in document else document
    if isinstance(document, dict):
        document = document.get("segments")
    rows = rows_in(document)
    if not rows or any(text_of(row) or row.get("words") for row in rows):
        return None
    check_times(name, rows)
    turns = []
    for number, row in enumerate(rows, 1):
        (start, end), label = times_of(row), speaker_of(row)
        if lacking := [k for k, time in (("start", start), ("end", end)) if math.isnan(time)]:
            raise SourceError(f"{name} turn {number} has no {lacking[0]}: give start and end")
        if label and start != end:
            turns.append(_turn(f"{name} turn {number}", start, end, label))
    return Turns.from_turns(turns, name, _left_out(name, len(rows) - len(turns), "turn"))


# Labels that aligners write for silence.
_SILENCE = frozenset({"sil", "sp", "<sil>", "silent", "silence", "<p>", "<p:>", "#"})
_ALIGNED = re.compile(r"\s+-\s+(words?|phones?)$", re.IGNORECASE)
_MOST_BYTES = 5_000_000

_Tiers = list[tuple[str, list[tuple[float, float, str]]]]


def _read_annotations(path: Path, recording: str) -> Turns:
    """Read the start, end and label of each tier's annotations, in seconds.

    Each tier is a person, named after its ELAN participant if there is one, otherwise after the
    tier. Dependent tiers and point tiers are skipped, and suffixes of aligners (``ann - words``)
    are removed. In a file with one tier, the texts are the labels. ``recording`` is the name,
    without suffix, of the medium for the times if there are several.
    """
    name, kind = file_name(path), "ELAN" if path.suffix.lower() == ".eaf" else "Praat"
    text = read_text(path, maximum=_MOST_BYTES, holds="turns")
    try:
        tiers = _parse_elan(name, text, recording) if kind == "ELAN" else _parse_praat(name, text)
    except (ArithmeticError, ValueError, LookupError, TypeError, StopIteration, SyntaxError):
        raise SourceError(f"{name} is not a valid {kind} file") from None
    numbered = [
        (label, row)
        for label, rows in tiers
        for row in rows
        if not is_nobody(row[2].strip()) and row[2].strip().lower() not in _SILENCE
    ]
    lasting = [(label, row) for label, row in numbered if row[1] > row[0]]
    notices = _left_out(name, len(numbered) - len(lasting), "turn")
    if len(tiers) == 1:
        lasting = [(row[2].strip(), row) for _, row in lasting]
    elif names := list(dict.fromkeys(printable(label) for label, _ in lasting)):
        notices.insert(
            0, f"{name}: took {plural(len(names), 'tier')} as speakers ({format_names(names)})"
        )
    turns = [_turn(name, start, end, label) for label, (start, end, _) in lasting]
    return Turns.from_turns(turns, name, notices)


def _parse_elan(name: str, text: str, recording: str) -> _Tiers:
    """Read the tiers of an EAF (ELAN Annotation Format 3.0), on the recording's clock."""
    root = ElementTree.fromstring(text)
    if root.tag != "ANNOTATION_DOCUMENT":
        raise ValueError("another document")
    for header in root.iter("HEADER"):
        units = header.get("TIME_UNITS", "milliseconds")
        if units != "milliseconds":
            raise SourceError(f"{name} counts time in {printable(units)}: save it in milliseconds")
    origin = _find_origin(name, root, recording)
    slots = {
        slot.attrib["TIME_SLOT_ID"]: (int(slot.get("TIME_VALUE", "")) + origin) / 1000
        for slot in root.iter("TIME_SLOT")
        if slot.get("TIME_VALUE") is not None
    }
    tiers: _Tiers = []
    for tier in root.iter("TIER"):
        if tier.get("PARENT_REF"):
            continue
        rows = []
        for annotation in tier.iter("ALIGNABLE_ANNOTATION"):
            ends = (annotation.attrib[f"TIME_SLOT_REF{i}"] for i in (1, 2))
            start, end = (slots.get(slot, math.nan) for slot in ends)
            rows.append((start, end, annotation.findtext("ANNOTATION_VALUE", "")))
        tiers.append((tier.get("PARTICIPANT") or tier.attrib["TIER_ID"], rows))
    return tiers


def _find_origin(name: str, root: ElementTree.Element, recording: str) -> int:
    """Return the milliseconds of the recording that precede time 0 of an EAF."""
    origins = {
        PurePosixPath(unquote(media.get("MEDIA_URL", ""))).stem: int(media.get("TIME_ORIGIN") or 0)
        for media in root.iter("MEDIA_DESCRIPTOR")
    }
    if (chosen := find_name(recording, origins)) is not None:
        return origins[chosen]
    if len(set(origins.values())) > 1:
        names = printable(", ".join(list(origins)[:_NAMED]))
        raise SourceError(
            f"{name} refers to media that begin at different times, {names}: give the recording "
            "the name of its medium"
        )
    return next(iter(origins.values()), 0)


# Tokens of a Praat text file: texts, separate numbers and flags, and comments.
_PRAAT = re.compile(
    r'"(?P<text>[^"]*(?:""[^"]*)*)"|(?<!\S)(?P<number>-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)(?!\S)'
    r"|(?<!\S)(?P<flag><\w+>)(?!\S)|(?<!\S)!.*"
)


def _parse_praat(name: str, text: str) -> _Tiers:
    """Read the tiers of intervals in a text file of Praat, long or short."""
    if "chronological" in text[:50]:
        raise SourceError(f"{name} is a chronological TextGrid: save it in Praat as a text file")
    tokens = (match for match in _PRAAT.finditer(text) if match.lastgroup)

    def take(kind: str) -> str:
        token = next(tokens)
        if token.lastgroup != kind:
            raise ValueError(f"no {kind}")
        return token[kind].replace('""', '"')

    if not take("text").startswith("ooTextFile") or take("text") != "TextGrid":
        raise ValueError("another object")
    take("number"), take("number"), take("flag")
    tiers: _Tiers = []
    for _ in range(int(take("number"))):
        kind, label = take("text"), take("text")
        take("number"), take("number")
        rows = []
        for _ in range(int(take("number"))):
            times = [float(take("number")) for _ in range(1 + (kind == "IntervalTier"))]
            rows.append((times[0], times[-1], take("text")))
        if kind == "IntervalTier":
            tiers.append((_ALIGNED.sub("", label).strip() or "tier", rows))
    if next(tokens, None) is not None:
        raise ValueError("more content than announced")
    return tiers
