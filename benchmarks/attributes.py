"""What voices tell of their readers' attributes, clear and protected, with nothing else attacked.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.attributes CORPUS --attributes gender,age<16
        [--background CORPUS]... [--groups manifest.csv] [--methods none,mcadams:0.8,...]
        [--feature voice] [--seconds 10] [--trials 10] [--jobs 1] [--keep FOLDER]

As ``monitor attack --attributes`` does it, whose tables take longer. Prints a line for each value
of each attribute: readers and excerpts, equal error rate, and for each false positive rate the
share told with 95 % interval over readers, the rate reached, epsilon and its lower bound.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from monitor.corpus import find
from monitor.lab.attacks.attackers import ATTACKERS, AttackContext
from monitor.lab.attacks.attributes import AttributeRow, judge_attributes, prepare_attributes
from monitor.lab.attacks.speech import CLEAR, Amounts, PieceExtractor
from monitor.lab.result_cache import ResultCache


def main() -> None:
    words = argparse.ArgumentParser(description="Attribute privacy.")
    words.add_argument("corpus", type=Path)
    words.add_argument("--background", type=Path, action="append", default=[])
    words.add_argument("--groups", type=Path)
    words.add_argument("--attributes", default="gender")
    words.add_argument("--methods", default="none,mcadams:0.8,mcadams:random")
    words.add_argument("--feature", default="voice")
    words.add_argument("--seconds", type=float, default=10.0)
    words.add_argument("--trials", type=int, default=10)
    words.add_argument("--jobs", type=int, default=1)
    words.add_argument("--keep", type=Path)
    asked = words.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        which = prepare_attributes(
            find(asked.corpus),
            asked.corpus,
            [(find(each), each) for each in asked.background],
            asked.attributes.split(","),
            Amounts(asked.seconds, asked.trials),
            asked.groups,
        )
        hearing = PieceExtractor(ResultCache(asked.keep or Path(folder)), asked.jobs)
        bench = AttackContext(
            which.judged, None, (asked.feature,), (), Amounts(), hearing, 0, Path(folder)
        )
        apart = len(which.learnt or ())
        print(f"{len(which.judged)} readers judged; learnt from {apart or 'them, in folds'}")
        for method in asked.methods.split(","):
            for name in ("ignorant",) if method == CLEAR else ("ignorant", "lazy-informed"):
                for _, row in judge_attributes(bench, method, ATTACKERS[name], which):
                    print(told(row), flush=True)


def told(row: AttributeRow) -> str:
    judgement = row.judgement
    rates = "  ".join(
        f"@{at.asked:g} {at.tpr:.3f} [{at.tpr_low:.3f}, {at.tpr_high:.3f}] "
        f"(FPR {at.realised:.4f} <= {at.realised_high:.3f}), eps "
        f"{'inf' if at.epsilon_nats is None else format(at.epsilon_nats, '.2f')} "
        f">= {at.epsilon_low_nats:.2f}{' *' if at.note else ''}"
        for at in judgement.at
    )
    return (
        f"{row.method:14} {row.attacker:13} {row.value:9} {row.version:7} "
        f"learnt {row.learnt_with}/{row.learnt_without} "
        f"judged {judgement.readers_with}/{judgement.readers_without} readers "
        f"{judgement.excerpts_with}/{judgement.excerpts_without} excerpts  "
        f"EER {judgement.eer:.3f} [{judgement.eer_low:.3f}, {judgement.eer_high:.3f}]  {rates}"
    )


if __name__ == "__main__":
    main()
