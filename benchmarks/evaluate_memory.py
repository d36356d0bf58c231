"""Memory and time of a whole report on a score matrix of VoxCeleb's size, memory-mapped.

    python -m benchmarks.evaluate_memory [--trials 100000] [--speakers 1251] [--replicates 200]
    python -m benchmarks.evaluate_memory --trials 2000 --speakers 10000 --peer
    python -m benchmarks.evaluate_memory --trials 100000 --list 1000 [--records] [--by-speaker]

Writes a float32 matrix and its labels block by block, opens them as `monitor evaluate` does,
evaluates them without a dev matrix, and prints what it took as JSON. With ``--peer`` the EER of
voice-anonymization-legal-eval (extra ``peers``) on the same file, all in memory, in a process of
its own, stands beside it: about 100 bytes a score. With ``--list`` the scores are a text, a line
for each of so many comparisons a trial, its own among them; with ``--records`` that list is a
``.npy``; with ``--by-speaker`` it goes speaker by speaker.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import numpy as np

from monitor.lab.evaluation.evaluating import evaluate
from monitor.lab.evaluation.family import EvaluationSettings
from monitor.lab.evaluation.input.scores import read_scores
from monitor.types import FloatArray, IntArray

BLOCK = 1 << 22
"""Scores written at a time, so that writing takes less memory than what is measured."""
Records: TypeAlias = tuple[IntArray | int, IntArray | int, FloatArray]


def peak_mb() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def write(folder: Path, trials: int, speakers: int) -> tuple[Path, Path]:
    """Scores with some evidence in them: mated ones are higher by one standard deviation."""
    generator = np.random.default_rng(0)
    target = np.sort(np.arange(trials) % speakers)
    scores, labels = folder / "scores.npy", folder / "labels.npy"
    np.save(labels, target)
    header = {"descr": "<f4", "fortran_order": False, "shape": (trials, speakers)}
    with scores.open("wb") as file:  # written and not mapped: what is mapped counts as memory
        np.lib.format.write_array_header_1_0(file, header)
        step = max(1, BLOCK // speakers)
        for first in range(0, trials, step):
            rows = target[first : first + step]
            block = generator.standard_normal((len(rows), speakers), dtype=np.float32)
            block[np.arange(len(rows)), rows] += 1
            file.write(block.tobytes())
    return scores, labels


def comparisons(trials: int, speakers: int, each: int, by_speaker: bool) -> Iterator[Records]:
    """Trials, speakers, scores: so many a trial, the first its own; trial after trial or not."""
    generator = np.random.default_rng(0)
    step = speakers // each
    for i in range(speakers if by_speaker else trials):
        turn = np.arange(each)
        if by_speaker:
            met = [np.arange((i - k * step) % speakers, trials, speakers) for k in turn.tolist()]
            turn = np.repeat(turn, [len(some) for some in met])
            found: Records = np.concatenate(met), i, generator.standard_normal(len(turn))
        else:
            found = i, (i + turn * step) % speakers, generator.standard_normal(len(turn))
        yield *found[:2], found[2] + (turn == 0)


def write_list(folder: Path, size: tuple[int, int, int], by_speaker: bool) -> tuple[Path, Path]:
    """Lines of speaker, trial and score, and of trial and speaker."""
    scores, labels = folder / "scores.txt", folder / "utt2spk"
    labels.write_text("".join(f"t{i} s{i % size[1]}\n" for i in range(size[0])))
    with scores.open("w") as file:
        for trial, speaker, row in comparisons(*size, by_speaker):
            trial, speaker = np.broadcast_arrays(trial, speaker)
            lines = zip(speaker.tolist(), trial.tolist(), row.tolist(), strict=True)
            file.write("".join(f"s{j} t{i} {score:.5f}\n" for j, i, score in lines))
    return scores, labels


def write_records(folder: Path, size: tuple[int, int, int], by_speaker: bool) -> tuple[Path, Path]:
    """The same as records of 12 bytes."""
    scores, labels = folder / "scores.npy", folder / "labels.npy"
    np.save(labels, np.arange(size[0]) % size[1])
    kind = np.dtype([("trial", "<i4"), ("speaker", "<i4"), ("score", "<f4")])
    header = {"descr": kind.descr, "fortran_order": False, "shape": (size[0] * size[2],)}
    with scores.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for trial, speaker, row in comparisons(*size, by_speaker):
            records = np.empty(len(row), kind)
            records["trial"], records["speaker"], records["score"] = trial, speaker, row
            file.write(records.tobytes())
    return scores, labels


PEER = """
import json, resource, sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
import legal_eval
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
scores, target = np.load(sys.argv[1]), np.load(sys.argv[2])
own = np.zeros(scores.shape, bool)
own[np.arange(len(target)), target] = True
mated, others = scores[own], scores[~own]
del scores, own
before, began = peak(), time.process_time()
eer = legal_eval.rocch_eer(mated, others)
print(json.dumps({"eer": eer, "processor_seconds": round(time.process_time() - began, 1),
                  "peak_mb": round(peak(), 1)}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--speakers", type=int, default=1251)
    parser.add_argument("--replicates", type=int, default=200, help="resamples (default 200)")
    parser.add_argument("--peer", action="store_true", help="beside legal-eval's EER")
    parser.add_argument("--list", type=int, help="comparisons a trial, as text")
    parser.add_argument("--records", action="store_true", help="as a .npy")
    parser.add_argument("--by-speaker", action="store_true", help="its lines speaker by speaker")
    options = parser.parse_args()
    steps: list[tuple[str, float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        size = options.trials, options.speakers
        if options.list:
            writes = write_records if options.records else write_list
            scores, labels = writes(Path(folder), (*size, options.list), options.by_speaker)
        else:
            scores, labels = write(Path(folder), *size)
        before, start, began = peak_mb(), time.perf_counter(), time.process_time()
        read = read_scores(scores, labels)
        opened = peak_mb(), round(time.perf_counter() - start, 2)
        opened_processor = round(time.process_time() - began, 2)

        def step(label: str) -> None:
            steps.append((label, round(time.perf_counter() - start, 1), peak_mb()))

        report = evaluate(
            read.comparisons if options.list else read.matrix,
            settings=EvaluationSettings(replicates=options.replicates),
            notes=read.notes,
            progress=step,
        )
        result = {
            "trials": options.trials,
            "speakers": options.speakers,
            "file_mb": round(scores.stat().st_size / 1e6, 1),
            "peak_mb_before": before,
            "peak_mb_opened": opened[0],
            "seconds_to_open": opened[1],
            "processor_seconds_to_open": opened_processor,
            "draws": options.replicates,
            "seconds": round(time.perf_counter() - start, 2),
            "processor_seconds": round(time.process_time() - began, 2),
            "peak_mb": peak_mb(),
            "eer": report["verification.eer_rocch"].value,
            "figures": len(report.figures),
            "steps_seconds_peak_mb": steps,
            "notes": report.notes,
        }
        if options.peer:
            command = [sys.executable, "-c", PEER, str(scores), str(labels)]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
            result["peer"] = json.loads(done.stdout)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
