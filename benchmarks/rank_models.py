"""Disclosure by each feature according to rank models, and rank models on held-out speakers."""

from __future__ import annotations

import csv
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from pathlib import Path

import numpy as np

from benchmarks.page import Page, benchmark
from benchmarks.readers import collect_readers, count_units, create_corpus, find_plan, split_voices
from benchmarks.simulation import SIZE, Simulation, write_corpus
from monitor.corpus import find
from monitor.features.registry import make
from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.maths.posterior import confidence_bits, local_bits
from monitor.maths.posterior_fit import Trials
from monitor.maths.statistics import limits
from monitor.population.cohort import FeatureTemplates
from monitor.population.interpolation import at_template
from monitor.population.people import Speaker
from monitor.population.population import Population
from monitor.population.rank_model import RankModels
from monitor.population.templates import SLICE_SECONDS
from monitor.sources.frames import write_frames
from monitor.training import calibrating
from monitor.training import find_outlier_sessions as home
from monitor.training.calibrating import CalibrationSettings, calibrate
from monitor.training.frames_folder import ExtractionOptions, extract_features
from monitor.training.grid import Cell
from monitor.training.session_checks import find_outlier_sessions
from monitor.training.voices import UNITS_PER_SECOND, SessionFrames, SpeakerSpeech, collect
from monitor.types import FloatArray
from recipes.frames import CORPORA, MOST_SECONDS, chapters, trainers

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
    """How many bits does each feature disclose, and each set of features?

    Without FRAMES (`recipes.frames`) the shipped rank models are shown. With FRAMES new rank models
    are calibrated first. Readers who trained a feature's network do not test its rank models.
    With --alike the same readers test every set.
    """
    if frames is None:
        rows = [row for each in Population.reference().rank_models for row in each.rows]
    else:
        voices, specs = collect_readers(frames, features or None, corpora)
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
    """Write each feature's scores of real readers as matrices for `monitor evaluate`."""
    voices, specs = collect_readers(frames)
    measures = {name: spec.kind.similarity() for name, spec in specs.items()}
    plan = find_plan(voices, seconds, template, SHIFTS, "cross")
    trained = {name for feature in measures for name in trainers(frames).get(feature, ())}
    untrained = np.array([voice.name not in trained for voice in voices])
    cell = plan.run(measures, *count_units(seconds, template)).tested_on(untrained)
    scores.mkdir(parents=True, exist_ok=True)
    order = np.argsort(
        cell.true_index, kind="stable"
    )  # groups the trials of each reader and keeps their order
    np.save(scores / "labels.npy", cell.true_index[order])
    for index, name in enumerate(measures):
        found = cell.gaps[:, index] + cell.mated[:, index, None]
        np.save(scores / f"{name}.npy", found[order].astype(np.float32))
    page.note(f"{order.size} trials of {np.unique(cell.true_index).size} readers: {scores}")


# ------------------------------------------------------------------------------------ few speakers

CASES = (
    ("nonnative", "same", (10, 15, 19, 30)),
    ("LibriSpeech", "cross", (10, 15)),
    ("simulated", "cross", (10, 15, 19, 30)),
)
"""Speakers, kind of session, and numbers of calibration speakers."""
LEARNT = (5.0, 10.0, 30.0, 60.0, 100.0)
F0 = {"f0": FeatureSpec("f0", HISTOGRAM, SIZE, 0.01)}
TEST, TEMPLATE, DRAWS = 10.0, 30.0, 100
LEAST = 51.0
"""Minimum speech seconds of a non-native speaker: a template of 30 s and a test of 20 s."""
Voices = Sequence[SpeakerSpeech]


def learn(voices: Voices, prior: Population | None) -> RankModels:
    how = CalibrationSettings(
        lengths=(TEST,), template_lengths=(TEMPLATE,), replicates=DRAWS, prior=prior
    )
    return calibrate(voices, F0, how).rank_models


def others(voices: Voices) -> Population:
    """Return a population without speakers whose rank models are calibrated on these voices."""
    calibrating.FEWEST_SPEAKERS = 2  # allows a prior from very few speakers, as a hard test
    rank_models = learn(voices, None)
    calibrating.FEWEST_SPEAKERS = 10
    nobody = FeatureTemplates(F0["f0"], np.zeros((0, SIZE), np.int64))
    return Population((), np.zeros(1, np.int64), {"f0": nobody}, rank_models)


