"""Metrics of `monitor evaluate` beside the same metrics of public packages, taking turns.

python -m benchmarks.evaluate [--trials 1000] [--speakers 100] [--runs 15]

Peers: lir (Cllr, min Cllr) and voice-anonymization-legal-eval (EER on the hull, pi_link, pi_sing).
The golden scores are used where ../shared/golden lies beside the repository and the size is the
default, else synthetic ones. Prints one JSON object: median seconds of both, the ratio of each pair
of runs (above 1: ours is faster), and how far the two answers lie apart. Needs the extras ``peers``
and ``dev``.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import TypeAlias

import numpy as np
from threadpoolctl import threadpool_limits

from monitor.lab.evaluation.comparisons import ScoreCounts, ScoreMatrix
from monitor.lab.evaluation.evaluating import evaluate
from monitor.lab.evaluation.family import EvaluationSettings
from monitor.lab.evaluation.linkage import figures as linkage_figures
from monitor.lab.evaluation.linkage import pi_link, pi_sing
from monitor.lab.evaluation.verification import cllr, eer, min_cllr
from monitor.lab.evaluation.verification import figures as verification_figures
from monitor.lab.evaluation.zebra import figures as zebra_figures
from monitor.maths.ranks import rank_bounds
from monitor.types import FloatArray, IntArray

GOLDEN = Path(__file__).resolve().parents[2] / "shared" / "golden" / "scores_N100_T1000.npz"
Work: TypeAlias = Callable[[], object]


def scored(trials: int, speakers: int) -> tuple[FloatArray, IntArray, str]:
    """Scores and targets: golden ones, or normal ones with the mated ones 1.5 higher."""
    if GOLDEN.is_file() and (trials, speakers) == (1000, 100):
        with np.load(GOLDEN) as store:
            return store["mid_eval"].astype(np.float64), store["target"], "golden"
    target = np.arange(trials) * speakers // trials
    scores = np.random.default_rng(0).normal(size=(trials, speakers))
    scores[np.arange(trials), target] += 1.5
    return scores, target, "synthetic"


def pairs_of(scores: FloatArray, target: IntArray) -> dict[str, tuple[Work, Work]]:
    """Of each metric the peer's call and ours, on arrays that are ready for either."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        legal_eval, lir = import_module("legal_eval"), import_module("lir.metrics")
    links = import_module("legal_eval.metrics.linkability")
    sings = import_module("legal_eval.metrics.singling_out")
    trials, speakers = scores.shape
    own = np.zeros(scores.shape, dtype=bool)
    own[np.arange(trials), target] = True
    mated, non_mated = scores[own], scores[~own]
    mated_nats, non_mated_nats = mated * np.log(10), non_mated * np.log(10)  # lir's are decimal
    llrs = import_module("lir.data.models").LLRData(
        features=np.concatenate([mated, non_mated])[:, None],
        labels=np.repeat([1, 0], [mated.size, non_mated.size]),
    )
    names = [str(number) for number in range(speakers)]
    legal = import_module("legal_eval.io").ScoreMatrix(
        scores.T.copy(), names, [names[i] for i in target], {}
    )
    candidates = sorted({2, 10, speakers})

    def their_links() -> object:
        beaters = links.count_beaters(legal)
        return [
            legal_eval.linkability(legal, n, estimator="exact", beaters=beaters)[0]
            for n in candidates
        ]

    def our_links() -> object:
        return pi_link(rank_bounds(scores, target)[0], speakers, candidates).tolist()

    found: dict[str, tuple[Work, Work]] = {
        "eer_rocch": (
            lambda: legal_eval.rocch_eer(mated, non_mated),
            lambda: eer(mated, non_mated),
        ),
        "cllr": (lambda: lir.cllr(llrs), lambda: cllr(mated_nats, non_mated_nats)),
        "min_cllr": (lambda: lir.cllr_min(llrs), lambda: min_cllr(mated, non_mated)),
        "pi_link": (their_links, our_links),
    }
    each = trials // speakers
    if each < 2 or trials != each * speakers or (np.diff(target) < 0).any():
        return found
    test = np.arange(trials) % each == 0
    spans = [((each - 1) * i, (each - 1) * (i + 1)) for i in range(speakers)]
    sets = sings.ConversationScores(
        names, names, scores[test].T.copy(), scores[~test].T.copy(), spans
    )
    passing = np.full(speakers, each - 1)

    def their_isolation() -> object:
        return float(np.mean(list(legal_eval.singling_out(sets, speakers, n_runs=1).values())))

    found["pi_sing"] = (
        their_isolation,
        lambda: pi_sing(scores[~test], scores[test], passing),
    )
    return found


def our_families(scores: FloatArray, target: IntArray) -> dict[str, Work]:
    """Whole families of the report; the whole report without bootstrap belongs here as well."""

    def pooled() -> object:
        matrix = ScoreMatrix(scores, target)
        counts = ScoreCounts.of(matrix)
        return [f(matrix, counts=counts) for f in (verification_figures, zebra_figures)]

    return {
        "verification + zebra": pooled,
        "linkage": lambda: linkage_figures(ScoreMatrix(scores, target)),
    }


def whole_report(
    scores: FloatArray, target: IntArray, their_eer: Work, runs: int
) -> dict[str, object]:
    """All figures and curves, beside the peer's EER alone; LID cross-fitted, the slower way."""

    def whole(draws: int) -> Work:
        return lambda: evaluate(
            ScoreMatrix(scores, target), settings=EvaluationSettings(replicates=draws)
        )

    whole(0)()
    taken = [(seconds(their_eer), seconds(whole(0))) for _ in range(runs)]
    times = sorted(ours / theirs for theirs, ours in taken)
    return {
        "peer_eer_seconds": median(t[0] for t in taken),
        "monitor_seconds": median(t[1] for t in taken),
        "times_the_eer": {"min": times[0], "median": median(times), "max": times[-1]},
        "monitor_seconds_200_draws": median(seconds(whole(200)) for _ in range(runs)),
    }


def seconds(work: Work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def apart(first: object, second: object) -> float:
    return float(np.max(np.abs(np.asarray(first, float) - np.asarray(second, float))))


def main() -> None:
    parser = argparse.ArgumentParser(description="metrics beside lir and legal-eval, one thread")
    parser.add_argument("--trials", type=int, default=1000, help="trials (default 1000)")
    parser.add_argument("--speakers", type=int, default=100, help="speakers (default 100)")
    parser.add_argument("--runs", type=int, default=15, help="timed pairs of runs (default 15)")
    options = parser.parse_args()
    scores, target, source = scored(options.trials, options.speakers)
    report: dict[str, object] = {
        "benchmark": "evaluate",
        "scores": source,
        "trials": options.trials,
        "speakers": options.speakers,
        "runs": options.runs,
    }
    with threadpool_limits(1):
        pairs = pairs_of(scores, target)
        for name, (theirs, ours) in pairs.items():
            difference = apart(theirs(), ours())  # also warms up both
            taken = [(seconds(theirs), seconds(ours)) for _ in range(options.runs)]
            ratios = sorted(slow / fast for slow, fast in taken)
            report[name] = {
                "peer_seconds": median(t[0] for t in taken),
                "monitor_seconds": median(t[1] for t in taken),
                "ratio": {"min": ratios[0], "median": median(ratios), "max": ratios[-1]},
                "apart": difference,
            }
        report["whole_report"] = whole_report(scores, target, pairs["eer_rocch"][0], options.runs)
        report["family_seconds"] = {
            name: median(seconds(work) for _ in range(options.runs))
            for name, work in our_families(scores, target).items()
        }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
