"""The recogniser of 39 phones of English (`said_phones`); it is not the network of the feature.

The feature ``phones`` counts the units of `monitor.networks.units`. The recogniser streams,
by numpy alone; `recipes.phones` trained and folded it: separable convolutions at 50 frames a
second, in the middle at 25, causal but for a stated look-ahead; CTC (Graves et al., ICML 2006) on
39 phones, and a trigram of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.special import log_softmax

from monitor.errors import StoreError, UsageError
from monitor.networks.blocks import WholeBlocks
from monitor.networks.centre import Centre
from monitor.networks.likeliest import Trigram, likeliest
from monitor.networks.mel import BANDS, HOP, RATE, WIDTH, log_mel
from monitor.networks.separable import Separable, dense, relu
from monitor.networks.tape import Tape, Tapes
from monitor.networks.weights import read_weights, shipped_weights
from monitor.types import AnyArray, FloatArray

__all__ = [
    "BLOCK",
    "PHONES",
    "SHA256",
    "PhoneNetwork",
    "PhoneStream",
    "Token",
    "shipped",
    "tokens",
]

SHA256 = "9d8d2be6e14ec5480b2d7b29728d6ee80ccfbd93c0aba4df85f8e24fd1873907"
"""Of phones.npz beside this file."""
_NAMES = """
AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH UH UW V W Y Z ZH
"""
PHONES = tuple(_NAMES.split())
"""ARPAbet without stress: 39 phones. Phone i is class i + 1 of the network, 0 the blank."""
BLOCK = 3200
"""Samples that are computed at once, 0.2 s, however the stream is cut: sums of floats depend on
the shapes of what is summed."""
_FRAME = 2 * HOP
_ROWS = BLOCK // _FRAME
_SOUND = 2 * HOP  # samples of before a block that its first two mel frames begin in
_STEM = 5  # mel frames that a frame is made of


class Token(NamedTuple):
    """A phone, and the frames in which CTC says it: the first and the last."""

    phone: str
    first: int
    last: int


def tokens(log_posteriors: FloatArray) -> list[Token]:
    """The phones of a stretch of speech: the best path, repetitions and blanks taken out.

    Args:
        log_posteriors: shape (k, 40), as `PhoneStream` gives them.

    Raises:
        UsageError: another shape.

    Example:
        >>> heard = np.full((5, 40), -9.0)
        >>> heard[range(5), [0, 29, 29, 0, 18]] = 0
        >>> [tuple(token) for token in tokens(heard)]
        [('S', 1, 2), ('IY', 4, 4)]
    """
    _refuse_others(log_posteriors)
    best = log_posteriors.argmax(axis=1)
    first = np.flatnonzero(np.diff(best, prepend=-1))
    last = np.append(first, len(best))[1:] - 1
    return [
        Token(PHONES[best[a] - 1], int(a), int(b))
        for a, b in zip(first, last, strict=True)
        if best[a]
    ]


class PhoneNetwork:
    """The weights; a stream of its own for each voice that is heard.

    Args:
        weights: arrays by name, as `recipes.phones.export` writes them.
        sha256: of the file that they come from.

    Attributes:
        classes: names of the 39 phones.
        trigram: how likely they follow each other.
        frame_seconds: from frame to frame; frame i covers samples [320 i, 320 (i + 1)).
        look_ahead: seconds of audio after its own that a frame depends on; besides, a stream
            waits for whole blocks of 0.2 s.

    Raises:
        StoreError: they are of another network.
    """

    frame_seconds = _FRAME / RATE
    classes = PHONES

    def __init__(self, weights: Mapping[str, AnyArray], sha256: str = "") -> None:
        self.sha256 = sha256
        try:
            self.usual = np.asarray(weights["usual"], np.float32)
            self.stem, self.down, self.up, self.head = (
                dense(weights, name) for name in ("stem", "down", "up", "head")
            )
            self.early, self.middle, self.late = (
                [
                    Separable.named(weights, f"{part}.{i}", reach)
                    for i, reach in enumerate(weights[f"{part}.reach"])
                ]
                for part in ("early", "middle", "late")
            )
            weight, bonus = weights["trigram.use"]
            self.trigram = Trigram(weights["trigram"], float(weight), float(bonus))
            if self.trigram.logs.shape != 3 * (1 + len(PHONES),):
                raise ValueError("other phones follow each other")
            early, middle, late = (
                sum(block.after for block in blocks)
                for blocks in (self.early, self.middle, self.late)
            )
            frames = early + 1 + 2 * middle + late
            self.look_ahead = (frames * _FRAME + _STEM // 2 * HOP + WIDTH - _FRAME) / RATE
            heard = self.stream().push(np.zeros(8 * BLOCK, np.float32))
            if not len(heard) or heard.shape[1] != 1 + len(PHONES):
                raise ValueError("other phones")
        except (KeyError, ValueError, IndexError, TypeError, AttributeError) as error:
            raise StoreError(f"weights of another network than phones' ({error})") from None

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a file of weights.

        Raises:
            StoreError: it cannot be read, or holds something else.
        """
        return cls(*read_weights(path))

    def stream(self) -> PhoneStream:
        """Begin to listen."""
        return PhoneStream(self)

    def spoken(self, log_posteriors: FloatArray) -> list[Token]:
        """The phones of a stretch of speech, as one follows the other in English.

        Args:
            log_posteriors: shape (k, 40), as `PhoneStream` gives them.

        Raises:
            UsageError: another shape.
        """
        _refuse_others(log_posteriors)
        found = likeliest(log_posteriors, self.trigram)
        next_ones = [*found[1:], (0, len(log_posteriors))]
        best = log_posteriors.argmax(axis=1)
        made = []
        for (phone, first), (_, end) in zip(found, next_ones, strict=False):
            others = np.flatnonzero(best[first:end] != phone)
            last = first + int(others[0]) - 1 if len(others) else end - 1
            made.append(Token(PHONES[phone - 1], first, max(first, last)))
        return made


