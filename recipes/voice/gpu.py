"""Train the student on a GPU, where voices, conditions and the teacher's answers cost little.

    python -m recipes.voice.gpu PACK OUT --seconds 545

PACK is of `recipes.voice.pack`. Nothing is heard twice: each step takes other clips, at other
speeds and with formants apart from the pitch (so of voices that nobody has), asks the teacher what
they say, and shows the student two crops of each under conditions of their own. Some of the second
crops come from a copy of all clips that went through a codec, which processors make meanwhile. The
loss is that of `recipes.voice.distil`. What a clip is to be embedded as is halfway between what the
teacher says of it and the mean of four clips of the voice, less what its corpus has in common.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import sys
import time
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import soundfile
import torch
from torch import Tensor, nn
from torch.nn import functional

from monitor.jobs import cores
from monitor.networks.layers import FFT, FLOOR, HOP, RATE, WIDTH, filters, window
from monitor.types import AnyArray, FloatArray, IntArray
from recipes.training import keep, log
from recipes.voice.clips import LONGEST
from recipes.voice.conditions import Conditions
from recipes.voice.distil import loss, student
from recipes.voice.pack import NOISE_SAMPLES, PIECE, ROOM_SAMPLES, heard
from recipes.voice.views import BANDS, CLEAN

_LONG = round(LONGEST * RATE)
_LEAD = round(0.4 * RATE)
"""Before a crop: what a room still says of it."""
_FRAMES, _OF_FRAMES = (98, 148, 298), (0.15, 0.3, 0.55)
"""Of a crop: 1, 1.5 or 3 s, and how often."""
_SPEEDS = np.exp(np.linspace(np.log(0.74), np.log(1.35), 48))
_AS_IT_IS, _FORMANTS_TOO, _FORMANTS, _MOST_FORMANTS = 0.4, 0.5, 0.075, 0.18
_TOGETHER = 4
"""Clips of a voice; so many share a speed."""
_HIGHEST, _LOWEST, _DECAY, _WARM = 1e-3, 1e-5, 1e-4, 150
_QUEUE, _ANCHORS = 8192, 4096
_ROOM, _NOISE, _EQUALISED, _CLIPPED, _TELEPHONE, _LOW_PASS, _COMPANDED = (
    0.4, 0.65, 0.5, 0.1, 0.39, 0.45, 0.45,
)  # fmt: skip
_KNOTS = (0, 150, 400, 1000, 2000, 3500, 5500, 8000)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the voice network on a GPU.")
    parser.add_argument("pack", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=545)
    parser.add_argument("--steps", type=int, help="at most")
    parser.add_argument("--voices", type=int, default=48, help="a step, four clips of each")
    parser.add_argument("--alone", type=int, default=64, help="clips a step of anybody")
    parser.add_argument("--device", default="cuda")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    size = Size(given.seconds, given.steps or sys.maxsize, given.voices, given.alone)
    train(given.pack, given.out, size, torch.device(given.device))


class Size(NamedTuple):
    """How much: seconds and steps at most; voices of four clips, and single clips, a step."""

    seconds: float
    steps: int
    voices: int
    alone: int


# ---------------------------------------------------------------------------------------- teacher


class Teacher:
    """ECAPA-TDNN (Desplanques et al., Interspeech 2020), run from its weights by their names.

    SpeechBrain's need not be there, and precision is chosen: half on a GPU.
    """

    def __init__(self, pack: Path, device: torch.device) -> None:
        self._type = torch.float32 if device.type == "cpu" else torch.float16
        held = torch.load(pack / "teacher.pt", weights_only=True)
        single = {name: each.to(device, torch.float32) for name, each in held.items()}
        self._weights = {name: each.to(self._type) for name, each in single.items()}
        self._norms = {}
        for name in single:
            norm, _, last = name.rpartition(".")
            if last == "running_var":
                scale = single[f"{norm}.weight"] / (single[name] + 1e-5).sqrt()
                shift = single[f"{norm}.bias"] - single[f"{norm}.running_mean"] * scale
                self._norms[norm] = scale.to(self._type)[:, None], shift.to(self._type)[:, None]
        with np.load(pack / "arrays.npz") as arrays:
            self._window = torch.tensor(arrays["window"], device=device)
            self._bank = torch.tensor(arrays["bank"], device=device)

    def __call__(self, sound: Tensor) -> Tensor:
        """Sound, shape (b, n), to embeddings, shape (b, 192), of length 1."""
        x = self._layer(self._bands(sound), "blocks.0")
        outputs = []
        for block in (1, 2, 3):
            x = self._block(x, f"blocks.{block}", dilation=block + 1)
            outputs.append(x)
        x = self._layer(torch.cat(outputs, 1), "mfa")
        single = x.float()
        mean = single.mean(2, keepdim=True)
        deviation = ((single - mean) ** 2).mean(2, keepdim=True).clamp(min=1e-12).sqrt()
        weight, channels = self._weights["asp.tdnn.conv.conv.weight"], x.shape[1]
        around = functional.conv1d(
            torch.cat([mean, deviation], 1).to(self._type), weight[:, channels:]
        )
        bias = self._weights["asp.tdnn.conv.conv.bias"]
        attended = torch.relu(functional.conv1d(x, weight[:, :channels], bias) + around)
        scale, shift = self._norms["asp.tdnn.norm.norm"]
        attended = self._convolved(torch.tanh(attended * scale + shift), "asp.conv.conv")
        attention = torch.softmax(attended.float(), 2)
        mean = (attention * single).sum(2)
        deviation = (attention * (single - mean[:, :, None]) ** 2).sum(2).clamp(min=1e-12).sqrt()
        scale, shift = self._norms["asp_bn.norm"]
        pooled = torch.cat([mean, deviation], 1)[:, :, None] * scale.float() + shift.float()
        weight, bias = (self._weights[f"fc.conv.{name}"].float() for name in ("weight", "bias"))
        return functional.normalize(functional.conv1d(pooled, weight, bias)[:, :, 0])

    def _bands(self, sound: Tensor) -> Tensor:
        spectra = torch.stft(
            sound, 400, 160, 400, self._window, pad_mode="constant", return_complex=True
        )
        energy = _power(spectra).transpose(1, 2) @ self._bank
        decibels = 10 * torch.log10(energy.clamp(min=1e-10))
        decibels = torch.maximum(decibels, decibels.amax((1, 2), keepdim=True) - 80)
        return (decibels - decibels.mean(1, keepdim=True)).transpose(1, 2).to(self._type)

    def _block(self, x: Tensor, name: str, dilation: int) -> Tensor:
        pieces = self._layer(x, f"{name}.tdnn1").chunk(8, 1)
        made = [pieces[0]]
        for at, piece in enumerate(pieces[1:]):
            joined = piece + made[-1] if at else piece
            made.append(self._layer(joined, f"{name}.res2net_block.blocks.{at}", dilation))
        y = self._layer(torch.cat(made, 1), f"{name}.tdnn2")
        gate = y.float().mean(2, keepdim=True).to(self._type)
        gate = torch.relu(self._convolved(gate, f"{name}.se_block.conv1.conv"))
        return y * torch.sigmoid(self._convolved(gate, f"{name}.se_block.conv2.conv")) + x

    def _layer(self, x: Tensor, name: str, dilation: int = 1) -> Tensor:
        beyond = dilation * (self._weights[f"{name}.conv.conv.weight"].shape[2] - 1) // 2
        padded = functional.pad(x, (beyond, beyond), mode="reflect") if beyond else x
        scale, shift = self._norms[f"{name}.norm.norm"]
        return torch.relu(self._convolved(padded, f"{name}.conv.conv", dilation)) * scale + shift

    def _convolved(self, x: Tensor, name: str, dilation: int = 1) -> Tensor:
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        return functional.conv1d(x, weight, bias, dilation=dilation)


# ----------------------------------------------------------------------------------------- sounds


class Sounds:
    """Clips as tensors on a device, at any speed and with any formants.

    Args:
        pack: the folder.
        device: where they lie.

    Attributes:
        corpus, voice: shape (n,), of each clip; the voice is -1 where nobody is known.
    """

    def __init__(self, pack: Path, device: torch.device) -> None:
        with np.load(pack / "arrays.npz") as arrays:
            self.corpus: IntArray = arrays["corpus"]
            self.voice: IntArray = arrays["voice"]
            self._begin, self._samples = arrays["start"], arrays["samples"]
        self.device = device
        self._start = torch.tensor(self._begin, device=device)
        self._length = torch.tensor(self._samples, device=device)
        self._hann = torch.hann_window(1024, device=device)

    def __len__(self) -> int:
        return len(self.corpus)

    def place(self, clip: int) -> slice:
        """Where a clip lies among the samples of all."""
        return slice(self._begin[clip], self._begin[clip] + self._samples[clip])

    def changed(
        self, samples: Tensor, clips: IntArray, speeds: IntArray, warps: FloatArray
    ) -> Tensor:
        """Clips again and again until 4.5 s are full, as another voice would say them.

        Args:
            samples: int16, of all clips: as they are, or coded.
            clips: shape (4 b,).
            speeds: shape (b,), of four clips each: which of the speeds, or -1 for none.
            warps: shape (b,), by which formants go up.

        Returns:
            shape (4 b, n), float32 in -1 to 1.
        """
        index = torch.as_tensor(clips, device=self.device)
        spectra = torch.zeros(len(clips), _LONG // 2 + 1, dtype=torch.complex64, device=self.device)
        for block, speed in enumerate(speeds):
            # no more than four at once: a transform of each length is planned once
            rows = slice(_TOGETHER * block, _TOGETHER * (block + 1))
            long = _LONG if speed < 0 else round(_LONG * _SPEEDS[speed] / 240) * 240
            sound = self._repeated(samples, index[rows], long)
            found = torch.fft.rfft(sound)[:, : spectra.shape[1]] * (_LONG / long)
            spectra[rows, : found.shape[1]] = found
        return self._warped(torch.fft.irfft(spectra, _LONG), np.repeat(warps, _TOGETHER))

    def as_they_are(self, samples: Tensor, clips: IntArray) -> Tensor:
        """Clips, any number, again and again until 4.5 s are full."""
        return self._repeated(samples, torch.as_tensor(clips, device=self.device), _LONG)

    def _repeated(self, samples: Tensor, clips: Tensor, long: int) -> Tensor:
        at = torch.arange(long, device=self.device)[None] % self._length[clips, None]
        return samples[self._start[clips, None] + at].float() / 32768

    def _warped(self, sound: Tensor, warps: FloatArray) -> Tensor:
        """Envelopes of spectra (cepstra up to 2 ms) stretched, pitch unchanged."""
        spectra = torch.stft(sound, 1024, 256, 1024, self._hann, return_complex=True)
        level = torch.log(spectra.abs().clamp(min=1e-6))
        level = torch.maximum(level, level.amax((1, 2), keepdim=True) - 9)
        cepstra = torch.fft.irfft(level, dim=1)
        cepstra[:, 33:-32] = 0
        envelope = torch.fft.rfft(cepstra, dim=1).real
        factor = torch.tensor(warps, dtype=torch.float32, device=self.device)[:, None]
        place = torch.arange(513, device=self.device)[None] / factor
        below = place.floor().clamp(max=512).long()
        above, part = (below + 1).clamp(max=512), (place - below).clamp(0, 1)[:, :, None]
        low, high = (
            envelope.gather(1, each[:, :, None].expand_as(envelope)) for each in (below, above)
        )
        gain = torch.exp((low * (1 - part) + high * part - envelope).clamp(-2.5, 2.5))
        return torch.istft(spectra * gain, 1024, 256, 1024, self._hann, length=sound.shape[1])


def _crops(sound: Tensor, samples: int) -> Tensor:
    """A stretch of each, and what was said just before."""
    begin = torch.randint(_LONG, (len(sound), 1), device=sound.device)
    at = begin + torch.arange(_LEAD + samples, device=sound.device)
    return sound.gather(1, at % _LONG)


def bands(sound: Tensor) -> Tensor:
    """`monitor.networks.layers.log_mel`, of torch's."""
    hann = torch.tensor(window(), device=sound.device)
    frames = sound.unfold(1, WIDTH, HOP) * hann
    mel = torch.tensor(filters(BANDS), device=sound.device)
    return torch.log(_power(torch.fft.rfft(frames, FFT)) @ mel + FLOOR)


