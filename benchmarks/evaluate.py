"""`monitor evaluate` compared with public packages: time per metric, memory of a whole report.

The packages are lir (Cllr, min Cllr) and voice-anonymization-legal-eval (EER on the ROC convex
hull, pi_link). The extra `peers` installs both.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.page import Page, benchmark
from benchmarks.timing import (
    format_number,
    format_speedup,
    memory_mb,
    run_in_new_process,
    time_in_turns,
)
from monitor.lab.evaluation import evaluate as report_of
from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.evaluation.family import EvaluationSettings
from monitor.lab.evaluation.input.scores import read_scores
from monitor.lab.evaluation.linkage import pi_link
from monitor.lab.evaluation.verification import EER, HULL, cllr, eer, min_cllr
from monitor.maths.ranks import rank_bounds
from monitor.types import FloatArray, IntArray

Work = Callable[[], object]


@benchmark("speed")
def evaluate(page: Page, *, trials: int = 1000, speakers: int = 100, runs: int = 15) -> None:
    """How fast are metrics of `monitor evaluate` beside public packages, and do values agree?"""
    target = np.arange(trials) * speakers // trials
    scores = np.random.default_rng(0).normal(size=(trials, speakers))
    scores[np.arange(trials), target] += 1.5
    pairs = create_pairs(scores, target)
    for name, (peer, theirs, ours) in pairs.items():
        difference = np.max(np.abs(np.asarray(theirs(), float) - np.asarray(ours(), float)))
        seconds = time_in_turns(runs, {"theirs": theirs, "ours": ours})
        faster = format_speedup(seconds["theirs"], seconds["ours"])
        page.figure(f"{name} against {peer}'s", f"{faster}, equal to {difference:.0e}")

    def evaluate_all(draws: int) -> object:
        settings = EvaluationSettings(replicates=draws)
        return report_of(ScoreMatrix(scores, target), settings=settings)

    works = {
        "eer": pairs[EER[HULL]][1],
        "bare": lambda: evaluate_all(0),
        "drawn": lambda: evaluate_all(200),
    }
    seconds = time_in_turns(runs, works)
    share = sorted(a / b for a, b in zip(seconds["bare"], seconds["eer"], strict=True))
    page.figure(
        f"`monitor evaluate`, {format_number(trials)} x {speakers} scores, "
        "the report without intervals",
        f"{median(seconds['bare']):.2f} s, {median(share):.2f} times ({share[0]:.2f} to "
        f"{share[-1]:.2f}) as long as {EER[HULL]} alone in voice-anonymization-legal-eval; with "
        f"200 resamples {median(seconds['drawn']):.2f} s",
    )


def create_pairs(scores: FloatArray, target: IntArray) -> dict[str, tuple[str, Work, Work]]:
    """Return each metric's package, its call and ours; the inputs of both are prepared here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        legal_eval, lir = import_module("legal_eval"), import_module("lir.metrics")
    links = import_module("legal_eval.metrics.linkability")
    trials, speakers = scores.shape
    own = np.zeros(scores.shape, dtype=bool)
    own[np.arange(trials), target] = True
    mated, others = scores[own], scores[~own]
    nats = mated * np.log(10), others * np.log(10)  # lir takes base-10 LLRs
    llrs = import_module("lir.data.models").LLRData(
        features=np.concatenate([mated, others])[:, None],
        labels=np.repeat([1, 0], [mated.size, others.size]),
    )
    names, sizes = [str(number) for number in range(speakers)], sorted({2, 10, speakers})
    legal = import_module("legal_eval.io").ScoreMatrix(
        scores.T.copy(), names, [names[i] for i in target], {}
    )

    def link_with_peer() -> object:
        beaten = {"estimator": "exact", "beaters": links.count_beaters(legal)}
        return [legal_eval.linkability(legal, n, **beaten)[0] for n in sizes]

    def link_with_monitor() -> object:
        return pi_link(rank_bounds(scores, target)[0], speakers, sizes).tolist()

    legal_name = "legal-eval"
    return {
        EER[HULL]: (
            legal_name,
            lambda: legal_eval.rocch_eer(mated, others),
            lambda: eer(mated, others, "rocch"),
        ),
        "pi_link": (legal_name, link_with_peer, link_with_monitor),
        "Cllr": ("lir", lambda: lir.cllr(llrs), lambda: cllr(*nats)),
        "min Cllr": ("lir", lambda: lir.cllr_min(llrs), lambda: min_cllr(mated, others)),
    }


# ------------------------------------------------------------------------------------------- memory

BLOCK = 1 << 22
"""Scores written per block, so that writing needs less memory than the measured work."""
PEER = """
import json, resource, sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
import legal_eval
scores, target = np.load(sys.argv[1]), np.load(sys.argv[2])
own = np.zeros(scores.shape, bool)
own[np.arange(len(target)), target] = True
mated, others = scores[own], scores[~own]
del scores, own
began = time.process_time()
eer = legal_eval.rocch_eer(mated, others)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
print(json.dumps([eer, time.process_time() - began, peak]))
"""


