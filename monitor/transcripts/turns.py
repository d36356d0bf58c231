"""Turns: who speaks when in a recording, as a diariser, a transcript or a person wrote it down."""

from __future__ import annotations

import json
import math
import os
import re
import struct
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from monitor.errors import SourceError
from monitor.files import MemoryFile, readable
from monitor.phrases import clock_time, plural
from monitor.safe_text import file_name, printable
from monitor.transcripts.formats import SUFFIXES, read_transcript, read_word_lines
from monitor.transcripts.transcript import (
    LATEST_SECONDS,
    Transcript,
    lines_of,
    read_text,
    rows_in,
    speaker_of,
    text_of,
    times_of,
)

MOST_LABELS = 256
"""People in one recording; each of them costs memory."""
MOST_TURNS = 300_000  # a day and a half of words, each a turn of its own
PAUSE_SECONDS = 0.5
"""Between words of one label, with nobody else's between them, that part no turn."""
_TOLERATED_SECONDS = 0.5  # diarisers count in windows, which end after the recording
_NAMED = 5


@dataclass(frozen=True, slots=True, order=True)
class Turn:
    """A stretch of a recording in which one person speaks.

    Attributes:
        start_seconds, end_seconds: from the start of the recording; it ends after it starts.
        label: what whoever wrote it calls the speaker, ``"SPEAKER_00"`` say.

    Raises:
        SourceError: it ends before it starts, a time is no number, or the label is empty.

    Example:
        >>> Turn(1.0, 2.5, "ann").seconds
        1.5
    """

    start_seconds: float
    end_seconds: float
    label: str

    def __post_init__(self) -> None:
        if not (0 <= self.start_seconds < LATEST_SECONDS and self.end_seconds < LATEST_SECONDS):
            raise SourceError(
                f"a turn from {self.start_seconds:g} to {self.end_seconds:g} s lies outside of any "
                "recording: times are seconds from its start"
            )
        if not self.end_seconds > self.start_seconds:
            raise SourceError(
                f"a turn that starts at {self.start_seconds:g} s ends at {self.end_seconds:g} s: "
                "it must end after it starts"
            )
        if not self.label:
            raise SourceError(f"the turn at {self.start_seconds:g} s has no label")

    @property
    def seconds(self) -> float:
        """How long it lasts."""
        return self.end_seconds - self.start_seconds


