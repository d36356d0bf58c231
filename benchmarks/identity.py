"""The identity feature beside bare SpeechBrain: the same windows, the same run, taking turns.

python -m benchmarks.identity [--minutes 2] [--runs 3] [--threads 1 2] [--ecapa DIR]

Ours hears real readers from the first sample on: resampled, gated, cut into windows, embedded;
as a replay (10 s blocks, windows in batches) and as a live stream (0.1 s blocks, one at a time).
SpeechBrain's ``encode_batch`` is given the windows ready-made, in batches of 4 and of 16 and one at
a time. Prints one JSON object: for each number of threads times real time (of speech, by the wall
and by processor time) and the ratio of each pair of runs; and memory. Needs the extras ``identity``
and ``dev``, ../shared/speech beside the repository and the network (``MONITOR_ECAPA``).
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import psutil
import soundfile
import torch
from numpy.typing import NDArray
from speechbrain.inference.classifiers import EncoderClassifier

from monitor.features.ecapa import Identity, resolve
from monitor.features.embeddings import RATE, WINDOW_SECONDS
from monitor.features.extractor import Extractor
from monitor.types import Block

SPEECH = Path(__file__).resolve().parents[2] / "shared" / "speech"
Audio = NDArray[np.float32]
WINDOW = round(WINDOW_SECONDS * RATE)


def readers(minutes: float) -> Audio:
    """Up to half a minute of one reader after the other, at 16 kHz."""
    parts: list[Audio] = []
    for path in sorted(SPEECH.glob("dev-clean/*/*.opus")):
        if sum(map(len, parts)) >= minutes * 60 * RATE:
            break
        parts.append(soundfile.read(path, frames=30 * RATE, dtype="float32")[0])
    return np.concatenate(parts)[: round(minutes * 60 * RATE)]


def ours(feature: Identity, audio: Audio, block_seconds: float) -> Audio:
    """All embeddings, through the code path of the monitor."""
    extractor = Extractor([feature])
    step = round(block_seconds * RATE)
    runs = [
        extractor.process(Block(audio[at : at + step], RATE)) for at in range(0, audio.size, step)
    ]
    runs.append(extractor.flush())
    return np.concatenate([run.tracks["identity"].values for run in runs])


def theirs(model: Any, windows: Sequence[Audio], batch: int) -> Audio:
    """All embeddings of ready-made windows."""
    whole = [window for window in windows if window.size == WINDOW]
    stacks = [np.stack(whole[at : at + batch]) for at in range(0, len(whole), batch)]
    stacks += [window[None] for window in windows[len(whole) :]]
    with torch.inference_mode():
        found = [model.encode_batch(torch.from_numpy(stack))[:, 0] for stack in stacks]
        return np.asarray(torch.nn.functional.normalize(torch.cat(found)))


class Tap:
    """Keeps the windows that the network is given."""

    def __init__(self, encoder: Any) -> None:
        self.encoder = encoder
        self.windows: list[Audio] = []

    def embed(self, windows: Audio) -> Any:
        """What the network makes of them."""
        self.windows += list(windows.copy())
        return self.encoder.embed(windows)


def megabytes() -> float:
    return float(psutil.Process().memory_info().rss / 2**20)


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds by the wall and of the processor."""
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - processor


def main() -> None:
    parser = argparse.ArgumentParser(description="the identity feature beside bare SpeechBrain")
    parser.add_argument("--minutes", type=float, default=2, help="audio minutes (default 2)")
    parser.add_argument("--runs", type=int, default=3, help="timed turns (default 3)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="(default 1 2)")
    parser.add_argument("--ecapa", help="the network's folder (default MONITOR_ECAPA)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    folder = resolve(options.ecapa)
    audio = readers(options.minutes)
    memory = {"libraries": megabytes()}
    load = timed(lambda: Identity(folder))[0]
    feature = Identity(folder)
    memory["and_network"] = megabytes()
    tap = Tap(feature._encoder)
    feature._encoder = tap
    mine = ours(feature, audio, 10.0)
    memory["and_a_replay"] = megabytes()
    ours(feature, audio[: 20 * RATE], 0.1)
    windows = tap.windows[: len(mine)]
    feature._encoder = tap.encoder
    with tempfile.TemporaryDirectory() as private:
        bare = EncoderClassifier.from_hparams(
            source=folder, savedir=private, overrides={"pretrained_path": folder}
        )
    agreement = float((mine * theirs(bare, windows, 4)).sum(axis=1).min())
    works: dict[str, Callable[[], object]] = {
        "replay": lambda: ours(feature, audio, 10.0),
        "bare_batches_of_4": lambda: theirs(bare, windows, 4),
        "live": lambda: ours(feature, audio, 0.1),
        "bare_one_at_a_time": lambda: theirs(bare, windows, 1),
        "bare_batches_of_16": lambda: theirs(bare, windows, 16),
    }
    speech = sum(map(len, windows)) / RATE
    made: dict[str, Any] = {
        "benchmark": "identity",
        "audio_seconds": audio.size / RATE,
        "speech_seconds": speech,
        "windows": len(windows),
        "runs": options.runs,
        "smallest_cosine": agreement,
        "load_seconds": load,
        "megabytes": memory,
    }
    for threads in options.threads:
        torch.set_num_threads(threads)
        turns = [{name: timed(work) for name, work in works.items()} for _ in range(options.runs)]
        faster = {
            "replay": [turn["bare_batches_of_4"][1] / turn["replay"][1] for turn in turns],
            "live": [turn["bare_one_at_a_time"][1] / turn["live"][1] for turn in turns],
        }
        made[f"threads_{threads}"] = {
            "times_real_time": {
                name: {
                    "wall": speech / median(turn[name][0] for turn in turns),
                    "processor": speech / median(turn[name][1] for turn in turns),
                }
                for name in works
            },
            "ratio": {
                name: {"min": min(each), "median": median(each), "max": max(each)}
                for name, each in faster.items()
            },
        }
    print(json.dumps(made, indent=2))


if __name__ == "__main__":
    main()
