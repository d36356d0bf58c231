"""Mixes the channels of a recording, and notices where they should not be mixed.

Two people on the two channels of a call become one voice that is nobody's; stereo of opposite phase
becomes silence. Ordinary stereo (one voice panned, delayed, filtered, or heard by two microphones)
rises and falls in both channels alike, band by band (benchmarks/channels.py).
"""

from __future__ import annotations

from collections import deque
from itertools import combinations, pairwise

import numpy as np

from monitor.maths.spectra import fft
from monitor.types import TICKS_PER_SECOND, FloatArray, Notice

__all__ = ["Mixer", "mean_of"]

FRAME_TICKS = 10
"""Levels of each channel for each 100 ms: a syllable's, longer than a delay between channels."""
BANDS_HZ = (200, 500, 1000, 2000, 4000)
WINDOW_FRAMES = 400
"""What is looked at: the last 40 s."""
LEAST_FRAMES = 100
"""Of them with sound in either channel, before channels can differ: 10 s."""
LEAST_CANCELLED_FRAMES = 30
ACTIVE_DECIBELS = 25.0
"""Below a channel's loud frames: what is fainter is a pause."""
FAINT_DECIBELS = 40.0
"""Below them: fainter is as good as nothing."""
LEAST_RANGE_DECIBELS = 15.0
"""From a channel's faint frames to its loud ones where somebody speaks in it; noise has less."""
MOST_LAG_FRAMES = 5
"""How much later a channel may say the same."""
LEAST_CORRELATION = 0.5
"""Of the levels of two channels that hold the same speech: ordinary stereo has 0.6 and more."""
CANCELLED_DECIBELS = 12.0
"""What the mean is fainter than the channels where they cancel; it is 3 where they are unlike."""
MOST_COMPARED = 8
"""Channels: of more the first ones are compared."""
_LOUD = 0.95
_SPREAD = (10.0, 90.0)
_SECOND = TICKS_PER_SECOND // FRAME_TICKS
_SILENCE = 1e-8  # 80 dB below full scale