@dataclass(frozen=True, slots=True)
class Turns:
    """Who speaks when in one recording.

    Attributes:
        turns: as they were written, in order; turns of several labels may overlap.
        label: what to call them in front of a person: the file they are from.
        notices: what a person should know of them, a line each.

    Raises:
        SourceError: there are none, or too many labels or turns.

    Example:
        >>> turns = Turns.of([Turn(0, 4, "ann"), Turn(3, 6, "bob"), Turn(5, 9, "bob")])
        >>> [(turn.start_seconds, turn.end_seconds, turn.label) for turn in turns.alone]
        [(0, 3, 'ann'), (4, 9, 'bob')]
        >>> turns.labels, turns.overlap_seconds, turns.overlap_of
        (('ann', 'bob'), 1.0, {'ann': 1.0, 'bob': 1.0})
    """

    turns: tuple[Turn, ...]
    label: str = "turns"
    notices: tuple[str, ...] = ()

    @classmethod
    def of(cls, turns: Iterable[Turn], label: str = "turns", notices: Sequence[str] = ()) -> Turns:
        """Turns in any order."""
        found = tuple(sorted(turns))
        if not found:
            raise SourceError(f"{label} holds no turns: it does not say who speaks when")
        if len(found) > MOST_TURNS:
            raise SourceError(f"{label} holds more than {MOST_TURNS} turns; cut it into parts")
        names = {turn.label for turn in found}
        if len(names) > MOST_LABELS:
            raise SourceError(
                f"{label} names {plural(len(names), 'label')}, and at most {MOST_LABELS} can be "
                "heard side by side: does each turn have a label of its own?"
            )
        return cls(found, label, tuple(notices))

    @property
    def labels(self) -> tuple[str, ...]:
        """Every label once, in the order in which they begin to speak."""
        return tuple(dict.fromkeys(turn.label for turn in self.turns))

    @property
    def alone(self) -> tuple[Turn, ...]:
        """The stretches in which one label alone speaks, in order and apart from each other.

        Turns of one label that overlap or touch are one; time in which two labels speak is left
        out.
        """
        return tuple(self._swept()[0])

    @property
    def overlap_of(self) -> dict[str, float]:
        """By label, the seconds of its turns in which another label speaks too."""
        return self._swept()[1]

    @property
    def overlap_seconds(self) -> float:
        """Seconds in which two labels or more speak: they count for nobody."""
        return self._swept()[2]

    def cut(self, seconds: float, start_seconds: float = 0.0, *, told: bool = True) -> Turns:
        """The turns of a part of the recording, on the clock of that part.

        Args:
            seconds: how long the part is.
            start_seconds: where in the recording it begins.
            told: whether turns after its end are worth a notice.

        Raises:
            SourceError: no turn lies in it.
        """
        end = start_seconds + seconds
        inside, beyond, lost = [], 0, 0.0
        for turn in self.turns:
            first, last = max(turn.start_seconds, start_seconds), min(turn.end_seconds, end)
            beyond += turn.end_seconds > end + _TOLERATED_SECONDS
            lost += max(turn.end_seconds - max(end, turn.start_seconds), 0.0)
            if last > first:
                inside.append(Turn(first - start_seconds, last - start_seconds, turn.label))
        if not inside:
            ends = "" if math.isinf(end) else f", which ends at {clock_time(end)}"
            raise SourceError(
                f"{self.label}: no turn lies in the recording{ends}: is it another's?"
            )
        notices = self.notices
        twice = {
            label: sum(turn.seconds for turn in inside if turn.label == label) - seconds
            for label, seconds in self._spoken(inside).items()
        }
        named = [label for label, seconds in twice.items() if seconds > _TOLERATED_SECONDS]
        if named:
            some = ", ".join(named[:_NAMED]) + (", ..." if len(named) > _NAMED else "")
            notices += (
                f"{self.label}: turns of one label overlap each other, and are taken as one: "
                f"{some} ({sum(twice[label] for label in named):.1f} s)",
            )
        if told and beyond:
            what = "1 turn lies" if beyond == 1 else f"{beyond} turns lie"
            notices += (
                f"{self.label}: {what} beyond the end of the recording ({clock_time(end)}); "
                f"{lost:.1f} s are cut off",
            )
        return Turns(tuple(inside), self.label, notices)

    @staticmethod
    def _spoken(turns: Sequence[Turn]) -> dict[str, float]:
        """Seconds in which each label speaks, alone or not."""
        until: dict[str, float] = {}
        found: dict[str, float] = {}
        for turn in sorted(turns):
            begin = max(turn.start_seconds, until.get(turn.label, 0.0))
            found[turn.label] = found.get(turn.label, 0.0) + max(turn.end_seconds - begin, 0.0)
            until[turn.label] = max(turn.end_seconds, until.get(turn.label, 0.0))
        return found

    def _swept(self) -> tuple[list[Turn], dict[str, float], float]:
        """Who is alone when, the overlap of each label, and of all."""
        times = sorted(
            [(turn.start_seconds, 1, turn.label) for turn in self.turns]
            + [(turn.end_seconds, -1, turn.label) for turn in self.turns],
            key=lambda time: time[0],
        )
        active: dict[str, int] = {}
        alone: list[Turn] = []
        together = 0.0  # seconds with two labels or more, up to now
        entered: dict[str, float] = {}
        overlap = dict.fromkeys(self.labels, 0.0)
        before = 0.0
        for now, step, label in times:
            if now > before and len(active) == 1:
                (only,) = active
                if alone and alone[-1].label == only and alone[-1].end_seconds == before:
                    alone[-1] = replace(alone[-1], end_seconds=now)
                else:
                    alone.append(Turn(before, now, only))
            elif len(active) > 1:
                together += now - before
            before = now
            count = active.get(label, 0) + step
            if count == step == 1:
                entered[label] = together
            if count:
                active[label] = count
            elif active.pop(label, None) is not None:
                overlap[label] += together - entered[label]
        return alone, overlap, together


