"""Decode the training clips of the voice network, once.

    python -m recipes.voice.clips ../shared/speech ../shared/nonnative VOICES CACHE

VOICES is a folder of people at their own microphones (Common Voice, CC0) with a ``manifest.csv``:
path, speaker, session, language, gender, age, seconds. CACHE contains voices, so keep it outside
the repository.
"""

from __future__ import annotations

import csv
import hashlib
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
from numpy.typing import NDArray

from monitor.errors import CorpusError
from monitor.files import atomic_write
from monitor.networks.layers import RATE
from monitor.types import FloatArray
from recipes.stages import stage
from recipes.voice.corpus import recordings

SHORTEST, LONGEST = 1.5, 4.5
"""Range of clip lengths in seconds."""
SEVERAL_JUDGE, SEVERAL_CHOOSE, ONE_CALIBRATES = 0.15, 0.15, 300
"""Of the people with several sessions, the fractions that judge and choose; the others calibrate.
Then the number of people with one session who also calibrate."""
_MOST_CLIPS = {"speechocean762": 8, "background": 4}


@dataclass(frozen=True, slots=True)
class Person:
    """Person at their own microphone, with a role, and clips by session."""

    name: str
    role: str
    gender: str
    clips: dict[str, list[Path]]


def people(voices: Path) -> list[Person]:
    """Return all people with names, each with a role: train, calibrate, choose or judge.

    People with several sessions never train. Their roles depend only on hashes of their names, so
    they do not change when people are added. Of the others, the `ONE_CALIBRATES` smallest hashes
    calibrate.

    Raises:
        CorpusError: no manifest.
    """
    by_name: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in _table(voices):
        if not row["path"].startswith("unlabelled"):
            by_name[row["speaker"]].append(row)
    one = [name for name, rows in by_name.items() if len({row["session"] for row in rows}) == 1]
    calibrating = set(sorted(one, key=hash_fraction)[:ONE_CALIBRATES])
    found = []
    for name, rows in sorted(by_name.items()):
        clips: dict[str, list[Path]] = defaultdict(list)
        for row in rows:
            clips[row["session"]].append(voices / row["path"])
        role = "calibrate" if name in calibrating else "train"
        if len(clips) > 1:
            number, apart = hash_fraction(name), SEVERAL_JUDGE + SEVERAL_CHOOSE
            role = (
                "judge" if number < SEVERAL_JUDGE else "choose" if number < apart else "calibrate"
            )
        found.append(Person(name, role, rows[0]["gender"], dict(clips)))
    return found


def unlabelled(voices: Path) -> list[Path]:
    """Return clips of unknown speakers."""
    return [voices / row["path"] for row in _table(voices) if row["path"].startswith("unlabelled")]


def _table(voices: Path) -> list[dict[str, str]]:
    try:
        with (voices / "manifest.csv").open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    except OSError as error:
        raise CorpusError(f"{voices}: no manifest.csv ({error.strerror})") from None


def hash_fraction(name: str) -> float:
    """Hash a name to a number from 0 to 1."""
    return int(hashlib.sha256(f"role {name}".encode()).hexdigest()[:8], 16) / 2**32


class Clips:
    """Training clips.

    Args:
        folder: a cache that this recipe wrote.

    Attributes:
        audio: int16 at 16 kHz, mapped from disk.
        start, samples: first sample and number of samples of each clip, shape (n,).
        corpus, voice: numbers of the corpus and of the speaker (-1 if unknown), shape (n,).

    Raises:
        CorpusError: the cache was not prepared.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            with np.load(folder / "clips.npz") as arrays:
                self.start, self.samples = arrays["start"], arrays["samples"]
                self.corpus, self.voice = arrays["corpus"], arrays["voice"]
            self.audio: NDArray[np.int16] = np.memmap(folder / "clips.i16", np.int16, mode="r")
        except (OSError, ValueError, KeyError) as error:
            raise CorpusError(f"{folder}: not prepared ({error})") from None

    def __len__(self) -> int:
        return len(self.start)

    def sound(self, clip: int) -> FloatArray:
        """Return a clip, float32 in -1 to 1."""
        begin = self.start[clip]
        samples = self.audio[begin : begin + self.samples[clip]]
        return np.asarray(samples, np.float32) / np.float32(32768)


def main() -> None:
    given = stage(
        "Decode the clips that train the voice network.", "speech", "nonnative", "voices", "cache"
    ).parse_args()
    prepare(given.speech, given.nonnative, given.voices, given.cache)


def prepare(speech: Path, nonnative: Path, voices: Path, folder: Path) -> None:
    """Decode recordings, cut them into clips, and store these in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[tuple[int, int, int, int]] = []
    begin, voice = 0, 0
    with atomic_write(folder / "clips.i16") as file:
        for corpus, listed in enumerate(_sources(speech, nonnative, voices)):
            for who, paths, most in listed:
                voice += 1
                cut = [piece for path in paths for piece in _cut(path)]
                spread = np.linspace(0, len(cut) - 1, min(most, len(cut))).round().astype(int)
                for index in spread if cut else ():
                    piece = cut[index]
                    file.write(piece.tobytes())
                    rows.append((begin, len(piece), corpus, voice if who else -1))
                    begin += len(piece)
                print(f"\r{begin / RATE / 3600:.1f} h decoded", end="", file=sys.stderr)
    start, samples, corpora, names = np.array(rows, np.int64).T
    with atomic_write(folder / "clips.npz") as file:
        np.savez(file, start=start, samples=samples, corpus=corpora, voice=names)


def _sources(
    speech: Path, nonnative: Path, voices: Path
) -> Iterator[Iterable[tuple[str, list[Path], int]]]:
    """Yield per corpus: speakers (empty if unknown), their files, and maximum number of clips."""
    listed = [each for each in recordings(speech, nonnative) if each.role == "train"]
    for corpus, most in _MOST_CLIPS.items():
        by_speaker: dict[str, list[Path]] = defaultdict(list)
        for each in listed:
            if each.corpus == corpus:
                by_speaker[each.speaker].append(each.path)
        yield [(name, paths, most) for name, paths in sorted(by_speaker.items())]
    known = [each for each in people(voices) if each.role == "train"]
    yield [(each.name, [p for c in each.clips.values() for p in c], 99) for each in known] + [
        ("", [path], 1) for path in unlabelled(voices)
    ]


def _cut(path: Path) -> list[NDArray[np.int16]]:
    """Cut a file into clips, without its silent ends."""
    sound, rate = soundfile.read(path, dtype="int16")
    if rate != RATE or sound.ndim != 1:
        raise CorpusError(f"{path.name}: not mono at {RATE} Hz")
    hops = sound[: len(sound) // 160 * 160].reshape(-1, 160).astype(np.float32)
    if not len(hops):
        return []
    power = np.mean(hops**2, axis=1)
    loud = np.flatnonzero(power > max(1.0, np.quantile(power, 0.95) * 1e-3))
    if not len(loud):
        return []
    sound = sound[max(0, loud[0] - 10) * 160 : (loud[-1] + 11) * 160]
    long = round(LONGEST * RATE)
    pieces = [sound[at : at + long] for at in range(0, len(sound), long)]
    return [piece for piece in pieces if len(piece) >= SHORTEST * RATE]


if __name__ == "__main__":
    main()
