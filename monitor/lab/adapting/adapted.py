"""A network adapted to an anonymiser, made once; the speech and the schedule of its training."""

from __future__ import annotations

import hashlib
import io
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import soxr

from monitor.corpus.recordings import Recording
from monitor.errors import CorpusError, SourceError, UsageError
from monitor.features.embeddings import RATE, SHORTEST
from monitor.features.extractor import VoiceActivity
from monitor.features.framing import columns_of
from monitor.jobs import Jobs, each_in_order
from monitor.lab.result_cache import ResultCache, code_mark, result_key
from monitor.networks.layers import weights_of
from monitor.networks.voice import VoiceNetwork, mel_decibels, shipped
from monitor.sources.file import File
from monitor.sources.provenance import file_hash
from monitor.types import TICKS_PER_SECOND, FloatArray, IntArray

# Within-class covariance normalisation (A. Hatch, S. Kajarekar and A. Stolcke, Interspeech 2006),
# with the mean over speakers taken away: both are linear, and go into the last layer of a network.

_RIDGE = 0.3


def within(
    embeddings: FloatArray, voices: IntArray, corpora: IntArray
) -> tuple[FloatArray, FloatArray]:
    """What embeddings are to be multiplied by once their centre is taken away.

    Args:
        embeddings: shape (n, m): of crops, of each voice several.
        voices: shape (n,), whose each is.
        corpora: shape (v,), of each voice: the centre is the mean of the corpora's means, however
            large they are.

    Returns:
        shape (m, m), of which W = (turn turn^T)^-1 is the covariance within voices with a ridge,
            scaled to leave lengths about as they are; shape (m,), the centre.
    """
    counts = np.bincount(voices, minlength=len(corpora))
    sums = np.zeros((len(corpora), embeddings.shape[1]))
    np.add.at(sums, voices, embeddings)
    means = sums / counts.clip(min=1)[:, None]
    apart = embeddings - means[voices]
    spread = apart.T @ apart / max(1, len(apart) - np.count_nonzero(counts))
    level = np.trace(spread) / len(spread)
    turn = np.linalg.cholesky(np.linalg.inv(spread / level + _RIDGE * np.eye(len(spread))))
    there = counts > 0
    of_corpus = [
        means[there & (corpora == each)].mean(axis=0) for each in np.unique(corpora[there])
    ]
    return turn, np.mean(of_corpus, axis=0)


def turned(
    weights: Mapping[str, FloatArray], turn: FloatArray, centre: FloatArray
) -> dict[str, FloatArray]:
    """The weights of the voice network with its last layer turned, as `within` says."""
    made = dict(weights)
    made["embed.bias"] = made["embed.bias"] - centre
    for name in ("embed.mean", "embed.deviation", "embed.bias"):
        made[name] = np.asarray(turn.T @ made[name], np.float32)
    return made


FINE_TUNING_STEPS = 200  # of a network that has learnt already, where nobody says
_WARM_UP = 0.05


@dataclass(frozen=True, slots=True)
class Length:
    """How long a training is: by steps or by seconds spent, one of them.

    Example:
        >>> Length(steps=40).done(10, 99.0), Length(seconds=60).done(10, 99.0)
        (0.25, 1.0)
    """

    steps: int | None = None
    seconds: float | None = None

    def done(self, step: int, seconds: float) -> float:
        """Which share of it has been done, 1 at the end."""
        if self.steps is not None:
            return min(1.0, step / self.steps) if self.steps else 1.0
        if self.seconds is None:
            raise UsageError("a training has --steps or --minutes")
        return min(1.0, seconds / self.seconds)


@dataclass(frozen=True, slots=True)
class FineTuning:
    """How a network is fine-tuned.

    Attributes:
        batch: crops a step.
        highest, lowest: rates of learning.
        decay: of weights.
        seed: of batches.
        bfloat16: compute the layers in bfloat16, which newer processors do faster.
    """

    batch: int = 32
    highest: float = 2e-4
    lowest: float = 5e-6
    decay: float = 1e-4
    seed: int = 1
    bfloat16: bool = False


class KeptTraining(ABC):
    """Keeps the state of a training that may be interrupted."""

    @abstractmethod
    def read(self) -> bytes | None:
        """What was written last; None where nothing was."""

    @abstractmethod
    def write(self, state: bytes) -> None:
        """Keep a state in the place of the one before."""


def rate(done: float, highest: float, lowest: float) -> float:
    """Of learning: a short rise, then half a cosine from ``highest`` to ``lowest``.

    Example:
        >>> [round(rate(done, 1.0, 0.0), 2) for done in (0, 0.05, 0.5, 1)]
        [0.02, 1.0, 0.54, 0.0]
    """
    if done < _WARM_UP:
        return highest * max(0.02, done / _WARM_UP)
    fall = 0.5 * (1 + math.cos(math.pi * (done - _WARM_UP) / (1 - _WARM_UP)))
    return lowest + (highest - lowest) * fall


