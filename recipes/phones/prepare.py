"""Store the corpora once: audio as int16, and the phones of every utterance.

    python -m recipes.phones.prepare ../shared/speech ../shared/nonnative CACHE

CACHE contains voices: keep it outside the repository.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import orjson
from numpy.typing import NDArray

from monitor.errors import CorpusError
from monitor.files import atomic_write
from monitor.networks.layers import RATE
from monitor.networks.phones import PHONES
from monitor.types import FloatArray, IntArray
from recipes.phones.corpus import Line, lines, recordings
from recipes.phones.words import Words
from recipes.stages import stage
from recipes.voice.corpus import Piece, Pieces, Recording

MOST_SECONDS = 16.0
"""Short training utterances are joined up to this length, so that batches mix all corpora."""
_UTTERANCES = "utterances.json"
_AUDIO = "audio.i16"
ALIGNED = "aligned-*.jsonl"
PEER = "pocketsphinx.jsonl"


def main() -> None:
    given = stage(
        "Prepare the corpora for the phone network.", "speech", "nonnative", "cache"
    ).parse_args()
    listed = recordings(given.speech, given.nonnative)
    try:
        cache = Cache(given.cache)
    except CorpusError:
        cache = Cache.hear(listed, given.cache)
    found = utterances(listed, cache, Words.cmu())
    write(given.cache, found)
    print(f"{len(found)} utterances")


class Cache(Pieces):
    """A decoded corpus.

    Args:
        folder: folder written by `hear`.

    Attributes:
        pieces: the recordings.
        audio: shape (n,), int16 at 16 kHz, memory-mapped.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "recipes.phones.prepare")
        self.audio: NDArray[np.int16] = np.memmap(folder / _AUDIO, np.int16, mode="r")

    def sound(self, piece: Piece, start: int = 0, samples: int | None = None) -> FloatArray:
        """Return a stretch of a recording, float32 in -1 to 1; shorter if the recording ends."""
        end = piece.length if samples is None else min(piece.length, start + samples)
        held = self.audio[piece.start + start : piece.start + end]
        return np.asarray(held, np.float32) / 32768

    @classmethod
    def hear(cls, listed: list[Recording], folder: Path) -> Self:
        """Decode the listed recordings into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        pieces, start = [], 0
        with atomic_write(folder / _AUDIO) as file:
            for each in listed:
                sound = each.decoded("int16")
                file.write(sound.tobytes())
                pieces.append(each.piece(start, len(sound)))
                start += len(sound)
                print(f"\r{start / RATE / 60:.0f} min decoded", end="", file=sys.stderr)
        print(file=sys.stderr)
        cls.keep(folder, pieces)
        return cls(folder)


@dataclass(frozen=True, slots=True)
class Utterance:
    """A stretch of a recording.

    Attributes:
        piece: index of the recording among the cache's pieces.
        start, samples: position and length in the recording, in samples.
        phones: classes, 1 to 39.
        known: whether all its words are in the dictionary.
    """

    piece: int
    start: int
    samples: int
    phones: list[int]
    known: bool


def utterances(listed: list[Recording], cache: Cache, words: Words) -> list[Utterance]:
    """Return the utterances in the decoded parts of recordings."""
    found = []
    for index, (recording, piece) in enumerate(zip(listed, cache.pieces, strict=True)):
        transcript = lines(recording.path)
        for each in _join_lines(transcript) if piece.role == "train" else transcript:
            start, end = round(each.start * RATE), round(each.end * RATE)
            if end > piece.length + RATE // 10:
                break  # after the decoded part of a recording for evaluation
            phones = [PHONES.index(phone) + 1 for phone in words.phones(each.text)]
            end = min(end, piece.length)
            found.append(
                Utterance(index, start, end - start, phones, words.contains_all(each.text))
            )
    return found


def write(folder: Path, found: list[Utterance]) -> None:
    """Write the utterances to the cache's folder."""
    with atomic_write(folder / _UTTERANCES) as file:
        file.write(orjson.dumps([asdict(each) for each in found]))


def _join_lines(transcript: list[Line]) -> list[Line]:
    made: list[Line] = []
    for line in transcript:
        if made and line.end - made[-1].start <= MOST_SECONDS:
            made[-1] = Line(made[-1].start, line.end, f"{made[-1].text} {line.text}")
        else:
            made.append(line)
    return made


class Spoken:
    """A prepared corpus and its utterances.

    Args:
        folder: folder written by `recipes.phones.prepare`.

    Raises:
        CorpusError: the corpus was not prepared.
    """

    def __init__(self, folder: Path) -> None:
        self.cache = Cache(folder)
        listed = orjson.loads((folder / _UTTERANCES).read_bytes())
        self.utterances = [Utterance(**each) for each in listed]

    def piece(self, utterance: Utterance) -> Piece:
        """Return the recording of an utterance."""
        return self.cache.pieces[utterance.piece]

    def of(self, *roles: str) -> list[Utterance]:
        """Return the utterances with these roles."""
        return [each for each in self.utterances if self.piece(each).role in roles]

    def aligned(self) -> dict[int, IntArray]:
        """Return the phone times by `recipes.phones.align` and `recipes.phones.forced`.

        Returns:
            by index of the utterance, shape (phones, 2): frames of 10 ms [begin, end).
        """
        return {row["utterance"]: np.array(row["times"]) for row in self._rows(ALIGNED)}

    def peer(self) -> dict[int, IntArray]:
        """Return the tokens of evaluation readers by `recipes.phones.sphinx`.

        Returns:
            by index of the utterance, shape (tokens, 3): class, and frames of 10 ms [begin, end).
        """
        rows = self._rows(PEER)
        return {row["utterance"]: np.array(row["tokens"], int).reshape(-1, 3) for row in rows}

    def _rows(self, named: str) -> list[dict[str, Any]]:
        paths = sorted(self.cache.folder.glob(named))
        return [orjson.loads(line) for path in paths for line in path.read_bytes().splitlines()]

    def sound(self, utterance: Utterance) -> FloatArray:
        """Return the sound of an utterance, float32 in -1 to 1."""
        return self.cache.sound(self.piece(utterance), utterance.start, utterance.samples)


if __name__ == "__main__":
    main()