def _power(spectra: Tensor) -> Tensor:
    return spectra.real**2 + spectra.imag**2


# ------------------------------------------------------------------------------------- conditions


class Rooms:
    """What happens to many sounds on their way: `recipes.voice.conditions`, for all at once.

    Args:
        pack: the folder.
        noise: recordings, shape (k, samples).
        device: where all is.
    """

    def __init__(self, pack: Path, noise: FloatArray, device: torch.device) -> None:
        with np.load(pack / "arrays.npz") as arrays:
            self._rooms = torch.tensor(arrays["rooms"], device=device).float()
        self._noise = torch.tensor(noise, device=device)
        self._knots = torch.tensor(_KNOTS, dtype=torch.float32, device=device)
        self._spectra = cache(lambda size: torch.fft.rfft(self._rooms, size))

    def __call__(self, sound: Tensor, coded: Tensor, clean: Tensor) -> Tensor:
        """Sounds with a lead, shape (b, lead + n), to what is heard, shape (b, n).

        Args:
            sound: of several people, who are each other's babble.
            coded: shape (b,), which went through a codec already: an equaliser and a level remain.
            clean: shape (b,), to which nothing happens.
        """
        count, samples = len(sound), sound.shape[1] - _LEAD
        size = sound.shape[1] + ROOM_SAMPLES
        size += -size % 240
        hertz = torch.linspace(0, RATE / 2, size // 2 + 1, device=sound.device)
        spectra, plain = torch.fft.rfft(sound, size), coded | clean
        noise = self._noise_spectra(sound, spectra, size)
        room = self._spectra(size)[torch.randint(len(self._rooms), (count,), device=sound.device)]
        spectra = torch.where(_some(sound, _ROOM, plain), spectra * room, spectra)
        ratio = (_mean_power(spectra) / _mean_power(noise)).sqrt()
        ratio = ratio * 10 ** (-30 * _random(sound, 1) / 20)
        spectra = spectra + noise * ratio * _some(sound, _NOISE, plain)
        gains = torch.randn(count, len(_KNOTS), device=sound.device) * (1 + 4 * _random(sound, 1))
        without = (_random(sound) < 0.3) * (5 + 25 * _random(sound))
        gains[:, 0] -= without
        gains = gains * _some(sound, _EQUALISED, clean)
        made = torch.fft.irfft(spectra * 10 ** (self._between(gains, hertz) / 20), size)
        made = made[:, _LEAD : _LEAD + samples]
        top = made.abs().amax(1, keepdim=True) + 1e-6
        most = top * 10 ** (-(3 + 15 * _random(sound, 1)) / 20)
        top = torch.where(_some(sound, _CLIPPED, clean), most, top)
        made = torch.maximum(torch.minimum(made, top), -top)
        level = 10 ** (-(0.5 + 24.5 * _random(sound, 1)) / 20) / top
        return self._line(torch.where(clean[:, None], made, made * level), plain)

    def _noise_spectra(self, sound: Tensor, spectra: Tensor, size: int) -> Tensor:
        """One to eight of the others, something recorded, or coloured noise."""
        count, kind = len(sound), _random(sound, 1)
        alike = spectra / _mean_power(spectra).sqrt()
        how_many = torch.tensor([1, 3, 4, 6, 8], device=sound.device)
        crowd = how_many[torch.randint(5, (count, 1), device=sound.device)]
        babble = torch.zeros_like(spectra)
        for voice in range(8):
            who = torch.randint(count, (count,), device=sound.device)
            babble += (voice < crowd) * alike[who]
        which = torch.randint(len(self._noise), (count, 1), device=sound.device)
        at = torch.randint(NOISE_SAMPLES, (count, 1), device=sound.device)
        at = (at + torch.arange(sound.shape[1], device=sound.device)) % NOISE_SAMPLES
        recorded = self._noise[which, at].float()
        recorded = torch.fft.rfft(recorded + 1e-5 * torch.randn_like(recorded), size)
        steps = torch.arange(1, size // 2 + 2, device=sound.device)
        coloured = torch.randn_like(spectra) * steps ** (-1.2 * _random(sound, 1))
        return torch.where(kind < 0.4, babble, torch.where(kind < 0.78, recorded, coloured))

    def _between(self, gains: Tensor, hertz: Tensor) -> Tensor:
        """Gains at the knots, shape (b, 8), to gains at each frequency."""
        after = torch.searchsorted(self._knots, hertz).clamp(1, len(_KNOTS) - 1)
        low, high = self._knots[after - 1], self._knots[after]
        part = (hertz - low) / (high - low)
        return gains[:, after - 1] * (1 - part) + gains[:, after] * part

    @staticmethod
    def _line(sound: Tensor, plain: Tensor) -> Tensor:
        """Some by telephone, with or without mu-law; some through a low pass."""
        samples, kind = sound.shape[1], _random(sound, 1)
        spectra = torch.fft.rfft(sound)
        hertz = torch.linspace(0, RATE / 2, samples // 2 + 1, device=sound.device)
        half = samples // 4 + 1
        lowest, highest = 150 + 250 * _random(sound, 1), 2900 + 900 * _random(sound, 1)
        band = ((hertz[:half] - lowest) / 60).clamp(0, 1)
        band = band * ((highest - hertz[:half]) / 150).clamp(0, 1)
        narrow = torch.fft.irfft(spectra[:, :half] * band, samples // 2) / 2
        code = torch.sign(narrow) * torch.log1p(255 * narrow.abs().clamp(max=1)) / math.log(256)
        code = torch.round(127 * code) / 127
        companded = torch.sign(code) * (256 ** code.abs() - 1) / 255
        narrow = torch.where(_random(sound, 1) < _COMPANDED, companded, narrow)
        narrow_spectra = functional.pad(torch.fft.rfft(narrow) * 2, (0, samples // 2 + 1 - half))
        by_telephone = torch.fft.irfft(narrow_spectra, samples)
        edge = 3500 + 4000 * _random(sound, 1)
        dull = torch.fft.irfft(spectra * ((edge - hertz) / 150).clamp(0, 1), samples)
        heard_so = torch.where(kind < _TELEPHONE, by_telephone, dull)
        return torch.where((kind < _LOW_PASS) & ~plain[:, None], heard_so, sound)


def _random(like: Tensor, *shape: int) -> Tensor:
    return torch.rand(len(like), *shape, device=like.device)


def _some(like: Tensor, share: float, never: Tensor) -> Tensor:
    """A share of the rows, shape (b, 1)."""
    return ((_random(like) < share) & ~never)[:, None]


def _mean_power(spectra: Tensor) -> Tensor:
    return _power(spectra).mean(1, keepdim=True) + 1e-9


def masked(drawn: Tensor) -> Tensor:
    """Some crops lose a stripe of bands, some a stretch of time, as `fine_tuning.masked` has it."""
    mean = drawn.mean(1, keepdim=True)
    for axis, most in ((2, 8), (1, round(0.15 * drawn.shape[1]))):
        long, device = drawn.shape[axis], drawn.device
        wide = torch.randint(1, most + 1, (len(drawn), 1), device=device)
        first = (_random(drawn, 1) * (long - wide + 1)).long()
        at = torch.arange(long, device=device)[None]
        lost = (at >= first) & (at < first + wide) & (_random(drawn, 1) < 0.3)
        drawn = torch.where(lost[:, None, :] if axis == 2 else lost[:, :, None], mean, drawn)
    return drawn


# --------------------------------------------------------------------------------------- training


class Draw:
    """Which clips a step takes, and how they are changed.

    Of the voices known four clips each, often heard ones more often; then clips of anybody.
    """

    def __init__(self, sounds: Sounds, size: Size) -> None:
        self._rng = np.random.default_rng(int(time.time()))
        self._size, self._count = size, len(sounds)
        voices, counts = np.unique(sounds.voice, return_counts=True)
        known = [(v, c) for v, c in zip(voices, counts, strict=True) if v >= 0 and c > 1]
        self._of = [np.flatnonzero(sounds.voice == voice) for voice, _ in known]
        often = np.sqrt([min(12, count) for _, count in known])
        self._often = often / often.sum()

    def step(self) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
        """Clips, a group for each, and for every four of them a speed and a warp."""
        size, rng = self._size, self._rng
        drawn = rng.choice(len(self._of), size.voices, len(self._of) < size.voices, self._often)
        clips = [
            rng.choice(self._of[each], _TOGETHER, len(self._of[each]) < _TOGETHER) for each in drawn
        ]
        alone = rng.choice(self._count, size.alone, replace=False)
        groups = np.repeat(np.arange(size.voices), _TOGETHER)
        groups = np.concatenate([groups, size.voices + np.arange(size.alone)])
        return np.concatenate([*clips, alone]), groups, *self.changes(len(groups) // _TOGETHER)

    def changes(self, count: int) -> tuple[IntArray, FloatArray]:
        """Speeds and warps."""
        rng = self._rng
        speeds = np.where(rng.random(count) < _AS_IT_IS, -1, rng.integers(len(_SPEEDS), size=count))
        warps = np.exp(rng.normal(0, _FORMANTS, count).clip(-_MOST_FORMANTS, _MOST_FORMANTS))
        return speeds, np.where(rng.random(count) < _FORMANTS_TOO, warps, 1.0)

    def frames(self) -> int:
        """Of the crops of a step."""
        return int(self._rng.choice(_FRAMES, p=_OF_FRAMES))

    def quarter(self, blocks: int) -> IntArray:
        """Some of the fours."""
        return self._rng.choice(blocks, max(1, blocks // 4), replace=False)


class Targets:
    """What clips are to be embedded as: the teacher's answers, centred by corpus."""

    def __init__(self, teacher: Teacher, sounds: Sounds, samples: Tensor) -> None:
        self._teacher, self._corpus = teacher, torch.tensor(sounds.corpus, device=sounds.device)
        self._mean = torch.zeros(int(sounds.corpus.max()) + 1, 192, device=sounds.device)
        rng = np.random.default_rng(0)
        for corpus in np.unique(sounds.corpus):
            mine = rng.permutation(np.flatnonzero(sounds.corpus == corpus))[:1500]
            said = [
                teacher(sounds.as_they_are(samples, mine[at : at + 240]))
                for at in range(0, len(mine), 240)
            ]
            self._mean[corpus] = torch.cat(said).mean(0)

    def __call__(self, sound: Tensor, clips: IntArray, groups: IntArray) -> Tensor:
        """Shape (b, 192), of length 1."""
        corpus = self._corpus[torch.as_tensor(clips, device=sound.device)]
        said = self._teacher(sound)
        for each in corpus.unique():
            self._mean[each] = self._mean[each].lerp(said[corpus == each].mean(0), 0.02)
        own = functional.normalize(said - self._mean[corpus])
        group = torch.as_tensor(groups, device=sound.device)
        total = torch.zeros(int(groups.max()) + 1, own.shape[1], device=sound.device)
        return functional.normalize(
            own + functional.normalize(total.index_add_(0, group, own))[group]
        )


class Anchors:
    """The targets of the newest clips, among which the loss places each crop."""

    def __init__(self, device: torch.device) -> None:
        self._held = torch.zeros(_QUEUE, 192, device=device)
        self._place = self._full = 0

    def add(self, meant: Tensor) -> None:
        """Shape (b, 192): they take the place of the oldest."""
        at = torch.arange(self._place, self._place + len(meant), device=meant.device) % _QUEUE
        self._held[at] = meant
        self._place = (self._place + len(meant)) % _QUEUE
        self._full = min(_QUEUE, self._full + len(meant))

    def some(self) -> Tensor:
        """Shape (a, 192)."""
        count = min(_ANCHORS, self._full)
        return self._held[torch.randint(self._full, (count,), device=self._held.device)]


class Steps:
    """What each training step shows the student, and the embeddings that it is to give.

    Args:
        pack: the folder.
        size: of a step.
        device: where all is.
    """

    def __init__(self, pack: Path, size: Size, device: torch.device) -> None:
        self._own, noise = _decoded(pack)
        self._sounds, self._device = Sounds(pack, device), device
        count = max(1, cores() - 2)
        self._coders = multiprocessing.get_context("spawn").Pool(count, _begin_coding, (pack,))
        self._coded = self._coders.map_async(_coded, range(len(self._sounds)), 16)
        self._samples = torch.from_numpy(self._own).to(device)
        self._through_codec: Tensor | None = None
        self._rooms, self._draw = Rooms(pack, noise, device), Draw(self._sounds, size)
        self._targets = Targets(Teacher(pack, device), self._sounds, self._samples)

    @property
    def codec(self) -> Tensor | None:
        """Samples of all clips through codecs, once they are made."""
        if self._through_codec is None and self._coded.ready():
            through = np.zeros_like(self._own)
            for clip, each in enumerate(self._coded.get()):
                through[self._sounds.place(clip)] = each
            self._through_codec = torch.from_numpy(through).to(self._device)
        return self._through_codec

    def next(self) -> tuple[Tensor, Tensor]:
        """Log mel bands of two crops a clip, shape (2 b, frames, bands), and targets, (b, 192)."""
        clips, groups, speeds, warps = self._draw.step()
        with torch.no_grad():
            sound = self._sounds.changed(self._samples, clips, speeds, warps)
            meant, count = self._targets(sound, clips, groups), len(clips)
            crop = WIDTH + HOP * (self._draw.frames() - 1)
            views = torch.cat([_crops(sound, crop), _crops(sound, crop)])
            coded = torch.zeros(2 * count, dtype=torch.bool, device=self._device)
            if self.codec is not None:
                some = self._draw.quarter(len(speeds))
                rows = (_TOGETHER * some[:, None] + np.arange(_TOGETHER)).ravel()
                other = self._sounds.changed(self.codec, clips[rows], speeds[some], warps[some])
                second = torch.as_tensor(rows, device=self._device) + count
                views[second], coded[second] = _crops(other, crop), True
            clean = torch.rand(2 * count, device=self._device) < CLEAN
            clean[count:] = False
            return masked(bands(self._rooms(views, coded, clean))), meant

    def close(self) -> None:
        """Stop the processes that code clips."""
        self._coders.terminate()


def train(pack: Path, out: Path, size: Size, device: torch.device) -> list[float]:
    """Train until the seconds or steps are over; the loss of every step."""
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    steps, anchors = Steps(pack, size, device), Anchors(device)
    network = student().to(device).to(memory_format=torch.channels_last)
    begun = torch.load(pack / "begin.pt", weights_only=True)
    network.load_state_dict({name: each.float() for name, each in begun.items()})
    network.train()
    optimizer = torch.optim.AdamW(network.parameters(), lr=_HIGHEST, weight_decay=_DECAY)
    losses: list[float] = []
    shown = 0
    began = written = time.monotonic()
    while (spent := time.monotonic() - began) < size.seconds and len(losses) < size.steps:
        done = max(spent / size.seconds, len(losses) / size.steps)
        falling = _LOWEST + (_HIGHEST - _LOWEST) * 0.5 * (1 + math.cos(math.pi * done))
        for group in optimizer.param_groups:
            group["lr"] = falling * min(1, (len(losses) + 1) / _WARM)
        drawn, meant = steps.next()
        anchors.add(meant)
        with torch.autocast(device.type, torch.bfloat16):
            said = network(drawn)
        said = functional.normalize(said.float())
        total, alike = loss(said, torch.cat([meant, meant]), anchors.some())
        optimizer.zero_grad(set_to_none=True)
        total.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 5.0)
        optimizer.step()
        losses.append(total.item())
        shown += len(drawn)
        if time.monotonic() - written > 30:
            written = time.monotonic()
            _kept(out, network, len(losses), written - began, shown)
            log(out, {"step": len(losses), "loss": losses[-1], "like": alike.item()})
            print(f"{spent:.0f} s, step {len(losses)}, {losses[-1]:.3f} {alike.item():.3f}",
                  file=sys.stderr, flush=True)  # fmt: skip
    steps.close()
    _kept(out, network, len(losses), time.monotonic() - began, shown)
    return losses


def _kept(out: Path, network: nn.Module, step: int, seconds: float, views: int) -> None:
    state = {name: each.detach().cpu() for name, each in network.state_dict().items()}
    keep(out, {"student": state, "step": step, "seconds": seconds, "views": views})


# ------------------------------------------------------------------------------- decoding, coding


def _decoded(pack: Path) -> tuple[AnyArray, FloatArray]:
    """All samples of the clips, int16, also in a file for who codes them; and the noise."""
    with multiprocessing.get_context("spawn").Pool(cores()) as pool:
        pieces = pool.map(_read, heard(pack, "clips-"))
    total = PIECE * (len(pieces) - 1) + len(pieces[-1])
    own = np.lib.format.open_memmap(pack / "clips.npy", "w+", np.int16, (total,))
    (pack / "clips.npy").chmod(0o600)
    for number, piece in enumerate(pieces):
        own[PIECE * number : PIECE * number + len(piece)] = piece
    noise = _read(heard(pack, "noise")[0])
    noise = noise[: len(noise) // NOISE_SAMPLES * NOISE_SAMPLES].reshape(-1, NOISE_SAMPLES)
    np.save(pack / "noise.npy", (noise / 32768).astype(np.float16))
    return np.array(own), np.load(pack / "noise.npy")


def _read(path: Path) -> AnyArray:
    sound, rate = soundfile.read(path, dtype="int16")
    if rate != RATE:
        raise ValueError(f"{path.name}: {rate} Hz")
    return np.asarray(sound)


_coder: Conditions
_own: Sounds
_samples: AnyArray


def _begin_coding(pack: Path) -> None:
    global _coder, _own, _samples
    _own, _samples = Sounds(pack, torch.device("cpu")), np.load(pack / "clips.npy", mmap_mode="r")
    with np.load(pack / "arrays.npz") as arrays:
        rooms = arrays["rooms"].astype(np.float32)
    noise = np.load(pack / "noise.npy").astype(np.float32)
    _coder = Conditions(list(noise), list(rooms), lambda rng: _sound(int(rng.integers(len(_own)))))


def _sound(clip: int) -> FloatArray:
    return np.asarray(_samples[_own.place(clip)], np.float32) / 32768


def _coded(clip: int) -> AnyArray:
    """A clip in a room or in noise, then through a codec: int16, as long as before."""
    heard_so = _coder.coded(_sound(clip), np.random.default_rng([7, clip]))
    return np.asarray((heard_so * 32767).clip(-32768, 32767), np.int16)


if __name__ == "__main__":
    main()
