"""Clips that train, and what the teacher says of each: hear everybody once.

    python -m recipes.voice.clips ../shared/speech ../shared/nonnative VOICES CACHE

VOICES is a folder of people at their own microphones (Common Voice, CC0), laid out with a
``manifest.csv``: path, speaker, session, language, gender, age, seconds. The teacher is
SpeechBrain's ECAPA-TDNN (``MONITOR_ECAPA`` or the hub); it embeds each clip, clean, in a shuffled
order, and a run that is stopped goes on where it was. CACHE holds voices: keep it outside the
repository.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray

from monitor.errors import CorpusError
from monitor.features.ecapa import exported_encoder, resolve
from monitor.files import atomic_write
from monitor.networks.layers import RATE
from monitor.types import AnyArray, FloatArray
from recipes.voice.corpus import recordings

SHORTEST, LONGEST = 1.5, 4.5
"""Seconds of a clip."""
SEVERAL_JUDGE, SEVERAL_CHOOSE, ONE_CALIBRATES = 0.15, 0.15, 300
"""Of people with several sessions, shares that judge and choose, the rest calibrates; and how many
people of one session calibrate as well."""
_MOST_CLIPS = {"speechocean762": 8, "background": 4}
_EVERY = 256
_FASTER, _AGAIN = (1.06, 1.25), (1.03, 1.35)
"""How much faster, or slower, somebody is made to be another one, twice each: pitch, formants and
tempo."""


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody at a microphone of her own: what she is for, and her clips by session."""

    name: str
    role: str
    gender: str
    clips: dict[str, list[Path]]


def people(voices: Path) -> list[Person]:
    """Everybody whose name is known, each with a role: train, calibrate, choose or judge.

    Those with several sessions never train. The role is drawn by the hash of the name, so that it
    stays when others come.

    Raises:
        CorpusError: no such table.
    """
    by_name: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in _table(voices):
        if not row["path"].startswith("unlabelled"):
            by_name[row["speaker"]].append(row)
    one = [name for name, rows in by_name.items() if len({row["session"] for row in rows}) == 1]
    spared = set(sorted(one, key=drawn)[:ONE_CALIBRATES])
    found = []
    for name, rows in sorted(by_name.items()):
        clips: dict[str, list[Path]] = defaultdict(list)
        for row in rows:
            clips[row["session"]].append(voices / row["path"])
        role = "calibrate" if name in spared else "train"
        if len(clips) > 1:
            number, apart = drawn(name), SEVERAL_JUDGE + SEVERAL_CHOOSE
            role = (
                "judge" if number < SEVERAL_JUDGE else "choose" if number < apart else "calibrate"
            )
        found.append(Person(name, role, rows[0]["gender"], dict(clips)))
    return found


def unlabelled(voices: Path) -> list[Path]:
    """Clips of nobody known."""
    return [voices / row["path"] for row in _table(voices) if row["path"].startswith("unlabelled")]


def _table(voices: Path) -> list[dict[str, str]]:
    try:
        with (voices / "manifest.csv").open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    except OSError as error:
        raise CorpusError(f"{voices}: no manifest ({error.strerror})") from None


def drawn(name: str) -> float:
    """A number from 0 to 1 that belongs to a name."""
    return int(hashlib.sha256(f"role {name}".encode()).hexdigest()[:8], 16) / 2**32


