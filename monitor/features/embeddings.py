"""Speaker embeddings: one for every three seconds of speech, by any network."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from monitor.errors import UsageError
from monitor.features.extractor import VoiceActivity
from monitor.features.framing import AudioFeature, join_tracks
from monitor.kinds import EMBEDDING, FeatureSpec, Sensitivity
from monitor.networks.voice import SHA256, SIZE, shipped
from monitor.protocols import Embedder, MarkedEmbedder
from monitor.types import TICKS_PER_SECOND, EarlyFrames, FloatArray, IntArray, Track

RATE = 16000
WINDOW_SECONDS = 3.0
_TICK = RATE // TICKS_PER_SECOND
_WINDOW = round(WINDOW_SECONDS * RATE)
EARLY_SECONDS = (1, 2)
"""Of speech in a window that still grows: what it says by then is an early frame."""
EARLY_WINDOWS = 2
"""The first windows have early frames: to more whole ones a part adds little."""
EARLY_EVERY = 3
"""Calibration speech has its tests anywhere: of every so many windows the first have early frames.
Those of all would cost as much as the windows themselves."""
SHORTEST = RATE
"""Of less than a second the network makes little."""
_BATCH = 4
"""More at a time leave the caches of a processor."""
_AT_ONCE = 60 * RATE
"""An hour given at once is heard a minute at a time: memory does not grow with it."""


def window_spec(name: str, size: int, network: str | None = None) -> FeatureSpec:
    """Return the spec of embeddings of such windows; ``network`` is the sha256 of its weights."""
    return FeatureSpec(name, EMBEDDING, size, WINDOW_SECONDS, RATE, network)


class SpeechWindows(AudioFeature):
    """Embedding feature: the speech of a recording, pauses left out, three seconds at a time.

    A frame is complete once three seconds of speech are together; they may lie far apart. Of what
    is left at the end one more is made, if it is a second or more, which counts by its length. The
    first two windows are embedded at one and at two seconds too, as early frames. Any cutting into
    blocks gives the same windows; those that one call completes go to the network together, so that
    a replay is batched and a live stream is not.

    Attributes:
        activity: the detector of what is speech.
        early_every: of every so many windows the first two have early frames; 0: of all.
    """

    early_every = 0

    def __init__(
        self, spec: FeatureSpec, embedder: Embedder, follow: Sensitivity | None = None
    ) -> None:
        self.spec, self.follow = spec, follow
        self._encoder = embedder
        self._window: FloatArray = np.zeros(_WINDOW, np.float32)
        self._filled = 0  # samples of it
        self.activity = VoiceActivity(RATE, ticks=1)
        self.reset()

    def process(self, samples: FloatArray) -> Track:
        """Embed the windows that these further samples, shape (n,), complete."""
        samples = np.asarray(samples, np.float32)
        track = self.spec.no_frames()
        for start in range(0, samples.size, _AT_ONCE):
            track = join_tracks(track, self._embed_windows(samples[start : start + _AT_ONCE]))
        return track

    def _has_early(self, window: int) -> bool:
        index = window % self.early_every if self.early_every else window
        return index < EARLY_WINDOWS

    def flush(self) -> Track:
        """Embed the window that the recording cuts short, where it is a second or more."""
        last = self._window[: self._filled].copy()
        self._filled = 0
        if last.size < SHORTEST or self._ticks <= self._skip:
            return self.spec.no_frames()
        fraction = np.float32(last.size / _WINDOW)
        return Track(np.array([self._ticks]), fraction * self._encoder.embed(last[None]))

    def reset(self) -> None:
        """Start afresh: the next sample is the first of a recording."""
        super().reset()
        self.activity.reset()
        self._rest: FloatArray = np.empty(0, np.float32)  # less than a tick
        self._filled = 0
        self._ticks = 0
        self._windows = 0  # whole ones so far

    def _embed_windows(self, samples: FloatArray) -> Track:
        sound = np.concatenate((self._rest, samples))
        count = sound.size // _TICK
        ticks = sound[: count * _TICK].reshape(count, _TICK)
        self._rest = sound[count * _TICK :].copy()
        speech_ticks = np.flatnonzero(self.activity.process(samples))
        before = self._filled // _TICK
        speech = np.concatenate((self._window[: self._filled], ticks[speech_ticks].ravel()))
        window_count = speech.size // _WINDOW
        early = self._embed_early(speech, before, speech_ticks)
        self._windows += window_count
        self._filled = speech.size - window_count * _WINDOW
        self._window[: self._filled] = speech[window_count * _WINDOW :]
        # a window is complete with the tick that brings its last samples
        last = np.arange(1, window_count + 1) * (_WINDOW // _TICK) - before - 1
        complete = self._ticks + speech_ticks[last] + 1
        self._ticks += count
        is_new = complete > self._skip
        windows = speech[: window_count * _WINDOW].reshape(window_count, _WINDOW)[is_new]
        values = [
            self._encoder.embed(windows[start : start + _BATCH])
            for start in range(0, len(windows), _BATCH)
        ]
        if not values:
            return replace(self.spec.no_frames(), early=early)
        return Track(complete[is_new], np.concatenate(values), early=early)

    def _embed_early(
        self, speech: FloatArray, before: int, speech_ticks: IntArray
    ) -> EarlyFrames | None:
        """Early frames that newly spoken ticks complete, the first after ``before`` of a window."""
        long = _WINDOW // _TICK
        ticks, values, seconds = [], [], []
        for window in range(-(-speech.size // _WINDOW)):
            if not self._has_early(self._windows + window):
                continue
            for length in EARLY_SECONDS:
                end = window * long + length * TICKS_PER_SECOND  # in ticks of this speech
                if not before < end <= before + speech_ticks.size:
                    continue
                tick = int(self._ticks + speech_ticks[end - before - 1] + 1)
                if tick > self._skip:
                    beginning = speech[window * _WINDOW : window * _WINDOW + length * RATE]
                    ticks.append(tick)
                    values.append(self._encoder.embed(beginning[None]))
                    seconds.append(length)
        if not ticks:
            return None
        return EarlyFrames(np.array(ticks), np.concatenate(values), np.array(seconds))


class Voice(SpeechWindows):
    """Embeddings of the speech, three seconds at a time, by the package's own voice network.

    ECAPA-TDNN, compressed, run by numpy (`monitor.networks.voice`): it is in every install, loaded
    once, and shared by all.

    Args:
        network: another one of the same make, such as a fine-tuned one (`monitor.lab.adapting`);
            its sha256 marks what it makes. None: the one that ships.
        name: of the feature, where it is heard beside the one that ships.

    Raises:
        StoreError: the weights in the package are damaged.
        UsageError: a network that has no mark: what it makes could be taken for another's.

    Example:
        >>> import numpy as np
        >>> voice = Voice()
        >>> voice.process(np.zeros(48000)).values.shape  # silence
        (0, 192)
    """

    spec = window_spec("voice", SIZE, SHA256)
    # benchmarks/change.py chose it
    follow = Sensitivity(1, 3, 20.0, 3e-3, back_units=3, level=0.3)

    def __init__(self, network: MarkedEmbedder | None = None, name: str = "voice") -> None:
        self._given = network, name
        network = shipped() if network is None else network
        if not network.sha256:
            raise UsageError("a network needs the sha256 of its weights, as a mark")
        self.spec = window_spec(name, network.size, network.sha256)
        super().__init__(self.spec, network, self.follow)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how another process makes it afresh."""
        return type(self), self._given