@cache
def shipped() -> PhoneNetwork:
    """The network that ships with the package, loaded once.

    Raises:
        StoreError: its file is missing or damaged.
    """
    return PhoneNetwork(*shipped_weights(Path(__file__).with_suffix(".npz"), SHA256))


class PhoneStream:
    """One stream of samples through a network.

    How the samples are cut into pushes changes nothing, to the last bit.
    """

    def __init__(self, network: PhoneNetwork) -> None:
        self._network = network
        self.reset()

    def reset(self) -> None:
        """Forget all that was heard: the next sample is the first."""
        network = self._network
        self._centre, self._begun = Centre(network.usual), False
        self._sound, self._bands = Tape(_SOUND, 1, 0), Tape(_STEM - 1, BANDS, 2)
        self._early = Tapes(network.early, 2)
        early = self._early.late
        if early % 2:
            raise ValueError("pairs of frames are torn apart")
        self._middle = Tapes(network.middle, early // 2)
        middle = 2 * self._middle.late
        self._shortcut = Tape(middle - early, network.early[-1].channels, early)
        self._late = Tapes(network.late, middle)
        silence = np.zeros(BLOCK, np.float32)
        self._blocks = WholeBlocks(self._heard, silence, 1 + len(PHONES), unborn=self._late.late)

    def push(self, samples: FloatArray) -> FloatArray:
        """Hear more.

        Args:
            samples: shape (n,), mono at 16 kHz in -1 to 1.

        Returns:
            shape (k, 40), float32: natural logarithm of the probability of the blank (class 0) and
            of each phone, of the frames that are known now, and were not before.

        Raises:
            UsageError: another shape.
        """
        if samples.ndim != 1:
            raise UsageError("a stream of samples has one axis")
        return self._blocks.push(samples)

    def flush(self) -> FloatArray:
        """The frames that are still due, as if silence followed; then forget all."""
        rest = self._blocks.flush(due=self._blocks.taken // _FRAME)
        self.reset()
        return rest

    def _heard(self, block: FloatArray) -> FloatArray:
        """A block's worth of frames, as late as they are; rows are frames throughout."""
        network = self._network
        bands = log_mel(self._sound(block[:, None])[:, 0])
        before = 0 if self._begun else _SOUND // HOP  # frames that are not all of the stream
        self._begun = True
        bands[before:] = self._centre(bands[before:])
        rows = self._bands(bands)
        windows = sliding_window_view(rows.reshape(-1), _STEM * BANDS)[:: 2 * BANDS]
        x = relu(_linear(windows[:_ROWS], network.stem))
        x = self._early(x)
        shortcut = self._shortcut(x)[:_ROWS]
        x = relu(_linear(x.reshape(_ROWS // 2, -1), network.down))
        x = self._middle(x)
        x = relu(_linear(x, network.up).reshape(_ROWS, -1) + shortcut)
        x = self._late(x)
        return np.asarray(log_softmax(_linear(x, network.head), axis=1))


def _refuse_others(log_posteriors: FloatArray) -> None:
    if log_posteriors.ndim != 2 or log_posteriors.shape[1] != 1 + len(PHONES):
        raise UsageError(f"log posteriors have the shape (k, {1 + len(PHONES)})")


def _linear(x: FloatArray, weights: tuple[FloatArray, FloatArray]) -> FloatArray:
    y = x @ weights[0]
    y += weights[1]
    return np.asarray(y)
