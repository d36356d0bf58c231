"""How well a trained network tells voices apart that it never met, beside its teacher.

    python -m recipes.voice.evaluate CACHE OUT [--teacher]

Prints a table and writes OUT/results.json. Limits are over speakers. The half of the shipped
readers that may choose is told apart from the one that is reported; a training that let nobody
choose may report both.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from monitor.adapting.fine_tuning import rounded
from monitor.evaluation import ScoreMatrix, evaluate
from monitor.features.ecapa import exported_encoder, resolve
from monitor.files import atomic_write
from monitor.networks.layers import restored
from monitor.networks.voice import VoiceNetwork
from monitor.types import FloatArray
from recipes.voice.augment import at_snr, telephone
from recipes.voice.cache import Cache
from recipes.voice.train import load_student
from recipes.voice.trials import Embed, Enrolled, Heard, score, several, templates
from recipes.voice.within import finished

RESULTS = "results.json"
LENGTHS = (3.0, 9.0, 30.0)
_NOISE_DECIBELS = 20.0
_DRAWS = 500

Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description="Evaluate the voice network.")
    parser.add_argument("cache", type=Path)
    parser.add_argument("out", type=Path, help="the folder of a training")
    parser.add_argument("--teacher", action="store_true", help="ECAPA on the same trials, once")
    parser.add_argument("--ecapa", help="the teacher's folder (default: MONITOR_ECAPA, the hub)")
    given = parser.parse_args()
    cache = Cache(given.cache)
    path = given.out / RESULTS
    kept: list[Row] = orjson.loads(path.read_bytes()) if path.exists() else []
    rows = [row for row in kept if row["network"] == "teacher"]
    if given.teacher:
        import torch

        torch.set_num_threads(1)
        rows = measure(cache, "teacher", exported_encoder(resolve(given.ecapa)).embed)
    else:
        shipping = rounded(finished(cache, load_student(given.out)))
        network = VoiceNetwork(restored(shipping))
        rows += measure(cache, "voice", network.embed)
    with atomic_write(path) as file:
        file.write(orjson.dumps(rows, option=orjson.OPT_INDENT_2))
    print(table(rows))


def measure(cache: Cache, name: str, embed: Embed, lengths: Sequence[float] = LENGTHS) -> list[Row]:
    """Every condition and every length of test."""
    report, chose = several(cache, "report"), several(cache, "choose")
    foreign = several(cache, "held out")
    alone = partial(_noisy, generator=np.random.default_rng(0))
    conditions: list[tuple[str, list[Enrolled], Heard]] = [
        ("another chapter", report, _unchanged),
        ("the same, women", [each for each in report if each.gender == "F"], _unchanged),
        ("the same, men", [each for each in report if each.gender == "M"], _unchanged),
        ("another chapter, 300 to 3400 Hz", report, telephone),
        ("another chapter, noise at 20 dB", report, alone),
        ("non-native, same session", foreign, _unchanged),
        ("the same, 16 and older", [each for each in foreign if each.adult], _unchanged),
        ("the same, children", [each for each in foreign if not each.adult], _unchanged),
        ("the half that may choose", chose, _unchanged),
        ("both halves", sorted(report + chose, key=lambda each: each.voice), _unchanged),
    ]
    rows = []
    if name == "teacher":  # it is slow, and known
        conditions = [conditions[0], conditions[-1]]
    for condition, people, heard in conditions:
        enrolled = templates(cache, people, embed)
        for seconds in lengths[:2] if name == "teacher" else lengths:
            print(f"\r{name}: {condition}, {seconds:g} s", end="\x1b[K", file=sys.stderr)
            rows.append(
                {
                    "network": name,
                    "condition": condition,
                    "seconds": seconds,
                    **figures(score(cache, people, enrolled, seconds, embed, heard)),
                }
            )
    print(file=sys.stderr)
    return rows


def figures(matrix: ScoreMatrix) -> Row:
    """EER and rank 1 with their limits over speakers."""
    found = evaluate(matrix, replicates=_DRAWS).figures
    eer, first = (
        found[key] for key in ("verification.eer_rocch", "anonymity.share_rank_at_most_1")
    )
    return {
        "tests": matrix.trials,
        "tested": len(matrix.tested),
        "templates": matrix.population,
        "eer": eer.value,
        "eer_limits": eer.limits,
        "rank_1": first.value,
        "rank_1_limits": first.limits,
    }


def table(rows: list[Row]) -> str:
    """The results as Markdown."""
    lines = [
        "| condition | test | speakers tested, tests, N | network | EER | rank 1 |",
        "| --- | ---: | ---: | --- | ---: | ---: |",
    ]
    order = list(dict.fromkeys(row["condition"] for row in reversed(rows)))[::-1]
    for row in sorted(
        rows, key=lambda row: (order.index(row["condition"]), row["seconds"], row["network"])
    ):
        lines.append(
            f"| {row['condition']} | {row['seconds']:g} s "
            f"| {row['tested']}, {row['tests']}, {row['templates']} | {row['network']} "
            f"| {_share(row, 'eer')} | {_share(row, 'rank_1')} |"
        )
    return "\n".join(lines)


def _share(row: Mapping[str, Any], key: str) -> str:
    low, high = row[f"{key}_limits"]
    limits = "" if low is None or high is None else f" ({100 * low:.1f} to {100 * high:.1f})"
    return f"{100 * row[key]:.1f} %{limits}"


def _unchanged(sound: FloatArray) -> FloatArray:
    return sound


def _noisy(sound: FloatArray, generator: np.random.Generator) -> FloatArray:
    """With white noise."""
    noise = generator.standard_normal(len(sound), np.float32)
    return np.asarray(sound + at_snr(sound, noise, _NOISE_DECIBELS))


if __name__ == "__main__":
    main()
