"""Build the population that ships with the package from real readers.

    python -m recipes.reference ../shared/speech FRAMES VOICES MICROPHONES WORLD
    python -m recipes.reference ../shared/speech         # only its landmarks
    python -m recipes.reference ../shared/speech --demo  # only the frames of the demo
    python -m recipes.reference ../shared/speech --usual # only the usual range
    python -m recipes.reference ../shared/speech FRAMES VOICES MICROPHONES WORLD --effects

This writes population.npz (templates, rank models and a cohort) and demo.npz (frames of the demo)
to monitor/population/reference/. Neither contains audio.

`recipes.frames` first extracts the frames that FRAMES lacks (readers), MICROPHONES lacks (people at
their own microphones) and WORLD lacks (both under conditions). FRAMES and MICROPHONES take a
quarter of an hour each. Every reader of the three LibriSpeech sets is enrolled from one chapter. If
a reader has several, calibration takes test and template from different chapters. People at their
own microphones calibrate likelihood ratios, and only sums over all of them are stored. Speakers who
trained the network of a feature provide no tests to its rank models. The cohort is the readers of
the background set, who trained the network of ``voice``. Finally, each reader is scored as a stream
of another person: false alarms are estimated from the highest bits of these streams.

``--conditions`` only measures the conditions of the enrolled speech and adds them to the existing
population. ``--effects`` adds the effects of conditions on likelihood ratios, and ``--usual`` the
range that `monitor.how_much` states.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np

from monitor.corpus import find
from monitor.features.channel import CONDITION
from monitor.features.extractor import Extractor
from monitor.features.registry import make
from monitor.how_much import USUAL
from monitor.jobs import cores
from monitor.maths.condition import ROW, condition_of
from monitor.population import demo_frames
from monitor.population.cohort import FeatureTemplates
from monitor.population.people import Speaker, sound_of
from monitor.population.population import Population
from monitor.population.rank_model import RankModel, RankModels
from monitor.sources.file import File
from monitor.sources.frames import write_frames
from monitor.sources.registry import recording_hashes
from monitor.training.calibrating import LENGTHS, CalibrationSettings, calibrate
from monitor.training.enrolling import enrol, landmarks_of
from monitor.training.feature_extraction import FeatureExtractor
from monitor.training.frames_folder import ExtractionOptions, extract_features
from monitor.training.stream_maxima import with_maxima
from monitor.training.voices import cohort_of, collect
from monitor.types import Block, Track
from recipes.effects import with_effects
from recipes.frames import (
    BACKGROUND,
    chapters,
    extract_chapters,
    extract_groups,
    extract_people,
    trainers,
)

FEATURES = ("f0", "phones", "voice")
SETS = tuple(features for size in (1, 2, 3) for features in combinations(FEATURES, size))
TEMPLATE_LENGTHS = (5.0, 10.0, 30.0, 60.0)
TEMPLATE_SPEECH_SECONDS = 100.0
"""About two minutes of audio."""
ENROL_AUDIO_SECONDS = 145.0
"""Shortest chapter that contains that much speech."""
DRAWS = 80
"""Number of resampled fits of likelihood ratios that ship."""
_LONG = ("losses", "others_exceeding")  # keys omitted from the rows
DEMO_CHAPTER = "16882"
DEMO_SECONDS = 600.0
ABOUT = (
    "Templates and rank models of pitch, units of phones and a speaker embedding, of LibriVox "
    "volunteers who read for LibriSpeech (train-clean, dev-clean), and a cohort of others: V. "
    "Panayotov, G. Chen, D. Povey, S. Khudanpur, 'Librispeech: an ASR corpus based on public "
    "domain audio books', ICASSP 2015, CC BY 4.0. Derived numbers, no audio. dev-clean came as "
    "MP3: its codec may help to tell its readers from the rest. The readers of train-clean-5 "
    "trained the network of the units: their tests count in no rank model with phones. Likelihood "
    "ratios also rest on sums over people at their own microphones (Common Voice, CC0, Mozilla), "
    "of whom nothing else is here."
)


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the shipped population.")
    parser.add_argument("speech", type=Path)
    parser.add_argument("frames", type=Path, nargs="?")
    parser.add_argument("voices", type=Path, nargs="?", help="people at their own microphones")
    parser.add_argument("microphones", type=Path, nargs="?", help="their frames")
    parser.add_argument("world", type=Path, nargs="?", help="frames under conditions")
    parser.add_argument("--jobs", type=int, default=cores())
    parser.add_argument(
        "--conditions", action="store_true", help="add only the conditions of templates"
    )
    parser.add_argument("--effects", action="store_true", help="add only the effects of conditions")
    parser.add_argument("--usual", action="store_true", help="add only the usual range")
    parser.add_argument("--demo", action="store_true", help="write only the frames of the demo")
    given = parser.parse_args()
    if given.demo:
        _demo(next(given.speech.glob(f"*/*/{DEMO_CHAPTER}.opus")))
        return
    if given.conditions:
        _save(_with_conditions(Population.reference(), given.speech))
        return
    if given.usual:
        _save(with_usual(Population.reference()))
        return
    if given.frames is None:
        _with_landmarks(given.speech)
        return
    if given.world is None:
        parser.error("VOICES, MICROPHONES and WORLD are missing")
    if given.effects:
        _save(with_effects(Population.reference(), given.world))
        return
    rows, background = chapters(given.speech), chapters(given.speech, (BACKGROUND,))
    extract_chapters([*rows, *background], given.speech, given.frames, FEATURES, given.jobs)
    extract_people(given.voices, given.microphones, FEATURES, given.jobs)
    extract_groups(given.speech, given.voices, given.world, FEATURES, given.jobs)
    readers = sorted({row["speaker"] for row in rows}, key=int)
    enrolment = [enrolment_chapter([r for r in rows if r["speaker"] == name]) for name in readers]
    with tempfile.TemporaryDirectory() as folder:
        enrolled, everyone, others = (
            find(write_corpus_manifest(Path(folder) / f"{name}.csv", given.frames, listed))
            for name, listed in (("enrol", enrolment), ("all", rows), ("others", background))
        )
        made = enrol(enrolled, features=FEATURES, seconds=TEMPLATE_SPEECH_SECONDS)
        voices, specs, problems = collect(everyone, features=FEATURES)
        cohort, more = cohort_of(others, features=FEATURES, about=ABOUT)
    cohort = replace(cohort, names=())  # nobody needs to look up a background speaker
    for problem in (*made.problems, *problems, *more):
        raise SystemExit(problem)
    own_microphones, _, _ = collect(find(given.microphones), features=FEATURES)
    own = made.population.scoring().seconds
    calibrated = calibrate(
        voices,
        specs,
        CalibrationSettings(
            lengths=LENGTHS,
            template_lengths=sorted({*TEMPLATE_LENGTHS, own}),
            sets=SETS,
            trained=trainers(given.speech),
            other_voices=own_microphones,
            prior=None,
            cohort=cohort,
        ),
        progress=lambda done, cells: print(f"\rcell {done} of {cells}", end="", file=sys.stderr),
    )
    population = Population(
        _replace_sources(made.population, given.speech, enrolment),
        made.population.offsets,
        {name: _round_embeddings(each) for name, each in made.population.features.items()},
        RankModels(map(_shorten, calibrated.rank_models)),
        about=ABOUT,
        cohort=cohort,
    )
    population = with_maxima(
        population,
        voices,
        trained=trainers(given.speech),
        jobs=given.jobs,
        progress=lambda done, people: print(
            f"\rstream {done} of {people}", end="", file=sys.stderr
        ),
    )
    _save(with_usual(with_effects(_with_conditions(population, given.speech), given.world)))
    for rank_model in population.rank_models:
        print(
            f"  {rank_model.session}-session rank model of {'+'.join(rank_model.features)}: "
            f"{rank_model.speakers} readers"
        )
    (demo,) = (row for row in rows if row["chapter"] == DEMO_CHAPTER)
    _demo(given.speech / demo["path"])


def _save(population: Population) -> None:
    target = demo_frames().with_name("population.npz")
    population.save(target)
    target.chmod(0o644)
    print(f"\n{target.name}: {len(population)} readers, {target.stat().st_size / 1e3:.0f} kB")


def with_usual(population: Population) -> Population:
    """Return the population with the usual range of `monitor.how_much` in its rank models' rows."""
    seconds, _, *bounds = np.array(USUAL).T
    rank_models = []
    for model in population.rank_models:
        rows = []
        for row in model.rows:
            if model.features == FEATURES and model.session == "cross" and row["T"] >= seconds[0]:
                at = np.log(row["T"])
                low, high = (float(np.interp(at, np.log(seconds), each)) for each in bounds)
                row = {**row, "usual_low": low, "usual_high": high}
            rows.append(row)
        rank_models.append(replace(model, rows=tuple(rows)))
    return population.with_rank_models(RankModels(rank_models), population.cohort)


