"""From blocks of audio to usable frames: the one code path, live and over files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from monitor.errors import UsageError
from monitor.features.bad_samples import BadSamples
from monitor.features.blocks import columns_of
from monitor.features.condition import CONDITION, ConditionRows
from monitor.features.mixing import Mixer
from monitor.features.resampling import Resampler
from monitor.features.tracks import join_frames, join_tracks, shift_track
from monitor.features.vad import DECISION_TICKS, VAD_RATE, VoiceActivity
from monitor.protocols import Feature
from monitor.threads import one_thread
from monitor.types import TICKS_PER_SECOND, Block, BoolArray, FloatArray, Frames, Track

__all__ = ["Extractor"]


class Extractor:
    """Feeds every feature and the voice activity detector from one stream.

    The concatenated output is the same for any cutting of the stream into blocks. A tick comes
    out once every sample rate in use has been heard up to it and voice activity has decided on it
    (it decides on three ticks at a time); a feature frame complete by that tick is in the same
    ``Frames`` or an earlier one. Ticks count from the start of the stream:
    another recording, or another rate, starts resampling, voice activity and features afresh
    at the next tick. The last tick of a recording is filled up with silence, so that no frame
    lies beyond its end.

    Where channels are mixed that hold different speech, or cancel each other, that is noticed
    (`monitor.features.mixing`).

    Samples that are not finite count as silence and are reported as a ``Gap``, one for each
    second of the recording, at the first tick concerned and as soon as that second is complete.

    Args:
        features: what to compute; names must differ.
        channel: which channel to listen to, from 0; None for the mean of all.
        conditions: describe the sound as well, in the track `CONDITION`.

    Raises:
        UsageError: if two features have one name.

    Example:
        >>> import numpy as np
        >>> from monitor.features.f0 import F0
        >>> extractor = Extractor([F0()])
        >>> tone = np.sin(2 * np.pi * 100 * np.arange(8000) / 8000)
        >>> frames = extractor.process(Block(tone, rate=8000))
        >>> frames.speech.size, frames.tracks["f0"].values.size
        (99, 97)
        >>> extractor.flush().speech.size
        1
    """

    def __init__(
        self,
        features: Sequence[Feature],
        channel: int | None = None,
        *,
        conditions: bool = False,
    ) -> None:
        names = [feature.spec.name for feature in features]
        if len(set(names)) < len(names):
            raise UsageError(f"features must have different names, not {', '.join(names)}")
        self.features = tuple(features)
        self.channel = channel
        self._conditions = conditions
        self._ticks = 0
        self._skip = 0
        self._current: _Recording | None = None

    def process(self, block: Block) -> Frames:
        """The ticks and frames that a further block completes.

        Raises:
            SourceError: the block makes no sense; nothing has changed then.
        """
        samples = columns_of(block, self.channel)
        ended = None
        if self._current is None or self._current.key != (block.recording, block.rate):
            ended = self.flush()
            self._current = _Recording(
                self.features, block, self._ticks, self._skip, conditions=self._conditions
            )
        with one_thread():
            frames = self._current.process(samples)
        self._ticks += frames.speech.size
        return frames if ended is None else join_frames(ended, frames)

    def flush(self) -> Frames:
        """What only the end of the recording, or of the stream, completes."""
        if self._current is None:
            tracks = {each.spec.name: each.spec.no_frames() for each in self.features}
            return Frames(np.empty(0, np.bool_), tracks)
        with one_thread():
            frames = self._current.flush()
        self._current = None
        self._ticks += frames.speech.size
        return frames

    def skip_to(self, tick: int) -> None:
        """Frames complete by ``tick`` of the stream need not be computed.

        Resampling and voice activity still run, so that what follows is the same to the last bit.
        """
        self._skip = tick
        if self._current is not None:
            self._current.skip_to(tick)


class _Recording:
    """One run of blocks of one recording and one rate."""

    def __init__(
        self,
        features: Sequence[Feature],
        block: Block,
        first_tick: int,
        skip: int,
        *,
        conditions: bool,
    ) -> None:
        self.key = (block.recording, block.rate)
        self._features = features
        self._first_tick = first_tick
        self._bad_samples = BadSamples(block.rate, block.recording, first_tick)
        self._conditions = ConditionRows(block.rate) if conditions else None
        self._mixer = Mixer(block.rate, block.recording, first_tick)
        self._vad = VoiceActivity()
        rates = {VAD_RATE, *(_rate(feature) for feature in features)}
        self._resamplers = {rate: Resampler(block.rate, rate) for rate in rates}
        self._heard = dict.fromkeys(rates, 0)  # samples, at each rate
        self._source_rate = block.rate
        self._source_heard = 0
        self._waiting: BoolArray = np.empty(0, np.bool_)  # decisions on ticks not yet given
        self._ticks = 0
        for feature in features:
            feature.reset()
        self.skip_to(skip)

    def skip_to(self, tick: int) -> None:
        for feature in self._features:
            feature.skip_to(max(0, tick - self._first_tick))
        if self._conditions is not None:
            self._conditions.skip_to(max(0, tick - self._first_tick))

    def process(self, samples: FloatArray) -> Frames:
        columns = self._bad_samples.silence(samples)
        mono = self._mixer.mix(columns)
        self._source_heard += mono.size
        sounds = {rate: each.process(mono) for rate, each in self._resamplers.items()}
        tracks = self._feed(sounds)
        if self._conditions is not None:
            rows = self._conditions.process(columns, mono)
            tracks[CONDITION] = shift_track(rows, self._first_tick)
        complete = min(heard * TICKS_PER_SECOND // rate for rate, heard in self._heard.items())
        speech = self._due(min(complete, self._ticks + self._waiting.size))
        losses = self._bad_samples.report(self._ticks)
        return Frames(speech, tracks, losses, notices=self._mixer.found())

    def flush(self) -> Frames:
        tracks = self._feed({rate: each.flush() for rate, each in self._resamplers.items()})
        for feature in self._features:
            last = shift_track(feature.flush(), self._first_tick)
            name = feature.spec.name
            tracks[name] = join_tracks(tracks[name], last)
        ends = [(self._source_rate, self._source_heard), *self._heard.items()]
        total = max(-(-heard * TICKS_PER_SECOND // rate) for rate, heard in ends)
        decided = -(-total // DECISION_TICKS) * DECISION_TICKS
        silence = decided * VAD_RATE // TICKS_PER_SECOND - self._heard[VAD_RATE]
        self._decide(np.zeros(silence, np.float32))
        return Frames(self._due(total), tracks, self._bad_samples.finish())

    def _feed(self, sounds: Mapping[int, FloatArray]) -> dict[str, Track]:
        """Let the detector and every feature hear what has come out of the resamplers."""
        for rate, sound in sounds.items():
            self._heard[rate] += sound.size
        self._decide(sounds[VAD_RATE])
        return {
            each.spec.name: shift_track(each.process(sounds[_rate(each)]), self._first_tick)
            for each in self._features
        }

    def _decide(self, sound: FloatArray) -> None:
        self._waiting = np.concatenate((self._waiting, self._vad.process(sound)))

    def _due(self, complete: int) -> BoolArray:
        """Decisions on the ticks up to this one of the recording that have not been given yet."""
        count = complete - self._ticks
        speech, self._waiting = self._waiting[:count], self._waiting[count:]
        self._ticks = complete
        return speech


def _rate(feature: Feature) -> int:
    """Of the audio it is fed.

    Raises:
        UsageError: it hears none.
    """
    if feature.spec.rate is None:
        raise UsageError(f"feature {feature.spec.name} is made of words, and hears no audio")
    return feature.spec.rate
