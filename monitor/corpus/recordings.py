"""Recordings, and who speaks in them; collected with the problems that were found."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from monitor.errors import CorpusError, UsageError
from monitor.safe_text import LONGEST_NAME, as_wav, file_name, is_name, printable
from monitor.transcripts.formats import LIES_BESIDE, TranscriptChoice


@dataclass(frozen=True, slots=True)
class Recording:
    """One file of one speaker.

    Attributes:
        session: occasion on which it was recorded; only compared within a speaker.
        words: which transcript goes with it, for features that are made of words.
    """

    speaker: str
    session: str
    path: Path
    words: TranscriptChoice = field(default=LIES_BESIDE, kw_only=True)


def describe_unusable(path: Path, error: Exception, speaker: str = "") -> str:
    """Describe a file that cannot be used, by its folder and speaker too.

    Example:
        >>> describe_unusable(Path("voices/ann/1.wav"), ValueError("1.wav is empty"), "ann")
        'ann/1.wav is empty'
        >>> describe_unusable(Path("voices/ann/monday/1.wav"), ValueError("1.wav is empty"), "ann")
        'ann/monday/1.wav is empty'
    """
    message, folder = str(error), printable(path.parent.name)
    if not message.startswith(file_name(path)):
        return message
    return "/".join([*dict.fromkeys(filter(None, (speaker, folder))), message])


@dataclass(frozen=True, slots=True)
class Corpus:
    """Recordings in a fixed order, and what had to be left out.

    Attributes:
        recordings: by speaker, session and file.
        problems: one line for everything that is missing or cannot be used.
        identified_by: what names the speakers, for people; empty for one that was given.

    Example:
        >>> corpus = Corpus((Recording("ann", "1", Path("a.wav")),), ())
        >>> corpus.speakers, {name: list(files) for name, files in corpus.sessions("ann").items()}
        (('ann',), {'1': [PosixPath('a.wav')]})
    """

    recordings: tuple[Recording, ...]
    problems: tuple[str, ...]
    identified_by: str = ""

    @property
    def speakers(self) -> tuple[str, ...]:
        """Every speaker once, in order."""
        return tuple(dict.fromkeys(recording.speaker for recording in self.recordings))

    def sessions(self, speaker: str) -> dict[str, tuple[Path, ...]]:
        """Return the files of each session of a speaker, in order."""
        sessions: dict[str, tuple[Path, ...]] = {}
        for recording in self.recordings:
            if recording.speaker == speaker:
                before = sessions.get(recording.session, ())
                sessions[recording.session] = (*before, recording.path)
        return sessions

    def with_words(self, choice: TranscriptChoice) -> Corpus:
        """Return the same recordings, with these words of theirs.

        Raises:
            UsageError: one transcript cannot be that of several recordings.
        """
        if choice.path is not None and len(self.recordings) > 1:
            raise UsageError(
                f"{file_name(choice.path)} is the transcript of one recording, and these are "
                f"{len(self.recordings)}: put NAME{choice.path.suffix} beside each NAME instead"
            )
        recordings = (replace(recording, words=choice) for recording in self.recordings)
        return replace(self, recordings=tuple(recordings))

    def __len__(self) -> int:
        return len(self.recordings)

    def __iter__(self) -> Iterator[Recording]:
        return iter(self.recordings)


CONTAINERS = frozenset(  # what holds audio too, but has to be converted
    ".m4a .m4b .mp4 .aac .mov .mkv .mka .webm .wma .amr .3gp .avi .ape .wv".split()  # noqa: SIM905
)


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sorting key that puts 9 before 10.

    Example:
        >>> sorted(["a10", "a9", "b"], key=natural)
        ['a9', 'a10', 'b']
    """
    parts = re.split(r"([0-9]+)", text)
    return (
        *((0, int(part), "") if i % 2 else (1, 0, part) for i, part in enumerate(parts) if part),
        (-1, 0, text),
    )


class Gathering:
    """Collector of recordings, and of problems with each, named relative to a root folder."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._found: list[Recording] = []
        self._speaker_of: dict[str, str] = {}
        self.problems: list[str] = []

    def problem(self, text: str) -> None:
        """Note something that has to be left out; kept to one printable line."""
        self.problems.append("".join(c if c.isprintable() else ascii(c)[1:-1] for c in text))

    def add(self, speaker: str, session: str, path: Path, where: str = "") -> None:
        """Take a recording, unless something speaks against it; messages begin with ``where``."""
        name = self.name(path)
        for role, label in (("speaker", speaker), ("session", session)):
            if not is_name(label):  # nor would the store be read again
                long = label.strip() and label.isprintable()
                reason = f"longer than {LONGEST_NAME} characters" if long else "cannot be printed"
                defect = f"{label[:20]!a}... is" if long else f"{label!a}"
                self.problem(f"{where}{name}: the {role}'s name {defect} {reason}")
                return
        speaker = unicodedata.normalize("NFC", speaker.strip())  # as file systems differ in this
        try:
            missing = not path.is_file()
        except (OSError, ValueError):  # too long, or with a null character
            missing = True
        if missing:
            self.problem(f"{where}{name} is missing")
            return
        if not os.access(path, os.R_OK):
            self.problem(f"{where}{name} may not be read")
            return
        if path.suffix.lower() in CONTAINERS:
            self.problem(f"{where}{name} cannot be read as it is; convert it: {as_wav(name)}")
            return
        place = os.path.realpath(path)
        if first_speaker := self._speaker_of.get(place):
            conflict = (
                "twice" if first_speaker == speaker else f"for {first_speaker} and for {speaker}"
            )
            self.problem(f"{where}{name} is listed {conflict}")
            return
        self._speaker_of[place] = speaker
        self._found.append(Recording(speaker, session.strip(), path))

    def name(self, path: Path) -> str:
        """Return the name of a file for messages."""
        try:
            return path.relative_to(self._root).as_posix()
        except ValueError:
            return path.name

    def corpus(self, layout: str, identified_by: str = "") -> Corpus:
        """Return everything, in natural order; ``layout`` is what names the recordings.

        Raises:
            CorpusError: nothing is left.
        """
        if not self._found:
            reason = f": {self.problems[0]}" if self.problems else ""
            raise CorpusError(f"{layout} names no recording that can be used{reason}")
        order = sorted(
            self._found,
            key=lambda r: (natural(r.speaker), natural(r.session), natural(r.path.as_posix())),
        )
        return Corpus(tuple(order), tuple(self.problems), identified_by)
