"""Counts the codes that a streaming network gives a voice, wherever there is speech."""

from __future__ import annotations

import numpy as np

from monitor.features.vad import VoiceActivity
from monitor.kinds import FeatureSpec
from monitor.protocols import CodeStream
from monitor.types import TICKS_PER_SECOND, BoolArray, FloatArray, IntArray, Track

__all__ = ["Codes"]

_TICK = 16_000 // TICKS_PER_SECOND


class Codes:
    """What all features by codes of a network do; a feature is a class of it with a name.

    A frame counts where voice activity takes all of it for speech. Its span says which audio it
    was.

    Args:
        spec: a histogram over the codes, fed at 16 kHz.
        stream: of the network.
        block: samples that the network computes at once.
        late: frames that one comes after its own, at the next end of a block.
        memory: samples, whole blocks, of which a frame depends; None where what was heard long ago
            still counts.

    Attributes:
        spec: as given.
    """

    _rest: FloatArray  # less than a block

    def __init__(
        self, spec: FeatureSpec, stream: CodeStream, block: int, late: int, memory: int | None
    ) -> None:
        self.spec = spec
        self._stream, self._block = stream, block
        self._block_ticks = block // _TICK
        self._ticks = round(spec.frame_seconds * TICKS_PER_SECOND)  # of a frame
        self._late = (late + 1) * self._ticks
        self._memory = None if memory is None else memory // _TICK
        self._vad = VoiceActivity(16_000, ticks=1)
        self.reset()

    def process(self, samples: FloatArray) -> Track:
        """The frames of speech that these further samples, shape (n,), complete."""
        heard = np.concatenate((self._rest, samples), dtype=np.float32)
        whole = heard.size - heard.size % self._block
        heard, self._rest = heard[:whole], heard[whole:].copy()
        self._decide(heard)
        if self._memory is not None and heard.size:
            before = max(0, self._skip - self._memory - self._heard) // self._block_ticks
            skipped = min(before * self._block, heard.size)
            self._leave_out(skipped)
            heard = heard[skipped:]
        self._heard += heard.size // _TICK
        return self._out(self._stream.push(heard))

    def flush(self) -> Track:
        """The last frames: silence follows them."""
        rest, self._rest = self._rest, np.empty(0, np.float32)
        self._decide(rest[: rest.size - rest.size % (self._ticks * _TICK)])
        self._heard += -(-rest.size // _TICK)
        codes = np.concatenate((self._stream.push(rest), self._stream.flush()))
        return self._out(codes[: self._speech.size])

    def skip_to(self, tick: int) -> None:
        """Frames complete by ``tick`` (counted from the last reset) are not given."""
        self._skip = tick

    def reset(self) -> None:
        """Forget everything heard: the next sample is the first of a recording."""
        self._stream.reset()
        self._vad.reset()
        self._rest = np.empty(0, np.float32)
        self._heard = 0  # ticks
        self._skip = 0
        self._next = 0  # the frame that comes out of the network next
        self._speech: BoolArray = np.empty(0, np.bool_)  # whether it and those after it are speech

    def _decide(self, samples: FloatArray) -> None:
        """A frame is speech where all of its ticks are."""
        decisions = self._vad.process(samples).reshape(-1, self._ticks).all(axis=1)
        self._speech = np.concatenate((self._speech, decisions))

    def _leave_out(self, samples: int) -> None:
        """The network hears silence before what follows: it forgets that before it matters."""
        if not samples:
            return
        self._heard += samples // _TICK
        before, self._next = self._next, self._heard // self._ticks
        self._speech = self._speech[self._next - before :]
        self._stream.reset()

    def _out(self, codes: IntArray) -> Track:
        """What has come out of the network, without what is no speech."""
        speech, self._speech = self._speech[: codes.size], self._speech[codes.size :]
        frames = self._next + np.flatnonzero(speech)
        begins = frames * self._ticks
        blocks = -(-(begins + self._late) // self._block_ticks)  # whose last sample completes each
        ticks = np.minimum(blocks * self._block_ticks, self._heard)
        wanted = ticks > self._skip
        codes, self._next = codes[frames - self._next], self._next + codes.size
        spans = np.column_stack((begins, begins + self._ticks))
        return Track(ticks[wanted], codes[wanted], spans[wanted])
