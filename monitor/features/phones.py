"""The features ``phones`` and ``tokens``, which count the units of sound in a voice."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from monitor.errors import UsageError
from monitor.features.extractor import Resampler, VoiceActivity
from monitor.features.framing import AudioFeature
from monitor.kinds import HISTOGRAM, FeatureSpec, Sensitivity
from monitor.networks.layers import BLOCK, RATE
from monitor.networks.phones import UNITS_BLOCK, UnitNetwork, shipped_recogniser, shipped_units
from monitor.networks.usc import TokenStream, UscNetwork, shipped_codec
from monitor.protocols import CodeStream
from monitor.types import TICKS_PER_SECOND, BoolArray, FloatArray, IntArray, Track

__all__ = ["Codes", "Phones", "TimedPhone", "Tokens", "recognise_phones"]


_TICK = RATE // TICKS_PER_SECOND
MOST_KEPT_TICKS = 10
"""Maximum audio in a snapshot, in ticks."""


class Codes(AudioFeature):
    """Histogram feature that counts the codes of a streaming network during speech.

    A frame counts if voice activity detects speech in all of it. Its span identifies the audio.

    Args:
        spec: spec of a histogram over the codes, from audio at 16 kHz.
        stream: the network's codes of a stream.
        block: number of samples that the network processes at once.
        late: delay of the network's codes, in frames.
        memory: number of earlier samples, in whole blocks, on which a frame depends; None for all.
    """

    _rest: FloatArray  # less than a block
    _next: int  # index of the network's next frame
    _speech: BoolArray  # whether that frame and later ones are speech

    def __init__(
        self, spec: FeatureSpec, stream: CodeStream, block: int, late: int, memory: int | None
    ) -> None:
        self.spec = spec
        self._stream, self._block = stream, block
        self._block_ticks = block // _TICK
        self._ticks = round(spec.frame_seconds * TICKS_PER_SECOND)  # of a frame
        self._late = (late + 1) * self._ticks
        self._memory = None if memory is None else memory // _TICK
        self.activity = VoiceActivity()
        super().__init__()

    def process(self, samples: FloatArray) -> Track:
        """Process further samples, shape (n,); return the frames of speech that they complete."""
        sound = np.concatenate((self._rest, samples), dtype=np.float32)
        size = sound.size - sound.size % self._block
        sound, self._rest = sound[:size], sound[size:].copy()
        self._decide(sound)
        if self._memory is not None and sound.size:
            before = max(0, self._skip - self._memory - self._elapsed) // self._block_ticks
            skipped = min(before * self._block, sound.size)
            if skipped:  # the network starts again early enough for its memory to fill
                self._elapsed += skipped // _TICK
                first, self._next = self._next, self._elapsed // self._ticks
                self._speech = self._speech[self._next - first :]
                self._stream.reset()
            sound = sound[skipped:]
        self._elapsed += sound.size // _TICK
        return self._out(self._stream.push(sound))

    def flush(self) -> Track:
        """Return the last frames, as if silence followed."""
        remainder, self._rest = self._rest, np.empty(0, np.float32)
        self._decide(remainder[: remainder.size - remainder.size % (self._ticks * _TICK)])
        self._elapsed += -(-remainder.size // _TICK)
        codes = np.concatenate((self._stream.push(remainder), self._stream.flush()))
        return self._out(codes[: self._speech.size])

    def reset(self) -> None:
        """Reset: the next sample is the first of a recording."""
        super().reset()
        self._stream.reset()
        self.activity.reset()
        self._rest = np.empty(0, np.float32)
        self._elapsed = 0  # ticks
        self._next = 0
        self._speech = np.empty(0, np.bool_)

    def snapshot_attributes(self) -> dict[str, object]:
        """Return the attributes that a snapshot keeps; UsageError if blocks are too long."""
        if self._block > _TICK * MOST_KEPT_TICKS:
            raise UsageError(f"streams with {self.spec.name} cannot move: use other features")
        return vars(self)

    def _decide(self, samples: FloatArray) -> None:
        """Decide which frames are speech: those with speech in all of their ticks."""
        decisions = self.activity.process(samples).reshape(-1, self._ticks).all(axis=1)
        self._speech = np.concatenate((self._speech, decisions))

    def _out(self, codes: IntArray) -> Track:
        """Return the new codes of the network that are speech."""
        speech, self._speech = self._speech[: codes.size], self._speech[codes.size :]
        frames = self._next + np.flatnonzero(speech)
        begins = frames * self._ticks
        # each code is complete at the end of its block
        blocks = -(-(begins + self._late) // self._block_ticks)
        ticks = np.minimum(blocks * self._block_ticks, self._elapsed)
        is_new = ticks > self._skip
        codes, self._next = codes[frames - self._next], self._next + codes.size
        spans = np.column_stack((begins, begins + self._ticks))
        return Track(ticks[is_new], codes[is_new], spans[is_new])


class Phones(Codes):
    """Histogram feature of 256 trained units of sound, one every 20 ms of speech.

    Units (`monitor.networks.phones.UnitNetwork`) are finer than phones. Two voices produce
    different units for the same phones, so counts of units disclose more. To count units of another
    recogniser or codec, supply them as ready-made frames of this name, with their own size
    (`monitor.sources.FramesFile`). Units of two networks cannot be compared.
    """

    # benchmarks/change.py chose it
    follow = Sensitivity(50, 300, 40.0, 0.05, back_units=20, held_units=3, min_units=3)

    def __init__(self, network: UnitNetwork | None = None) -> None:
        network = shipped_units() if network is None else network
        spec = FeatureSpec(
            "phones", HISTOGRAM, network.size, network.frame_seconds, RATE, network.mark
        )
        super().__init__(spec, network.stream(), UNITS_BLOCK, network.late, network.memory)


class Tokens(Codes):
    """Histogram feature of a codec's private tokens: one of 1,024 (codebook C0) every 40 ms.

    It counts tokens without their order. ``epsilon`` is the guarantee of Laplace noise on each
    token, in nats (`monitor.networks.usc`); None for no noise. ``whose`` has the keys of the noise:
    a secret seed, and the recording.
    """

    follow = None  # the variation of its margins was not measured

    def __init__(
        self,
        network: UscNetwork | None = None,
        epsilon: float | None = None,
        whose: tuple[object, ...] = (),
    ) -> None:
        network = shipped_codec() if network is None else network
        size, seconds = network.books.size, network.frame_seconds
        spec = FeatureSpec("tokens", HISTOGRAM, size, seconds, RATE, network.sha256)
        stream = TokenStream(network, epsilon, *whose)
        super().__init__(spec, stream, BLOCK, network.encoder.late, None)


class TimedPhone(NamedTuple):
    """One of 39 phones (ARPAbet without stress), and the second at which it was recognised.

    This second is somewhere within the phone, since CTC does not find boundaries.
    """

    phone: str
    begin: float
    end: float


def recognise_phones(samples: FloatArray, rate: int = RATE) -> list[TimedPhone]:
    """Recognise the phones of a recording, in order, with the shipped English recogniser.

    These are the sounds that were spoken. The feature ``phones`` does not use them. Samples have
    shape (n,), in [-1, 1]; UsageError if they are not finite.
    """
    samples = np.asarray(samples, np.float32)
    if samples.ndim != 1 or not np.isfinite(samples).all():
        raise UsageError("samples must be finite numbers of shape (n,): one channel")
    resampler, network = Resampler(rate, RATE), shipped_recogniser()
    stream = network.stream()
    parts = [resampler.process(samples), resampler.flush()]
    outputs = np.concatenate([*map(stream.push, parts), stream.flush()])
    every = network.frame_seconds
    return [
        TimedPhone(phone, first * every, (last + 1) * every)
        for phone, first, last in network.spoken(outputs)
    ]