def judge(rank_models: RankModels, session: str, cell: Cell) -> tuple[float, float, bool]:
    """Return the claimed and the true bits of test speakers, and whether the claim is too high.

    The claim is too high if its mean excess is above the sum of two margins: the lower half of the
    rank model's interval, and two standard errors of the excess over test speakers.
    """
    model = rank_models.find(("f0",), session)
    assert model is not None
    point = at_template(model, TEMPLATE, np.array([True])).evaluate_at(TEST)
    seen, count = Trials(cell.gaps, cell.gap_speaker), len(cell.gaps)

    def posterior(draw: int) -> FloatArray:
        weights, floor = point.weights[draw], point.uniform_share[draw]
        return seen.posterior(np.tile(weights, (count, 1)), np.full(count, floor))

    gains = np.array([confidence_bits(posterior(b)).mean() for b in range(1 + DRAWS)])
    probability = posterior(0)
    true = local_bits(probability[np.arange(count), cell.true_index], cell.candidates)
    apart = confidence_bits(probability) - true
    excess = [apart[cell.gap_speaker == each].mean() for each in np.unique(cell.gap_speaker)]
    error = np.std(excess, ddof=1) / np.sqrt(len(excess)) if len(excess) > 1 else np.inf
    slack = gains[0] - limits(gains[1:])[0] + 2.0 * error
    return gains[0], true.mean(), bool(np.mean(excess) > slack)


def simulated(speakers: int) -> list[SpeakerSpeech]:
    with tempfile.TemporaryDirectory() as folder:
        write_corpus(Path(folder) / "c", Simulation(speakers), speakers, 2, 120.0)
        return collect(find(Path(folder) / "c"))[0]


def nonnative_speakers(folder: Path) -> list[SpeakerSpeech]:
    """Return the speakers of speechocean762 with enough speech, one session each."""
    with tempfile.TemporaryDirectory() as place:
        files = []
        for row in csv.DictReader((folder / "manifest.csv").open(encoding="utf-8")):
            how = ExtractionOptions(("f0",), MOST_SECONDS)
            frames = extract_features(folder / row["path"], make(["f0"]), how)
            path = Path(place) / f"{row['speaker']}.npz"
            write_frames(path, frames.speech, frames.tracks, {"f0": SIZE}, {"f0": 0.01})
            files.append((path, row["speaker"], "1"))
        voices, _, _ = collect(create_corpus(files))
    return [voice for voice in voices if voice.length(0) >= LEAST * UNITS_PER_SECOND]


@benchmark()
def prior(page: Page, frames: Path, nonnative: Path, *, repeats: int = 20) -> None:
    """Does a rank model of few speakers claim too many bits, before and after the prior?

    FRAMES contains the pitch of LibriSpeech.
    """
    shipped, readers = Population.reference(), collect_readers(frames)[0]
    pools: dict[str, Voices] = {
        "nonnative": nonnative_speakers(nonnative),
        "simulated": simulated(600),
        "LibriSpeech": [voice for voice in readers if len(voice.sessions) > 1],
    }

    def case(name: str, size: int, seed: int) -> tuple[Population, Voices, Voices]:
        """Return the prior's population, the calibration speakers and the test speakers.

        The prior may share with the test speakers only readers of one session, who are candidates
        without tests of their own.
        """
        pool = pools[name]
        mixed = [pool[i] for i in np.random.default_rng(seed).permutation(len(pool))]
        if name == "nonnative":
            return shipped, mixed[100 : 100 + size], mixed[:100]
        if name == "simulated":
            return others(mixed[:50]), mixed[150 : 150 + size], mixed[50:150]
        single = [voice for voice in readers if len(voice.sessions) == 1]
        judges = 5 if size == 10 else 2
        before = others([*single, *mixed[judges + size :]])
        return before, mixed[judges : judges + size], [*single, *mixed[:judges]]

    def rows() -> Iterator[list[str]]:
        measure = {"f0": HISTOGRAM.similarity("log-likelihood")}
        for name, session, sizes in CASES:
            for size in sizes:
                found: tuple[list[tuple[float, float, bool]], ...] = ([], [])
                for repeat in range(repeats):
                    population, own, judges = case(name, size, repeat)
                    plan = find_plan(judges, TEST, TEMPLATE, 10, session)
                    cell = plan.run(measure, *count_units(TEST, TEMPLATE))
                    for told, before in zip(found, (None, population), strict=True):
                        told.append(judge(learn(own, before), session, cell))
                cells = [f"{name}, {session} session", str(size)]
                for told in found:
                    claim, truth, beyond = np.array(told).T
                    cells += [f"{each:.2f}" for each in (claim.mean(), truth.mean())]
                    cells += [f"{(claim - truth).max():.2f}", f"{100 * beyond.mean():.0f} %"]
                yield cells

    told = ("claims", "knows", "worst excess", "beyond interval")
    both = [f"{when}: {each}" for when in ("before", "after") for each in told]
    page.table(f"speakers | S | {' | '.join(both)}", rows(), keys=2)


