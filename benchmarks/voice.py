"""The voice network's speed on one thread: from samples to embeddings, features included.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.voice [--minutes 2] [--runs 5]

Windows of 3 s of noise (its speed does not depend on what is said), one at a time, by numpy. Prints
one JSON object: times real time by processor time, of the network and of its mel bands alone; and
of what it was compressed from, ECAPA-TDNN by the same code, on a few of the same windows in the
same run, where MONITOR_ECAPA says where it is.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.anonymity.hearing import TEACHER
from monitor.networks.layers import RATE
from monitor.networks.voice import VoiceNetwork, mel_decibels, shipped

WINDOW_SECONDS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description="the voice network's speed")
    parser.add_argument("--minutes", type=float, default=2, help="audio minutes (default 2)")
    parser.add_argument("--runs", type=int, default=5, help="(default 5)")
    given = parser.parse_args()
    count = max(1, round(given.minutes * 60 / WINDOW_SECONDS))
    generator = np.random.default_rng(0)
    windows = generator.standard_normal((count, WINDOW_SECONDS * RATE)).astype(np.float32) / 10
    network = shipped()

    def bands() -> None:
        for window in windows:
            mel_decibels(window)

    audio = count * WINDOW_SECONDS
    works = {
        "whole": (audio, lambda: network.embed(windows)),
        "bands": (audio, bands),
    }
    if os.environ.get(TEACHER):
        from recipes.voice.teacher import read_teacher

        teacher, few = VoiceNetwork(read_teacher(Path(os.environ[TEACHER]))), windows[:4]
        works["teacher"] = (len(few) * WINDOW_SECONDS, lambda: teacher.embed(few))
    with threadpool_limits(1):
        made = {
            name: round(heard / median([seconds(work) for _ in range(given.runs)]))
            for name, (heard, work) in works.items()
        }
    print(json.dumps({"benchmark": "voice", "audio_seconds": audio, "times_real_time": made}))


def seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


if __name__ == "__main__":
    main()
