"""`Intake` converts the items of a stream to frames on one clock, for any size of blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from monitor.errors import UsageError
from monitor.features.framing import columns_of
from monitor.kinds import FeatureSpec
from monitor.stream.accumulator import check_frames
from monitor.stream.clocks import BesideClock, BlocksToTicks
from monitor.stream.front_end import FrontEnd
from monitor.transcripts.transcript import Coverage, measure_coverage
from monitor.types import TICKS_PER_SECOND, Block, BoolArray, Frames, IntArray, Tracks, Words

_FIRST_SECONDS = 2.0
_COLLECTED_TICKS = 120  # maximum audio that waits for more; a block costs as much as 0.1 s of audio
_COLLECTED_VALUES = 1 << 18  # maximum samples of all channels that wait
_LATE_TICKS = 10  # delay after which resampling has usually completed a tick; 12 at most
_RETRY_TICKS = 4  # minimum audio collected while a reading is due
_TWO_CLOCKS = (
    "a stream has either audio or ready-made frames, because each sets the clock: give frames "
    "beside audio as Tracks (sources.SideInputSource)"
)
KEPT_TICKS = 6 * 3600 * TICKS_PER_SECOND
"""Ticks examined at the end of a recording or microphone stream: six hours, 2 MB."""
_NO_TIMES = np.empty((2, 0), np.int64)


class Intake:
    """Converter of items to frames. Either audio or ready-made frames determine the time.

    Words and other frames are placed on this clock. Short blocks are collected, up to 1.2 s, until
    the next reading is due. ``levels`` asks for sound levels, by which changes of channel are
    detected.
    """

    def __init__(
        self,
        front_end: FrontEnd,
        specs: Mapping[str, FeatureSpec],
        channel: int | None,
        *,
        levels: bool,
    ) -> None:
        self.front_end, self._specs = front_end, specs
        self._channel, self._levels = channel, levels
        self.reader: BlocksToTicks | None = None
        self.beside = BesideClock(front_end)
        self._recording = 0  # of the last returned frames
        self.ticks = 0  # of frames returned so far
        self.skip = 0  # frames complete by this tick need not be computed
        self.due = 0  # tick of the next reading, which ends the collection of short blocks
        self._collected: list[Block] = []  # of one recording, rate and number of channels
        self._samples = 0  # samples per channel in these blocks
        self._late = 0  # ticks by which the last frames were behind the audio
        self.coverage: WordCoverage | None = None  # coverage of speech by words; None without words

    def create_block_reader(self) -> BlocksToTicks:
        """Create the converter that turns the stream's audio blocks into frames."""
        return BlocksToTicks(
            self.front_end.make(),
            self._channel,
            self.skip,
            levels=self._levels,
            conditions=True,
            landmarks=True,
        )

    @property
    def has_begun(self) -> bool:
        """True once an item has arrived."""
        return bool(self.ticks) or self.reader is not None or self.beside.begun

    @property
    def arrived(self) -> int:
        """Ticks of all items so far, which is the position of a gap that arrives now."""
        if self.reader is None:
            return self.ticks
        return self.reader.count_ticks(self._samples)

    def process(self, item: Block | Frames | Words | Tracks) -> Iterator[Frames]:
        """Process an item; yield its frames, run by run.

        UsageError if the item has another clock than earlier items. SourceError or UsageError if it
        is invalid.
        """
        if isinstance(item, Frames):
            if self.reader is not None:
                raise UsageError(_TWO_CLOCKS)
            yield from self._begin_recording(item.recording)
            yield self._placed(item, item.recording)
        elif isinstance(item, Words | Tracks):
            yield from self._process_beside(item)
        elif not self._collect(item):
            yield from self.complete_collected()
            if not self._collect(item):
                yield from self._read(item)
        elif self._is_due():
            yield from self.complete_collected()

    def _read(self, block: Block) -> Iterator[Frames]:
        """Yield the frames that audio completes."""
        for piece in self._split_first(block):
            if self.reader is None:
                if self.ticks:
                    raise UsageError(_TWO_CLOCKS)
                self.reader = self.create_block_reader()
            *ended, frames = self.reader.process(piece)
            for last in ended:
                yield self._placed(last, self._recording)
            yield from self._begin_recording(block.recording)
            yield self._placed(frames, block.recording)
            self._late = self.reader.ticks - self.ticks

    def _collect(self, block: Block) -> bool:
        """Append a copy of a short block to those collected; return False if it does not fit.

        SourceError if the block is invalid.
        """
        columns_of(block, None if self._channel is None else self._channel - 1)
        if self.reader is None or self.reader.key != (block.recording, block.rate):
            return False
        if len(block.samples) * TICKS_PER_SECOND >= _COLLECTED_TICKS * block.rate:
            return False
        samples = np.array(block.samples, np.float32)  # the caller may reuse its memory
        if self._collected and self._collected[0].samples.shape[1:] != samples.shape[1:]:
            return False
        count = self._samples + len(samples)
        if count * math.prod(samples.shape[1:]) > _COLLECTED_VALUES:
            return False
        self._collected.append(Block(samples, block.rate, block.recording))
        self._samples = count
        return True

    def _is_due(self) -> bool:
        """Return whether enough was collected, or the next reading may be complete."""
        assert self.reader is not None
        ticks = self.arrived - self.reader.ticks
        if ticks >= _COLLECTED_TICKS:
            return True
        is_due = self.arrived >= self.due + max(_LATE_TICKS, self._late - _LATE_TICKS)
        return is_due and ticks >= min(_RETRY_TICKS, self.arrived - self.due)

    def complete_collected(self) -> Iterator[Frames]:
        """Yield the frames that the collected blocks complete, if there are any."""
        if self._collected:
            blocks, self._collected, self._samples = self._collected, [], 0
            samples = np.concatenate([block.samples for block in blocks])
            yield from self._read(replace(blocks[0], samples=samples))

    def _process_beside(self, item: Words | Tracks) -> Iterator[Frames]:
        self.beside.check(item)
        yield from self.complete_collected()
        reader = self.reader
        if reader is not None and reader.key is not None and reader.key[0] != item.recording:
            yield self._placed(reader.flush(), self._recording)
        yield from self._begin_recording(item.recording)
        if self.coverage is not None and isinstance(item, Words):
            self.coverage.add_words(item)
        yield self._placed(self.beside.process(item), item.recording)

    def finish(self) -> Iterator[Frames]:
        """End the stream; yield the last frames."""
        yield from self.complete_collected()
        if self.reader is not None:
            yield self._placed(self.reader.flush(), self._recording)
        if (last := self.beside.flush()) is not None:
            yield self._placed(last, self._recording)

    def _split_first(self, block: Block) -> Iterator[Block]:
        """Split a stream's first block, so that its first reading need not wait for all of it."""
        if self.reader is None:
            columns_of(block, None)  # raises SourceError for an invalid block
            first = round(_FIRST_SECONDS * block.rate)
            if len(block.samples) > first:
                yield replace(block, samples=block.samples[:first])
                block = replace(block, samples=block.samples[first:])
        yield block

    def _begin_recording(self, recording: int) -> Iterator[Frames]:
        """Begin a recording. The words and tracks beside it count from here."""
        last = self.beside.begin_recording(recording, self.ticks)
        if last is not None:
            yield self._placed(last, self._recording)

    def _placed(self, frames: Frames, recording: int) -> Frames:
        """Check and count further frames; return them with their recording's number."""
        check_frames(frames, self._specs)
        self._recording = recording
        self.ticks += frames.speech.size
        if self.coverage is not None:
            self.coverage.add_speech(recording, frames.speech)
        return frames if frames.recording == recording else replace(frames, recording=recording)


