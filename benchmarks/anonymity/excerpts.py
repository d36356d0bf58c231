"""Whose utterances are compared: some that are references, others that are queries.

References and queries are of different chapters wherever a reader has two; of one chapter its first
half and its second, which makes a voice easier to recognise.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile

from monitor.corpus import find
from monitor.errors import CorpusError
from monitor.networks.layers import RATE
from monitor.types import FloatArray
from recipes.phones.corpus import Line, lines

__all__ = ["QUERY", "REFERENCE", "Excerpt", "excerpts"]

REFERENCE, QUERY = "reference", "query"
LEAST_SECONDS, MOST_SECONDS = 3.0, 12.0


@dataclass(frozen=True, slots=True)
class Excerpt:
    """One utterance of a recording.

    Attributes:
        speaker: who reads.
        role: `REFERENCE` or `QUERY`.
        path: the recording.
        start, seconds: where it lies in it.
        text: what is said.
        apart: whether the reader's queries are of another chapter than the references.
    """

    speaker: str
    role: str
    path: Path
    start: float
    seconds: float
    text: str
    apart: bool

    @property
    def name(self) -> str:
        """The same in every run: what an anonymiser draws by."""
        return f"{self.speaker}/{self.path.stem}@{self.start:.2f}"

    def sound(self) -> FloatArray:
        """Shape (n,), float32 at 16 kHz."""
        first, count = round(self.start * RATE), round(self.seconds * RATE)
        samples, rate = soundfile.read(self.path, start=first, frames=count, dtype="float32")
        if rate != RATE or samples.ndim != 1:
            raise CorpusError(f"{self.path.name}: this test takes one channel of 16 kHz")
        return np.asarray(samples)


def excerpts(speech: Path, each: int) -> list[Excerpt]:
    """So many references and queries of every reader who has two of both at least.

    Args:
        speech: recordings by reader and chapter, with a table of utterances beside each.
        each: of one role of a reader, at most; spread evenly over what there is.

    Raises:
        CorpusError: fewer than two readers have enough.
    """
    corpus, found = find(speech), []
    for speaker in corpus.speakers:
        sessions = [
            [(path, line) for path in paths for line in lines(path) if _fits(line)]
            for paths in corpus.sessions(speaker).values()
        ]
        sessions = [session for session in sessions if len(session) > 1]
        if len(sessions) > 1:
            *others, queries = sessions
            references = [one for session in others for one in session]
        elif sessions and len(sessions[0]) > 3:
            middle = len(sessions[0]) // 2
            references, queries = sessions[0][:middle], sessions[0][middle:]
        else:
            continue
        for role, pool in ((REFERENCE, references), (QUERY, queries)):
            places = np.unique(np.linspace(0, len(pool) - 1, min(each, len(pool))).astype(int))
            found += [
                Excerpt(
                    speaker, role, path, line.start, line.end - line.start, line.text,
                    len(sessions) > 1,
                )
                for path, line in (pool[place] for place in places)
            ]  # fmt: skip
    if len({one.speaker for one in found}) < 2:
        raise CorpusError(f"{speech}: fewer than two readers have utterances enough")
    return found


def _fits(line: Line) -> bool:
    return LEAST_SECONDS <= line.end - line.start <= MOST_SECONDS