def read_turns(path: str | os.PathLike[str] | MemoryFile, *, recording: str | None = None) -> Turns:
    r"""Who speaks when, from whatever file says it.

    Args:
        path: RTTM (``.rttm``; pyannote, NeMo, Kaldi), labels of Audacity (``.txt``: start, end and
            label with tabs between), JSON rows of ``start``, ``end`` and ``speaker``, or a
            transcript that names its speakers (`read_transcript`: WhisperX, ``<v NAME>``); a tier
            a person of ELAN (``.eaf``) or Praat (``.TextGrid``). ``-`` is
            standard input: RTTM, labels or JSON.
        recording: the name of the recording, which an RTTM of several is asked for; None for that
            of the file.

    Returns:
        the turns as they were written: overlaps are left to `Turns`.

    Raises:
        SourceError: there is no such file, a line of it is malformed, it is no text, or it does not
            say who speaks; one line says which.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "meeting.rttm")
        ...     _ = path.write_text("SPEAKER meeting 1 0.50 2.00 <NA> <NA> ann <NA> <NA>\n")
        ...     read_turns(path).turns
        (Turn(start_seconds=0.5, end_seconds=2.5, label='ann'),)
    """
    path = readable(path)
    name = file_name(path.name)
    suffix = path.suffix.lower()
    if path.is_dir():
        raise SourceError(f"{name} is a folder: name the turns in it")
    if suffix == ".json":
        text = read_text(path, holds="turns", mends=True)
        return _of_json(name, text) or _of_transcript(read_transcript(path))
    if suffix in SUFFIXES:
        return _of_transcript(read_transcript(path))
    if suffix in _ANNOTATED:
        if isinstance(path, MemoryFile):
            raise SourceError(f"{name} is of ELAN or Praat: save its turns as RTTM")
        intervals, told = read_intervals(path)
        return Turns.of((_turn(name, *each) for each in intervals), name, told)
    text = read_text(path, holds="turns")
    if path == Path("-"):
        name = "standard input"
        if text.lstrip()[0] in "[{":
            return _of_json(name, text) or _of_transcript(read_word_lines(name, text))
    own = Path(name if recording is None else recording).stem
    return read_rttm(name, text, own) if _is_rttm(text) else read_labels(name, text)


# ------------------------------------------------------------------------------------------- RTTM

_RTTM_TYPES = frozenset(
    {"SPEAKER", "SEGMENT", "NOSCORE", "NO_RT_METADATA", "LEXEME", "NON-LEX", "NON-SPEECH"}
    | {"FILLER", "EDIT", "SU", "IP", "CB", "A/P", "SPKR-INFO"}
)
_SPEAKER_CELLS = "SPEAKER, recording, channel, start, duration, <NA>, <NA>, label"


def _is_rttm(text: str) -> bool:
    lines = (line for line in lines_of(text) if line.strip() and not line.startswith(";"))
    return next(lines, "").split(None, 1)[:1] in ([each] for each in _RTTM_TYPES)


def read_rttm(name: str, text: str, recording: str = "") -> Turns:
    r"""The SPEAKER lines of an RTTM (NIST, RT-09 evaluation plan, appendix A); others are ignored.

    Args:
        name: what to call the file.
        text: its text.
        recording: which to take, where the file is of several.

    Example:
        >>> line = "SPEAKER call 1 {} 2.0 <NA> <NA> {} <NA> <NA>\n"
        >>> read_rttm("call.rttm", line.format(0.0, "A") + line.format(2.0, "B")).labels
        ('A', 'B')
    """
    found: dict[str, list[Turn]] = {}
    empty = 0
    for number, line in enumerate(lines_of(text), 1):
        cells = line.split()
        if (turn := _speaker_line(f"{name} line {number}", cells)) is not None:
            found.setdefault(cells[1], []).append(turn)
        elif cells and cells[0] == "SPEAKER":
            empty += 1
    if len(found) > 1 and recording not in found:
        named = printable(", ".join(list(found)[:_NAMED]))
        which = f"none is {printable(recording)}" if recording else "say which"
        raise SourceError(f"{name} is of {len(found)} recordings, {named}; {which}")
    turns = found.get(recording) or next(iter(found.values()), [])
    return Turns.of(turns, name, _left_out(name, empty))


