"""Enrolling readers from audio with one process, and with one a core: how fast, and the same?

    python -m benchmarks.enrol ../shared/speech --readers 40 --seconds 30

One chapter of each of the first readers of the LibriSpeech sets is enrolled by `monitor enrol`,
with ``--jobs 1`` and then with all cores. Of both: times real time (of the audio that the templates
were made of), and seconds of processor, user and system together.
"""

from __future__ import annotations

import argparse
import csv
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.hear import chapters
from monitor.jobs import cores
from monitor.population.population import Population


def main() -> None:
    words = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    words.add_argument("speech", type=Path)
    words.add_argument("--readers", type=int, default=40)
    words.add_argument("--seconds", type=float, default=30.0)
    words.add_argument("--features", default="f0,phones")
    given = words.parse_args()
    first: dict[str, dict[str, str]] = {}
    for row in chapters(given.speech):
        first.setdefault(row["speaker"], row)
    with tempfile.TemporaryDirectory() as folder:
        manifest = Path(folder) / "readers.csv"
        with manifest.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["path", "speaker"])
            for row in [*first.values()][: given.readers]:
                writer.writerow([(given.speech / row["path"]).resolve(), row["speaker"]])
        made = [enrol(manifest, jobs, given.features, given.seconds) for jobs in (1, cores())]
    (one, took), (other, faster) = made
    same = one.names == other.names and all(
        np.array_equal(each.slices, other.features[name].slices)
        for name, each in one.features.items()
    )
    print(f"{took / faster:.2f} times as fast; the templates are {'the same' if same else 'NOT'}")


def enrol(manifest: Path, jobs: int, features: str, seconds: float) -> tuple[Population, float]:
    """The population, and the seconds that it took."""
    target = manifest.with_name(f"{jobs}.npz")
    options = ["--features", features, "--seconds", f"{seconds:g}", "--jobs", str(jobs)]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "monitor", "enrol", manifest, "-o", target, *options], check=True
    )
    took, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    work = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    population = Population.load(target)
    audio = sum(note.end_seconds for each in population.speakers for note in each.sources)
    print(
        f"jobs {jobs}: {audio / 60:.0f} min in {took:.0f} s, {audio / took:.0f} times real time; "
        f"{work:.0f} s of processor, {audio / work:.0f} times real time a core"
    )
    return population, took


if __name__ == "__main__":
    main()
