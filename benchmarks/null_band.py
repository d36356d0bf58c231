"""Does `monitor evaluate` tell evidence from none among few speakers? Simulated scores.

    python -m benchmarks.null_band [--studies 300] [--trials 8]

Every speaker has as many trials; some templates attract everybody a little. `alike` is the share of
a score's variance that all trials of a speaker have in common without being evidence of who spoke
(a session, a mood); `lead` is what the right template gains, in standard deviations. Prints, as a
table in Markdown, the share of studies in which no evidence reads as much in at most one case of
twenty: at a lead of 0 it should be 5 % or less, then near 100 %.
"""

from __future__ import annotations

import argparse

import numpy as np

from monitor.lab.evaluation import ScoreMatrix
from monitor.lab.evaluation.srd import null_band

LEADS = (0.0, 1.0, 2.0, 4.0)


def study(speakers: int, trials: int, alike: float, lead: float, seed: int) -> ScoreMatrix:
    """Scores of one study."""
    generator = np.random.default_rng(seed)
    target = np.repeat(np.arange(speakers), trials)
    common = np.sqrt(alike) * generator.normal(size=(speakers, speakers))
    noise = np.sqrt(1 - alike) * generator.normal(size=(target.size, speakers))
    scores = common[target] + noise + 0.5 * generator.normal(size=speakers)
    return ScoreMatrix(scores + lead * (target[:, None] == np.arange(speakers)), target)


def share(speakers: int, trials: int, alike: float, lead: float, studies: int) -> float:
    """Of the studies in which scores stand out from no evidence."""
    made = (study(speakers, trials, alike, lead, seed) for seed in range(studies))
    return float(np.mean([null_band(each, seed=i).chance <= 0.05 for i, each in enumerate(made)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=300)
    parser.add_argument("--trials", type=int, default=8)
    given = parser.parse_args()
    print("| N | alike |", " | ".join(f"lead {lead:g}" for lead in LEADS), "|")
    print("| ---: | ---: |", " | ".join("---:" for _ in LEADS), "|")
    for speakers in (2, 3, 4, 5, 6, 10):
        for alike in (0.0, 0.3, 0.9):
            found = [share(speakers, given.trials, alike, lead, given.studies) for lead in LEADS]
            cells = " | ".join(f"{100 * each:.0f} %" for each in found)
            print(f"| {speakers} | {alike:g} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
