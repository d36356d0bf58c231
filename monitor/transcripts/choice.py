"""Which transcript goes with a recording: one that is named, or the one that lies beside it."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import astuple, dataclass, replace
from pathlib import Path

from monitor.errors import ForeignTextError, SourceError
from monitor.safe_text import file_name, printable
from monitor.transcripts.reading import SUFFIXES, read_transcript
from monitor.transcripts.transcript import Transcript

__all__ = ["LIES_BESIDE", "TranscriptChoice", "passed_over", "transcript_beside", "words_mark"]


_CAPTIONS = (".vtt", ".srt")
_LANGUAGE = re.compile(r"\.[a-z]{2,3}(-[A-Za-z0-9]+)*", re.ASCII)


def transcript_beside(recording: Path) -> Path | None:
    """The transcript that lies beside a recording, ``talk.vtt`` beside ``talk.flac``.

    Where several do, the first of `SUFFIXES`: those that time each word come before captions. JSON
    that is whole and no recogniser's, such as metadata, is passed over where another lies there.
    Where nothing else does, captions that name their language (``talk.en.vtt``, as of yt-dlp), if
    there is one file of them.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name in ("talk.flac", "talk.tsv", "talk.words"):
        ...         Path(folder, name).touch()
        ...     print(transcript_beside(Path(folder, "talk.flac")).name)
        talk.words
    """
    return _beside(recording)[0]


def passed_over(recording: Path) -> str:
    """That a file beside a recording was passed over, in a line; empty where none was."""
    taken, other = _beside(recording)
    if taken is None or other is None:
        return ""
    return f"{file_name(other)} is no transcript; {file_name(taken)} is taken"


def _beside(recording: Path) -> tuple[Path | None, Path | None]:
    """What is taken of what lies beside a recording, and what is passed over for it."""
    places = (recording.with_suffix(suffix) for suffix in SUFFIXES)
    there = [place for place in places if place != recording and place.is_file()]
    if not there or [place.suffix for place in there] == [".json"]:
        of_languages = _of_languages(recording)
        there += of_languages if len(of_languages) == 1 else []
    if len(there) > 1 and there[0].suffix == ".json" and _is_foreign(there[0]):
        return there[1], there[0]
    return (there[0] if there else None), None


def _is_foreign(path: Path) -> bool:
    """Whether a file is whole and something else; one that is broken is not passed over."""
    try:
        read_transcript(path)
    except ForeignTextError:
        return True
    except SourceError:
        pass
    return False


def _of_languages(recording: Path) -> list[Path]:
    """Captions that name their language, and are not those of another recording."""
    try:
        names = [each for each in os.listdir(recording.parent) if each.startswith(recording.stem)]  # noqa: PTH208
    except OSError:
        return []
    others = {Path(each).stem for each in names if Path(each).suffix not in SUFFIXES}
    return [
        recording.with_name(each)
        for each in sorted(names)
        for stem in [Path(each).stem]
        if Path(each).suffix in _CAPTIONS
        and stem not in others
        and _LANGUAGE.fullmatch(stem.removeprefix(recording.stem))
    ]


@dataclass(frozen=True, slots=True)
class TranscriptChoice:
    """Which transcript goes with a recording, and whose words in it count.

    Attributes:
        path: of the transcript; None for the one beside each recording.
        speaker: as the transcript calls who is heard; None takes all words of a transcript that
            names one speaker or nobody.
    """

    path: Path | None = None
    speaker: str | None = None

    def made_absolute(self) -> TranscriptChoice:
        """The same, found from any working folder."""
        if self.path is None:
            return self
        return replace(self, path=Path(os.path.abspath(self.path)))  # noqa: PTH100

    def found(self, recording: Path) -> Path | None:
        """The transcript of a recording; None where none lies beside it."""
        return self.path or transcript_beside(recording)

    def place(self, recording: Path) -> Path:
        """The transcript of a recording.

        Raises:
            SourceError: none lies beside it.
        """
        found = self.found(recording)
        if found is None:
            stem = file_name(recording.with_suffix(""))
            several = ", ".join(file_name(each) for each in _of_languages(recording)[:5])
            lie = f"; {several} lie there, name one (transcript=)" if several else ""
            raise SourceError(
                f"{file_name(recording)} has no words beside it: put {stem}{SUFFIXES[0]} there, or "
                f"{', '.join(SUFFIXES[1:])}{lie}"
            )
        return found

    def read(self, recording: Path, *, own: str | None = None) -> Transcript:
        """The words of whoever is heard in a recording.

        Args:
            recording: the file.
            own: what the speaker is called elsewhere; taken where the transcript names several,
                this one among them, and nobody chose.

        Raises:
            SourceError: there is no transcript, it cannot be read, it does not name the speaker, or
                several and it is not said who counts: other people's words would be held against
                her.
        """
        found = self.of(read_transcript(self.place(recording)), own=own)
        other = self.passed_over(recording)
        return replace(found, notices=(other, *found.notices)) if other else found

    def passed_over(self, recording: Path) -> str:
        """That a file beside a recording was passed over, in a line; empty where none was."""
        return "" if self.path else passed_over(recording)

    def of(self, found: Transcript, *, own: str | None = None) -> Transcript:
        """Those words of a transcript that count.

        Raises:
            SourceError: as `read`.
        """
        if self.speaker is not None:
            return found.of(self.speaker)
        several = found.speakers
        if len(several) < 2:
            return found
        if own in several:
            return found.of(own)
        raise SourceError(
            f"{found.label} holds the words of {', '.join(map(printable, several))}: say whose "
            "count (speaker_in_transcript=)"
        )


LIES_BESIDE = TranscriptChoice()
"""The transcript that lies beside each recording, of whoever is heard in it."""


def words_mark(transcript: Transcript) -> str:
    """A mark of the words and their times, whatever file they came from: sha256 in hexadecimal."""
    return hashlib.sha256(repr([astuple(word) for word in transcript.said]).encode()).hexdigest()
