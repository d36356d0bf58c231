"""Cuts a stream of speech into utterances, at pauses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import webrtcvad

from monitor.features.framing import Framer
from monitor.types import TICKS_PER_SECOND, FloatArray, IntArray

__all__ = ["LONGEST", "RATE", "Pauses", "Utterance"]

RATE = 16_000
LONGEST = 8 * TICKS_PER_SECOND
"""Ticks of the longest utterance."""
_TICK = RATE // TICKS_PER_SECOND
_PAUSE = 20  # ticks without speech; the detector itself holds on for some 80 ms more
_MARGIN = 10  # ticks of silence kept on either side, for the recogniser's model of silence
_SHORTEST = 10  # SRD: speech shorter than 0.1 s is skipped
_SMOOTH = 5  # ticks over which the quietest place of an utterance without a pause is looked for
_AGGRESSIVENESS = 2  # as the clock of the program
_FULL_SCALE = 32768.0
# Digital silence (a gate, a codec that pauses) has a spectrum without a floor, which spoils the
# mean that the recogniser takes out of an utterance: ticks of nothing but zeros become +-1.
_HISS = np.random.default_rng(0).integers(-1, 2, (LONGEST, _TICK), dtype=np.int16)


@dataclass(frozen=True, slots=True)
class Utterance:
    """A stretch of audio with speech in it.

    Attributes:
        begin: tick of its first sample.
        complete: the tick by which it was known to be over.
        samples: shape (160 n,), 16-bit integers; faint noise in place of digital silence.
    """

    begin: int
    complete: int
    samples: IntArray


class Pauses:
    """Finds the utterances of a stream, the same ones for any cutting into blocks.

    An utterance goes from 0.1 s before its first tick of speech to 0.1 s after its last one, and
    is over when 0.2 s have passed without speech. One of 8 s is cut at its quietest place after
    the fourth second, and goes on there. What holds less than 0.1 s of speech is none. So an
    utterance comes out at most 8 s after it began, and at most 8 s of audio are kept.

    Example:
        >>> import numpy as np
        >>> t = np.arange(16000) / 16000
        >>> buzz = sum(np.sin(2 * np.pi * 120 * k * t) / k for k in range(1, 9)) / 4
        >>> pauses = Pauses()
        >>> found = pauses.push(np.concatenate([np.zeros(8000), buzz, np.zeros(8000)]))
        >>> [(u.begin, u.complete, u.samples.size // 160) for u in found]
        [(40, 180, 130)]
    """

    def __init__(self) -> None:
        self._kept = np.empty((LONGEST, _TICK), np.int16)  # ticks from self._begin on
        self._speech = np.empty(LONGEST, np.bool_)  # decisions on them
        self.reset()

    @property
    def heard(self) -> int:
        """Ticks heard; one that is not complete counts."""
        return -(-self._samples // _TICK)

    def push(self, samples: FloatArray) -> list[Utterance]:
        """The utterances that these further samples, shape (n,) at 16 kHz, complete."""
        self._samples += samples.size
        ticks = self._framer.push(samples)
        found: list[Utterance] = []
        for low in range(0, len(ticks), LONGEST):  # an hour at once is not scaled at once
            scaled = np.rint(ticks[low : low + LONGEST] * _FULL_SCALE)
            for tick in np.clip(scaled, -_FULL_SCALE, _FULL_SCALE - 1).astype(np.int16):
                self._hear(tick, found)
        return found

    def flush(self) -> list[Utterance]:
        """The utterance that only the end of the recording completes."""
        found: list[Utterance] = []
        self._give(self._last + 1 + _MARGIN, self.heard, found)
        return found

    def reset(self) -> None:
        """Forget everything heard: the next sample is the first of a recording."""
        self._framer = Framer(_TICK, _TICK)
        self._detector = webrtcvad.Vad(_AGGRESSIVENESS)
        self._samples = 0
        self._begin = 0  # tick of the first one kept
        self._count = 0  # ticks kept
        self._last = -1  # of those kept, the last one with speech; -1 if there is none

    def _hear(self, tick: IntArray, found: list[Utterance]) -> None:
        """Keep one more tick, and cut if it is time."""
        speech = self._detector.is_speech(tick.tobytes(), RATE)
        self._kept[self._count], self._speech[self._count] = tick, speech
        if speech:
            self._last = self._count
        self._count += 1
        now = self._begin + self._count
        if self._last < 0:
            self._drop(self._count - _MARGIN)
        elif self._count - 1 - self._last >= _PAUSE:
            self._give(self._last + 1 + _MARGIN, now, found)
            self._drop(self._count - _MARGIN)
        elif self._count == LONGEST:
            cut = self._quietest()
            self._give(cut, now, found)
            self._drop(cut)

    def _give(self, end: int, complete: int, found: list[Utterance]) -> None:
        """An utterance of what is kept up to an end, if it has speech enough."""
        end = min(end, self._count)
        if np.count_nonzero(self._speech[:end]) >= _SHORTEST:
            samples = self._kept[:end].copy()
            nothing = ~samples.any(axis=1)
            samples[nothing] = _HISS[:end][nothing]
            found.append(Utterance(self._begin, complete, samples.reshape(-1)))

    def _drop(self, count: int) -> None:
        """Let go of the first ticks kept."""
        if count <= 0:
            return
        left = self._count - count
        self._kept[:left] = self._kept[count : self._count]
        self._speech[:left] = self._speech[count : self._count]
        speech = np.flatnonzero(self._speech[:left])
        self._begin, self._count = self._begin + count, left
        self._last = int(speech[-1]) if speech.size else -1

    def _quietest(self) -> int:
        """The middle of the quietest stretch in the second half of what is kept."""
        half = LONGEST // 2
        energy = np.square(self._kept[half:].astype(np.int64)).sum(axis=1)
        stretches = np.convolve(energy, np.ones(_SMOOTH, np.int64), mode="valid")
        return half + int(stretches.argmin()) + _SMOOTH // 2