class Mixer:
    """The mean of the channels of one recording, with what is to be said of mixing them.

    What is noticed does not depend on how the recording is cut.

    Args:
        rate: samples per second.
        recording: which recording of the stream it is.
        first_tick: ticks of the stream before it.

    Example:
        >>> mixer, sound = Mixer(8000, 0, 0), np.random.default_rng(0).standard_normal(80_000)
        >>> mixed = mixer.mix(np.stack([sound, -sound], axis=1).astype(np.float32))
        >>> ((tick, notice),) = mixer.found()
        >>> float(abs(mixed).max()), tick, notice.kind
        (0.0, 300, 'channels cancel')
    """

    def __init__(self, rate: int, recording: int, first_tick: int) -> None:
        self._rate, self._recording, self._first_tick = rate, recording, first_tick
        self._length = max(1, rate * FRAME_TICKS // TICKS_PER_SECOND)
        self._rest: FloatArray | None = None
        self._levels: deque[FloatArray] = deque(maxlen=WINDOW_FRAMES)
        self._frames = 0
        self._open = {"channels differ", "channels cancel"}
        self._found: list[tuple[int, Notice]] = []

    def mix(self, columns: FloatArray) -> FloatArray:
        """The mean of further samples, shape (n, channels) float32: shape (n,)."""
        mixed = mean_of(columns)
        if columns.shape[1] > 1 and self._open:
            self._compare(columns[:, :MOST_COMPARED], mixed)
        return mixed

    def found(self) -> tuple[tuple[int, Notice], ...]:
        """What was noticed since it was asked last, as (tick, Notice): each once a recording."""
        found, self._found = tuple(self._found), []
        return found

    def _compare(self, columns: FloatArray, mixed: FloatArray) -> None:
        heard = np.column_stack((columns, mixed)).T
        if self._rest is not None and len(self._rest) == len(heard):
            heard = np.concatenate((self._rest, heard), axis=1)
        elif self._rest is not None:  # another number of channels
            self._levels.clear()
        count = heard.shape[1] // self._length
        self._rest = heard[:, count * self._length :].copy()
        for frame in np.split(heard[:, : count * self._length], count, axis=1) if count else ():
            self._levels.append(self._levels_of(np.ascontiguousarray(frame)))
            self._frames += 1
            if self._frames % _SECOND == 0 and self._open:
                self._look()

    def _levels_of(self, frame: FloatArray) -> FloatArray:
        """Of channels and their mean, decibels, shape (channels + 1, 1 + bands)."""
        spectrum = fft.rfft(frame)
        power = (spectrum.real**2 + spectrum.imag**2) * (2 / self._length**2)
        edges = [round(hertz * self._length / self._rate) for hertz in BANDS_HZ]
        bands = [power[:, low:high].sum(axis=1) for low, high in pairwise(edges)]
        made = np.stack([power.sum(axis=1), *bands], axis=1, dtype=np.float64)
        return 10 * np.log10(made + _SILENCE)

    def _look(self) -> None:
        """Say what is to be said at the end of this second."""
        levels = np.stack(self._levels)
        channels, mixed = levels[:, :-1, 0], levels[:, -1, 0]
        loud = np.quantile(channels, _LOUD, axis=0)
        active = channels > np.maximum(loud - ACTIVE_DECIBELS, 10 * np.log10(_SILENCE) + 20.0)
        some = active.any(axis=1)
        if "channels cancel" in self._open and np.count_nonzero(some) >= LEAST_CANCELLED_FRAMES:
            power = 10 * np.log10(np.mean(10 ** (channels[some] / 10), axis=1))
            if np.median(power - mixed[some]) > CANCELLED_DECIBELS:
                best = int(np.argmax(loud)) + 1
                self._say(
                    "channels cancel",
                    "the channels cancel each other: mixed they are near silence; hear one "
                    f"(--channel {best})",
                )
        if "channels differ" in self._open and np.count_nonzero(some) >= LEAST_FRAMES:
            low, high = np.percentile(channels[some], _SPREAD, axis=0)
            bands = levels[some, :-1, 1:]
            heard = np.maximum(bands, np.quantile(bands, _LOUD, axis=0) - FAINT_DECIBELS)
            spoken = np.flatnonzero(high - low >= LEAST_RANGE_DECIBELS).tolist()
            for a, b in combinations(spoken, 2):
                if _alike(heard[:, a], heard[:, b]) < LEAST_CORRELATION:
                    two = channels.shape[1] == 2
                    self._say(
                        "channels differ",
                        f"{'the two channels' if two else f'channels {a + 1} and {b + 1}'} hold "
                        "different speech, which is mixed: hear one of them "
                        f"(--channel {a + 1} or --channel {b + 1})",
                    )
                    break

    def _say(self, kind: str, text: str) -> None:
        self._open.discard(kind)
        tick = -(-self._frames * self._length * TICKS_PER_SECOND // self._rate)
        self._found.append((self._first_tick + tick, Notice(kind, text, self._recording)))


def mean_of(columns: FloatArray) -> FloatArray:
    """The mean of the channels, added in order: numpy's own order depends on the shape."""
    if columns.shape[1] == 1:
        return columns[:, 0]
    total: FloatArray = sum(columns.T[1:], start=columns[:, 0])
    return total / np.float32(columns.shape[1])


def _alike(a: FloatArray, b: FloatArray) -> float:
    """The mean correlation of two channels' bands, (n, bands) each; one may come a little later."""
    size, best = len(a), -1.0
    for lag in range(-MOST_LAG_FRAMES, MOST_LAG_FRAMES + 1):
        x, y = (a[lag:], b[: size - lag]) if lag >= 0 else (a[: size + lag], b[-lag:])
        x, y = x - x.mean(axis=0), y - y.mean(axis=0)
        scale = np.sqrt((x * x).sum(axis=0) * (y * y).sum(axis=0))
        told = scale > 0
        if not told.any():  # nothing but silence in the bands of one of them
            return 1.0
        best = max(best, float(np.mean((x * y).sum(axis=0)[told] / scale[told])))
    return best
