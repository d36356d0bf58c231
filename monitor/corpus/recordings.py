"""Recordings by speaker and session, and checks of each recording."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from monitor.datasets.rows import Problems
from monitor.errors import CorpusError, UsageError
from monitor.safe_text import (
    LONGEST_NAME,
    as_wav,
    file_name,
    find_twin,
    is_empty_cell,
    is_name,
    is_printable,
    printable,
    spelled,
)
from monitor.transcripts.choice import SIDECAR, TranscriptChoice
from monitor.virtual_files import Readable, VirtualFile, files_of, spelled_path

CONTAINERS = frozenset(  # containers of audio that must be converted
    ".m4a .m4b .mp4 .aac .mov .mkv .mka .webm .wma .amr .3gp .avi .ape .wv".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording of one speaker: a file, or part of a file."""

    speaker: str
    session: str  # occasion on which it was recorded; only compared within a speaker
    path: Readable
    words: TranscriptChoice = field(default=SIDECAR, kw_only=True)
    """Choice of the recording's transcript, for features of words."""

    def __post_init__(self) -> None:
        for name in ("speaker", "session"):
            object.__setattr__(self, name, spelled(getattr(self, name)))


@dataclass(frozen=True, slots=True)
class Corpus:
    """Recordings in a fixed order, with one line per excluded entry.

    Example:
        >>> corpus = Corpus((Recording("ann", "1", Path("a.wav")),), ())
        >>> corpus.speakers, {name: list(files) for name, files in corpus.sessions("ann").items()}
        (('ann',), {'1': [PosixPath('a.wav')]})
    """

    recordings: tuple[Recording, ...]  # by speaker, session and file
    problems: tuple[str, ...]
    identified_by: str = ""  # how speakers are identified, for people; empty if one was given
    attributes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Attributes of a data set's speakers, by column and speaker."""

    @property
    def speakers(self) -> tuple[str, ...]:
        """Every speaker once, in order."""
        return tuple(dict.fromkeys(recording.speaker for recording in self.recordings))

    def sessions(self, speaker: str) -> dict[str, tuple[Readable, ...]]:
        """Return the files of each session of a speaker, in order."""
        sessions: dict[str, tuple[Readable, ...]] = {}
        for recording in self.recordings:
            if recording.speaker == speaker:
                before = sessions.get(recording.session, ())
                sessions[recording.session] = (*before, recording.path)
        return sessions

    def with_words(self, choice: TranscriptChoice) -> Corpus:
        """Return the same recordings with this choice of transcripts."""
        if choice.path is not None and len(self.recordings) > 1:
            raise UsageError(
                f"{file_name(choice.path)} is the transcript of one recording, but there are "
                f"{len(self.recordings)}: put NAME{choice.path.suffix} beside each NAME instead"
            )
        recordings = (replace(recording, words=choice) for recording in self.recordings)
        return replace(self, recordings=tuple(recordings))

    def __len__(self) -> int:
        return len(self.recordings)

    def __iter__(self) -> Iterator[Recording]:
        return iter(self.recordings)


def describe_unusable(path: Readable, error: Exception, speaker: str = "") -> str:
    """Describe an unusable file, with its folder and speaker.

    Example:
        >>> describe_unusable(Path("voices/ann/monday/1.wav"), ValueError("1.wav is empty"), "ann")
        'ann/monday/1.wav is empty'
    """
    message = str(error)
    if not message.startswith(file_name(path.name)):
        return message
    folder = "" if isinstance(path, VirtualFile) else printable(path.parent.name)
    return "/".join([*dict.fromkeys(filter(None, (speaker, folder))), message])


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sorting key that puts 9 before 10."""
    parts = re.split(r"([0-9]+)", text)
    return (
        *(
            (0, int(piece), "") if i % 2 else (1, 0, piece)
            for i, piece in enumerate(parts)
            if piece
        ),
        (-1, 0, text),
    )


class Gathering:
    """Collector of recordings, and of problems with each, named relative to a root folder."""

    def __init__(self, root: Path, problems: Problems | None = None) -> None:
        self._root = root
        self._recordings: list[Recording] = []
        self._speaker_of: dict[str | VirtualFile, str] = {}
        self._problems = Problems() if problems is None else problems
        self.problem = self._problems.append

    def add(self, speaker: str, session: str, path: Readable, where: str = "") -> None:
        """Add a recording, or a problem that excludes it; problems begin with ``where``."""
        if where and is_empty_cell(speaker):  # only in tables; a folder may have any name
            self.problem(f"{where}has no speaker ({speaker.strip() or 'empty'})")
            return
        name = self.name(path)
        for role, label in (("speaker", speaker), ("session", session)):
            if not is_name(label):  # a store with such a name could not be read
                long = label.strip() and is_printable(label)
                reason = f"longer than {LONGEST_NAME} characters" if long else "cannot be printed"
                defect = f"{label[:20]!a}... is" if long else f"{label!a}"
                self.problem(f"{where}{name}: the {role}'s name {defect} {reason}")
                return
        speaker = spelled(speaker)
        if isinstance(path, Path):
            path = spelled_path(path)
        real_path = path if isinstance(path, VirtualFile) else os.path.realpath(path)
        defects = (_find_defect(file, self.name(file)) for file in files_of(path))
        unusable = next(filter(None, defects), None)
        if unusable is not None:
            self.problem(f"{where}{name} {unusable}")
        elif first_speaker := self._speaker_of.get(real_path):
            twice = first_speaker == speaker
            conflict = "twice" if twice else f"for {first_speaker} and for {speaker}"
            self.problem(f"{where}{name} is listed {conflict}")
        else:
            self._speaker_of[real_path] = speaker
            self._recordings.append(Recording(speaker, session, path))

    def name(self, path: Readable) -> str:
        """Return the name of a file for messages."""
        if isinstance(path, VirtualFile):
            return path.name
        inside = path.is_relative_to(self._root)
        return path.relative_to(self._root).as_posix() if inside else path.name

    def corpus(self, layout: str, identified_by: str = "") -> Corpus:
        """Return the corpus in natural order. ``layout`` names the layout in messages."""
        problems = tuple(self._problems)
        if not self._recordings:
            reason = f": {problems[0]}" if problems else ""
            raise CorpusError(f"{layout} names no recording that can be used{reason}")
        names = dict.fromkeys(recording.speaker for recording in self._recordings)
        if twin := find_twin(names, names):
            raise CorpusError(f"{layout}: speaker {twin}")
        order = sorted(
            self._recordings,
            key=lambda r: (natural(r.speaker), natural(r.session), natural(_sorting_name(r.path))),
        )
        return Corpus(tuple(order), problems, identified_by)


def _sorting_name(path: Readable) -> str:
    return path.name if isinstance(path, VirtualFile) else path.as_posix()


def _find_defect(path: Path, name: str) -> str | None:
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):  # too long, or with a null character
        return "is missing"
    if not stat.S_ISREG(mode):
        return "is a folder, a pipe or a device: use a file"
    if not os.access(path, os.R_OK):
        return "cannot be read (permission denied)"
    if path.suffix.lower() in CONTAINERS:
        return f"is not supported: convert it with {as_wav(name)}"
    return None
