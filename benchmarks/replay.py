"""The whole of `monitor replay` on ten hours of FLAC, against the public tools of its first half.

    python -m benchmarks.replay ../shared/speech [--hours 10] [--runs 3]

The peer decodes the same file with soundfile, resamples it to 8 kHz with soxr and computes pitch
with torch-yin, and nothing else: no voice activity, no ranks, no posterior, no JSON lines. It takes
the file in blocks of a minute (torch-yin's best case: all in cache), ten minutes and an hour; the
whole at once does not fit into memory. All run in turn, each alone on one core; resident memory is
sampled along the way. Prints JSON. The peers' extra brings scikit-learn, which river imports where
it finds it: ``--python`` times a default install of its own, run from another folder.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import psutil
import soundfile

PEER_MINUTES = ("1", "10", "60")
PEER = """
import sys
import numpy as np, soundfile, soxr, torch, torchyin
torch.set_num_threads(1)
info = soundfile.info(sys.argv[1])
stream = soxr.ResampleStream(info.samplerate, 8000, 1, dtype="float32")
frames = 0
size = int(sys.argv[2]) * 60 * info.samplerate
for block in soundfile.blocks(sys.argv[1], size, dtype="float32"):
    frames += len(torchyin.estimate(torch.from_numpy(stream.resample_chunk(block)), 8000, 65, 450))
print(frames)
"""


def ten_hours(speech: Path, target: Path, hours: float) -> float:
    """Real readers one after the other, as one FLAC at 16 kHz; seconds written."""
    left = int(hours * 3600 * 16000)
    with soundfile.SoundFile(target, "w", 16000, 1, "PCM_16", format="FLAC") as file:
        while True:
            for path in sorted(speech.glob("[dtl]*/*/*.opus")):
                for block in soundfile.blocks(path, 60 * 16000, dtype="float32"):
                    file.write(block[:left])
                    left -= min(left, len(block))
                    if left == 0:
                        return hours * 3600


class Took(NamedTuple):
    """What a command took: seconds, of processor with its processes', MB every half second."""

    wall: float
    processor: float
    memory: list[float]


def timed(command: list[str], core: int | str) -> Took:
    """Run a command on a core, or some (``"0,1"``)."""
    threads = str(str(core).count(",") + 1)
    environment = {**os.environ, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": "1"}
    start = time.perf_counter()
    process = subprocess.Popen(
        ["taskset", "-c", str(core), *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    watched, memory = psutil.Process(process.pid), []
    while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
        memory.append(watched.memory_info().rss / 1e6)
        time.sleep(0.5)
    _, process.returncode, used = ended
    if process.returncode:
        raise SystemExit(f"{command[:3]} failed with {os.waitstatus_to_exitcode(ended[1])}")
    return Took(time.perf_counter() - start, used.ru_utime + used.ru_stime, memory)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("speech", type=Path)
    parser.add_argument("--hours", type=float, default=10.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument(
        "--python",
        default=sys.executable,
        help="the environment whose `monitor` is timed; what else is installed there costs memory",
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        flac, run = Path(folder) / "long.flac", Path(folder) / "run.jsonl"
        seconds = ten_hours(arguments.speech, flac, arguments.hours)
        ours = [arguments.python, "-m", "monitor", "replay", str(flac), "--features", "f0"]
        ours += ["--jsonl", str(run)]
        mine: list[Took] = []
        peers: dict[str, list[Took]] = {minutes: [] for minutes in PEER_MINUTES}
        for _ in range(arguments.runs):
            run.unlink(missing_ok=True)
            mine.append(timed(ours, arguments.core))
            for minutes, taken in peers.items():
                peer = [sys.executable, "-c", PEER, str(flac), minutes]
                taken.append(timed(peer, arguments.core))
        readings = run.read_bytes().count(b'"type":"reading"')
    memory = mine[-1].memory
    early = memory[len(memory) // 10 : len(memory) // 5] or memory
    print(
        json.dumps(
            {
                "hours": arguments.hours,
                "readings": readings,
                "monitor_seconds": [round(took.wall, 1) for took in mine],
                "monitor_processor_seconds": [round(took.processor, 1) for took in mine],
                "monitor_times_real_time_a_core": round(
                    seconds / statistics.median(took.processor for took in mine)
                ),
                "peer": {
                    f"blocks of {minutes} min": {
                        "seconds": [round(took.wall, 1) for took in taken],
                        "processor_seconds": [round(took.processor, 1) for took in taken],
                        "ratio_of_processor_seconds": [
                            round(b.processor / a.processor, 2)
                            for a, b in zip(mine, taken, strict=True)
                        ],
                        "memory_mb_most": round(max(max(took.memory) for took in taken)),
                    }
                    for minutes, taken in peers.items()
                },
                "memory_mb_after_tenth": round(statistics.median(early), 1),
                "memory_mb_at_end": round(
                    statistics.median(memory[-max(len(memory) // 10, 1) :]), 1
                ),
                "memory_mb_most": round(max(memory), 1),
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
