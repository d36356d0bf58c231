"""Protects a stream as it is heard, and what the anonymiser declares of it."""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

import numpy as np

from monitor.anonymisers.registry import make
from monitor.anonymisers.utterance import Utterance
from monitor.errors import SourceError, StoreError, UsageError
from monitor.features.framing import BadSamples, columns_of
from monitor.maths.composition import DELTA, Spent, advanced, basic, optimal
from monitor.types import Block, FloatArray

# ----------------------------------------------------------------------------------------- promise

EVERYBODY_BITS = 33.0
"""Enough to tell one person from all others alive: 2 ** 33 is more than 8 billion."""


@dataclass(frozen=True, slots=True)
class Promise:
    """How much all frames of one speaker can give away together.

    Attributes:
        epsilon: of one frame, nats.
        spent: frames, and the bounds of the three compositions, in nats (docs/method.md section 6).
    """

    speaker: str
    epsilon: float
    delta: float
    seconds: float
    spent: Spent

    @property
    def most_bits(self) -> float:
        """Evidence in bits that no attacker exceeds who sees all of it: k epsilon / ln 2."""
        return self.spent.basic_nats / math.log(2)

    @property
    def empty(self) -> bool:
        """Whether as much is allowed as tells one person from all others alive."""
        return self.most_bits >= EVERYBODY_BITS


def promises(
    frames: Mapping[str, tuple[int, float]], epsilon: float, delta: float = DELTA
) -> list[Promise]:
    """One for each speaker, over all recordings and features: an attacker has them all.

    Args:
        frames: of each speaker how many, and seconds of speech.
        epsilon: of one frame, nats.
        delta: of the advanced and the optimal composition.

    Example:
        >>> (ann,) = promises({"ann": (10, 30.0)}, 0.5)
        >>> ann.spent.basic_nats, round(ann.most_bits, 1), ann.empty
        (5.0, 7.2, False)
    """
    return [
        Promise(speaker, epsilon, delta, seconds, spent_on(epsilon, count, delta))
        for speaker, (count, seconds) in frames.items()
    ]


def spent_on(epsilon: float, count: int, delta: float, *, optimal_of: int | None = None) -> Spent:
    """What so many frames spend, by each composition.

    Args:
        epsilon: of one frame, nats.
        count: of frames.
        delta: of the advanced and the optimal composition.
        optimal_of: as many frames or more, whose optimal composition is a bound for fewer, too.

    Example:
        >>> spent_on(0.5, 10, 1e-4, optimal_of=12).optimal_nats
        5.0
    """
    least = optimal(epsilon, count if optimal_of is None else optimal_of, delta)
    whole = basic(epsilon, count)
    return Spent(count, whole, advanced(epsilon, count, delta), min(whole, least))


def empty_after(epsilon: float) -> int:
    """Frames after which the bound is vacuous.

    Example:
        >>> empty_after(15.0), empty_after(0.1)
        (2, 229)
    """
    return math.ceil(EVERYBODY_BITS * math.log(2) / epsilon)


_MECHANISMS = ("laplace", "tokens")  # whose setting begins with an epsilon for each frame
_EXACT = 1000  # windows up to which the optimal composition is worked out for each number of them


@dataclass(frozen=True, slots=True)
class Declared:
    """A mechanism that is (epsilon, 0)-private in each window, in the local sense.

    Whatever it lets through of a window is at most exp(epsilon) times as likely for one voice as
    for any other, with noise of its own in each: windows compose (docs/method.md section 6).

    Attributes:
        mechanism: what declares it, such as ``"usc:15"``.
        epsilon: of one window, nats, above 0.
        ahead_seconds: how far beyond a moment the windows lie that what was let through until then
            depends on.

    Raises:
        UsageError: epsilon or the window is none.

    Example:
        >>> token = Declared("usc:15", 15.0, 0.04)
        >>> token.windows(1.0), round(token.after(25).most_bits), token.after(25).empty
        (25, 541, True)
    """

    mechanism: str
    epsilon: float
    window_seconds: float
    ahead_seconds: float = 0.0
    delta: float = DELTA

    def __post_init__(self) -> None:
        for value, what in ((self.epsilon, "an epsilon"), (self.window_seconds, "a window")):
            if not 0 < value < math.inf:
                raise UsageError(f"{value:g} is not {what}: give a number above 0")

    @classmethod
    def of_noise(cls, noise: str, window_seconds: float) -> Self | None:
        """What noise on ready-made frames declares; None where nothing is known of it.

        Args:
            noise: as frames are marked with it, such as ``"laplace:15,1"``.
            window_seconds: of a frame.

        Example:
            >>> Declared.of_noise("laplace:15,1", 3.0).epsilon, Declared.of_noise("fog", 3.0)
            (15.0, None)
        """
        name, _, setting = noise.partition(":")
        try:
            epsilon = float(setting.partition(",")[0])
            return cls(noise, epsilon, window_seconds) if name in _MECHANISMS else None
        except (ValueError, UsageError):
            return None

    def windows(self, seconds: float) -> int:
        """How many windows what was let through in so many seconds depends on, at most."""
        if seconds <= 0:
            return 0
        return math.ceil(round((seconds + self.ahead_seconds) / self.window_seconds, 6))

    def after(self, windows: int) -> Promise:
        """What all of so many windows promise together; the optimal bound is rounded up.

        Beyond a thousand windows the optimal bound is that of the next number of two digits and
        zeros: it is a bound for fewer as well, and need not be worked out at each reading.
        """
        return _after(self, windows)


