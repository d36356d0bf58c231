"""Roles of recordings: a reader who trains the network never judges it, or a rank model.

Readers of the shipped population do not train, because their scores calibrate its rank models. One
half of them is for choosing checkpoints and settings, and the other half is reported. 50 non-native
speakers are held out and reported too.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import orjson
import soundfile

from monitor.errors import CorpusError
from monitor.files import atomic_write
from monitor.networks.layers import RATE
from monitor.population.population import Population
from monitor.types import AnyArray

ROLES = ("train", "choose", "report", "held out")
"""Roles of recordings; ``held out`` is for non-native speakers who are reported."""
HELD_OUT = 50
MOST_SECONDS = 240.0
"""Audio decoded from a recording that does not train: enough for templates and tests."""
INDEX = "index.json"
_TRAINING = ("background", "speechocean762")
_SEED = 20261122


@dataclass(frozen=True, slots=True)
class Recording:
    """One file of a corpus, with its role.

    Attributes:
        path: the file.
        corpus, speaker, gender, session: values of the manifest.
        role: one of `ROLES`.
        seconds: audio seconds in the manifest.
    """

    path: Path
    corpus: str
    speaker: str
    gender: str
    session: str
    role: str
    seconds: float

    def decoded(self, kind: str) -> AnyArray:
        """Decode the part to use: shape (n,) at 16 kHz, with this dtype.

        Raises:
            CorpusError: the file is not mono, or has another rate.
        """
        most = -1 if self.role == "train" else round(MOST_SECONDS * RATE)
        sound, rate = soundfile.read(self.path, frames=most, dtype=kind)
        if rate != RATE or sound.ndim != 1:
            raise CorpusError(f"{self.path.name}: not mono at {RATE} Hz")
        return np.asarray(sound)

    def piece(self, start: int, length: int) -> Piece:
        """Return the recording's entry in a cache."""
        return Piece(self.corpus, self.speaker, self.gender, self.session, self.role, start, length)


@dataclass(frozen=True, slots=True)
class Piece:
    """One recording in a cache: its start and length there, and fields of `Recording`."""

    corpus: str
    speaker: str
    gender: str
    session: str
    role: str
    start: int
    length: int

    @property
    def voice(self) -> str:
        """Unique name of the speaker: two corpora use the same numbers."""
        return f"{self.corpus} {self.speaker}"


class Pieces:
    """Index of a cache of recordings. Caches are personal data, so their files are mode 0600.

    Args:
        folder: folder of the cache.
        recipe: module that prepares the cache, for the message.

    Raises:
        CorpusError: the cache was not prepared.
    """

    def __init__(self, folder: Path, recipe: str) -> None:
        self.folder = folder
        try:
            self.pieces = [Piece(**each) for each in orjson.loads((folder / INDEX).read_bytes())]
        except (OSError, TypeError, ValueError) as error:
            raise CorpusError(f"{folder}: not prepared ({error}): run python -m {recipe}") from None

    def of(self, *roles: str) -> list[Piece]:
        """Return the recordings with these roles."""
        return [each for each in self.pieces if each.role in roles]

    @staticmethod
    def keep(folder: Path, pieces: Iterable[Piece]) -> None:
        """Write the index, after all other files of the cache."""
        with atomic_write(folder / INDEX) as file:
            file.write(orjson.dumps([asdict(each) for each in pieces]))


def recordings(speech: Path, nonnative: Path) -> list[Recording]:
    """Return all recordings that the recipe uses.

    Args:
        speech: a folder with ``manifest.csv``: path, corpus, speaker, gender, chapter, seconds.
        nonnative: a folder with such a manifest, but ``age`` instead of ``chapter``.

    Returns:
        training first, then the two halves of the shipped readers, then held-out speakers.

    Raises:
        CorpusError: a manifest is missing or invalid.
    """
    reference = set(Population.reference().names)
    rows = [*_rows(speech), *_rows(nonnative)]
    shipped = [row for row in rows if row["speaker"] in reference and "age" not in row]
    several = {row["speaker"] for row in shipped if _sessions(shipped, row["speaker"]) > 1}
    report = _half(several) | _half({row["speaker"] for row in shipped} - several)
    others = [row for row in rows if row["corpus"] in _TRAINING and row not in shipped]
    foreign = sorted({row["speaker"] for row in others if row["corpus"] == _TRAINING[1]})
    apart = set(_drawn(foreign, min(HELD_OUT, len(foreign) // 5)))
    found = [
        _recording(row, "held out" if row["speaker"] in apart and "age" in row else "train")
        for row in others
    ]
    found += [
        _recording(row, "report" if row["speaker"] in report else "choose") for row in shipped
    ]
    return sorted(found, key=lambda each: (ROLES.index(each.role), each.corpus, each.path))


def _rows(folder: Path) -> list[dict[str, str]]:
    manifest = folder / "manifest.csv"
    try:
        with manifest.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            row["path"] = str(folder / row["path"])
            row["corpus"], row["speaker"], row["gender"], float(row["seconds"])
    except (OSError, KeyError, ValueError) as error:
        raise CorpusError(f"{manifest}: no valid manifest of readers ({error})") from None
    return rows


def _recording(row: dict[str, str], role: str) -> Recording:
    return Recording(
        path=Path(row["path"]),
        corpus=row["corpus"],
        speaker=row["speaker"],
        gender=row["gender"],
        session=row.get("chapter", "1"),
        role=role,
        seconds=float(row["seconds"]),
    )


def _sessions(rows: Iterable[dict[str, str]], speaker: str) -> int:
    return len({row["chapter"] for row in rows if row["speaker"] == speaker})


def _half(speakers: Iterable[str]) -> set[str]:
    ordered = sorted(speakers)
    return set(_drawn(ordered, len(ordered) // 2))


def _drawn(ordered: Sequence[str], count: int) -> list[str]:
    drawn = np.random.default_rng(_SEED).permutation(len(ordered))[:count]
    return [ordered[index] for index in drawn]
