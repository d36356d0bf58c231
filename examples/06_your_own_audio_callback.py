"""The monitor inside your own program: your audio callback copies and returns, a thread measures.

python examples/06_your_own_audio_callback.py [RECORDING]   (without one: a hum of twelve seconds)

An audio callback has a few milliseconds. It must not compute: it puts a copy into a queue, from
which a thread of yours pushes blocks into the monitor. Any rate, any number of channels, blocks of
any size.
"""

import queue
import sys
import threading

import numpy as np

from monitor import Monitor, Population
from monitor.types import Block

RATE = 16_000
waiting: queue.Queue[Block | None] = queue.Queue(maxsize=500)  # bounded: 10 s of blocks of 20 ms
dropped = 0


def callback(samples: np.ndarray) -> None:
    """What your audio library calls: float samples, shape (n,) or (n, channels)."""
    global dropped
    try:
        waiting.put_nowait(Block(samples.copy(), RATE))
    except queue.Full:
        dropped += len(samples)  # never wait here; say later what was lost


def measure() -> None:
    """Your thread: blocks in, readings out."""
    monitor = Monitor(Population.reference(), features=["f0"])
    while (block := waiting.get()) is not None:
        for reading in monitor.push(block):
            print(f"{reading.seconds:4.0f} s  {reading.bits:5.2f} of {reading.ceiling:.2f} bits")


thread = threading.Thread(target=measure)
thread.start()

if len(sys.argv) > 1:
    import soundfile

    audio, RATE = soundfile.read(sys.argv[1], dtype="float32")
else:
    seconds = np.arange(12 * RATE) / RATE
    pitch = 120 + 15 * np.sin(2 * np.pi * 0.4 * seconds)
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    harmonics = np.arange(1, 20)[:, None]
    audio = (np.sin(harmonics * phase) / harmonics).sum(axis=0, dtype=np.float32) * 0.1
step = RATE // 50
for at in range(0, len(audio), step):  # a sound card would call 50 times a second
    while waiting.full():  # a file is faster than a voice: here, and only here, wait
        threading.Event().wait(0.01)
    callback(audio[at : at + step])
waiting.put(None)
thread.join()
print(f"{dropped} samples dropped")
