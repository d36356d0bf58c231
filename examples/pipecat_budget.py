"""A Pipecat processor behind `transport.input()` that silences a caller at a budget of bits."""

import asyncio

import numpy as np
from pipecat.frames.frames import CancelFrame, EndFrame, Frame, InputAudioRawFrame
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.tests.utils import SleepFrame, run_test

from monitor import Pool, Population, run


class DisclosureBudget(FrameProcessor):  # type: ignore[misc]
    """Passes on the audio of a call until its budget is spent, then silence."""

    def __init__(self, call: run.GuardedCall) -> None:
        super().__init__()
        self.call = call

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        """Pass on a frame; audio passes the call."""
        await super().process_frame(frame, direction)
        if isinstance(frame, InputAudioRawFrame):
            frame.audio = self.call.process(frame.audio, frame.sample_rate, frame.num_channels)
        elif isinstance(frame, EndFrame | CancelFrame):
            self.call.close()
        await self.push_frame(frame, direction)


seconds = np.arange(160_000) / 16_000  # a call: a buzz in syllables, in frames of 20 ms
voice = 9000 * (seconds * (180 + 5 * seconds) % 1 - 0.5) * np.clip(np.sin(9 * seconds), 0, 1)
sounds = [audio.tobytes() for audio in np.split(voice.astype(np.int16), 500)]
frames = [f for s in sounds for f in (InputAudioRawFrame(s, 16_000, 1), SleepFrame(0.02))]
with Pool(Population.reference()) as pool:  # one serves all calls of the process
    call = run.GuardedCall(pool, "call 7", bits=2.0, log=print)
    passed, _ = asyncio.run(run_test(DisclosureBudget(call), frames_to_send=frames))
is_sound = [any(frame.audio) for frame in passed if isinstance(frame, InputAudioRawFrame)]
print(f"{max(np.flatnonzero(is_sound)) / 50:.1f} s of {len(is_sound) / 50:.1f} s were passed on")
assert any(is_sound[:50])
assert not any(is_sound[-50:])
