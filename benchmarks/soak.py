"""Hours of real audio through every feature: speed by feature, and memory that does not grow.

    python -m benchmarks.soak ../shared/speech --minutes 60 --features f0,phones,voice

Runs `monitor replay` on real readers, one after the other, as one FLAC, on one core (``--cores 0``)
or more (``--cores 0,1``), and samples its resident memory. Speaker embeddings need MONITOR_ECAPA.
Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from benchmarks.replay import ten_hours, timed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("speech", type=Path)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--features", default="f0,phones,voice")
    parser.add_argument("--cores", default="0")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        flac, run = Path(folder) / "long.flac", Path(folder) / "run.jsonl"
        seconds = ten_hours(given.speech, flac, given.minutes / 60)
        command = [sys.executable, "-m", "monitor", "replay", str(flac), "--jsonl", str(run)]
        took = timed([*command, "--features", given.features], given.cores)
        records = [json.loads(line) for line in run.read_text(encoding="utf-8").splitlines()]
    memory = took.memory
    tenth = max(len(memory) // 10, 1)
    print(
        json.dumps(
            {
                "features": given.features,
                "cores": given.cores,
                "minutes": given.minutes,
                "times_real_time": round(seconds / took.wall, 1),
                "times_real_time_a_core": round(seconds / took.processor, 1),
                "readings": sum(record["type"] == "reading" for record in records),
                "changes": sum(record["type"] == "change" for record in records),
                "memory_mb_by_tenth": [
                    round(max(memory[at : at + tenth])) for at in range(0, len(memory), tenth)
                ],
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
