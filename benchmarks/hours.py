"""What hours of audio cost: memory and disk of a running monitor, a ledger, and what `hear` keeps.

    python -m benchmarks.hours ../shared/speech/dev-clean [--hours 0.5,1,2]

Real readers, one recording after the other, again and again. Each row is a process of its own:

- `hear`: processor seconds and bytes of frames an hour, the most memory of one process.
- `replay`: the frames as one stream, with a ledger; memory, records, and the ledger's size.
- `collect`: the frames in memory, as `calibrate` and `score` hold them.

Prints JSON, a line a row. `benchmarks.scale` has what people cost.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import soundfile

from monitor import Population

FEATURES = "f0,phones,voice"


def corpus_of(speech: Path, hours: float, folder: Path) -> float:
    """Links to the recordings, by speaker, until there are so many hours; some come again."""
    found = sorted(p for p in speech.rglob("*.*") if p.suffix in (".flac", ".opus", ".wav"))
    seconds, turn = 0.0, 0
    while seconds < 3600 * hours:
        for path in found:
            place = folder / f"{turn}-{path.relative_to(speech).parts[0]}" / path.name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(path.resolve())
            seconds += soundfile.info(path).duration
            if seconds >= 3600 * hours:
                break
        turn += 1
    return seconds / 3600


def run(*command: str) -> tuple[float, float]:
    """Processor seconds, and the most memory in MB, of a command."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 4):
        raise SystemExit(f"{' '.join(command)}: left with {process.returncode}")
    return round(used.ru_utime + used.ru_stime, 1), round(used.ru_maxrss / 1024, 1)


COLLECT = """
import sys
from benchmarks.scale import memory_mb
from monitor.corpus import find
from monitor.training.voices import collect
before = memory_mb()
voices, _, _ = collect(find(sys.argv[1]))
print(memory_mb() - before)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("speech", type=Path)
    parser.add_argument("--hours", default="0.5,1,2")
    given = parser.parse_args()
    monitor = (sys.executable, "-m", "monitor")
    watched = Population.reference().names[0]
    for asked in map(float, given.hours.split(",")):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            hours = corpus_of(given.speech, asked, folder / "corpus")
            frames, ledger, log = folder / "frames", folder / "l.db", folder / "run.jsonl"
            how = ("--features", FEATURES)
            corpus = (
                str(folder / "corpus"),
                "-o",
                str(folder / "people.npz"),
                "--frames",
                str(frames),
            )
            took, most = run(*monitor, "enrol", *corpus, "--jobs", "1", *how)
            kept = list(frames.rglob("*.npz"))
            row = {
                "hours": round(hours, 2),
                "hear_processor_seconds_an_hour": round(took / hours, 1),
                "hear_peak_mb": most,
                "frames_mb_an_hour": round(sum(p.stat().st_size for p in kept) / 1e6 / hours, 2),
            }
            writes = ("--jsonl", str(log), "--ledger", str(ledger), "--watch", watched)
            took, most = run(
                *monitor, "replay", *map(str, sorted(kept)), *how, *writes, "--allow-overlap"
            )
            row |= {
                "replay_processor_seconds_an_hour": round(took / hours, 1),
                "replay_peak_mb": most,
                "records_mb_an_hour": round(log.stat().st_size / 1e6 / hours, 2),
                "ledger_mb_an_hour": round(ledger.stat().st_size / 1e6 / hours, 2),
            }
            done = subprocess.run(
                [sys.executable, "-c", COLLECT, str(frames)], check=True, stdout=subprocess.PIPE
            )
            row["collected_mb_an_hour"] = round(float(done.stdout) / hours, 2)
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
