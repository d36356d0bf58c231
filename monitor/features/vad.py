"""Voice activity: the clock of speech seconds that every feature and every rank model shares."""

from __future__ import annotations

import numpy as np
import webrtcvad

from monitor.features.framing import Framer
from monitor.types import TICKS_PER_SECOND, BoolArray, FloatArray

VAD_RATE = 8000
"""WebRTC's detector brings every rate down to 8 kHz inside, so nothing is lost by feeding that."""
DECISION_TICKS = 3
"""The detector hears 30 ms at a time: as good as 10 ms on readers, in half the time
(benchmarks/replay.py)."""
_FULL_SCALE = 32768.0
# Of ten readers' voiced frames 2 leaves out hardly more than 0 does (1.9 % against 1.6 %, nearly
# all of it one recording's hum) and 3 leaves out 2.7 %; white noise at -30 dBFS is speech to 0 and
# 1, not to 2.
_AGGRESSIVENESS = 2


class VoiceActivity:
    """WebRTC's voice activity detector, one decision for every three ticks of 10 ms.

    It adapts to what it hears, so it must hear a recording from its first sample.

    Args:
        rate: of what it hears, in Hz: 8000 or 16000.
        ticks: to decide on at a time: 1, 2 or 3.

    Example:
        >>> import numpy as np
        >>> detector = VoiceActivity()
        >>> detector.process(np.zeros(400))
        array([False, False, False])
        >>> detector.process(np.zeros(80))
        array([False, False, False])
    """

    def __init__(self, rate: int = VAD_RATE, ticks: int = DECISION_TICKS) -> None:
        self._rate, self._ticks = rate, ticks
        self._samples = ticks * rate // TICKS_PER_SECOND
        self.reset()

    def process(self, samples: FloatArray) -> BoolArray:
        """Decide on the ticks that these further samples, (n,), complete: True for speech."""
        scaled = self._framer.push(samples) * np.float32(_FULL_SCALE)
        np.rint(scaled, out=scaled)
        np.clip(scaled, -_FULL_SCALE, _FULL_SCALE - 1, out=scaled)
        heard = scaled.astype(np.int16).tobytes()
        decide, step = self._detector.is_speech, 2 * self._samples
        decisions = [decide(heard[at : at + step], self._rate) for at in range(0, len(heard), step)]
        return np.repeat(np.array(decisions, dtype=np.bool_), self._ticks)

    def reset(self) -> None:
        """Forget everything heard: the next sample is the first of a recording."""
        self._framer = Framer(self._samples, self._samples)
        self._detector = webrtcvad.Vad(_AGGRESSIVENESS)
