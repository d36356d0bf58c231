"""Typical evidence by length of speech, for people held out of all fits and choices of settings."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.by_length import (
    OWN,
    SHORT_AUDIO,
    STEP_SECONDS,
    Stream,
    choose_seconds,
    enrol_own_microphones,
    enrol_people,
    find_starts,
    read_people_streams,
    read_reader_streams,
    spread_indices,
)
from benchmarks.page import Page, benchmark
from benchmarks.readers import (
    BACKGROUND,
    FEATURES,
    collect_readers,
    equal_speaker_weights,
    read,
    trainers,
)
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
from monitor.types import FloatArray, IntArray
from recipes.reference import TEMPLATE_LENGTHS
from recipes.voice.clips import people
from recipes.voice.corpus import recordings
from recipes.voice.world import conditions

SHOWN_SECONDS = (1.0, 3.0, 10.0, 20.0)
THRESHOLDS = (1.0, 3.0, 6.0, 12.0)
CONDITIONS = ("clean", "telephone", "babble 10 dB")
READERS, FOREIGN = "readers", "non-native"
_ENROLLED_AUDIO = 38.0
"""Seconds of a non-native speaker for a template of 30 s of speech; the rest is the test audio."""
Populations = dict[str, Population]


@benchmark()
def usual(
    page: Page, speech: Path, nonnative: Path, voices: Path,
    *, frames: Path | None = None, microphones: Path | None = None, starts: int = 6,
    jobs: int = cores(),
) -> None:  # fmt: skip
    """How many bits are usual after 1 to 20 s of speech, for people held out of all fits?

    They are the judges of VOICES, people at their own microphones, and the held-out speakers of
    NONNATIVE. --starts is the number of streams per person. With FRAMES and MICROPHONES (as for
    `recipes.reference`) held-out readers are measured too, with rank models fitted without them.
    """
    shipped = Population.reference()
    populations, streams = prepare_microphones(voices, shipped, starts, jobs)
    more = prepare_nonnative(speech, nonnative, shipped, starts, jobs)
    groups = [(populations, streams), more]
    if frames is not None and microphones is not None:
        groups.append(prepare_readers(speech, nonnative, shipped, frames, microphones, starts))
    streams = [stream for _, some in groups for stream in some]
    populations = {name: each for some, _ in groups for name, each in some.items()}
    found = list(each_in_order(partial(measure_stream, populations), streams, jobs))
    bits, raised = (np.array([each[k] for each in found]) for k in (0, 1))
    title = np.array([stream.condition for stream in streams])
    _, speaker = np.unique([stream.speaker for stream in streams], return_inverse=True)
    recorded = np.isin(title, [OWN, f"{FOREIGN}, clean", f"{READERS}, clean"])
    page.table(
        "speech | usual bits | 9 of 10 voices | below zero | people, streams",
        ([f"{t:g} s", *create_cells(bits[recorded, k], speaker[recorded])]
         for k, t in enumerate(SHOWN_SECONDS)),
    )  # fmt: skip
    page.table(
        "people, condition | speech | usual bits | 9 of 10 voices | below zero | people, streams",
        ([name, f"{t:g} s", *create_cells(bits[title == name, k], speaker[title == name])]
         for name in populations for k, t in enumerate(SHOWN_SECONDS)),
        keys=2,
    )  # fmt: skip
    long = recorded & ~np.isnan(bits[:, -1])
    page.table(
        f"alert | raised within {SHOWN_SECONDS[-1]:g} s | speech by then, median",
        create_alert_rows(raised[long], equal_speaker_weights(speaker[long])[None]),
    )
    for k, t in enumerate(SHOWN_SECONDS):
        is_known = recorded & ~np.isnan(bits[:, k])
        middle, low, high = compute_quantiles(bits[is_known, k], speaker[is_known])
        page.note(f"    TypicalBits({t:g}, {middle:.1f}, {low:.1f}, {high:.1f}),")


def prepare_microphones(
    voices: Path, shipped: Population, starts: int, jobs: int
) -> tuple[Populations, list[Stream]]:
    """Return the judges at their own microphones; streams and templates differ in session."""
    judges = [each for each in people(voices) if each.role == "judge" and len(each.clips) > 1]
    population = enrol_own_microphones(judges, shipped, jobs)
    return {OWN: population}, list(read_people_streams(judges, population, starts))


def prepare_nonnative(
    speech: Path, nonnative: Path, shipped: Population, starts: int, jobs: int
) -> tuple[Populations, list[Stream]]:
    """Return held-out non-native speakers, enrolled from the first part of their only recording."""
    held_out = [each for each in recordings(speech, nonnative) if each.role == "held out"]
    sounds = [(each.speaker, read(each.path)) for each in held_out]
    first = round(_ENROLLED_AUDIO * RATE)
    population = enrol_people(shipped, ((name, sound[:first]) for name, sound in sounds), jobs)
    changes, streams = conditions(speech), list[Stream]()
    for name, whole in sounds:
        sound = whole[first:]
        start_seconds = [0.0, *find_starts(sound, SHORT_AUDIO)]
        for number, index in enumerate(spread_indices(len(start_seconds), starts)):
            audio, most = choose_seconds(number)
            begin = round(start_seconds[index] * RATE)
            piece = sound[begin : begin + round(audio * RATE)]
            for condition in CONDITIONS:
                degraded = np.asarray(changes[condition](piece, number), np.float32)
                title = f"{FOREIGN}, {condition}"
                streams.append(Stream(title, name, "", start_seconds[index], most, degraded))
    return {f"{FOREIGN}, {each}": population for each in CONDITIONS}, streams


def prepare_readers(
    speech: Path, nonnative: Path, shipped: Population, frames: Path, microphones: Path, starts: int
) -> tuple[Populations, list[Stream]]:
    """Return held-out readers, with rank models fitted without them."""
    trained = trainers(speech)
    judges = {each.speaker for each in recordings(speech, nonnative) if each.role == "report"} - {
        name for names in trained.values() for name in names
    }
    fitted = shipped.with_rank_models(fit_without(judges, shipped, trained, frames, microphones))
    streams = [
        stream._replace(condition=f"{READERS}, {stream.condition}")
        for stream in read_reader_streams(speech, shipped, judges, CONDITIONS, starts)
    ]
    return {f"{READERS}, {each}": fitted for each in CONDITIONS}, streams


def fit_without(
    judges: Collection[str], shipped: Population, trained: dict[str, set[str]], frames: Path,
    microphones: Path,
) -> RankModels:  # fmt: skip
    """Fit rank models like the shipped ones (`recipes.reference`), without the judges."""
    voices, specs = collect_readers(frames, FEATURES)
    other_voices, _, _ = collect(find(microphones), features=FEATURES)
    cohort, _ = cohort_of(find(frames / BACKGROUND), features=FEATURES)
    settings = CalibrationSettings(
        lengths=LENGTHS,
        template_lengths=sorted({*TEMPLATE_LENGTHS, shipped.scoring().seconds}),
        sets=[*((name,) for name in FEATURES), FEATURES],
        trained=trained,
        other_voices=other_voices,
        prior=None,
        cohort=cohort,
    )
    known = [voice for voice in voices if voice.name not in judges]
    models = []
    for model in calibrate(known, specs, settings).rank_models:
        same = shipped.rank_models.find(model.features, model.session)
        if same is not None and same.evidence is not None and model.evidence is not None:
            evidence = replace(model.evidence, conditions=same.evidence.conditions)
            models.append(replace(model, evidence=evidence))
    return RankModels(models)


def measure_stream(
    populations: Mapping[str, Population], stream: Stream
) -> tuple[FloatArray, FloatArray]:
    """Return the evidence at SHOWN_SECONDS, NaN after the end, and the speech until each alert."""
    monitor = Monitor(
        populations[stream.condition], watch=stream.speaker, step_seconds=STEP_SECONDS
    )
    rules = [Threshold("bits", threshold) for threshold in THRESHOLDS]
    bits, raised = np.full(len(SHOWN_SECONDS), np.nan), np.full(len(rules), np.inf)
    for reading in monitor.stream(stream.sound, rate=RATE):
        for index, rule in enumerate(rules):
            speech = [alert.speech for alert in rule.update(reading) if alert.speech is not None]
            raised[index] = min([raised[index], *speech])
        for index, seconds in enumerate(SHOWN_SECONDS):
            if np.isnan(bits[index]) and reading.speech >= seconds and seconds <= stream.speech:
                bits[index] = np.nan if reading.evidence_bits is None else reading.evidence_bits
        if reading.speech >= stream.speech:
            break
    return bits, raised


def compute_quantiles(bits: FloatArray, speaker: IntArray) -> list[float]:
    """Return the median and the percentiles 5 and 95, with equal weight per person."""
    weights = equal_speaker_weights(speaker)[None]
    return [weighted_quantile(bits, weights, q).item() for q in (0.5, 0.05, 0.95)]


def create_cells(bits: FloatArray, speaker: IntArray) -> list[str]:
    """Return the cells of streams at one length."""
    is_known = ~np.isnan(bits)
    bits, speaker = bits[is_known], speaker[is_known]
    if not bits.size:
        return ["", "", "", "0, 0"]
    middle, low, high = compute_quantiles(bits, speaker)
    below = np.average((bits < 0).astype(float), weights=equal_speaker_weights(speaker))
    counts = f"{np.unique(speaker).size}, {bits.size}"
    return [f"{middle:.1f}", f"{low:.1f} to {high:.1f}", f"{100 * below:.0f} %", counts]


def create_alert_rows(raised: FloatArray, weights: FloatArray) -> Iterator[list[str]]:
    """Yield, per alert, the fraction of streams that raise it, and the median speech until then."""
    for threshold, speech in zip(THRESHOLDS, raised.T, strict=True):
        share = weights[0] @ (speech <= SHOWN_SECONDS[-1]) / weights.sum()
        middle = weighted_quantile(speech, weights, 0.5).item()
        after = (
            f"{middle:.0f} s" if middle <= SHOWN_SECONDS[-1] else f"over {SHOWN_SECONDS[-1]:g} s"
        )
        yield [f"bits>{threshold:g}", f"{100 * share:.0f} %", after]
