"""What `recipes.voice.prepare` keeps: all audio in one row of int16, and who speaks where."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import orjson
from numpy.typing import NDArray

from monitor.errors import CorpusError
from monitor.files import atomic_write
from monitor.networks.layers import RATE
from monitor.types import AnyArray, FloatArray

__all__ = ["PSEUDO_SAMPLES", "Cache", "Piece", "Pseudo"]

PSEUDO_SAMPLES = 3 * RATE
"""Of a pseudo-speaker."""

_AUDIO, _INDEX, _TEACHER = "audio.i16", "index.json", "teacher.npz"
_PSEUDO, _PSEUDO_SAID = "pseudo.i16", "pseudo.npz"


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


@dataclass(frozen=True, slots=True)
class Pseudo:
    """Pseudo-speakers, made by `recipes.voice.pseudo`.

    Attributes:
        sounds: shape (n, 48000), int16, mapped from disk.
        voices: shape (n,), names: of whom each was made.
        teacher: shape (n, 192), of length 1: what the teacher says of each.
    """

    sounds: NDArray[np.int16]
    voices: AnyArray
    teacher: FloatArray


class Cache:
    """The folder of one corpus, heard once. Its audio is of people: files are mode 0600.

    Args:
        folder: written by `recipes.voice.prepare`.

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
                f"{folder}: not prepared ({error}): python -m recipes.voice.prepare"
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

    def teacher(self) -> dict[str, AnyArray]:
        """The teacher's centroid of each training speaker, so far."""
        path = self.folder / _TEACHER
        if not path.exists():
            return {}
        with np.load(path) as found:
            return dict(found)

    def keep_teacher(self, centroids: dict[str, AnyArray]) -> None:
        """Write them, whole."""
        with atomic_write(self.folder / _TEACHER) as file:
            np.savez(file, **centroids)  # type: ignore[arg-type]  # its own keywords are others

    def pseudo(self) -> Pseudo:
        """The pseudo-speakers made so far."""
        path = self.folder / _PSEUDO_SAID
        if not path.exists():
            empty = np.empty((0, 192), np.float32)
            return Pseudo(empty.astype(np.int16), np.empty(0, np.str_), empty)
        with np.load(path) as found:
            voices, teacher = found["voices"], found["teacher"]
        shape = (len(voices), PSEUDO_SAMPLES)
        sounds = np.memmap(self.folder / _PSEUDO, np.int16, mode="r", shape=shape)
        return Pseudo(sounds, voices, teacher)

    def add_pseudo(self, voices: list[str], sounds: NDArray[np.int16], teacher: FloatArray) -> None:
        """Keep some more; what a killed run left half written is overwritten."""
        before = self.pseudo()
        path = self.folder / _PSEUDO
        path.touch(mode=0o600)
        with path.open("r+b") as file:
            file.seek(before.sounds.size * before.sounds.itemsize)
            file.write(sounds.tobytes())
        named, said = np.array(voices), teacher.astype(np.float32)
        if len(before.voices):
            named = np.concatenate([before.voices, named])
            said = np.concatenate([before.teacher, said])
        with atomic_write(self.folder / _PSEUDO_SAID) as whole:
            np.savez(whole, voices=named, teacher=said)

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
