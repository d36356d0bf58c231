"""Speaker embeddings, one per three seconds of speech."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, Self

import numpy as np

from monitor.errors import UsageError
from monitor.features.extractor import VoiceActivity
from monitor.features.framing import AudioFeature, attributes_without, join_tracks
from monitor.kinds import EMBEDDING, FeatureSpec, Sensitivity
from monitor.networks.voice import SHA256, SIZE, VoiceNetwork, hide_sound, mel_decibels, shipped
from monitor.protocols import Embedder, MarkedEmbedder, RunEmbedder
from monitor.types import (
    TICKS_PER_SECOND,
    AnyArray,
    BoolArray,
    EarlyFrames,
    FloatArray,
    IntArray,
    SpeechWindow,
    Track,
)

RATE = 16000
WINDOW_SECONDS = 3.0
_TICK = RATE // TICKS_PER_SECOND
_WINDOW = round(WINDOW_SECONDS * RATE)
SLOTS = 6  # slots of a window. Runs of them are embedded too.
EARLY_SECONDS = (1, 2)  # seconds of speech at which an unfinished window gives an early frame
EARLY_WINDOWS = 2  # first windows, which have early frames; they add little to later windows
SHORTEST = RATE  # the network embeds less than a second poorly
_BATCH = 4  # more windows at a time leave the caches of a processor
_AT_ONCE = 60 * RATE  # longer input is processed a minute at a time


def window_spec(name: str, size: int, network: str | None = None) -> FeatureSpec:
    """Return the spec of embeddings; ``network`` is the sha256 of the network's weights."""
    return FeatureSpec(name, EMBEDDING, size, WINDOW_SECONDS, RATE, network)


