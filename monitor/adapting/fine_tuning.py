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

from monitor.adapting.adapted import (
    FineTuning,
    KeptTraining,
    Length,
    ProtectedSpeech,
    rate,
    turned,
    within,
)
from monitor.errors import CorpusError, StoreError
from monitor.jobs import one_torch_thread
from monitor.networks.layers import BANDS, int8
from monitor.types import AnyArray, FloatArray, IntArray

# ----------------------------------------------------------------------------------------- folding
# Batch norms folded into the convolutions beside them, as numpy runs them.

State = dict[str, FloatArray]
LEAST_VARIANCE = 1e-5
"""Of a batch norm; torch's default."""


def norm(state: State, name: str) -> tuple[FloatArray, FloatArray]:
    """What a batch norm multiplies by, and what it adds."""
    scale = state[f"{name}.weight"] / np.sqrt(state[f"{name}.running_var"] + LEAST_VARIANCE)
    return scale, state[f"{name}.bias"] - state[f"{name}.running_mean"] * scale


def separable(state: State, at: str, name: str) -> State:
    """A block of torch's, ``at``, as depthwise and pointwise of ``name``, each with a bias."""
    first, shift = norm(state, f"{at}.first")
    second, bias = norm(state, f"{at}.second")
    return {
        f"{name}.depthwise": state[f"{at}.depthwise.weight"][:, 0, 0] * first[:, None],
        f"{name}.depthwise.bias": shift,
        f"{name}.pointwise": state[f"{at}.pointwise.weight"][:, :, 0, 0] * second[:, None],
        f"{name}.pointwise.bias": bias,
    }


# ----------------------------------------------------------------------------------------- masking
# What is done to log mel bands in training, so that a network does not go by a microphone.

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


# ----------------------------------------------------------------------------------------- network
# The voice network in torch, to be trained: separable convolutions, attentive statistics.
#
# After B. Desplanques, J. Thienpondt and K. Demuynck, "ECAPA-TDNN", Interspeech 2020 (squeeze and
# excitation, attentive statistics of channels), with separable convolutions for its Res2 blocks and
# at 50 frames a second. `monitor.networks.voice` runs what `folded` gives, without torch, and
# `unfolded` makes a network that can be trained of it again.

CHANNELS = 256
WIDE = 512
EMBEDDING = 192
BLOCKS = 5
_KERNEL = 5
_SQUEEZED = 64
_LEAST_VARIANCE = 1e-5
_NORMS = {"stem": "stem_norm", "widen": "widen_norm", "depthwise": "first", "pointwise": "second"}
"""The norm behind each convolution that has one."""


