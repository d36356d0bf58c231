"""Fine-tunes the voice network to say of protected speech what it said of clear speech."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from monitor.errors import CorpusError
from monitor.jobs import one_torch_thread
from monitor.lab.adapting.network import TrainableVoice
from monitor.lab.adapting.training import (
    FineTuning,
    Length,
    ProtectedSpeech,
    TrainingCheckpoint,
    compute_rate,
    fit_normalisation,
    turn_last_layer,
)
from monitor.networks.voice import SIZE
from monitor.types import AnyArray, FloatArray, IntArray

# ----------------------------------------------------------------------------------------- masking
# What is done to mel bands in training, so that a network does not go by a microphone.

_FLOORED, _GATED = 0.35, 0.25
_MASKED = 0.3
_MOST_BANDS, _MOST_TIME = 8, 0.15


def add_floors(bands: FloatArray, generator: np.random.Generator) -> FloatArray:
    """Give some crops another microphone's floor, and some a gate on quiet sounds.

    A session is told by both as well as by its voice, and nobody in training has two sessions.

    Args:
        bands: shape (b, t, m), log energies.
        generator: draws what happens.

    Returns:
        shape (b, t, m).
    """
    changed = bands.copy()
    count, _, width = bands.shape
    slope = np.linspace(-0.5, 0.5, width, dtype=np.float32)
    for row in range(count):
        if generator.random() < _GATED:
            mean = changed[row].mean(axis=0)
            below = np.maximum(mean - np.float32(generator.uniform(0, 2)) - changed[row], 0)
            changed[row] -= below * np.float32(generator.uniform(-0.4, 0.8))
        if generator.random() < _FLOORED:
            level = changed[row].max(axis=0).mean() - generator.uniform(3, 9)  # nepers of energy
            uneven = np.cumsum(generator.normal(0, 0.2, width))
            floor = level + uneven - uneven.mean() + generator.uniform(-4, 2) * slope
            changed[row] = np.logaddexp(changed[row], floor.astype(np.float32))
    return changed


def mask_bands(bands: FloatArray, generator: np.random.Generator) -> FloatArray:
    """Mask stripes of bands or time of some crops (SpecAugment; Park et al., 2019).

    Args:
        bands: shape (b, t, m), log energies; what is lost becomes the crop's mean of the band.
        generator: draws what happens.

    Returns:
        shape (b, t, m).
    """
    changed = bands.copy()
    count, frames, width = bands.shape
    means = bands.mean(axis=1)
    for row in range(count):
        if generator.random() < _MASKED:
            wide = generator.integers(1, _MOST_BANDS + 1)
            low = generator.integers(width - wide + 1)
            changed[row, :, low : low + wide] = means[row, low : low + wide]
        if generator.random() < _MASKED:
            long = generator.integers(1, round(_MOST_TIME * frames) + 1)
            begin = generator.integers(frames - long + 1)
            changed[row, begin : begin + long] = means[row]
    return changed


# -------------------------------------------------------------------------------------------- loss
# What the student has to say of a crop: what the teacher says of the voice.
#
# The cosine to the teacher's embedding, and where that lies among those of everybody in training:
# the softmax of cosines to these anchors is to be the teacher's (relational distillation; W. Park
# et al., CVPR 2019). The student has no centres of its own, by which it would learn the names of a
# few hundred speakers by heart. Only anchors of the crop's own corpus compete: a corpus that could
# be told by its room and its codec would make the task easy and teach nothing of voices.

_SCALE = 15.0
_DISTILLED = 10.0
_NEVER = -1e4


class TeacherLoss:
    """Distance of the student to the teacher.

    Args:
        anchors: shape (a, 192), of length 1: what the teacher says of everybody.
        corpus_of_anchor: shape (a,), which of them compete.
    """

    def __init__(self, anchors: Tensor, corpus_of_anchor: Tensor) -> None:
        self._anchors, self._corpus = anchors, corpus_of_anchor

    def __call__(self, student: Tensor, teacher: Tensor, corpora: Tensor) -> tuple[Tensor, Tensor]:
        """Return the loss, and the mean cosine to the teacher.

        Args:
            student: shape (b, 192), the student's embeddings.
            teacher: shape (b, 192), of length 1.
            corpora: shape (b,).
        """
        student = nn.functional.normalize(student)
        elsewhere = corpora[:, None] != self._corpus[None, :]
        student_logits, teacher_logits = (
            (_SCALE * embeddings @ self._anchors.T).masked_fill(elsewhere, _NEVER)
            for embeddings in (student, teacher)
        )
        among = nn.functional.kl_div(
            torch.log_softmax(student_logits, dim=1),
            torch.log_softmax(teacher_logits, dim=1),
            log_target=True,
            reduction="batchmean",
        )
        like_teacher = (student * teacher).sum(dim=1).mean()
        return among + _DISTILLED * (1 - like_teacher), like_teacher.detach()


# ------------------------------------------------------------------------------------- fine tuning
# Fine-tunes the voice network: of protected speech it learns to say what it said of clear speech.
#
# The network as it was is the teacher, and hears each voice in the clear; the loss is nearly the
# one that it was itself made by (`recipes.voice.train`). In the end the last layer is turned so
# that what the anonymiser's draws change of a voice counts less
# (`monitor.lab.adapting.adapted.within`); docs/method.md section 9. Needs torch; the result runs
# without it, by `monitor.networks.voice`.

_SHORTEST, _LONGEST = 150, 300
"""Frames of a crop: one and a half to three seconds."""
_MOST_GRADIENT = 5.0
_NATS = np.float32(np.log(10) / 10)
"""Of a decibel."""


def fine_tune(
    speech: ProtectedSpeech,
    weights: Mapping[str, AnyArray],
    length: Length,
    settings: FineTuning,
    *,
    teacher: FloatArray | None = None,
    checkpoint: TrainingCheckpoint | None = None,
    every_seconds: float = 30.0,
    progress: Callable[[float, float], None] = lambda _done, _loss: None,
) -> dict[str, FloatArray]:
    """Train the network on, with one thread.

    With steps, equal seeds give equal weights, stopped on the way or not; with seconds the rate of
    learning falls by the time spent.

    Args:
        speech: of two voices or more.
        weights: where it begins: those that ship, or another network's.
        length: of the whole training.
        settings: of the training.
        teacher: `embed_clear` of the same weights and speech; None: it is worked out here.
        checkpoint: where to go on from, and where the state is kept.
        every_seconds: between checkpoints.
        progress: called after each step with the share done, 0 to 1, and the loss.

    Returns:
        the weights, float32, for `monitor.networks.voice.VoiceNetwork`.

    Raises:
        CorpusError: the loss is no number any more.
    """
    with one_torch_thread():
        student = TrainableVoice(weights)
        targets = _embed_voices(student, speech) if teacher is None else teacher
        _train(student, targets, speech, length, settings, checkpoint, every_seconds, progress)
        return _finish(student, speech)


def embed_clear(speech: ProtectedSpeech, weights: Mapping[str, AnyArray]) -> FloatArray:
    """Embed each voice's clear speech by a network: shape (v, 192), of length 1.

    It does not depend on what protects the speech.
    """
    with one_torch_thread():
        return _embed_voices(TrainableVoice(weights), speech)


def _train(
    student: TrainableVoice,
    teacher: FloatArray,
    speech: ProtectedSpeech,
    length: Length,
    settings: FineTuning,
    checkpoint: TrainingCheckpoint | None,
    every_seconds: float,
    progress: Callable[[float, float], None],
) -> None:
    """Train until the length is reached."""
    targets, corpora = torch.from_numpy(teacher), torch.from_numpy(speech.corpora)
    loss_of = TeacherLoss(targets, corpora)
    optimizer = torch.optim.AdamW(
        student.parameters(), lr=settings.highest, weight_decay=settings.decay
    )
    batches = Batches(speech, settings.seed)
    step, spent = 0, 0.0
    setting = {**asdict(settings), "voices": len(speech.names), "stretches": len(speech.bands)}
    state = None if checkpoint is None else _decode_state(checkpoint.read(), setting)
    if state is not None:
        student.load_state_dict(state["student"])
        optimizer.load_state_dict(state["optimizer"])
        step, spent = state["step"], state["seconds"]
    before = written = time.monotonic()
    while (done := length.done(step, spent)) < 1:
        for group in optimizer.param_groups:
            group["lr"] = compute_rate(done, settings.highest, settings.lowest)
        bands, voices = batches.at(step, settings.batch)
        with torch.autocast("cpu", torch.bfloat16, enabled=settings.bfloat16):
            embeddings = student(torch.from_numpy(bands))
        loss, _ = loss_of(embeddings.float(), targets[voices], corpora[voices])
        if not torch.isfinite(loss):
            raise CorpusError("the training came to nothing: its loss is no number")
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(student.parameters(), _MOST_GRADIENT)
        optimizer.step()
        now = time.monotonic()
        step, spent, before = step + 1, spent + now - before, now
        if checkpoint is not None and now - written >= every_seconds:
            written = now
            checkpoint.write(_encode_state(setting, student, optimizer, step, spent))
        progress(length.done(step, spent), loss.item())


def _embed(student: TrainableVoice, bands: Iterable[FloatArray]) -> list[FloatArray]:
    """Embed windows of three seconds of each stretch: shape (windows, 192) each."""
    embeddings = []
    with torch.inference_mode():
        for stretch in bands:
            windows = max(1, len(stretch) // _LONGEST)
            crop = stretch[: windows * _LONGEST].astype(np.float32)
            crops = crop.reshape(windows, -1, crop.shape[1])
            embeddings.append(np.asarray(student(torch.from_numpy(crops)).double().numpy()))
    return embeddings


def _embed_voices(student: TrainableVoice, speech: ProtectedSpeech) -> FloatArray:
    """Embed clear speech as `embed_clear`.

    What all of a corpus have in common is a room, not a voice: it is taken away.
    """
    sums = np.zeros((len(speech.names), SIZE))
    for voice, windows in zip(speech.voices, _embed(student, speech.clear), strict=True):
        sums[voice] += (windows / np.linalg.norm(windows, axis=1, keepdims=True)).sum(axis=0)
    means = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    for corpus in np.unique(speech.corpora):
        means[speech.corpora == corpus] -= means[speech.corpora == corpus].mean(axis=0)
    return np.asarray(means / np.linalg.norm(means, axis=1, keepdims=True), np.float32)


def _finish(student: TrainableVoice, speech: ProtectedSpeech) -> dict[str, FloatArray]:
    """Return the weights, the last layer turned by the anonymiser's draws."""
    windows = _embed(student, speech.bands)
    voices = np.repeat(speech.voices, [len(rows) for rows in windows])
    turn, centre = fit_normalisation(np.concatenate(windows), voices, speech.corpora)
    return turn_last_layer(student.plain(), turn, centre)


