"""Evidence that is usual after so much speech, of readers whom the calibration has not seen."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.page import Page, benchmark
from benchmarks.readers import (
    BACKGROUND,
    FEATURES,
    alike,
    chapters,
    collected,
    read,
    trainers,
)  # fmt: skip
from monitor import Monitor
from monitor.alerts.rules import Threshold
from monitor.corpus import find
from monitor.jobs import cores, each_in_order
from monitor.maths.statistics import weighted_quantile
from monitor.networks.layers import RATE
from monitor.population.population import Population
from monitor.population.rank_model import RankModels
from monitor.training.calibrating import LENGTHS, CalibrationSettings, calibrate
from monitor.training.voices import cohort_of, collect
from monitor.types import FloatArray
from recipes.reference import TEMPLATE_LENGTHS
from recipes.voice.corpus import recordings

SHOWN_SECONDS = (1.0, 3.0, 10.0, 60.0)
THRESHOLDS = (1.0, 3.0, 6.0, 12.0)
AUDIO_SECONDS, APART_SECONDS, MOST_STREAMS = 90.0, 30.0, 8
"""Of a stream, so that a minute of it is speech; between their beginnings; streams of a reader."""
Task = tuple[str, FloatArray]


@benchmark()
def usual(
    page: Page, speech: Path, nonnative: Path, frames: Path, microphones: Path,
    *, jobs: int = cores(),
) -> None:  # fmt: skip
    """How many bits are usual after 1 to 60 s of speech, of readers that nothing was learnt from?

    FRAMES and MICROPHONES as of `recipes.reference`. The readers who judge trained no network and
    chose no setting, and rank models are fitted anew without them, otherwise as those that ship.
    """
    shipped, trained = Population.reference(), trainers(speech)
    judges = {each.speaker for each in recordings(speech, nonnative) if each.role == "report"} - {
        name for names in trained.values() for name in names
    }
    fitted = shipped.with_rank_models(fit_without(judges, shipped, trained, frames, microphones))
    tasks = list(streams(shipped, judges, speech))
    found = list(each_in_order(partial(watched, (fitted, shipped)), tasks, jobs))
    whole = [place for place, (curves, _) in enumerate(found) if not np.isnan(curves).any()]
    made = np.array([found[place][0] for place in whole])
    alerts = np.array([found[place][1] for place in whole])
    names, speaker = np.unique([tasks[place][0] for place in whole], return_inverse=True)
    page.note(f"{len(names)} readers, {len(whole)} streams")
    weights = alike(speaker)[None]
    page.table(
        "speech | median, bits | 5 to 95 % of streams | as shipped: median | 5 to 95 % of streams",
        (
            [f"{seconds:g} s", *(cell for bits in both.T for cell in range_of(bits, weights))]
            for seconds in SHOWN_SECONDS
            for both in [made[:, :, SHOWN_SECONDS.index(seconds)]]
        ),
    )
    page.table("alert | raised within 60 s | speech by then, median", waits(alerts, weights))


def fit_without(
    judges: Collection[str], shipped: Population, trained: dict[str, set[str]], frames: Path,
    microphones: Path,
) -> RankModels:  # fmt: skip
    """Rank models as they ship (`recipes.reference`), but for the readers who judge."""
    voices, specs = collected(frames, FEATURES)
    beside, _, _ = collect(find(microphones), features=FEATURES)
    cohort, _ = cohort_of(find(frames / BACKGROUND), features=FEATURES)
    settings = CalibrationSettings(
        lengths=LENGTHS,
        template_lengths=sorted({*TEMPLATE_LENGTHS, shipped.scoring().seconds}),
        sets=[*((name,) for name in FEATURES), FEATURES],
        trained=trained,
        other_voices=beside,
        prior=None,
        cohort=cohort,
    )
    known = [voice for voice in voices if voice.name not in judges]
    made = []
    for model in calibrate(known, specs, settings).rank_models:
        same = shipped.rank_models.find(model.features, model.session)
        if same is not None and same.evidence is not None and model.evidence is not None:
            evidence = replace(model.evidence, conditions=same.evidence.conditions)
            made.append(replace(model, evidence=evidence))
    return RankModels(made)


def streams(shipped: Population, judges: Collection[str], speech: Path) -> Iterator[Task]:
    """Pieces of chapters of the readers who judge that nobody enrolled, evenly apart."""
    taken = {(s.name, note.label) for s in shipped.speakers for note in s.sources}
    for name in sorted(judges):
        rows = [row for row in chapters(speech) if row["speaker"] == name]
        others = [row for row in rows if (name, Path(row["path"]).name) not in taken]
        pieces = [
            (row, first)
            for row in others
            for first in np.arange(0.0, float(row["seconds"]) - AUDIO_SECONDS, APART_SECONDS)
        ]
        chosen = np.linspace(0, len(pieces) - 1, min(MOST_STREAMS, len(pieces))).round()
        for row, first in (pieces[place] for place in chosen.astype(int).tolist()):
            yield name, read(speech / row["path"], AUDIO_SECONDS, first)


def watched(populations: tuple[Population, ...], task: Task) -> tuple[FloatArray, FloatArray]:
    """Evidence at SHOWN_SECONDS by each calibration, and speech until each alert by the first.

    NaN beyond the end of the stream; infinity where an alert is not raised.
    """
    name, sound = task
    rules = [Threshold("bits", threshold) for threshold in THRESHOLDS]
    curves, raised = [], np.full(len(rules), np.inf)
    for population in populations:
        monitor = Monitor(population, FEATURES, name, step_seconds=0.25)
        readings = list(monitor.stream(sound, rate=RATE))
        told = [(r.speech, r.evidence_bits) for r in readings if r.evidence_bits is not None]
        spoken, bits = np.array([*told, (np.inf, np.nan)]).T
        curves.append(bits[np.searchsorted(spoken, SHOWN_SECONDS)])
        if population is populations[0]:
            for place, rule in enumerate(rules):
                speech = [alert.speech for reading in readings for alert in rule.update(reading)]
                raised[place] = min([each for each in speech if each is not None], default=np.inf)
    return np.array(curves), raised


def range_of(bits: FloatArray, weights: FloatArray) -> tuple[str, str]:
    """The median, and the 5 and 95 percentiles, every reader weighing the same."""
    low, middle, high = (weighted_quantile(bits, weights, q).item() for q in (0.05, 0.5, 0.95))
    return f"{middle:.1f}", f"{low:.1f} to {high:.1f}"


def waits(raised: FloatArray, weights: FloatArray) -> Iterator[list[str]]:
    """Share of streams in which an alert is raised, and speech by then."""
    for threshold, speech in zip(THRESHOLDS, raised.T, strict=True):
        share = weights[0] @ (speech <= SHOWN_SECONDS[-1]) / weights.sum()
        middle = weighted_quantile(speech, weights, 0.5).item()
        after = f"{middle:.0f} s" if middle <= SHOWN_SECONDS[-1] else "over 60 s"
        yield [f"bits>{threshold:g}", f"{100 * share:.0f} %", after]
