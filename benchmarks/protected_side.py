"""What hearing a voice through an anonymiser costs: processor time of both sides against one.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.protected_side RECORDING [--seconds 120]
        [--features f0,phones,voice] [--methods none,mcadams:0.8,noise:10]

The same seconds are replayed by one process, alone and with each anonymiser, twice in turn; the
least of each counts. The protected population is the clear one again: it costs what one of
protected speech does. Prints processor seconds for a second of audio, and the ratio to hearing
the clear side alone.
"""

from __future__ import annotations

import argparse
import time

from monitor import Monitor, Population
from monitor.run import Protection, Run, RunSettings
from monitor.sources import File


def main() -> None:
    words = argparse.ArgumentParser(description="The cost of a protected side.")
    words.add_argument("recording")
    words.add_argument("--seconds", type=float, default=120.0)
    words.add_argument("--features", default="f0,phones,voice")
    words.add_argument("--methods", default="none,mcadams:0.8,noise:10")
    asked = words.parse_args()
    features, population = asked.features.split(","), Population.reference()
    ways: dict[str, Protection | None] = {"clear alone": None}
    for method in asked.methods.split(","):
        ways[method] = Protection(method)
    ways[f"{method}, two attackers"] = Protection(method, population)
    took: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(2):
        for name, protect in ways.items():
            monitor = Monitor(population, features, population.speakers[0].name, on_change="note")
            source = File(asked.recording, end_seconds=asked.seconds)
            with Run(
                source, monitor, settings=RunSettings(protect=protect, allow_overlap=True)
            ) as run:
                began = time.process_time()
                run.to_end()
                took[name].append((time.process_time() - began) / asked.seconds)
    alone = min(took["clear alone"])
    for name, each in took.items():
        print(f"{name:28} {1000 * min(each):6.1f} ms a second, {min(each) / alone:.2f} times")


if __name__ == "__main__":
    main()
