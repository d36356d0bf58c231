"""The phones feature beside bare pocketsphinx: the same audio, one thread, taking turns.

python -m benchmarks.phones [--minutes 5] [--runs 3] [--workers 2]

Bare pocketsphinx is one decoder with the beams it needs (1e-20), once over the very utterances that
the feature cuts (they are found beforehand) and once over stretches of 8 s, as nobody knows where
the pauses are. Needs real readers in ../shared/speech beside the repository.

Prints one JSON object: seconds of processor time and times real time of all, the ratio of each pair
of runs (above 1 the feature is faster), how many tokens each finds and whether those of the same
utterances are equal; and what more processes gain in wall time, by the length of a block.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable
from itertools import zip_longest
from pathlib import Path
from statistics import median

import numpy as np
import pocketsphinx
import soundfile
from numpy.typing import NDArray

from monitor.features.decoding import PHONES
from monitor.features.pauses import LONGEST, RATE, Pauses
from monitor.features.phones import Phones
from monitor.types import IntArray

SPEECH = Path(__file__).resolve().parents[2] / "shared" / "speech"
BLOCK_SECONDS = 10
Audio = NDArray[np.float32]


def readers(minutes: float) -> Audio:
    """Half a minute of one reader after the other."""
    paths = sorted(SPEECH.glob("train-clean-5/*/*.opus")) + sorted(
        SPEECH.glob("dev-clean/*/*.opus")
    )
    if not paths:
        raise SystemExit("benchmarks.phones: needs ../shared/speech beside the repository")
    needed = int(minutes * 60 * RATE)
    count = -(-needed // (30 * RATE))
    parts = [soundfile.read(p, frames=30 * RATE, dtype="float32")[0] for p in paths[:count]]
    return np.concatenate(parts)[:needed]


def ours(audio: Audio, seconds: int = BLOCK_SECONDS, workers: int = 1) -> list[str]:
    """From the feature that the monitor runs, fed as a file feeds it."""
    feature = Phones(workers)
    blocks = np.split(audio, range(seconds * RATE, audio.size, seconds * RATE))
    tracks = [*map(feature.process, blocks), feature.flush()]
    return [PHONES[value] for track in tracks for value in track.values]


class Bare:
    """One decoder, one utterance after the other."""

    def __init__(self) -> None:
        model = Path(pocketsphinx.get_model_path()) / "en-us"
        config = pocketsphinx.Config(
            hmm=str(model / "en-us"),
            allphone=str(model / "en-us-phone.lm.bin"),
            lw=2.0,
            beam=1e-20,
            pbeam=1e-20,
            loglevel="FATAL",
        )
        self._decoder = pocketsphinx.Decoder(config)

    def phones(self, utterances: Iterable[IntArray]) -> list[str]:
        """Shape (n,) each; the names of their phones."""
        found: list[str] = []
        for samples in utterances:
            self._decoder.reinit_feat()
            self._decoder.start_utt()
            self._decoder.process_raw(samples.tobytes(), full_utt=True)
            self._decoder.end_utt()
            found += [segment.word for segment in self._decoder.seg() or ()]
        return [word for word in found if word in PHONES]


def seconds_of(work: Callable[[], object], clock: Callable[[], float]) -> float:
    start = clock()
    work()
    return clock() - start


def gains(audio: Audio, workers: int) -> dict[str, float]:
    """Wall time with one process over that with more, by seconds of a block."""
    ours(audio[: 60 * RATE], 60, workers)  # starts them
    return {
        f"blocks of {length} s": seconds_of(lambda n=length: ours(audio, n), time.perf_counter)  # type: ignore[misc]
        / seconds_of(lambda n=length: ours(audio, n, workers), time.perf_counter)  # type: ignore[misc]
        for length in (1, BLOCK_SECONDS, 60)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="phones beside bare pocketsphinx, on one thread")
    parser.add_argument("--minutes", type=float, default=5, help="audio minutes (default 5)")
    parser.add_argument("--runs", type=int, default=3, help="timed rounds (default 3)")
    parser.add_argument("--workers", type=int, default=2, help="processes to try (default 2)")
    options = parser.parse_args()
    audio = readers(options.minutes)
    pauses = Pauses()
    same = [utterance.samples for utterance in pauses.push(audio) + pauses.flush()]
    whole = np.asarray(np.clip(np.rint(audio * 32768), -32768, 32767), np.int16)
    longest = LONGEST * RATE // 100
    fixed = np.split(whole, range(longest, whole.size, longest))
    bare = Bare()
    work: dict[str, Callable[[], list[str]]] = {
        "monitor": lambda: ours(audio),
        "same utterances": lambda: bare.phones(same),
        "stretches of 8 s": lambda: bare.phones(fixed),
    }
    tokens = {name: each() for name, each in work.items()}  # also warms up
    rounds = [
        {name: seconds_of(each, time.process_time) for name, each in work.items()}
        for _ in range(options.runs)
    ]
    ratios = {
        name: sorted(each[name] / each["monitor"] for each in rounds)
        for name in work
        if name != "monitor"
    }
    medians = {name: median(each[name] for each in rounds) for name in work}
    equal = [a == b for a, b in zip_longest(tokens["monitor"], tokens["same utterances"])]
    print(
        json.dumps(
            {
                "benchmark": "phones",
                "audio_seconds": audio.size / RATE,
                "runs": options.runs,
                "cpu_seconds": medians,
                "times_real_time": {k: audio.size / RATE / v for k, v in medians.items()},
                "ratio": {
                    name: {"min": found[0], "median": median(found), "max": found[-1]}
                    for name, found in ratios.items()
                },
                "tokens": {name: len(found) for name, found in tokens.items()},
                "equal_tokens": float(np.mean(equal)),
                f"gain_of_{options.workers}_processes": gains(audio, options.workers),
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
