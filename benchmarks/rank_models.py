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
from monitor.training import calibrating, session_checks
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
        settings = CalibrationSettings(
            lengths=lengths, template_lengths=(template,), trained=trained, prior=None
        )
        rows = list(calibrate(voices, specs, settings).rows)
    row_by_key = {
        (row["session"], row["feature"], row["T"]): row
        for row in rows
        if row["D"] == template and row["T"] in lengths
    }
    heads = f"session | features | {' | '.join(f'{t:g} s' for t in lengths)}"
    for title, key in TABLES.items():
        table: dict[tuple[str, str], list[str]] = {}
        for session, feature, _ in sorted(row_by_key):
            cells = [row_by_key.get((session, feature, t), {}).get(key) for t in lengths]
            formatted = ["" if value is None else f"{value:.2f}" for value in cells]
            table[session, feature] = [session, feature, *formatted]
        page.table(heads, table.values(), keys=2, under=title)
    for each in {
        f"{session}, {t:g} s: {row['speakers']} readers tested, N = {row['candidates']} ({feature})"
        for (session, feature, t), row in sorted(row_by_key.items())
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
FITTED_LENGTHS = (5.0, 10.0, 30.0, 60.0, 100.0)
F0 = {"f0": FeatureSpec("f0", HISTOGRAM, SIZE, 0.01)}
TEST, TEMPLATE, DRAWS = 10.0, 30.0, 100
LEAST_SECONDS = 51.0
"""Minimum speech seconds of a non-native speaker: a template of 30 s and a test of 20 s."""
Voices = Sequence[SpeakerSpeech]


def fit_rank_models(voices: Voices, prior: Population | None) -> RankModels:
    settings = CalibrationSettings(
        lengths=(TEST,), template_lengths=(TEMPLATE,), replicates=DRAWS, prior=prior
    )
    return calibrate(voices, F0, settings).rank_models


def create_prior(voices: Voices) -> Population:
    """Return a population without speakers whose rank models are calibrated on these voices."""
    calibrating.FEWEST_SPEAKERS = 2  # allows a prior from very few speakers, as a hard test
    rank_models = fit_rank_models(voices, None)
    calibrating.FEWEST_SPEAKERS = 10
    no_templates = FeatureTemplates(F0["f0"], np.zeros((0, SIZE), np.int64))
    return Population((), np.zeros(1, np.int64), {"f0": no_templates}, rank_models)


def measure_claim(rank_models: RankModels, session: str, cell: Cell) -> tuple[float, float, bool]:
    """Return the claimed and the true bits of test speakers, and whether the claim is too high.

    The claim is too high if its mean excess is above the sum of two margins: the lower half of the
    rank model's interval, and two standard errors of the excess over test speakers.
    """
    model = rank_models.find(("f0",), session)
    assert model is not None
    point = at_template(model, TEMPLATE, np.array([True])).evaluate_at(TEST)
    trials, count = Trials(cell.gaps, cell.gap_speaker), len(cell.gaps)

    def posterior(draw: int) -> FloatArray:
        weights, floor = point.weights[draw], point.uniform_share[draw]
        return trials.posterior(np.tile(weights, (count, 1)), np.full(count, floor))

    gains = np.array([confidence_bits(posterior(b)).mean() for b in range(1 + DRAWS)])
    probability = posterior(0)
    true = local_bits(probability[np.arange(count), cell.true_index], cell.candidates)
    excess_bits = confidence_bits(probability) - true
    excess = [excess_bits[cell.gap_speaker == each].mean() for each in np.unique(cell.gap_speaker)]
    error = np.std(excess, ddof=1) / np.sqrt(len(excess)) if len(excess) > 1 else np.inf
    margin = gains[0] - limits(gains[1:])[0] + 2.0 * error
    return gains[0], true.mean(), bool(np.mean(excess) > margin)


def simulate_speakers(speakers: int) -> list[SpeakerSpeech]:
    with tempfile.TemporaryDirectory() as folder:
        write_corpus(Path(folder) / "c", Simulation(speakers), speakers, 2, 120.0)
        return collect(find(Path(folder) / "c"))[0]


def read_nonnative_speakers(folder: Path) -> list[SpeakerSpeech]:
    """Return the speakers of speechocean762 with enough speech, one session each."""
    with tempfile.TemporaryDirectory() as frames_folder:
        files = []
        for row in csv.DictReader((folder / "manifest.csv").open(encoding="utf-8")):
            options = ExtractionOptions(("f0",), MOST_SECONDS)
            frames = extract_features(folder / row["path"], make(["f0"]), options)
            path = Path(frames_folder) / f"{row['speaker']}.npz"
            write_frames(path, frames.speech, frames.tracks, {"f0": SIZE}, {"f0": 0.01})
            files.append((path, row["speaker"], "1"))
        voices, _, _ = collect(create_corpus(files))
    return [voice for voice in voices if voice.length(0) >= LEAST_SECONDS * UNITS_PER_SECOND]


@benchmark()
def prior(page: Page, frames: Path, nonnative: Path, *, repeats: int = 20) -> None:
    """Does a rank model of few speakers claim too many bits, before and after the prior?

    FRAMES contains the pitch of LibriSpeech.
    """
    shipped, readers = Population.reference(), collect_readers(frames)[0]
    pools: dict[str, Voices] = {
        "nonnative": read_nonnative_speakers(nonnative),
        "simulated": simulate_speakers(600),
        "LibriSpeech": [voice for voice in readers if len(voice.sessions) > 1],
    }

    def draw_case(name: str, size: int, seed: int) -> tuple[Population, Voices, Voices]:
        """Return the prior's population, the calibration speakers and the test speakers.

        The prior may share with the test speakers only readers of one session, who are candidates
        without tests of their own.
        """
        pool = pools[name]
        mixed = [pool[i] for i in np.random.default_rng(seed).permutation(len(pool))]
        if name == "nonnative":
            return shipped, mixed[100 : 100 + size], mixed[:100]
        if name == "simulated":
            return create_prior(mixed[:50]), mixed[150 : 150 + size], mixed[50:150]
        single = [voice for voice in readers if len(voice.sessions) == 1]
        judges = 5 if size == 10 else 2
        before = create_prior([*single, *mixed[judges + size :]])
        return before, mixed[judges : judges + size], [*single, *mixed[:judges]]

    def rows() -> Iterator[list[str]]:
        similarities = {"f0": HISTOGRAM.similarity("log-likelihood")}
        for name, session, sizes in CASES:
            for size in sizes:
                claims_by_prior: tuple[list[tuple[float, float, bool]], ...] = ([], [])
                for repeat in range(repeats):
                    population, own, judges = draw_case(name, size, repeat)
                    plan = find_plan(judges, TEST, TEMPLATE, 10, session)
                    cell = plan.run(similarities, *count_units(TEST, TEMPLATE))
                    for claims, before in zip(claims_by_prior, (None, population), strict=True):
                        claims.append(measure_claim(fit_rank_models(own, before), session, cell))
                cells = [f"{name}, {session} session", str(size)]
                for claims in claims_by_prior:
                    claim, truth, beyond = np.array(claims).T
                    cells += [f"{each:.2f}" for each in (claim.mean(), truth.mean())]
                    cells += [f"{(claim - truth).max():.2f}", f"{100 * beyond.mean():.0f} %"]
                yield cells

    headings = ("claims", "knows", "worst excess", "beyond interval")
    both = [f"{when}: {each}" for when in ("before", "after") for each in headings]
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
    threshold = session_checks.UNLIKE_BITS
    session_checks.UNLIKE_BITS = np.inf  # reports the bits of every pair
    read: dict[tuple[float, str], dict[tuple[str, str], list[float]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for _ in range(splits):
        fitted, tested = split_voices(voices, generator)
        settings = CalibrationSettings(
            lengths=(10.0, 30.0, 60.0), template_lengths=FITTED_LENGTHS, replicates=20, trials=10,
            prior=None,
        )  # fmt: skip
        calibration = calibrate(fitted, specs, settings)
        known = _create_population(fitted, specs, round(60.0 / SLICE_SECONDS)).calibrated(
            calibration
        )
        for seconds in (30.0, 60.0):
            slices = round(seconds / SLICE_SECONDS)
            long = [
                (voice.name, session)
                for voice in tested
                for i, session in enumerate(voice.sessions)
                if voice.length(i) >= slices * _SLICE
            ]
            for (name, first), (other, second) in combinations(long, 2):
                sexes = "one sex" if gender[name] == gender[other] else "two sexes"
                kind = "one person" if name == other else sexes
                both = _create_speaker([first, second], specs, slices)
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


def _create_speaker(
    sessions: Sequence[dict[str, SessionFrames]], specs: Mapping[str, FeatureSpec], slices: int,
    name: str = "x",
) -> Population:  # fmt: skip
    """Return a population of one speaker, with this many slices of each session."""
    features = {}
    for each, spec in specs.items():
        rows = [s[each].total(i * _SLICE, _SLICE) for s, i in product(sessions, range(slices))]
        features[each] = FeatureTemplates(spec, np.stack(rows))
    return Population([Speaker(name)], np.array([0, len(sessions) * slices]), features)


def _create_population(voices: Voices, specs: Mapping[str, FeatureSpec], slices: int) -> Population:
    """Return a population of all voices whose longest session has enough slices."""
    populations: list[Population] = []
    for voice in voices:
        longest = max(range(len(voice.sessions)), key=voice.length)
        if voice.length(longest) >= slices * _SLICE:
            one = _create_speaker([voice.sessions[longest]], specs, slices, voice.name)
            populations = [populations[0].joined(one)] if populations else [one]
    return populations[0]
