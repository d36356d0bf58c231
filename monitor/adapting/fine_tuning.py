"""Fine-tunes the voice network to say of protected speech what it said of clear speech."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from monitor.adapting.adapted import KeptTraining, Length, ProtectedSpeech, rate, turned, within
from monitor.adapting.network import Student, TeacherLoss, floored, folded, masked, unfolded
from monitor.errors import CorpusError
from monitor.types import AnyArray, FloatArray, IntArray

__all__ = ["FineTuning", "fine_tune"]


# ------------------------------------------------------------------------------------- fine tuning
# Fine-tunes the voice network: of protected speech it learns to say what it said of clear speech.
#
# The network as it was is the teacher, and hears each voice in the clear; the loss is the one that
# it was itself made by (`monitor.adapting.network`). In the end the last layer is turned so that
# what the protector's draws change of a voice counts less (`monitor.adapting.adapted.within`);
# docs/method.md section 9. Needs torch; what comes out runs without, by `monitor.networks.voice`.

_SHORTEST, _LONGEST = 150, 298
"""Frames of a crop: one and a half to three seconds."""
_MOST_GRADIENT = 5.0


@dataclass(frozen=True, slots=True)
class FineTuning:
    """How a network is fine-tuned.

    Attributes:
        batch: crops a step.
        highest, lowest: rates of learning.
        decay: of weights.
        seed: of batches.
    """

    batch: int = 64
    highest: float = 1e-3
    lowest: float = 1e-5
    decay: float = 1e-4
    seed: int = 1


def fine_tune(
    speech: ProtectedSpeech,
    weights: Mapping[str, AnyArray],
    length: Length,
    how: FineTuning,
    *,
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
        checkpoint: where to go on from, and where the state is kept.
        every_seconds: between checkpoints.
        progress: called after each step with the share done, 0 to 1, and the loss.

    Returns:
        the folded weights, float32, for `monitor.networks.voice.VoiceNetwork`.

    Raises:
        CorpusError: the loss is no number any more.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        student = unfolded(weights)
        teacher = _said(student, speech)
        _trained(student, teacher, speech, length, how, checkpoint, every_seconds, progress)
        return _finished(student, speech)
    finally:
        torch.set_num_threads(threads)


def _trained(
    student: Student,
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
        loss, _ = away(student(torch.from_numpy(bands)), said[voices], corpora[voices])
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


def _embedded(student: Student, bands: Iterable[FloatArray]) -> list[FloatArray]:
    """Of each stretch the windows of three seconds, as they come: shape (windows, 192) each."""
    made = []
    with torch.inference_mode():
        for each in bands:
            windows = max(1, len(each) // _LONGEST)
            crop = each[: windows * _LONGEST].astype(np.float32)
            crops = crop.reshape(windows, -1, crop.shape[1])
            made.append(np.asarray(student(torch.from_numpy(crops)).double().numpy()))
    return made


def _said(student: Student, speech: ProtectedSpeech) -> FloatArray:
    """What the network says of each voice's clear speech, shape (v, 192), of length 1.

    What all of a corpus have in common is a room, not a voice: it is taken away.
    """
    sums = np.zeros((len(speech.names), student.embed.out_features))
    for voice, windows in zip(speech.voices, _embedded(student, speech.clear), strict=True):
        sums[voice] += (windows / np.linalg.norm(windows, axis=1, keepdims=True)).sum(axis=0)
    means = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    for corpus in np.unique(speech.corpora):
        means[speech.corpora == corpus] -= means[speech.corpora == corpus].mean(axis=0)
    return np.asarray(means / np.linalg.norm(means, axis=1, keepdims=True), np.float32)


def _finished(student: Student, speech: ProtectedSpeech) -> dict[str, FloatArray]:
    """The folded weights, the last layer turned by what draws change of a voice."""
    windows = _embedded(student, speech.bands)
    voices = np.repeat(speech.voices, [len(each) for each in windows])
    turn, centre = within(np.concatenate(windows), voices, speech.corpora)
    return turned(folded(student), turn, centre)


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
        """The batch of a step: bands, shape (b, t, 40), and voices, shape (b,)."""
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
        return masked(floored(np.stack(crops), generator), generator), voices


def _kept(
    setting: Mapping[str, Any],
    student: Student,
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
