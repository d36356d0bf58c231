"""Units of the sounds of a language: which of 256 a voice makes, frame after frame."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from monitor.features.tracks import empty_track
from monitor.features.vad import VoiceActivity
from monitor.networks.phones import BLOCK, PhoneNetwork, shipped
from monitor.types import TICKS_PER_SECOND, BoolArray, FloatArray, IntArray, Track

__all__ = ["Phones"]

RATE = 16_000
_TICK = RATE // TICKS_PER_SECOND
_BLOCK_TICKS = BLOCK // _TICK


class _Made(NamedTuple):
    """Frames: the ticks they are complete by, their units, their numbers."""

    ticks: IntArray
    units: IntArray
    frames: IntArray


_NOTHING = _Made(*np.empty((3, 0), np.int64))


class Phones:
    """Histogram feature: the codes of a hidden layer of a phone recogniser, in speech.

    Two voices that say the same phones go through different codes: counting codes tells more of
    who speaks than counting what the recogniser takes them for (`monitor.features.tokens`).

    A frame counts where voice activity takes all of it for speech. It comes out as soon as the
    network has heard as far ahead as it needs, the same for any cutting into blocks, and its span
    says which audio it was.

    Other units (another recogniser's, a codec's) are counted as ready-made frames of this name,
    with their own size: see `monitor.sources.FramesFile`.

    Args:
        network: another one than the package's own.

    Attributes:
        network: sha256 of the weights. Codes of two networks have nothing in common.

    Raises:
        StoreError: the weights in the package are damaged.

    Example:
        >>> import numpy as np
        >>> phones = Phones()
        >>> phones.process(np.zeros(32000)).values
        array([], dtype=int64)
    """

    name = "phones"
    rate = RATE
    kind = "histogram"

    _rest: FloatArray  # less than a block

    def __init__(self, network: PhoneNetwork | None = None) -> None:
        network = shipped() if network is None else network
        self.network = network.sha256
        self.size = network.units
        self.frame_seconds = network.frame_seconds
        self._ticks = round(network.frame_seconds * TICKS_PER_SECOND)  # of a frame
        self._memory = network.memory // _TICK
        self._stream = network.stream(phones=False)
        self._vad = VoiceActivity(RATE, ticks=1)
        self.reset()

    def process(self, samples: FloatArray) -> Track:
        """The frames of speech that these further samples, shape (n,), complete."""
        heard = np.concatenate((self._rest, samples), dtype=np.float32)
        whole = heard.size - heard.size % BLOCK
        self._rest = heard[whole:].copy()
        return self._track([self._hear(block) for block in heard[:whole].reshape(-1, BLOCK)])

    def flush(self) -> Track:
        """The last frames: silence follows them."""
        rest, self._rest = self._rest, np.empty(0, np.float32)
        self._heard += -(-rest.size // _TICK)
        if self._left_out:
            return empty_track(self)
        self._decide(rest[: rest.size - rest.size % (self._ticks * _TICK)])
        units = np.concatenate((self._stream.push(rest).units, self._stream.flush().units))
        return self._track([self._out(units[: self._speech.size])])

    def skip_to(self, tick: int) -> None:
        """Frames complete by ``tick`` (counted from the last reset) are not computed."""
        self._skip = tick

    def reset(self) -> None:
        """Forget everything heard: the next sample is the first of a recording."""
        self._stream.reset()
        self._vad.reset()
        self._rest = np.empty(0, np.float32)
        self._heard = 0  # ticks
        self._skip = 0
        self._left_out = False  # whether the network did not hear the last block
        self._next = 0  # the frame that comes out of the network next
        self._speech: BoolArray = np.empty(0, np.bool_)  # whether it and those after it are speech

    def _hear(self, block: FloatArray) -> _Made:
        self._heard += _BLOCK_TICKS
        self._decide(block)
        if self._heard + self._memory <= self._skip:
            self._left_out, self._speech = True, self._speech[:0]
            return _NOTHING
        if self._left_out:  # the network hears silence before: it forgets that before it matters
            self._left_out = False
            self._stream.reset()
            self._next = (self._heard - _BLOCK_TICKS) // self._ticks
        return self._out(self._stream.push(block).units)

    def _decide(self, samples: FloatArray) -> None:
        """A frame is speech where all of its ticks are."""
        decisions = self._vad.process(samples).reshape(-1, self._ticks).all(axis=1)
        self._speech = np.concatenate((self._speech, decisions))

    def _out(self, units: IntArray) -> _Made:
        """What has come out of the network, without what is no speech."""
        speech, self._speech = self._speech[: units.size], self._speech[units.size :]
        wanted = np.flatnonzero(speech) if self._heard > self._skip else _NOTHING.frames
        first, self._next = self._next, self._next + units.size
        return _Made(np.full(wanted.size, self._heard), units[wanted], first + wanted)

    def _track(self, made: list[_Made]) -> Track:
        if not made:
            return empty_track(self)
        ticks, units, frames = map(np.concatenate, zip(*made, strict=True))
        begins = frames * self._ticks
        return Track(ticks, units, np.column_stack((begins, begins + self._ticks)))
