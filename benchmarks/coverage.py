"""How often limits of `monitor evaluate` hold the truth, and equal systems are told apart.

python -m benchmarks.coverage [--studies 100] [--seed 1] [--jobs 2] [--json OUT.json]

Each study is simulated (see `benchmarks.studies`) and evaluated as a whole, as the command does,
without a dev matrix; studies come in pairs, two systems of one strength on the same speakers.
Prints two tables in Markdown, evidence by evidence for each size: of 100 limits that were shown,
how many held the truth, to three decimals; of 100 pairs, how many were called different. `-` where
limits were shown in less than one study of ten. Of N studies a 95 has a standard error of
22 / sqrt(N): 2.2 of 100, 1.1 of 400.
"""

from __future__ import annotations

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from benchmarks.studies import EVIDENCE, SIZES, Design, truth
from monitor.jobs import cores
from monitor.lab.evaluation.evaluating import evaluate
from monitor.lab.evaluation.family import EvaluationSettings
from monitor.lab.evaluation.report.comparing import compare
from monitor.lab.evaluation.report.report import Report

_ROUNDING = 5e-4
_SELDOM = 0.1
_BOUND = "membership.epsilon_lower_nats"
_BANDS = ("srd.null_mean_bits", "srd.null_model_bits")


def measured(
    speakers: int, trials: int, evidence: str, studies: int, seed: int
) -> dict[str, dict[str, float]]:
    """One column of the tables.

    Returns:
        ``held`` and ``told_apart``, shares by key of the figure, and ``shown``, the share of the
        studies with limits.
    """
    design = Design(speakers, trials, EVIDENCE[evidence])
    start = np.random.SeedSequence([seed, speakers, trials, list(EVIDENCE).index(evidence)])
    seeds = start.generate_state(3 * (studies // 2) + 2).tolist()
    known = dict(truth(design, seeds.pop(), seeds.pop()))
    reports: list[Report] = []
    differs: dict[str, list[bool]] = {}
    for pair in range(studies // 2):
        gifts = design.gifts(speakers, np.random.default_rng(seeds[3 * pair]))
        both = [
            evaluate(
                design.study(seeds[3 * pair + 1 + i], name, gifts),
                settings=EvaluationSettings(seed=seeds[3 * pair]),
            )
            for i, name in enumerate(("one", "other"))
        ]
        reports += both
        for row in compare(both).rows:
            difference = row.differences[1]
            if difference is not None and difference.low is not None:
                differs.setdefault(row.key, []).append(difference.significant)
    sung = [report["linkage.pi_sing"].value for report in reports]
    known["linkage.pi_sing"] = float(np.mean([value for value in sung if value is not None]))
    held: dict[str, list[bool]] = {}
    for report in reports:
        for key, figure in report.figures.items():
            low, high = figure.limits
            if key.startswith(_BOUND) and figure.value is not None:  # of epsilon, from below
                true = known[key.replace("_lower", "")]
                held.setdefault(key, []).append(figure.value <= true + _ROUNDING)
            if low is None or high is None or key in _BANDS or not np.isfinite(known[key]):
                continue
            held.setdefault(key, []).append(low - _ROUNDING <= known[key] <= high + _ROUNDING)
    return {
        "held": {key: float(np.mean(found)) for key, found in held.items()},
        "shown": {key: len(found) / len(reports) for key, found in held.items()},
        "told_apart": {key: float(np.mean(found)) for key, found in differs.items()},
        "compared": {key: len(found) / (len(reports) / 2) for key, found in differs.items()},
    }


def table(columns: dict[str, dict[str, dict[str, float]]], what: str, often: str) -> str:
    """In Markdown: a row for each figure, a column for each size, evidence by evidence."""
    sizes = [f"{speakers} x {trials}" for speakers, trials in SIZES]
    keys = dict.fromkeys(key for column in columns.values() for key in column[what])
    lines = [f"| figure | {' | '.join(sizes)} |", "| --- |" + " --- |" * len(sizes)]
    for key in keys:
        cells = [
            " / ".join(
                f"{100 * column[what][key]:.0f}" if column[often].get(key, 0.0) >= _SELDOM else "-"
                for column in (columns[f"{size} {evidence}"] for evidence in EVIDENCE)
            )
            for size in sizes
        ]
        lines.append(f"| `{key}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="coverage of limits on simulated speakers")
    parser.add_argument("--studies", type=int, default=100, help="of a column (default 100)")
    parser.add_argument("--seed", type=int, default=1, help="of the simulation (default 1)")
    parser.add_argument("--jobs", type=int, default=cores(), help="processes (all cores)")
    parser.add_argument("--json", type=Path, help="write what the tables hold")
    options = parser.parse_args()
    cells = [(s, t, evidence) for s, t in SIZES for evidence in EVIDENCE]
    with ProcessPoolExecutor(options.jobs) as pool:
        running = [pool.submit(measured, *cell, options.studies, options.seed) for cell in cells]
        columns = {
            f"{s} x {t} {evidence}": each.result()
            for (s, t, evidence), each in zip(cells, running, strict=True)
        }
    if options.json is not None:
        options.json.write_text(json.dumps(columns, indent=1))
    print(table(columns, "held", "shown"))
    print()
    print(table(columns, "told_apart", "compared"))


if __name__ == "__main__":
    main()
