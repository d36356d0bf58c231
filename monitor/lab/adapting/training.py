"""Settings and speech for adapting the voice network to an anonymiser, without torch."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import numpy as np
import soxr

from monitor.corpus import Recording
from monitor.errors import SourceError, UsageError
from monitor.features.embeddings import RATE, SHORTEST
from monitor.features.extractor import VoiceActivity
from monitor.features.framing import columns_of
from monitor.jobs import Jobs, each_in_order
from monitor.networks.voice import mel_decibels
from monitor.sources.file import File
from monitor.types import TICKS_PER_SECOND, FloatArray, IntArray
from monitor.virtual_files import Readable, files_of

FINE_TUNING_STEPS = 200  # default for a trained network
_WARM_UP = 0.05


@dataclass(frozen=True, slots=True)
class Length:
    """Length of a training, in steps or in seconds spent.

    Example:
        >>> Length(steps=40).done(10, 99.0), Length(seconds=60).done(10, 99.0)
        (0.25, 1.0)
    """

    steps: int | None = None
    seconds: float | None = None

    def done(self, step: int, seconds: float) -> float:
        """Return the fraction done, 1 at the end."""
        if self.steps is not None:
            return min(1.0, step / self.steps) if self.steps else 1.0
        if self.seconds is None:
            raise UsageError("training needs a number of steps or seconds")
        return min(1.0, seconds / self.seconds)


@dataclass(frozen=True, slots=True)
class FineTuning:
    """Settings of a fine-tuning, such as crops per step and learning rates."""

    batch: int = 32
    highest: float = 2e-4
    lowest: float = 5e-6
    decay: float = 1e-4  # of weights
    seed: int = 1  # of batches
    bfloat16: bool = False  # in layers; faster on newer processors


@dataclass(frozen=True, slots=True)
class SpeechDraws:
    """Random stretches of each speaker, with their length in seconds of audio.

    A voice at another speed has another pitch and other formants, so it counts as another speaker
    (Yamamoto et al., Interspeech 2019).
    """

    draws: int = 6
    seconds: float = 6.0
    speeds: Sequence[float] = (1.0, 0.9, 1.1)
    seed: int = 0


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """Length, speech and settings of a fine-tuning."""

    length: Length = field(default_factory=lambda: Length(steps=FINE_TUNING_STEPS))
    draws: SpeechDraws = field(default_factory=SpeechDraws)
    fine_tuning: FineTuning = field(default_factory=FineTuning)


def compute_rate(done: float, highest: float, lowest: float) -> float:
    """Return the learning rate: a short rise, then half a cosine to ``lowest``.

    Example:
        >>> [round(compute_rate(done, 1.0, 0.0), 2) for done in (0, 0.05, 0.5, 1)]
        [0.02, 1.0, 0.54, 0.0]
    """
    if done < _WARM_UP:
        return highest * max(0.02, done / _WARM_UP)
    fall = 0.5 * (1 + math.cos(math.pi * (done - _WARM_UP) / (1 - _WARM_UP)))
    return lowest + (highest - lowest) * fall


# Within-class covariance normalisation (A. Hatch, S. Kajarekar and A. Stolcke, Interspeech 2006),
# with the mean over speakers subtracted. Both are linear and merge into a network's last layer.
_RIDGE = 0.3


def fit_normalisation(
    embeddings: FloatArray, voices: IntArray, corpora: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Fit the transform of embeddings, shape (n, m), and their centre.

    Args:
        embeddings: embeddings of several crops of each voice, shape (n, m).
        voices: voice of each crop, shape (n,).
        corpora: corpus of each voice, shape (v,); all corpora have equal weight in the centre.

    Returns:
        the transform, shape (m, m), and the centre to subtract first, shape (m,). The matrix
            W = (turn turn^T)^-1 is the covariance within voices with a ridge. Its scale keeps
            lengths about the same.
    """
    counts = np.bincount(voices, minlength=len(corpora))
    sums = np.zeros((len(corpora), embeddings.shape[1]))
    np.add.at(sums, voices, embeddings)
    means = sums / counts.clip(min=1)[:, None]
    apart = embeddings - means[voices]
    spread = apart.T @ apart / max(1, len(apart) - np.count_nonzero(counts))
    level = np.trace(spread) / len(spread) or 1.0  # without variation only the ridge remains
    turn = np.linalg.cholesky(np.linalg.inv(spread / level + _RIDGE * np.eye(len(spread))))
    seen = counts > 0
    of_corpus = [
        means[seen & (corpora == corpus)].mean(axis=0) for corpus in np.unique(corpora[seen])
    ]
    return turn, np.mean(of_corpus, axis=0)


def turn_last_layer(
    weights: Mapping[str, FloatArray], turn: FloatArray, centre: FloatArray
) -> dict[str, FloatArray]:
    """Return the voice network's weights with the last layer transformed (`fit_normalisation`)."""
    turned = dict(weights)
    turned["embed.bias"] = turned["embed.bias"] - centre
    for name in ("embed.mean", "embed.deviation", "embed.bias"):
        turned[name] = np.asarray(turn.T @ turned[name], np.float32)
    return turned


_TICK = RATE // TICKS_PER_SECOND