class Clips:
    """The clips that train, heard once, and each twice more as another voice: faster and slower.

    A voice at another speed has another pitch and other formants, and is somebody else to the
    teacher; all clips of one speaker change alike.

    Args:
        folder: written by this recipe.

    Attributes:
        audio: int16 at 16 kHz, mapped from disk.
        start, samples: shape (n,), where each clip lies.
        speed: shape (n,), how much faster it is heard.
        corpus, voice: shape (n,), numbers; the voice is -1 where nobody is known.
        teacher: shape (k, 192), what the teacher says of it, of length 1.
        known: shape (k,), the clips that the teacher has heard, in its order.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            with np.load(folder / "clips.npz") as held:
                start, samples = held["start"], held["samples"]
                corpus, voice = held["corpus"], held["voice"]
            self.audio: NDArray[np.int16] = np.memmap(folder / "clips.i16", np.int16, mode="r")
        except (OSError, ValueError, KeyError) as error:
            raise CorpusError(f"{folder}: not prepared ({error})") from None
        rng = np.random.default_rng(0)
        order = rng.permutation(len(start))
        # one factor a voice, and one a clip of nobody known
        who = np.where(voice < 0, voice.max() + 1 + np.arange(len(voice)), voice)
        again = np.random.default_rng(1)
        (least, most), size = np.log(_FASTER), (2, who.max() + 1)
        by = np.exp(rng.uniform(least, most, size))
        least, most = np.log(_AGAIN)
        more = np.exp(again.uniform(least, most, size))
        self.speed = np.concatenate(
            [np.ones(len(start)), by[0, who], 1 / by[1, who], more[0, who], 1 / more[1, who]]
        )
        self.start, self.samples, self.corpus = (np.tile(a, 5) for a in (start, samples, corpus))
        self.voice = np.concatenate(
            [np.where(voice < 0, -1, voice + at * (voice.max() + 1)) for at in range(5)]
        )
        others = len(start) + rng.permutation(2 * len(start))
        last = 3 * len(start) + again.permutation(2 * len(start))
        self.order = np.concatenate([order, others, last])
        self.refresh()

    def refresh(self) -> None:
        """Read what the teacher has said by now."""
        path = self.folder / "teacher.npy"
        self.teacher = np.load(path) if path.exists() else np.empty((0, 192), np.float32)
        self.known = self.order[: len(self.teacher)]

    def sound(self, clip: int) -> FloatArray:
        """One of them, float32 in -1 to 1."""
        begin = self.start[clip]
        heard = np.asarray(self.audio[begin : begin + self.samples[clip]], np.float32) / 32768
        if self.speed[clip] != 1:
            heard = soxr.resample(heard, RATE * self.speed[clip], RATE)[: round(LONGEST * RATE)]
        return np.asarray(heard, np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description="Hear the clips that train the voice network.")
    parser.add_argument("speech", type=Path)
    parser.add_argument("nonnative", type=Path)
    parser.add_argument("voices", type=Path)
    parser.add_argument("cache", type=Path)
    parser.add_argument("--ecapa", help="the teacher's folder (default: MONITOR_ECAPA, the hub)")
    given = parser.parse_args()
    try:
        clips = Clips(given.cache)
    except CorpusError:
        prepare(given.speech, given.nonnative, given.voices, given.cache)
        clips = Clips(given.cache)
    teach(clips, given.ecapa)


def prepare(speech: Path, nonnative: Path, voices: Path, folder: Path) -> None:
    """Decode, cut into clips, and keep."""
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
    """Corpus by corpus: a name or none, files, and at most so many clips of it."""
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
    """A file in clips; its silent ends are left out."""
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


def teach(clips: Clips, source: str | None) -> None:
    """Let the teacher hear what is missing."""
    network = exported_encoder(resolve(source))
    began, first = time.monotonic(), len(clips.teacher)
    said: AnyArray = clips.teacher
    for at in range(first, len(clips.order), _EVERY):
        some = [network.embed(clips.sound(clip)[None])[0] for clip in clips.order[at : at + _EVERY]]
        said = np.concatenate([said, np.asarray(some, np.float32)])
        with atomic_write(clips.folder / "teacher.npy") as file:
            np.save(file, said)
        left = (time.monotonic() - began) / (len(said) - first) * (len(clips.order) - len(said))
        print(f"\r{len(said)} of {len(clips.order)}, {left / 60:.1f} min left", end="\x1b[K",
              file=sys.stderr)  # fmt: skip
    print(file=sys.stderr)


if __name__ == "__main__":
    main()
