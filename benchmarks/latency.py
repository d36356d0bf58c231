"""From a spoken second to its reading, end to end through a virtual microphone.

    python -m benchmarks.latency ../shared/speech/dev-clean/1272/128104.opus

A process of its own speaks into a private PulseAudio: the recording, with beeps every five seconds
and a little more each time, so that two of them tell which they are. The engine of ``monitor
listen`` hears it through PortAudio. When a sample was handed to the sound server is known from the
player's callback, where it stands in the stream from the beep before it. A reading at t is late by
the wall time from the handing over of the sample at t to the reading's arrival at a sink: sound
server, device buffers, resampling, features and posterior are all in it. Stretches in which the
player itself faltered (the next beep is not where it should be) do not count. The share of a core
is that of the listener alone. Needs the Debian packages libportaudio2 libasound2-plugins pulseaudio
pulseaudio-utils.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import soxr

from monitor.events import Event, GapEvent, Reading
from monitor.sources.base import WrappedLiveSource
from monitor.types import Block, FloatArray, Item
from tests.virtual_microphone import DEVICE, VirtualMicrophone, missing

RATE = 48_000
EVERY_SECONDS, MORE_SECONDS = 5.0, 0.1
BEEP_SECONDS = 0.05
BEEP_LEVEL, SPEECH_LEVEL = 0.9, 0.3
LOUD = 0.6
TOLERATED_SECONDS = 0.02


def beep_seconds(k: int) -> float:
    """When the k-th beep is spoken."""
    return k * EVERY_SECONDS + k * (k - 1) / 2 * MORE_SECONDS


def speak(recording: Path, seconds: float) -> None:
    """Play, and print when which sample was handed over."""
    import sounddevice

    rate = soundfile.info(recording).samplerate
    speech, _ = soundfile.read(recording, round(seconds * rate), dtype="float32")
    speech *= SPEECH_LEVEL / np.abs(speech).max()
    sound = np.clip(soxr.resample(speech, rate, RATE), -SPEECH_LEVEL, SPEECH_LEVEL)
    beep = np.sin(2 * np.pi * 1000 * np.arange(round(BEEP_SECONDS * RATE)) / RATE)
    k = 0
    while (place := round(beep_seconds(k) * RATE)) < len(sound) - len(beep):
        sound[place : place + len(beep)] = BEEP_LEVEL * beep
        k += 1
    handed: list[tuple[int, float]] = []
    place = 0

    def give(out: FloatArray, frames: int, _time: Any, _status: Any) -> None:
        nonlocal place
        handed.append((place, time.monotonic()))
        part = sound[place : place + frames]
        out[: len(part), 0], out[len(part) :, 0] = part, 0
        place += frames

    with sounddevice.OutputStream(
        samplerate=RATE, channels=1, device=DEVICE, dtype="float32", latency=0.1, callback=give
    ):
        while place < len(sound):
            time.sleep(0.1)
    print(json.dumps(handed))


class Tap(WrappedLiveSource):
    """The microphone, and where in its stream the beeps were."""

    def __init__(self, source: Any) -> None:
        super().__init__(source)
        self.beeps: list[float] = []
        self._heard = 0.0

    def items(self) -> Iterator[Item]:
        """What the microphone gives."""
        for item in self.source:
            if isinstance(item, Block):
                samples = item.samples.reshape(len(item.samples), -1)[:, 0]
                for place in np.flatnonzero(np.abs(samples) > LOUD).tolist():
                    seconds = self._heard + place / item.rate
                    if not self.beeps or seconds > self.beeps[-1] + EVERY_SECONDS / 2:
                        self.beeps.append(seconds)
                self._heard += len(samples) / item.rate
            yield item


class Arrivals:
    """A sink that notes when each reading came."""

    def __init__(self) -> None:
        self.readings: list[tuple[float, float, float]] = []
        self.gaps: list[str] = []

    def write(self, event: Event) -> None:
        """Take one event."""
        if isinstance(event, Reading):
            self.readings.append((event.seconds, time.monotonic(), event.lag or 0.0))
        elif isinstance(event, GapEvent):
            self.gaps.append(event.detail)

    def close(self) -> None:
        """Nothing is left to do."""


def hear(recording: Path, seconds: float, features: list[str]) -> dict[str, Any]:
    from monitor import Monitor, Population, Run
    from monitor.run.pace import Timed
    from monitor.sources import Microphone
    from monitor.sources.microphone import rescan

    rescan()  # where sound is to be heard has changed
    monitor = Monitor(Population.reference(), features, watch="1272")
    arrivals = Arrivals()
    player = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.latency", str(recording), "--speak", "--seconds",
         str(seconds + 10)], stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        tap = Tap(Microphone(DEVICE, seconds=seconds + 5))
        with Run(tap, monitor, sinks=[arrivals]) as run:
            began = time.monotonic(), time.process_time()
            run.to_end()
            share = (time.process_time() - began[1]) / (time.monotonic() - began[0])
    finally:
        out, _ = player.communicate(timeout=60)
    places, times = np.array(json.loads(out)).T
    late, lags = [], []
    for beep, after in pairwise(tap.beeps):
        k = round((after - beep - EVERY_SECONDS) / MORE_SECONDS)
        if abs(after - beep - EVERY_SECONDS - k * MORE_SECONDS) > TOLERATED_SECONDS or k < 0:
            continue
        for read, came, lag in arrivals.readings:
            if beep < read <= after:
                place = (beep_seconds(k) + read - beep) * RATE
                late.append(came - float(np.interp(place, places, times)))
                lags.append(lag)
    assert late, "nothing was heard, or the player faltered all the time"
    low, middle, high = np.quantile(late, [0.1, 0.5, 0.9])
    return {
        "benchmark": "latency",
        "features": features,
        "readings": len(late),
        "latency_seconds_median": round(float(middle), 3),
        "latency_seconds_p10": round(float(low), 3),
        "latency_seconds_p90": round(float(high), 3),
        "latency_seconds_max": round(max(late), 3),
        "lag_seconds_median": round(float(np.median(lags)), 3),
        "share_of_a_core": round(share, 3),
        "cost": {
            each.spec.name: round(each.cost, 4)
            for each in monitor.front_end.make()
            if isinstance(each, Timed)
        },
        "gaps": arrivals.gaps,
        "load": round(os.getloadavg()[0], 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recording", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--features", default="f0,phones,voice")
    parser.add_argument("--speak", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.speak:
        speak(options.recording, options.seconds)
        return
    if lacking := missing():
        sys.exit(lacking)
    # a socket's path must be short
    with tempfile.TemporaryDirectory(prefix="vm") as folder:
        virtual = VirtualMicrophone(Path(folder))
        os.environ.update(virtual.environment)  # before PortAudio looks around
        with virtual:
            found = hear(options.recording.resolve(), options.seconds, options.features.split(","))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
