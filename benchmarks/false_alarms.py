"""Rate of false alarms over whole streams, on held-out speakers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from pathlib import Path

import numpy as np

from benchmarks.page import Page, benchmark
from benchmarks.readers import BACKGROUND, create_corpus, trainers
from monitor import Monitor, Population
from monitor.alerts.figures import figure
from monitor.errors import UsageError
from monitor.features.framing import join_tracks
from monitor.jobs import cores, each_in_order
from monitor.maths.statistics import clopper_pearson
from monitor.sources.frames import FramesFile
from monitor.training.calibrating import CalibrationSettings, calibrate
from monitor.training.enrolling import enrol
from monitor.training.stream_maxima import stream_of, with_maxima
from monitor.training.voices import SpeakerSpeech, cohort_of, collect
from monitor.types import FloatArray, Frames
from recipes.reference import TEMPLATE_SPEECH_SECONDS, enrolment_chapter

LENGTHS = (1.0, 3.0, 10.0, 30.0, 60.0, 120.0, 300.0)
HORIZONS = (60.0, 300.0, 600.0)
RULES = {
    "bits": ("5 %", "10 %", "20 %", "> 3", "> 6"),
    "closed_set_bits": ("5 %", "10 %", "20 %", "> 2", "> 4"),
}
"""False-alarm rates and fixed thresholds, by field of a reading."""
WATCHED = 4
"""Number of enrolled people who are watched in each impostor's stream."""


