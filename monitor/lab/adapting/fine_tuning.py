"""Fine-tunes the voice network, in torch, to embed protected speech as it embeds clear speech.

The shipped network is the teacher and embeds each voice's clear speech. The loss is close to that
of its own training (`recipes.voice.train`). Finally the last layer is transformed so that the
variation from the anonymiser's random draws counts less (docs/method.md section 9). The result runs
without torch, in `monitor.networks.voice`.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import linear, relu

from monitor.errors import CorpusError, StoreError
from monitor.jobs import one_torch_thread
from monitor.lab.adapting.training import (
    FineTuning,
    Length,
    ProtectedSpeech,
    compute_rate,
    fit_normalisation,
    turn_last_layer,
)
from monitor.lab.result_cache import ResultCache
from monitor.networks.voice import BANDS, GROUPS, LEAST_VARIANCE, SIZE, shipped
from monitor.types import AnyArray, FloatArray, IntArray

_FIXED = (".gain", ".shift")  # suffixes of the batch norm's parameters, which are not trained


class TrainableVoice(nn.Module):  # type: ignore[misc]  # torch is not type-checked
    """Maps bands of windows to embeddings, with a copy of a `VoiceNetwork`'s weights."""

    def __init__(self, weights: Mapping[str, AnyArray]) -> None:
        super().__init__()
        try:
            self.taps = np.reshape(weights["taps"], (-1, 2)).astype(int).tolist()
            self.stride = int(weights["stride"])
            for name, array in weights.items():
                value = torch.tensor(np.asarray(array, np.float32))
                if name in ("taps", "stride", "attention") or name.endswith(_FIXED):
                    self.register_buffer(_key(name), value)
                else:
                    self.register_parameter(_key(name), nn.Parameter(value))
            self.names = tuple(weights)
            with torch.no_grad():
                self(torch.zeros(1, 51, BANDS))
        except (KeyError, AttributeError, RuntimeError, TypeError, ValueError) as error:
            raise StoreError(f"invalid weights for the voice network: {error}") from None

    def plain(self) -> dict[str, FloatArray]:
        """Return the weights by name, float32, for `VoiceNetwork`."""
        return {name: self._weight(name).detach().cpu().numpy().copy() for name in self.names}

    def forward(self, bands: Tensor) -> Tensor:
        """Embed windows, shape (b, t, 80), as vectors of any length, shape (b, 192)."""
        rows = self.frames(bands - bands.mean(dim=1, keepdim=True))
        attention = torch.softmax(self.logits(rows).float(), dim=1)
        rows = rows.float()
        mean = (attention * rows).sum(dim=1)
        deviation = _deviation((attention * rows * rows).sum(dim=1), mean)
        level = linear(mean, self._weight("embed.mean"), self._weight("embed.bias"))
        return level + linear(deviation, self._weight("embed.deviation"))

    def frames(self, bands: Tensor) -> Tensor:
        """Return the frames to pool, shape (b, t / stride, 3072)."""
        width = self._weight("stem").shape[1] // BANDS
        rows = self._activated(self._dense(_stack_taps(bands, width, 1), "stem"), "stem")
        rows = rows[:, :: self.stride]
        outputs = []
        for block in range(len(self.taps)):
            rows = self._block(rows, block)
            outputs.append(rows)
        return relu(self._dense(torch.cat(outputs, dim=2), "widen"))

    def logits(self, rows: Tensor) -> Tensor:
        """Return the unnormalised log attention of each frame and channel."""
        mean = rows.mean(dim=1, dtype=torch.float32)
        square = (rows * rows).mean(dim=1, dtype=torch.float32)
        level = linear(mean, self._weight("attend.mean"), self._weight("attend.bias"))
        context = level + linear(_deviation(square, mean), self._weight("attend.deviation"))
        attended = linear(rows, self._weight("attend")) + context[:, None]
        return self._dense(torch.tanh(self._activated(attended, "attend")), "weigh")

    def _block(self, x: Tensor, block: int) -> Tensor:
        taps, dilation = self.taps[block]
        rows = self._activated(self._dense(x, f"{block}.one"), f"{block}.one")
        first, *chunks = rows.chunk(GROUPS, dim=2)
        groups, last = [first], None
        for group, chunk in enumerate(chunks, 1):
            name = f"{block}.group{group}"
            convolved = _stack_taps(chunk if last is None else chunk + last, taps, dilation)
            last = self._activated(self._dense(convolved, name), name)
            groups.append(last)
        y = self._activated(self._dense(torch.cat(groups, dim=2), f"{block}.two"), f"{block}.two")
        squeezed = relu(self._dense(y.mean(dim=1, keepdim=True), f"{block}.squeeze"))
        return y * torch.sigmoid(self._dense(squeezed, f"{block}.excite")) + x

    def _dense(self, x: Tensor, name: str) -> Tensor:
        if name in self.names:
            return linear(x, self._weight(name), self._weight(f"{name}.bias"))
        inner = linear(x, self._weight(f"{name}.in"))
        return linear(inner, self._weight(f"{name}.out"), self._weight(f"{name}.bias"))

    def _activated(self, x: Tensor, name: str) -> Tensor:
        scale, shift = (self._weight(name + suffix).to(x.dtype) for suffix in _FIXED)
        return torch.addcmul(shift, relu(x), scale)

    def _weight(self, name: str) -> Tensor:
        return getattr(self, _key(name))


