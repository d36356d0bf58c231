"""The f0 feature beside torch-yin: the same audio, one thread, taking turns.

python -m benchmarks.f0 [--minutes 60] [--runs 5]

Real readers are used where ../shared/speech lies beside the repository, else a synthetic voice.
Prints one JSON object: seconds and times real time of both, the ratio of each pair of runs, and
the share of frames on which the two give the same lag. Needs the extras ``peers`` and ``dev``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import soundfile
import soxr
import torch
import torchyin
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from monitor.features.f0 import F0, LOWEST_LAG, RATE
from monitor.types import FloatArray, IntArray

SPEECH = Path(__file__).resolve().parents[2] / "shared" / "speech"
Audio = NDArray[np.float32]


def readers(minutes: float) -> Audio:
    """Up to a minute of one reader after the other, at 8000 Hz."""
    needed = int(minutes * 60 * RATE)
    parts: list[Audio] = []
    for path in sorted(SPEECH.glob("train-clean-5/*/*.opus")) * (1 + needed // (60 * RATE)):
        if sum(map(len, parts)) >= needed:
            break
        audio, rate = soundfile.read(path, frames=60 * 16000, dtype="float32")
        parts.append(soxr.resample(audio, rate, RATE))
    return np.concatenate(parts)[:needed]


def synthetic(minutes: float) -> Audio:
    """A buzz that glides between 80 and 250 Hz, with noise and with pauses."""
    moments = np.arange(int(minutes * 60 * RATE)) / RATE
    pitch = 165 + 85 * np.sin(2 * np.pi * 0.4 * moments)
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    buzz = 0.1 * np.sum([np.sin(k * phase) / k for k in range(1, 8)], axis=0)
    buzz[moments % 3 > 2] = 0
    noise = np.random.default_rng(0).normal(scale=0.01, size=buzz.size)
    return np.asarray(buzz + noise, np.float32)


def ours(audio: Audio) -> IntArray:
    """The lag of every frame, 0 where unvoiced, from the feature that the monitor runs."""
    track = F0().process(audio)
    lags = np.zeros((audio.size - 246) // 80 + 1, np.intp)
    lags[track.ticks - 4] = track.values + LOWEST_LAG
    return lags


def theirs(audio: Audio) -> FloatArray:
    """The frequency of every frame, 0 where unvoiced."""
    found: FloatArray = torchyin.estimate(
        torch.from_numpy(audio), RATE, pitch_min=65, pitch_max=450, frame_stride=0.01, threshold=0.1
    ).numpy()
    return found


def seconds(work: Callable[[Audio], object], audio: Audio) -> float:
    start = time.perf_counter()
    work(audio)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description="f0 beside torch-yin, on one thread")
    parser.add_argument("--minutes", type=float, default=60, help="audio minutes (default 60)")
    parser.add_argument("--runs", type=int, default=5, help="timed pairs of runs (default 5)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    real = SPEECH.is_dir()
    audio = readers(options.minutes) if real else synthetic(options.minutes)
    with threadpool_limits(1):
        hertz, lags = theirs(audio), ours(audio)  # also warms up both
        pairs = [(seconds(theirs, audio), seconds(ours, audio)) for _ in range(options.runs)]
    ratios = sorted(slow / fast for slow, fast in pairs)
    medians = {"torch-yin": median(p[0] for p in pairs), "monitor": median(p[1] for p in pairs)}
    expected = np.where(hertz > 0, np.rint(RATE / np.maximum(hertz, 1)), 0)
    print(
        json.dumps(
            {
                "benchmark": "f0",
                "audio": "real readers" if real else "synthetic",
                "audio_seconds": audio.size / RATE,
                "runs": options.runs,
                "seconds": medians,
                "times_real_time": {k: audio.size / RATE / v for k, v in medians.items()},
                "ratio": {"min": ratios[0], "median": median(ratios), "max": ratios[-1]},
                "equal_lags": float(np.mean(expected == lags)),
                "voiced": float(np.mean(lags > 0)),
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