class Batches:
    """Crops of one length, every voice as likely as the other.

    Args:
        speech: to cut them from.
        seed: with the number of a step it gives that step's batch, whatever came before.
    """

    def __init__(self, speech: ProtectedSpeech, seed: int) -> None:
        self._speech, self._seed = speech, seed
        self._of = [np.flatnonzero(speech.voices == voice) for voice in range(len(speech.names))]

    def at(self, step: int, size: int) -> tuple[FloatArray, IntArray]:
        """Return the batch of a step: bands, shape (b, t, m), and voices, shape (b,)."""
        generator = np.random.default_rng([self._seed, step])
        frames = int(generator.integers(_SHORTEST, _LONGEST + 1))
        voices = generator.integers(len(self._of), size=size)
        crops = []
        for voice in voices:
            crop = self._speech.bands[generator.choice(self._of[voice])]
            if len(crop) < frames:
                crop = np.resize(crop, (frames, crop.shape[1]))
            start = generator.integers(len(crop) - frames + 1)
            crops.append(crop[start : start + frames].astype(np.float32))
        nats = np.stack(crops) * _NATS
        return mask_bands(add_floors(nats, generator), generator) / _NATS, voices


def _encode_state(
    setting: Mapping[str, Any],
    student: TrainableVoice,
    optimizer: torch.optim.Optimizer,
    step: int,
    seconds: float,
) -> bytes:
    file = io.BytesIO()
    torch.save(
        {
            "setting": setting,
            "student": student.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": step,
            "seconds": seconds,
        },
        file,
    )
    return file.getvalue()


def _decode_state(state: bytes | None, setting: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the state, if it is of this training."""
    if not state:
        return None
    contents: dict[str, Any] = torch.load(io.BytesIO(state), weights_only=True)
    return contents if contents["setting"] == setting else None