# -------------------------------------------------------------------------------- protected speech

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
        seconds: audio seconds of each.
    """

    draws: int = 6
    seconds: float = 6.0
    speeds: Sequence[float] = SPEEDS
    seed: int = 0


@dataclass(frozen=True, slots=True)
class ProtectedSpeech:
    """Protected speech, pauses left out, as the voice network hears it.

    Attributes:
        bands, clear: decibels in mel bands of each stretch, less their means, protected and not,
            shape (t, 80), float16.
        voices: shape (n,): whose each is.
        corpora: of the voices, shape (v,): which of the corpora each is of.
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
    """Draw stretches of every speaker, and protect each by itself; no audio is written.

    What is drawn depends on the seed, the speaker and the recordings; neither on the others nor on
    ``jobs``. Speakers of two corpora are two, whatever their names; with several processes
    ``protect`` is one that can be pickled.
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
    """The bands that the network hears, in half precision: 16 kB a second."""
    return mel_decibels(sound).astype(np.float16)


# ----------------------------------------------------------------------------------------- adapted
# It is no template, but has learnt from people's voices: what is kept is private (mode 0600).

_CODE = ("monitor.lab.adapting", "monitor.features", "monitor.networks", "monitor.anonymisers")
_FEWEST_VOICES = 2
_PROBLEMS = "problems"
_INSTALL = "pip install 'speaker-disclosure-monitor[training]'"

Progress = Callable[[str, float], None]
"""Called with what is being done and which share of it is, 0 to 1."""


def check_torch() -> None:
    """See to it that a network can be trained here."""
    if find_spec("torch") is None:
        raise UsageError(f"the semi-informed attacker trains a network with torch: {_INSTALL}")


def adapted(
    corpora: Sequence[Sequence[Recording]],
    protect: Protect,
    method: Any,
    cache: ResultCache,
    length: Length,
    draws: SpeechDraws = SpeechDraws(),
    how: FineTuning = FineTuning(),
    *,
    progress: Progress = lambda _what, _done: None,
    jobs: Jobs = 1,
) -> tuple[VoiceNetwork, tuple[str, ...]]:
    """The shipped voice network, fine-tuned on protected speech of some speakers.

    Interrupted, it goes on from its last state; asked for again it is read. What the shipped
    network says of the clear speech is kept too, for other methods.

    Returns:
        the network, marked by its own sha256, and one line for each file that could not be used.

    Raises:
        UsageError: torch is not installed.
        CorpusError: fewer than two speakers can be used.
        SourceError: a recording cannot be read.
        StoreError: what is kept cannot be written.
    """
    what = {
        "files": [[[each.speaker, file_hash(each.path)] for each in corpus] for corpus in corpora],
        "method": method,
        "draws": asdict(draws),
        "length": asdict(length),
        "how": asdict(how),
        "begins": shipped().sha256,
        "code": code_mark(*_CODE),
    }
    key = result_key(what)
    kept = cache.read(key)
    if kept is None:
        check_torch()
        unfinished = _Unfinished(cache, key)
        kept = _made(corpora, protect, cache, length, draws, how, progress, jobs, unfinished)
        cache.write(key, kept)
        unfinished.forget()
    weights, mark = weights_of(kept)
    problems = json.loads(weights.pop(_PROBLEMS).item())
    return VoiceNetwork(weights, mark), tuple(problems)


def _made(
    corpora: Sequence[Sequence[Recording]],
    protect: Protect,
    cache: ResultCache,
    length: Length,
    draws: SpeechDraws,
    how: FineTuning,
    progress: Progress,
    jobs: Jobs,
    unfinished: _Unfinished,
) -> bytes:
    """A file of weights, with what could not be used."""
    from monitor.lab.adapting.fine_tuning import fine_tune

    speakers = sum(len({each.speaker for each in corpus}) for corpus in corpora)
    heard = 0

    def step(_: str) -> None:
        nonlocal heard
        heard += 1
        progress("protecting", heard / speakers)

    speech = draw_speech(corpora, protect, draws, progress=step, jobs=jobs)
    if len(speech.names) < _FEWEST_VOICES:
        raise CorpusError("fewer than two background speakers say enough to train a network on")
    weights = fine_tune(
        speech,
        shipped().weights,
        length,
        how,
        teacher=_teacher(speech, cache),
        checkpoint=unfinished,
        progress=lambda done, _: progress("training", done),
    )
    made = io.BytesIO()
    problems = np.array(json.dumps(speech.problems))
    np.savez(made, **weights, **{_PROBLEMS: problems})  # type: ignore[arg-type]
    return made.getvalue()


def _teacher(speech: ProtectedSpeech, cache: ResultCache) -> FloatArray:
    """What the shipped network says of the clear speech: alike for every method."""
    from monitor.lab.adapting.fine_tuning import said_of_clear

    heard = hashlib.sha256()
    for each in (*speech.clear, speech.voices, speech.corpora):
        heard.update(repr(each.shape).encode())
        heard.update(each.tobytes())
    what = {"clear": heard.hexdigest()}
    key = result_key({**what, "network": shipped().sha256, "code": code_mark(*_CODE)})
    kept = cache.read(key)
    if kept is not None:
        return np.asarray(np.load(io.BytesIO(kept), allow_pickle=False))
    said, made = said_of_clear(speech, shipped().weights), io.BytesIO()
    np.save(made, said)
    cache.write(key, made.getvalue())
    return said


class _Unfinished(KeptTraining):
    """The state of a training, beside what it will make."""

    def __init__(self, cache: ResultCache, key: str) -> None:
        self._cache, self._key = cache, result_key({"unfinished": key})

    def read(self) -> bytes | None:
        return self._cache.read(self._key)

    def write(self, state: bytes) -> None:
        self._cache.write(self._key, state)

    def forget(self) -> None:
        self._cache.forget(self._key)
