"""Anonymisers for a whole stream, block by block."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from monitor.anonymisers.laplace import Declared
from monitor.anonymisers.registry import make
from monitor.anonymisers.utterance import Utterance
from monitor.errors import SourceError, StoreError
from monitor.features.framing import BadSamples, columns_of
from monitor.types import Block, FloatArray, Record

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
        self._seed_option, self._seed = seed, secrets.randbits(128) if seed is None else seed
        any_rate = make(method, self._utterance(_ANY_RATE, 0, 0))
        self.declared: Declared | None = getattr(any_rate, "declares", None)
        self.channels_heard = 1
        latency = any_rate.latency_samples
        self.latency_seconds = None if latency is None else latency / _ANY_RATE

    def __call__(self, items: Iterable[object]) -> Iterator[Block]:
        """Protect the audio of a stream; leave out everything else in it, such as a gap.

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

    def state(self) -> dict[str, str]:
        """Return the seed for a checkpoint: private, as it undoes what was drawn."""
        return {"seed": str(self._seed)}

    def restore(self, state: Record) -> None:
        """Draw as before."""
        if self._seed_option is not None and str(self._seed_option) != state["seed"]:
            raise StoreError("the run was begun with another seed of the anonymiser: give the same")
        self._seed = int(state["seed"])

    def _utterance(self, rate: int, recording: int, channel: int) -> Utterance:
        name = self._labels[min(recording, len(self._labels) - 1)]
        index = channel if self._channel is None else self._channel - 1
        return Utterance(rate, name, self._speaker, index, self._seed)


class _Recording:
    """One recording: an anonymiser a channel, and how much went in and came out."""

    def __init__(
        self, key: tuple[int, int, int], utterances: Sequence[Utterance], method: str
    ) -> None:
        self.key = key
        self._label = utterances[0].name
        self._anonymisers = [make(method, utterance) for utterance in utterances]
        self._sound = BadSamples(key[1], key[0], 0)
        self._seed_option = self._made = 0

    def process(self, columns: FloatArray) -> Block:
        """Protect further samples, shape (n, channels): the block that is complete by then."""
        columns = self._sound.silence(columns)
        self._seed_option += len(columns)
        return self._block(
            [
                anonymiser.process(column)
                for anonymiser, column in zip(self._anonymisers, columns.T, strict=True)
            ]
        )

    def end(self) -> Block:
        """Return the rest, so that as much has come out as went in."""
        rest = [anonymiser.flush() for anonymiser in self._anonymisers]
        missing = self._seed_option - self._made
        longer = max(samples.size for samples in rest) - missing
        if longer > _LONGER_SECONDS * self.key[1]:
            raise SourceError(
                f"{self._label}: the anonymiser makes it {longer / self.key[1]:.1f} s longer, and "
                "both sides are heard on one clock: use monitor protect, and replay what it writes"
            )
        return self._block(
            [
                np.append(samples, np.zeros(max(0, missing - samples.size)))[:missing]
                for samples in rest
            ]
        )

    def _block(self, columns: Sequence[FloatArray]) -> Block:
        if len({column.size for column in columns}) > 1:
            raise SourceError(
                f"{self._label}: its channels come out of the anonymiser unequally long"
            )
        samples = np.stack(columns, axis=1).astype(np.float32)
        self._made += len(samples)
        return Block(samples, self.key[1], self.key[0])
