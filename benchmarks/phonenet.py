"""The phone network's speed on one thread: from samples to units and phones, features included.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.phonenet [--minutes 2] [--runs 5]

A stream of noise (its speed does not depend on what is said), pushed a second at a time, by numpy.
Prints one JSON object: times real time by processor time, of the whole, of units without phones (as
the feature hears) and of log mel bands alone; and how many audio seconds after its end a frame is
known, pushed 10 ms at a time.
"""

from __future__ import annotations

import argparse
import json
from importlib.resources import files
from pathlib import Path
from statistics import median

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.voice import seconds
from monitor.networks.mel import HOP, RATE, log_mel
from monitor.networks.phones import BLOCK, PhoneNetwork
from monitor.types import FloatArray

WEIGHTS = Path(str(files("monitor.networks"))) / "phones.npz"


def main() -> None:
    parser = argparse.ArgumentParser(description="the phone network's speed")
    parser.add_argument("--minutes", type=float, default=2, help="audio minutes (default 2)")
    parser.add_argument("--runs", type=int, default=5, help="(default 5)")
    given = parser.parse_args()
    audio = max(1, round(given.minutes * 60))
    sound = np.random.default_rng(0).standard_normal(audio * RATE).astype(np.float32) / 10
    network = PhoneNetwork.load(WEIGHTS)

    def whole(*, phones: bool = True) -> None:
        stream = network.stream(phones=phones)
        for second in sound.reshape(-1, RATE):
            stream.push(second)
        stream.flush()

    def bands() -> None:
        for block in sound.reshape(-1, BLOCK):
            log_mel(block)

    with threadpool_limits(1):
        times = {
            name: [seconds(work) for _ in range(given.runs)]
            for name, work in (
                ("whole", whole),
                ("units", lambda: whole(phones=False)),
                ("bands", bands),
            )
        }
    made = {name: round(audio / median(each)) for name, each in times.items()}
    late = lateness(network, sound[: 10 * RATE])
    print(
        json.dumps(
            {
                "benchmark": "phonenet",
                "audio_seconds": audio,
                "times_real_time": made,
                "late_seconds": late,
            }
        )
    )


def lateness(network: PhoneNetwork, sound: FloatArray) -> dict[str, float]:
    """Audio seconds from a frame's end until it is known."""
    stream, known, late = network.stream(), 0, []
    for given in range(HOP, len(sound) + 1, HOP):
        found = len(stream.push(sound[given - HOP : given]).units)
        ends = (known + 1 + np.arange(found)) * network.frame_seconds
        late.extend((given / RATE - ends).tolist())
        known += found
    return {"median": round(median(late), 3), "most": round(max(late), 3)}


if __name__ == "__main__":
    main()
