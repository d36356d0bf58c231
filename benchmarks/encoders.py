"""What runs ECAPA-TDNN fastest, and whether it says the same: runtimes taking turns in one process.

python -m benchmarks.encoders [--readers 40] [--each 4] [--seconds 1] [--turns 30] [--ecapa DIR]

Windows of 3 s of real readers, one at a time on one thread: bare SpeechBrain's ``encode_batch``,
the monitor's torch path, the exported file by onnxruntime and, where it is installed, by OpenVINO
in fp32 and in bf16. Prints one JSON object: for each the median processor and wall milliseconds of
a window, the median ratio of SpeechBrain's to its own time in the same turn, the smallest cosine
with SpeechBrain, and, of four tests of 1 s of each reader (``--each``, ``--seconds``) against 3 s
of another chapter, the share ranked first, the share of ranks equal to SpeechBrain's, and the mean
local bits (a softmax of the cosines, its one weight fitted to SpeechBrain's).
``ONEDNN_MAX_CPU_ISA=AVX2`` holds torch and OpenVINO to what an older processor has; onnxruntime's
kernels do not listen to it. Needs the extras ``identity`` and ``onnx`` and ../shared/speech beside
the repository.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import soundfile
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from speechbrain.inference.classifiers import EncoderClassifier

from monitor.features.ecapa import encoder, graph, resolve
from monitor.features.embeddings import RATE, WINDOW_SECONDS, Network

SPEECH = Path(__file__).resolve().parents[2] / "shared" / "speech"
Audio = NDArray[np.float32]
Embed = Callable[[Audio], Audio]
WINDOW = round(WINDOW_SECONDS * RATE)


def readers(most: int, each: int) -> tuple[Audio, Audio]:
    """Windows of two chapters of each reader, (readers, each, samples) each."""
    found: list[Audio] = []
    for folder in sorted(SPEECH.glob("*/*")):
        chapters = sorted(folder.glob("*.opus"))[:2]
        if len(chapters) == 2 and len(found) < most:
            parts = [
                soundfile.read(path, frames=each * WINDOW, dtype="float32")[0] for path in chapters
            ]
            if all(part.size == each * WINDOW for part in parts):
                found.append(np.stack(parts).reshape(2, each, WINDOW))
    both = np.stack(found)
    return both[:, 0], both[:, 1]


def openvino(data: bytes, precision: str) -> Embed:
    """The exported file by OpenVINO."""
    import openvino

    core = openvino.Core()
    settings = {
        "INFERENCE_PRECISION_HINT": precision,
        "INFERENCE_NUM_THREADS": 1,
        "NUM_STREAMS": 1,
    }
    request = core.compile_model(core.read_model(data), "CPU", settings).create_infer_request()
    return lambda windows: np.array(request.infer([windows])[0])


def bare(folder: str) -> Embed:
    """SpeechBrain as it is."""
    with tempfile.TemporaryDirectory() as private:
        model: Any = EncoderClassifier.from_hparams(
            source=folder, savedir=private, overrides={"pretrained_path": folder}
        )

    def embed(windows: Audio) -> Audio:
        with torch.inference_mode():
            found = model.encode_batch(torch.from_numpy(windows))[:, 0]
            return np.asarray(torch.nn.functional.normalize(found))

    return embed


def scores(embed: Embed, enrolled: Audio, tested: Audio) -> tuple[Audio, Audio]:
    """Cosines (tests, readers) of every test with every template; all embeddings."""

    def all_of(windows: Audio) -> Audio:
        flat = windows.reshape(-1, windows.shape[-1])
        return np.concatenate([embed(window[None]) for window in flat])

    templates, tests = all_of(enrolled[:, 0]), all_of(tested)
    return tests @ templates.T, np.concatenate([templates, tests])


def main() -> None:
    parser = argparse.ArgumentParser(description="runtimes of the speaker encoder")
    parser.add_argument("--readers", type=int, default=40, help="(default 40)")
    parser.add_argument("--each", type=int, default=4, help="tests a reader (default 4)")
    parser.add_argument("--seconds", type=float, default=1, help="of a test, up to 3 (default 1)")
    parser.add_argument("--turns", type=int, default=30, help="timed turns (default 30)")
    parser.add_argument("--ecapa", help="the network's folder (default MONITOR_ECAPA)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    folder = resolve(options.ecapa)
    reference = encoder(folder)
    data = graph(reference)
    runtimes: dict[str, Embed] = {
        "speechbrain": bare(folder),
        "torch": reference.embed,
        "onnxruntime": Network(data, "ECAPA").embed,
    }
    if find_spec("openvino"):
        runtimes |= {f"openvino_{p}": openvino(data, p) for p in ("f32", "bf16")}
    enrolled, tested = readers(options.readers, options.each)
    n = len(enrolled)
    right = np.repeat(np.arange(n), options.each)
    found = {
        name: scores(embed, enrolled, tested[..., : round(RATE * options.seconds)])
        for name, embed in runtimes.items()
    }
    rows = np.arange(right.size)

    def local(cosines: Audio, weight: float) -> float:
        return float((log_softmax(weight * cosines, axis=1)[rows, right] / np.log(2)).mean())

    def ranks(cosines: Audio) -> Any:
        return 1 + (cosines > cosines[rows, right][:, None]).sum(axis=1)

    theirs, embeddings = found["speechbrain"]
    weight = minimize_scalar(lambda w: -local(theirs, w), bounds=(1, 200), method="bounded").x
    window = tested[0, :1]
    turns: dict[str, list[tuple[float, float]]] = {name: [] for name in runtimes}
    for _ in range(options.turns):
        for name, embed in runtimes.items():
            wall, processor = time.perf_counter(), time.process_time()
            embed(window)
            turns[name].append((time.process_time() - processor, time.perf_counter() - wall))
    made: dict[str, Any] = {"benchmark": "encoders", "readers": n, "tests": right.size}
    made |= {"weight": weight, "ceiling_bits": float(np.log2(n))}
    made["openvino_sees"] = os.environ.get("ONEDNN_MAX_CPU_ISA", "all of the processor")
    for name, (cosines, own) in found.items():
        made[name] = {
            "processor_ms": 1e3 * median(p for p, _ in turns[name]),
            "wall_ms": 1e3 * median(w for _, w in turns[name]),
            "times_as_fast": median(
                a / b for (a, _), (b, _) in zip(turns["speechbrain"], turns[name], strict=True)
            ),
            "smallest_cosine": float((own * embeddings).sum(axis=1).min()),
            "largest_score_difference": float(np.abs(cosines - theirs).max()),
            "first": float((ranks(cosines) == 1).mean()),
            "ranks_equal": float((ranks(cosines) == ranks(theirs)).mean()),
            "local_bits": float(np.log2(n)) + local(cosines, weight),
        }
    print(json.dumps(made, indent=2))


if __name__ == "__main__":
    main()
