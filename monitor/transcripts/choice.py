"""Choice of the transcript of a recording, and of the speaker in it."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import astuple, dataclass, replace
from pathlib import Path

from monitor.errors import Argument, Message, SourceError
from monitor.safe_text import file_name, find_name, printable
from monitor.transcripts.formats import SUFFIXES, read_transcript
from monitor.transcripts.transcript import Transcript
from monitor.virtual_files import Readable, VirtualFile, files_of

_CAPTIONS = (".vtt", ".srt")
_LANGUAGE = re.compile(r"\.[a-z]{2,3}(-[A-Za-z0-9]+)*", re.ASCII)


def transcript_beside(recording: Readable) -> Path | None:
    """Find the transcript beside a recording, such as ``talk.vtt`` beside ``talk.flac``.

    If there are several, the first of `SUFFIXES` is used, so that word-timed formats precede
    captions. Otherwise a single file of captions with a language (``talk.en.vtt``) is used.
    """
    if isinstance(recording, VirtualFile):
        return None
    for path in map(recording.with_suffix, SUFFIXES):
        if path != recording and path.is_file():
            return path
    captions = _find_language_captions(recording)
    return captions[0] if len(captions) == 1 else None


def _find_language_captions(recording: Path) -> list[Path]:
    """Find captions that name their language, and are not those of another recording."""
    try:
        names = [name for name in os.listdir(recording.parent) if name.startswith(recording.stem)]  # noqa: PTH208
    except OSError:
        return []
    others = {Path(name).stem for name in names if Path(name).suffix not in SUFFIXES}
    return [
        recording.with_name(name)
        for name in sorted(names)
        for stem in [Path(name).stem]
        if Path(name).suffix in _CAPTIONS
        and stem not in others
        and _LANGUAGE.fullmatch(stem.removeprefix(recording.stem))
    ]


@dataclass(frozen=True, slots=True)
class TranscriptChoice:
    """Choice of a recording's transcript, and of the speaker in it who counts.

    ``path`` is None for the transcript beside each recording. ``speaker`` is the name in the
    transcript. None takes all words of a transcript with at most one speaker.
    """

    path: Path | None = None
    speaker: str | None = None

    def make_absolute(self) -> TranscriptChoice:
        """Return the choice with an absolute path."""
        path = None if self.path is None else Path(os.path.abspath(self.path))  # noqa: PTH100
        return replace(self, path=path)

    def find(self, recording: Readable) -> Path | None:
        """Find the transcript of a recording, or return None."""
        return self.path or transcript_beside(recording)

    def files(self, recording: Readable, *, words: bool) -> list[Path]:
        """List the files of a recording, and of its transcript if ``words`` and if it exists."""
        transcript = self.find(recording) if words else None
        return [*files_of(recording), *(() if transcript is None else (transcript,))]

    def locate(self, recording: Readable) -> Path:
        """Find the transcript of a recording, or raise SourceError."""
        transcript = self.find(recording)
        if transcript is None and isinstance(recording, VirtualFile):
            raise SourceError(f"{recording.name} has no words: leave out the features of words")
        if transcript is None:
            assert isinstance(recording, Path)
            stem = file_name(recording.with_suffix(""))
            captions = ", ".join(file_name(path) for path in _find_language_captions(recording)[:5])
            hint = (f"; there are {captions}. Name one (", Argument("transcript"), ")")
            raise SourceError(
                Message(
                    f"{file_name(recording)} has no words beside it: put {stem}{SUFFIXES[0]} "
                    f"there, or {', '.join(SUFFIXES[1:])}",
                    *(hint if captions else ()),
                )
            )
        return transcript

    def read(self, recording: Readable, *, own_speaker: str | None = None) -> Transcript:
        """Read the words of the measured speaker of a recording.

        ``own_speaker`` is the speaker's name elsewhere. It is used if no speaker was chosen and it
        is among several in the transcript. Raises SourceError if the speaker is ambiguous, because
        other people's words would distort the bits.
        """
        return self.select_words(read_transcript(self.locate(recording)), own_speaker=own_speaker)

    def select_words(self, transcript: Transcript, *, own_speaker: str | None = None) -> Transcript:
        """Return the words of a transcript that count; SourceError as in `read`."""
        if self.speaker is not None:
            return transcript.select_speaker(self.speaker)
        speakers = transcript.speakers
        if len(speakers) < 2:
            return transcript
        if own_speaker is not None and find_name(own_speaker, speakers):
            return transcript.select_speaker(own_speaker)
        names = ", ".join(map(printable, speakers))
        text = f"{transcript.label} has words of {names}: choose one speaker ("
        raise SourceError(Message(text, Argument("speaker_in_transcript"), ")"))


SIDECAR = TranscriptChoice()  # the transcript beside each recording, of its measured speaker


def words_mark(transcript: Transcript) -> str:
    """Hash the words and their times, independent of their file: sha256 in hexadecimal."""
    words = [astuple(word) for word in transcript.timed_words]
    return hashlib.sha256(repr(words).encode()).hexdigest()