def turn_of_line(where: str, line: bytes | str) -> Turn | None:
    r"""The turn of one line of an RTTM as it comes through a pipe; None of a line that says none.

    Raises:
        SourceError: it is malformed, or no UTF-8 text.

    Example:
        >>> turn_of_line("-", b"SPEAKER call 1 0.5 2.0 <NA> <NA> ann <NA> <NA>\n")
        Turn(start_seconds=0.5, end_seconds=2.5, label='ann')
    """
    if isinstance(line, bytes):
        try:
            line = line.decode()
        except ValueError:
            raise SourceError(f"{where} is no UTF-8 text") from None
    return _speaker_line(where, line.split())


def _speaker_line(where: str, cells: Sequence[str]) -> Turn | None:
    """The turn of a SPEAKER line; None where it lasts no time, and of lines of other types."""
    if not cells or cells[0] != "SPEAKER":
        if cells and cells[0] not in _RTTM_TYPES and not cells[0].startswith(";"):
            raise SourceError(f"{where} is no RTTM: {_SPEAKER_CELLS}")
        return None
    if len(cells) < 8:
        raise SourceError(f"{where} must be {_SPEAKER_CELLS}")
    start, lasts = (_seconds(where, cell) for cell in cells[3:5])
    return None if lasts == 0 else _turn(where, start, start + lasts, cells[7])


# ---------------------------------------------------------------------------------------- Audacity


def read_labels(name: str, text: str) -> Turns:
    r"""Labels of Audacity: start, end and label a line, with tabs between.

    Lines that begin with a backslash say a range of frequencies and are ignored; so are labels
    without text and those at one point of time.

    Example:
        >>> read_labels("call.txt", "0.5\t2.5\tann\n\\\t100\t200\n2.5\t2.5\tmark\n").turns
        (Turn(start_seconds=0.5, end_seconds=2.5, label='ann'),)
    """
    turns, points = [], 0
    for number, line in enumerate(lines_of(text), 1):
        if not line.strip() or line.startswith("\\"):
            continue
        cells = line.split("\t")
        if len(cells) < 3:
            raise SourceError(
                f"{name} line {number} must be start, end and label with tabs between, or an RTTM"
            )
        start, end = (_seconds(f"{name} line {number}", cell) for cell in cells[:2])
        said = " ".join(cells[2].split())
        if not said or start == end:
            points += 1
            continue
        turns.append(_turn(f"{name} line {number}", start, end, said))
    return Turns.of(turns, name, _left_out(name, points))


def _left_out(name: str, count: int) -> list[str]:
    return (
        [f"{name}: {plural(count, 'line')} without a name or a length, left out"] if count else []
    )


_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)


def _seconds(where: str, cell: str) -> float:
    found = float(cell) if len(cell) < 100 and _NUMBER.fullmatch(cell) else math.nan
    if not math.isfinite(found):
        raise SourceError(f"{where}: {printable(cell)[:40]!r} is no number of seconds")
    return found


def _turn(where: str, start: float, end: float, label: str) -> Turn:
    try:
        return Turn(start, end, printable(label))
    except SourceError as error:
        raise SourceError(f"{where}: {error}") from None


# ------------------------------------------------------------------------------------- transcripts


def _of_transcript(transcript: Transcript) -> Turns:
    """The turns of the words of a transcript; words that nobody is named for are nobody's."""
    if not transcript.speakers:
        raise SourceError(
            f"{transcript.label} does not say who speaks: give a transcript with speakers, or an "
            "RTTM"
        )
    words = sorted(transcript.said, key=lambda word: (word.begin, word.end))
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
    told = [f"{transcript.label}: {plural(nobody, 'word')} of nobody, left out"] if nobody else []
    return Turns.of(turns, transcript.label, [*transcript.notices, *told])


def _of_json(name: str, text: str) -> Turns | None:
    """The turns of rows of start, end and speaker without words; None of anything else."""
    try:
        found: Any = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    for key in ("output", "diarization"):
        found = found[key] if isinstance(found, dict) and key in found else found
    if isinstance(found, dict):
        found = found.get("segments")
    rows = rows_in(found)
    if not rows or any(text_of(row) or row.get("words") for row in rows):
        return None
    return Turns.of(_json_turns(name, rows), name)


def _json_turns(name: str, rows: Sequence[dict[str, Any]]) -> Iterator[Turn]:
    for number, row in enumerate(rows, 1):
        start, end = times_of(row)
        label = printable(speaker_of(row))
        if label and start != end:
            try:
                yield Turn(start, end, label)
            except SourceError as error:
                raise SourceError(f"{name} turn {number}: {error}") from None


