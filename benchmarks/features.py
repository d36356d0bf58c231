"""What each feature, and each set of them, discloses: the tables of results/features.md.

    python -m benchmarks.features                       # the shipped rank models
    python -m benchmarks.features FRAMES [--features phones] [--corpora dev-clean]
    python -m benchmarks.features FRAMES --features voice --lengths 9 --template 30

Without a folder the rank models of the shipped population are printed. With one, made by
`benchmarks.hear`, rank models are learnt from it first: to compare corpora, or 8 with 16 kHz. Tests
of readers who trained the network of phones count in none of its rank models.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.hear import trainers
from monitor.corpus import find
from monitor.population.population import Population
from monitor.training.calibrating import CalibrationSettings, calibrate
from monitor.training.voices import collect

LENGTHS = (3.0, 10.0, 30.0, 60.0, 120.0)
TEMPLATE_SECONDS = 100.0
COLUMNS = (
    ("mean local bits, readers left out", "held_out_local_bits", ".2f"),
    ("MeanD of the rank model, bits", "mean_bits_model", ".2f"),
    ("IdR", "identification_rate", ".2f"),
    ("expected calibration error of the best guess", "calibration_error", ".2f"),
    ("impostors told from enrolled readers (area under the ROC curve)", "open_set_area", ".2f"),
    ("the same by the sum of all likelihood ratios", "enrolled_area", ".2f"),
    ("mean evidence bits", "evidence_bits", ".1f"),
    ("the most evidence bits that are supported", "support_bits", ".1f"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description="What each feature discloses.")
    parser.add_argument("frames", type=Path, nargs="?")
    parser.add_argument("--features")
    parser.add_argument("--corpora", default="train-clean-5,train-clean-100,dev-clean")
    parser.add_argument("--lengths", default=",".join(f"{t:g}" for t in LENGTHS), help="T, seconds")
    parser.add_argument("--template", type=float, default=TEMPLATE_SECONDS, help="D, seconds")
    parser.add_argument("--alike", action="store_true", help="the same readers test every set")
    given = parser.parse_args()
    lengths = tuple(float(t) for t in given.lengths.split(","))
    if given.frames is None:
        rows = [row for rank_model in Population.reference().rank_models for row in rank_model.rows]
        print_tables(rows, lengths, given.template)
        return
    features = given.features.split(",") if given.features else None
    with tempfile.TemporaryDirectory() as folder:
        manifest = Path(folder) / "all.csv"
        files = [
            path
            for corpus in given.corpora.split(",")
            for path in sorted((given.frames / corpus).rglob("*.npz"))
        ]
        lines = [f"{path.resolve()},{path.parent.name},{path.stem}" for path in files]
        manifest.write_text("\n".join(["path,speaker,session", *lines, ""]), encoding="utf-8")
        voices, specs, problems = collect(find(manifest), features=features)
    for problem in problems:
        raise SystemExit(problem)
    trained = trainers(given.frames)
    if given.alike:
        trained = dict.fromkeys(specs, set.union(*trained.values()))
    made = calibrate(
        voices,
        specs,
        CalibrationSettings(
            lengths=lengths, template_lengths=(given.template,), trained=trained, prior=None
        ),
    )
    print_tables(made.rows, lengths, given.template)


def print_tables(
    rows: Iterable[Mapping[str, Any]], wanted: Sequence[float], template: float
) -> None:
    """One table a figure: a line for each set of features and session, a column for each T."""
    kept = [row for row in rows if row["D"] == template and row["T"] in wanted]
    names = dict.fromkeys((row["session"], row["feature"]) for row in kept)
    lengths = sorted({row["T"] for row in kept})
    for title, key, style in COLUMNS:
        print(f"\n{title} (templates of {template:g} s)\n")
        print("| session | features | " + " | ".join(f"{t:g} s" for t in lengths) + " |")
        print("| --- | --- |" + " ---: |" * len(lengths))
        for session, feature in sorted(names):
            cells = {row["T"]: row for row in kept if row["feature"] == feature
                     and row["session"] == session}  # fmt: skip
            values = [cells[t].get(key) if t in cells else None for t in lengths]
            texts = ["" if value is None else format(value, style) for value in values]
            print(f"| {session} | {feature} | " + " | ".join(texts) + " |")
    sizes = {
        (row["session"], row["T"], row["speakers"], row["candidates"]): row["feature"]
        for row in reversed(kept)
    }
    for (session, t, speakers, candidates), feature in sorted(sizes.items()):
        tested = f"{speakers} readers tested, N = {candidates}"
        print(f"\n{session}, {t:g} s: {tested} ({feature} ...)", end="")
    print()


if __name__ == "__main__":
    main()