def _with_conditions(population: Population, speech: Path) -> Population:
    """Return the population with the measured conditions of each speaker's enrolled audio."""
    paths = {row["path"].rpartition("/")[2]: speech / row["path"] for row in chapters(speech)}
    speakers = []
    for speaker in population.speakers:
        total, seconds = np.zeros(ROW, np.int64), 0.0
        for note in speaker.sources:
            extractor = Extractor([], conditions=True)
            with File(paths[note.label], end_seconds=note.end_seconds) as file:
                for block in file:
                    if isinstance(block, Block):
                        total += extractor.process(block).tracks[CONDITION].values.sum(axis=0)
            seconds += note.end_seconds
        speakers.append(replace(speaker, sound=sound_of(condition_of(total), seconds)))
    return population.with_details(speakers)


def enrolment_chapter(rows: list[dict[str, str]]) -> dict[str, str]:
    """Return the shortest chapter that is long enough to enrol: longer ones serve as tests."""
    long = [row for row in rows if float(row["seconds"]) >= ENROL_AUDIO_SECONDS]
    return min(long or [max(rows, key=_seconds)], key=_seconds)


def _seconds(row: dict[str, str]) -> float:
    return float(row["seconds"])


def write_corpus_manifest(path: Path, frames: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["path", "speaker", "session"])
        for row in rows:
            source = (frames / row["path"]).with_suffix(".npz").resolve()
            writer.writerow([source, row["speaker"], row["chapter"]])
    return path


