"""The phones feature beside pocketsphinx, which it took the place of: speed on one thread.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.phones ../shared/speech [--minutes 2] [--runs 3]

The same audio, taking turns: half a minute of each of some readers, to the feature in blocks of
10 s, voice activity included, to pocketsphinx's all-phone search, unpruned, in stretches of 8 s.
Prints one JSON object: times real time by processor time, and the ratio of each pair of runs. What
the two recognise and disclose is compared by `recipes.phones.evaluate` and `recipes.phones.bits`.
Needs the extra ``peers``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import soundfile
from threadpoolctl import threadpool_limits

from benchmarks.voice import seconds
from monitor.features.phones import Phones
from monitor.networks.layers import RATE
from monitor.networks.phones import shipped_units
from monitor.types import FloatArray
from recipes.phones.sphinx import Search

EACH_SECONDS, BLOCK_SECONDS, STRETCH_SECONDS = 30, 10, 8


def main() -> None:
    parser = argparse.ArgumentParser(description="phones beside pocketsphinx, on one thread")
    parser.add_argument("speech", type=Path)
    parser.add_argument("--minutes", type=float, default=2, help="audio minutes (default 2)")
    parser.add_argument("--runs", type=int, default=3, help="timed rounds (default 3)")
    given = parser.parse_args()
    audio = readers(given.speech, given.minutes)
    works: dict[str, Callable[[FloatArray], None]] = {
        "feature": ours,
        "pocketsphinx": partial(theirs, Search()),
    }
    with threadpool_limits(1):
        for work in works.values():
            work(audio[: 10 * RATE])  # warms up
        rounds = [
            {name: seconds(lambda work=work: work(audio)) for name, work in works.items()}  # type: ignore[misc]
            for _ in range(given.runs)
        ]
    length = audio.size / RATE
    ratios = sorted(each["pocketsphinx"] / each["feature"] for each in rounds)
    found = {
        "benchmark": "phones",
        "network": shipped_units().sha256[:12],
        "audio_seconds": length,
        "runs": given.runs,
        "times_real_time": {
            name: round(length / median(each[name] for each in rounds), 1) for name in works
        },
        "ratio": [round(each, 1) for each in (ratios[0], median(ratios), ratios[-1])],
    }
    print(json.dumps(found))


def readers(speech: Path, minutes: float) -> FloatArray:
    """One reader after the other."""
    count = -(-int(60 * minutes) // EACH_SECONDS)
    paths = sorted(speech.glob("dev-clean/*/*.opus"))[:count]
    return np.concatenate(
        [soundfile.read(path, frames=EACH_SECONDS * RATE, dtype="float32")[0] for path in paths]
    )


def ours(audio: FloatArray) -> None:
    feature = Phones()
    for block in pieces(audio, BLOCK_SECONDS):
        feature.process(block)
    feature.flush()


def theirs(search: Search, audio: FloatArray) -> None:
    for stretch in pieces(audio, STRETCH_SECONDS):
        search.tokens(stretch)


def pieces(audio: FloatArray, length: int) -> list[FloatArray]:
    return np.split(audio, range(length * RATE, audio.size, length * RATE))


if __name__ == "__main__":
    main()
