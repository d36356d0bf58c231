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
from monitor.lab.adapting.adapted import (
    FineTuning,
    KeptTraining,
    Length,
    ProtectedSpeech,
    rate,
    turned,
    within,
)
from monitor.lab.adapting.network import TrainableVoice
from monitor.networks.voice import SIZE
from monitor.types import AnyArray, FloatArray, IntArray

# ----------------------------------------------------------------------------------------- masking
# What is done to mel bands in training, so that a network does not go by a microphone.

_FLOORED, _GATED = 0.35, 0.25
_MASKED = 0.3
_MOST_BANDS, _MOST_TIME = 8, 0.15


def floored(bands: FloatArray, generator: np.random.Generator) -> FloatArray:
    """Some crops get the floor of another microphone, some what a gate does to what is quiet.

    A session is told by both as well as by its voice, and nobody in training has two sessions.

    Args:
        bands: shape (b, t, m), log energies.
        generator: draws what happens.

    Returns:
        shape (b, t, m).
    """
    made = bands.copy()
    count, _, width = bands.shape
    slope = np.linspace(-0.5, 0.5, width, dtype=np.float32)
    for row in range(count):
        if generator.random() < _GATED:
            mean = made[row].mean(axis=0)
            below = np.maximum(mean - np.float32(generator.uniform(0, 2)) - made[row], 0)
            made[row] -= below * np.float32(generator.uniform(-0.4, 0.8))
        if generator.random() < _FLOORED:
            level = made[row].max(axis=0).mean() - generator.uniform(3, 9)  # nepers of energy
            uneven = np.cumsum(generator.normal(0, 0.2, width))
            floor = level + uneven - uneven.mean() + generator.uniform(-4, 2) * slope
            made[row] = np.logaddexp(made[row], floor.astype(np.float32))
    return made


def masked(bands: FloatArray, generator: np.random.Generator) -> FloatArray:
    """Some crops lose a stripe of bands, some a stretch of time (SpecAugment; Park et al., 2019).

    Args:
        bands: shape (b, t, m), log energies; what is lost becomes the crop's mean of the band.
        generator: draws what happens.

    Returns:
        shape (b, t, m).
    """
    made = bands.copy()
    count, frames, width = bands.shape
    means = bands.mean(axis=1)
    for row in range(count):
        if generator.random() < _MASKED:
            wide = generator.integers(1, _MOST_BANDS + 1)
            low = generator.integers(width - wide + 1)
            made[row, :, low : low + wide] = means[row, low : low + wide]
        if generator.random() < _MASKED:
            long = generator.integers(1, round(_MOST_TIME * frames) + 1)
            begin = generator.integers(frames - long + 1)
            made[row, begin : begin + long] = means[row]
    return made


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
    """The student's distance to the teacher.

    Args:
        anchors: shape (a, 192), of length 1: what the teacher says of everybody.
        corpus_of_anchor: shape (a,), which of them compete.
    """

    def __init__(self, anchors: Tensor, corpus_of_anchor: Tensor) -> None:
        self._anchors, self._corpus = anchors, corpus_of_anchor

    def __call__(self, found: Tensor, teacher: Tensor, corpora: Tensor) -> tuple[Tensor, Tensor]:
        """The loss, and the mean cosine to the teacher.

        Args:
            found: shape (b, 192), the student's.
            teacher: shape (b, 192), of length 1.
            corpora: shape (b,).
        """
        found = nn.functional.normalize(found)
        elsewhere = corpora[:, None] != self._corpus[None, :]
        said, meant = (
            (_SCALE * each @ self._anchors.T).masked_fill(elsewhere, _NEVER)
            for each in (found, teacher)
        )
        among = nn.functional.kl_div(
            torch.log_softmax(said, dim=1),
            torch.log_softmax(meant, dim=1),
            log_target=True,
            reduction="batchmean",
        )
        like_teacher = (found * teacher).sum(dim=1).mean()
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
    how: FineTuning,
    *,
    teacher: FloatArray | None = None,
    checkpoint: KeptTraining | None = None,
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
        how: settings.
        teacher: `said_of_clear` of the same weights and speech; None: it is worked out here.
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
        said = _said(student, speech) if teacher is None else teacher
        _trained(student, said, speech, length, how, checkpoint, every_seconds, progress)
        return _finished(student, speech)


