"""Fine-tunes the voice network on protected speech: it learns to tell protected voices apart.

Needs torch. What comes out runs without, by `monitor.networks.voice`.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from monitor.adapting.masking import floored, masked
from monitor.adapting.network import Student, folded, unfolded
from monitor.adapting.protected_speech import ProtectedSpeech
from monitor.adapting.schedule import Length, rate
from monitor.types import AnyArray, FloatArray, IntArray

__all__ = ["FineTuning", "KeptTraining", "fine_tune"]

_SHORTEST, _LONGEST = 150, 298
"""Frames of a crop: one and a half to three seconds."""
_MOST_GRADIENT = 5.0


@dataclass(frozen=True, slots=True)
class FineTuning:
    """How a network is fine-tuned.

    The additive margin softmax of F. Wang, J. Cheng, W. Liu and H. Liu (IEEE Signal Processing
    Letters 2018) over the voices; each has a centre, which begins where the shipped network hears
    its protected speech.

    Attributes:
        batch: crops a step.
        highest, lowest: rates of learning.
        margin: by how much the cosine to the own centre has to be larger.
        scale: of cosines, in the softmax.
        decay: of weights.
        seed: of batches.
    """

    batch: int = 64
    highest: float = 1e-3
    lowest: float = 1e-5
    margin: float = 0.2
    scale: float = 30.0
    decay: float = 1e-4
    seed: int = 1


class KeptTraining(Protocol):
    """Keeps the state of a training that may be interrupted."""

    def read(self) -> bytes | None:
        """What was written last; None where nothing was."""

    def write(self, state: bytes) -> None:
        """Keep a state in the place of the one before."""


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
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return folded(_trained(speech, weights, length, how, checkpoint, every_seconds, progress))
    finally:
        torch.set_num_threads(threads)


def _trained(
    speech: ProtectedSpeech,
    weights: Mapping[str, AnyArray],
    length: Length,
    how: FineTuning,
    checkpoint: KeptTraining | None,
    every_seconds: float,
    progress: Callable[[float, float], None],
) -> Student:
    student = unfolded(weights)
    centres = nn.Parameter(_centres(student, speech))
    parameters = [*student.parameters(), centres]
    optimizer = torch.optim.AdamW(parameters, lr=how.highest, weight_decay=how.decay)
    batches = Batches(speech, how.seed)
    step, spent = 0, 0.0
    setting = {**asdict(how), "voices": len(speech.names), "stretches": len(speech.bands)}
    kept = None if checkpoint is None else _restored(checkpoint.read(), setting)
    if kept is not None:
        student.load_state_dict(kept["student"])
        centres.data.copy_(kept["centres"])
        optimizer.load_state_dict(kept["optimizer"])
        step, spent = kept["step"], kept["seconds"]
    before = written = time.monotonic()
    while (done := length.done(step, spent)) < 1:
        for group in optimizer.param_groups:
            group["lr"] = rate(done, how.highest, how.lowest)
        bands, voices = batches.at(step, how.batch)
        loss = _margin_loss(student(torch.from_numpy(bands)), centres, voices, how)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, _MOST_GRADIENT)
        optimizer.step()
        now = time.monotonic()
        step, spent, before = step + 1, spent + now - before, now
        if checkpoint is not None and now - written >= every_seconds:
            written = now
            checkpoint.write(_kept(setting, student, centres, optimizer, step, spent))
        progress(length.done(step, spent), loss.item())
    return student


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


def _margin_loss(found: Tensor, centres: Tensor, voices: IntArray, how: FineTuning) -> Tensor:
    cosines = nn.functional.normalize(found) @ nn.functional.normalize(centres).T
    own = torch.from_numpy(voices)
    cosines = cosines - how.margin * nn.functional.one_hot(own, len(centres))
    return nn.functional.cross_entropy(how.scale * cosines, own)


def _centres(student: Student, speech: ProtectedSpeech) -> Tensor:
    """The mean embedding of each voice, of length 1."""
    sums = torch.zeros(len(speech.names), student.embed.out_features)
    with torch.inference_mode():
        for bands, voice in zip(speech.bands, speech.voices, strict=True):
            crop = torch.from_numpy(bands[:_LONGEST].astype(np.float32))
            sums[voice] += nn.functional.normalize(student(crop[None]))[0]
    return nn.functional.normalize(sums)


def _kept(
    setting: Mapping[str, Any],
    student: Student,
    centres: Tensor,
    optimizer: torch.optim.Optimizer,
    step: int,
    seconds: float,
) -> bytes:
    made = io.BytesIO()
    torch.save(
        {
            "setting": setting,
            "student": student.state_dict(),
            "centres": centres.data,
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
