"""The phone network, heard as it is said: hidden units and phones, by numpy alone.

What `recipes.phones` trained and folded: separable convolutions at 50 frames a second, in the
middle at 25, causal but for a stated look-ahead; CTC (Graves et al., ICML 2006) on 39 phones. The
units are codes (k-means) of a hidden layer, one a frame, as the units of HuBERT are (Hsu et al.,
TASLP 2021); they say far more of the speaker than the phones do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from monitor.errors import StoreError, UsageError
from monitor.networks.mel import BANDS, FLOOR, HOP, RATE, WIDTH, log_mel
from monitor.networks.separable import Separable, dense, relu
from monitor.networks.weights import read_weights
from monitor.types import AnyArray, FloatArray, IntArray

__all__ = [
    "BLOCK",
    "PHONES",
    "HeardPhones",
    "PhoneNetwork",
    "PhoneStream",
    "Token",
    "shipped",
    "tokens",
]

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
_SILENCE = np.float32(np.log(FLOOR))
_BOOK = "codebook."


@dataclass(frozen=True, slots=True)
class HeardPhones:
    """What came out of a stream since it was last asked: k consecutive frames.

    Attributes:
        units: shape (k,), int64: codes from 0.
        log_posteriors: shape (k, 40), float32, natural logarithms; class 0 is the CTC blank.
            Shape (0, 40) where no phones were wanted.
    """

    units: IntArray
    log_posteriors: FloatArray


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
    if log_posteriors.ndim != 2 or log_posteriors.shape[1] != 1 + len(PHONES):
        raise UsageError(f"log posteriors have the shape (k, {1 + len(PHONES)})")
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
        weights: arrays by name, as `recipes.phones.network.folded` gives them, and a codebook,
            ``codebook.LAYER``, shape (units, channels).
        sha256: of the file that they come from.

    Attributes:
        units: codes in the codebook.
        classes: names of the 39 phones.
        frame_seconds: from frame to frame; frame i covers samples [320 i, 320 (i + 1)).
        look_ahead: seconds of audio after its own that a frame depends on; besides, a stream
            waits for whole blocks of 0.2 s.
        memory: samples, whole blocks: what a stream heard longer ago changes nothing of what comes
            out, to the last bit, where blocks begin at the same samples.
        sha256: units of two networks cannot be compared; this tells them apart.

    Raises:
        StoreError: they are of another network.
    """

    frame_seconds = _FRAME / RATE
    classes = PHONES

    def __init__(self, weights: Mapping[str, AnyArray], sha256: str = "") -> None:
        self.sha256 = sha256
        try:
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
            (book,) = (name for name in weights if name.startswith(_BOOK))
            self.layer = book.removeprefix(_BOOK)
            codes = np.asarray(weights[book], np.float32)
            self.units, self.width = codes.shape
            self._codes, self._lengths = np.ascontiguousarray(codes.T), (codes * codes).sum(axis=1)
            early, middle, late = (
                sum(block.after for block in blocks)
                for blocks in (self.early, self.middle, self.late)
            )
            frames = early + 1 + 2 * middle + late
            self.look_ahead = (frames * _FRAME + _STEM // 2 * HOP + WIDTH - _FRAME) / RATE
            held = 2 * sum(block.held for block in self.middle)
            held += sum(block.held for block in (*self.early, *self.late))
            ahead = _SOUND + _STEM * HOP + _FRAME  # of the stem, of pairs of frames
            self.memory = (-(-(held * _FRAME + ahead) // BLOCK) + 1) * BLOCK
            heard = self.stream().push(np.zeros(8 * BLOCK, np.float32))
            if not heard.units.size or heard.log_posteriors.shape[1] != 1 + len(PHONES):
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

    def stream(self, *, phones: bool = True) -> PhoneStream:
        """Begin to listen; without phones it costs a part, and the units are the same."""
        return PhoneStream(self, phones=phones)

    def code(self, hidden: FloatArray) -> IntArray:
        """The nearest codes of rows of the hidden layer."""
        return np.asarray((self._lengths - 2 * (hidden @ self._codes)).argmin(axis=1), np.int64)


@cache
def shipped() -> PhoneNetwork:
    """The network that ships with the package, loaded once.

    Raises:
        StoreError: its file is missing or damaged.
    """
    return PhoneNetwork.load(Path(__file__).with_suffix(".npz"))


class PhoneStream:
    """One stream of samples through a network.

    How the samples are cut into pushes changes nothing, to the last bit.

    Args:
        network: what hears.
        phones: whether they are wanted besides units. Units come as late either way.
    """

    def __init__(self, network: PhoneNetwork, *, phones: bool = True) -> None:
        self._network, self._phones = network, phones
        self.reset()

    def reset(self) -> None:
        """Forget all that was heard: the next sample is the first."""
        network = self._network
        self._waiting = np.empty(0, np.float32)
        self._samples = self._given = 0
        tapes = self._tapes = {"sound": _Tape(_SOUND, 1, 0), "bands": _Tape(_STEM - 1, BANDS, 2)}
        late: dict[str, int] = {}  # frames that each layer lags behind, at its own rate

        def lay(part: str, blocks: Sequence[Separable], at: int) -> int:
            for i, block in enumerate(blocks):
                tapes[f"{part}.{i}"] = _Tape(block.held, block.channels, at)
                at = late[f"{part}.{i}"] = at + block.after
            return at

        early = lay("early", network.early, 2)
        if early % 2:
            raise ValueError("pairs of frames are torn apart")
        middle = late["up"] = 2 * lay("middle", network.middle, early // 2)
        tapes["shortcut"] = _Tape(middle - early, network.early[-1].channels, early)
        self._unborn = lay("late", network.late, middle)
        hidden = late[network.layer]
        tapes["hidden"] = _Tape(self._unborn - hidden, network.width, hidden)

    def push(self, samples: FloatArray) -> HeardPhones:
        """Hear more.

        Args:
            samples: shape (n,), mono at 16 kHz in -1 to 1.

        Returns:
            the frames that are known now, and were not before.

        Raises:
            UsageError: another shape.
        """
        if samples.ndim != 1:
            raise UsageError("a stream of samples has one axis")
        self._samples += len(samples)
        waiting = np.concatenate([self._waiting, np.asarray(samples, np.float32)])
        whole = len(waiting) // BLOCK * BLOCK
        self._waiting = waiting[whole:].copy()
        units: list[IntArray] = [np.empty(0, np.int64)]
        posteriors: list[FloatArray] = [np.empty((0, 1 + len(PHONES)), np.float32)]
        for block in waiting[:whole].reshape(-1, BLOCK):
            unit, posterior = self._heard(block)
            first = min(self._unborn, _ROWS)  # frames of before the first sample
            self._unborn -= first
            units.append(unit[first:])
            posteriors.append(posterior[first:])
        found = HeardPhones(np.concatenate(units), np.concatenate(posteriors))
        self._given += len(found.units)
        return found

    def flush(self) -> HeardPhones:
        """The frames that are still due, as if silence followed; then forget all."""
        due = self._samples // _FRAME - self._given
        rest = self.push(np.zeros((self._unborn + due + 2 * _ROWS) * _FRAME, np.float32))
        self.reset()
        return HeardPhones(rest.units[:due], rest.log_posteriors[:due])

    def _heard(self, block: FloatArray) -> tuple[IntArray, FloatArray]:
        """A block's worth of frames, as late as they are; rows are frames throughout."""
        network, tapes = self._network, self._tapes
        bands = log_mel(tapes["sound"](block[:, None])[:, 0]) - _SILENCE
        rows = tapes["bands"](bands)
        windows = sliding_window_view(rows.reshape(-1), _STEM * BANDS)[:: 2 * BANDS]
        hidden: dict[str, FloatArray] = {}
        x = relu(_linear(windows[:_ROWS], network.stem))
        x = self._through("early", network.early, x, hidden)
        if self._phones or network.layer not in hidden:
            logits = self._phoned(x, hidden)
        if not self._phones:
            logits = np.empty((0, 1 + len(PHONES)), np.float32)
        return network.code(tapes["hidden"](hidden[network.layer])[:_ROWS]), logits

    def _phoned(self, x: FloatArray, hidden: dict[str, FloatArray]) -> FloatArray:
        """From the last of the early blocks on."""
        network = self._network
        shortcut = self._tapes["shortcut"](x)[:_ROWS]
        x = relu(_linear(x.reshape(_ROWS // 2, -1), network.down))
        x = self._through("middle", network.middle, x, hidden)
        x = hidden["up"] = relu(_linear(x, network.up).reshape(_ROWS, -1) + shortcut)
        x = self._through("late", network.late, x, hidden)
        logits = _linear(x, network.head)
        logits -= logits.max(axis=1, keepdims=True)
        logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
        return logits

    def _through(
        self,
        part: str,
        blocks: Sequence[Separable],
        x: FloatArray,
        hidden: dict[str, FloatArray],
    ) -> FloatArray:
        for i, block in enumerate(blocks):
            x = hidden[f"{part}.{i}"] = block(self._tapes[f"{part}.{i}"](x))
            if not self._phones and self._network.layer in hidden:
                break
        return x


class _Tape:
    """What a layer says, with rows of before that the next layer hears again.

    Args:
        held: how many.
        channels: numbers in a row.
        late: rows at the beginning that are of before the first sample: silence.
    """

    def __init__(self, held: int, channels: int, late: int) -> None:
        self._rows, self._late = np.zeros((held, channels), np.float32), late

    def __call__(self, x: FloatArray) -> FloatArray:
        """Rows of a block, shape (n, channels), with those before them: (held + n, channels)."""
        if self._late:
            x[: self._late] = 0
            self._late = max(0, self._late - len(x))
        rows = np.concatenate([self._rows, x])
        self._rows = rows[len(x) :]
        return rows


def _linear(x: FloatArray, weights: tuple[FloatArray, FloatArray]) -> FloatArray:
    y = x @ weights[0]
    y += weights[1]
    return np.asarray(y)
