"""What `recipes.phones.prepare` keeps: all audio in one row of int16, and who speaks where."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import orjson
import soundfile
from numpy.typing import NDArray

from monitor.errors import CorpusError
from monitor.files import atomic_write
from monitor.networks.layers import RATE
from monitor.types import FloatArray
from recipes.voice.corpus import MOST_SECONDS, Recording

_AUDIO, _INDEX = "audio.i16", "index.json"


@dataclass(frozen=True, slots=True)
class Piece:
    """One recording in the row of samples; other fields as `recipes.voice.corpus.Recording`."""

    corpus: str
    speaker: str
    gender: str
    session: str
    adult: bool
    role: str
    start: int
    samples: int

    @property
    def voice(self) -> str:
        """Whose it is: two corpora number their speakers alike."""
        return f"{self.corpus} {self.speaker}"


class Cache:
    """The folder of one corpus, heard once. Its audio is of people: files are mode 0600.

    Args:
        folder: written by `hear`.

    Attributes:
        pieces: the recordings.
        audio: shape (n,), int16 at 16 kHz, mapped from disk.

    Raises:
        CorpusError: it was not prepared.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            listed = orjson.loads((folder / _INDEX).read_bytes())
            self.pieces = [Piece(**each) for each in listed]
            self.audio: NDArray[np.int16] = np.memmap(folder / _AUDIO, np.int16, mode="r")
        except (OSError, TypeError, ValueError) as error:
            raise CorpusError(
                f"{folder}: not prepared ({error}): python -m recipes.phones.prepare"
            ) from None

    def of(self, *roles: str) -> list[Piece]:
        """The recordings for a purpose."""
        return [piece for piece in self.pieces if piece.role in roles]

    def sound(self, piece: Piece, start: float = 0.0, seconds: float | None = None) -> FloatArray:
        """A stretch of a recording, float32 in -1 to 1; shorter where the recording ends."""
        begin = piece.start + round(start * RATE)
        end = piece.start + piece.samples
        if seconds is not None:
            end = min(end, begin + round(seconds * RATE))
        return np.asarray(self.audio[begin:end], np.float32) / 32768

    @staticmethod
    def write(folder: Path, pieces: list[Piece], audio: list[NDArray[np.int16]]) -> Cache:
        """Keep a corpus that has been decoded."""
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(folder / _AUDIO) as file:
            for each in audio:
                file.write(each.tobytes())
        with atomic_write(folder / _INDEX) as file:
            file.write(orjson.dumps([asdict(piece) for piece in pieces]))
        return Cache(folder)


def hear(listed: list[Recording], folder: Path) -> Cache:
    """Decode what is listed."""
    pieces, audio, start = [], [], 0
    for each in listed:
        sound = _decoded(each)
        audio.append(sound)
        pieces.append(
            Piece(
                corpus=each.corpus,
                speaker=each.speaker,
                gender=each.gender,
                session=each.session,
                adult=each.adult,
                role=each.role,
                start=start,
                samples=len(sound),
            )
        )
        start += len(sound)
        print(f"\r{start / RATE / 60:.0f} min decoded", end="", file=sys.stderr)
    print(file=sys.stderr)
    return Cache.write(folder, pieces, audio)


def _decoded(recording: Recording) -> NDArray[np.int16]:
    most = -1 if recording.role == "train" else round(MOST_SECONDS * RATE)
    sound, rate = soundfile.read(recording.path, frames=most, dtype="int16")
    if rate != RATE or sound.ndim != 1:
        raise CorpusError(f"{recording.path.name}: not mono at {RATE} Hz")
    return np.asarray(sound, np.int16)
