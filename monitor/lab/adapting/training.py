"""Adapting the voice network to an anonymiser: settings, speech and cache; needs no torch."""

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
from monitor.files import Readable, files_of
from monitor.jobs import Jobs, each_in_order
from monitor.networks.voice import mel_decibels
from monitor.sources.file import File
from monitor.types import TICKS_PER_SECOND, FloatArray, IntArray

FINE_TUNING_STEPS = 200  # of a network that has learnt already, where nobody says
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
            raise UsageError("a training has --steps or --minutes")
        return min(1.0, seconds / self.seconds)


@dataclass(frozen=True, slots=True)
class FineTuning:
    """Settings of a fine-tuning: crops a step, rates of learning, and others."""

    batch: int = 32
    highest: float = 2e-4
    lowest: float = 5e-6
    decay: float = 1e-4  # of weights
    seed: int = 1  # of batches
    bfloat16: bool = False  # of layers, which newer processors do faster


@dataclass(frozen=True, slots=True)
class SpeechDraws:
    """Stretches drawn of each speaker, of so many audio seconds.

    A voice at another speed has another pitch and other formants: somebody else (Yamamoto et al.,
    Interspeech 2019).
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


# -------------------------------------------------------------------------------------- last layer
# Within-class covariance normalisation (A. Hatch, S. Kajarekar and A. Stolcke, Interspeech 2006),
# with the mean over speakers taken away: both are linear, and go into the last layer of a network.

_RIDGE = 0.3


def fit_normalisation(
    embeddings: FloatArray, voices: IntArray, corpora: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Fit what embeddings of crops, shape (n, m), are multiplied by, and their centre.

    Args:
        embeddings: shape (n, m): of crops, of each voice several.
        voices: shape (n,), whose each is.
        corpora: shape (v,), of each voice; however large, each has one say in the centre.

    Returns:
        shape (m, m), of which W = (turn turn^T)^-1 is the covariance within voices with a ridge,
            scaled to leave lengths about as they are; shape (m,), the centre to take away before.
    """
    counts = np.bincount(voices, minlength=len(corpora))
    sums = np.zeros((len(corpora), embeddings.shape[1]))
    np.add.at(sums, voices, embeddings)
    means = sums / counts.clip(min=1)[:, None]
    apart = embeddings - means[voices]
    spread = apart.T @ apart / max(1, len(apart) - np.count_nonzero(counts))
    level = np.trace(spread) / len(spread) or 1.0  # of no variation the ridge alone is left
    turn = np.linalg.cholesky(np.linalg.inv(spread / level + _RIDGE * np.eye(len(spread))))
    has_crops = counts > 0
    of_corpus = [
        means[has_crops & (corpora == corpus)].mean(axis=0)
        for corpus in np.unique(corpora[has_crops])
    ]
    return turn, np.mean(of_corpus, axis=0)


def turn_last_layer(
    weights: Mapping[str, FloatArray], turn: FloatArray, centre: FloatArray
) -> dict[str, FloatArray]:
    """Return the voice network's weights with the last layer turned (`fit_normalisation`)."""
    turned = dict(weights)
    turned["embed.bias"] = turned["embed.bias"] - centre
    for name in ("embed.mean", "embed.deviation", "embed.bias"):
        turned[name] = np.asarray(turn.T @ turned[name], np.float32)
    return turned


# -------------------------------------------------------------------------------- protected speech

_TICK = RATE // TICKS_PER_SECOND

Protect: TypeAlias = Callable[[FloatArray, int, str, str], FloatArray]
"""Protects one stretch of speech: from samples of one channel, shape (n,), their rate, the name of
the stretch, on which depends what is drawn at random, and its speaker's, likewise, to samples of
the same rate. Whoever trains can draw for one as often as for many."""


@dataclass(frozen=True, slots=True)
class ProtectedSpeech:
    """Protected speech, pauses left out, as the voice network hears it."""

    bands: tuple[FloatArray, ...]  # of each stretch, decibels less their means, (t, 80), float16
    clear: tuple[FloatArray, ...]  # likewise, not protected
    voices: IntArray  # whose each is, shape (n,)
    names: tuple[str, ...]  # of the voices
    corpora: IntArray  # which of the corpora each voice is of, shape (v,)
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

    What is drawn depends on the seed, the speaker and the recordings; neither on the others nor on
    ``jobs``. Speakers of two corpora are two, whatever their names; with several processes
    ``protect`` is one that can be pickled.
    """
    paths_by_speaker: dict[tuple[int, str], list[Readable]] = {}
    for number, recordings in enumerate(corpora):
        for recording in recordings:
            paths_by_speaker.setdefault((number, recording.speaker), []).append(recording.path)
    bands, clear, voices, problems = [], [], [], []
    indices: dict[tuple[int, str], int] = {}
    work = partial(_draw_speaker, protect, settings)
    tasks = [(speaker, paths) for (_, speaker), paths in paths_by_speaker.items()]
    with closing(
        each_in_order(work, tasks, jobs, reads=lambda task: files_of(*task[1]))
    ) as outcomes:
        for (number, speaker), (stretches, problems_here) in zip(
            paths_by_speaker, outcomes, strict=True
        ):
            for speed, before, after in stretches:
                name = speaker if speed == 1 else f"{speaker} x{speed:g}"
                voices.append(indices.setdefault((number, name), len(indices)))
                clear.append(before)
                bands.append(after)
            problems += problems_here
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
    """Return speed, clear and protected bands of each stretch; and problems."""
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
    """Return a whole recording, the mean of its channels, shape (n,), and its rate.

    Raises:
        SourceError: it is damaged.
    """
    source = File(path)
    parts = [np.asarray(columns_of(block, None), np.float32) for block in source.blocks()]
    return np.concatenate(parts).mean(axis=1), source.rate


def extract_speech(samples: FloatArray, rate: int) -> FloatArray:
    """Return the speech of a stretch at 16 kHz without pauses, as ``voice`` takes it."""
    sound = np.asarray(soxr.resample(samples, rate, RATE) if rate != RATE else samples, np.float32)
    spoken = VoiceActivity().process(sound)
    ticks = sound[: spoken.size * _TICK].reshape(spoken.size, _TICK)
    return np.asarray(ticks[spoken].ravel())


def compute_bands(sound: FloatArray) -> FloatArray:
    """Return the network's bands in half precision: 16 kB a second."""
    return mel_decibels(sound).astype(np.float16)
