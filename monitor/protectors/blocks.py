"""Protects a stream as it is heard: blocks of audio in, as much protected audio out."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from monitor.errors import SourceError, StoreError
from monitor.features.bad_samples import BadSamples
from monitor.features.blocks import columns_of
from monitor.protectors.declared import Declared
from monitor.protectors.registry import make
from monitor.protectors.utterance import Utterance
from monitor.types import Block, FloatArray

__all__ = ["ProtectedBlocks"]

_ANY_RATE = 16_000
_LONGER_SECONDS = 0.1
"""By how much a program's output may be longer: the rest is left out."""


class ProtectedBlocks:
    """A protector for a whole stream of recordings, each protected by itself.

    Channels are protected one by one, as `monitor.protectors.protect` does it, and keep the clock
    of the stream: what a program makes shorter is filled up with silence. Samples that are no
    numbers are silence. Nothing of the audio is kept.

    Args:
        method: of `monitor.protectors.registry`.
        labels: names of the recordings, for what is drawn by recording; the last one counts for all
            that follow, such as a microphone that comes back.
        speaker: who speaks, for what is drawn by speaker.
        channel: the channel to protect, counted from 1, alone; None for all.
        seed: of what is drawn at random; None draws one.

    Attributes:
        latency_seconds: by how much what comes out may lag behind; None where nothing comes before
            a recording is over.
        declared: what the method promises of each window (`monitor.protectors.declared`); None
            where it promises nothing.
        channels_heard: how many channels are protected, as far as anything was heard.

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
                current = _Recording(key, [self._utterance(key[1], key[0], i) for i in
                                           range(key[2])], self._method)  # fmt: skip
            yield current.take(columns)
        if current is not None:
            yield current.end()

    def state(self) -> dict[str, Any]:
        """What a checkpoint must keep: private, since it tells how to undo what was drawn."""
        return {"seed": str(self._seed)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Draw as before.

        Raises:
            StoreError: another seed was asked for.
        """
        if self._given is not None and str(self._given) != state["seed"]:
            raise StoreError("the run was begun with another seed of the protector: give the same")
        self._seed = int(state["seed"])

    def _utterance(self, rate: int, recording: int, channel: int) -> Utterance:
        name = self._labels[min(recording, len(self._labels) - 1)]
        kept = channel if self._channel is None else self._channel - 1
        return Utterance(rate, name, self._speaker, kept, self._seed)


class _Recording:
    """One recording: a protector a channel, and how much went in and came out."""

    def __init__(
        self, key: tuple[int, int, int], utterances: Sequence[Utterance], method: str
    ) -> None:
        self.key = key
        self._label = utterances[0].name
        self._protectors = [make(method, each) for each in utterances]
        self._sound = BadSamples(key[1], key[0], 0)
        self._given = self._made = 0

    def take(self, columns: FloatArray) -> Block:
        """What is whole after these samples, shape (n, channels)."""
        columns = self._sound.silence(columns)
        self._given += len(columns)
        return self._block([p.process(c) for p, c in zip(self._protectors, columns.T, strict=True)])

    def end(self) -> Block:
        """The rest, so that as much has come out as went in."""
        rest = [protector.flush() for protector in self._protectors]
        missing = self._given - self._made
        longer = max(each.size for each in rest) - missing
        if longer > _LONGER_SECONDS * self.key[1]:
            raise SourceError(
                f"{self._label}: the protector makes it {longer / self.key[1]:.1f} s longer, and "
                "both sides are heard on one clock: use monitor protect, and replay what it writes"
            )
        return self._block(
            [np.append(e, np.zeros(max(0, missing - e.size)))[:missing] for e in rest]
        )

    def _block(self, columns: Sequence[FloatArray]) -> Block:
        if len({each.size for each in columns}) > 1:
            raise SourceError(
                f"{self._label}: its channels come out of the protector unequally long"
            )
        samples = np.stack(columns, axis=1).astype(np.float32)
        self._made += len(samples)
        return Block(samples, self.key[1], self.key[0])
