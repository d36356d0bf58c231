"""A LiveKit audio tap that anonymises a caller whose audio has disclosed a budget of bits.

python examples/livekit_budget.py   (pip install livekit)

LiveKit Agents takes it as `AudioInputOptions(noise_cancellation=tap)`. Here a local track needs
no server. One pool serves all calls of the process.
"""

import asyncio

import numpy as np
from livekit import rtc

from monitor import Pool, Population, alerts
from monitor.anonymisers.recording import ProtectedBlocks
from monitor.types import Block


class DisclosureTap(rtc.FrameProcessor[rtc.AudioFrame]):  # type: ignore[misc]
    """Passes on the audio of a call until it has disclosed ``bits``, then another voice."""

    enabled = True

    def __init__(self, pool: Pool, key: str, bits: float) -> None:
        self.pool, self.key, self.is_spent = pool, key, False
        # what such an amount of speech discloses on average; "bits" for an enrolled caller
        pool.open(key, rules=[alerts.Threshold("expected_bits", bits, hold_seconds=0.0)])
        protect = ProtectedBlocks("mcadams:random", ("live",))
        self.protected = protect(iter(lambda: self.block, None))

    def _process(self, frame: rtc.AudioFrame) -> rtc.AudioFrame:
        samples = np.frombuffer(frame.data, np.int16).reshape(-1, frame.num_channels)
        self.block = Block(samples / np.float32(32768), frame.sample_rate)
        self.pool.push(self.key, self.block)
        protected = next(self.protected).samples  # it follows the voice from the start
        for event in self.pool.poll(self.key):
            self.is_spent |= event.code == "alert.raised"
            print(self.key, event.record())  # your log
        if not self.is_spent:
            return frame
        audio = np.clip(protected * 32768, -32768, 32767).astype(np.int16).tobytes()
        return rtc.AudioFrame(audio, frame.sample_rate, frame.num_channels, len(samples))

    def _close(self) -> None:
        self.pool.forget(self.key)


async def speak(source: rtc.AudioSource) -> None:
    seconds = np.arange(160_000) / 16_000  # a call: a buzz in syllables, in frames of 20 ms
    voice = 9000 * (seconds * (180 + 5 * seconds) % 1 - 0.5) * np.clip(np.sin(9 * seconds), 0, 1)
    for audio in np.split(voice.astype(np.int16), 500):
        await source.capture_frame(rtc.AudioFrame(audio.tobytes(), 16_000, 1, audio.size))


async def call(tap: DisclosureTap) -> None:
    source = rtc.AudioSource(16_000, 1)
    track = rtc.LocalAudioTrack.create_audio_track("voice", source)
    stream = rtc.AudioStream(track, sample_rate=16_000, noise_cancellation=tap)
    speaking = asyncio.create_task(speak(source))
    heard: list[tuple[bool, bool]] = []  # whether it is protected, and whether it is sound
    async for event in stream:
        heard.append((tap.is_spent, any(event.frame.data)))
        if len(heard) == 900:  # of 10 ms
            break
    await speaking
    await stream.aclose()
    passed = sum(not is_protected for is_protected, _ in heard)
    print(f"{passed / 100:.1f} s of {len(heard) / 100:.1f} s were passed on")
    assert 0 < passed < len(heard)
    assert (True, True) in heard


with Pool(Population.reference()) as pool:
    asyncio.run(call(DisclosureTap(pool, "call 7", bits=2.0)))