Protect: TypeAlias = Callable[[FloatArray, int, str, str], FloatArray]
"""Protects one stretch of speech. The arguments are samples of one channel, shape (n,), their rate,
and the names of stretch and speaker, which are keys of random settings. The result has the same
rate. An attacker who trains can use a new draw for each stretch."""


@dataclass(frozen=True, slots=True)
class ProtectedSpeech:
    """Protected speech without pauses, as input of the voice network."""

    bands: tuple[FloatArray, ...]  # decibels minus their means, (t, 80) per stretch, float16
    clear: tuple[FloatArray, ...]  # the same for clear speech
    voices: IntArray  # voice of each stretch, shape (n,)
    names: tuple[str, ...]  # of the voices
    corpora: IntArray  # corpus of each voice, shape (v,)
    problems: tuple[str, ...]


def draw_speech(
    corpora: Sequence[Sequence[Recording]],
    protect: Protect,
    settings: SpeechDraws,
    *,
    progress: Callable[[str], None] = lambda _: None,
    jobs: Jobs = 1,
) -> ProtectedSpeech:
    """Draw stretches of every speaker, and protect each by itself; no audio is written.

    The draws depend on the seed, the speaker and the recordings, not on other speakers or ``jobs``.
    Equal names in two corpora are two speakers. For several processes ``protect`` must be
    picklable.
    """
    paths_by_speaker: dict[tuple[int, str], list[Readable]] = {}
    for number, recordings in enumerate(corpora):
        for recording in recordings:
            paths_by_speaker.setdefault((number, recording.speaker), []).append(recording.path)
    bands, clear, voices, problems = [], [], [], []
    indices: dict[tuple[int, str], int] = {}
    work = partial(_draw_speaker, protect, settings)
    tasks = [(speaker, paths) for (_, speaker), paths in paths_by_speaker.items()]
    with closing(each_in_order(work, tasks, jobs, reads=lambda task: files_of(*task[1]))) as draws:
        for (number, speaker), (stretches, faults) in zip(paths_by_speaker, draws, strict=True):
            for speed, before, after in stretches:
                name = speaker if speed == 1 else f"{speaker} x{speed:g}"
                voices.append(indices.setdefault((number, name), len(indices)))
                clear.append(before)
                bands.append(after)
            problems += faults
            progress(speaker)
    return ProtectedSpeech(
        tuple(bands),
        tuple(clear),
        np.array(voices, dtype=np.int64),
        tuple(name for _, name in indices),
        np.array([number for number, _ in indices], dtype=np.int64),
        tuple(problems),
    )


def _draw_speaker(
    protect: Protect, settings: SpeechDraws, speaker: tuple[str, Sequence[Readable]]
) -> tuple[list[tuple[float, FloatArray, FloatArray]], list[str]]:
    """Return the speed, clear bands and protected bands of each stretch, and the problems."""
    name, paths = speaker
    digest = hashlib.sha256(repr((settings.seed, name)).encode("utf-8", "replace")).digest()
    generator = np.random.default_rng(int.from_bytes(digest, "big"))
    sounds, problems = [], []
    for path in paths:
        try:
            sounds.append((path.name, *decode_mono(path)))
        except SourceError as error:
            problems.append(str(error))
    stretches = []
    lengths = np.array([sound.size / rate for _, sound, rate in sounds])
    for draw in range(settings.draws if sounds else 0):
        file, sound, rate = sounds[generator.choice(len(sounds), p=lengths / lengths.sum())]
        speed = float(settings.speeds[draw % len(settings.speeds)])
        samples = round(settings.seconds * speed * rate)
        start = generator.integers(max(1, sound.size - samples))
        clear = sound[start : start + samples]
        if speed != 1:
            clear = soxr.resample(clear, rate * speed, rate)
        try:
            protected = protect(clear, rate, f"{name} {file} {draw}", f"{name} {draw}")
        except SourceError as error:
            problems.append(str(error))
            continue
        before, after = (extract_speech(samples_of, rate) for samples_of in (clear, protected))
        if min(before.size, after.size) >= SHORTEST:
            stretches.append((speed, compute_bands(before), compute_bands(after)))
    return stretches, problems


def decode_mono(path: Readable) -> tuple[FloatArray, int]:
    """Return a recording's mean over channels, shape (n,), and its rate.

    Raises SourceError if it is damaged.
    """
    source = File(path)
    blocks = [np.asarray(columns_of(block, None), np.float32) for block in source.blocks()]
    return np.concatenate(blocks).mean(axis=1), source.rate


def extract_speech(samples: FloatArray, rate: int) -> FloatArray:
    """Return a stretch at 16 kHz without pauses, as input of ``voice``."""
    sound = np.asarray(soxr.resample(samples, rate, RATE) if rate != RATE else samples, np.float32)
    spoken = VoiceActivity().process(sound)
    ticks = sound[: spoken.size * _TICK].reshape(spoken.size, _TICK)
    return np.asarray(ticks[spoken].ravel())


def compute_bands(sound: FloatArray) -> FloatArray:
    """Return the network's bands in half precision, 16 kB per second."""
    return mel_decibels(sound).astype(np.float16)