def _key(name: str) -> str:
    """Return a name without dots, which torch reserves for nested modules."""
    return "w_" + name.replace(".", "_")


def _stack_taps(rows: Tensor, taps: int, dilation: int) -> Tensor:
    """Concatenate each row with its neighbours, tap by tap, mirrored at both ends."""
    reach = taps // 2 * dilation
    if reach:
        before, after = rows[:, 1 : reach + 1].flip(1), rows[:, -reach - 1 : -1].flip(1)
        rows = torch.cat([before, rows, after], dim=1)
    size = rows.shape[1] - 2 * reach
    return torch.cat([rows[:, at : at + size] for at in range(0, taps * dilation, dilation)], dim=2)


def _deviation(square: Tensor, mean: Tensor) -> Tensor:
    return (square - mean * mean).clamp(min=LEAST_VARIANCE).sqrt()


_SHORTEST, _LONGEST = 150, 300  # frames per crop: one and a half to three seconds
_NATS = np.float32(np.log(10) / 10)  # nats per decibel
_FLOORED, _GATED = 0.35, 0.25
_MASKED = 0.3
_MOST_BANDS, _MOST_TIME = 8, 0.15


class Batches:
    """Crops of one length with equally likely voices, determined by seed and step."""

    def __init__(self, speech: ProtectedSpeech, seed: int) -> None:
        self._speech, self._seed = speech, seed
        self._stretches = [
            np.flatnonzero(speech.voices == voice) for voice in range(len(speech.names))
        ]

    def create_batch(self, step: int, size: int) -> tuple[FloatArray, IntArray]:
        """Return the bands of a step's batch, shape (b, t, m), and its voices, shape (b,)."""
        generator = np.random.default_rng([self._seed, step])
        frames = int(generator.integers(_SHORTEST, _LONGEST + 1))
        voices = generator.integers(len(self._stretches), size=size)
        crops = []
        for voice in voices:
            crop = self._speech.bands[generator.choice(self._stretches[voice])]
            if len(crop) < frames:
                crop = np.resize(crop, (frames, crop.shape[1]))
            start = generator.integers(len(crop) - frames + 1)
            crops.append(crop[start : start + frames].astype(np.float32))
        bands = np.stack(crops) * _NATS
        _add_floors(bands, generator)
        _mask_bands(bands, generator)
        return bands / _NATS, voices


def _add_floors(bands: FloatArray, generator: np.random.Generator) -> None:
    """Give some crops another noise floor or a noise gate, which identify sessions, in place."""
    width = bands.shape[2]
    slope = np.linspace(-0.5, 0.5, width, dtype=np.float32)
    for crop in bands:
        if generator.random() < _GATED:
            mean = crop.mean(axis=0)
            below = np.maximum(mean - np.float32(generator.uniform(0, 2)) - crop, 0)
            crop -= below * np.float32(generator.uniform(-0.4, 0.8))
        if generator.random() < _FLOORED:
            level = crop.max(axis=0).mean() - generator.uniform(3, 9)  # nepers of energy
            uneven = np.cumsum(generator.normal(0, 0.2, width))
            floor = level + uneven - uneven.mean() + generator.uniform(-4, 2) * slope
            crop[:] = np.logaddexp(crop, floor.astype(np.float32))


