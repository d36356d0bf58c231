"""Protected speech to train on: stretches of it, each protected with draws of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np
import soxr

from monitor.corpus.recordings import Recording
from monitor.errors import SourceError
from monitor.features.blocks import columns_of
from monitor.features.embedding_windows import RATE, SHORTEST
from monitor.features.vad import VoiceActivity
from monitor.networks.mel import log_mel
from monitor.sources.file import File
from monitor.types import TICKS_PER_SECOND, FloatArray, IntArray
from monitor.workers import Jobs, each_in_order

__all__ = ["SPEEDS", "Protect", "ProtectedSpeech", "SpeechDraws", "draw_speech"]

SPEEDS = (1.0, 0.9, 1.1)
"""A voice at another speed has another pitch and other formants: somebody else (Yamamoto et al.,
Interspeech 2019)."""
_TICK = RATE // TICKS_PER_SECOND


Protect: TypeAlias = Callable[[FloatArray, int, str, str], FloatArray]
"""Protects one stretch of speech: from samples of one channel, shape (n,), their rate, the name of
the stretch, on which depends what is drawn at random, and its speaker's, likewise, to samples of
the same rate. Whoever trains can draw for one as often as for many."""


@dataclass(frozen=True, slots=True)
class SpeechDraws:
    """How much speech is drawn of each speaker.

    Attributes:
        draws: stretches.
        seconds: audio seconds of each.
        speeds: at which they are heard, as voices of their own.
        seed: of what is drawn.
    """

    draws: int = 6
    seconds: float = 6.0
    speeds: Sequence[float] = SPEEDS
    seed: int = 0


@dataclass(frozen=True, slots=True)
class ProtectedSpeech:
    """Protected speech, pauses left out, as the voice network hears it.

    Attributes:
        bands: log mel bands of each stretch, shape (t, 40), float16.
        voices: shape (n,): whose each is.
        clear: the same before it was protected, in the same order.
        names: of the voices: a speaker, and the speed where it is another.
        corpora: of the voices, shape (v,): which of the corpora each is of.
        problems: a line for every file that could not be used.
    """

    bands: tuple[FloatArray, ...]
    clear: tuple[FloatArray, ...]
    voices: IntArray
    names: tuple[str, ...]
    corpora: IntArray
    problems: tuple[str, ...]


def draw_speech(
    corpora: Sequence[Sequence[Recording]],
    protect: Protect,
    how: SpeechDraws,
    *,
    progress: Callable[[str], None] = lambda _: None,
    jobs: Jobs = 1,
) -> ProtectedSpeech:
    """Draw stretches of every speaker, and protect each by itself.

    What is drawn depends on the seed, the speaker and the recordings; neither on the others nor on
    ``jobs``. No audio is written.

    Args:
        corpora: recordings of one or several; speakers of two are two, whatever their names.
        protect: the protector; with several processes one that can be pickled.
        how: how much.
        progress: called with each speaker who was heard.
        jobs: processes, or workers elsewhere.
    """
    of: dict[tuple[int, str], list[Path]] = {}
    for number, recordings in enumerate(corpora):
        for each in recordings:
            of.setdefault((number, each.speaker), []).append(each.path)
    bands, clear, voices, problems = [], [], [], []
    places: dict[tuple[int, str], int] = {}
    work = partial(_of_speaker, protect, how)
    tasks = [(speaker, paths) for (_, speaker), paths in of.items()]
    with closing(each_in_order(work, tasks, jobs, reads=lambda each: each[1])) as outcomes:
        for (number, speaker), (found, lost) in zip(of, outcomes, strict=True):
            for speed, before, after in found:
                name = speaker if speed == 1 else f"{speaker} x{speed:g}"
                voices.append(places.setdefault((number, name), len(places)))
                clear.append(before)
                bands.append(after)
            problems += lost
            progress(speaker)
    return ProtectedSpeech(
        tuple(bands),
        tuple(clear),
        np.array(voices, dtype=np.int64),
        tuple(name for _, name in places),
        np.array([number for number, _ in places], dtype=np.int64),
        tuple(problems),
    )


_Found: TypeAlias = list[tuple[float, FloatArray, FloatArray]]


def _of_speaker(
    protect: Protect, how: SpeechDraws, speaker: tuple[str, Sequence[Path]]
) -> tuple[_Found, list[str]]:
    """Speed, clear bands and protected bands of each stretch; and what could not be used."""
    name, paths = speaker
    digest = hashlib.sha256(repr((how.seed, name)).encode("utf-8", "replace")).digest()
    generator = np.random.default_rng(int.from_bytes(digest, "big"))
    sounds, problems = [], []
    for path in paths:
        try:
            sounds.append((path.name, *decoded(path)))
        except SourceError as error:
            problems.append(str(error))
    found: _Found = []
    lengths = np.array([sound.size / rate for _, sound, rate in sounds])
    for draw in range(how.draws if sounds else 0):
        file, sound, rate = sounds[generator.choice(len(sounds), p=lengths / lengths.sum())]
        speed = float(how.speeds[draw % len(how.speeds)])
        samples = round(how.seconds * speed * rate)
        start = generator.integers(max(1, sound.size - samples))
        clear = sound[start : start + samples]
        if speed != 1:
            clear = soxr.resample(clear, rate * speed, rate)
        try:
            made = protect(clear, rate, f"{name} {file} {draw}", f"{name} {draw}")
        except SourceError as error:
            problems.append(str(error))
            continue
        before, after = (speech(each, rate) for each in (clear, made))
        if min(before.size, after.size) >= SHORTEST:
            found.append((speed, bands(before), bands(after)))
    return found, problems


def decoded(path: Path) -> tuple[FloatArray, int]:
    """A whole recording, the mean of its channels, shape (n,), and its rate.

    Raises:
        SourceError: it is damaged.
    """
    source = File(path)
    parts = [np.asarray(columns_of(block, None), np.float32) for block in source.blocks()]
    return np.concatenate(parts).mean(axis=1), source.rate


def speech(samples: FloatArray, rate: int) -> FloatArray:
    """The speech of a stretch at 16 kHz, pauses left out, as the feature ``voice`` hears it."""
    sound = np.asarray(soxr.resample(samples, rate, RATE) if rate != RATE else samples, np.float32)
    spoken = VoiceActivity(RATE, ticks=1).process(sound)
    ticks = sound[: spoken.size * _TICK].reshape(spoken.size, _TICK)
    return np.asarray(ticks[spoken].ravel())


def bands(sound: FloatArray) -> FloatArray:
    """Log mel bands in half precision: 8 kB a second."""
    return log_mel(sound).astype(np.float16)