class SqueezedBlock(nn.Module):  # type: ignore[misc]  # torch is not looked at
    """Depthwise, pointwise, squeeze and excitation, around a shortcut."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(
            channels,
            channels,
            (1, _KERNEL),
            padding=(0, dilation * (_KERNEL // 2)),
            dilation=(1, dilation),
            groups=channels,
            bias=False,
        )
        self.first = nn.BatchNorm2d(channels)
        self.pointwise = nn.Conv2d(channels, channels, 1, bias=False)
        self.second = nn.BatchNorm2d(channels)
        self.squeeze = nn.Linear(channels, _SQUEEZED)
        self.excite = nn.Linear(_SQUEEZED, channels)

    def forward(self, x: Tensor) -> Tensor:
        """One block, shape (b, channels, 1, t) to the same."""
        y = torch.relu(self.first(self.depthwise(x)))
        y = self.second(self.pointwise(y))
        gate = torch.sigmoid(self.excite(torch.relu(self.squeeze(y.mean(dim=(2, 3))))))
        return torch.relu(x + y * gate[:, :, None, None])


class Student(nn.Module):  # type: ignore[misc]
    """Log mel bands, shape (b, t, bands), to embeddings, shape (b, 192), not yet of length 1.

    Time is the second axis of a picture one row high, channels last: torch trains that half again
    as fast on a processor as it does sequences.

    Attributes:
        bfloat16: whether layers are computed in bfloat16 on a processor.
    """

    def __init__(
        self,
        bands: int = BANDS,
        channels: int = CHANNELS,
        wide: int = WIDE,
        blocks: int = BLOCKS,
    ) -> None:
        super().__init__()
        self.bfloat16 = False
        self.stem = nn.Conv2d(
            bands, channels, (1, _KERNEL), stride=(1, 2), padding=(0, _KERNEL // 2), bias=False
        )
        self.stem_norm = nn.BatchNorm2d(channels)
        self.blocks = nn.ModuleList(SqueezedBlock(channels, 1 + i) for i in range(blocks))
        self.widen = nn.Conv2d(channels, wide, 1, bias=False)
        self.widen_norm = nn.BatchNorm2d(wide)
        self.attend = nn.Conv2d(wide, _SQUEEZED, 1)
        self.weigh = nn.Conv2d(_SQUEEZED, wide, 1)
        self.pooled_norm = nn.BatchNorm1d(2 * wide)
        self.embed = nn.Linear(2 * wide, EMBEDDING)

    def forward(self, bands: Tensor) -> Tensor:
        """Embed a batch."""
        with torch.autocast("cpu", torch.bfloat16, enabled=self.bfloat16):
            return self._layers(bands).float()

    def _layers(self, bands: Tensor) -> Tensor:
        x = (bands - bands.mean(dim=1, keepdim=True))[:, None].permute(0, 3, 1, 2)  # channels last
        x = torch.relu(self.stem_norm(self.stem(x)))
        for block in self.blocks:
            x = block(x)
        x = torch.relu(self.widen_norm(self.widen(x)))
        weights = torch.softmax(self.weigh(torch.tanh(self.attend(x))), dim=3)
        mean = (weights * x).sum(dim=(2, 3))
        variance = (weights * x * x).sum(dim=(2, 3)) - mean * mean
        pooled = torch.cat([mean, variance.clamp(min=_LEAST_VARIANCE).sqrt()], dim=1)
        return self.embed(self.pooled_norm(pooled))


def folded(student: Student) -> dict[str, FloatArray]:
    """Its weights as `monitor.networks.voice` wants them: each norm folded into its neighbour.

    Returns:
        arrays by name, float32; matrices as (out, in), kernels as (out, in, taps).
    """
    state = {name: each.detach().double().numpy() for name, each in student.state_dict().items()}

    found: dict[str, FloatArray] = {}
    scale, shift = norm(state, "stem_norm")
    found["stem"], found["stem.bias"] = state["stem.weight"][:, :, 0] * scale[:, None, None], shift
    for i in range(len(student.blocks)):
        at = f"blocks.{i}"
        found |= separable(state, at, str(i))
        for part in ("squeeze", "excite"):
            found[f"{i}.{part}"] = state[f"{at}.{part}.weight"]
            found[f"{i}.{part}.bias"] = state[f"{at}.{part}.bias"]
    scale, shift = norm(state, "widen_norm")
    found["widen"] = state["widen.weight"][:, :, 0, 0] * scale[:, None]
    found["widen.bias"] = shift
    for part in ("attend", "weigh"):
        found[part] = state[f"{part}.weight"][:, :, 0, 0]
        found[f"{part}.bias"] = state[f"{part}.bias"]
    scale, shift = norm(state, "pooled_norm")
    found["embed"] = state["embed.weight"] * scale
    found["embed.bias"] = state["embed.bias"] + state["embed.weight"] @ shift
    return {name: np.asarray(each, np.float32) for name, each in found.items()}


def unfolded(weights: Mapping[str, AnyArray]) -> Student:
    """The inverse of `folded`: a network that says the same, and can be trained on.

    What the batch norms had learnt is gone: here they let pass what comes and add the biases. So
    the network is returned in evaluation mode and is to be trained in that.

    Args:
        weights: arrays by name, as `folded` gives them or a file of weights has them.

    Raises:
        StoreError: they are of another network.
    """
    try:
        channels, bands, _ = weights["stem"].shape
        blocks = sum(name.endswith(".depthwise") for name in weights)
        student = Student(bands, channels, len(weights["widen"]), blocks)
        state = student.state_dict()
        for name, each in state.items():
            if name.endswith("running_var"):
                each.fill_(1 - LEAST_VARIANCE)
        lacking = {name for name in state if name.rpartition(".")[2] in ("weight", "bias")}
        lacking -= {name for name in lacking if _is_norm(name) and name.endswith(".weight")}
        lacking.discard("pooled_norm.bias")
        for name, each in weights.items():
            whose = name.removesuffix(".bias")
            place = f"blocks.{whose}" if whose[0].isdigit() else whose
            above, _, last = place.rpartition(".")
            norm_of = f"{above}.{_NORMS[last]}".lstrip(".") if last in _NORMS else place
            target = f"{norm_of}.bias" if whose != name else f"{place}.weight"
            values = torch.from_numpy(np.asarray(each, np.float32))
            state[target].copy_(values.reshape(state[target].shape))
            lacking.remove(target)
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        raise StoreError(f"weights of another network than voice's ({error})") from None
    if lacking:
        raise StoreError(f"weights of another network than voice's (no {min(lacking)})")
    student.load_state_dict(state)
    student.eval()
    return student


def _is_norm(name: str) -> bool:
    """Whether a parameter is one of a batch norm."""
    return name.split(".")[-2] in {*_NORMS.values(), "pooled_norm"}


def rounded(weights: dict[str, FloatArray]) -> dict[str, AnyArray]:
    """What ships: int8 with a scale a row, the rest in half precision."""
    return int8({name: each.astype(np.float16) for name, each in weights.items()})


# ------------------------------------------------------------------------------------- fine tuning
# Fine-tunes the voice network: of protected speech it learns to say what it said of clear speech.
#
# The network as it was is the teacher, and hears each voice in the clear; the loss is the one that
# it was itself made by (`monitor.adapting.fine_tuning`). In the end the last layer is turned so
# that what the anonymiser's draws change of a voice counts less
# (`monitor.adapting.adapted.within`); docs/method.md section 9. Needs torch; what comes out runs
# without, by `monitor.networks.voice`.

_SHORTEST, _LONGEST = 150, 298
"""Frames of a crop: one and a half to three seconds."""
_MOST_GRADIENT = 5.0


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
        the folded weights, float32, for `monitor.networks.voice.VoiceNetwork`.

    Raises:
        CorpusError: the loss is no number any more.
    """
    with one_torch_thread():
        student = _begun(weights, how)
        said = _said(student, speech) if teacher is None else teacher
        _trained(student, said, speech, length, how, checkpoint, every_seconds, progress)
        return _finished(student, speech)


def said_of_clear(
    speech: ProtectedSpeech, weights: Mapping[str, AnyArray], how: FineTuning
) -> FloatArray:
    """What a network says of each voice's clear speech, shape (v, 192), of length 1.

    It does not depend on what protects the speech.
    """
    with one_torch_thread():
        return _said(_begun(weights, how), speech)


def _begun(weights: Mapping[str, AnyArray], how: FineTuning) -> Student:
    student = unfolded(weights)
    student.bfloat16 = how.bfloat16
    return student


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
    """As `said_of_clear` says.

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
