"""The networks behind ``phones``: phone recogniser, units and the likeliest sequence."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

import monitor.networks.layers as nn
from monitor.errors import UsageError
from monitor.lazy import once
from monitor.types import AnyArray, FloatArray, IntArray

_LEAST = -7.0  # log posterior below which a phone does not begin in a frame
_BEHIND = 15.0  # nats behind the best path at which a path is not extended
_NEVER = np.float32(-1e9)


@dataclass(frozen=True, slots=True)
class Trigram:
    """Log probabilities of each of n classes after two others, nats, shape (n, n, n).

    Class 0 is the silence before the first and after the last. ``weight`` is that of these
    logarithms relative to log posteriors. Each phone adds ``bonus`` nats.
    """

    logs: FloatArray
    weight: float
    bonus: float


def likeliest(log_posteriors: FloatArray, trigram: Trigram) -> list[tuple[int, int]]:
    """Find the likeliest path through a stretch: its classes, and the first frame of each.

    Viterbi's search has the last two phones as states. It combines the posteriors with a trigram of
    phones (shallow fusion, as in A. Graves, N. Jaitly, "Towards end-to-end speech recognition with
    recurrent neural networks", ICML 2014). A path's score sums its log posteriors and, per phone,
    `Trigram.weight` times the trigram's logarithm plus `Trigram.bonus`. Class 0 of
    ``log_posteriors``, (k, n), is the blank of CTC (Graves et al., ICML 2006).
    """
    classes = log_posteriors.shape[1]
    steps = np.float32(trigram.weight) * trigram.logs.astype(np.float32)
    ending, steps = steps[:, :, 0], steps + np.float32(trigram.bonus)
    # scores of paths that end in [last but one, last], with a blank or within the last phone
    blank = np.full((classes, classes), _NEVER)
    within = blank.copy()
    blank[0, 0] = 0
    # the path itself: an index of `steps_taken`, where each step has the index of the previous one
    to_blank, to_within = np.full((2, classes, classes), -1)
    steps_taken: list[tuple[int, int, int]] = []
    indices = np.arange(classes)
    for frame, log_posterior in enumerate(np.asarray(log_posteriors, np.float32)):
        better = blank >= within
        best, to_best = np.where(better, blank, within), np.where(better, to_blank, to_within)
        worst = best.max() - _BEHIND
        stay, to_stay = within + log_posterior, to_within.copy()
        for phone in (np.flatnonzero(log_posterior[1:] > _LEAST) + 1).tolist():
            begun = best + steps[:, :, phone]
            # a repeated phone needs a blank in between
            begun[:, phone] = blank[:, phone] + steps[:, phone, phone]
            first = begun.argmax(axis=0)
            score = begun[first, indices] + log_posterior[phone]
            for last in np.flatnonzero((score > stay[:, phone]) & (score > worst)):
                before = to_blank if last == phone else to_best
                stay[last, phone], to_stay[last, phone] = score[last], len(steps_taken)
                steps_taken.append((int(before[first[last], last]), phone, frame))
        blank, to_blank, within, to_within = best + log_posterior[0], to_best, stay, to_stay
    score = np.maximum(blank, within) + ending
    row = int(np.where(blank >= within, to_blank, to_within).flat[score.argmax()])
    phones: list[tuple[int, int]] = []
    while row >= 0:
        row, phone, frame = steps_taken[row]
        phones.append((phone, frame))
    return phones[::-1]


SHA256 = "9d8d2be6e14ec5480b2d7b29728d6ee80ccfbd93c0aba4df85f8e24fd1873907"  # of phones.npz
_NAMES = """
AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH UH UW V W Y Z ZH
"""
PHONES = tuple(_NAMES.split())
"""ARPAbet without stress: 39 phones. Phone i is class i + 1 of the network, 0 the blank."""
_FRAME = 2 * nn.HOP


class Token(NamedTuple):
    """A phone, and its first and last CTC frames."""

    phone: str
    first: int
    last: int


class PhoneNetwork(nn.StoredNetwork):
    """Recogniser of 39 phones of English (`recognise_phones`). The feature counts units instead.

    It has separable convolutions at 50 frames per second, and at 25 in the middle. CTC (Graves et
    al., ICML 2006) recognises 39 phones, with a trigram. `recipes.phones` trained and folded it.
    Frame i covers samples [320 i, 320 (i + 1)), and depends on ``look_ahead`` seconds after them. A
    stream also waits for whole blocks of 0.2 s.
    """

    of, classes, frame_seconds = "phones'", PHONES, _FRAME / nn.RATE

    def _fit(self, weights: Mapping[str, AnyArray]) -> None:
        self.usual = np.asarray(weights["usual"], np.float32)
        self.stem, self.down, self.up, self.head = (
            nn.dense(weights, name) for name in ("stem", "down", "up", "head")
        )
        stages = [nn.Separable.each_of(weights, stage) for stage in ("early", "middle", "late")]
        self.early, self.middle, self.late = stages
        weight, bonus = weights["trigram.use"]
        self.trigram = Trigram(weights["trigram"], float(weight), float(bonus))
        if self.trigram.logs.shape != 3 * (1 + len(PHONES),):
            raise ValueError("a trigram of other phones")
        early, middle, late = (sum(block.after for block in blocks) for blocks in stages)
        frames = early + 1 + 2 * middle + late
        self.look_ahead = (frames * _FRAME + nn.STEM // 2 * nn.HOP + nn.WIDTH - _FRAME) / nn.RATE
        output = self.stream().push(np.zeros(8 * nn.BLOCK, np.float32))
        if not len(output) or output.shape[1] != 1 + len(PHONES):
            raise ValueError("other phones")

    def stream(self) -> PhoneStream:
        """Start a stream."""
        return PhoneStream(self)

    def spoken(self, log_posteriors: FloatArray) -> list[Token]:
        """Decode the phones of a stretch of speech from log posteriors, (k, 40)."""
        if log_posteriors.ndim != 2 or log_posteriors.shape[1] != 1 + len(PHONES):
            raise UsageError(f"log posteriors have the shape (k, {1 + len(PHONES)})")
        path = likeliest(log_posteriors, self.trigram)
        following = [*path[1:], (0, len(log_posteriors))]
        best = log_posteriors.argmax(axis=1)
        tokens = []
        for (phone, first), (_, end) in zip(path, following, strict=False):
            others = np.flatnonzero(best[first:end] != phone)
            last = first + int(others[0]) - 1 if len(others) else end - 1
            tokens.append(Token(PHONES[phone - 1], first, max(first, last)))
        return tokens


@once
def shipped_recogniser() -> PhoneNetwork:
    """Load the network that ships with the package, once."""
    return PhoneNetwork(*nn.shipped_weights("phones.npz", SHA256))


class PhoneStream(nn.SoundStream):
    """Samples to the natural logarithm of the probability of each phone, shape (k, 40), float32.

    Class 0 is the blank.
    """

    def __init__(self, network: PhoneNetwork) -> None:
        self._network = network
        super().__init__(network.usual, nn.BANDS, 1 + len(PHONES), (_FRAME, 1))

    def _begin(self) -> int:
        super()._begin()
        network = self._network
        self._early = nn.Tapes(network.early, nn.STEM_LATE)
        early = self._early.late
        if early % 2:
            raise ValueError("its delay splits pairs of frames")
        self._middle = nn.Tapes(network.middle, early // 2)
        middle = 2 * self._middle.late
        self._shortcut = nn.FrameBuffer(middle - early, network.early[-1].channels, early)
        self._late = nn.Tapes(network.late, middle)
        return self._late.late

    def _block(self, block: FloatArray) -> FloatArray:
        network = self._network
        x = self._early(self._stem(self._bands(block)[1], network.stem))
        shortcut = self._shortcut(x)[: nn.ROWS]
        x = nn.relu(nn.linear(x.reshape(nn.ROWS // 2, -1), network.down))
        x = self._middle(x)
        x = nn.relu(nn.linear(x, network.up).reshape(nn.ROWS, -1) + shortcut)
        return np.asarray(nn.log_softmax(nn.linear(self._late(x), network.head)))


UNITS_SHA256 = "1e89f192490800e5f6da9a445a57c71eee4e969c2a0c23601467cad7efb734d0"  # of units.npz
UNITS_FLOOR = 1e-3
"""Energy added to every band, so that faint noise gives the units of silence
(benchmarks/results/levels.md)."""
UNITS_BLOCK = 640  # samples, 0.04 s, computed at once for any division of a stream
_UNITS_ROWS = UNITS_BLOCK // _FRAME
_SILENCE = np.float32(np.log(nn.FLOOR))


class UnitNetwork(nn.StoredNetwork):
    """Network of the feature ``phones``: one of 256 codes for each 20 ms of a voice.

    It is the first block of a phone recogniser that `recipes.phones` trained. Its output is
    quantised to codes by k-means, like the units of HuBERT (Hsu et al., TASLP 2021). Frame i covers
    samples [320 i, 320 (i + 1)).
    """

    of, frame_seconds = "units'", _FRAME / nn.RATE

    @property
    def mark(self) -> str:
        """Mark of its units in templates and frames: a hash of the weights and the floor."""
        return hashlib.sha256(f"{self.sha256} floor {UNITS_FLOOR:g}".encode()).hexdigest()

    def _fit(self, weights: Mapping[str, AnyArray]) -> None:
        self.stem = nn.dense(weights, "stem")
        self.layer = nn.Separable.named(weights, "layer", weights["reach"])
        codes = np.asarray(weights["codebook"], np.float32)
        self.size = len(codes)
        self._codes, self._lengths = np.ascontiguousarray(codes.T), (codes * codes).sum(axis=1)
        self.look_ahead = (  # seconds of audio after its own that a frame depends on
            (self.layer.after - 1) * _FRAME + nn.STEM // 2 * nn.HOP + nn.WIDTH
        ) / nn.RATE
        self.late = self.layer.after + nn.STEM_LATE  # delay in frames, before the end of a block
        # earlier samples change nothing, to the last bit
        reach = self.layer.held * _FRAME + _FRAME + nn.STEM * nn.HOP + _FRAME
        self.memory = (-(-reach // UNITS_BLOCK) + 1) * UNITS_BLOCK
        if not self.stream().push(np.zeros(8 * UNITS_BLOCK, np.float32)).size:
            raise ValueError("no units")

    def stream(self) -> UnitStream:
        """Start a stream."""
        return UnitStream(self)

    def code(self, hidden: FloatArray) -> IntArray:
        """Find the nearest code of each row of the layer: shape (k,)."""
        distances = self._lengths - 2 * nn.product(hidden, self._codes, _UNITS_ROWS)
        return np.asarray(distances.argmin(axis=1), np.int64)


@once
def shipped_units() -> UnitNetwork:
    """Load the network that ships with the package, once."""
    return UnitNetwork(*nn.shipped_weights("units.npz", UNITS_SHA256))


class UnitStream(nn.BlockStream):
    """Samples at 16 kHz to codes from 0, shape (k,), int64, with blocks in one batch."""

    def __init__(self, network: UnitNetwork) -> None:
        self._network = network
        super().__init__(np.zeros(UNITS_BLOCK, np.float32), np.empty(0, np.int64), (_FRAME, 1))

    def _begin(self) -> int:
        layer = self._network.layer
        self._sound, self._bands = (
            nn.FrameBuffer(_FRAME, 1, 0),
            nn.FrameBuffer(nn.STEM - 1, nn.BANDS, nn.STEM_LATE),
        )
        self._rows = nn.FrameBuffer(layer.held, layer.channels, nn.STEM_LATE)
        return self._network.late

    def _through(self, blocks: FloatArray) -> IntArray:
        network = self._network
        sound = self._sound(blocks.reshape(-1, 1))[:, 0]
        windows = sliding_window_view(sound, _FRAME + UNITS_BLOCK)[::UNITS_BLOCK]
        energies = nn.log_mel(windows, floor=UNITS_FLOOR)
        bands = self._bands((energies - _SILENCE).reshape(-1, nn.BANDS))
        mels = sliding_window_view(bands.reshape(-1), nn.STEM * nn.BANDS)[:: 2 * nn.BANDS]
        x = nn.product(mels[: len(blocks) * _UNITS_ROWS], network.stem[0], _UNITS_ROWS)
        x = nn.relu(np.add(x, network.stem[1], out=x))
        return network.code(network.layer(self._rows(x), _UNITS_ROWS))