@dataclass
class AlarmResults:
    """Crossings by impostors, and times until true speakers cross.

    Attributes:
        crossed: by field, rule and horizon, one list per impostor of a flag per watched speaker.
        times: by field and rule, seconds until each true speaker crosses; infinity if never.
    """

    crossed: dict[tuple[str, str, float], list[list[bool]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    times: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, other: AlarmResults) -> None:
        """Add the results of another fold of readers."""
        for key, flags in other.crossed.items():
            self.crossed[key] += flags
        for rule, seconds in other.times.items():
            self.times[rule] += seconds


@benchmark()
def false_alarms(
    page: Page, frames: Path,
    *, features: tuple[str, ...] = ("f0", "voice"), folds: int = 5, long: Path | None = None,
    impostors: Path | None = None, jobs: int = cores(),
) -> None:  # fmt: skip
    """How often are alerts false over whole streams, on held-out speakers?

    --long FRAMES provides longer streams of readers as impostors. --impostors FOLDER also tests
    the thresholds on another corpus.
    """
    population, voices = load_population(frames, features)
    trained = trainers(frames)
    judged = [v for v in voices if not any(v.name in trained.get(f, ()) for f in features)]
    held_out_sets = [{v.name for v in judged[i::folds]} for i in range(folds)]
    others = [frames for _, frames in load_streams(impostors, features)]
    work = partial(
        evaluate_fold,
        population,
        voices,
        trained,
        features,
        dict(load_streams(long, features)),
        others,
    )
    reader_results, foreign_results = AlarmResults(), AlarmResults()
    for reader_fold, foreign_fold in each_in_order(work, held_out_sets, jobs):
        reader_results.add(reader_fold)
        foreign_results.add(foreign_fold)
    for who, results, times in (
        ("readers", reader_results, 1),
        ("the other corpus", foreign_results, folds),
    ):
        if results.crossed:
            horizons = " | ".join(f"{h / 60:g} min" for h in HORIZONS)
            page.table(
                f"streams of | field | rule | {horizons}",
                create_rate_rows(who, results, times),
                keys=3,
            )
    page.table(
        "field | rule | alerted | seconds, median | 90 %", create_delay_rows(reader_results), keys=2
    )


def create_rate_rows(who: str, results: AlarmResults, times: int) -> Iterator[list[str]]:
    """Yield rows with the mean rate of alarms, and an interval that counts each impostor once."""
    for each, rules in RULES.items():
        for rule in rules:
            cells = [who, each, rule]
            for horizon in HORIZONS:
                flags = results.crossed.get((each, rule, horizon))
                if not flags:
                    cells.append("-")
                    continue
                share, impostors = float(np.mean([np.mean(x) for x in flags])), len(flags) // times
                low, high = clopper_pearson(round(share * impostors), impostors)
                limits = f"({100 * low:.0f} to {100 * high:.0f})"
                cells.append(f"{100 * share:.1f} % {limits}, {impostors} impostors")
            yield cells


def create_delay_rows(results: AlarmResults) -> Iterator[list[str]]:
    """Yield rows with quantiles of the times of true speakers; infinite quantiles are "never"."""
    for (each, rule), seconds in results.times.items():
        late = np.quantile(seconds, (0.5, 0.9), method="inverted_cdf").tolist()
        quantiles = ["never" if np.isinf(value) else f"{value:.0f}" for value in late]
        yield [each, rule, f"{sum(np.isfinite(seconds))} of {len(seconds)}", *quantiles]


def load_population(
    frames: Path, features: Sequence[str]
) -> tuple[Population, list[SpeakerSpeech]]:
    """Return a population of all readers, one chapter each, with a cohort, and all their speech."""
    rows = [
        {"path": str(path), "speaker": path.parent.name, "chapter": path.stem,
         "seconds": str(FramesFile(path).seconds)}
        for path in sorted(frames.glob("*/*/*.npz"))
        if path.relative_to(frames).parts[0] != BACKGROUND
    ]  # fmt: skip
    readers = sorted({row["speaker"] for row in rows}, key=int)
    chosen = [enrolment_chapter([r for r in rows if r["speaker"] == name]) for name in readers]
    enrolled, all_sessions = (
        create_corpus((Path(r["path"]), r["speaker"], r["chapter"]) for r in some)
        for some in (chosen, rows)
    )
    population = enrol(enrolled, features=features, seconds=TEMPLATE_SPEECH_SECONDS).population
    voices, _, _ = collect(all_sessions, features=features)
    background = sorted((frames / BACKGROUND).glob("*/*.npz"))
    others = create_corpus((path, path.parent.name, path.stem) for path in background)
    cohort, _ = cohort_of(others, features=features)
    population = Population(
        population.speakers, population.offsets, population.features, cohort=cohort
    )
    first = {row["speaker"]: row["chapter"] for row in chosen}
    return population, [_enrolled_first(voice, first[voice.name]) for voice in voices]


def _enrolled_first(voice: SpeakerSpeech, chapter: str) -> SpeakerSpeech:
    """Reorder sessions: the enrolled session first."""
    order = sorted(range(len(voice.sessions)), key=lambda i: voice.session_names[i] != chapter)
    sessions, speech = (voice.sessions[i] for i in order), (voice.speech[i] for i in order)
    return SpeakerSpeech(voice.name, tuple(sessions), tuple(speech))


def load_streams(folder: Path | None, features: Sequence[str]) -> Iterator[tuple[str, Frames]]:
    """Yield each file's speaker and stream; a file in a subfolder has the subfolder's speaker."""
    for path in [] if folder is None else sorted(folder.glob("**/*.npz")):
        runs = list(FramesFile(path))
        track = {
            name: reduce(join_tracks, [run.tracks[name] for run in runs if name in run.tracks])
            for name in features
        }
        name = path.stem if path.parent == folder else path.parent.name
        yield name, Frames(np.concatenate([run.speech for run in runs]), track)


def evaluate_fold(
    population: Population, voices: Sequence[SpeakerSpeech], trained: dict[str, set[str]],
    features: tuple[str, ...], longer: dict[str, Frames], impostors: Sequence[Frames],
    held_out: set[str],
) -> tuple[AlarmResults, AlarmResults]:  # fmt: skip
    """Calibrate without the readers ``out``, and test on their streams and the impostors'."""
    known = [voice for voice in voices if voice.name not in held_out]
    settings = CalibrationSettings(
        lengths=LENGTHS, template_lengths=[population.scoring().seconds], replicates=20,
        sets=sorted({(name,) for name in features} | {features}), trained=trained, prior=None,
        cohort=population.cohort,
    )  # fmt: skip
    remaining = reduce(Population.without, held_out, population)
    enrolled = with_maxima(
        remaining.calibrated(calibrate(known, population.specs, settings)),
        known,
        trained=trained,
        is_measured=lambda m: m.session == "cross" and set(m.features) == set(features),
    )
    generator, own, others = np.random.default_rng(len(held_out)), AlarmResults(), AlarmResults()

    def add_impostor(results: AlarmResults, stream: Frames, watched: int) -> None:
        """Add an impostor's stream, in which some of the enrolled people are watched."""
        flags: dict[tuple[str, str, float], list[bool]] = defaultdict(list)
        for name in generator.permutation(enrolled.names)[:watched].tolist():
            monitor = Monitor(enrolled, features, name)
            table = measure_readings(monitor, stream)
            for horizon in (h for h in HORIZONS if stream.speech.size >= 100 * h):
                maxima = np.nanmax(table[table[:, 0] <= horizon, 1:], axis=0)
                for f, each in enumerate(RULES):
                    for rule, bits in find_thresholds(monitor, each, horizon):
                        flags[each, rule, horizon].append(bool(maxima[f] > bits))
        for key, of_impostor in flags.items():
            results.crossed[key].append(of_impostor)

    for voice in (voice for voice in voices if voice.name in held_out):
        stream = stream_of(voice, features, max(HORIZONS))
        if voice.name in longer and longer[voice.name].speech.size > stream.speech.size:
            stream = longer[voice.name]
        add_impostor(own, stream, WATCHED)
        if len(voice.sessions) > 1:  # time until the true speaker exceeds each rule
            rest = SpeakerSpeech(voice.name, voice.sessions[1:], voice.speech[1:])
            with_speaker = reduce(Population.without, held_out - {voice.name}, population)
            people = with_speaker.with_rank_models(enrolled.rank_models)
            monitor = Monitor(people, features, voice.name)
            table = measure_readings(monitor, stream_of(rest, features, max(HORIZONS)))
            for f, each in enumerate(RULES):
                for rule, bits in find_thresholds(monitor, each, 300.0):
                    over = table[table[:, 1 + f] > bits, 0]
                    own.times[each, rule].append(float(over[0]) if over.size else np.inf)
    for stream in impostors:
        add_impostor(others, stream, 1)
    return own, others


def find_thresholds(monitor: Monitor, each: str, horizon: float) -> Iterator[tuple[str, float]]:
    """Yield each rule's threshold in bits; omit rules that need more calibration speakers."""
    for rule in RULES[each]:
        number = float(rule.strip("> %"))
        if rule.startswith(">"):
            yield rule, number
            continue
        try:
            yield rule, monitor.false_alarms(each, number / 100, horizon).bits
        except UsageError:
            continue


def measure_readings(monitor: Monitor, stream: Frames) -> FloatArray:
    """Return the seconds and fields of each reading, shape (R, 1 + fields)."""
    readings = monitor.push(stream)
    rows = [[r.seconds, *(figure(field, r) for field in RULES)] for r in readings]
    return np.array(rows, dtype=np.float64)
