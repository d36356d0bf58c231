"""Hear the corpora once: bands, fine spectra, and what the teacher says, latent by latent.

    python -m recipes.usc.prepare ../shared/speech ../shared/nonnative CACHE

CACHE holds spectra of voices: keep it outside the repository.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import orjson
import soundfile

from monitor.errors import CorpusError
from monitor.files import atomic_write
from monitor.networks.layers import BANDS, RATE
from monitor.networks.phones import shipped_recogniser
from monitor.networks.usc import DECODER_BANDS as FINE
from monitor.types import AnyArray, FloatArray
from recipes.usc.corpus import recordings
from recipes.usc.teacher import centred, heard, hidden
from recipes.voice.corpus import MOST_SECONDS, Recording

__all__ = ["FRAME", "PARTS", "Cache", "Stretch", "prepare"]

FRAME = 640
"""Samples of a latent: 40 ms."""
PARTS = {"bands": 4 * BANDS, "centred": 4 * BANDS, "fine": 4 * FINE, "hidden": 384}
"""Numbers of a latent in each file, float16."""
_INDEX = "index.json"


def main() -> None:
    parser = argparse.ArgumentParser(description="Hear the corpora for the codec once.")
    parser.add_argument("speech", type=Path)
    parser.add_argument("nonnative", type=Path)
    parser.add_argument("cache", type=Path)
    given = parser.parse_args()
    prepare(recordings(given.speech, given.nonnative), given.cache)


@dataclass(frozen=True, slots=True)
class Stretch:
    """One recording in the files of a cache.

    Attributes:
        corpus, speaker, gender, role: as `recipes.usc.corpus` lists them.
        start, latents: where it is.
    """

    corpus: str
    speaker: str
    gender: str
    role: str
    start: int
    latents: int

    @property
    def voice(self) -> str:
        """Whose it is: two corpora number their speakers alike."""
        return f"{self.corpus} {self.speaker}"


class Cache:
    """A corpus, heard once.

    Args:
        folder: written by `prepare`.

    Attributes:
        stretches: its recordings.
        parts: by name, shape (latents, numbers), float16, mapped from disk.

    Raises:
        CorpusError: it was not prepared.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            listed = orjson.loads((folder / _INDEX).read_bytes())
            self.stretches = [Stretch(**each) for each in listed]
            self.parts: dict[str, AnyArray] = {
                name: np.memmap(folder / f"{name}.f16", np.float16, mode="r").reshape(-1, size)
                for name, size in PARTS.items()
            }
        except (OSError, TypeError, ValueError) as error:
            raise CorpusError(
                f"{folder}: not prepared ({error}): python -m recipes.usc.prepare"
            ) from None

    def of(self, *roles: str) -> list[Stretch]:
        """The recordings for a purpose."""
        return [each for each in self.stretches if each.role in roles]


def prepare(listed: list[Recording], folder: Path) -> Cache:
    """Hear what is listed; a cache that is whole is left as it is."""
    if (folder / _INDEX).exists():
        return Cache(folder)
    folder.mkdir(parents=True, exist_ok=True)
    opener = partial(os.open, mode=0o600)
    for name in PARTS:
        with open(folder / f"{name}.f16", "wb", opener=opener):
            pass  # what a killed run left
    found: list[Stretch] = []
    start = 0
    for each in listed:
        parts = _parts(_decoded(each))
        for name, rows in parts.items():
            with (folder / f"{name}.f16").open("ab") as file:
                file.write(rows.astype(np.float16).tobytes())
        latents = len(parts["hidden"])
        found.append(Stretch(each.corpus, each.speaker, each.gender, each.role, start, latents))
        start += latents
        print(f"\r{start * FRAME / RATE / 60:.0f} min heard", end="", file=sys.stderr)
    print(file=sys.stderr)
    with atomic_write(folder / _INDEX) as index:
        index.write(orjson.dumps([asdict(each) for each in found]))
    return Cache(folder)


def _decoded(recording: Recording) -> FloatArray:
    most = -1 if recording.role == "train" else round(MOST_SECONDS * RATE)
    sound, rate = soundfile.read(recording.path, frames=most, dtype="float32")
    if rate != RATE or sound.ndim != 1:
        raise CorpusError(f"{recording.path.name}: not mono at {RATE} Hz")
    return np.asarray(sound)


def _parts(sound: FloatArray) -> dict[str, FloatArray]:
    """By name, a row a latent."""
    network = shipped_recogniser()
    bands = heard(sound)
    without_mean = centred(bands, network.usual)
    fine = heard(sound, FINE)
    found = {"bands": bands, "centred": without_mean, "fine": fine}
    latents = len(bands) // 4
    made = {name: each.reshape(latents, PARTS[name]) for name, each in found.items()}
    return made | {"hidden": hidden(network, without_mean)}


if __name__ == "__main__":
    main()
