"""The feature ``phones``: counts which of 256 learnt units of sound a voice makes, every 20 ms.

Units are made by the network of `monitor.networks.units` (`monitor/networks/units.npz`). They are
finer than phones, the sounds of a language, which `monitor.networks.phones` recognises and
`monitor.features.said_phones` gives; those are not counted.
"""

from __future__ import annotations

import numpy as np

from monitor.features.vad import VoiceActivity
from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.kinds.following import Sensitivity
from monitor.networks.units import BLOCK, UnitNetwork, shipped
from monitor.types import TICKS_PER_SECOND, BoolArray, FloatArray, IntArray, Track

__all__ = ["Phones"]

RATE = 16_000
_TICK = RATE // TICKS_PER_SECOND
_BLOCK_TICKS = BLOCK // _TICK


class Phones:
    """Histogram feature: the codes of the first layer of a phone recogniser, in speech.

    Two voices that say the same phones go through different codes: counting codes tells more of
    who speaks than counting what a recogniser takes them for (`monitor.features.said_phones`).

    A frame counts where voice activity takes all of it for speech. It comes out within 0.1 s of
    its end, the same for any cutting into blocks, and its span says which audio it was.

    Other units (another recogniser's, a codec's) are counted as ready-made frames of this name,
    with their own size: see `monitor.sources.FramesFile`.

    Args:
        network: another one than the package's own.

    Attributes:
        spec: with the mark of the weights: codes of two networks have nothing in common.

    Raises:
        StoreError: the weights in the package are damaged.

    Example:
        >>> import numpy as np
        >>> phones = Phones()
        >>> phones.process(np.zeros(32000)).values
        array([], dtype=int64)
    """

    # benchmarks/change.py chose it
    follow = Sensitivity(50, 300, 40.0, 0.05, back_units=20, held_units=3, min_units=3)

    _rest: FloatArray  # less than a block

    def __init__(self, network: UnitNetwork | None = None) -> None:
        network = shipped() if network is None else network
        self.spec = FeatureSpec(
            "phones", HISTOGRAM, network.size, network.frame_seconds, RATE, network.mark
        )
        self._ticks = round(network.frame_seconds * TICKS_PER_SECOND)  # of a frame
        self._late = (network.late + 1) * self._ticks
        self._memory = network.memory // _TICK
        self._stream = network.stream()
        self._vad = VoiceActivity(RATE, ticks=1)
        self.reset()

    def process(self, samples: FloatArray) -> Track:
        """The frames of speech that these further samples, shape (n,), complete."""
        heard = np.concatenate((self._rest, samples), dtype=np.float32)
        whole = heard.size - heard.size % BLOCK
        heard, self._rest = heard[:whole], heard[whole:].copy()
        self._decide(heard)
        skipped = max(0, self._skip - self._memory - self._heard) // _BLOCK_TICKS * BLOCK
        if skipped and heard.size:
            self._leave_out(min(skipped, heard.size))
            heard = heard[skipped:]
        self._heard += heard.size // _TICK
        return self._out(self._stream.push(heard))

    def flush(self) -> Track:
        """The last frames: silence follows them."""
        rest, self._rest = self._rest, np.empty(0, np.float32)
        self._decide(rest[: rest.size - rest.size % (self._ticks * _TICK)])
        self._heard += -(-rest.size // _TICK)
        units = np.concatenate((self._stream.push(rest), self._stream.flush()))
        return self._out(units[: self._speech.size])

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
        self._next = 0  # the frame that comes out of the network next
        self._speech: BoolArray = np.empty(0, np.bool_)  # whether it and those after it are speech

    def _decide(self, samples: FloatArray) -> None:
        """A frame is speech where all of its ticks are."""
        decisions = self._vad.process(samples).reshape(-1, self._ticks).all(axis=1)
        self._speech = np.concatenate((self._speech, decisions))

    def _leave_out(self, samples: int) -> None:
        """The network hears silence before what follows: it forgets that before it matters."""
        self._heard += samples // _TICK
        before, self._next = self._next, self._heard // self._ticks
        self._speech = self._speech[self._next - before :]
        self._stream.reset()

    def _out(self, units: IntArray) -> Track:
        """What has come out of the network, without what is no speech."""
        speech, self._speech = self._speech[: units.size], self._speech[units.size :]
        frames = self._next + np.flatnonzero(speech)
        begins = frames * self._ticks
        blocks = -(-(begins + self._late) // _BLOCK_TICKS)  # whose last sample completes each
        ticks = np.minimum(blocks * _BLOCK_TICKS, self._heard)
        wanted = ticks > self._skip
        units, self._next = units[frames - self._next], self._next + units.size
        spans = np.column_stack((begins, begins + self._ticks))
        return Track(ticks[wanted], units[wanted], spans[wanted])