def _with_landmarks(speech: Path) -> None:
    """Save the shipped population with new landmarks of its recordings."""
    population = Population.reference()
    rows = {f"{row['speaker']}/{Path(row['path']).name}": row for row in chapters(speech)}
    enrolment = [rows[f"{s.name}/{note.label}"] for s in population.speakers for note in s.sources]
    _save(population.with_details(_replace_sources(population, speech, enrolment)))


def _replace_sources(
    population: Population, speech: Path, rows: list[dict[str, str]]
) -> list[Speaker]:
    """Return the speakers with hashes and landmarks of their recordings instead of their frames."""
    paths = {row["speaker"]: speech / row["path"] for row in rows}
    return [
        Speaker(
            speaker.name,
            tuple(
                replace(
                    note,
                    label=paths[speaker.name].name,
                    hashes=recording_hashes(paths[speaker.name]),
                    landmarks=landmarks_of(
                        FeatureExtractor(("f0",)).extract(paths[speaker.name], landmarks=True),
                        note.end_seconds,
                    ),
                )
                for note in speaker.sources
            ),
        )
        for speaker in population.speakers
    ]


def _round_embeddings(templates: FeatureTemplates) -> FeatureTemplates:
    """Round embeddings to half precision, which changes cosines by less than 1e-4."""
    if templates.slices.dtype.kind != "f":
        return templates
    return replace(templates, slices=templates.slices.astype(np.float16))


def _shorten(rank_model: RankModel) -> RankModel:
    """Omit fits of other losses, all but `DRAWS` resamples, and names of calibration speakers."""
    rows = ({key: row[key] for key in row if key not in _LONG} for row in rank_model.rows)
    evidence = rank_model.evidence
    if evidence is not None:
        intercept, slopes = evidence.intercept[: 1 + DRAWS], evidence.slopes[: 1 + DRAWS]
        evidence = replace(evidence, intercept=intercept, slopes=slopes)
    return replace(rank_model, rows=tuple(rows), evidence=evidence, learnt_from=())


def _demo(path: Path) -> None:
    """Write the frames of the first minutes of the demo reader's other chapter."""
    features = make(FEATURES)
    frames = extract_features(path, features, ExtractionOptions(FEATURES, DEMO_SECONDS))
    tracks = {}
    for feature in features:
        track = frames.tracks[feature.spec.name]
        whole = track.values.dtype.kind in "iu"
        early = track.early
        values = track.values.astype(np.uint8 if whole else np.float16)
        tracks[feature.spec.name] = Track(
            track.ticks.astype(np.int32),
            values,
            None if track.spans is None else track.spans.astype(np.int32),
            None if early is None else replace(early, values=early.values.astype(np.float16)),
        )
    write_frames(
        demo_frames(),
        frames.speech,
        tracks,
        {each.spec.name: each.spec.size for each in features},
        {each.spec.name: each.spec.frame_seconds for each in features},
        networks={each.spec.name: each.spec.network for each in features},
    )
    demo_frames().chmod(0o644)
    print(f"{demo_frames().name}: {demo_frames().stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
