"""A Pipecat processor that silences a caller whose audio has disclosed a budget of bits.

python examples/pipecat_budget.py   (pip install pipecat-ai)

Put it behind `transport.input()`. One pool serves all calls of the process.
"""

import asyncio

import numpy as np
from pipecat.frames.frames import CancelFrame, EndFrame, Frame, InputAudioRawFrame
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.tests.utils import SleepFrame, run_test

from monitor import Pool, Population, alerts


class DisclosureBudget(FrameProcessor):  # type: ignore[misc]
    """Passes on the audio of a call until it has disclosed ``bits``, then silence."""

    def __init__(self, pool: Pool, key: str, bits: float) -> None:
        super().__init__()
        self.pool, self.key, self.is_spent = pool, key, False
        # what such an amount of speech discloses on average; "bits" for an enrolled caller
        pool.open(key, rules=[alerts.Threshold("expected_bits", bits, hold_seconds=0.0)])

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        """Push audio to the pool, and pass the frame on."""
        await super().process_frame(frame, direction)
        if isinstance(frame, InputAudioRawFrame):
            samples = np.frombuffer(frame.audio, np.int16).reshape(-1, frame.num_channels)
            self.pool.push(self.key, samples / np.float32(32768), frame.sample_rate)
            for event in self.pool.poll(self.key):
                self.is_spent |= event.code == "alert.raised"
                print(self.key, event.record())  # your log
            if self.is_spent:
                frame.audio = bytes(len(frame.audio))
        elif isinstance(frame, EndFrame | CancelFrame):
            self.pool.forget(self.key)
        await self.push_frame(frame, direction)


seconds = np.arange(160_000) / 16_000  # a call: a buzz in syllables, in frames of 20 ms
voice = 9000 * (seconds * (180 + 5 * seconds) % 1 - 0.5) * np.clip(np.sin(9 * seconds), 0, 1)
sounds = [audio.tobytes() for audio in np.split(voice.astype(np.int16), 500)]
frames = [f for s in sounds for f in (InputAudioRawFrame(s, 16_000, 1), SleepFrame(0.02))]
with Pool(Population.reference()) as pool:
    budget = DisclosureBudget(pool, "call 7", bits=2.0)
    passed, _ = asyncio.run(run_test(budget, frames_to_send=frames))
is_sound = [any(frame.audio) for frame in passed if isinstance(frame, InputAudioRawFrame)]
print(f"{max(np.flatnonzero(is_sound)) / 50:.1f} s of {len(is_sound) / 50:.1f} s were passed on")
assert any(is_sound[:50])
assert not any(is_sound[-50:])
