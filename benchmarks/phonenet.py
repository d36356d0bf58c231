"""The phone networks' speed on one thread: from samples to units and to phones, features included.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.phonenet [--minutes 2] [--runs 5]

A stream of noise (its speed does not depend on what is said), pushed a second at a time, by numpy.
Prints one JSON object: times real time by processor time, of the recogniser, of units (as the
feature hears; also a tenth of a second at a time, as a microphone gives it) and of log mel bands
alone; and how many audio seconds after its end a unit and a phone's frame are known, pushed 10 ms
at a time.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from statistics import median

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.voice import seconds
from monitor.networks import phones
from monitor.networks import phones as units
from monitor.networks.layers import HOP, RATE, log_mel
from monitor.types import FloatArray


def main() -> None:
    parser = argparse.ArgumentParser(description="the phone networks' speed")
    parser.add_argument("--minutes", type=float, default=2, help="audio minutes (default 2)")
    parser.add_argument("--runs", type=int, default=5, help="(default 5)")
    given = parser.parse_args()
    audio = max(1, round(given.minutes * 60))
    sound = np.random.default_rng(0).standard_normal(audio * RATE).astype(np.float32) / 10

    def through(stream: phones.PhoneStream | units.UnitStream, samples: int = RATE) -> None:
        for part in sound.reshape(-1, samples):
            stream.push(part)
        stream.flush()

    def bands() -> None:
        for part in sound.reshape(-1, RATE):
            log_mel(part)

    with threadpool_limits(1):
        times = {
            name: [seconds(work) for _ in range(given.runs)]
            for name, work in (
                ("recogniser", lambda: through(phones.shipped_recogniser().stream())),
                ("units", lambda: through(units.shipped_units().stream())),
                ("units by 0.1 s", lambda: through(units.shipped_units().stream(), RATE // 10)),
                ("bands", bands),
            )
        }
    made = {name: round(audio / median(each)) for name, each in times.items()}
    unit, phone = units.shipped_units().stream(), phones.shipped_recogniser().stream()
    late = {
        "units": lateness(lambda x: len(unit.push(x)), sound[: 10 * RATE]),
        "recogniser": lateness(lambda x: len(phone.push(x)), sound[: 10 * RATE]),
    }
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


def lateness(push: Callable[[FloatArray], int], sound: FloatArray) -> dict[str, float]:
    """Audio seconds from a frame's end until it is known."""
    known, late = 0, []
    for given in range(HOP, len(sound) + 1, HOP):
        found = push(sound[given - HOP : given])
        ends = (known + 1 + np.arange(found)) * units.UnitNetwork.frame_seconds
        late.extend((given / RATE - ends).tolist())
        known += found
    return {"median": round(median(late), 3), "most": round(max(late), 3)}


if __name__ == "__main__":
    main()
