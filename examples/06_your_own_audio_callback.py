"""The monitor inside your own program: your audio callback copies and returns, a thread measures.

python examples/06_your_own_audio_callback.py [RECORDING]   (without one: a hum of twelve seconds)

An audio callback has a few milliseconds. It must not compute: it puts its samples into an
`AudioQueue`, from which a thread of yours measures. Any rate, any number of channels, blocks of any
size; what does not fit is counted, and told in the stream as a gap.
"""

import sys
import threading

import numpy as np

from monitor import Monitor, Population
from monitor.sources import AudioQueue

if len(sys.argv) > 1:
    import soundfile

    audio, rate = soundfile.read(sys.argv[1], dtype="float32")
else:
    rate = 16_000
    seconds = np.arange(12 * rate) / rate
    pitch = 120 + 15 * np.sin(2 * np.pi * 0.4 * seconds)
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    harmonics = np.arange(1, 20)[:, None]
    audio = (np.sin(harmonics * phase) / harmonics).sum(axis=0, dtype=np.float32) * 0.1

queue = AudioQueue(rate, queue_seconds=10)


def measure() -> None:
    """Your thread: the queue is a source like any other."""
    monitor = Monitor(Population.reference(), features=["f0"])
    for reading in monitor.stream(queue):
        print(f"{reading.seconds:4.0f} s  {reading.bits:5.2f} of {reading.ceiling:.2f} bits")


thread = threading.Thread(target=measure)
thread.start()
step = rate // 50
for at in range(0, len(audio), step):  # a sound card would call 50 times a second
    while queue.waiting_seconds > 9:  # a file is faster than a voice: here, and only here, wait
        threading.Event().wait(0.01)
    queue.put(audio[at : at + step])  # this one line is your callback
queue.stop()
thread.join()
