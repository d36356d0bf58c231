"""Converters of audio, words and ready-made frames to a stream's clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from monitor.errors import UsageError
from monitor.features.framing import columns_of
from monitor.protocols import Feature
from monitor.stream.accumulator import check_frames
from monitor.stream.front_end import FrontEnd
from monitor.types import TICKS_PER_SECOND, Block, Frames, Track, Tracks, Words


class BlocksToTicks:
    """Converter of audio blocks to frames at ticks of the stream."""

    def __init__(
        self,
        features: Sequence[Feature],
        channel: int | None,  # counted from 1; None mixes all channels
        skip: int,  # frames complete by this tick need not be computed
        *,
        levels: bool = False,  # whether to compute sound levels, and sound conditions
        conditions: bool = False,
        # whether to compute landmarks and waveform, by which audio is recognised again
        landmarks: bool = False,
    ) -> None:
        # resampling and voice activity need libraries that ready-made frames do not
        from monitor.features.channel import Channel
        from monitor.features.extractor import Extractor
        from monitor.features.landmarks import Landmarks
        from monitor.features.waveform import Waveform

        extracted = [*features, *([Channel()] if levels else [])]
        extracted += [Landmarks(), Waveform()] if landmarks else []
        index = None if channel is None else channel - 1
        self._extractor = Extractor(extracted, index, conditions=conditions, windows=True)
        self._extractor.skip_to(skip)
        self._ticks = 0  # ticks returned
        # current recording and sample rate; None between recordings
        self.key: tuple[int, int] | None = None
        self._began, self._samples = 0, 0  # ticks before the current recording, and its samples

    @property
    def ticks(self) -> int:
        """Ticks of audio received. Because of resampling, fewer ticks have been returned."""
        return self.count_ticks(0)

    @property
    def seconds(self) -> float:
        """Seconds of audio received."""
        if self.key is None:
            return self._ticks / TICKS_PER_SECOND
        return self._began / TICKS_PER_SECOND + self._samples / self.key[1]

    def count_ticks(self, samples: int) -> int:
        """Return `ticks` after this many further samples of the recording."""
        if self.key is None:
            return self._ticks
        return self._began - (-(self._samples + samples) * TICKS_PER_SECOND // self.key[1])

    def process(self, block: Block) -> list[Frames]:
        """Process a block; return the completed frames, first those of an ended recording.

        SourceError if the block is invalid. The stream is then unchanged.
        """
        columns_of(block, self._extractor.channel)
        key = (block.recording, block.rate)
        ended = []
        if key != self.key:
            if self.key is not None:
                ended.append(self.flush())
            self.key, self._began, self._samples = key, self._ticks, 0
        self._samples += block.samples.shape[0]
        return [*ended, self._counted(self._extractor.process(block))]

    def flush(self) -> Frames:
        """Complete the recording."""
        self.key = None
        return self._counted(self._extractor.flush())

    def _counted(self, frames: Frames) -> Frames:
        self._ticks += frames.speech.shape[0]
        # a gap is reported at the end of its second, for any division into blocks
        gaps = [(tick + (self._began - tick) % TICKS_PER_SECOND, gap) for tick, gap in frames.gaps]
        return replace(frames, gaps=tuple(gaps))


class BesideClock:
    """Converter of words and ready-made frames to frames at ticks of the stream."""

    def __init__(self, front_end: FrontEnd) -> None:
        self._front_end = front_end
        self._recording: int | None = None
        self._first = 0  # tick of the stream at which the recording began
        self.begun = False

    def check(self, item: Words | Tracks) -> None:
        """Raise an error for invalid words or tracks, before the stream changes."""
        if isinstance(item, Words):
            check_words(item)
        else:
            specs = self._front_end.get_expected_specs(item.tracks)
            check_frames(Frames(np.empty(0, np.bool_), item.tracks), specs)

    def begin_recording(self, recording: int, tick: int) -> Frames | None:
        """Begin a recording at this tick, and complete the previous one."""
        if recording == self._recording:
            return None
        last = self.flush()
        self._recording, self._first = recording, tick
        return last

    def process(self, item: Words | Tracks) -> Frames:
        """Return frames at ticks of the stream, without any time of their own."""
        if not self.begun:  # features of words may keep the state of another stream
            for feature in self._front_end.word_features():
                feature.reset()
        self.begun = True
        if isinstance(item, Tracks):
            return self._frames(dict(item.tracks))
        tracks = {f.spec.name: f.process(item) for f in self._front_end.word_features()}
        return self._frames(tracks)

    def flush(self) -> Frames | None:
        """Complete the recording, so that the next can begin."""
        features = self._front_end.word_features() if self.begun else []
        last = {feature.spec.name: feature.flush() for feature in features}
        for feature in features:
            feature.reset()
        return self._frames(last) if any(len(track.ticks) for track in last.values()) else None

    def _frames(self, tracks: dict[str, Track]) -> Frames:
        moved = {name: track.shifted(self._first) for name, track in tracks.items()}
        return Frames(np.empty(0, np.bool_), moved, (), self._recording or 0)


def check_words(words: Words) -> None:
    """Raise an error for words with impossible times."""
    times = (words.begins, words.ends, words.known)
    if any(
        column.shape != (len(words.texts),) or column.dtype.kind not in "iu" for column in times
    ):
        raise UsageError("words need as many begins, ends and knowns, in whole ticks")
    if not all(isinstance(text, str) for text in words.texts):
        raise UsageError("the texts of words must be strings")
    wrong = (words.begins < 0) | (words.begins >= words.ends) | (words.ends > words.known)
    if wrong.any() or np.any(words.known[1:] < words.known[:-1]):
        raise UsageError(
            "words must begin before they end and end before they are known, in the order in "
            "which they are known"
        )
