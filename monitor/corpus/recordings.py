"""Recordings, and who speaks in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from monitor.errors import UsageError
from monitor.safe_text import file_name
from monitor.transcripts.choice import LIES_BESIDE, TranscriptChoice

__all__ = ["Corpus", "Recording"]


@dataclass(frozen=True, slots=True)
class Recording:
    """One file of one speaker.

    Attributes:
        speaker: who speaks.
        session: occasion on which it was recorded; only compared within a speaker.
        path: the file.
        words: which transcript goes with it, for features that are made of words.
    """

    speaker: str
    session: str
    path: Path
    words: TranscriptChoice = field(default=LIES_BESIDE, kw_only=True)


@dataclass(frozen=True, slots=True)
class Corpus:
    """Recordings in a fixed order, and what had to be left out.

    Attributes:
        recordings: by speaker, session and file.
        problems: one line for everything that is missing or cannot be used.
        told_by: what the speakers are told apart by, for people; empty for one that was named.

    Example:
        >>> corpus = Corpus((Recording("ann", "1", Path("a.wav")),), ())
        >>> corpus.speakers, {name: list(files) for name, files in corpus.sessions("ann").items()}
        (('ann',), {'1': [PosixPath('a.wav')]})
    """

    recordings: tuple[Recording, ...]
    problems: tuple[str, ...]
    told_by: str = ""

    @property
    def speakers(self) -> tuple[str, ...]:
        """Every speaker once, in order."""
        return tuple(dict.fromkeys(recording.speaker for recording in self.recordings))

    def sessions(self, speaker: str) -> dict[str, tuple[Path, ...]]:
        """The files of each session of a speaker, in order."""
        sessions: dict[str, tuple[Path, ...]] = {}
        for recording in self.recordings:
            if recording.speaker == speaker:
                before = sessions.get(recording.session, ())
                sessions[recording.session] = (*before, recording.path)
        return sessions

    def with_words(self, choice: TranscriptChoice) -> Corpus:
        """The same recordings, with these words of theirs.

        Raises:
            UsageError: one transcript cannot be that of several recordings.
        """
        if choice.path is not None and len(self.recordings) > 1:
            raise UsageError(
                f"{file_name(choice.path)} is the transcript of one recording, and these are "
                f"{len(self.recordings)}: put NAME{choice.path.suffix} beside each NAME instead"
            )
        made = (replace(recording, words=choice) for recording in self.recordings)
        return replace(self, recordings=tuple(made))

    def __len__(self) -> int:
        return len(self.recordings)

    def __iter__(self) -> Iterator[Recording]:
        return iter(self.recordings)
