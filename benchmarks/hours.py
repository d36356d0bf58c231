"""What hours of audio cost: memory and disk of a running monitor, a ledger, and what `hear` keeps.

    python -m benchmarks.hours ../shared/speech/dev-clean [--hours 0.5,1,2]
    python -m benchmarks.hours ../shared/speech|FRAMES --long 100 [--sessions 4]

Real readers, one recording after the other, again and again. Each row is a process of its own:

- `hear`: processor seconds and bytes of frames an hour, the most memory of one process.
- `replay`: the frames as one stream, with a ledger; memory, records, and the ledger's size.
- `collect`: the frames in memory, as `calibrate` and `score` hold them.

Prints JSON, a line a row. `benchmarks.scale` has what people cost.

With ``--long`` all recordings (or their frames, as `monitor hear` writes them) are one stream of so
many hours, again and again: the default features, evidence, an alert rule, a ledger and JSON lines,
a reading every ten seconds. Beside it, in other processes, one after the other, a ledger adds up
sessions of the same. Each prints a line an hour (or a tenth of all where that is less): hours,
processor seconds, resident memory; then how the two ends compare. A recording comes again after all
others; a stream remembers two hours of itself to notice repetitions.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import soundfile

from monitor import Monitor, Population, Run
from monitor.alerts import Threshold
from monitor.ledger import Ledger
from monitor.protocols import Source
from monitor.run.run import LedgerFile
from monitor.sources.chain import Chain
from monitor.sources.registry import open_source

STEP_SECONDS = 10
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
from monitor.corpus.finding import find
from monitor.training.voices import collect
before = memory_mb()
voices, _, _ = collect(find(sys.argv[1]))
print(memory_mb() - before)
"""


class Again(Chain):
    """Recordings that come more than once, as if each were another: what they are is not told."""

    def provenance(self) -> None:
        """Nobody knows."""


def plan(speech: Path, hours: float, sessions: int) -> list[list[Source]]:
    """The recordings, or their frames, again and again for so many hours, cut into sessions."""
    found = sorted(p for p in speech.rglob("*.*") if p.suffix in (".flac", ".opus", ".npz"))
    sources = [open_source(path) for path in found]
    made: list[list[Source]] = [[] for _ in range(sessions)]
    heard = 0.0
    for source in itertools.cycle(sources):
        if heard >= 3600 * hours:
            return made
        made[int(heard / 3600 / hours * sessions)].append(source)
        heard += source.seconds or 0.0
    raise SystemExit(f"{speech} holds no recordings")


def session(sources: list[Source], name: str, folder: Path, every: float) -> None:
    """Hear recordings into a folder's ledger; a line of JSON every so many hours."""
    monitor = Monitor(
        Population.reference(),
        FEATURES.split(","),
        watch=Population.reference().names[0],
        step_seconds=STEP_SECONDS,
        on_change="ignore",  # who reads what is not the question, and sessions begin anew with it
    )
    process, due, began = psutil.Process(), every, time.process_time()
    with Run(
        Again(sources),
        monitor,
        rules=[Threshold("bits", 3)],
        log=folder / f"{name}.jsonl",
        ledger=LedgerFile(folder / "l.db"),
    ) as run:
        for event in run:
            if event.type == "reading" and event.seconds / 3600 >= due - 1e-6:
                now = time.process_time()
                row = {
                    "session": name,
                    "hours": round(event.seconds / 3600, 3),
                    "processor_seconds": round(now - began, 2),
                    "memory_mb": round(process.memory_info().rss / 1e6, 1),
                }
                print(json.dumps(row), flush=True)
                due, began = due + every, now


def totals(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The last reading of a folder's last run, and all that its ledger holds of the speaker."""
    logs = sorted(folder.glob("*.jsonl"), key=lambda path: path.stat().st_mtime)
    with logs[-1].open("rb") as log:
        log.seek(-min(log.seek(0, os.SEEK_END), 1_000_000), os.SEEK_END)
        records = [json.loads(line) for line in log.read().splitlines()[1:]]
    (*_, last) = (record for record in records if record["type"] == "reading")
    population = Population.reference()
    specs = {name: population.specs[name] for name in FEATURES.split(",")}
    with Ledger(folder / "l.db", create=False, write=False) as ledger:
        heard = ledger.carried(population.names[0], specs, headline="evidence").heard
    assert heard is not None
    return last, {"speech": heard.speech, "frames": heard.frames, "totals": heard.totals}


SESSION_KEYS = ("seconds", "peak_bits", "conditions", "differs", "change", "excluded_seconds")
"""Of a reading, what is of this session and not of the voice so far."""


def compared(whole: Path, parts: Path) -> dict[str, Any]:
    """How one run and the sum of several differ at their end."""
    (last, one), (last_of_parts, many) = totals(whole), totals(parts)
    unlike = [key for key in last if key not in SESSION_KEYS and last[key] != last_of_parts[key]]
    return {
        "speech_seconds": last["speech"],
        "evidence_bits": last["evidence_bits"],
        "evidence_bits_of_sessions": last_of_parts["evidence_bits"],
        "keys_unlike": unlike,
        "frames_alike": one["frames"] == many["frames"] and one["speech"] == many["speech"],
        "totals_apart": {
            name: float(np.max(np.abs(total - many["totals"][name])) / np.max(np.abs(total)))
            for name, total in one["totals"].items()
        },
        "excluded_seconds": [each.get("excluded_seconds") for each in (last, last_of_parts)],
    }


def long(speech: Path, hours: float, sessions: int) -> None:
    """One run of so many hours, beside several that a ledger adds up; prints as they go."""
    with tempfile.TemporaryDirectory() as name:
        whole, parts = Path(name) / "whole", Path(name) / "parts"
        whole.mkdir()
        parts.mkdir()

        def started(count: int, which: int, folder: Path) -> subprocess.Popen[bytes]:
            asked = f"{count},{which},{folder}"
            command = [sys.executable, "-m", "benchmarks.hours", str(speech), "--long", str(hours)]
            one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
            return subprocess.Popen([*command, "--session", asked], env=os.environ | one_thread)

        one = started(1, 0, whole)
        failed = [started(sessions, k, parts).wait() for k in range(sessions)]
        if one.wait() or any(failed):
            raise SystemExit("a session failed")
        if sessions:
            print(json.dumps(compared(whole, parts)), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("speech", type=Path)
    parser.add_argument("--hours", default="0.5,1,2")
    parser.add_argument("--long", type=float, help="hours of one stream")
    parser.add_argument("--sessions", type=int, default=4, help="beside it, or 0")
    parser.add_argument("--session", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.session:
        count, which, folder = given.session.split(",", 2)
        part = plan(given.speech, given.long, int(count))[int(which)]
        every = min(1.0, given.long / 10)
        session(part, f"{int(which) + 1} of {count}", Path(folder), every)
        return
    if given.long:
        long(given.speech, given.long, given.sessions)
        return
    monitor = (sys.executable, "-m", "monitor")
    watched = Population.reference().names[0]
    for asked in map(float, given.hours.split(",")):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            hours = corpus_of(given.speech, asked, folder / "corpus")
            frames, ledger, log = folder / "frames", folder / "l.db", folder / "run.jsonl"
            how = ("--features", FEATURES)
            corpus = (str(folder / "corpus"), "-o", str(frames), "--jobs", "1")
            took, most = run(*monitor, "hear", *corpus, *how)
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