class SpeechWindows(AudioFeature):
    """Embedding feature of speech without pauses, in windows of three seconds.

    The remainder at the end makes one more frame (`embed_part`). The first two windows are also
    embedded at one and at two seconds, as early frames. All windows that one call completes are
    embedded together. With ``defers``, whole windows are returned as zeros, for `embed_deferred`.
    """

    def __init__(
        self, spec: FeatureSpec, embedder: Embedder, follow: Sensitivity | None = None
    ) -> None:
        self.spec, self.follow = spec, follow
        self._encoder = embedder
        self._window: FloatArray = np.zeros(_WINDOW, np.float32)
        self._spoken: IntArray = np.empty(0, np.intp)  # ticks of the window so far
        self.activity = VoiceActivity()
        self.defers = False
        super().__init__()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Copy what it has processed; the network is shared."""
        memo[id(self._encoder)] = self._encoder
        windows = object.__new__(type(self))
        windows.__dict__.update(deepcopy(self.__dict__, memo))
        return windows

    def process(self, samples: FloatArray) -> Track:
        """Process further samples, shape (n,); embed the windows that they complete."""
        samples = np.asarray(samples, np.float32)
        track = self._no_windows()
        for start in range(0, samples.size, _AT_ONCE):
            track = join_tracks(track, self._embed_windows(samples[start : start + _AT_ONCE]))
        return track

    def flush(self) -> Track:
        """Embed the incomplete last window, if it has a second or more."""
        silence = np.zeros(-self._rest.size % _TICK, np.float32)  # fills up the last tick
        track = self._embed_windows(silence)
        last = SpeechWindow(self._spoken, self._window[: self._filled].reshape(-1, _TICK).copy())
        self._spoken = self._spoken[:0]
        if self._ticks <= self._skip or not self._is_wanted(self._windows):
            return track
        values = self.embed_part(last.samples)
        ticks, windows = np.full(len(values), self._ticks), (last,) * len(values)
        return join_tracks(track, Track(ticks, values, windows=windows))

    def embed_part(self, speech: FloatArray) -> AnyArray:
        """Embed part of a window, (n, 160), scaled by its length: (1, d), or (0, d) below 1 s."""
        if speech.size < SHORTEST:
            return self._no_windows().values
        return np.float32(speech.size / _WINDOW) * self._encoder.embed(speech.reshape(1, -1))

    def embed_parts(self, parts: Sequence[FloatArray]) -> list[AnyArray]:
        """Embed parts of windows, at least a second each, like `embed_part`: (d,) each.

        The shipped network embeds them in one batch, which changes the rounding.
        """
        if not parts or not isinstance(self._encoder, VoiceNetwork):
            return [value for part in parts for value in self.embed_part(part)]
        bands = [mel_decibels(part) for part in parts]
        values = self._encoder.embed_bands(bands, exact=False)
        return [
            np.float32(part.size / _WINDOW) * value
            for part, value in zip(parts, values, strict=True)
        ]

    def _no_windows(self) -> Track:
        return Track(np.empty(0, np.intp), np.empty((0, self.spec.size), np.float32))

    def snapshot_attributes(self) -> dict[str, object]:
        """Return the attributes for a snapshot, with energies instead of the window's samples.

        UsageError if a network other than `monitor.networks.voice` needs the samples.
        """
        if not isinstance(self._encoder, VoiceNetwork):
            raise UsageError(
                f"streams with {self.spec.name} cannot move: its network needs the sound so far"
            )
        attributes = attributes_without(self, "_encoder", "spec", "defers")
        return {**attributes, "_window": hide_sound(self._window[: self._filled])}

    def resume(self) -> None:
        """Continue from a snapshot's attributes."""
        window: FloatArray = np.zeros(_WINDOW, np.float32)
        window[: self._filled] = self._window
        self._window = window

    @property
    def _filled(self) -> int:
        """Samples of the window so far."""
        return self._spoken.size * _TICK

    def reset(self) -> None:
        """Reset: the next sample is the first of a recording."""
        super().reset()
        self.activity.reset()
        self._rest: FloatArray = np.empty(0, np.float32)  # less than a tick
        self._spoken = np.empty(0, np.intp)
        self._ticks = 0
        self._windows = 0  # whole ones so far
        self._early_windows, self._most_speech = EARLY_WINDOWS, np.inf

    def skip_early(self, most_speech: float) -> None:
        """Skip early frames, and windows that begin after this many ticks of speech, until `reset`.

        Templates use neither.
        """
        self._early_windows, self._most_speech = 0, most_speech

    def _is_wanted(self, window: IntArray | int) -> BoolArray:
        """Return whether a window after this many whole ones begins early enough to be used."""
        return np.asarray(np.multiply(window, _WINDOW // _TICK) < self._most_speech)

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
        is_wanted = self._is_wanted(self._windows + np.arange(window_count))
        self._windows += window_count
        spoken = np.concatenate((self._spoken, self._ticks + speech_ticks + 1))
        self._ticks += count
        used_ticks = window_count * _WINDOW // _TICK
        self._spoken = spoken[used_ticks:].copy()
        self._window[: self._filled] = speech[window_count * _WINDOW :]
        # a window is complete with the tick that brings its last samples
        spoken = spoken[:used_ticks].reshape(window_count, _WINDOW // _TICK)
        is_new = is_wanted & (spoken[:, -1] > self._skip)
        windows = speech[: window_count * _WINDOW].reshape(window_count, _WINDOW)[is_new]
        if not len(windows):
            return replace(self._no_windows(), early=early)
        values = np.zeros((len(windows), self.spec.size), np.float32)
        runs: list[FloatArray | None] = [None] * len(windows)
        if not self.defers:
            values, runs = self._embed_whole(windows)
        samples = windows.reshape(len(windows), -1, _TICK)
        made_of = map(SpeechWindow, spoken[is_new], samples, runs)
        return Track(spoken[is_new, -1], values, None, early, tuple(made_of))

    def _embed_whole(self, windows: FloatArray) -> tuple[FloatArray, list[FloatArray | None]]:
        """Embed whole windows, (k, 48000): (k, d), and the runs of each if the network can."""
        batches = [windows[start : start + _BATCH] for start in range(0, len(windows), _BATCH)]
        if not isinstance(self._encoder, RunEmbedder):
            embedded = [self._encoder.embed(batch) for batch in batches]
            return np.concatenate(embedded), [None] * len(windows)
        values, runs = zip(*(self._encoder.embed_runs(b, SLOTS) for b in batches), strict=True)
        return np.concatenate(values), list(np.concatenate(runs))

    def embed_deferred(self, tracks: Sequence[Track]) -> list[Track]:
        """Embed the whole windows of several features' tracks in one batch."""
        places = [
            (number, row)
            for number, track in enumerate(tracks)
            for row, window in enumerate(track.windows or ())
            if window.samples.size == _WINDOW
        ]
        if not places:
            return list(tracks)
        values = [track.values.copy() for track in tracks]
        windows = [list(track.windows or ()) for track in tracks]
        sound = np.stack([windows[number][row].samples.reshape(-1) for number, row in places])
        for (number, row), value, runs in zip(places, *self._embed_whole(sound), strict=True):
            values[number][row] = value
            windows[number][row] = replace(windows[number][row], runs=runs)
        return [
            replace(track, values=values[number], windows=tuple(windows[number]))
            for number, track in enumerate(tracks)
        ]

    def _embed_early(
        self, speech: FloatArray, before: int, speech_ticks: IntArray
    ) -> EarlyFrames | None:
        """Return the early frames that new ticks complete, after ``before`` ticks of a window."""
        long = _WINDOW // _TICK
        ticks, values, seconds = [], [], []
        for window in range(-(-speech.size // _WINDOW)):
            index = self._windows + window
            if index >= self._early_windows:
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
    """Embeddings of three seconds of speech, by the shipped voice network.

    Args:
        network: network instead of `monitor.networks.voice`, for example a fine-tuned one
            (`monitor.lab.adapting`). Its sha256 marks the frames; UsageError without a sha256.
        name: name of the feature, if it is used beside the shipped one.
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
        """Return the class and arguments with which another process recreates it."""
        return type(self), self._given