@benchmark("speed")
def evaluate_memory(
    page: Page,
    *, trials: int = 100_000, speakers: int = 1251, replicates: int = 200, peer: bool = False,
    comparisons: int = 0, records: bool = False,
) -> None:  # fmt: skip
    """How much time and memory does a whole report take, on a score file of VoxCeleb's size?

    --peer also measures legal-eval's EER on the ROC convex hull of the same scores, all in memory.
    --comparisons N writes the scores as text, with N lines per trial, one of them mated. --records
    writes this list as .npy.
    """
    size = (trials, speakers, comparisons)
    with tempfile.TemporaryDirectory() as folder:
        if comparisons:
            scores, labels = write_list(Path(folder), size, records)
        else:
            scores, labels = write_matrix(Path(folder), trials, speakers)
        mb = scores.stat().st_size / 1e6
        opened, complete, value = run_in_new_process(
            measure_report, scores, labels, replicates, comparisons > 0
        )
        form = f"{format_number(trials)} x {format_number(speakers)} scores"
        if comparisons:
            kind = ".npy" if records else "text"
            form = f"{format_number(trials * comparisons)} comparisons as a {kind}"
        page.figure(
            f"{form} ({format_number(mb)} MB): read, and evaluated with {replicates} resamples",
            f"{opened[0]:.1f} s and {complete[0] - opened[0]:.1f} s of processor; "
            f"{opened[1]:.2f} GB at most when read, {complete[1]:.2f} GB in all",
        )
        if peer:
            command = [sys.executable, "-c", PEER, str(scores), str(labels)]
            result = subprocess.run(command, check=True, stdout=subprocess.PIPE)
            eer, seconds, gb = json.loads(result.stdout)
            page.figure(
                f"legal-eval's {EER[HULL]} alone of {format_number(trials)} x "
                f"{format_number(speakers)} scores",
                f"{seconds:.1f} s and {gb:.1f} GB, {seconds / complete[0]:.1f} times as long; "
                f"{abs(eer - value):.0e} apart",
            )


def measure_report(
    scores: Path, labels: Path, replicates: int, listed: bool
) -> tuple[tuple[float, float], tuple[float, float], float | None]:
    """Return (CPU seconds, peak GB) after opening the scores and at the end, and the hull's EER."""
    began = time.process_time()

    def measure_use() -> tuple[float, float]:
        return time.process_time() - began, memory_mb("VmHWM") / 1000

    read = read_scores(scores, labels)
    opened = measure_use()
    settings = EvaluationSettings(replicates=replicates)
    report = report_of(
        read.comparisons if listed else read.matrix, settings=settings, notes=read.notes
    )
    return opened, measure_use(), report[HULL].value


def write_matrix(folder: Path, trials: int, speakers: int) -> tuple[Path, Path]:
    """Write scores with some evidence: mated scores are higher by one standard deviation."""
    generator = np.random.default_rng(0)
    target = np.sort(np.arange(trials) % speakers)
    scores, labels = folder / "scores.npy", folder / "labels.npy"
    np.save(labels, target)
    header = {"descr": "<f4", "fortran_order": False, "shape": (trials, speakers)}
    with scores.open("wb") as file:  # not mapped: mapped pages count as memory
        np.lib.format.write_array_header_1_0(file, header)
        step = max(1, BLOCK // speakers)
        for first in range(0, trials, step):
            rows = target[first : first + step]
            block = generator.standard_normal((len(rows), speakers), dtype=np.float32)
            block[np.arange(len(rows)), rows] += 1
            file.write(block.tobytes())
    return scores, labels


def draw_comparisons(size: tuple[int, int, int]) -> Iterator[np.ndarray]:
    """Yield each trial's records of trial, speaker and score; its mated record is the first."""
    trials, speakers, each = size
    generator, step = np.random.default_rng(0), speakers // each
    kind = np.dtype([("trial", "<i4"), ("speaker", "<i4"), ("score", "<f4")])
    turn = np.arange(each)
    for trial in range(trials):
        found = np.empty(each, kind)
        found["trial"] = trial
        found["speaker"] = (trial + turn * step) % speakers
        found["score"] = generator.standard_normal(each) + (turn == 0)
        yield found


def write_list(folder: Path, size: tuple[int, int, int], records: bool) -> tuple[Path, Path]:
    """Write a list of scores and its labels, as text or as .npy files of records."""
    comparisons = draw_comparisons(size)
    if not records:
        scores, labels = folder / "scores.txt", folder / "utt2spk"
        labels.write_text("".join(f"t{i} s{i % size[1]}\n" for i in range(size[0])))
        with scores.open("w") as file:
            for each in comparisons:
                file.write("".join(f"s{j} t{i} {score:.5f}\n" for i, j, score in each.tolist()))
        return scores, labels
    scores, labels = folder / "scores.npy", folder / "labels.npy"
    np.save(labels, np.arange(size[0]) % size[1])
    with scores.open("wb") as file:
        for number, each in enumerate(comparisons):
            if not number:
                header = {"descr": each.dtype.descr, "fortran_order": False}
                header["shape"] = (size[0] * size[2],)
                np.lib.format.write_array_header_1_0(file, header)
            file.write(each.tobytes())
    return scores, labels