def _mask_bands(bands: FloatArray, generator: np.random.Generator) -> None:
    """Set stripes to the mean of the band, in place (SpecAugment; Park et al., 2019)."""
    _, frames, width = bands.shape
    for crop, mean in zip(bands, bands.mean(axis=1), strict=True):
        if generator.random() < _MASKED:
            wide = generator.integers(1, _MOST_BANDS + 1)
            low = generator.integers(width - wide + 1)
            crop[:, low : low + wide] = mean[low : low + wide]
        if generator.random() < _MASKED:
            long = generator.integers(1, round(_MOST_TIME * frames) + 1)
            begin = generator.integers(frames - long + 1)
            crop[begin : begin + long] = mean


def choose_device() -> torch.device:
    """Return the device to train on, CUDA if available."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


_SCALE = 15.0
_DISTILLED = 10.0
_NEVER = -1e4


def _compute_loss(
    student: Tensor, voices: Tensor, teacher: Tensor, corpus_of_voice: Tensor
) -> Tensor:
    """Return the distance of embeddings (b, 192) of some voices (b,) to the teacher's (v, 192).

    The loss is in docs/method.md section 9 (relational distillation; W. Park et al., CVPR 2019).
    Trainable class centres would memorise a few hundred speakers. Anchors compete within a corpus,
    so that the student does not learn its room and codec.
    """
    student, target = nn.functional.normalize(student), teacher[voices]
    elsewhere = corpus_of_voice[voices][:, None] != corpus_of_voice[None, :]
    student_logits, teacher_logits = (
        (_SCALE * embeddings @ teacher.T).masked_fill(elsewhere, _NEVER)
        for embeddings in (student, target)
    )
    among = nn.functional.kl_div(
        torch.log_softmax(student_logits, dim=1),
        torch.log_softmax(teacher_logits, dim=1),
        log_target=True,
        reduction="batchmean",
    )
    return among + _DISTILLED * (1 - (student * target).sum(dim=1).mean())


_SHARDS = 8  # parts of a batch; gradients are summed in order, for any number of threads


def _set_gradients(
    student: TrainableVoice, bands: FloatArray, voices: IntArray, targets: tuple[Tensor, Tensor],
    settings: FineTuning, pool: ThreadPoolExecutor,
) -> Tensor:  # fmt: skip
    """Set the student's gradients for a batch, and return its loss.

    ``targets`` are the teacher's embeddings and the corpus of each voice, on the student's device.
    """
    parameters, (teacher, corpora) = list(student.parameters()), targets
    device = teacher.device

    def learn(bands: Tensor, voices: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        with torch.autocast(device.type, torch.bfloat16, enabled=settings.bfloat16):
            embeddings = student(bands.to(device))
        loss = _compute_loss(embeddings.float(), voices.to(device), teacher, corpora)
        loss = loss * (len(voices) / settings.batch)
        return loss.detach(), torch.autograd.grad(loss, parameters)

    shards = _SHARDS if device.type == "cpu" else 1
    parts = (torch.from_numpy(array).chunk(shards) for array in (bands, voices))
    losses, gradients = zip(*pool.map(learn, *parts), strict=True)
    for parameter, shares in zip(parameters, zip(*gradients, strict=True), strict=True):
        parameter.grad = sum(shares[1:], shares[0])
    return torch.stack(losses).sum()


_MOST_GRADIENT = 5.0


class Checkpoint(NamedTuple):
    """Place and interval at which the state of an unfinished training is stored."""

    cache: ResultCache
    key: str
    every_seconds: float = 30.0


def fine_tune(
    speech: ProtectedSpeech,
    weights: Mapping[str, AnyArray],
    length: Length,
    settings: FineTuning,
    *,
    teacher: FloatArray | None = None,
    checkpoint: Checkpoint | None = None,
    progress: Callable[[float, float], None] = lambda _done, _loss: None,
    threads: int = 1,
) -> dict[str, FloatArray]:
    """Continue training the network, on a CUDA device if there is one.

    A length in steps gives equal weights for equal seeds on one kind of device, even if the
    training was interrupted. The number of threads changes nothing. For a length in seconds the
    learning rate follows the time spent.

    The ``teacher`` is the result of `embed_clear` for the same weights and speech, or None to
    compute it here. The state is stored in ``checkpoint``, to resume from. After each step
    ``progress`` is called with the fraction done, 0 to 1, and the loss. Returns the weights,
    float32, for `monitor.networks.voice.VoiceNetwork`.
    """
    device = choose_device()
    with one_torch_thread(), ThreadPoolExecutor(threads) as pool:
        student = TrainableVoice(weights).to(device)
        clear = embed_clear(speech, weights) if teacher is None else teacher
        targets = torch.from_numpy(clear).to(device)
        corpora = torch.from_numpy(speech.corpora).to(device)
        optimizer = torch.optim.AdamW(
            student.parameters(), lr=settings.highest, weight_decay=settings.decay
        )
        batches = Batches(speech, settings.seed)
        step, spent = 0, 0.0
        setting = {**asdict(settings), "voices": len(speech.names), "stretches": len(speech.bands)}
        if checkpoint is not None and (content := checkpoint.cache.read(checkpoint.key)):
            state = torch.load(io.BytesIO(content), map_location=device, weights_only=True)
            if state["setting"] == setting:  # otherwise it is another training's
                student.load_state_dict(state["student"])
                optimizer.load_state_dict(state["optimizer"])
                step, spent = state["step"], state["seconds"]
        before = written = time.monotonic()
        while (done := length.done(step, spent)) < 1:
            for group in optimizer.param_groups:
                group["lr"] = compute_rate(done, settings.highest, settings.lowest)
            bands, voices = batches.create_batch(step, settings.batch)
            loss = _set_gradients(student, bands, voices, (targets, corpora), settings, pool)
            if not torch.isfinite(loss):
                raise CorpusError("the training diverged: its loss is NaN or infinite")
            nn.utils.clip_grad_norm_(student.parameters(), _MOST_GRADIENT)
            optimizer.step()
            now = time.monotonic()
            step, spent, before = step + 1, spent + now - before, now
            if checkpoint is not None and now - written >= checkpoint.every_seconds:
                written, file = now, io.BytesIO()
                states = {"student": student.state_dict(), "optimizer": optimizer.state_dict()}
                torch.save({"setting": setting, **states, "step": step, "seconds": spent}, file)
                checkpoint.cache.write(checkpoint.key, file.getvalue())
            progress(length.done(step, spent), loss.item())
        windows = _embed(student, speech.bands)
    crop_voices = np.repeat(speech.voices, [len(rows) for rows in windows])
    turn, centre = fit_normalisation(np.concatenate(windows), crop_voices, speech.corpora)
    return turn_last_layer(student.plain(), turn, centre)


def measure_step(settings: FineTuning, threads: int) -> float:
    """Return the wall seconds of a training step, measured on noise."""
    noise = np.random.default_rng(0).normal(-30, 10, (8, _LONGEST, BANDS)).astype(np.float16)
    voices = np.arange(len(noise)) % 4
    corpora = np.zeros(4, np.int64)
    speech = ProtectedSpeech(tuple(noise), tuple(noise), voices, tuple("abcd"), corpora, ())
    times: list[float] = []
    fine_tune(
        speech, shipped().weights, Length(steps=2), settings, threads=threads,
        progress=lambda *_: times.append(time.monotonic()),
    )  # fmt: skip
    return times[1] - times[0]


def embed_clear(speech: ProtectedSpeech, weights: Mapping[str, AnyArray]) -> FloatArray:
    """Embed each voice's clear speech with a network, as vectors of length 1, shape (v, 192).

    The result does not depend on the protection. The mean of each corpus is subtracted, because it
    describes a room, not a voice.
    """
    with one_torch_thread():
        embeddings = _embed(TrainableVoice(weights).to(choose_device()), speech.clear)
    sums = np.zeros((len(speech.names), SIZE))
    for voice, windows in zip(speech.voices, embeddings, strict=True):
        sums[voice] += (windows / np.linalg.norm(windows, axis=1, keepdims=True)).sum(axis=0)
    means = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    for corpus in np.unique(speech.corpora):
        means[speech.corpora == corpus] -= means[speech.corpora == corpus].mean(axis=0)
    return np.asarray(means / np.linalg.norm(means, axis=1, keepdims=True), np.float32)


def _embed(student: TrainableVoice, bands: Iterable[FloatArray]) -> list[FloatArray]:
    """Embed windows of three seconds of each stretch, shape (windows, 192) each."""
    embeddings, device = [], next(student.parameters()).device
    with torch.inference_mode():
        for stretch in bands:
            windows = max(1, len(stretch) // _LONGEST)
            crop = stretch[: windows * _LONGEST].astype(np.float32)
            crops = crop.reshape(windows, -1, crop.shape[1])
            vectors = student(torch.from_numpy(crops).to(device)).double().cpu()
            embeddings.append(np.asarray(vectors.numpy()))
    return embeddings