def said_of_clear(speech: ProtectedSpeech, weights: Mapping[str, AnyArray]) -> FloatArray:
    """What a network says of each voice's clear speech, shape (v, 192), of length 1.

    It does not depend on what protects the speech.
    """
    with one_torch_thread():
        return _said(TrainableVoice(weights), speech)


def _trained(
    student: TrainableVoice,
    teacher: FloatArray,
    speech: ProtectedSpeech,
    length: Length,
    how: FineTuning,
    checkpoint: KeptTraining | None,
    every_seconds: float,
    progress: Callable[[float, float], None],
) -> None:
    """Train until the length is reached."""
    said, corpora = torch.from_numpy(teacher), torch.from_numpy(speech.corpora)
    away = TeacherLoss(said, corpora)
    optimizer = torch.optim.AdamW(student.parameters(), lr=how.highest, weight_decay=how.decay)
    batches = Batches(speech, how.seed)
    step, spent = 0, 0.0
    setting = {**asdict(how), "voices": len(speech.names), "stretches": len(speech.bands)}
    kept = None if checkpoint is None else _restored(checkpoint.read(), setting)
    if kept is not None:
        student.load_state_dict(kept["student"])
        optimizer.load_state_dict(kept["optimizer"])
        step, spent = kept["step"], kept["seconds"]
    before = written = time.monotonic()
    while (done := length.done(step, spent)) < 1:
        for group in optimizer.param_groups:
            group["lr"] = rate(done, how.highest, how.lowest)
        bands, voices = batches.at(step, how.batch)
        with torch.autocast("cpu", torch.bfloat16, enabled=how.bfloat16):
            made = student(torch.from_numpy(bands))
        loss, _ = away(made.float(), said[voices], corpora[voices])
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
            checkpoint.write(_kept(setting, student, optimizer, step, spent))
        progress(length.done(step, spent), loss.item())


def _embedded(student: TrainableVoice, bands: Iterable[FloatArray]) -> list[FloatArray]:
    """Of each stretch the windows of three seconds, as they come: shape (windows, 192) each."""
    made = []
    with torch.inference_mode():
        for each in bands:
            windows = max(1, len(each) // _LONGEST)
            crop = each[: windows * _LONGEST].astype(np.float32)
            crops = crop.reshape(windows, -1, crop.shape[1])
            made.append(np.asarray(student(torch.from_numpy(crops)).double().numpy()))
    return made


def _said(student: TrainableVoice, speech: ProtectedSpeech) -> FloatArray:
    """As `said_of_clear` says.

    What all of a corpus have in common is a room, not a voice: it is taken away.
    """
    sums = np.zeros((len(speech.names), SIZE))
    for voice, windows in zip(speech.voices, _embedded(student, speech.clear), strict=True):
        sums[voice] += (windows / np.linalg.norm(windows, axis=1, keepdims=True)).sum(axis=0)
    means = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    for corpus in np.unique(speech.corpora):
        means[speech.corpora == corpus] -= means[speech.corpora == corpus].mean(axis=0)
    return np.asarray(means / np.linalg.norm(means, axis=1, keepdims=True), np.float32)


def _finished(student: TrainableVoice, speech: ProtectedSpeech) -> dict[str, FloatArray]:
    """The weights, the last layer turned by what draws change of a voice."""
    windows = _embedded(student, speech.bands)
    voices = np.repeat(speech.voices, [len(each) for each in windows])
    turn, centre = within(np.concatenate(windows), voices, speech.corpora)
    return turned(student.plain(), turn, centre)


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
        """The batch of a step: bands, shape (b, t, m), and voices, shape (b,)."""
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
        return masked(floored(nats, generator), generator) / _NATS, voices


def _kept(
    setting: Mapping[str, Any],
    student: TrainableVoice,
    optimizer: torch.optim.Optimizer,
    step: int,
    seconds: float,
) -> bytes:
    made = io.BytesIO()
    torch.save(
        {
            "setting": setting,
            "student": student.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": step,
            "seconds": seconds,
        },
        made,
    )
    return made.getvalue()


def _restored(state: bytes | None, setting: Mapping[str, Any]) -> dict[str, Any] | None:
    """What was kept, if it is of this training."""
    if not state:
        return None
    found: dict[str, Any] = torch.load(io.BytesIO(state), weights_only=True)
    return found if found["setting"] == setting else None
