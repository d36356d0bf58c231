"""What each feature discloses by rank models, learnt on readers' frames or as they ship."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.page import Page, benchmark
from benchmarks.readers import CORPORA, collected, plan_of, trainers, units_of
from monitor.population.population import Population
from monitor.training.calibrating import CalibrationSettings, calibrate

TABLES = {
    "Mean local bits, readers left out": "held_out_local_bits",
    "MeanD of the rank model, bits": "mean_bits_model",
    "IdR": "identification_rate",
    "Expected calibration error of the best guess": "calibration_error",
    "Impostors against enrolled readers": "open_set_area",
    "By one sum": "enrolled_area",
}
SHIFTS = 20


@benchmark()
def features(
    page: Page, frames: Path | None = None,
    *, features: tuple[str, ...] = (), corpora: tuple[str, ...] = CORPORA,
    lengths: tuple[float, ...] = (3.0, 10.0, 30.0, 60.0, 120.0), template: float = 100.0,
    alike: bool = False,
) -> None:  # fmt: skip
    """What each feature, and each set of them, discloses.

    Without FRAMES (`recipes.frames`) the shipped rank models are shown; with it rank models are
    learnt from them first. Who trained a feature's network tests none of its rank models; with
    --alike the same readers test every set.
    """
    if frames is None:
        rows = [row for each in Population.reference().rank_models for row in each.rows]
    else:
        voices, specs = collected(frames, features or None, corpora)
        trained = trainers(frames)
        if alike:
            trained = dict.fromkeys(specs, set.union(*trained.values()))
        how = CalibrationSettings(
            lengths=lengths, template_lengths=(template,), trained=trained, prior=None
        )
        rows = list(calibrate(voices, specs, how).rows)
    kept = {
        (row["session"], row["feature"], row["T"]): row
        for row in rows
        if row["D"] == template and row["T"] in lengths
    }
    heads = f"session | features | {' | '.join(f'{t:g} s' for t in lengths)}"
    for title, key in TABLES.items():
        made: dict[tuple[str, str], list[str]] = {}
        for session, feature, _ in sorted(kept):
            cells = [kept.get((session, feature, t), {}).get(key) for t in lengths]
            told = ["" if value is None else f"{value:.2f}" for value in cells]
            made[session, feature] = [session, feature, *told]
        page.table(heads, made.values(), keys=2, under=title)
    for each in {
        f"{session}, {t:g} s: {row['speakers']} readers tested, N = {row['candidates']} ({feature})"
        for (session, feature, t), row in sorted(kept.items())
    }:
        page.note(each)


@benchmark()
def scores(
    page: Page, frames: Path, scores: Path, *, seconds: float = 10.0, template: float = 100.0
) -> None:
    """Matrices for `monitor evaluate`: each feature's scores of real readers."""
    voices, specs = collected(frames)
    measures = {name: spec.kind.similarity() for name, spec in specs.items()}
    plan = plan_of(voices, seconds, template, SHIFTS, "cross")
    trained = {name for feature in measures for name in trainers(frames).get(feature, ())}
    untrained = np.array([voice.name not in trained for voice in voices])
    cell = plan.run(measures, *units_of(seconds, template)).tested_on(untrained)
    scores.mkdir(parents=True, exist_ok=True)
    order = np.argsort(cell.own, kind="stable")  # trials of one reader together, in their order
    np.save(scores / "labels.npy", cell.own[order])
    for index, name in enumerate(measures):
        found = cell.gaps[:, index] + cell.mated[:, index, None]
        np.save(scores / f"{name}.npy", found[order].astype(np.float32))
    page.note(f"{order.size} trials of {np.unique(cell.own).size} readers: {scores}")
