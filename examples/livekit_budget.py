"""A LiveKit audio tap that anonymises a caller whose audio has disclosed a budget of bits.

python examples/livekit_budget.py   (LiveKit Agents: `AudioInputOptions(noise_cancellation=tap)`)
"""

import asyncio

import numpy as np
from livekit import rtc

from monitor import Pool, Population, run


class DisclosureTap(run.GuardedCall, rtc.FrameProcessor[rtc.AudioFrame]):  # type: ignore[misc]
    """Passes on the audio of a call until its budget is spent, then another voice."""

    enabled = True
    _close = run.GuardedCall.close

    def _process(self, frame: rtc.AudioFrame) -> rtc.AudioFrame:
        pcm = self.process(frame.data, frame.sample_rate, frame.num_channels)
        return rtc.AudioFrame(pcm, frame.sample_rate, frame.num_channels, frame.samples_per_channel)


async def speak(tap: DisclosureTap) -> None:
    seconds = np.arange(160_000) / 16_000  # a call: a buzz in syllables, in frames of 20 ms
    voice = 9000 * (seconds * (180 + 5 * seconds) % 1 - 0.5) * np.clip(np.sin(9 * seconds), 0, 1)
    source, protected = rtc.AudioSource(16_000, 1), 0
    track = rtc.LocalAudioTrack.create_audio_track("voice", source)  # needs no server
    stream = rtc.AudioStream(track, sample_rate=16_000, frame_size_ms=20, noise_cancellation=tap)
    for audio in np.split(voice.astype(np.int16), 500):
        await source.capture_frame(rtc.AudioFrame(audio.tobytes(), 16_000, 1, audio.size))
        protected += any((await anext(stream)).frame.data) and tap.is_protected
    await stream.aclose()
    print(f"{protected / 50:.1f} s of sound were anonymised")
    assert 50 < protected < 400  # the budget lasts for two seconds and more


with Pool(Population.reference()) as pool:  # one serves all calls of the process
    asyncio.run(speak(DisclosureTap(pool, "call 7", 2.0, "mcadams:random", log=print)))