# -------------------------------------------------------------------------------------- annotations
# A tier a person, as ELAN and Praat keep them; pympi reads the files.

_ANNOTATED = (".eaf", ".textgrid")
_SILENCE = frozenset({"sil", "sp", "<sil>", "silent", "silence", "<p>", "<p:>", "#"})
"""What aligners write where nobody speaks."""
_ALIGNED = re.compile(r"\s+-\s+(words?|phones?)$", re.IGNORECASE)
_DAMAGE = (ArithmeticError, ValueError, LookupError, TypeError, AttributeError, RuntimeError,
           StopIteration, struct.error, OSError, MemoryError)  # fmt: skip
_NAMED = 5
_MOST_BYTES = 5_000_000

Interval = tuple[float, float, str]


def read_intervals(path: Path) -> tuple[list[Interval], list[str]]:
    """Start, end and label of all that somebody says, in seconds; and notices, a line each.

    A tier is a person: of ELAN its participant, where it names one, else its name; tiers that
    depend on another and tiers of points are left out, and what an aligner adds to the name
    (``ann - words``). Of a file with one tier the texts are the labels.

    Raises:
        SourceError: it cannot be read, or the extra ``annotations`` is not installed.
    """
    name, kind = file_name(path), "ELAN" if path.suffix.lower() == ".eaf" else "Praat"
    try:
        import pympi
    except ImportError:
        raise SourceError(
            f"{name}: files of {kind} need the extra 'annotations': pip install pympi-ling"
        ) from None
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(2)
    except OSError as error:
        raise SourceError(f"cannot read the turns of {name}: {error.strerror}") from None
    if size > _MOST_BYTES:
        raise SourceError(f"{name} is too large to hold turns: {_MOST_BYTES // 10**6} MB at most")
    tiers: list[tuple[str, list[Interval]]] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a version of ELAN that it does not know
            tiers += _of_elan(pympi, path) if kind == "ELAN" else _of_praat(pympi, path, head)
    except UnicodeDecodeError:
        raise SourceError(
            f"{name} is no UTF-8 text: save it again as UTF-8 (Praat: Text writing preferences)"
        ) from None
    except Exception as error:  # pympi raises bare ones
        if type(error) is not Exception and not isinstance(error, _DAMAGE):
            raise
        raise SourceError(f"{name} is no file of {kind}, or is damaged") from None
    said = [
        (label, [(low, high, text) for low, high, text in rows if high > low and _says(text)])
        for label, rows in tiers
    ]
    said = [(label, rows) for label, rows in said if rows]
    if len(said) == 1 and len(tiers) == 1:
        return [(low, high, printable(text.strip())) for low, high, text in said[0][1]], []
    names = list(dict.fromkeys(label for label, _ in said))
    some = ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
    told = [f"{name}: {plural(len(names), 'tier')} taken as people: {some}"] if names else []
    return [(low, high, label) for label, rows in said for low, high, _ in rows], told


def _says(text: str) -> bool:
    return bool(text.strip()) and text.strip().lower() not in _SILENCE


def _of_elan(pympi: Any, path: Path) -> Iterator[tuple[str, list[Interval]]]:
    found = pympi.Eaf(str(path), suppress_version_warning=True)
    for tier, (_, _, attributes, _) in found.tiers.items():
        if attributes.get("PARENT_REF"):
            continue
        rows = [
            (begin / 1000, end / 1000, str(text))
            for begin, end, text, *_ in found.get_annotation_data_for_tier(tier)
            if begin is not None and end is not None
        ]
        yield printable(attributes.get("PARTICIPANT") or tier), rows


def _of_praat(pympi: Any, path: Path, head: bytes) -> Iterator[tuple[str, list[Interval]]]:
    utf16 = head.startswith((b"\xff\xfe", b"\xfe\xff"))
    found = pympi.TextGrid(str(path), codec="utf-16" if utf16 else "utf-8-sig")
    for tier in found.tiers:
        if tier.tier_type == "IntervalTier":
            rows = [(float(a), float(b), str(text)) for a, b, text in tier.intervals]
            yield printable(_ALIGNED.sub("", str(tier.name)).strip() or "tier"), rows
