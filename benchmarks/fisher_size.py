"""A population of the size of Fisher: 11 696 simulated speakers enrol, calibrate and replay.

    python -m benchmarks.fisher_size [--speakers 11696]

Runs the real commands on ready-made frames and prints what each took, and what the rank model says.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.simulation import Simulation, write_corpus

SESSIONS, SECONDS = 2, 45.0


def timed(*arguments: str | Path) -> tuple[float, str]:
    start = time.perf_counter()
    command = [sys.executable, "-m", "monitor", *map(str, arguments)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return round(time.perf_counter() - start, 1), done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--speakers", type=int, default=11696)
    speakers = parser.parse_args().speakers
    result: dict[str, object] = {"speakers": speakers}
    with tempfile.TemporaryDirectory() as folder:
        corpus, store = Path(folder) / "corpus", Path(folder) / "many.npz"
        write_corpus(corpus, Simulation(speakers), speakers, SESSIONS, SECONDS)
        result["enroll_seconds"], _ = timed("enrol", corpus, "-o", store, "--seconds", "30")
        result["store_mb"] = round(store.stat().st_size / 1e6, 1)
        result["calibrate_seconds"], table = timed(
            "calibrate",
            corpus,
            "-o",
            store,
            "--json",
            "--lengths",
            "3,10",
            "--template-lengths",
            "30",
        )
        result["cells"] = [
            {
                key: cell[key]
                for key in (
                    "session",
                    "T",
                    "D",
                    "candidates",
                    "trials",
                    "mean_bits_model",
                    "mean_bits_low",
                    "mean_bits_high",
                    "identification_rate",
                    "held_out_local_bits",
                )
            }
            for cell in json.loads(table)["cells"]
        ]
        voice = corpus / "000123" / "s1.npz"
        result["replay_seconds"], run = timed("replay", voice, "-p", store, "--watch", "000123")
        readings = [json.loads(line) for line in run.splitlines() if '"reading"' in line]
        result["replay_readings"] = len(readings)
        result["bits_of_ceiling"] = [readings[-1]["bits"], readings[-1]["ceiling"]]
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
