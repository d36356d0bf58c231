"""Hear the corpora once: audio as int16, and what the teacher says of every training speaker.

    python -m recipes.voice.prepare ../shared/speech ../shared/nonnative CACHE

The teacher is SpeechBrain's ECAPA-TDNN (``MONITOR_ECAPA`` or the hub): the mean embedding of some
3 s windows of a speaker is what the student is to say of that voice, and of each of its doubles at
another speed. Onnxruntime runs it where it is installed. A run that is stopped goes on
where it was. CACHE holds voices: keep it outside the repository.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import soundfile
from numpy.typing import NDArray

from monitor.errors import CorpusError
from monitor.features.ecapa import exported_encoder, resolve
from monitor.networks.layers import RATE
from monitor.types import FloatArray
from recipes.voice.augment import SPEEDS, stretched
from recipes.voice.cache import Cache, Piece
from recipes.voice.corpus import Recording, recordings

WINDOW_SECONDS = 3.0
MOST_SECONDS = 240.0
"""Of a recording that judges: enough for templates and tests."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Hear the corpora for the voice network once.")
    parser.add_argument("speech", type=Path)
    parser.add_argument("nonnative", type=Path)
    parser.add_argument("cache", type=Path)
    parser.add_argument("--windows", type=int, default=4, help="of a speaker, for the teacher")
    parser.add_argument("--ecapa", help="the teacher's folder (default: MONITOR_ECAPA, the hub)")
    given = parser.parse_args()
    try:
        cache = Cache(given.cache)
    except CorpusError:
        cache = hear(recordings(given.speech, given.nonnative), given.cache)
    teach(cache, given.windows, given.ecapa)


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


def teach(cache: Cache, windows: int, source: str | None = None) -> None:
    """Let the teacher hear every training speaker who is missing; kept every 20 speakers."""
    import torch

    torch.set_num_threads(1)
    known = cache.teacher()
    by_speaker: dict[str, list[Piece]] = defaultdict(list)
    for piece in cache.of("train"):
        by_speaker[piece.voice].append(piece)
    todo = [name for name in by_speaker if name not in known]
    network = exported_encoder(resolve(source)) if todo else None
    began = time.monotonic()
    for done, name in enumerate(todo, 1):
        assert network is not None
        sound = np.concatenate([cache.sound(piece) for piece in by_speaker[name]])
        means = np.stack(
            [network.embed(spread(sound, windows, speed)).mean(axis=0) for speed in SPEEDS]
        )
        means /= np.linalg.norm(means, axis=1, keepdims=True)
        known[name] = np.asarray(means, np.float32)
        if done % 20 == 0 or done == len(todo):
            cache.keep_teacher(known)
            took = time.monotonic() - began
            print(
                f"teacher: {len(known)} of {len(by_speaker)} speakers, "
                f"{took / done * (len(todo) - done) / 60:.1f} min left",
                file=sys.stderr,
            )


def spread(sound: FloatArray, windows: int, speed: float = 1.0) -> FloatArray:
    """Windows of 3 s at a speed, evenly spread; of a shorter sound, all of it.

    Returns:
        shape (windows, n).
    """
    width = min(len(sound), round(speed * WINDOW_SECONDS * RATE))
    most = max(1, min(windows, 1 + 2 * (len(sound) - width) // max(width, 1)))
    begins = np.linspace(0, len(sound) - width, most).astype(int)
    samples = round(width / speed)
    return np.stack([stretched(sound[begin : begin + width], samples) for begin in begins])


if __name__ == "__main__":
    main()
