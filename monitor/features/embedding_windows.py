"""One embedding for every three seconds of speech, by any network."""

from __future__ import annotations

import numpy as np

from monitor.features.tracks import join_tracks
from monitor.features.vad import VoiceActivity
from monitor.kinds import EMBEDDING, FeatureSpec
from monitor.kinds.following import Sensitivity
from monitor.protocols import Embedder
from monitor.types import TICKS_PER_SECOND, FloatArray, Track

__all__ = ["RATE", "SHORTEST", "WINDOW_SECONDS", "SpeechWindows", "window_spec"]

RATE = 16000
WINDOW_SECONDS = 3.0
_TICK = RATE // TICKS_PER_SECOND
_WINDOW = round(WINDOW_SECONDS * RATE)
SHORTEST = RATE
"""Of less than a second the network makes little."""
_BATCH = 4
"""More at a time is no faster on a processor, and 16 are slower: they leave its caches
(benchmarks/identity.py)."""
_AT_ONCE = 60 * RATE
"""An hour given at once is heard a minute at a time: memory does not grow with it."""


def window_spec(name: str, size: int, network: str | None = None) -> FeatureSpec:
    """What embeddings of such windows look like.

    Args:
        name: of the feature.
        size: dimensions of an embedding.
        network: sha256 of the network's weights, where it is known.
    """
    return FeatureSpec(name, EMBEDDING, size, WINDOW_SECONDS, RATE, network)


class SpeechWindows:
    """Embedding feature: the speech of a recording, pauses left out, three seconds at a time.

    A frame is complete once three seconds of speech are together; they may lie far apart. Of what
    is left at the end one more is made, if it is a second or more. Any cutting into blocks gives
    the same windows; those that one call completes go to the network together, so that a replay is
    batched and a live stream is not.

    Args:
        spec: of the feature, from `window_spec`.
        embedder: the network.
        follow: how it is followed for changes; None where it is not.
    """

    def __init__(
        self, spec: FeatureSpec, embedder: Embedder, follow: Sensitivity | None = None
    ) -> None:
        self.spec, self.follow = spec, follow
        self._encoder = embedder
        self._window: FloatArray = np.zeros(_WINDOW, np.float32)
        self._filled = 0  # samples of it
        self._vad = VoiceActivity(RATE, ticks=1)
        self.reset()

    def process(self, samples: FloatArray) -> Track:
        """The windows that these further samples, shape (n,), complete, embedded."""
        samples = np.asarray(samples, np.float32)
        made = self.spec.no_frames()
        for start in range(0, samples.size, _AT_ONCE):
            made = join_tracks(made, self._hear(samples[start : start + _AT_ONCE]))
        return made

    def flush(self) -> Track:
        """The window that the recording cuts short, where it is a second or more."""
        last = self._window[: self._filled].copy()
        self._filled = 0
        if last.size < SHORTEST or self._ticks <= self._skip:
            return self.spec.no_frames()
        return Track(np.array([self._ticks]), self._encoder.embed(last[None]))

    def skip_to(self, tick: int) -> None:
        """Windows complete by ``tick`` (counted from the last reset) are not embedded."""
        self._skip = tick

    def reset(self) -> None:
        """Forget everything heard: the next sample is the first of a recording."""
        self._vad.reset()
        self._rest: FloatArray = np.empty(0, np.float32)  # less than a tick
        self._filled = 0
        self._ticks = 0
        self._skip = 0

    def _hear(self, samples: FloatArray) -> Track:
        heard = np.concatenate((self._rest, samples))
        count = heard.size // _TICK
        ticks = heard[: count * _TICK].reshape(count, _TICK)
        self._rest = heard[count * _TICK :].copy()
        spoken = np.flatnonzero(self._vad.process(samples))
        before = self._filled // _TICK
        speech = np.concatenate((self._window[: self._filled], ticks[spoken].ravel()))
        whole = speech.size // _WINDOW
        self._filled = speech.size - whole * _WINDOW
        self._window[: self._filled] = speech[whole * _WINDOW :]
        # a window is complete with the tick that brings its last samples
        last = np.arange(1, whole + 1) * (_WINDOW // _TICK) - before - 1
        complete = self._ticks + spoken[last] + 1
        self._ticks += count
        wanted = complete > self._skip
        windows = speech[: whole * _WINDOW].reshape(whole, _WINDOW)[wanted]
        values = [
            self._encoder.embed(windows[start : start + _BATCH])
            for start in range(0, len(windows), _BATCH)
        ]
        return Track(complete[wanted], np.concatenate(values)) if values else self.spec.no_frames()