@dataclass(frozen=True, slots=True)
class RecordingCoverage:
    """Fit of one recording's words to its speech; None without words or speech."""

    recording: int
    words: int
    coverage: Coverage | None


def find_coverage(words: Words, speech: BoolArray) -> Coverage | None:
    """Measure the fit of words to speech, shape (ticks,); None without words or speech."""
    return measure_coverage(words, speech) if words.texts and speech.any() else None


class WordCoverage:
    """Running coverage of speech by words, over the last hours.

    Example:
        >>> coverage = WordCoverage()
        >>> coverage.add_words(Words(("so", "be"), *np.array([[0, 3], [2, 6], [2, 6]])))
        >>> coverage.add_speech(0, np.array([1, 1, 1, 1, 1, 0, 0, 0, 0, 0], bool))
        >>> (recording,) = coverage.measure()
        >>> recording.words, recording.coverage.in_speech, recording.coverage.covered
        (2, 0.8, 0.8)
    """

    def __init__(self) -> None:
        self._over: list[RecordingCoverage] = []
        self._begin(0)

    def _begin(self, recording: int) -> None:
        self._recording, self._words = recording, 0
        self._first = self._ticks = 0  # ticks before the kept ones, and kept ticks
        self._speech: list[BoolArray] = []
        self._times: list[IntArray] = []  # begins and ends, shape (2, k)

    def add_words(self, words: Words) -> None:
        """Add words; those of another recording end the previous one."""
        self._turn(words.recording)
        self._words += len(words.texts)
        self._times.append(np.stack((words.begins, words.ends)))

    def add_speech(self, recording: int, speech: BoolArray) -> None:
        """Add speech decisions on the next ticks of a recording."""
        self._turn(recording)
        self._speech.append(speech)
        self._ticks += speech.size
        if (ticks := self._ticks - KEPT_TICKS) > KEPT_TICKS:
            self._speech = [np.concatenate(self._speech)[ticks:].copy()]
            self._first, self._ticks = self._first + ticks, KEPT_TICKS
            times = np.concatenate([_NO_TIMES, *self._times], axis=1)
            self._times = [times[:, times[0] >= self._first]]

    def measure(self) -> tuple[RecordingCoverage, ...]:
        """Measure every recording so far."""
        return (*self._over, self._now()) if self._ticks or self._words else tuple(self._over)

    def _turn(self, recording: int) -> None:
        if recording != self._recording:
            self._over = [*self.measure()]
            self._begin(recording)

    def _now(self) -> RecordingCoverage:
        begins, ends = np.concatenate([_NO_TIMES, *self._times], axis=1)
        is_recent = begins >= self._first
        begins, ends = begins[is_recent] - self._first, ends[is_recent] - self._first
        words = Words(("",) * begins.size, begins, ends, ends)
        speech = np.concatenate(self._speech or [np.empty(0, np.bool_)])
        return RecordingCoverage(self._recording, self._words, find_coverage(words, speech))