@lru_cache(maxsize=256)
def _after(declared: Declared, windows: int) -> Promise:
    step = 1 if windows <= _EXACT else 10 ** (len(str(windows)) - 2)
    spent = spent_on(
        declared.epsilon, windows, declared.delta, optimal_of=-(-windows // step) * step
    )
    seconds = windows * declared.window_seconds
    return Promise("", declared.epsilon, declared.delta, seconds, spent)


_ANY_RATE = 16_000
_LONGER_SECONDS = 0.1  # by which a program's output may be longer: the rest is left out


class ProtectedBlocks:
    """An anonymiser for a whole stream of recordings, each protected by itself.

    Channels are protected one by one, as `monitor.anonymisers.protect` does it, and keep the clock
    of the stream: what a program makes shorter is filled up with silence. Samples that are no
    numbers are silence. Nothing of the audio is kept.

    Args:
        method: of `monitor.anonymisers.registry`.
        labels: names of the recordings, for what is drawn by recording; the last one counts for all
            that follow, such as a microphone that comes back.
        channel: the channel to protect, counted from 1, alone; None for all.
        seed: of what is drawn at random; None draws one.

    Attributes:
        latency_seconds: by how much what comes out may lag behind; None where nothing comes before
            a recording is over.
        declared: what the method promises of each window; None where it promises nothing.

    Raises:
        UsageError: the method makes no sense.

    Example:
        >>> stream = [Block(np.ones(1000), 16000), Block(np.ones(600), 16000, recording=1)]
        >>> protected = ProtectedBlocks("mcadams:0.8")
        >>> [(each.samples.shape, each.recording) for each in protected(stream)]
        [((800, 1), 0), ((200, 1), 0), ((320, 1), 1), ((280, 1), 1)]
    """

    def __init__(
        self,
        method: str,
        labels: Sequence[str] = ("",),
        *,
        speaker: str | None = None,
        channel: int | None = None,
        seed: int | None = None,
    ) -> None:
        self._method, self._labels = method, tuple(labels)
        self._speaker, self._channel = speaker, channel
        self._given, self._seed = seed, secrets.randbits(128) if seed is None else seed
        any_rate = make(method, self._utterance(_ANY_RATE, 0, 0))
        self.declared: Declared | None = getattr(any_rate, "declares", None)
        self.channels_heard = 1
        latency = any_rate.latency_samples
        self.latency_seconds = None if latency is None else latency / _ANY_RATE

    def __call__(self, items: Iterable[object]) -> Iterator[Block]:
        """The protected audio of a stream; everything else in it, such as a gap, is left out.

        Raises:
            SourceError: a program failed, or made a recording much longer.
        """
        current: _Recording | None = None
        for item in items:
            if not isinstance(item, Block):
                continue
            columns = columns_of(item, None if self._channel is None else self._channel - 1)
            key = item.recording, int(item.rate), columns.shape[1]
            self.channels_heard = max(self.channels_heard, key[2])
            if current is None or current.key != key:
                if current is not None:
                    yield current.end()
                channels = [self._utterance(key[1], key[0], i) for i in range(key[2])]
                current = _Recording(key, channels, self._method)
            yield current.process(columns)
        if current is not None:
            yield current.end()

    def state(self) -> dict[str, Any]:
        """What a checkpoint must keep: private, since it tells how to undo what was drawn."""
        return {"seed": str(self._seed)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Draw as before."""
        if self._given is not None and str(self._given) != state["seed"]:
            raise StoreError("the run was begun with another seed of the anonymiser: give the same")
        self._seed = int(state["seed"])

    def _utterance(self, rate: int, recording: int, channel: int) -> Utterance:
        name = self._labels[min(recording, len(self._labels) - 1)]
        kept = channel if self._channel is None else self._channel - 1
        return Utterance(rate, name, self._speaker, kept, self._seed)


class _Recording:
    """One recording: an anonymiser a channel, and how much went in and came out."""

    def __init__(
        self, key: tuple[int, int, int], utterances: Sequence[Utterance], method: str
    ) -> None:
        self.key = key
        self._label = utterances[0].name
        self._anonymisers = [make(method, each) for each in utterances]
        self._sound = BadSamples(key[1], key[0], 0)
        self._given = self._made = 0

    def process(self, columns: FloatArray) -> Block:
        """What is whole after these samples, shape (n, channels)."""
        columns = self._sound.silence(columns)
        self._given += len(columns)
        return self._block(
            [p.process(c) for p, c in zip(self._anonymisers, columns.T, strict=True)]
        )

    def end(self) -> Block:
        """The rest, so that as much has come out as went in."""
        rest = [anonymiser.flush() for anonymiser in self._anonymisers]
        missing = self._given - self._made
        longer = max(each.size for each in rest) - missing
        if longer > _LONGER_SECONDS * self.key[1]:
            raise SourceError(
                f"{self._label}: the anonymiser makes it {longer / self.key[1]:.1f} s longer, and "
                "both sides are heard on one clock: use monitor protect, and replay what it writes"
            )
        return self._block(
            [np.append(e, np.zeros(max(0, missing - e.size)))[:missing] for e in rest]
        )

    def _block(self, columns: Sequence[FloatArray]) -> Block:
        if len({each.size for each in columns}) > 1:
            raise SourceError(
                f"{self._label}: its channels come out of the anonymiser unequally long"
            )
        samples = np.stack(columns, axis=1).astype(np.float32)
        self._made += len(samples)
        return Block(samples, self.key[1], self.key[0])
