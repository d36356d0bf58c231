"""From blocks of audio to runs of ticks, with the place of every recording on the stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from monitor.features.blocks import columns_of
from monitor.features.channel import Channel
from monitor.features.extractor import Extractor
from monitor.features.landmarks import Landmarks
from monitor.features.registry import make
from monitor.protocols import Feature
from monitor.types import TICKS_PER_SECOND, Block, Frames

__all__ = ["BlocksToTicks"]


class BlocksToTicks:
    """Feeds the features of a monitor.

    Args:
        features: names, or features.
        channel: the channel to hear, counted from 1; None mixes all of them.
        skip: frames complete by this tick need not be computed.
        levels: whether to follow what the voice comes through as well.
        conditions: whether to describe what it sounds like.
        landmarks: whether to take those as well, by which audio is known again.
    """

    def __init__(
        self,
        features: Sequence[str | Feature],
        channel: int | None,
        skip: int,
        *,
        levels: bool = False,
        conditions: bool = False,
        landmarks: bool = False,
    ) -> None:
        made = [*make(features), *([Channel()] if levels else [])]
        made += [Landmarks()] if landmarks else []
        index = None if channel is None else channel - 1
        self._extractor = Extractor(made, index, conditions=conditions)
        self._extractor.skip_to(skip)
        self._ticks = 0  # that came out
        self._key: tuple[int, int] | None = None  # the recording and its rate
        self._began, self._samples = 0, 0  # ticks before it, samples of it

    @property
    def ticks(self) -> int:
        """Ticks of audio that went in: more than came out, as resampling takes its time."""
        if self._key is None:
            return self._ticks
        return self._began + -(-self._samples * TICKS_PER_SECOND // self._key[1])

    def process(self, block: Block) -> list[Frames]:
        """What a further block completes; another recording or rate ends the one before it.

        Returns:
            what the block's own recording brings, and before it what ends the one before.

        Raises:
            SourceError: the block makes no sense; nothing has changed then.
        """
        columns_of(block, self._extractor.channel)
        key = (block.recording, block.rate)
        ended = []
        if key != self._key:
            if self._key is not None:
                ended.append(self.flush())
            self._key, self._began, self._samples = key, self._ticks, 0
        self._samples += block.samples.shape[0]
        return [*ended, self._counted(self._extractor.process(block))]

    def turn(self, recording: int) -> Frames | None:
        """What ends the recording before this one, where there is one that goes on."""
        another = self._key is not None and self._key[0] != recording
        return self.flush() if another else None

    def flush(self) -> Frames:
        """What only the end of the recording completes."""
        self._key = None
        return self._counted(self._extractor.flush())

    def _counted(self, frames: Frames) -> Frames:
        self._ticks += frames.speech.shape[0]
        # what was lost in a second is known, for any cutting, when the second is over
        gaps = [(tick + (self._began - tick) % TICKS_PER_SECOND, gap) for tick, gap in frames.gaps]
        return replace(frames, gaps=tuple(gaps))