# ----------------------------------------------------------------------------------------- sessions

_SLICE = round(SLICE_SECONDS * UNITS_PER_SECOND)


@benchmark()
def sessions(
    page: Page, speech: Path, frames: Path,
    *, splits: int = 10, features: tuple[str, ...] = ("f0", "voice"),
) -> None:  # fmt: skip
    """How often are two sessions of one person, and of two people, reported as two people?"""
    gender = {row["speaker"]: row["gender"] for row in chapters(speech)}
    voices, specs = collect_readers(frames, features)
    generator = np.random.default_rng(0)
    threshold = home.UNLIKE_BITS
    home.UNLIKE_BITS = np.inf  # reports the bits of every pair
    read: dict[tuple[float, str], dict[tuple[str, str], list[float]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for _ in range(splits):
        ours, theirs = split_voices(voices, generator)
        how = CalibrationSettings(
            lengths=(10.0, 30.0, 60.0), template_lengths=LEARNT, replicates=20, trials=10,
            prior=None,
        )  # fmt: skip
        made = calibrate(ours, specs, how)
        known = _population(ours, specs, round(60.0 / SLICE_SECONDS)).calibrated(made)
        for seconds in (30.0, 60.0):
            slices = round(seconds / SLICE_SECONDS)
            long = [
                (voice.name, session)
                for voice in theirs
                for i, session in enumerate(voice.sessions)
                if voice.length(i) >= slices * _SLICE
            ]
            for (name, first), (other, second) in combinations(long, 2):
                sexes = "one sex" if gender[name] == gender[other] else "two sexes"
                kind = "one person" if name == other else sexes
                both = _joined([first, second], specs, slices)
                parts = {"x": (("1", slices), ("2", slices))}
                bits = find_outlier_sessions(both, parts, known)[0].bits
                read[seconds, kind][name, other].append(bits)

    def rows() -> Iterator[list[str]]:
        kinds = ("one person", "one sex", "two sexes")
        for seconds in (30.0, 60.0):
            found = [read[seconds, kind] for kind in kinds]
            shares = [
                np.mean([np.mean(np.array(bits) < threshold) for bits in pairs.values()])
                for pairs in found
            ]
            counts = ", ".join(
                f"{len(pairs)} of {k}" for k, pairs in zip(kinds, found, strict=True)
            )
            page.note(f"pairs of people with {seconds:g} s: {counts}")
            yield [f"{', '.join(features)}; {seconds:g} s", *(f"{100 * x:.1f} %" for x in shares)]

    page.table("features, speech of each session | one person | two of one sex | of two sexes",
               rows())  # fmt: skip


def _joined(
    sessions: Sequence[dict[str, SessionFrames]], specs: Mapping[str, FeatureSpec], slices: int,
    name: str = "x",
) -> Population:  # fmt: skip
    """Return a population of one speaker, with this many slices of each session."""
    features = {}
    for each, spec in specs.items():
        rows = [s[each].total(i * _SLICE, _SLICE) for s, i in product(sessions, range(slices))]
        features[each] = FeatureTemplates(spec, np.stack(rows))
    return Population([Speaker(name)], np.array([0, len(sessions) * slices]), features)


def _population(voices: Voices, specs: Mapping[str, FeatureSpec], slices: int) -> Population:
    """Return a population of all voices whose longest session has enough slices."""
    made: list[Population] = []
    for voice in voices:
        longest = max(range(len(voice.sessions)), key=voice.length)
        if voice.length(longest) >= slices * _SLICE:
            one = _joined([voice.sessions[longest]], specs, slices, voice.name)
            made = [made[0].joined(one)] if made else [one]
    return made[0]
