"""Hear the corpora once: audio as int16, and the phones of every utterance.

    python -m recipes.phones.prepare ../shared/speech ../shared/nonnative CACHE

CACHE holds voices: keep it outside the repository.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import orjson

from monitor.errors import CorpusError
from monitor.files import atomic_write
from monitor.networks.layers import RATE
from monitor.networks.phones import PHONES
from monitor.types import FloatArray, IntArray
from recipes.phones.cache import Cache, Piece, hear
from recipes.phones.corpus import Line, lines, recordings
from recipes.phones.words import Words
from recipes.voice.corpus import Recording

__all__ = ["ALIGNED", "PEER", "Spoken", "Utterance", "utterances", "write"]

MOST_SECONDS = 16.0
"""Short utterances that train are joined up to this, so that batches are of all corpora."""
_UTTERANCES = "utterances.json"
ALIGNED = "aligned-*.jsonl"
PEER = "pocketsphinx.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser(description="Hear the corpora for the phone network once.")
    parser.add_argument("speech", type=Path)
    parser.add_argument("nonnative", type=Path)
    parser.add_argument("cache", type=Path)
    given = parser.parse_args()
    listed = recordings(given.speech, given.nonnative)
    try:
        cache = Cache(given.cache)
    except CorpusError:
        cache = hear(listed, given.cache)
    found = utterances(listed, cache, Words.cmu())
    write(given.cache, found)
    print(f"{len(found)} utterances")


@dataclass(frozen=True, slots=True)
class Utterance:
    """A stretch of a recording.

    Attributes:
        piece: which of the cache's pieces.
        start, samples: within it.
        phones: classes, 1 to 39.
        known: whether the dictionary has all its words.
    """

    piece: int
    start: int
    samples: int
    phones: list[int]
    known: bool


def utterances(listed: list[Recording], cache: Cache, words: Words) -> list[Utterance]:
    """What is said where, as far as it was decoded."""
    found = []
    for index, (recording, piece) in enumerate(zip(listed, cache.pieces, strict=True)):
        said = lines(recording.path)
        for each in _joined(said) if piece.role == "train" else said:
            start, end = round(each.start * RATE), round(each.end * RATE)
            if end > piece.samples + RATE // 10:
                break  # beyond what is heard of those who judge
            phones = [PHONES.index(phone) + 1 for phone in words.phones(each.text)]
            end = min(end, piece.samples)
            found.append(Utterance(index, start, end - start, phones, words.known(each.text)))
    return found


def write(folder: Path, found: list[Utterance]) -> None:
    """Keep what is said beside what was heard."""
    with atomic_write(folder / _UTTERANCES) as file:
        file.write(orjson.dumps([asdict(each) for each in found]))


def _joined(said: list[Line]) -> list[Line]:
    made: list[Line] = []
    for line in said:
        if made and line.end - made[-1].start <= MOST_SECONDS:
            made[-1] = Line(made[-1].start, line.end, f"{made[-1].text} {line.text}")
        else:
            made.append(line)
    return made


class Spoken:
    """A prepared corpus and what is said in it.

    Args:
        folder: written by `recipes.phones.prepare`.

    Raises:
        CorpusError: it was not prepared.
    """

    def __init__(self, folder: Path) -> None:
        try:
            self.cache = Cache(folder)
            listed = orjson.loads((folder / _UTTERANCES).read_bytes())
            self.utterances = [Utterance(**each) for each in listed]
        except (CorpusError, OSError, TypeError, ValueError) as error:
            raise CorpusError(
                f"{folder}: not prepared ({error}): python -m recipes.phones.prepare"
            ) from None

    def piece(self, utterance: Utterance) -> Piece:
        """The recording that it is in."""
        return self.cache.pieces[utterance.piece]

    def of(self, *roles: str) -> list[Utterance]:
        """The utterances for a purpose."""
        return [each for each in self.utterances if self.piece(each).role in roles]

    def aligned(self) -> dict[int, IntArray]:
        """Of the utterances that `recipes.phones.align` has heard: when each phone is said.

        Returns:
            by number, shape (phones, 2): frames of 10 ms [begin, end).
        """
        rows = [
            orjson.loads(line)
            for path in sorted(self.cache.folder.glob(ALIGNED))
            for line in path.read_bytes().splitlines()
        ]
        return {row["utterance"]: np.array(row["times"]) for row in rows}

    def peer(self) -> dict[int, IntArray]:
        """What `recipes.phones.sphinx` has heard of those who judge.

        Returns:
            by number, shape (tokens, 3): class, and frames of 10 ms [begin, end).
        """
        path = self.cache.folder / PEER
        lines = path.read_bytes().splitlines() if path.exists() else []
        rows = [orjson.loads(line) for line in lines]
        return {row["utterance"]: np.array(row["tokens"], int).reshape(-1, 3) for row in rows}

    def sound(self, utterance: Utterance) -> FloatArray:
        """float32 in -1 to 1."""
        piece = self.piece(utterance)
        whole = self.cache.sound(piece, utterance.start / RATE, utterance.samples / RATE)
        return whole[: utterance.samples]


if __name__ == "__main__":
    main()
